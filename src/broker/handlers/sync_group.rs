//! SyncGroup (key 14): the leader of a classic group hands in the assignment, everyone gets their
//! share. v5 carries the protocol's type and name, which must fit (KIP-559).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border;
use crate::broker::shape::{shared, shared_option, text_option};
use crate::coordinator::group::{ClientFault, SyncGroup};
use crate::protocol::messages::{SyncGroupRequest, SyncGroupResponse};
use crate::security::{Access, Operation, Resource};

pub struct Api;

impl Handler for Api {
    type Request = SyncGroupRequest;

    fn access(request: &SyncGroupRequest) -> Access<'_> {
        Access::one(Resource::Group(&request.group_id), Operation::Read)
    }

    async fn handle(broker: &Broker, call: &Call<SyncGroupRequest>) -> SyncGroupResponse {
        let request = &call.request;
        let names = (&request.protocol_type, &request.protocol_name);
        if call.header.version >= 5 && matches!(names, (None, _) | (_, None)) {
            let code = border::group_code(&ClientFault::InconsistentProtocol.into());
            return SyncGroupResponse::default().with_error_code(code as i16);
        }
        match broker.groups.sync_group(read(request)).await {
            Ok(synced) => SyncGroupResponse::default()
                .with_protocol_type(text_option(synced.protocol_type.as_ref()))
                .with_protocol_name(text_option(synced.protocol_name.as_ref()))
                .with_assignment(synced.assignment),
            Err(error) => {
                SyncGroupResponse::default().with_error_code(border::group_code(&error) as i16)
            }
        }
    }
}

fn read(request: &SyncGroupRequest) -> SyncGroup {
    let assignments = request.assignments.iter();
    SyncGroup {
        group_id: shared(&request.group_id),
        generation_id: request.generation_id,
        member_id: shared(&request.member_id),
        group_instance_id: shared_option(request.group_instance_id.as_ref()),
        protocol_type: shared_option(request.protocol_type.as_ref()),
        protocol_name: shared_option(request.protocol_name.as_ref()),
        assignments: assignments.map(|a| (shared(&a.member_id), a.assignment.clone())).collect(),
    }
}
