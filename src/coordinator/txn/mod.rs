//! The transaction coordinator (KIP-98, KIP-360, KIP-890): a machine over each partition of
//! `__transaction_state`, decided without I/O, and the [`TxnCoordinator`] that routes to those that
//! this broker leads. Lives here: which state a transactional id is in, who may change it, when
//! markers are owed and sent. May not live here: how partitions take markers ([`MarkerWriter`]),
//! where producer ids come from ([`FreshIds`]), Kafka's error codes. Invariant: a transaction that is prepared completes the way it was prepared, and no
//! other begins before; its markers are owed by each leader until [`TxnRequest::Written`].

mod add;
mod coordinator;
mod end;
mod error;
mod init;
mod look;
mod machine;
mod markers;
mod record;
mod state;
mod sweep;
#[cfg(test)]
mod tests;
mod types;

pub use coordinator::{FreshIds, TXN_FEATURE, TXN_TOPIC, TxnCoordinator};
pub use error::{NotNow, TxnError, TxnRefusal};
pub use machine::{TxnAnswer, TxnConfig, TxnEffect, TxnRequest, TxnWorld};
pub use markers::{MarkerWriter, MarkersLeft};
pub use record::TxnRecord;
pub use state::{Transactions, Txn};
pub use types::{
    AddPartitions, ClientVersion, DescribedTxn, EndTxn, InitProducer, ListedTxn, Markers, Owner,
    TxnFilter, TxnState, VerifyPartitions,
};
