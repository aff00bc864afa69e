//! OffsetForLeaderEpoch (key 23): where a leader's epoch ends, to find what was truncated
//! (KIP-320).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border;
use crate::common::{LeaderEpoch, NO_OFFSET};
use crate::protocol::error::ErrorCode;
use crate::protocol::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition;
use crate::protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use crate::protocol::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};
use crate::replica::{NotNow, ReplicaError};
use crate::security::{Access, Operation, Resource};

pub struct Api;

impl Handler for Api {
    type Request = OffsetForLeaderEpochRequest;

    fn access(request: &OffsetForLeaderEpochRequest) -> Access<'_> {
        let topics = request.topics.iter().map(|topic| Resource::Topic(&topic.topic));
        Access::each(topics, Operation::Describe)
    }

    async fn handle(
        broker: &Broker,
        call: &Call<OffsetForLeaderEpochRequest>,
    ) -> OffsetForLeaderEpochResponse {
        let topics = call.request.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|asked| end(broker, &topic.topic, asked));
            OffsetForLeaderTopicResult::default()
                .with_topic(topic.topic.clone())
                .with_partitions(partitions.collect())
        });
        OffsetForLeaderEpochResponse::default().with_topics(topics.collect())
    }
}

fn end(broker: &Broker, topic: &str, asked: &OffsetForLeaderPartition) -> EpochEndOffset {
    let current = Some(LeaderEpoch(asked.current_leader_epoch)).filter(|epoch| epoch.0 >= 0);
    let partition = broker.replicas.partition(topic, asked.partition).ok_or(NotNow::UnknownPartition.into());
    let found = partition.and_then(|partition| {
        partition.offset_for_leader_epoch(LeaderEpoch(asked.leader_epoch), current)
    });
    let nothing = (LeaderEpoch::NONE, NO_OFFSET);
    let (code, (epoch, offset)) = match found {
        Ok(found) => (ErrorCode::None, found.unwrap_or(nothing)),
        Err(error) => {
            let error: ReplicaError = error;
            (border::replica_code(&error), nothing)
        }
    };
    EpochEndOffset::default()
        .with_error_code(code as i16)
        .with_partition(asked.partition)
        .with_leader_epoch(epoch.0)
        .with_end_offset(offset)
}
