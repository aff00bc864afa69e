//! EndTxn, fencing, and the end of a transaction whose markers are written.

use imbl::OrdSet;

use super::error::TxnError;
use super::machine::{Turn, TxnAnswer};
use super::state::Txn;
use super::types::{ClientVersion, EndTxn, Owner, TxnState};
use crate::common::{ProducerEpoch, ProducerId, TransactionalId};
use crate::machine::Position;

/// What an EndTxn comes to.
enum End {
    /// It has been done already.
    Done,
    Prepare,
    /// There is nothing to abort, but the client gets a new epoch (KIP-890).
    AbortNothing,
}

impl Turn<'_> {
    pub fn decide_end(&mut self, ask: &EndTxn) -> TxnAnswer {
        let outcome = match ask.client.bumps_epoch() {
            true => self.end_and_bump(ask).map(|owner| owner.map(Some)),
            false => self.end_as_before(ask).map(|()| Some(None)),
        };
        match outcome {
            Ok(None) => TxnAnswer::NeedsProducerId,
            Ok(Some(owner)) => TxnAnswer::End(Ok(owner)),
            Err(error) => TxnAnswer::End(Err(error)),
        }
    }

    /// Of clients that keep their epoch.
    fn end_as_before(&mut self, ask: &EndTxn) -> Result<(), TxnError> {
        let txn = self.owned(&ask.transactional_id, ask.owner)?.clone();
        match txn.state {
            TxnState::Ongoing => {
                let none = ProducerId::NONE;
                self.prepare(ask, &txn, ClientVersion::default(), none, txn.start_ms).map(drop)
            }
            state if state == TxnState::complete(ask.commit) => Ok(()),
            state if state == TxnState::prepare(ask.commit) => {
                Err(TxnError::ConcurrentTransactions)
            }
            _ => Err(TxnError::InvalidTxnState),
        }
    }

    /// Of clients that get a new epoch with each end; `None`: a fresh producer id is needed.
    fn end_and_bump(&mut self, ask: &EndTxn) -> Result<Option<Owner>, TxnError> {
        let txn = self.state.get(&ask.transactional_id);
        let txn = txn.ok_or(TxnError::InvalidProducerIdMapping)?.clone();
        let start_ms = match check_end(&txn, ask)? {
            End::Done => return Ok(Some(txn.owner)),
            End::Prepare => txn.start_ms,
            End::AbortNothing => self.cx.now_ms,
        };
        let next = match (txn.owner.is_exhausted(), ask.fresh) {
            (true, None) => return Ok(None),
            (true, Some(fresh)) => fresh,
            (false, _) => ProducerId::NONE,
        };
        let prepared = self.prepare(ask, &txn, ask.client, next, start_ms)?;
        Ok(Some(owner_after(&prepared)))
    }

    fn prepare(
        &mut self,
        ask: &EndTxn,
        txn: &Txn,
        client: ClientVersion,
        next_producer_id: ProducerId,
        start_ms: i64,
    ) -> Result<Txn, TxnError> {
        let (id, now_ms) = (&ask.transactional_id, self.cx.now_ms);
        let owner = if client.bumps_epoch() { txn.owner.bumped() } else { txn.owner };
        let state = TxnState::prepare(ask.commit);
        let record = Txn { owner, next_producer_id, start_ms, client, ..txn.to(state, now_ms) };
        let at = self.write(id, Some(record.clone()))?;
        self.owe_markers(id, &record, at);
        if client.bumps_epoch() {
            self.soft.last_epochs.insert(id.clone(), txn.owner.epoch);
        }
        Ok(record)
    }

    /// Aborts an open transaction against its producer's will: it has an older epoch from now on.
    pub fn fence(&mut self, id: &TransactionalId, txn: &Txn) -> Result<(), TxnError> {
        let ask = EndTxn {
            transactional_id: id.clone(),
            owner: txn.owner,
            commit: false,
            client: self.version(),
            fresh: None,
        };
        let fenced = Txn { owner: txn.owner.bumped(), ..txn.clone() };
        self.prepare(&ask, &fenced, ask.client, ProducerId::NONE, txn.start_ms)?;
        self.soft.last_epochs.remove(id);
        Ok(())
    }

    /// All markers are written: the next transaction may begin. Said twice, or late, it does nothing.
    pub fn complete(&mut self, id: &TransactionalId, prepared: Position) {
        let Some(txn) = self.state.at(id, prepared) else { return };
        let Some(commit) = txn.state.prepared() else { return };
        let record = Txn {
            owner: owner_after(txn),
            next_producer_id: ProducerId::NONE,
            partitions: OrdSet::new(),
            ..txn.to(TxnState::complete(commit), self.cx.now_ms)
        };
        // It has no partitions, so that it fits.
        let _ = self.write(id, Some(record));
    }
}

/// Who the producer of a prepared transaction is once it is complete.
fn owner_after(txn: &Txn) -> Owner {
    if txn.next_producer_id == ProducerId::NONE {
        return txn.owner;
    }
    Owner { id: txn.next_producer_id, epoch: ProducerEpoch(0) }
}

/// An epoch alone does not tell a retry from the next end, so the state decides as well.
fn check_end(txn: &Txn, ask: &EndTxn) -> Result<End, TxnError> {
    let (state, epoch) = (txn.state, ask.owner.epoch);
    let is_after_exchange = ask.owner.id == txn.previous_producer_id
        && ask.owner.is_last()
        && txn.owner.epoch == ProducerEpoch(0);
    if ask.owner.id != txn.owner.id && !is_after_exchange {
        return Err(TxnError::InvalidProducerIdMapping);
    }
    let (is_bumped, is_current) = (ask.owner.precedes(txn.owner), epoch == txn.owner.epoch);
    let is_retry = is_bumped || is_after_exchange;
    let is_valid = match state {
        TxnState::Ongoing | TxnState::Empty => is_current,
        TxnState::PrepareCommit | TxnState::PrepareAbort => is_bumped,
        TxnState::CompleteCommit | TxnState::CompleteAbort => is_retry || is_current,
    };
    if !is_valid {
        return Err(TxnError::ProducerFenced);
    }
    match (state, is_retry) {
        (TxnState::Ongoing, _) => Ok(End::Prepare),
        (TxnState::Empty, _) if !ask.commit => Ok(End::AbortNothing),
        (TxnState::CompleteCommit | TxnState::CompleteAbort, false) if !ask.commit => {
            Ok(End::AbortNothing)
        }
        (state, true) if state == TxnState::complete(ask.commit) => Ok(End::Done),
        (state, _) if state == TxnState::prepare(ask.commit) => {
            Err(TxnError::ConcurrentTransactions)
        }
        _ => Err(TxnError::InvalidTxnState),
    }
}
