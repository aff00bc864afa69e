//! One machine on virtual time: every decision is written through the log's format and replayed.

use std::sync::Arc;
use std::sync::atomic::AtomicI16;
use std::time::Duration;

use arc_swap::ArcSwap;

use super::super::machine::{Soft, TxnWorld};
use super::super::*;
use crate::common::{ProducerId, TopicPartition};
use crate::config::BrokerConfig;
use crate::env::Instant;
use crate::machine::testing::through_the_log;
use crate::machine::{Context, Decision, Entry, Machine, Position, Ticket};

pub const START_MS: i64 = 1_700_000_000_000;
pub const ID: &str = "payments";

pub fn config() -> TxnConfig {
    BrokerConfig::default().txn
}

/// Asks, and remembers what was written and is owed.
pub struct Bench {
    pub txns: Transactions,
    soft: Soft,
    pub log: Vec<TxnRecord>,
    pub owed: Vec<Markers>,
    pub batch_bytes_max: usize,
    world: TxnWorld,
    pub epoch: i32,
    now: Duration,
    next_producer_id: i64,
}

impl Bench {
    /// - `version`: the level of `transaction.version`.
    pub fn new(version: i16) -> Self {
        let config = Arc::new(ArcSwap::from_pointee(config()));
        let world = TxnWorld { config, version: AtomicI16::new(version) };
        let txns = Transactions::default();
        let (soft, _) = txns.elected(&context(&world, Duration::ZERO, 1, 0));
        let (log, owed, now) = (Vec::new(), Vec::new(), Duration::ZERO);
        let (batch_bytes_max, epoch, next_producer_id) = (1 << 20, 1, 1000);
        Self { txns, soft, log, owed, batch_bytes_max, world, epoch, now, next_producer_id }
    }

    fn take_up(&mut self, decision: Decision<Transactions>) -> Option<TxnAnswer> {
        let mut bytes = 61;
        for record in decision.records {
            bytes += through_the_log(&record, record.bytes_at_most());
            let at = Position(self.log.len() as i64);
            self.txns.replay(Entry::plain_of(&record), at);
            self.log.push(record);
        }
        assert!(bytes <= self.batch_bytes_max, "{bytes} bytes in a batch");
        let owed = decision.effects.into_iter().map(|TxnEffect::WriteMarkers(owed)| owed);
        self.owed.extend(owed);
        assert!(decision.answers.len() <= 1, "{:?}", decision.answers);
        decision.answers.into_iter().next().map(|(_, answer)| answer)
    }

    pub fn ask(&mut self, request: TxnRequest) -> Option<TxnAnswer> {
        let mut cx = context(&self.world, self.now, self.epoch, self.log.len());
        cx.batch_bytes_max = self.batch_bytes_max;
        let decision = self.txns.decide(&mut self.soft, request, &cx);
        self.take_up(decision)
    }

    /// Another leader: what was soft is gone, the state comes out of the log.
    pub fn fail_over(&mut self) {
        let mut txns = Transactions::default();
        for (at, record) in self.log.iter().enumerate() {
            txns.replay(Entry::plain_of(record), Position(at as i64));
        }
        let all = |txns: &Transactions| {
            txns.iter().map(|(id, txn)| (id.clone(), txn.clone())).collect::<Vec<_>>()
        };
        assert_eq!(all(&txns), all(&self.txns), "the state is what the log says");
        self.epoch += 1;
        self.owed.clear();
        let cx = context(&self.world, self.now, self.epoch, self.log.len());
        let (soft, decision) = txns.elected(&cx);
        (self.txns, self.soft) = (txns, soft);
        self.take_up(decision);
    }

    pub fn advance(&mut self, by: Duration) {
        let end = self.now + by;
        while let Some(next) = self.txns.next_due(&self.soft).filter(|next| next.0 <= end) {
            self.now = self.now.max(next.0);
            let cx = context(&self.world, self.now, self.epoch, self.log.len());
            for request in self.txns.due(&mut self.soft, &cx) {
                self.ask(request);
            }
        }
        self.now = end;
    }

    pub fn init(&mut self) -> Result<Owner, TxnError> {
        self.init_as(None, 60_000)
    }

    pub fn init_as(&mut self, expected: Option<Owner>, timeout_ms: i32) -> Result<Owner, TxnError> {
        let mut ask =
            InitProducer { transactional_id: ID.into(), timeout_ms, expected, fresh: None };
        let mut answer = self.ask(TxnRequest::Init(ask.clone()));
        if answer == Some(TxnAnswer::NeedsProducerId) {
            ask.fresh = Some(self.fresh());
            answer = self.ask(TxnRequest::Init(ask));
        }
        match answer {
            Some(TxnAnswer::Init(outcome)) => outcome,
            other => panic!("{other:?}"),
        }
    }

    fn fresh(&mut self) -> ProducerId {
        self.next_producer_id += 1;
        ProducerId(self.next_producer_id)
    }

    pub fn add(&mut self, owner: Owner, client: i16, partition: i32) -> Result<(), TxnError> {
        let partitions = [TopicPartition::new("t", partition)].into_iter().collect();
        let client = ClientVersion(client);
        let ask = AddPartitions { transactional_id: ID.into(), owner, partitions, client };
        match self.ask(TxnRequest::Add(ask)) {
            Some(TxnAnswer::Add(outcome)) => outcome,
            other => panic!("{other:?}"),
        }
    }

    pub fn end(
        &mut self,
        owner: Owner,
        client: i16,
        commit: bool,
    ) -> Result<Option<Owner>, TxnError> {
        let (transactional_id, client) = (ID.into(), ClientVersion(client));
        let mut ask = EndTxn { transactional_id, owner, commit, client, fresh: None };
        let mut answer = self.ask(TxnRequest::End(ask.clone()));
        if answer == Some(TxnAnswer::NeedsProducerId) {
            ask.fresh = Some(self.fresh());
            answer = self.ask(TxnRequest::End(ask));
        }
        match answer {
            Some(TxnAnswer::End(outcome)) => outcome,
            other => panic!("{other:?}"),
        }
    }

    /// Writes the oldest markers that are owed, and says so.
    pub fn write_markers(&mut self) -> Markers {
        let markers = self.owed.remove(0);
        let written = TxnRequest::Written(markers.transactional_id.clone(), markers.at);
        assert_eq!(self.ask(written), Some(TxnAnswer::Written));
        markers
    }

    pub fn owner(&self) -> Owner {
        self.txns.get(ID).expect("is known").owner
    }

    pub fn state(&self) -> TxnState {
        self.txns.get(ID).expect("is known").state
    }

    /// Puts an epoch into the newest record, as if it had taken that many transactions.
    pub fn age_to(&mut self, epoch: i16) -> Owner {
        let mut txn = Txn::clone(self.txns.get(ID).expect("is known"));
        txn.owner.epoch.0 = epoch;
        let owner = txn.owner;
        let record = TxnRecord { transactional_id: ID.into(), value: Some(Arc::new(txn)) };
        self.txns.replay(Entry::plain_of(&record), Position(self.log.len() as i64));
        self.log.push(record);
        owner
    }
}

fn context(world: &TxnWorld, now: Duration, epoch: i32, end: usize) -> Context<'_, TxnWorld> {
    Context {
        now_ms: START_MS + now.as_millis() as i64,
        now: Instant(now),
        epoch,
        position: Position(end as i64),
        ticket: Ticket(1),
        seed: 1,
        batch_bytes_max: 1 << 20,
        world,
    }
}
