//! The image's types and its look-ups. Everything is a persistent map of shared values: a clone
//! costs a few pointers, and two images share what did not change.

use std::sync::Arc;

use imbl::OrdMap;
use uuid::Uuid;

use crate::common::{BrokerId, LeaderEpoch, Offset, TopicId, TopicName};

/// A resource's own settings, by key; never holds what is only a default.
pub type Configs = crate::config::Values;

/// All that the metadata log says up to `end_offset`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Image {
    /// The first offset of the metadata log that is not in here.
    pub end_offset: Offset,
    pub(super) brokers: OrdMap<BrokerId, Arc<Broker>>,
    pub(super) topics: Topics,
    pub(super) configs: OrdMap<ConfigResource, Arc<Configs>>,
    pub(super) features: OrdMap<Arc<str>, i16>,
    pub(super) producer_ids: Option<ProducerIdBlock>,
}

/// The last block of producer ids handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProducerIdBlock {
    pub broker: BrokerId,
    pub broker_epoch: i64,
    pub next: i64,
}

/// Topics by id and by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Topics {
    pub(super) by_id: OrdMap<TopicId, Arc<Topic>>,
    pub(super) ids: OrdMap<TopicName, TopicId>,
}

/// A registered broker (`RegisterBrokerRecord` and what changed it since).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broker {
    pub id: BrokerId,
    /// Offset of its registration record.
    pub epoch: i64,
    /// Fresh at each start of the broker's process.
    pub incarnation: Uuid,
    pub endpoints: Vec<Endpoint>,
    pub features: Vec<FeatureRange>,
    pub rack: Option<Arc<str>>,
    pub is_fenced: bool,
    pub in_controlled_shutdown: bool,
    /// Ids of its log directories that are online.
    pub log_dirs: Vec<Uuid>,
    /// Directories that take no new replicas; `None` until the broker has told.
    pub cordoned_log_dirs: Option<Vec<Uuid>>,
}

/// Where one listener of a broker can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The listener's name.
    pub name: Arc<str>,
    pub host: Arc<str>,
    pub port: u16,
    /// Kafka's number of the security protocol: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.
    pub security_protocol: i16,
}

/// The levels of a feature that a broker can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureRange {
    pub name: Arc<str>,
    pub min: i16,
    pub max: i16,
}

/// A topic and its partitions, which are numbered from 0 without gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    pub name: TopicName,
    pub id: TopicId,
    pub partitions: OrdMap<i32, Arc<Partition>>,
}

/// Who holds a partition (`PartitionRecord` and the changes since).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Partition {
    /// In order of preference.
    pub replicas: Vec<BrokerId>,
    pub isr: Vec<BrokerId>,
    pub removing_replicas: Vec<BrokerId>,
    pub adding_replicas: Vec<BrokerId>,
    /// `None`: no replica may lead now.
    pub leader: Option<BrokerId>,
    pub leader_epoch: LeaderEpoch,
    pub partition_epoch: i32,
    /// The leader was elected from outside the ISR and has not recovered yet.
    pub is_recovering: bool,
    /// One per replica, in the same order; nil where not assigned yet.
    pub directories: Vec<Uuid>,
    /// Eligible leader replicas (KIP-966).
    pub elr: Vec<BrokerId>,
    pub last_known_elr: Vec<BrokerId>,
}

impl Partition {
    /// The log directory of `broker`'s replica; nil: not assigned yet, or there is none.
    pub fn directory_of(&self, broker: BrokerId) -> Uuid {
        let at = self.replicas.iter().position(|id| *id == broker);
        at.and_then(|at| self.directories.get(at)).copied().unwrap_or_default()
    }

    /// Whether `broker`'s replica is in one of the directories `online`, as far as is known.
    pub fn is_in(&self, broker: BrokerId, online: &[Uuid]) -> bool {
        let directory = self.directory_of(broker);
        directory.is_nil() || online.is_empty() || online.contains(&directory)
    }
}

/// What kind of thing a config belongs to. The numbers are Kafka's `ConfigResource.Type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConfigKind {
    Topic = 2,
    Broker = 4,
    BrokerLogger = 8,
    ClientMetrics = 16,
    Group = 32,
}

impl ConfigKind {
    /// `None` for a number that stands for no kind.
    pub fn from_number(number: i8) -> Option<Self> {
        Some(match number {
            2 => Self::Topic,
            4 => Self::Broker,
            8 => Self::BrokerLogger,
            16 => Self::ClientMetrics,
            32 => Self::Group,
            _ => return None,
        })
    }
}

/// One thing that has configs; a broker's name is its id in decimal, empty for the default that
/// holds for all brokers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigResource {
    pub kind: ConfigKind,
    pub name: Arc<str>,
}

impl ConfigResource {
    pub fn topic(name: impl Into<Arc<str>>) -> Self {
        Self { kind: ConfigKind::Topic, name: name.into() }
    }

    pub fn broker(id: BrokerId) -> Self {
        Self { kind: ConfigKind::Broker, name: id.to_string().into() }
    }

    /// The dynamic default of all brokers.
    pub fn all_brokers() -> Self {
        Self { kind: ConfigKind::Broker, name: "".into() }
    }

    pub fn group(id: impl Into<Arc<str>>) -> Self {
        Self { kind: ConfigKind::Group, name: id.into() }
    }
}

impl Image {
    /// Registered brokers, fenced ones included, by ascending id.
    pub fn brokers(&self) -> impl Iterator<Item = &Arc<Broker>> {
        self.brokers.values()
    }

    pub fn broker(&self, id: BrokerId) -> Option<&Arc<Broker>> {
        self.brokers.get(&id)
    }

    /// Whether `broker` serves and the directory of its replica of `partition` is online.
    pub fn has_online_replica(&self, partition: &Partition, broker: BrokerId) -> bool {
        let node = self.broker(broker).filter(|node| !node.is_fenced);
        node.is_some_and(|node| partition.is_in(broker, &node.log_dirs))
    }

    /// Brokers that clients are told of: registered, not fenced; by ascending id.
    pub fn alive_brokers(&self) -> impl Iterator<Item = &Arc<Broker>> {
        self.brokers.values().filter(|broker| !broker.is_fenced)
    }

    pub fn topics(&self) -> &Topics {
        &self.topics
    }

    /// Shorthand for [`Topics::named`].
    pub fn topic(&self, name: &str) -> Option<&Arc<Topic>> {
        self.topics.named(name)
    }

    /// A resource's own settings; `None` when it has none.
    pub fn configs(&self, resource: &ConfigResource) -> Option<&Arc<Configs>> {
        self.configs.get(resource)
    }

    /// A topic's own settings; `None` when it has none.
    pub fn topic_configs(&self, name: &str) -> Option<&Arc<Configs>> {
        self.configs.get(&ConfigResource::topic(name))
    }

    /// All resources with settings of their own, in order of kind and name.
    pub fn configured(&self) -> impl Iterator<Item = (&ConfigResource, &Arc<Configs>)> {
        self.configs.iter()
    }

    /// Finalized features with a level above 0, by name.
    pub fn features(&self) -> impl Iterator<Item = (&Arc<str>, i16)> {
        self.features.iter().map(|(name, level)| (name, *level))
    }

    /// The finalized level of a feature, 0 when absent.
    pub fn feature(&self, name: &str) -> i16 {
        self.features.get(name).copied().unwrap_or(0)
    }

    /// The first producer id that was never handed out.
    pub fn next_producer_id(&self) -> i64 {
        self.producer_ids.map_or(0, |block| block.next)
    }
}

impl Topics {
    pub fn named(&self, name: &str) -> Option<&Arc<Topic>> {
        self.by_id.get(self.ids.get(name)?)
    }

    pub fn id(&self, name: &str) -> Option<TopicId> {
        self.ids.get(name).copied()
    }

    pub fn by_id(&self, id: TopicId) -> Option<&Arc<Topic>> {
        self.by_id.get(&id)
    }

    /// By name, ascending.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.ids.values().filter_map(|id| self.by_id.get(id))
    }

    /// Names, ascending.
    pub fn names(&self) -> impl Iterator<Item = &TopicName> {
        self.ids.keys()
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }
}

impl Topic {
    pub fn partition(&self, index: i32) -> Option<&Arc<Partition>> {
        self.partitions.get(&index)
    }

    /// Number of partitions.
    pub fn partition_count(&self) -> i32 {
        self.partitions.len() as i32
    }

    /// Replicas of the first partition, as Kafka reports a topic's replication factor.
    pub fn replication_factor(&self) -> usize {
        self.partitions.get(&0).map_or(0, |partition| partition.replicas.len())
    }

    /// One of Kafka's own topics, which clients may read but not produce to.
    pub fn is_internal(&self) -> bool {
        is_internal(&self.name)
    }
}

/// Whether `name` is one of the topics that Kafka keeps its own state in.
pub fn is_internal(name: &str) -> bool {
    matches!(name, "__consumer_offsets" | "__transaction_state" | "__share_group_state")
}
