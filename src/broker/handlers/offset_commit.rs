//! OffsetCommit (key 8): keeps positions of a group. v6 with leader epochs (KIP-320), v7 instance
//! ids (KIP-345), v10 topics by id (KIP-848).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border;
use crate::broker::shape::{shared, shared_option, text};
use crate::common::TopicId;
use crate::coordinator::group::{CommitPartition, CommitTopic, OffsetCommit, TopicOutcome};
use crate::protocol::messages::offsets::{
    OffsetCommitRequestTopic, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use crate::protocol::messages::{OffsetCommitRequest, OffsetCommitResponse};
use crate::security::{Access, Operation, Resource};

pub struct Api;

impl Handler for Api {
    type Request = OffsetCommitRequest;

    fn access(request: &OffsetCommitRequest) -> Access<'_> {
        Access::one(Resource::Group(&request.group_id), Operation::Read)
    }

    async fn handle(broker: &Broker, call: &Call<OffsetCommitRequest>) -> OffsetCommitResponse {
        let (request, version) = (&call.request, call.header.version);
        let outcomes = broker.groups.commit_offsets(OffsetCommit {
            group_id: shared(&request.group_id),
            generation_id: request.generation_id_or_member_epoch,
            member_id: shared(&request.member_id),
            group_instance_id: shared_option(request.group_instance_id.as_ref()),
            retention_ms: Some(request.retention_time_ms).filter(|ms| *ms != -1),
            knows_group_not_found: version >= 9,
            by_topic_id: version >= 10,
            topics: request.topics.iter().map(topic).collect(),
        });
        let topics = outcomes.await.iter().map(shape).collect();
        OffsetCommitResponse { topics, ..OffsetCommitResponse::default() }
    }
}

fn topic(topic: &OffsetCommitRequestTopic) -> CommitTopic {
    let partitions = topic.partitions.iter().map(|partition| CommitPartition {
        partition: partition.partition_index,
        offset: partition.committed_offset,
        leader_epoch: partition.committed_leader_epoch,
        metadata: shared_option(partition.committed_metadata.as_ref()),
    });
    let (id, name) = (TopicId(topic.topic_id), shared(&topic.name));
    CommitTopic { id, name, partitions: partitions.collect() }
}

fn shape(topic: &TopicOutcome) -> OffsetCommitResponseTopic {
    let partitions = topic.partitions.iter().map(|(partition_index, outcome)| {
        let error_code = border::group_outcome(outcome);
        OffsetCommitResponsePartition { partition_index: *partition_index, error_code }
    });
    OffsetCommitResponseTopic {
        name: text(&topic.name),
        topic_id: topic.id.0,
        partitions: partitions.collect(),
    }
}
