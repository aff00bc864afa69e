//! From an admitted request to its answer's frame: version, decoding, handler, encoding.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes};
use tracing::error;

use super::handlers::{self, Call, Handler};
use super::{Broker, handlers::api_versions};
use crate::net::{CloseReason, Incoming, Progress, Reply, Service};
use crate::protocol::header::{RequestHeader, response_header};
use crate::protocol::wire::{Out as _, Piece, Pieces, WireRequest, WireResponse};
use crate::security::Allowed;

/// Serves the requests of all listeners of one broker.
pub struct Dispatch {
    broker: Arc<Broker>,
}

impl Dispatch {
    pub fn new(broker: Arc<Broker>) -> Self {
        Self { broker }
    }
}

impl Service for Dispatch {
    async fn call(&self, incoming: Incoming) -> Progress {
        let (broker, header) = (&self.broker, &incoming.header);
        broker.requests.count(header.key, header.version);
        if !incoming.version_known {
            let response = api_versions::unknown_version();
            let asked = RequestHeader { version: 0, ..header.clone() };
            return Progress::Done(answer(&asked, &response));
        }
        handlers::route(broker, incoming).await
    }
}

/// Decodes, asks the handler, encodes.
pub async fn serve<H: Handler>(broker: &Broker, incoming: Incoming) -> Progress {
    let mut call = match decode::<H::Request>(incoming) {
        Ok(call) => call,
        Err(reply) => return Progress::Done(reply),
    };
    call.allowed = broker.authorizer.judge(&call.session, || H::access(&call.request));
    let response = H::handle(broker, &call).await;
    Progress::Done(answer(&call.header, &response))
}

/// # Errors
/// The reply that closes the connection, when the body is no request of its key and version.
pub fn decode<R: WireRequest>(incoming: Incoming) -> Result<Call<R>, Reply> {
    let Incoming { header, mut body, peer, listener, session, .. } = incoming;
    match R::decode(&mut body, header.version) {
        Ok(request) => Ok(Call { header, request, peer, listener, session, allowed: Allowed::All }),
        Err(error) => {
            let reason = format!("{} v{}: {error}", header.key, header.version);
            Err(Reply::Close(CloseReason::BadRequest(reason)))
        }
    }
}

/// The whole frame of an answer.
pub fn answer<R: WireResponse>(header: &RequestHeader, response: &R) -> Reply {
    let mut pieces = Pieces::new();
    pieces.open().put_i32(0); // the size, known at the end
    response_header(header.key, header.version, header.correlation_id, pieces.open());
    if let Err(error) = response.encode_pieces(&mut pieces, header.version) {
        error!(api_key = %header.key, version = header.version, %error, "answer cannot be encoded");
        let reason = format!("the answer cannot be encoded: {error}");
        return Reply::Close(CloseReason::BadRequest(reason));
    }
    let throttle = Duration::ZERO; // quotas are not enforced in this version: nothing throttles
    let size = pieces.size_bytes() - 4;
    let mut pieces = pieces.finish().into_iter();
    // The header made the first one, so it is no file.
    let Some(Piece::Bytes(head)) = pieces.next() else { unreachable!("an answer has a header") };
    Reply::Frame { head: with_size(head, size), rest: pieces.collect(), throttle }
}

fn with_size(head: Bytes, size: usize) -> Bytes {
    let mut head = head.try_into_mut().unwrap_or_else(|shared| shared[..].into());
    head[..4].copy_from_slice(&(size as u32).to_be_bytes());
    head.freeze()
}
