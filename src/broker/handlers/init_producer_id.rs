//! InitProducerId (key 22): a fresh producer id for idempotence (KIP-98). Transactional ids have
//! no coordinator in this version.

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border;
use crate::protocol::error::ErrorCode;
use crate::protocol::messages::{self, InitProducerIdRequest, InitProducerIdResponse};
use crate::security::{Access, Operation, Resource};

pub struct Api;

impl Handler for Api {
    type Request = InitProducerIdRequest;

    fn access(request: &InitProducerIdRequest) -> Access<'_> {
        match &request.transactional_id {
            Some(id) => Access::one(Resource::TransactionalId(id), Operation::Write),
            None => Access::one(Resource::Cluster, Operation::IdempotentWrite),
        }
    }

    async fn handle(broker: &Broker, call: &Call<InitProducerIdRequest>) -> InitProducerIdResponse {
        let request = &call.request;
        let timeout_max_ms = broker.config.load().txn.max_timeout_ms;
        let half_named = (*request.producer_id == -1) != (request.producer_epoch == -1);
        match &request.transactional_id {
            _ if half_named => refuse(ErrorCode::InvalidRequest),
            Some(id) if id.is_empty() => refuse(ErrorCode::InvalidRequest),
            Some(_) if !(1..=timeout_max_ms).contains(&request.transaction_timeout_ms) => {
                refuse(ErrorCode::InvalidTransactionTimeout)
            }
            Some(_) => refuse(ErrorCode::CoordinatorNotAvailable),
            None => match broker.producer_ids.next().await {
                Ok(id) => InitProducerIdResponse::default()
                    .with_producer_id(messages::ProducerId(id.0))
                    .with_producer_epoch(0),
                Err(error) => refuse(border::producer_ids_code(&error)),
            },
        }
    }
}

fn refuse(code: ErrorCode) -> InitProducerIdResponse {
    InitProducerIdResponse::default()
        .with_error_code(code as i16)
        .with_producer_id(messages::ProducerId(-1))
        .with_producer_epoch(-1)
}
