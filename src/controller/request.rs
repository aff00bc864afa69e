//! What the controller is asked, and what it answers.

use uuid::Uuid;

use super::error::Refusal;
use crate::common::{BrokerId, ProducerId, TopicId, TopicName};
use crate::config::ConfigRow;
use crate::metadata::{Endpoint, FeatureRange};

/// Everything that changes metadata.
#[derive(Debug, Clone)]
pub enum Request {
    CreateTopics(CreateTopics),
    DeleteTopics(DeleteTopics),
    CreatePartitions(CreatePartitions),
    AlterConfigs(AlterConfigs),
    ReplaceConfigs(ReplaceConfigs),
    RegisterBroker(RegisterBroker),
    Heartbeat(Heartbeat),
    UnregisterBroker(UnregisterBroker),
    AllocateProducerIds(AllocateProducerIds),
    AssignDirectories(AssignDirectories),
    FailDirectories(FailDirectories),
    UpdateFeatures(UpdateFeatures),
    /// From [`due`](crate::machine::Machine::due): a session is over.
    FenceSilent(BrokerId),
}

/// The answer to the request of the same name.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    CreateTopics(Vec<CreateTopicResult>),
    DeleteTopics(Vec<DeleteTopicResult>),
    CreatePartitions(Vec<TopicResult>),
    AlterConfigs(Vec<ConfigResult>),
    RegisterBroker(Result<Registered, Refusal>),
    Heartbeat(Result<BrokerState, Refusal>),
    UnregisterBroker(Result<(), Refusal>),
    AllocateProducerIds(Result<ProducerIdBlock, Refusal>),
    AssignDirectories(Result<usize, Refusal>),
    FailDirectories(Result<bool, Refusal>),
    UpdateFeatures(Result<(), Refusal>),
    /// Nobody waits for it.
    Fenced,
}

/// Topics to be made, each judged alone. Source: CreateTopics (key 19).
#[derive(Debug, Clone, Default)]
pub struct CreateTopics {
    pub topics: Vec<NewTopic>,
    /// Every check runs and the answers are the same, but nothing is made.
    pub validate_only: bool,
}

#[derive(Debug, Clone, Default)]
pub struct NewTopic {
    pub name: TopicName,
    /// -1: `num.partitions`, or as many as are assigned.
    pub partitions: i32,
    /// -1: `default.replication.factor`, or as assigned.
    pub replication_factor: i16,
    /// (partition, brokers); empty: the controller places.
    pub assignments: Vec<(i32, Vec<BrokerId>)>,
    pub configs: Vec<(String, Option<String>)>,
}

impl NewTopic {
    /// A topic with the broker's defaults.
    pub fn named(name: impl Into<TopicName>) -> Self {
        Self { name: name.into(), partitions: -1, replication_factor: -1, ..Self::default() }
    }
}

/// One per distinct name, in the order of the request.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTopicResult {
    pub name: TopicName,
    pub outcome: Result<CreatedTopic, Refusal>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CreatedTopic {
    /// Random, with `validate_only` too.
    pub id: TopicId,
    pub partitions: i32,
    pub replication_factor: i16,
    /// All configs that hold for it, ordered by name.
    pub configs: Vec<ConfigRow>,
}

/// Topics to be removed. Source: DeleteTopics (key 20).
#[derive(Debug, Clone, Default)]
pub struct DeleteTopics {
    pub topics: Vec<TopicReference>,
}

/// Either must be given, not both; the nil id counts as none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopicReference {
    pub name: Option<TopicName>,
    pub id: TopicId,
}

/// One per distinct name or id. With success both are filled.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteTopicResult {
    pub name: Option<TopicName>,
    pub id: TopicId,
    pub outcome: Result<(), Refusal>,
}

/// Topics that shall have more partitions. Source: CreatePartitions (key 37).
#[derive(Debug, Clone, Default)]
pub struct CreatePartitions {
    pub topics: Vec<MorePartitions>,
    pub validate_only: bool,
}

#[derive(Debug, Clone, Default)]
pub struct MorePartitions {
    pub name: TopicName,
    /// The new total.
    pub count: i32,
    /// Brokers per added partition; `None`: the controller places.
    pub assignments: Option<Vec<Vec<BrokerId>>>,
}

/// One per distinct name, in the order of the request.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicResult {
    pub name: TopicName,
    pub outcome: Result<(), Refusal>,
}

/// Edits of named config keys; each resource is changed whole or not at all.
/// Source: IncrementalAlterConfigs (key 44).
#[derive(Debug, Clone)]
pub struct AlterConfigs {
    /// The broker that took the request: configs of one broker are altered at that broker.
    pub at: BrokerId,
    pub resources: Vec<ConfigEdits>,
    pub validate_only: bool,
}

#[derive(Debug, Clone)]
pub struct ConfigEdits {
    /// The wire's number: an unknown one is refused like any other mistake.
    pub kind: i8,
    pub name: String,
    pub edits: Vec<ConfigEdit>,
}

#[derive(Debug, Clone)]
pub struct ConfigEdit {
    pub key: String,
    /// The wire's number: 0 set, 1 delete, 2 append, 3 subtract.
    pub operation: i8,
    pub value: Option<String>,
}

/// Complete settings of resources: keys not named fall back to their defaults.
/// Source: AlterConfigs (key 33), kept for old clients.
#[derive(Debug, Clone)]
pub struct ReplaceConfigs {
    /// See [`AlterConfigs::at`].
    pub at: BrokerId,
    pub resources: Vec<NewConfigs>,
    pub validate_only: bool,
}

#[derive(Debug, Clone)]
pub struct NewConfigs {
    /// See [`ConfigEdits::kind`].
    pub kind: i8,
    pub name: String,
    pub configs: Vec<(String, Option<String>)>,
}

/// One per entry of the request, in its order.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigResult {
    pub kind: i8,
    pub name: String,
    pub outcome: Result<(), Refusal>,
}

/// A broker's process says that it is there. Source: BrokerRegistration (key 62).
#[derive(Debug, Clone)]
pub struct RegisterBroker {
    pub id: BrokerId,
    /// Fresh at each start of the process.
    pub incarnation: Uuid,
    pub endpoints: Vec<Endpoint>,
    pub features: Vec<FeatureRange>,
    pub rack: Option<String>,
    pub log_dirs: Vec<Uuid>,
    /// From `.kafka_cleanshutdown`; -1 when the last stop was not clean or there was none.
    pub previous_broker_epoch: i64,
    /// Serve at once: the broker lives in this process and has applied all metadata. Otherwise
    /// it stays fenced until a heartbeat says that it has caught up.
    pub is_caught_up: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registered {
    pub broker_epoch: i64,
}

/// A broker is still there. Source: BrokerHeartbeat (key 63).
#[derive(Debug, Clone, Copy)]
pub struct Heartbeat {
    pub id: BrokerId,
    pub broker_epoch: i64,
    /// The last metadata offset that the broker has applied.
    pub metadata_offset: i64,
    pub wants_fence: bool,
    pub wants_shutdown: bool,
}

/// What a broker learns from its heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BrokerState {
    pub is_caught_up: bool,
    pub is_fenced: bool,
    /// Its leaderships are gone; it may stop.
    pub should_shut_down: bool,
}

/// An operator takes a broker out for good. Source: UnregisterBroker (key 64).
#[derive(Debug, Clone, Copy)]
pub struct UnregisterBroker {
    pub id: BrokerId,
}

/// A broker says which of its log directories its replicas are in. The answer counts those that
/// are known there now. Source: AssignReplicasToDirs (key 73).
#[derive(Debug, Clone)]
pub struct AssignDirectories {
    pub broker: BrokerId,
    pub broker_epoch: i64,
    /// (topic, partition, directory id); at most as many as one decision may change.
    pub replicas: Vec<(TopicId, i32, Uuid)>,
}

/// Log directories of a broker have failed. The answer says whether no partition names them any
/// more; else it is to be asked again. Source: `OfflineLogDirs` of BrokerHeartbeat (key 63).
#[derive(Debug, Clone)]
pub struct FailDirectories {
    pub broker: BrokerId,
    pub broker_epoch: i64,
    pub failed: Vec<Uuid>,
}

/// Finalized levels of features that shall change, all or none. Source: UpdateFeatures (key 57).
#[derive(Debug, Clone, Default)]
pub struct UpdateFeatures {
    pub updates: Vec<FeatureUpdate>,
    pub validate_only: bool,
}

#[derive(Debug, Clone)]
pub struct FeatureUpdate {
    pub feature: String,
    /// The new level; 0 takes the feature out.
    pub level: i16,
    /// The wire's number: 1 upgrade, 2 safe downgrade, 3 unsafe downgrade.
    pub upgrade_type: i8,
}

/// A broker needs a block of producer ids. Source: AllocateProducerIds (key 67).
#[derive(Debug, Clone, Copy)]
pub struct AllocateProducerIds {
    pub broker: BrokerId,
    pub broker_epoch: i64,
}

/// Ids `first..first + count` belong to the asking broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerIdBlock {
    pub first: ProducerId,
    pub count: i32,
}
