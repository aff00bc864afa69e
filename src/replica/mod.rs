//! The replicas on this node: who may append, what is committed, who reads what, who waits.
//! Lives here: [`Partition`] (log, leadership, in-sync replicas, high watermark, waiters),
//! [`Replicas`] (all of them, following the metadata image), Produce, Fetch and its sessions,
//! lookups of offsets, verification and markers of transactions, DeleteRecords, retention, the
//! [`Cleaner`], [`PartitionJournal`] for coordinators.
//! May not live here: request and response types of the wire, Kafka error codes (`broker::border`
//! maps [`ReplicaError`]), files (`storage` has them), who leads (the image says it).
//! Invariant: an offset below a high watermark never changes and is never lost while an in-sync
//! replica lives; only [`Partition`] moves it.
//! Locks: a machine's runtime before a partition; never two partitions; never an await under one.

mod acks;
mod cleaner;
mod cleaning;
mod directories;
mod error;
mod fetch;
mod flusher;
mod housekeeping;
mod journal;
mod moves;
mod offsets;
mod partition;
mod produce;
mod publish;
mod replicas;
mod session;
#[cfg(test)]
mod testing;
mod topics;
mod transactions;
mod waiters;

pub use acks::AcksWait;
pub use cleaner::Cleaner;
pub use directories::{DirDescription, LogDescription, OnlineDir};
pub use error::{NotNow, Refusal, ReplicaError};
pub use fetch::{Asked, FetchAnswer, FetchAsk, Isolation, PartFetched, PartRead};
pub use housekeeping::Intervals;
pub use journal::PartitionJournal;
pub use moves::{Assign, Assignment, TellFailed};
pub use offsets::{Found, Lookup};
pub use partition::{Offsets, Partition};
pub use produce::{Outcome, ProduceAsk, Produced, ToProduce};
pub use replicas::{OnDirFailed, Replicas, ReplicasConfig};
pub use session::{Fetching, NO_SESSION, SessionAsk, SessionError, SessionTicket, Sessions};
pub use topics::{Topic, TopicRef};
pub use transactions::{Ending, Verifying};
