//! ListGroups (key 16): the groups that this broker coordinates. v4 filters by state (KIP-518),
//! v5 by type (KIP-848).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border;
use crate::broker::shape::text;
use crate::coordinator::group::ListGroups;
use crate::protocol::messages::list_groups_response::ListedGroup;
use crate::protocol::messages::{GroupId, ListGroupsRequest, ListGroupsResponse};
use crate::security::{Access, Operation, Resource};

pub struct Api;

impl Handler for Api {
    type Request = ListGroupsRequest;

    fn access(_: &ListGroupsRequest) -> Access<'_> {
        Access::one(Resource::Cluster, Operation::Describe)
    }

    async fn handle(broker: &Broker, call: &Call<ListGroupsRequest>) -> ListGroupsResponse {
        let names = |filter: &[crate::protocol::StrBytes]| {
            filter.iter().map(ToString::to_string).collect::<Vec<String>>()
        };
        let (states, types) =
            (names(&call.request.states_filter), names(&call.request.types_filter));
        match broker.groups.list_groups(&ListGroups { states, types }).await {
            Ok(groups) => {
                let groups = groups.iter().map(|group| {
                    ListedGroup::default()
                        .with_group_id(GroupId(text(&group.group_id)))
                        .with_protocol_type(text(&group.protocol_type))
                        .with_group_state(text(group.state))
                        .with_group_type(text(group.group_type))
                });
                ListGroupsResponse::default().with_groups(groups.collect())
            }
            Err(error) => {
                ListGroupsResponse::default().with_error_code(border::group_code(&error) as i16)
            }
        }
    }
}
