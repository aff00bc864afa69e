//! ConsumerGroupHeartbeat (key 68, KIP-848): joins, keeps and leaves a consumer group, and carries
//! subscription and assignment. v1 subscribes by regular expression and brings the member's own id
//! (KIP-1082).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border;
use crate::broker::shape::{shared, shared_option, text};
use crate::common::TopicId;
use crate::coordinator::group::consumer::{Assignment, ConsumerHeartbeat, HeartbeatAnswer};
use crate::protocol::error::ErrorCode;
use crate::protocol::messages::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse,
    consumer_group_heartbeat_response as answer,
};
use crate::security::{Access, Operation, Resource};

pub struct Api;

impl Handler for Api {
    type Request = ConsumerGroupHeartbeatRequest;

    fn access(request: &ConsumerGroupHeartbeatRequest) -> Access<'_> {
        Access::one(Resource::Group(&request.group_id), Operation::Read)
    }

    async fn handle(
        broker: &Broker,
        call: &Call<ConsumerGroupHeartbeatRequest>,
    ) -> ConsumerGroupHeartbeatResponse {
        let response = ConsumerGroupHeartbeatResponse::default();
        if !broker.has_consumer_groups() {
            return response.with_error_code(ErrorCode::UnsupportedVersion as i16);
        }
        match broker.groups.consumer_heartbeat(read(call)).await {
            Ok(told) => shape(&told),
            Err(error) => response
                .with_error_code(border::group_code(&error) as i16)
                .with_error_message(Some(text(&error.to_string()))),
        }
    }
}

fn read(call: &Call<ConsumerGroupHeartbeatRequest>) -> ConsumerHeartbeat {
    let request = &call.request;
    let owned = request.topic_partitions.as_ref().map(|topics| {
        let mut owned = Assignment::new();
        for topic in topics {
            let partitions = topic.partitions.iter().copied();
            owned.entry(TopicId(topic.topic_id)).or_default().extend(partitions);
        }
        owned
    });
    let topics = request.subscribed_topic_names.as_ref();
    ConsumerHeartbeat {
        group_id: shared(&request.group_id),
        member_id: shared(&request.member_id),
        member_epoch: request.member_epoch,
        instance_id: shared_option(request.instance_id.as_ref()),
        rack_id: shared_option(request.rack_id.as_ref()),
        rebalance_timeout_ms: request.rebalance_timeout_ms,
        topics: topics.map(|names| names.iter().map(|name| shared(name)).collect()),
        regex: shared_option(request.subscribed_topic_regex.as_ref()),
        assignor: shared_option(request.server_assignor.as_ref()),
        owned,
        client_id: shared(call.header.client_id.as_deref().unwrap_or_default()),
        client_host: format!("/{}", call.peer.ip()).into(),
        brings_member_id: call.header.version >= 1,
    }
}

fn shape(told: &HeartbeatAnswer) -> ConsumerGroupHeartbeatResponse {
    let assignment = told.assignment.as_ref().map(|assignment| {
        let topics = assignment.iter().map(|(topic, partitions)| {
            answer::TopicPartitions::default()
                .with_topic_id(topic.0)
                .with_partitions(partitions.iter().copied().collect())
        });
        answer::Assignment::default().with_topic_partitions(topics.collect())
    });
    ConsumerGroupHeartbeatResponse::default()
        .with_member_id(Some(text(&told.member_id)))
        .with_member_epoch(told.member_epoch)
        .with_heartbeat_interval_ms(told.heartbeat_interval_ms)
        .with_assignment(assignment)
}
