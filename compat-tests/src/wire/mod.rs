//! Kafka's wire as Kafka's own JSON schemas describe it, independent of Ottla's tables.
//! Lives here: reading the schemas, a codec for any message and version, record batches made by hand
//! (wrong ones too), a blocking connection. May not live here: what an answer should be.

pub mod batch;
pub mod codec;
pub mod connection;
pub mod decode;
pub mod schema;
