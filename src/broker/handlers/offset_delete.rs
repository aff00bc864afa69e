//! OffsetDelete (key 47): forgets positions of topics that no member is subscribed to (KIP-496).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border;
use crate::broker::shape::{shared, text};
use crate::coordinator::group::{OffsetDelete, TopicOutcome};
use crate::protocol::messages::offset_delete_response::{
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use crate::protocol::messages::{OffsetDeleteRequest, OffsetDeleteResponse, TopicName};
use crate::security::{Access, Operation, Resource};

pub struct Api;

impl Handler for Api {
    type Request = OffsetDeleteRequest;

    fn access(request: &OffsetDeleteRequest) -> Access<'_> {
        Access::one(Resource::Group(&request.group_id), Operation::Delete)
    }

    async fn handle(broker: &Broker, call: &Call<OffsetDeleteRequest>) -> OffsetDeleteResponse {
        let topics = call.request.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|partition| partition.partition_index);
            (shared(&topic.name), partitions.collect())
        });
        let ask = OffsetDelete {
            group_id: shared(&call.request.group_id),
            topics: topics.collect(),
        };
        match broker.groups.delete_offsets(ask).await {
            Ok(topics) => {
                OffsetDeleteResponse::default().with_topics(topics.iter().map(shape).collect())
            }
            Err(error) => {
                OffsetDeleteResponse::default().with_error_code(border::group_code(&error) as i16)
            }
        }
    }
}

fn shape(topic: &TopicOutcome) -> OffsetDeleteResponseTopic {
    let partitions = topic.partitions.iter().map(|(index, outcome)| {
        OffsetDeleteResponsePartition::default()
            .with_partition_index(*index)
            .with_error_code(border::group_outcome(outcome))
    });
    OffsetDeleteResponseTopic::default()
        .with_name(TopicName(text(&topic.name)))
        .with_partitions(partitions.collect())
}
