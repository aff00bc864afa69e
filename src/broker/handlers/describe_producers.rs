//! DescribeProducers (key 61): what partitions know of their idempotent producers, and which of
//! these have a transaction open (KIP-664).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border;
use crate::broker::shape::text;
use crate::common::NO_OFFSET;
use crate::controller::{Refusal, check_topic_name};
use crate::protocol::error::ErrorCode;
use crate::protocol::messages::describe_producers_response::{
    PartitionResponse, ProducerState, TopicResponse,
};
use crate::protocol::messages::{DescribeProducersRequest, DescribeProducersResponse};
use crate::replica::NotNow;
use crate::security::{Access, Operation, Resource};
use crate::storage::Producer;

pub struct Api;

impl Handler for Api {
    type Request = DescribeProducersRequest;

    fn access(request: &DescribeProducersRequest) -> Access<'_> {
        let topics = request.topics.iter().map(|topic| Resource::Topic(&topic.name));
        Access::each(topics, Operation::Read)
    }

    async fn handle(
        broker: &Broker,
        call: &Call<DescribeProducersRequest>,
    ) -> DescribeProducersResponse {
        let topics = call.request.topics.iter().map(|topic| {
            let refusal = refusal(broker, &topic.name);
            let partitions = topic.partition_indexes.iter().map(|index| {
                let response = PartitionResponse::default().with_partition_index(*index);
                match &refusal {
                    Some((code, why)) => response
                        .with_error_code(*code as i16)
                        .with_error_message(Some(text(why))),
                    None => describe(broker, &topic.name, response),
                }
            });
            TopicResponse::default()
                .with_name(topic.name.clone())
                .with_partitions(partitions.collect())
        });
        DescribeProducersResponse::default().with_topics(topics.collect())
    }
}

/// Why all partitions of a topic are refused, with what clients show.
fn refusal(broker: &Broker, topic: &str) -> Option<(ErrorCode, String)> {
    if let Err(fault) = check_topic_name(topic) {
        return Some((ErrorCode::InvalidTopicException, fault.to_string()));
    }
    let is_unknown = broker.image().topic(topic).is_none();
    is_unknown
        .then(|| (ErrorCode::UnknownTopicOrPartition, Refusal::UnknownTopic.to_string()))
}

fn describe(broker: &Broker, topic: &str, response: PartitionResponse) -> PartitionResponse {
    let partition = broker.replicas.partition(topic, response.partition_index);
    let partition = partition.ok_or(NotNow::UnknownPartition.into());
    match partition.and_then(|partition| partition.active_producers()) {
        Ok(active) => {
            let rows = active.into_iter().map(|(id, producer)| row(id.0, &producer));
            response.with_active_producers(rows.collect())
        }
        Err(error) => response.with_error_code(border::replica_code(&error) as i16),
    }
}

fn row(producer_id: i64, producer: &Producer) -> ProducerState {
    ProducerState::default()
        .with_producer_id(producer_id.into())
        .with_producer_epoch(producer.epoch.0.into())
        .with_last_sequence(producer.last_sequence())
        .with_last_timestamp(producer.last_timestamp)
        .with_coordinator_epoch(producer.coordinator_epoch)
        .with_current_txn_start_offset(producer.txn_first_offset.unwrap_or(NO_OFFSET))
}
