//! DescribeTopicPartitions (key 75): partitions of topics in pages, with ELR (KIP-966).

use std::collections::BTreeSet;

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::shape::{TOPIC_OPERATIONS, text};
use crate::common;
use crate::controller::check_topic_name;
use crate::metadata::{self, Image, Partition};
use crate::protocol::error::ErrorCode;
use crate::protocol::messages::describe_topic_partitions_request::{
    Cursor as AskedCursor, TopicRequest,
};
use crate::protocol::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use crate::protocol::messages::{
    BrokerId, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, TopicName,
};
use crate::security::{Access, Operation, Resource};

pub struct Api;

impl Handler for Api {
    type Request = DescribeTopicPartitionsRequest;

    fn access(request: &DescribeTopicPartitionsRequest) -> Access<'_> {
        let topics = request.topics.iter().map(|topic| Resource::Topic(&topic.name));
        Access::each(topics, Operation::Describe)
    }

    async fn handle(
        broker: &Broker,
        call: &Call<DescribeTopicPartitionsRequest>,
    ) -> DescribeTopicPartitionsResponse {
        let (request, image) = (&call.request, broker.image());
        let page_max = broker.config.load().network.max_request_partition_size_limit;
        if request.cursor.as_ref().is_some_and(|cursor| !fits(cursor, request)) {
            return refuse(request, ErrorCode::InvalidRequest);
        }
        if request.topics.iter().any(|topic| topic.name.is_empty()) {
            return refuse(request, ErrorCode::UnknownServerError);
        }
        // Kafka shows one partition at least.
        let limit = request.response_partition_limit.min(page_max).max(1) as usize;
        let mut names: BTreeSet<&str> = request.topics.iter().map(|topic| &**topic.name).collect();
        if names.is_empty() {
            names = image.topics().names().map(|name| &**name).collect();
        }
        let from = request.cursor.as_ref().map(|cursor| (&**cursor.topic_name, cursor.partition_index));
        let mut page = Page { image: &image, listener: &call.listener.name, left: limit, next: None };
        let first = from.map_or("", |(topic, _)| topic);
        let mut topics = Vec::new();
        for name in names.range(first..) {
            if page.next.is_some() {
                break;
            }
            let start = from.filter(|(topic, _)| topic == name).map_or(0, |(_, partition)| partition);
            topics.extend(page.topic(name, start, !request.topics.is_empty()));
        }
        DescribeTopicPartitionsResponse::default().with_topics(topics).with_next_cursor(page.next)
    }
}

/// Where the last page ended: at a partition of a topic that is asked for.
fn fits(cursor: &AskedCursor, request: &DescribeTopicPartitionsRequest) -> bool {
    let is_asked = |topic: &TopicRequest| topic.name == cursor.topic_name;
    let topics = &request.topics;
    cursor.partition_index >= 0 && (topics.is_empty() || topics.iter().any(is_asked))
}

fn refuse(
    request: &DescribeTopicPartitionsRequest,
    code: ErrorCode,
) -> DescribeTopicPartitionsResponse {
    let topics = request.topics.iter().map(|topic| {
        DescribeTopicPartitionsResponseTopic::default()
            .with_name(Some(topic.name.clone()))
            .with_error_code(code as i16)
    });
    DescribeTopicPartitionsResponse::default().with_topics(topics.collect())
}

/// Fills one answer up to its limit of partitions.
struct Page<'a> {
    image: &'a Image,
    listener: &'a str,
    left: usize,
    next: Option<Cursor>,
}

impl Page<'_> {
    fn topic(
        &mut self,
        name: &str,
        start: i32,
        was_named: bool,
    ) -> Option<DescribeTopicPartitionsResponseTopic> {
        let shaped = DescribeTopicPartitionsResponseTopic::default()
            .with_name(Some(TopicName(text(name))))
            .with_topic_authorized_operations(TOPIC_OPERATIONS);
        let Some(topic) = self.image.topic(name) else {
            let is_internal = metadata::is_internal(name);
            let code = match check_topic_name(name) {
                Ok(()) => ErrorCode::UnknownTopicOrPartition,
                Err(_) => ErrorCode::InvalidTopicException,
            };
            let shaped = shaped.with_error_code(code as i16).with_is_internal(is_internal);
            return was_named.then_some(shaped);
        };
        let mut partitions = Vec::new();
        for (index, partition) in topic.partitions.range(start..) {
            if self.left == 0 {
                let cursor = Cursor::default()
                    .with_topic_name(TopicName(text(name)))
                    .with_partition_index(*index);
                self.next = Some(cursor);
                break;
            }
            self.left -= 1;
            partitions.push(self.partition(*index, partition));
        }
        let shaped = shaped
            .with_topic_id(topic.id.0)
            .with_is_internal(topic.is_internal())
            .with_partitions(partitions);
        Some(shaped)
    }

    fn partition(
        &self,
        index: i32,
        partition: &Partition,
    ) -> DescribeTopicPartitionsResponsePartition {
        let is_here = |id: &common::BrokerId| {
            self.image.broker(*id).is_some_and(|node| {
                !node.is_fenced && node.endpoints.iter().any(|e| *e.name == *self.listener)
            })
        };
        let ids = |ids: &[common::BrokerId]| ids.iter().map(|id| BrokerId(id.0)).collect::<Vec<_>>();
        let leader = partition.leader.filter(is_here);
        let code = if leader.is_some() { ErrorCode::None } else { ErrorCode::LeaderNotAvailable };
        let is_online =
            |id: &common::BrokerId| is_here(id) && self.image.has_online_replica(partition, *id);
        let offline: Vec<common::BrokerId> =
            partition.replicas.iter().filter(|id| !is_online(id)).copied().collect();
        DescribeTopicPartitionsResponsePartition::default()
            .with_error_code(code as i16)
            .with_partition_index(index)
            .with_leader_id(BrokerId(leader.map_or(-1, |id| id.0)))
            .with_leader_epoch(partition.leader_epoch.0)
            .with_replica_nodes(ids(&partition.replicas))
            .with_isr_nodes(ids(&partition.isr))
            .with_eligible_leader_replicas(Some(ids(&partition.elr)))
            .with_last_known_elr(Some(ids(&partition.last_known_elr)))
            .with_offline_replicas(ids(&offline))
    }
}
