//! FindCoordinator (key 10): which broker keeps a group or a transactional id. v4 asks for several
//! keys (KIP-699), v6 knows share groups (KIP-932).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::auto_create;
use crate::broker::shape::text;
use crate::common::BrokerId;
use crate::coordinator::group::GROUP_TOPIC;
use crate::protocol::StrBytes;
use crate::protocol::error::ErrorCode;
use crate::protocol::messages::find_coordinator_response::Coordinator;
use crate::protocol::messages::{self, FindCoordinatorRequest, FindCoordinatorResponse};
use crate::security::{Access, Operation, Resource};

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
const SHARE: i8 = 2;

pub struct Api;

/// Where a coordinator is.
struct Place {
    id: BrokerId,
    host: StrBytes,
    port: i32,
}

/// Why there is none to name.
struct Nowhere {
    code: ErrorCode,
    message: Option<String>,
}

impl Handler for Api {
    type Request = FindCoordinatorRequest;

    fn access(request: &FindCoordinatorRequest) -> Access<'_> {
        let keys = request.coordinator_keys.iter().chain([&request.key]).map(|key| &**key);
        match request.key_type {
            TRANSACTION => Access::each(keys.map(Resource::TransactionalId), Operation::Describe),
            _ => Access::each(keys.map(Resource::Group), Operation::Describe),
        }
    }

    async fn handle(
        broker: &Broker,
        call: &Call<FindCoordinatorRequest>,
    ) -> FindCoordinatorResponse {
        let (request, version) = (&call.request, call.header.version);
        if version < 4 {
            return old(find(broker, call, &request.key).await, version);
        }
        let mut coordinators = Vec::with_capacity(request.coordinator_keys.len());
        for key in &request.coordinator_keys {
            let found = find(broker, call, key).await;
            // Kafka has words only for a kind that it does not know at all.
            let is_known = matches!(request.key_type, GROUP | TRANSACTION | SHARE);
            coordinators.push(batched(key, found, is_known));
        }
        FindCoordinatorResponse::default().with_coordinators(coordinators)
    }
}

async fn find(
    broker: &Broker,
    call: &Call<FindCoordinatorRequest>,
    key: &str,
) -> Result<Place, Nowhere> {
    match call.request.key_type {
        GROUP => {}
        // No broker coordinates transactions in this version: what Kafka says while none can.
        TRANSACTION => return Err(Nowhere { code: ErrorCode::CoordinatorNotAvailable, message: None }),
        _ => return Err(Nowhere { code: ErrorCode::InvalidRequest, message: None }),
    }
    auto_create::internal(broker, GROUP_TOPIC).await;
    let image = broker.image();
    let partition = broker.groups.coordinator_partition(key);
    let topic = image.topic(GROUP_TOPIC);
    let leader = topic.and_then(|topic| topic.partition(partition)).and_then(|p| p.leader);
    let node = leader.and_then(|leader| image.broker(leader)).filter(|node| !node.is_fenced);
    let endpoint = node.and_then(|node| {
        node.endpoints.iter().find(|endpoint| *endpoint.name == *call.listener.name)
    });
    match (leader, endpoint) {
        (Some(id), Some(endpoint)) => {
            Ok(Place { id, host: text(&endpoint.host), port: i32::from(endpoint.port) })
        }
        _ => Err(Nowhere { code: ErrorCode::CoordinatorNotAvailable, message: None }),
    }
}

fn old(found: Result<Place, Nowhere>, version: i16) -> FindCoordinatorResponse {
    let response = FindCoordinatorResponse::default();
    match found {
        Ok(place) => response
            .with_error_message(Some(text("NONE")).filter(|_| version >= 1))
            .with_node_id(messages::BrokerId(place.id.0))
            .with_host(place.host)
            .with_port(place.port),
        Err(nowhere) => {
            let message = message(&nowhere);
            response
                .with_error_code(nowhere.code as i16)
                .with_error_message(Some(message).filter(|_| version >= 1))
                .with_node_id(messages::BrokerId(-1))
                .with_port(-1)
        }
    }
}

fn batched(key: &StrBytes, found: Result<Place, Nowhere>, is_known: bool) -> Coordinator {
    let coordinator = Coordinator::default().with_key(key.clone());
    match found {
        Ok(place) => coordinator
            .with_node_id(messages::BrokerId(place.id.0))
            .with_host(place.host)
            .with_port(place.port)
            .with_error_message(Some(text(""))),
        Err(nowhere) => coordinator
            .with_error_code(nowhere.code as i16)
            .with_error_message(Some(if is_known { text("") } else { message(&nowhere) }))
            .with_node_id(messages::BrokerId(-1))
            .with_port(-1),
    }
}

fn message(nowhere: &Nowhere) -> StrBytes {
    text(nowhere.message.as_deref().unwrap_or(match nowhere.code {
        ErrorCode::CoordinatorNotAvailable => "The coordinator is not available.",
        _ => {
            "This most likely occurs because of a request being malformed by the client library \
             or the message was sent to an incompatible broker. See the broker logs for more details."
        }
    }))
}
