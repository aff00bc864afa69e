//! Heartbeat (key 12): keeps a classic member in its group. Since v3 by instance id too (KIP-345).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border;
use crate::broker::shape::{shared, shared_option};
use crate::coordinator::group::Heartbeat;
use crate::protocol::messages::{HeartbeatRequest, HeartbeatResponse};
use crate::security::{Access, Operation, Resource};

pub struct Api;

impl Handler for Api {
    type Request = HeartbeatRequest;

    fn access(request: &HeartbeatRequest) -> Access<'_> {
        Access::one(Resource::Group(&request.group_id), Operation::Read)
    }

    async fn handle(broker: &Broker, call: &Call<HeartbeatRequest>) -> HeartbeatResponse {
        let request = &call.request;
        let outcome = broker.groups.heartbeat(Heartbeat {
            group_id: shared(&request.group_id),
            generation_id: request.generation_id,
            member_id: shared(&request.member_id),
            group_instance_id: shared_option(request.group_instance_id.as_ref()),
        });
        HeartbeatResponse::default().with_error_code(border::group_outcome(&outcome.await))
    }
}
