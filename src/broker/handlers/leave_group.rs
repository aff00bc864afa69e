//! LeaveGroup (key 13): members of a classic group go. Before v3 one, whose error is the answer's;
//! from v3 on several, each with its own (KIP-345).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border;
use crate::broker::shape::{shared, shared_option, text, text_option};
use crate::coordinator::group::{LeaveGroup, LeavingMember, LeftMember};
use crate::protocol::messages::leave_group_response::MemberResponse;
use crate::protocol::messages::{LeaveGroupRequest, LeaveGroupResponse};
use crate::security::{Access, Operation, Resource};

pub struct Api;

impl Handler for Api {
    type Request = LeaveGroupRequest;

    fn access(request: &LeaveGroupRequest) -> Access<'_> {
        Access::one(Resource::Group(&request.group_id), Operation::Read)
    }

    async fn handle(broker: &Broker, call: &Call<LeaveGroupRequest>) -> LeaveGroupResponse {
        let version = call.header.version;
        let outcome = broker.groups.leave_group(read(&call.request, version)).await;
        let response = LeaveGroupResponse::default();
        match outcome {
            Ok(left) if version < 3 => {
                let code = left.first().map_or(0, |one| border::group_outcome(&one.outcome));
                response.with_error_code(code)
            }
            Ok(left) => response.with_members(left.iter().map(shape).collect()),
            Err(error) => response.with_error_code(border::group_code(&error) as i16),
        }
    }
}

fn read(request: &LeaveGroupRequest, version: i16) -> LeaveGroup {
    let members = if version < 3 {
        let member_id = shared(&request.member_id);
        vec![LeavingMember { member_id, group_instance_id: None }]
    } else {
        let members = request.members.iter();
        let read = members.map(|member| LeavingMember {
            member_id: shared(&member.member_id),
            group_instance_id: shared_option(member.group_instance_id.as_ref()),
        });
        read.collect()
    };
    LeaveGroup { group_id: shared(&request.group_id), members }
}

fn shape(left: &LeftMember) -> MemberResponse {
    MemberResponse::default()
        .with_member_id(text(&left.member.member_id))
        .with_group_instance_id(text_option(left.member.group_instance_id.as_ref()))
        .with_error_code(border::group_outcome(&left.outcome))
}
