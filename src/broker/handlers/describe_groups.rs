//! DescribeGroups (key 15): state, protocol and members of classic groups. An unknown group is
//! state Dead; v6 also says GROUP_ID_NOT_FOUND with a message (KIP-1043).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border;
use crate::broker::shape::{GROUP_OPERATIONS, operations, shared, text, text_option};
use crate::coordinator::group::{
    ClientFault, DescribedMember, Description, GroupError, GroupId, GroupState,
};
use crate::protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use crate::protocol::messages::{self, DescribeGroupsRequest, DescribeGroupsResponse};
use crate::security::{Access, Operation, Resource};

pub struct Api;

impl Handler for Api {
    type Request = DescribeGroupsRequest;

    fn access(request: &DescribeGroupsRequest) -> Access<'_> {
        let groups = request.groups.iter().map(|group| Resource::Group(group));
        Access::each(groups, Operation::Describe)
    }

    async fn handle(broker: &Broker, call: &Call<DescribeGroupsRequest>) -> DescribeGroupsResponse {
        let ids = call.request.groups.iter().map(|group| shared(group)).collect();
        let operations =
            operations(call.request.include_authorized_operations, GROUP_OPERATIONS);
        let described = broker.groups.describe_groups(ids).await;
        let groups = described.into_iter().map(|(id, outcome)| {
            shape(&id, outcome, call.header.version).with_authorized_operations(operations)
        });
        DescribeGroupsResponse::default().with_groups(groups.collect())
    }
}

fn shape(id: &GroupId, outcome: Result<Description, GroupError>, version: i16) -> DescribedGroup {
    let group = DescribedGroup::default().with_group_id(messages::GroupId(text(id)));
    match outcome {
        Ok(description) => group
            .with_group_state(text(description.state.name()))
            .with_protocol_type(text(&description.protocol_type))
            .with_protocol_data(text(&description.protocol_data))
            .with_members(description.members.iter().map(member).collect()),
        Err(
            error @ GroupError::Client(ClientFault::GroupNotFound(_) | ClientFault::NotClassic(_)),
        ) => {
            let group = group.with_group_state(text(GroupState::DEAD));
            if version < 6 {
                return group;
            }
            group
                .with_error_code(border::group_code(&error) as i16)
                .with_error_message(Some(text(&error.to_string())))
        }
        Err(error) => group.with_error_code(border::group_code(&error) as i16),
    }
}

fn member(member: &DescribedMember) -> DescribedGroupMember {
    DescribedGroupMember::default()
        .with_member_id(text(&member.member_id))
        .with_group_instance_id(text_option(member.group_instance_id.as_ref()))
        .with_client_id(text(&member.client_id))
        .with_client_host(text(&member.client_host))
        .with_member_metadata(member.metadata.clone())
        .with_member_assignment(member.assignment.clone())
}
