//! AddPartitionsToTxn and AddOffsetsToTxn: a transaction begins, or grows; brokers ask whether it has.

use super::error::TxnError;
use super::machine::Turn;
use super::state::Txn;
use super::types::{AddPartitions, TxnState, VerifyPartitions};
use crate::common::TopicPartition;

impl Turn<'_> {
    pub fn add(&mut self, ask: AddPartitions) -> Result<(), TxnError> {
        let txn = self.owned(&ask.transactional_id, ask.owner)?;
        if txn.state.prepared().is_some() {
            return Err(TxnError::ConcurrentTransactions);
        }
        let is_ongoing = txn.state == TxnState::Ongoing;
        if is_ongoing && ask.partitions.is_subset(&txn.partitions) {
            return Ok(());
        }
        let now_ms = self.cx.now_ms;
        let record = Txn {
            partitions: txn.partitions.clone().union(ask.partitions),
            start_ms: if is_ongoing { txn.start_ms } else { now_ms },
            client: ask.client,
            ..txn.to(TxnState::Ongoing, now_ms)
        };
        self.write(&ask.transactional_id, Some(record)).map(drop)
    }

    /// Whether each partition is part of the producer's open transaction.
    pub fn verify(&self, ask: VerifyPartitions) -> Result<Vec<(TopicPartition, bool)>, TxnError> {
        let txn = self.owned(&ask.transactional_id, ask.owner)?;
        if txn.state.prepared().is_some() {
            return Err(TxnError::ConcurrentTransactions);
        }
        let is_in = |one: TopicPartition| (txn.partitions.contains(&one), one);
        Ok(ask.partitions.into_iter().map(is_in).map(|(is_in, one)| (one, is_in)).collect())
    }
}
