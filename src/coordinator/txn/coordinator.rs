//! All transactions of this broker: finds the partition of `__transaction_state` that keeps a
//! transactional id and asks its machine. Follows the metadata, and sees to the markers that are
//! owed.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI16, Ordering};

use arc_swap::ArcSwap;

use super::error::{NotNow, TxnRefusal};
use super::machine::{TxnAnswer, TxnConfig, TxnEffect, TxnRequest, TxnWorld};
use super::markers::{MarkerWriter, Owed};
use super::state::Transactions;
use super::types::{
    AddPartitions, DescribedTxn, EndTxn, InitProducer, ListedTxn, Owner, TxnFilter,
    VerifyPartitions,
};
use crate::common::{BrokerId, ProducerId, TopicPartition, TransactionalId};
use crate::coordinator::hash::partition_for;
use crate::coordinator::mismatched;
use crate::coordinator::shards::{Journals, Shards};
use crate::env::Env;
use crate::machine::{AskError, Journal, NotReady, Runtime};
use crate::metadata::{Delta, Image, Subscriber};

/// Where all transactions are kept.
pub const TXN_TOPIC: &str = "__transaction_state";

/// Gives a producer id that nobody has; `None`: none can be had now.
pub type FreshIds =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Option<ProducerId>> + Send>> + Send + Sync>;

/// The transaction coordinator of one broker. Cloning shares it.
#[derive(Clone)]
pub struct TxnCoordinator {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub env: Env,
    world: Arc<ArcSwap<TxnWorld>>,
    image: ArcSwap<Image>,
    fresh: FreshIds,
    pub owed: Arc<Owed>,
    shards: Shards<Transactions>,
}

impl TxnCoordinator {
    /// - `config`: looked at afresh by each decision, so that it can be swapped.
    pub fn new(
        env: Env,
        broker_id: BrokerId,
        config: Arc<ArcSwap<TxnConfig>>,
        journals: Journals,
        fresh: FreshIds,
        writer: Arc<dyn MarkerWriter>,
    ) -> Self {
        let world = TxnWorld { config, version: AtomicI16::new(0) };
        let world = Arc::new(ArcSwap::from_pointee(world));
        let shards = Shards::new(TXN_TOPIC, broker_id, journals);
        let (image, owed) = (ArcSwap::default(), Arc::new(Owed::default()));
        let shared = Shared { env: env.clone(), world, image, fresh, owed: owed.clone(), shards };
        let coordinator = Self { shared: Arc::new(shared) };
        let sending = owed.send(Arc::downgrade(&coordinator.shared), writer);
        env.tasks.spawn_data(sending);
        coordinator
    }

    /// The partition of `__transaction_state` that keeps the id, whether or not the topic is there
    /// yet.
    pub fn coordinator_partition(&self, id: &str) -> i32 {
        let image = self.shared.image.load();
        let partitions = image.topic(TXN_TOPIC).map(|topic| topic.partition_count());
        let planned = self.shared.world.load().config.load().state_log_num_partitions;
        partition_for(id, partitions.unwrap_or(planned))
    }

    /// The machine that keeps the id, if this broker has it.
    pub(super) fn shard(&self, id: &str) -> Option<Arc<Runtime<Transactions>>> {
        self.shared.shards.get(self.coordinator_partition(id))
    }

    async fn ask(
        &self,
        id: &TransactionalId,
        request: TxnRequest,
    ) -> Result<TxnAnswer, TxnRefusal> {
        request.check(&self.shared.world.load().config.load())?;
        let shard = self.shard(id).ok_or(NotNow::NotCoordinator)?;
        shard.ask(request).await.map(|(answer, _)| answer).map_err(|error| unanswered(&error))
    }

    /// InitProducerId of a transactional id: who the client is from now on.
    ///
    /// # Errors
    /// [`TxnRefusal`]; nothing has changed, but that a transaction before may now be aborted.
    pub async fn init(&self, mut ask: InitProducer) -> Result<Owner, TxnRefusal> {
        loop {
            match self.ask(&ask.transactional_id, TxnRequest::Init(ask.clone())).await? {
                TxnAnswer::Init(outcome) => return Ok(outcome?),
                TxnAnswer::NeedsProducerId => ask.fresh = Some(self.fresh().await?),
                other => mismatched(&other),
            }
        }
    }

    /// AddPartitionsToTxn, AddOffsetsToTxn: all of the partitions or none.
    ///
    /// # Errors
    /// [`TxnRefusal`]; nothing has changed.
    pub async fn add(&self, ask: AddPartitions) -> Result<(), TxnRefusal> {
        match self.ask(&ask.transactional_id.clone(), TxnRequest::Add(ask)).await? {
            TxnAnswer::Add(outcome) => Ok(outcome?),
            other => mismatched(&other),
        }
    }

    /// AddPartitionsToTxn of a broker that asks whether partitions are in the open transaction.
    ///
    /// # Errors
    /// [`TxnRefusal`].
    pub async fn verify(
        &self,
        ask: VerifyPartitions,
    ) -> Result<Vec<(TopicPartition, bool)>, TxnRefusal> {
        match self.ask(&ask.transactional_id.clone(), TxnRequest::Verify(ask)).await? {
            TxnAnswer::Verify(outcome) => Ok(outcome?),
            other => mismatched(&other),
        }
    }

    /// EndTxn: answered once the end is decided, its markers follow. `None`: the client stays who it
    /// is.
    ///
    /// # Errors
    /// [`TxnRefusal`]; nothing has changed.
    pub async fn end(&self, mut ask: EndTxn) -> Result<Option<Owner>, TxnRefusal> {
        loop {
            match self.ask(&ask.transactional_id, TxnRequest::End(ask.clone())).await? {
                TxnAnswer::End(outcome) => return Ok(outcome?),
                TxnAnswer::NeedsProducerId => ask.fresh = Some(self.fresh().await?),
                other => mismatched(&other),
            }
        }
    }

    /// DescribeTransactions, one of them.
    ///
    /// # Errors
    /// [`TxnRefusal`].
    pub async fn describe(&self, id: &TransactionalId) -> Result<DescribedTxn, TxnRefusal> {
        match self.ask(id, TxnRequest::Describe(id.clone())).await? {
            TxnAnswer::Describe(outcome) => Ok(outcome?),
            other => mismatched(&other),
        }
    }

    /// ListTransactions: those that this broker coordinates.
    ///
    /// # Errors
    /// [`NotNow`]: a partition is still being loaded.
    pub async fn list(&self, filter: &TxnFilter) -> Result<Vec<ListedTxn>, TxnRefusal> {
        let mut listed = Vec::new();
        for shard in self.shared.shards.all().values() {
            match shard.ask(TxnRequest::List(filter.clone())).await {
                Ok((TxnAnswer::List(found), _)) => listed.extend(found),
                Ok((other, _)) => mismatched(&other),
                Err(error) => match unanswered(&error) {
                    TxnRefusal::NotNow(NotNow::NotCoordinator) => {}
                    error => return Err(error),
                },
            }
        }
        Ok(listed)
    }

    async fn fresh(&self) -> Result<ProducerId, TxnRefusal> {
        Ok((self.shared.fresh)().await.ok_or(NotNow::Loading)?)
    }

    /// No decision after this.
    pub fn stop(&self) {
        self.shared.shards.stop();
    }
}

impl Subscriber for TxnCoordinator {
    fn publish(&self, delta: &Delta) {
        let level = delta.after.feature(TXN_FEATURE);
        self.shared.world.load().version.store(level, Ordering::Relaxed);
        self.shared.image.store(delta.after.clone());
        self.shared.shards.follow(delta, |journal| self.shared.start(journal));
    }
}

/// The feature whose level says how transactions run (KIP-890).
pub const TXN_FEATURE: &str = "transaction.version";

impl Shared {
    fn start(&self, journal: Arc<dyn Journal>) -> Runtime<Transactions> {
        let (env, world, owed) = (self.env.clone(), self.world.clone(), self.owed.clone());
        let on_effect =
            Box::new(move |TxnEffect::WriteMarkers(markers), _epoch| owed.push(markers));
        let runtime = Runtime::new(Transactions::default(), journal, env, world, on_effect);
        self.env.tasks.spawn_data(runtime.run());
        runtime
    }
}

/// What it means that a machine gave no answer; as for groups.
fn unanswered(error: &AskError) -> TxnRefusal {
    let not_now = match error {
        AskError::NotReady(NotReady::TooFewReplicas) => NotNow::NotAvailable,
        AskError::NotReady(NotReady::NotLeader | NotReady::Storage)
        | AskError::Lost
        // Nothing is written for a producer here.
        | AskError::Refused(_) => NotNow::NotCoordinator,
        AskError::Loading => NotNow::Loading,
    };
    not_now.into()
}
