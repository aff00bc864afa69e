//! Clients that share one transactional id, in random order, with late and repeated requests, markers
//! that come when they like, and leaders that change.

use std::time::Duration;

use super::super::*;
use super::bench::{Bench, ID};
use crate::env::{Random, seeds};
use crate::machine::Position;

const STEPS: usize = 120;

struct Client {
    owner: Option<Owner>,
    version: i16,
    /// Whom its ends were sent by, to be sent again.
    ended: Vec<(Owner, bool)>,
}

struct Lab {
    bench: Bench,
    random: Random,
    clients: Vec<Client>,
    /// Markers that were said to be written, to be said again.
    written: Vec<Position>,
}

/// Transactions that were committed and aborted.
fn run(seed: u64) -> (usize, usize) {
    let random = Random::seeded(seed);
    let version = if random.below(2) == 0 { 0 } else { 2 };
    let client = |_| Client { owner: None, version, ended: Vec::new() };
    let clients = (0..3).map(client).collect();
    let mut lab = Lab { bench: Bench::new(version), random, clients, written: Vec::new() };
    lab.bench.init().expect("the first");
    lab.bench.age_to([0, i16::MAX - 4][lab.random.below(2) as usize]);
    for _ in 0..STEPS {
        let before = lab.bench.log.len();
        lab.step();
        check(&lab.bench.log, before.max(2));
    }
    let ended = |state| lab.bench.log.iter().filter(|record| state_of(record) == state).count();
    (ended(TxnState::CompleteCommit), ended(TxnState::CompleteAbort))
}

fn state_of(record: &TxnRecord) -> TxnState {
    record.value.as_ref().expect("nothing expires here").state
}

impl Lab {
    fn step(&mut self) {
        let who = self.random.below(3) as usize;
        match self.random.below(12) {
            0 if self.random.below(4) == 0 => self.init(who),
            1..=4 => self.add(who),
            5..=6 => self.end(who),
            7 => self.end_again(who),
            8..=9 if !self.bench.owed.is_empty() => {
                let at = self.bench.write_markers().at;
                self.written.push(at);
            }
            10 => self.bench.advance(Duration::from_secs(self.random.below(10))),
            11 => self.bench.fail_over(),
            _ => self.written_again(),
        }
    }

    fn init(&mut self, who: usize) {
        let expected = self.clients[who].owner.filter(|_| self.random.below(2) == 0);
        match self.bench.init_as(expected, 30_000) {
            Ok(owner) => self.clients[who].owner = Some(owner),
            Err(TxnError::ProducerFenced) => self.clients[who].owner = None,
            Err(_) => {}
        }
    }

    fn add(&mut self, who: usize) {
        let Some(owner) = self.clients[who].owner else { return self.init(who) };
        let (version, partition) = (self.clients[who].version, self.random.below(4) as i32);
        if self.bench.add(owner, version, partition) == Err(TxnError::ProducerFenced) {
            self.clients[who].owner = None;
        }
    }

    fn end(&mut self, who: usize) {
        let Some(owner) = self.clients[who].owner else { return };
        let commit = self.random.below(3) > 0;
        let client = &mut self.clients[who];
        client.ended.push((owner, commit));
        match self.bench.end(owner, client.version, commit) {
            Ok(next) => client.owner = next.or(Some(owner)),
            Err(TxnError::ProducerFenced) => client.owner = None,
            Err(_) => {}
        }
    }

    /// A request that was late, or whose answer was lost: it never ends another transaction than its own.
    fn end_again(&mut self, who: usize) {
        let client = &self.clients[who];
        if client.ended.is_empty() {
            return;
        }
        let (owner, commit) = client.ended[self.random.below(client.ended.len() as u64) as usize];
        let (current, before) = (self.bench.owner(), self.bench.log.len());
        let _ = self.bench.end(owner, client.version, commit);
        let may_write = owner == current;
        assert!(
            may_write || self.bench.log.len() == before,
            "{owner:?} ended what is {current:?}'s"
        );
    }

    fn written_again(&mut self) {
        if let Some(at) = self.written.last().copied() {
            let before = self.bench.log.len();
            self.bench.ask(TxnRequest::Written(ID.into(), at));
            assert_eq!(self.bench.log.len(), before, "the next transaction owes its own");
        }
    }
}

/// Each record from `first` on may follow the one before it.
fn check(log: &[TxnRecord], first: usize) {
    for at in first..log.len() {
        let pair = [&log[at - 1], &log[at]].map(|record| record.value.as_ref().expect("is there"));
        let [before, after] = pair;
        let follows = match (before.state, after.state) {
            (TxnState::PrepareCommit, state) => state == TxnState::CompleteCommit,
            (TxnState::PrepareAbort, state) => state == TxnState::CompleteAbort,
            (TxnState::Ongoing, TxnState::Ongoing) => {
                before.partitions.is_subset(&after.partitions) && before.start_ms == after.start_ms
            }
            (TxnState::Ongoing, state) => {
                state.prepared().is_some() && before.partitions == after.partitions
            }
            (_, TxnState::PrepareAbort) => after.partitions.is_empty(),
            (_, state) => matches!(state, TxnState::Empty | TxnState::Ongoing),
        };
        assert!(follows, "{after:?} follows {before:?}");
        let (old, new) = (before.owner, after.owner);
        let is_later = if old.id == new.id { old.epoch <= new.epoch } else { new.epoch.0 == 0 };
        assert!(is_later, "{new:?} follows {old:?}");
        assert_eq!(after.previous_producer_id, old.id);
    }
}

#[test]
fn no_order_of_requests_ends_a_transaction_otherwise_than_it_was_prepared() {
    let ends: Vec<(usize, usize)> = seeds::each(0..1000, run).collect();
    let (committed, aborted) =
        ends.iter().fold((0, 0), |sum, ended| (sum.0 + ended.0, sum.1 + ended.1));
    assert!(committed > 500 && aborted > 500, "{committed} and {aborted} are too few to tell");
}
