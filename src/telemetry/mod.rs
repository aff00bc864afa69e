//! What the node tells its operator: metrics by Kafka's names, events, logs on stderr.
//! Lives here: the table of metrics ([`Metrics`]), the [`Event`] trait (a counter and its log
//! line in one place), the limit on repeated warnings, the set-up of `tracing`.
//! May not live here: what is measured, and events of other rooms (each tells its own); the
//! clock (a time comes as an argument); HTTP (`http/` serves [`Metrics::text`]).

mod limit;
mod logging;
mod metrics;

pub use limit::RateLimit;
pub use logging::{LogFilterError, init_logging};
pub use metrics::Metrics;

/// Something worth counting, logging, or both, told once by the room where it happened.
pub trait Event {
    fn tell(self, metrics: &Metrics);
}
