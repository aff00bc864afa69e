//! Stored records: what the metadata log and `__consumer_offsets` hold, in Kafka's own formats.

pub mod consumer_group;
pub mod consumer_protocol;
pub mod group;
#[cfg(test)]
mod kafka_tests;
pub mod metadata;
pub mod txn;
