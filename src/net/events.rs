//! What the network side tells: counters with their log lines.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tracing::{debug, error, warn};

use crate::env::Instant;
use crate::protocol::api::ApiKey;
use crate::telemetry::{Event, Metrics, RateLimit};

/// One line per interval for what a peer can cause as often as it likes.
const WARN_INTERVAL: Duration = Duration::from_secs(5);

/// The limits on this room's warnings; one set per node.
pub struct WarnLimits {
    pub frames: RateLimit,
    pub accepts: RateLimit,
    pub connections: RateLimit,
}

impl Default for WarnLimits {
    fn default() -> Self {
        let limit = || RateLimit::per(WARN_INTERVAL);
        Self { frames: limit(), accepts: limit(), connections: limit() }
    }
}

pub struct AcceptFailed<'a> {
    pub listener: &'a str,
    pub error: &'a io::Error,
    pub limits: &'a WarnLimits,
    pub now: Instant,
}

impl Event for AcceptFailed<'_> {
    fn tell(self, _: &Metrics) {
        if let Some(suppressed) = self.limits.accepts.pass(self.now.0) {
            warn!(self.listener, error = %self.error, suppressed, "accepting a connection failed");
        }
    }
}

/// Over `max.connections.per.ip`; closed at once, as Kafka does.
pub struct ConnectionRefused<'a> {
    pub listener: &'a str,
    pub peer: SocketAddr,
    pub limits: &'a WarnLimits,
    pub now: Instant,
}

impl Event for ConnectionRefused<'_> {
    fn tell(self, metrics: &Metrics) {
        metrics.connections_refused.with_label_values(&[self.listener]).inc();
        if let Some(suppressed) = self.limits.connections.pass(self.now.0) {
            warn!(peer = %self.peer, suppressed, "connection refused, max.connections.per.ip reached");
        }
    }
}

pub struct ConnectionAccepted<'a> {
    pub listener: &'a str,
    pub peer: SocketAddr,
}

impl Event for ConnectionAccepted<'_> {
    fn tell(self, metrics: &Metrics) {
        metrics.connections.with_label_values(&[self.listener]).inc();
        metrics.connections_accepted.with_label_values(&[self.listener]).inc();
        debug!(self.listener, peer = %self.peer, "connection accepted");
    }
}

pub struct ConnectionClosed<'a> {
    pub listener: &'a str,
    pub peer: SocketAddr,
    pub reason: &'a str,
    pub idle: bool,
}

impl Event for ConnectionClosed<'_> {
    fn tell(self, metrics: &Metrics) {
        metrics.connections.with_label_values(&[self.listener]).dec();
        metrics.connections_closed.with_label_values(&[self.listener]).inc();
        if self.idle {
            metrics.connections_idle_closed.inc();
        }
        debug!(self.listener, peer = %self.peer, self.reason, "connection closed");
    }
}

/// A frame that is no request, or one that no budget would hold; its connection is closed.
pub struct FrameRefused<'a> {
    pub peer: SocketAddr,
    pub api_key: Option<i16>,
    pub version: Option<i16>,
    pub reason: &'a str,
    pub limits: &'a WarnLimits,
    pub now: Instant,
}

impl Event for FrameRefused<'_> {
    fn tell(self, metrics: &Metrics) {
        metrics.frames_refused.inc();
        if let Some(suppressed) = self.limits.frames.pass(self.now.0) {
            let api_key = self.api_key.and_then(|key| ApiKey::try_from(key).ok());
            warn!(
                peer = %self.peer,
                api_key = api_key.map(ApiKey::name),
                version = self.version,
                reason = self.reason,
                suppressed,
                "request frame refused, closing the connection"
            );
        }
    }
}

/// Our own mistake: the request's connection is closed, the node goes on.
pub struct HandlerPanicked<'a> {
    pub api_key: &'a str,
    pub panic: &'a str,
}

impl Event for HandlerPanicked<'_> {
    fn tell(self, metrics: &Metrics) {
        metrics.handler_panics.inc();
        error!(self.api_key, self.panic, "request handling panicked, closing the connection");
    }
}
