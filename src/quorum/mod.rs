//! The metadata quorum: openraft behind the `Journal` seam. One log of Kafka metadata records,
//! agreed on by the controllers; here the only voter is this node.
//! Lives here: proposals in groups, the write-ahead log and its one writer, snapshots as Kafka
//! checkpoints, who leads and when that counts. May not live here: what a record means.
//! Invariants: nothing outside names openraft; offsets count records, not Raft entries; a batch
//! carries the epoch and base offset it was decided at, and does nothing where it does not fit;
//! a failed write or fsync ends the process.

mod batches;
mod checkpoint;
mod error;
mod frame;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod gate;
mod log_store;
mod network;
mod node;
mod snapshots;
mod state;
mod types;
mod wal;
mod watch;
mod writer;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod suite;
#[cfg(test)]
mod tests;

pub use error::{QuorumError, end_process};
pub use node::{OnFatal, Quorum, QuorumConfig};
pub use writer::Writes;
