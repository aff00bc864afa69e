//! OffsetFetch (key 9): a group's committed positions. v2 can ask for all, v7 waits for open
//! transactions (KIP-447), v8 asks for several groups (KIP-709), v10 by topic id (KIP-848).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border;
use crate::broker::shape::{shared, shared_option, text};
use crate::common::TopicId;
use crate::coordinator::group::{
    FetchTopic, FetchedPartition, FetchedTopic, GroupError, OffsetFetch,
};
use crate::protocol::error::ErrorCode;
use crate::protocol::messages::offsets::{
    OffsetFetchRequestGroup, OffsetFetchResponseGroup, OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions, OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use crate::protocol::messages::{OffsetFetchRequest, OffsetFetchResponse};
use crate::security::{Access, Operation, Resource};

pub struct Api;

impl Handler for Api {
    type Request = OffsetFetchRequest;

    fn access(request: &OffsetFetchRequest) -> Access<'_> {
        let groups = request.groups.iter().map(|group| &*group.group_id);
        let groups = groups.chain([&*request.group_id]).map(Resource::Group);
        Access::each(groups, Operation::Describe)
    }

    async fn handle(broker: &Broker, call: &Call<OffsetFetchRequest>) -> OffsetFetchResponse {
        let (request, version) = (&call.request, call.header.version);
        if version < 8 {
            let outcome = broker.groups.fetch_offsets(read_one(request)).await;
            return shape_one(request, outcome, version);
        }
        let mut groups = Vec::with_capacity(request.groups.len());
        for group in &request.groups {
            let ask = read(group, request.require_stable, version);
            groups.push(shape(group, broker.groups.fetch_offsets(ask).await));
        }
        OffsetFetchResponse { groups, ..OffsetFetchResponse::default() }
    }
}

fn read_one(request: &OffsetFetchRequest) -> OffsetFetch {
    let topics = request.topics.as_ref().map(|topics| {
        let topics = topics.iter().map(|topic| FetchTopic {
            id: TopicId::NONE,
            name: shared(&topic.name),
            partitions: topic.partition_indexes.clone(),
        });
        topics.collect()
    });
    let (group_id, require_stable) = (shared(&request.group_id), request.require_stable);
    let (member_id, member_epoch, by_topic_id) = (None, -1, false);
    OffsetFetch { group_id, topics, member_id, member_epoch, require_stable, by_topic_id }
}

/// Version 1 has no error of its own: every partition that was asked for carries it.
fn shape_one(
    request: &OffsetFetchRequest,
    outcome: Result<Vec<FetchedTopic>, GroupError>,
    version: i16,
) -> OffsetFetchResponse {
    let response = OffsetFetchResponse::default();
    match outcome {
        Ok(topics) => {
            let topics = topics.iter().map(|topic| OffsetFetchResponseTopic {
                name: text(&topic.name),
                partitions: topic.partitions.iter().map(partition_of_one).collect(),
            });
            OffsetFetchResponse { topics: topics.collect(), ..response }
        }
        Err(error) if version >= 2 => {
            OffsetFetchResponse { error_code: border::group_code(&error) as i16, ..response }
        }
        Err(error) => {
            let error_code = border::group_code(&error) as i16;
            let topics = request.topics.iter().flatten().map(|topic| OffsetFetchResponseTopic {
                name: topic.name.clone(),
                partitions: topic.partition_indexes.iter().map(|index| refused(*index, error_code)).collect(),
            });
            OffsetFetchResponse { topics: topics.collect(), ..response }
        }
    }
}

fn refused(partition_index: i32, error_code: i16) -> OffsetFetchResponsePartition {
    OffsetFetchResponsePartition {
        partition_index,
        committed_offset: -1,
        committed_leader_epoch: -1,
        metadata: Some(text("")),
        error_code,
    }
}

fn partition_of_one(partition: &FetchedPartition) -> OffsetFetchResponsePartition {
    OffsetFetchResponsePartition {
        partition_index: partition.partition,
        committed_offset: partition.offset,
        committed_leader_epoch: partition.leader_epoch,
        metadata: Some(text(&partition.metadata)),
        error_code: border::group_outcome(&partition.outcome),
    }
}

fn read(group: &OffsetFetchRequestGroup, require_stable: bool, version: i16) -> OffsetFetch {
    let topics = group.topics.as_ref().map(|topics| {
        let topics = topics.iter().map(|topic| FetchTopic {
            id: TopicId(topic.topic_id),
            name: shared(&topic.name),
            partitions: topic.partition_indexes.clone(),
        });
        topics.collect()
    });
    let group_id = shared(&group.group_id);
    OffsetFetch {
        group_id,
        topics,
        member_id: shared_option(group.member_id.as_ref()),
        member_epoch: group.member_epoch,
        require_stable,
        by_topic_id: version >= 10,
    }
}

fn shape(
    group: &OffsetFetchRequestGroup,
    outcome: Result<Vec<FetchedTopic>, GroupError>,
) -> OffsetFetchResponseGroup {
    let group_id = group.group_id.clone();
    match outcome {
        Ok(topics) => OffsetFetchResponseGroup {
            group_id,
            topics: topics.iter().map(topic).collect(),
            error_code: ErrorCode::None as i16,
        },
        Err(error) => OffsetFetchResponseGroup {
            group_id,
            topics: Vec::new(),
            error_code: border::group_code(&error) as i16,
        },
    }
}

fn topic(topic: &FetchedTopic) -> OffsetFetchResponseTopics {
    let partitions = topic.partitions.iter().map(|partition| OffsetFetchResponsePartitions {
        partition_index: partition.partition,
        committed_offset: partition.offset,
        committed_leader_epoch: partition.leader_epoch,
        metadata: Some(text(&partition.metadata)),
        error_code: border::group_outcome(&partition.outcome),
    });
    OffsetFetchResponseTopics {
        name: text(&topic.name),
        topic_id: topic.id.0,
        partitions: partitions.collect(),
    }
}
