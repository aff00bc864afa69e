//! Kafka's wire protocol: API keys, error codes, request headers, the schema table with its guard,
//! codecs of messages and stored records, the view of a record batch.
//! Lives here: what a byte on the wire or in a stored record means, per version; what is refused
//! before anything is decoded.
//! May not live here: I/O, what a request does, which error code answers what (`broker::border`).
//! Which codec serves a message (Ottla's own or the kafka-protocol crate's) is decided in
//! [`messages`] and seen nowhere else.

pub mod api;
pub mod batch;
mod codec;
#[cfg(test)]
mod codec_tests;
mod dsl;
pub mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
pub mod guard;
#[cfg(test)]
mod guard_tests;
pub mod header;
pub mod messages;
pub mod records;
#[cfg(test)]
mod sample;
pub mod schema;
mod schemas;
pub mod wire;

pub use kafka_protocol::protocol::StrBytes;
