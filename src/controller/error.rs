//! Why the controller refused an item. The texts are Kafka's: clients show them.

use crate::common::{BrokerId, TopicName};

/// A refusal, one variant per kind that clients tell apart (per Kafka error code, named in the
/// docs); what is inside says which rule. The client has to act unless the doc says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// TOPIC_ALREADY_EXISTS.
    #[error("Topic '{0}' already exists.")]
    TopicExists(TopicName),
    /// INVALID_TOPIC_EXCEPTION.
    #[error(transparent)]
    TopicName(#[from] NameFault),
    /// UNKNOWN_TOPIC_OR_PARTITION. CreatePartitions shows it without a message.
    #[error("This server does not host this topic-partition.")]
    UnknownTopic,
    /// UNKNOWN_TOPIC_OR_PARTITION, where configs are asked for.
    #[error("The topic '{0}' does not exist.")]
    NoTopicToConfigure(TopicName),
    /// UNKNOWN_TOPIC_ID.
    #[error("This server does not host this topic ID.")]
    UnknownTopicId,
    /// TOPIC_DELETION_DISABLED.
    #[error("Topic deletion is disabled.")]
    DeletionDisabled,
    /// INVALID_PARTITIONS.
    #[error(transparent)]
    Partitions(#[from] PartitionsFault),
    /// INVALID_REPLICATION_FACTOR.
    #[error(transparent)]
    ReplicationFactor(#[from] PlacementFault),
    /// INVALID_REPLICA_ASSIGNMENT.
    #[error(transparent)]
    Assignment(#[from] AssignmentFault),
    /// INVALID_CONFIG.
    #[error(transparent)]
    Config(#[from] ConfigFault),
    /// INVALID_REQUEST.
    #[error(transparent)]
    Request(#[from] RequestFault),
    /// POLICY_VIOLATION.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// INVALID_UPDATE_VERSION.
    #[error(transparent)]
    Feature(#[from] FeatureFault),
    /// See each variant.
    #[error(transparent)]
    Broker(#[from] BrokerFault),
}

/// What is wrong with a topic's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    #[error("Topic name is invalid: the empty string is not allowed")]
    Empty,
    #[error("Topic name is invalid: '{0}' is not allowed")]
    Dots(String),
    #[error("Topic name is invalid: the length of '{0}' is longer than the max allowed length 249")]
    TooLong(String),
    #[error(
        "Topic name is invalid: '{0}' contains one or more characters other than ASCII \
         alphanumerics, '.', '_' and '-'"
    )]
    Characters(String),
    /// Metric names cannot tell '.' from '_'.
    #[error("Topic '{name}' collides with existing topic: {existing}")]
    Collides { name: TopicName, existing: TopicName },
}

/// What is wrong with a number of partitions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartitionsFault {
    #[error("Number of partitions was set to an invalid non-positive value.")]
    NotPositive,
    #[error("Topic already has {0} partition(s).")]
    Same(i32),
    #[error("The topic {name} currently has {now} partition(s); {asked} would not be an increase.")]
    NoIncrease { name: TopicName, now: i32, asked: i32 },
}

/// Why replicas cannot be placed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlacementFault {
    #[error("Replication factor must be larger than 0, or -1 to use the default value.")]
    NotPositive,
    #[error(
        "Unable to replicate the partition {asked} time(s): The target replication factor of \
         {asked} cannot be reached because only {brokers} broker(s) are registered or some \
         brokers have all their log directories cordoned."
    )]
    TooFewBrokers { asked: i32, brokers: usize },
    /// An operator has to act: no broker is up.
    #[error(
        "Unable to replicate the partition {0} time(s): All brokers are currently fenced, or have \
         all their log directories cordoned."
    )]
    AllFenced(i32),
    /// An operator has to act: every broker is on its way out.
    #[error(
        "Unable to replicate the partition {0} time(s): All brokers are currently fenced or in \
         controlled shutdown."
    )]
    NoneActive(i32),
}

/// What is wrong with a manual assignment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AssignmentFault {
    #[error("partitions should be a consecutive 0-based integer sequence")]
    Gap,
    #[error("Found multiple manual partition assignments for partition {0}")]
    Twice(i32),
    #[error("The manual partition assignment includes an empty replica list.")]
    Empty,
    #[error(
        "The manual partition assignment includes broker {0}, but no such broker is registered."
    )]
    UnknownBroker(BrokerId),
    #[error(
        "The manual partition assignment includes broker {0}, but all its log directories are \
         cordoned."
    )]
    Cordoned(BrokerId),
    #[error("The manual partition assignment includes the broker {0} more than once.")]
    BrokerTwice(BrokerId),
    #[error(
        "The manual partition assignment includes a partition with {found} replica(s), but this \
         is not consistent with previous partitions, which have {expected} replica(s)."
    )]
    Uneven { found: usize, expected: usize },
    #[error(
        "All brokers specified in the manual partition assignment for partition {0} are fenced or \
         in controlled shutdown."
    )]
    AllFenced(i32),
    #[error(
        "Attempted to add {asked} additional partition(s), but only {given} assignment(s) were \
         specified."
    )]
    Count { asked: i32, given: usize },
}

/// What is wrong with a config change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigFault {
    /// Said by the rules of the config room; the text is Kafka's.
    #[error("{0}")]
    Value(String),
    #[error("Null value not supported for topic configs: {0}")]
    NullOnCreate(String),
    #[error("Can't {operation} to key {key} because its type is not LIST.")]
    NotAList { operation: &'static str, key: String },
    #[error("Config value {operation} is not allowed for config key: {key}")]
    NotABrokerList { operation: &'static str, key: String },
    #[error(
        "The configuration value cannot be added because it exceeds the maximum value size of \
         32767 bytes."
    )]
    TooLong,
    #[error("Broker-level min.insync.replicas cannot be altered while ELR is enabled.")]
    MinIsrOfOneBroker,
    #[error("Cluster-level min.insync.replicas cannot be removed while ELR is enabled.")]
    MinIsrRemoved,
    /// Ottla has no loggers of Kafka's names.
    #[error("Logger {0} does not exist!")]
    NoLogger(String),
}

/// What makes no sense as a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestFault {
    #[error("Duplicate topic name.")]
    DuplicateTopic,
    #[error("Duplicate topic id.")]
    DuplicateTopicId,
    #[error("The provided topic name maps to an ID that was already supplied.")]
    NameAndItsId,
    #[error("You may not specify both topic name and topic id.")]
    BothNameAndId,
    #[error("Neither topic name nor id were specified.")]
    NeitherNameNorId,
    #[error("Creation of internal topic {0} is prohibited.")]
    MetadataTopic(TopicName),
    #[error(
        "A manual partition assignment was specified, but replication factor was not set to -1."
    )]
    AssignmentAndReplication,
    #[error("A manual partition assignment was specified, but numPartitions was not set to -1.")]
    AssignmentAndPartitions,
    #[error("Each resource must appear at most once.")]
    DuplicateResource,
    #[error("Error due to duplicate config keys")]
    DuplicateKey,
    #[error("Null value not supported for : {0}")]
    NullValue(String),
    #[error("Unknown resource type {0}")]
    UnknownResource(i8),
    #[error("Unknown config operation {0}")]
    UnknownOperation(i8),
    #[error("Default {0} resources are not allowed.")]
    DefaultResource(&'static str),
    #[error("Subscription name can't be empty")]
    EmptySubscription,
    #[error("Node id must be an integer, but it is: {0}")]
    NodeIdNotANumber(String),
    #[error("Unexpected broker id, expected {expected}, but received {received}")]
    OtherBroker { expected: BrokerId, received: i32 },
    #[error("Unexpected node id. Expected {expected}, but received {received}")]
    OtherNode { expected: BrokerId, received: i32 },
    #[error("{0} operation is not allowed for the BROKER_LOGGER resource")]
    LoggerOperation(&'static str),
    /// Said by the rules of the config room about a broker's configs; the text is Kafka's.
    #[error("{0}")]
    BrokerConfig(String),
    #[error("No directories specified in request")]
    NoDirectories,
    #[error("Reserved directory ID in request")]
    ReservedDirectory,
    #[error("Duplicate directory ID in request")]
    DuplicateDirectory,
}

/// What would be too much for one batch of records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    #[error("Excessively large number of partitions per request.")]
    Partitions,
    #[error("Excessively large number of additional partitions per request.")]
    AdditionalPartitions,
    #[error("Unable to perform excessively large batch operation.")]
    Batch,
}

/// Why a feature cannot have a level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FeatureFault {
    #[error("Invalid update version {level} for feature {feature}. {why}")]
    Level { feature: String, level: i16, why: LevelFault },
    #[error(
        "Unsupported metadata.version downgrade from {from} to {to}. Refusing to perform the \
         requested downgrade because it might delete metadata information."
    )]
    LossyDowngrade { from: i16, to: i16 },
    /// The same with the loss accepted.
    #[error(
        "Unsupported metadata.version downgrade from {from} to {to}. Unsafe metadata downgrade is \
         not supported in this version."
    )]
    AcceptedLoss { from: i16, to: i16 },
}

/// What is wrong with a feature's new level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LevelFault {
    #[error("The controller does not support the given upgrade type.")]
    UnknownType,
    #[error("A feature version cannot be less than 0.")]
    Negative,
    #[error("{role} {id} does not support this feature.")]
    NotSupported { role: &'static str, id: i32 },
    #[error("{role} {id} only supports versions {min}-{max}")]
    OutOfRange { role: &'static str, id: i32, min: i16, max: i16 },
    #[error(
        "Can't downgrade the version of this feature without setting the upgrade type to either \
         safe or unsafe downgrade."
    )]
    DownNotAllowed,
    #[error("Can't downgrade to a newer version.")]
    DownToNewer,
    #[error("Feature {0} not found.")]
    UnknownFeature(String),
    #[error(
        "{feature} could not be set to {level} because it depends on metadata.version level \
         {metadata}"
    )]
    Needs { feature: &'static str, level: i16, metadata: i16 },
}

/// What a broker did wrong, or what is wrong with a broker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BrokerFault {
    /// DUPLICATE_BROKER_REGISTRATION: the operator gave an id twice, or the broker must wait for
    /// its former session to end.
    #[error(
        "Another broker is registered with that broker id. If the broker was recently restarted \
         this should self-resolve once the heartbeat manager expires the broker's session."
    )]
    Duplicate,
    /// UNSUPPORTED_VERSION: the operator must upgrade the broker.
    #[error(
        "Unable to register because the broker does not support finalized version {level} of \
         {feature}. The broker wants a version between {min} and {max}, inclusive."
    )]
    Feature { feature: String, level: i16, min: i16, max: i16 },
    /// STALE_BROKER_EPOCH: the broker must register again.
    #[error("Expected broker epoch {expected}, but got broker epoch {found}")]
    StaleEpoch { expected: i64, found: i64 },
    /// STALE_BROKER_EPOCH where the broker acts, BROKER_ID_NOT_REGISTERED where an operator
    /// unregisters it.
    #[error("No broker registration found for broker id {0}")]
    NotRegistered(BrokerId),
    /// UNKNOWN_SERVER_ERROR: nobody can act.
    #[error(
        "Exhausted all producerIds as the next block's end producerId has exceeded the int64 type \
         limit"
    )]
    ProducerIdsExhausted,
}
