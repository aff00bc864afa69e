//! The topics of the cluster as this node's replicas see them: by name and by id, each with its
//! partitions here and elsewhere. Read by every request without a lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;

use super::error::{NotNow, ReplicaError};
use super::partition::Partition;
use crate::common::{BrokerId, LeaderEpoch, TopicId, TopicName};
use crate::config::TopicConfig;
use crate::telemetry::Metrics;
use prometheus::IntCounter;

/// A topic of the image.
pub struct Topic {
    pub name: TopicName,
    pub id: TopicId,
    pub is_internal: bool,
    pub(super) config: Arc<ArcSwap<TopicConfig>>,
    pub(super) counters: TopicCounters,
    slots: ArcSwap<Vec<Slot>>,
    gone: AtomicBool,
}

/// One partition of a topic.
#[derive(Clone)]
pub(super) enum Slot {
    Here(Arc<Partition>),
    /// No replica on this node.
    Elsewhere {
        leader: Option<BrokerId>,
        epoch: LeaderEpoch,
    },
}

/// Handles taken once per topic.
pub(super) struct TopicCounters {
    pub messages_in: IntCounter,
    pub bytes_in: IntCounter,
    pub bytes_out: IntCounter,
    pub produce_requests: IntCounter,
    pub fetch_requests: IntCounter,
}

impl TopicCounters {
    pub fn new(metrics: &Metrics, topic: &str) -> Self {
        Self {
            messages_in: metrics.messages_in.with_label_values(&[topic]),
            bytes_in: metrics.bytes_in.with_label_values(&[topic]),
            bytes_out: metrics.bytes_out.with_label_values(&[topic]),
            produce_requests: metrics.produce_requests.with_label_values(&[topic]),
            fetch_requests: metrics.fetch_requests.with_label_values(&[topic]),
        }
    }
}

impl Topic {
    pub(super) fn new(
        name: TopicName,
        id: TopicId,
        config: TopicConfig,
        counters: TopicCounters,
    ) -> Self {
        let is_internal = crate::metadata::is_internal(&name);
        let config = Arc::new(ArcSwap::from_pointee(config));
        let (slots, gone) = (ArcSwap::default(), AtomicBool::new(false));
        Self { name, id, is_internal, config, counters, slots, gone }
    }

    /// The partition's replica on this node, leading or not.
    ///
    /// # Errors
    /// [`NotNow::UnknownPartition`], [`NotNow::NotLeader`] when it has none here.
    pub fn partition(&self, index: i32) -> Result<Arc<Partition>, ReplicaError> {
        let slots = self.slots.load();
        match usize::try_from(index).ok().and_then(|index| slots.get(index)) {
            Some(Slot::Here(partition)) => Ok(partition.clone()),
            Some(Slot::Elsewhere { leader, epoch }) => {
                Err(NotNow::NotLeader { leader: *leader, epoch: *epoch }.into())
            }
            None => Err(ReplicaError::unknown()),
        }
    }

    /// The topic's config now.
    pub fn config(&self) -> Arc<TopicConfig> {
        self.config.load_full()
    }

    /// It was deleted; a topic of the same name is another one.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    pub(super) fn set_gone(&self) {
        self.gone.store(true, Ordering::Release);
    }

    pub(super) fn slots(&self) -> Arc<Vec<Slot>> {
        self.slots.load_full()
    }

    pub(super) fn set_slots(&self, slots: Vec<Slot>) {
        self.slots.store(Arc::new(slots));
    }

    /// Replicas on this node.
    pub(super) fn here(&self) -> Vec<Arc<Partition>> {
        let here = |slot: &Slot| match slot {
            Slot::Here(partition) => Some(partition.clone()),
            Slot::Elsewhere { .. } => None,
        };
        self.slots.load().iter().filter_map(here).collect()
    }
}

impl std::fmt::Debug for Topic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Topic").field("name", &self.name).field("id", &self.id).finish()
    }
}

/// A topic as a request names it.
#[derive(Debug, Clone)]
pub enum TopicRef {
    Known(Arc<Topic>),
    /// Not known when last looked for.
    Name(TopicName),
    Id(TopicId),
}

impl TopicRef {
    /// Empty for a topic known by id only, which does not exist.
    pub fn name(&self) -> TopicName {
        match self {
            Self::Known(topic) => topic.name.clone(),
            Self::Name(name) => name.clone(),
            Self::Id(_) => "".into(),
        }
    }

    /// Null for a topic known by name only, which does not exist.
    pub fn id(&self) -> TopicId {
        match self {
            Self::Known(topic) => topic.id,
            Self::Name(_) => TopicId::NONE,
            Self::Id(id) => *id,
        }
    }

    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Known(a), Self::Known(b)) => Arc::ptr_eq(a, b),
            (Self::Name(a), Self::Name(b)) => a == b,
            (Self::Id(a), Self::Id(b)) => a == b,
            _ => false,
        }
    }
}
