//! ConsumerGroupDescribe (key 69, KIP-848): epochs, members and their assignments. v1 says which
//! protocol a member speaks (KIP-1099).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border;
use crate::broker::shape::{GROUP_OPERATIONS, operations, shared, text, text_option};
use crate::coordinator::group::GroupError;
use crate::coordinator::group::consumer::{
    DescribedConsumer, DescribedConsumerGroup, TopicPartitions,
};
use crate::protocol::error::ErrorCode;
use crate::protocol::messages::consumer_group_describe_response::{self as answer, DescribedGroup};
use crate::protocol::messages::{
    self, ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, GroupId,
};
use crate::security::{Access, Operation, Resource};

pub struct Api;

/// `member_type`.
const CLASSIC: i8 = 0;
const CONSUMER: i8 = 1;

impl Handler for Api {
    type Request = ConsumerGroupDescribeRequest;

    fn access(request: &ConsumerGroupDescribeRequest) -> Access<'_> {
        let groups = request.group_ids.iter().map(|group| Resource::Group(group));
        Access::each(groups, Operation::Describe)
    }

    async fn handle(
        broker: &Broker,
        call: &Call<ConsumerGroupDescribeRequest>,
    ) -> ConsumerGroupDescribeResponse {
        let request = &call.request;
        let response = ConsumerGroupDescribeResponse::default();
        if !broker.has_consumer_groups() {
            let refused = |id: &GroupId| {
                let code = ErrorCode::UnsupportedVersion as i16;
                DescribedGroup::default().with_group_id(id.clone()).with_error_code(code)
            };
            return response.with_groups(request.group_ids.iter().map(refused).collect());
        }
        let operations = operations(request.include_authorized_operations, GROUP_OPERATIONS);
        let ids = request.group_ids.iter().map(|group| shared(group)).collect();
        let described = broker.groups.describe_consumer_groups(ids).await;
        let groups = described.iter().map(|(id, outcome)| {
            let group = DescribedGroup::default().with_group_id(GroupId(text(id)));
            shape(group, outcome, operations)
        });
        response.with_groups(groups.collect())
    }
}

fn shape(
    group: DescribedGroup,
    outcome: &Result<DescribedConsumerGroup, GroupError>,
    operations: i32,
) -> DescribedGroup {
    match outcome {
        Ok(found) => group
            .with_group_state(text(found.state))
            .with_group_epoch(found.epoch)
            .with_assignment_epoch(found.target_epoch)
            .with_assignor_name(text(&found.assignor))
            .with_members(found.members.iter().map(member).collect())
            .with_authorized_operations(operations),
        Err(error) => {
            let group = group.with_error_code(border::group_code(error) as i16);
            match error {
                GroupError::Consumer(_) => group.with_error_message(Some(text(&error.to_string()))),
                _ => group,
            }
        }
    }
}

fn member(described: &DescribedConsumer) -> answer::Member {
    let (about, current) = (&described.member.about, &described.member.current);
    let topics = about.topics.iter().map(|name| messages::TopicName(text(name)));
    answer::Member::default()
        .with_member_id(text(&described.id))
        .with_instance_id(text_option(about.instance_id.as_ref()))
        .with_rack_id(text_option(about.rack_id.as_ref()))
        .with_member_epoch(current.epoch)
        .with_client_id(text(&about.client_id))
        .with_client_host(text(&about.client_host))
        .with_subscribed_topic_names(topics.collect())
        .with_subscribed_topic_regex(Some(text(&about.regex)))
        .with_assignment(assignment(&described.assigned))
        .with_target_assignment(assignment(&described.target))
        .with_member_type(if about.classic.is_some() { CLASSIC } else { CONSUMER })
}

fn assignment(topics: &[TopicPartitions]) -> answer::Assignment {
    let topics = topics.iter().map(|topic| {
        answer::TopicPartitions::default()
            .with_topic_id(topic.id.0)
            .with_topic_name(messages::TopicName(text(&topic.name)))
            .with_partitions(topic.partitions.clone())
    });
    answer::Assignment::default().with_topic_partitions(topics.collect())
}
