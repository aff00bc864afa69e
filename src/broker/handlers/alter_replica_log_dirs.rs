//! AlterReplicaLogDirs (key 34): replicas move to other log directories of this broker (KIP-113).

use std::collections::BTreeMap;

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border;
use crate::common::TopicPartition;
use crate::protocol::error::ErrorCode;
use crate::protocol::messages::alter_replica_log_dirs_response::{
    AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult,
};
use crate::protocol::messages::{
    AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse, TopicName,
};
use crate::security::{Access, Operation, Resource};

pub struct Api;

impl Handler for Api {
    type Request = AlterReplicaLogDirsRequest;

    fn access(_: &AlterReplicaLogDirsRequest) -> Access<'_> {
        Access::one(Resource::Cluster, Operation::Alter)
    }

    async fn handle(
        broker: &Broker,
        call: &Call<AlterReplicaLogDirsRequest>,
    ) -> AlterReplicaLogDirsResponse {
        // Named twice, the last directory counts.
        let mut asked: BTreeMap<(TopicName, i32), String> = BTreeMap::new();
        for dir in &call.request.dirs {
            for topic in &dir.topics {
                for index in &topic.partitions {
                    asked.insert((topic.name.clone(), *index), dir.path.to_string());
                }
            }
        }
        let replicas = broker.replicas.clone();
        let moving = broker.env.tasks.spawn_blocking(move || {
            let answer = |((topic, index), path): ((TopicName, i32), String)| {
                let outcome = replicas.move_replica(&TopicPartition::new(&**topic, index), &path);
                let code = outcome.err().map_or(ErrorCode::None, |error| border::move_code(&error));
                (topic, index, code)
            };
            asked.into_iter().map(answer).collect::<Vec<_>>()
        });
        let mut results: Vec<AlterReplicaLogDirTopicResult> = Vec::new();
        let outcomes = match moving.await {
            Ok(outcomes) => outcomes,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        for (topic, index, code) in outcomes {
            if results.last().is_none_or(|last| last.topic_name != topic) {
                results.push(AlterReplicaLogDirTopicResult::default().with_topic_name(topic));
            }
            let partition = AlterReplicaLogDirPartitionResult::default()
                .with_partition_index(index)
                .with_error_code(code as i16);
            results.iter_mut().last().into_iter().for_each(|last| {
                last.partitions.push(partition.clone());
            });
        }
        AlterReplicaLogDirsResponse::default().with_results(results)
    }
}
