//! DescribeLogDirs (key 35): what is in each log directory of this broker. v4 says how large the
//! volume is (KIP-827), v5 whether the directory takes no new replicas (KIP-1066).

use std::collections::HashSet;

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::shape::text;
use crate::common::TopicPartition;
use crate::protocol::error::ErrorCode;
use crate::protocol::messages::describe_log_dirs::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use crate::protocol::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse};
use crate::replica::{DirDescription, LogDescription};
use crate::security::{Access, Operation, Resource};

pub struct Api;

impl Handler for Api {
    type Request = DescribeLogDirsRequest;

    fn access(_: &DescribeLogDirsRequest) -> Access<'_> {
        Access::one(Resource::Cluster, Operation::Describe)
    }

    async fn handle(
        broker: &Broker,
        call: &Call<DescribeLogDirsRequest>,
    ) -> DescribeLogDirsResponse {
        let only: Option<HashSet<TopicPartition>> = call.request.topics.as_ref().map(|topics| {
            let of = |topic: &str, index: &i32| TopicPartition::new(topic, *index);
            let all = topics.iter().flat_map(|topic| {
                topic.partitions.iter().map(move |index| of(&topic.topic, index))
            });
            all.collect()
        });
        let replicas = broker.replicas.clone();
        let looking = broker.env.tasks.spawn_blocking(move || replicas.describe_dirs(only.as_ref()));
        let dirs = match looking.await {
            Ok(dirs) => dirs,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        let results = dirs.into_iter().map(shape).collect();
        DescribeLogDirsResponse { results, ..DescribeLogDirsResponse::default() }
    }
}

fn shape(dir: DirDescription) -> DescribeLogDirsResult {
    let result =
        DescribeLogDirsResult { log_dir: text(&dir.path), ..DescribeLogDirsResult::default() };
    let Some(online) = dir.online else {
        return DescribeLogDirsResult {
            error_code: ErrorCode::KafkaStorageError as i16,
            ..result
        };
    };
    let bytes = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let mut topics: Vec<DescribeLogDirsTopic> = Vec::new();
    // Sorted by partition.
    for log in &online.logs {
        let name = &log.partition.topic;
        match topics.last_mut().filter(|last| *last.name == **name) {
            Some(topic) => topic.partitions.push(partition(log)),
            None => topics.push(DescribeLogDirsTopic {
                name: text(name),
                partitions: vec![partition(log)],
            }),
        }
    }
    DescribeLogDirsResult {
        topics,
        total_bytes: bytes(online.space.total_bytes),
        usable_bytes: bytes(online.space.usable_bytes),
        ..result
    }
}

fn partition(log: &LogDescription) -> DescribeLogDirsPartition {
    DescribeLogDirsPartition {
        partition_index: log.partition.partition,
        partition_size: i64::try_from(log.size_bytes).unwrap_or(i64::MAX),
        offset_lag: log.offset_lag,
        is_future_key: log.is_future,
    }
}
