//! The machine: which request goes where, and what a decision works with.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI16, Ordering};

use arc_swap::ArcSwap;

use super::error::TxnError;
use super::record::TxnRecord;
use super::state::{Transactions, Txn};
use super::sweep::{Sweep, SweepKind};
use super::types::{
    AddPartitions, ClientVersion, DescribedTxn, EndTxn, InitProducer, ListedTxn, Markers, Owner,
    TxnFilter, VerifyPartitions,
};
use crate::common::{ProducerEpoch, TopicPartition, TransactionalId};
use crate::env::Instant;
use crate::machine::{Batch, Context, Decision, Entry, Machine, Position};

/// The broker's settings for transactions.
pub use crate::config::TxnKeys as TxnConfig;

/// What decisions look at beside the transactions.
#[derive(Debug)]
pub struct TxnWorld {
    pub config: Arc<ArcSwap<TxnConfig>>,
    /// Level of `transaction.version`: what the coordinator itself goes by.
    pub version: AtomicI16,
}

/// What one partition's machine is asked.
#[derive(Debug, Clone)]
pub enum TxnRequest {
    Init(InitProducer),
    Add(AddPartitions),
    Verify(VerifyPartitions),
    End(EndTxn),
    /// All markers are written of the transaction whose preparation stands there.
    Written(TransactionalId, Position),
    Describe(TransactionalId),
    List(TxnFilter),
    /// Time to look for what is too old; nobody waits for an answer.
    Sweep(SweepKind),
}

impl TxnRequest {
    /// What is wrong with a request whoever is asked.
    ///
    /// # Errors
    /// [`TxnError::InvalidRequest`], [`TxnError::InvalidTransactionTimeout`].
    pub fn check(&self, config: &TxnConfig) -> Result<(), TxnError> {
        let id = match self {
            Self::Init(ask) => &ask.transactional_id,
            Self::Add(ask) => &ask.transactional_id,
            Self::Verify(ask) => &ask.transactional_id,
            Self::End(ask) => &ask.transactional_id,
            Self::Written(id, _) | Self::Describe(id) => id,
            Self::List(_) | Self::Sweep(_) => return Ok(()),
        };
        match self {
            _ if id.is_empty() => Err(TxnError::InvalidRequest),
            Self::Init(ask) if !(1..=config.max_timeout_ms).contains(&ask.timeout_ms) => {
                Err(TxnError::InvalidTransactionTimeout)
            }
            _ => Ok(()),
        }
    }
}

/// What one partition's machine answers, variant by variant as it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TxnAnswer {
    /// To be asked again with a producer id that nobody has.
    NeedsProducerId,
    Init(Result<Owner, TxnError>),
    Add(Result<(), TxnError>),
    Verify(Result<Vec<(TopicPartition, bool)>, TxnError>),
    /// Who the client is from now on; `None`: whoever it was.
    End(Result<Option<Owner>, TxnError>),
    Written,
    Describe(Result<DescribedTxn, TxnError>),
    List(Vec<ListedTxn>),
}

/// What is to be done once a decision is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TxnEffect {
    /// To be answered with [`TxnRequest::Written`].
    WriteMarkers(Markers),
}

/// What a failover loses.
#[derive(Debug)]
pub struct Soft {
    /// The epoch that a producer had before its current one, if it asked for that one itself.
    pub(super) last_epochs: BTreeMap<TransactionalId, ProducerEpoch>,
    pub(super) sweeps: [Sweep; 2],
}

pub(super) type Cx<'a> = Context<'a, TxnWorld>;

impl Machine for Transactions {
    type World = TxnWorld;
    type Request = TxnRequest;
    type Answer = TxnAnswer;
    type Record = TxnRecord;
    type Effect = TxnEffect;
    type Soft = Soft;

    /// Whatever is prepared still owes its markers.
    fn elected(&self, cx: &Cx<'_>) -> (Soft, Decision<Self>) {
        let config = cx.world.config.load();
        let sweeps = SweepKind::ALL.map(|kind| Sweep::begin(kind, &config, cx.now));
        let mut soft = Soft { last_epochs: BTreeMap::new(), sweeps };
        let mut turn = Turn::new(self, &mut soft, cx);
        for (id, (txn, at)) in self.iter() {
            turn.owe_markers(id, txn, *at);
        }
        let decision = turn.decision;
        (soft, decision)
    }

    fn decide(&self, soft: &mut Soft, request: TxnRequest, cx: &Cx<'_>) -> Decision<Self> {
        let mut turn = Turn::new(self, soft, cx);
        let answer = match request {
            TxnRequest::Init(ask) => Some(turn.decide_init(&ask)),
            TxnRequest::Add(ask) => Some(TxnAnswer::Add(turn.add(ask))),
            TxnRequest::Verify(ask) => Some(TxnAnswer::Verify(turn.verify(ask))),
            TxnRequest::End(ask) => Some(turn.decide_end(&ask)),
            TxnRequest::Written(id, at) => {
                turn.complete(&id, at);
                Some(TxnAnswer::Written)
            }
            TxnRequest::Describe(id) => Some(TxnAnswer::Describe(turn.describe(&id))),
            TxnRequest::List(filter) => Some(TxnAnswer::List(turn.list(&filter))),
            TxnRequest::Sweep(kind) => {
                turn.sweep(kind);
                None
            }
        };
        if let Some(answer) = answer {
            turn.decision.answers.push((cx.ticket, answer));
        }
        turn.decision
    }

    fn replay(&mut self, entry: Entry<&TxnRecord>, at: Position) {
        self.apply(entry.plain(), at);
    }

    fn due(&self, soft: &mut Soft, cx: &Cx<'_>) -> Vec<TxnRequest> {
        let due = soft.sweeps.iter().filter(|sweep| sweep.at <= cx.now);
        due.map(|sweep| TxnRequest::Sweep(sweep.kind)).collect()
    }

    fn next_due(&self, soft: &Soft) -> Option<Instant> {
        soft.sweeps.iter().map(|sweep| sweep.at).min()
    }
}

/// One decision in the making.
pub(super) struct Turn<'a> {
    pub state: &'a Transactions,
    pub soft: &'a mut Soft,
    pub config: Arc<TxnConfig>,
    pub cx: &'a Cx<'a>,
    pub decision: Decision<Transactions>,
    /// Upper bound of the batch that the decision's records make.
    batch_bytes: usize,
}

impl<'a> Turn<'a> {
    fn new(state: &'a Transactions, soft: &'a mut Soft, cx: &'a Cx<'a>) -> Self {
        let config = cx.world.config.load_full();
        let batch_bytes = Batch::HEADER_BYTES;
        Self { state, soft, config, cx, decision: Decision::default(), batch_bytes }
    }

    /// The level of `transaction.version` that the coordinator goes by itself.
    pub fn version(&self) -> ClientVersion {
        ClientVersion(self.cx.world.version.load(Ordering::Relaxed))
    }

    /// The transaction of an id and a producer that must be the current one.
    pub fn owned(&self, id: &TransactionalId, owner: Owner) -> Result<&'a Arc<Txn>, TxnError> {
        let txn = self.state.get(id).filter(|txn| txn.owner.id == owner.id);
        let txn = txn.ok_or(TxnError::InvalidProducerIdMapping)?;
        if txn.owner == owner { Ok(txn) } else { Err(TxnError::ProducerFenced) }
    }

    /// Adds a record if it still fits this decision's batch, and says where it will stand.
    ///
    /// # Errors
    /// [`TxnError::TooLarge`]: nothing was added.
    pub fn write(&mut self, id: &TransactionalId, txn: Option<Txn>) -> Result<Position, TxnError> {
        let record = TxnRecord { transactional_id: id.clone(), value: txn.map(Arc::new) };
        let (bytes_max, bytes) =
            (self.cx.batch_bytes_max, self.batch_bytes + record.bytes_at_most());
        if bytes > bytes_max {
            return Err(TxnError::TooLarge { bytes, bytes_max });
        }
        self.batch_bytes = bytes;
        let at = Position(self.cx.position.0 + self.decision.records.len() as i64);
        self.decision.records.push(record);
        Ok(at)
    }

    /// Tells who writes markers what a prepared transaction owes; others owe nothing.
    pub fn owe_markers(&mut self, id: &TransactionalId, txn: &Txn, at: Position) {
        let Some(commit) = txn.state.prepared() else { return };
        self.decision.effects.push(TxnEffect::WriteMarkers(Markers {
            transactional_id: id.clone(),
            at,
            owner: txn.owner,
            commit,
            partitions: txn.partitions.clone(),
            coordinator_epoch: self.cx.epoch,
            client: txn.client,
        }));
    }
}
