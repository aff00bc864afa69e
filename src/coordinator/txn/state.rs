//! The replicated state of one partition of `__transaction_state`.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use super::record::TxnRecord;
use super::types::{ClientVersion, Owner, TxnState};
use crate::common::{NO_TIMESTAMP, ProducerEpoch, ProducerId, TopicPartition, TransactionalId};
use crate::machine::Position;

/// The transactional ids of one partition, each with its newest transaction.
#[derive(Debug, Clone, Default)]
pub struct Transactions {
    /// And where its record stands.
    by_id: OrdMap<TransactionalId, (Arc<Txn>, Position)>,
}

/// A transactional id's last record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Txn {
    pub owner: Owner,
    /// The producer id in the record before.
    pub previous_producer_id: ProducerId,
    /// What the client goes on with once a prepared transaction is complete, its epochs being used up.
    pub next_producer_id: ProducerId,
    pub timeout_ms: i32,
    pub state: TxnState,
    pub partitions: OrdSet<TopicPartition>,
    /// -1: none has begun.
    pub start_ms: i64,
    pub last_update_ms: i64,
    pub client: ClientVersion,
}

impl Txn {
    /// Of an id that was never seen.
    pub fn new(producer_id: ProducerId) -> Self {
        Self {
            owner: Owner { id: producer_id, epoch: ProducerEpoch::NONE },
            previous_producer_id: ProducerId::NONE,
            next_producer_id: ProducerId::NONE,
            timeout_ms: 0,
            state: TxnState::Empty,
            partitions: OrdSet::new(),
            start_ms: NO_TIMESTAMP,
            last_update_ms: NO_TIMESTAMP,
            client: ClientVersion::default(),
        }
    }

    /// The record that follows this one; what does not change is taken over.
    pub fn to(&self, state: TxnState, now_ms: i64) -> Self {
        let previous_producer_id = self.owner.id;
        Self { state, previous_producer_id, last_update_ms: now_ms, ..self.clone() }
    }
}

impl Transactions {
    pub(super) fn get(&self, id: &str) -> Option<&Arc<Txn>> {
        self.by_id.get(id).map(|(txn, _)| txn)
    }

    /// The transaction whose record stands at `at`, if it is still the id's newest.
    pub(super) fn at(&self, id: &str, at: Position) -> Option<&Arc<Txn>> {
        self.by_id.get(id).filter(|(_, stands)| *stands == at).map(|(txn, _)| txn)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&TransactionalId, &(Arc<Txn>, Position))> {
        self.by_id.iter()
    }

    /// From `first` on.
    pub(super) fn from(
        &self,
        first: TransactionalId,
    ) -> impl Iterator<Item = (&TransactionalId, &Arc<Txn>)> {
        self.by_id.range(first..).map(|(id, (txn, _))| (id, txn))
    }

    pub fn count(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn apply(&mut self, record: &TxnRecord, at: Position) {
        match &record.value {
            Some(txn) => {
                self.by_id.insert(record.transactional_id.clone(), (txn.clone(), at));
            }
            None => {
                self.by_id.remove(&record.transactional_id);
            }
        }
    }
}
