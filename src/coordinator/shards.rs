//! The machines of one coordinator: one for each partition of its topic that this broker has a
//! replica of; it decides while the broker leads the partition.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;

use crate::common::BrokerId;
use crate::machine::{Journal, Machine, Runtime};
use crate::metadata::Delta;

/// Gives the journal of a partition of the coordinator's topic that this broker has a replica of.
pub type Journals = Box<dyn Fn(i32) -> Option<Arc<dyn Journal>> + Send + Sync>;

/// The machines by partition.
pub(super) type ByPartition<M> = BTreeMap<i32, Arc<Runtime<M>>>;

pub(super) struct Shards<M: Machine> {
    topic: &'static str,
    broker_id: BrokerId,
    journals: Journals,
    by_partition: ArcSwap<ByPartition<M>>,
    /// Held while `by_partition` is replaced.
    changing: Mutex<()>,
}

impl<M: Machine> Shards<M> {
    pub fn new(topic: &'static str, broker_id: BrokerId, journals: Journals) -> Self {
        let (by_partition, changing) = (ArcSwap::default(), Mutex::default());
        Self { topic, broker_id, journals, by_partition, changing }
    }

    pub fn get(&self, partition: i32) -> Option<Arc<Runtime<M>>> {
        self.by_partition.load().get(&partition).cloned()
    }

    pub fn all(&self) -> Arc<ByPartition<M>> {
        self.by_partition.load_full()
    }

    /// Starts a machine for each partition that came to this broker, stops those that left.
    pub fn follow(&self, delta: &Delta, start: impl Fn(Arc<dyn Journal>) -> Runtime<M>) {
        let _changing = self.lock();
        let mut shards = ByPartition::clone(&self.by_partition.load());
        let mut is_changed = false;
        if delta.deleted().any(|topic| *topic.name == *self.topic) {
            shards.values().for_each(|shard| shard.stop());
            shards.clear();
            is_changed = true;
        }
        for change in delta.partitions().filter(|change| *change.topic.name == *self.topic) {
            let is_here = change.after.replicas.contains(&self.broker_id);
            match shards.get(&change.index) {
                None if is_here => {
                    let Some(journal) = (self.journals)(change.index) else { continue };
                    shards.insert(change.index, Arc::new(start(journal)));
                }
                Some(shard) if !is_here => {
                    shard.stop();
                    shards.remove(&change.index);
                }
                _ => continue,
            }
            is_changed = true;
        }
        if is_changed {
            self.by_partition.store(Arc::new(shards));
        }
    }

    /// No decision after this.
    pub fn stop(&self) {
        let _changing = self.lock();
        for shard in self.by_partition.swap(Arc::default()).values() {
            shard.stop();
        }
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
