//! Ottla: a Kafka wire-protocol broker. The rooms, floor by floor, are described in
//! ARCHITECTURE.md; the tidy test checks which room may import which.

pub mod broker;
pub mod cli;
pub mod common;
pub mod config;
pub mod controller;
pub mod coordinator;
pub mod env;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
pub mod http;
pub mod machine;
pub mod metadata;
pub mod net;
pub mod node;
pub mod protocol;
pub mod quorum;
pub mod replica;
pub mod security;
pub mod storage;
pub mod telemetry;

#[cfg(test)]
mod tidy;
