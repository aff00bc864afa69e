//! What time ends: transactions that are open for too long, transactional ids that nobody uses.

use std::time::Duration;

use super::machine::{Turn, TxnConfig};
use super::state::Txn;
use super::types::TxnState;
use crate::common::TransactionalId;
use crate::env::Instant;

/// Transactional ids looked at in one decision.
const LOOKED_AT_MAX: usize = 1_000;
/// A transaction with this time limit is never aborted by time.
const NO_TIMEOUT_MS: i32 = i32::MAX;

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweepKind {
    /// Transactions past their time limit, to be aborted.
    Abort = 0,
    /// Transactional ids past `transactional.id.expiration.ms`, to be forgotten.
    Expire = 1,
}

impl SweepKind {
    pub const ALL: [Self; 2] = [Self::Abort, Self::Expire];

    fn interval(self, config: &TxnConfig) -> Duration {
        let interval_ms = match self {
            Self::Abort => config.abort_interval_ms,
            Self::Expire => config.expire_interval_ms,
        };
        Duration::from_millis(u64::try_from(interval_ms).unwrap_or(0))
    }
}

/// A search that comes again and again.
#[derive(Debug)]
pub struct Sweep {
    pub kind: SweepKind,
    pub at: Instant,
    /// Where the running one goes on.
    from: Option<TransactionalId>,
}

impl Sweep {
    pub fn begin(kind: SweepKind, config: &TxnConfig, now: Instant) -> Self {
        Self { kind, at: now + kind.interval(config), from: None }
    }
}

impl Turn<'_> {
    /// One bounded step of a search.
    pub fn sweep(&mut self, kind: SweepKind) {
        let first = self.soft.sweeps[kind as usize].from.take().unwrap_or_default();
        let state = self.state;
        let mut next = None;
        for (seen, (id, txn)) in state.from(first).enumerate() {
            if seen == LOOKED_AT_MAX || !self.end_by_time(kind, id, txn) {
                next = Some(id.clone());
                break;
            }
        }
        let wait = if next.is_some() { Duration::ZERO } else { kind.interval(&self.config) };
        self.soft.sweeps[kind as usize] = Sweep { kind, at: self.cx.now + wait, from: next };
    }

    /// Whether this decision's batch had room for what time does to the id, if anything.
    fn end_by_time(&mut self, kind: SweepKind, id: &TransactionalId, txn: &Txn) -> bool {
        let is_first = self.decision.records.is_empty();
        let outcome = match kind {
            SweepKind::Abort if self.is_late(txn) => self.fence(id, txn),
            SweepKind::Expire if self.is_unused(txn) => {
                self.soft.last_epochs.remove(id);
                self.write(id, None).map(drop)
            }
            _ => Ok(()),
        };
        // What fits no batch is passed over, else the search would never end.
        outcome.is_ok() || is_first
    }

    fn is_late(&self, txn: &Txn) -> bool {
        txn.state == TxnState::Ongoing
            && txn.timeout_ms != NO_TIMEOUT_MS
            && txn.start_ms + i64::from(txn.timeout_ms) < self.cx.now_ms
    }

    fn is_unused(&self, txn: &Txn) -> bool {
        let may_go = matches!(
            txn.state,
            TxnState::Empty | TxnState::CompleteCommit | TxnState::CompleteAbort
        );
        may_go && txn.last_update_ms <= self.cx.now_ms - i64::from(self.config.id_expiration_ms)
    }
}
