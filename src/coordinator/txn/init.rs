//! InitProducerId: a client takes a transactional id over; whoever had it is fenced.

use std::sync::Arc;

use imbl::OrdSet;

use super::error::TxnError;
use super::machine::{Turn, TxnAnswer};
use super::state::Txn;
use super::types::{InitProducer, Owner, TxnState};
use crate::common::{NO_TIMESTAMP, ProducerEpoch};

impl Turn<'_> {
    pub fn decide_init(&mut self, ask: &InitProducer) -> TxnAnswer {
        match self.init(ask) {
            Ok(None) => TxnAnswer::NeedsProducerId,
            Ok(Some(owner)) => TxnAnswer::Init(Ok(owner)),
            Err(error) => TxnAnswer::Init(Err(error)),
        }
    }

    /// `None`: a fresh producer id is needed.
    fn init(&mut self, ask: &InitProducer) -> Result<Option<Owner>, TxnError> {
        let id = &ask.transactional_id;
        let txn = match (self.state.get(id), ask.fresh) {
            (Some(txn), _) => txn.clone(),
            (None, Some(fresh)) => Arc::new(Txn::new(fresh)),
            (None, None) => return Ok(None),
        };
        if ask.expected.is_some_and(|expected| !may_be(&txn, expected)) {
            return Err(TxnError::ProducerFenced);
        }
        match txn.state {
            TxnState::PrepareCommit | TxnState::PrepareAbort => {
                Err(TxnError::ConcurrentTransactions)
            }
            // The client asks again, and gets an epoch above the one that fenced the other.
            TxnState::Ongoing => {
                self.fence(id, &txn)?;
                Err(TxnError::ConcurrentTransactions)
            }
            TxnState::Empty | TxnState::CompleteCommit | TxnState::CompleteAbort => {
                self.take_over(ask, &txn)
            }
        }
    }

    fn take_over(&mut self, ask: &InitProducer, txn: &Txn) -> Result<Option<Owner>, TxnError> {
        let (id, expected) = (&ask.transactional_id, ask.expected.map(|owner| owner.epoch));
        let is_used_up =
            txn.owner.is_exhausted() && expected.is_none_or(|epoch| epoch == txn.owner.epoch);
        let (owner, last) = match (is_used_up, ask.fresh) {
            (true, None) => return Ok(None),
            (true, Some(fresh)) => {
                (Owner { id: fresh, epoch: ProducerEpoch(0) }, expected.and(Some(txn.owner.epoch)))
            }
            (false, _) => self.next_incarnation(ask, txn)?,
        };
        let record = Txn {
            owner,
            timeout_ms: ask.timeout_ms,
            partitions: OrdSet::new(),
            start_ms: NO_TIMESTAMP,
            ..txn.to(TxnState::Empty, self.cx.now_ms)
        };
        self.write(id, Some(record))?;
        self.remember_epoch(ask, last);
        Ok(Some(owner))
    }

    /// Who the client is now, and the epoch that it had before if it named it (KIP-360).
    fn next_incarnation(
        &self,
        ask: &InitProducer,
        txn: &Txn,
    ) -> Result<(Owner, Option<ProducerEpoch>), TxnError> {
        let Some(expected) = ask.expected.map(|owner| owner.epoch) else {
            return Ok((txn.owner.bumped(), None));
        };
        let is_current = txn.owner.epoch == ProducerEpoch::NONE || expected == txn.owner.epoch;
        let is_retry = self.soft.last_epochs.get(&ask.transactional_id) == Some(&expected);
        match (is_current, is_retry) {
            (true, _) => Ok((txn.owner.bumped(), Some(txn.owner.epoch))),
            (false, true) => Ok((txn.owner, Some(expected))),
            (false, false) => Err(TxnError::ProducerFenced),
        }
    }

    fn remember_epoch(&mut self, ask: &InitProducer, last: Option<ProducerEpoch>) {
        let id = &ask.transactional_id;
        match last.filter(|epoch| *epoch != ProducerEpoch::NONE) {
            Some(epoch) => self.soft.last_epochs.insert(id.clone(), epoch),
            None => self.soft.last_epochs.remove(id),
        };
    }
}

/// Whether the producer can be the one that has the id: it has, or it had it until its epochs were
/// used up and did not get the answer.
fn may_be(txn: &Txn, expected: Owner) -> bool {
    txn.owner.epoch == ProducerEpoch::NONE
        || expected.id == txn.owner.id
        || (expected.id == txn.previous_producer_id && expected.is_exhausted())
}
