//! Listeners and connections: bytes in, frames through the guard, answers out in order.
//! Lives here: framing, admission, the order of requests on a connection, memory of requests in
//! flight, connection limits. May not live here: what a request means (a [`Service`] knows), and
//! nothing that touches a topic or a group.
//! Invariant: a request starts when all earlier ones on its connection are answered; only Produce
//! may start while earlier Produces still await their acknowledgement.

mod admission;
mod connection;
mod events;
mod frames;
mod limits;
mod listener;
mod memory;
mod outbound;
mod panics;

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::protocol::header::RequestHeader;
use crate::protocol::wire::Piece;
use crate::security::Session;

pub use connection::Shared;
pub use events::WarnLimits;
pub use limits::{ConnectionLimits, Limits};
pub use listener::{Stop, serve};
pub use memory::{Charge, RequestMemory};

/// The listener that a request came in by; its name picks the endpoints that answers name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerInfo {
    /// As in `listeners`, upper case (`PLAINTEXT`, `CONTROLLER`, …).
    pub name: Arc<str>,
    /// Whether it is one of `controller.listener.names`.
    pub is_controller: bool,
}

/// One admitted request.
pub struct Incoming {
    pub header: RequestHeader,
    /// The bytes after the header; slices of the frame, not copies.
    pub body: Bytes,
    /// False for an ApiVersions request of a version that is not served: its body is unknown.
    pub version_known: bool,
    pub peer: SocketAddr,
    pub listener: Arc<ListenerInfo>,
    pub session: Session,
}

/// How far a request is when its turn is over.
pub enum Progress {
    /// Answered.
    Done(Reply),
    /// A Produce that is appended and awaits its acknowledgement: the next Produce may start.
    Acks(Pin<Box<dyn Future<Output = Reply> + Send>>),
}

/// What goes back.
pub enum Reply {
    /// A whole frame, size field included: its first bytes and what follows them. The connection
    /// starts nothing for `throttle` after it.
    Frame { head: Bytes, rest: Vec<Piece>, throttle: Duration },
    /// No answer is due (Produce with acks=0).
    Silent,
    /// The connection is closed once all earlier answers are written.
    Close(CloseReason),
}

/// Why a connection is closed by the broker, for the log line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    #[error("request refused: {0}")]
    BadRequest(String),
    #[error("a Produce with acks=0 failed: {0}")]
    FailedWithoutAcks(String),
    #[error("request handling panicked")]
    Panicked,
}

/// Serves admitted requests: `broker::Dispatch` for clients.
pub trait Service: Send + Sync + 'static {
    /// Runs one request; dropped when its connection closes.
    fn call(&self, incoming: Incoming) -> impl Future<Output = Progress> + Send;
}
