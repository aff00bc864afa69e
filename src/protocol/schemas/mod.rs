//! Schemas of the requests and responses that kafka-protocol reads and writes, for the guard and
//! for the comparison with Kafka's own files. A struct here must be one of the crate's, since the
//! guard charges its size: another name does not compile.

mod cluster;
mod configs;
mod consumer_groups;
mod features;
mod groups;
mod log_dirs;
mod producers;
mod topics;
