//! JoinGroup (key 11): a member enters the next generation of its classic group and waits until
//! that has begun. v4 hands out the member id first (KIP-394), v5 instance ids (KIP-345), v9
//! `skip_assignment` (KIP-814).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border;
use crate::broker::shape::{shared, shared_option, text, text_option};
use crate::coordinator::group::{JoinGroup, JoinRefused, Joined, Protocol};
use crate::protocol::messages::join_group_response::JoinGroupResponseMember;
use crate::protocol::messages::{JoinGroupRequest, JoinGroupResponse};
use crate::security::{Access, Operation, Resource};

pub struct Api;

impl Handler for Api {
    type Request = JoinGroupRequest;

    fn access(request: &JoinGroupRequest) -> Access<'_> {
        Access::one(Resource::Group(&request.group_id), Operation::Read)
    }

    async fn handle(broker: &Broker, call: &Call<JoinGroupRequest>) -> JoinGroupResponse {
        let version = call.header.version;
        let outcome = broker.groups.join_group(read(call)).await;
        match outcome {
            Ok(joined) => shape(&joined, version),
            Err(refused) => refuse(&refused, version),
        }
    }
}

fn read(call: &Call<JoinGroupRequest>) -> JoinGroup {
    let (request, version) = (&call.request, call.header.version);
    let protocols = request.protocols.iter();
    let protocols = protocols
        .map(|protocol| Protocol {
            name: shared(&protocol.name),
            metadata: protocol.metadata.clone(),
        })
        .collect();
    JoinGroup {
        group_id: shared(&request.group_id),
        member_id: shared(&request.member_id),
        group_instance_id: shared_option(request.group_instance_id.as_ref()),
        client_id: shared(call.header.client_id.as_deref().unwrap_or_default()),
        client_host: format!("/{}", call.peer.ip()).into(),
        session_timeout_ms: request.session_timeout_ms,
        rebalance_timeout_ms: (version >= 1).then_some(request.rebalance_timeout_ms),
        protocol_type: shared(&request.protocol_type),
        protocols,
        requires_member_id: version >= 4,
        can_skip_assignment: version >= 9,
    }
}

fn shape(joined: &Joined, version: i16) -> JoinGroupResponse {
    let members = joined.members.iter().map(|member| {
        JoinGroupResponseMember::default()
            .with_member_id(text(&member.member_id))
            .with_group_instance_id(text_option(member.group_instance_id.as_ref()))
            .with_metadata(member.metadata.clone())
    });
    let protocol_type = text_option(joined.protocol_type.as_ref()).filter(|_| version >= 7);
    JoinGroupResponse::default()
        .with_generation_id(joined.generation_id)
        .with_protocol_type(protocol_type)
        .with_protocol_name(text_option(joined.protocol_name.as_ref()))
        .with_leader(text(&joined.leader))
        .with_skip_assignment(joined.skip_assignment)
        .with_member_id(text(&joined.member_id))
        .with_members(members.collect())
}

fn refuse(refused: &JoinRefused, version: i16) -> JoinGroupResponse {
    JoinGroupResponse::default()
        .with_error_code(border::group_code(&refused.error) as i16)
        .with_generation_id(-1)
        .with_protocol_type(None)
        .with_protocol_name(if version >= 7 { None } else { Some(text("")) })
        .with_member_id(text(&refused.member_id))
}
