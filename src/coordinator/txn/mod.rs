//! The transaction coordinator's machine (KIP-98, KIP-360, KIP-890): one partition of
//! `__transaction_state`, decided without I/O. Lives here: which state a transactional id is in, who
//! may change it, when markers are owed. May not live here: markers on their way, where producer ids
//! come from. Invariant: a transaction that is prepared completes the way it was prepared, and no
//! other begins before; its markers are owed by each leader until [`TxnRequest::Written`].

mod add;
mod end;
mod error;
mod init;
mod look;
mod machine;
mod record;
mod state;
mod sweep;
#[cfg(test)]
mod tests;
mod types;

pub use error::TxnError;
pub use machine::{TxnAnswer, TxnConfig, TxnEffect, TxnRequest, TxnWorld};
pub use record::TxnRecord;
pub use state::{Transactions, Txn};
pub use types::{
    AddPartitions, ClientVersion, DescribedTxn, EndTxn, InitProducer, ListedTxn, Markers, Owner,
    TxnFilter, TxnState, VerifyPartitions,
};
