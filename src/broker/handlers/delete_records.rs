//! DeleteRecords (key 21): moves the log start offset (KIP-107).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border;
use crate::metadata;
use crate::protocol::error::ErrorCode;
use crate::protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use crate::protocol::messages::{DeleteRecordsRequest, DeleteRecordsResponse};
use crate::replica::{NotNow, ReplicaError};
use crate::security::{Access, Operation, Resource};

/// What Kafka answers for a low watermark that is not known.
const NO_LOW_WATERMARK: i64 = -1;

pub struct Api;

impl Handler for Api {
    type Request = DeleteRecordsRequest;

    fn access(request: &DeleteRecordsRequest) -> Access<'_> {
        let topics = request.topics.iter().map(|topic| Resource::Topic(&topic.name));
        Access::each(topics, Operation::Delete)
    }

    async fn handle(broker: &Broker, call: &Call<DeleteRecordsRequest>) -> DeleteRecordsResponse {
        let topics = call.request.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|asked| {
                let outcome = delete(broker, &topic.name, asked.partition_index, asked.offset);
                let (code, low_watermark) = match outcome {
                    Ok(low_watermark) => (ErrorCode::None, low_watermark),
                    Err(code) => (code, NO_LOW_WATERMARK),
                };
                DeleteRecordsPartitionResult::default()
                    .with_partition_index(asked.partition_index)
                    .with_low_watermark(low_watermark)
                    .with_error_code(code as i16)
            });
            DeleteRecordsTopicResult::default()
                .with_name(topic.name.clone())
                .with_partitions(partitions.collect())
        });
        DeleteRecordsResponse::default().with_topics(topics.collect())
    }
}

fn delete(broker: &Broker, topic: &str, partition: i32, before: i64) -> Result<i64, ErrorCode> {
    if metadata::is_internal(topic) {
        return Err(ErrorCode::InvalidTopicException);
    }
    let partition = broker.replicas.partition(topic, partition).ok_or(NotNow::UnknownPartition.into());
    let deleted = partition.and_then(|partition| partition.delete_records(before));
    deleted.map_err(|error: ReplicaError| border::replica_code(&error))
}
