//! Where the errors of the rooms become Kafka's codes: the only file that knows both sides. No `_`
//! arm: a new variant is decided here.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::shape::{text, text_option};
use super::{Broker, Unanswered};
use crate::controller::{BrokerFault, ProducerIdsError, Refusal as ControllerRefusal};
use crate::coordinator::group::consumer::ConsumerFault;
use crate::coordinator::group::{ClientFault as GroupFault, GroupError, NotNow as GroupNotNow};
use crate::machine::{AskError, ProducerFault};
use crate::metadata::Image;
use crate::protocol::StrBytes;
use crate::protocol::batch::BatchError;
use crate::protocol::error::ErrorCode;
use crate::replica::{NotNow, Refusal, ReplicaError, SessionError};
use crate::storage::ClientFault as LogFault;

/// What a group request is answered with.
pub fn group_code(error: &GroupError) -> ErrorCode {
    match error {
        GroupError::Client(fault) => group_fault_code(fault),
        GroupError::NotNow(not_now) => match not_now {
            GroupNotNow::MemberIdRequired => ErrorCode::MemberIdRequired,
            GroupNotNow::RebalanceInProgress => ErrorCode::RebalanceInProgress,
            GroupNotNow::UnstableOffset => ErrorCode::UnstableOffsetCommit,
            GroupNotNow::Loading => ErrorCode::CoordinatorLoadInProgress,
            GroupNotNow::NotCoordinator => ErrorCode::NotCoordinator,
            GroupNotNow::NotAvailable => ErrorCode::CoordinatorNotAvailable,
        },
        GroupError::Consumer(fault) => consumer_fault_code(fault),
        GroupError::Producer(fault) => producer_code(*fault),
        GroupError::TooLarge { .. } => ErrorCode::UnknownServerError,
    }
}

/// A log takes nothing of a producer.
fn producer_code(fault: ProducerFault) -> ErrorCode {
    match fault {
        ProducerFault::StaleEpoch => ErrorCode::InvalidProducerEpoch,
        ProducerFault::StaleCoordinator => ErrorCode::TransactionCoordinatorFenced,
        ProducerFault::NoTransaction => ErrorCode::InvalidTxnState,
    }
}

fn consumer_fault_code(fault: &ConsumerFault) -> ErrorCode {
    match fault {
        ConsumerFault::InvalidRequest(_) => ErrorCode::InvalidRequest,
        ConsumerFault::UnsupportedAssignor { .. } => ErrorCode::UnsupportedAssignor,
        ConsumerFault::InvalidRegex { .. } => ErrorCode::InvalidRegularExpression,
        ConsumerFault::GroupNotFound(_) => ErrorCode::GroupIdNotFound,
        ConsumerFault::UnknownMember { .. } | ConsumerFault::UnknownInstance(_) => {
            ErrorCode::UnknownMemberId
        }
        ConsumerFault::Fenced { .. } | ConsumerFault::UnknownState => ErrorCode::FencedMemberEpoch,
        ConsumerFault::GroupFull(_) => ErrorCode::GroupMaxSizeReached,
        ConsumerFault::InstanceUnreleased { .. } => ErrorCode::UnreleasedInstanceId,
        ConsumerFault::InstanceFenced { .. } => ErrorCode::FencedInstanceId,
        ConsumerFault::StaleEpoch(_) => ErrorCode::StaleMemberEpoch,
        ConsumerFault::CommitTooOld => ErrorCode::UnsupportedVersion,
        ConsumerFault::Assignor(_) => ErrorCode::UnknownServerError,
    }
}

fn group_fault_code(fault: &GroupFault) -> ErrorCode {
    match fault {
        GroupFault::InvalidGroupId => ErrorCode::InvalidGroupId,
        GroupFault::InvalidSessionTimeout { .. } => ErrorCode::InvalidSessionTimeout,
        GroupFault::UnknownMember | GroupFault::PendingMemberWithInstance => {
            ErrorCode::UnknownMemberId
        }
        GroupFault::IllegalGeneration { .. } => ErrorCode::IllegalGeneration,
        GroupFault::FencedInstance => ErrorCode::FencedInstanceId,
        GroupFault::InconsistentProtocol => ErrorCode::InconsistentGroupProtocol,
        GroupFault::GroupFull { .. } => ErrorCode::GroupMaxSizeReached,
        GroupFault::GroupNotFound(_) | GroupFault::NotClassic(_) => ErrorCode::GroupIdNotFound,
        GroupFault::GroupNotEmpty => ErrorCode::NonEmptyGroup,
        GroupFault::NameTooLong => ErrorCode::InvalidRequest,
        GroupFault::SubscribedToTopic => ErrorCode::GroupSubscribedToTopic,
        GroupFault::MetadataTooLarge => ErrorCode::OffsetMetadataTooLarge,
        GroupFault::UnknownTopicOrPartition => ErrorCode::UnknownTopicOrPartition,
        GroupFault::UnknownTopicId(_) => ErrorCode::UnknownTopicId,
    }
}

/// The code of an outcome: 0 for success.
pub fn group_outcome<T>(outcome: &Result<T, GroupError>) -> i16 {
    outcome.as_ref().err().map_or(ErrorCode::None, group_code) as i16
}

/// The controller was not asked, or its answer was lost.
pub fn ask_code(error: &Unanswered) -> ErrorCode {
    match error {
        Unanswered::Controller(AskError::NotReady(_) | AskError::Loading | AskError::Lost) => {
            ErrorCode::NotController
        }
        // The controller writes for no producer.
        Unanswered::Controller(AskError::Refused(fault)) => producer_code(*fault),
        Unanswered::TimedOut => ErrorCode::RequestTimedOut,
    }
}

/// The controller said no to one item.
pub fn controller_code(refusal: &ControllerRefusal) -> ErrorCode {
    match refusal {
        ControllerRefusal::TopicExists(_) => ErrorCode::TopicAlreadyExists,
        ControllerRefusal::TopicName(_) => ErrorCode::InvalidTopicException,
        ControllerRefusal::UnknownTopic | ControllerRefusal::NoTopicToConfigure(_) => {
            ErrorCode::UnknownTopicOrPartition
        }
        ControllerRefusal::UnknownTopicId => ErrorCode::UnknownTopicId,
        ControllerRefusal::DeletionDisabled => ErrorCode::TopicDeletionDisabled,
        ControllerRefusal::Partitions(_) => ErrorCode::InvalidPartitions,
        ControllerRefusal::ReplicationFactor(_) => ErrorCode::InvalidReplicationFactor,
        ControllerRefusal::Assignment(_) => ErrorCode::InvalidReplicaAssignment,
        ControllerRefusal::Config(_) => ErrorCode::InvalidConfig,
        ControllerRefusal::Request(_) => ErrorCode::InvalidRequest,
        ControllerRefusal::TooLarge(_) => ErrorCode::PolicyViolation,
        ControllerRefusal::Feature(_) => ErrorCode::InvalidUpdateVersion,
        ControllerRefusal::Broker(fault) => match fault {
            BrokerFault::Duplicate => ErrorCode::DuplicateBrokerRegistration,
            BrokerFault::Feature { .. } => ErrorCode::UnsupportedVersion,
            BrokerFault::StaleEpoch { .. } => ErrorCode::StaleBrokerEpoch,
            BrokerFault::NotRegistered(_) => ErrorCode::BrokerIdNotRegistered,
            BrokerFault::ProducerIdsExhausted => ErrorCode::UnknownServerError,
        },
    }
}

/// Code and message of one resource's config change.
pub fn config_outcome(outcome: &Result<(), ControllerRefusal>) -> (ErrorCode, Option<String>) {
    match outcome {
        Ok(()) => (ErrorCode::None, None),
        Err(refusal) => (controller_code(refusal), Some(refusal.to_string())),
    }
}

/// No producer id can be given now; clients come back.
pub fn producer_ids_code(error: &ProducerIdsError) -> ErrorCode {
    match error {
        ProducerIdsError::NotNow(_) => ErrorCode::CoordinatorLoadInProgress,
        ProducerIdsError::Refused(refusal) => match controller_code(refusal) {
            ErrorCode::UnknownServerError => ErrorCode::UnknownServerError,
            _ => ErrorCode::CoordinatorLoadInProgress,
        },
    }
}

/// What a partition's refusal is answered with, Produce included.
pub fn replica_code(error: &ReplicaError) -> ErrorCode {
    match error {
        ReplicaError::Client(refusal) => refusal_code(refusal),
        ReplicaError::NotNow(not_now) => match not_now {
            NotNow::UnknownPartition => ErrorCode::UnknownTopicOrPartition,
            NotNow::NotLeader { .. } => ErrorCode::NotLeaderOrFollower,
            NotNow::FencedLeaderEpoch { .. } => ErrorCode::FencedLeaderEpoch,
            NotNow::UnknownLeaderEpoch { .. } => ErrorCode::UnknownLeaderEpoch,
            NotNow::TooFewReplicas { .. } | NotNow::Unverified => ErrorCode::NotEnoughReplicas,
            NotNow::TooFewReplicasAfter { .. } => ErrorCode::NotEnoughReplicasAfterAppend,
            NotNow::TimedOut => ErrorCode::RequestTimedOut,
            NotNow::OffsetNotAvailable => ErrorCode::OffsetNotAvailable,
            NotNow::Full => ErrorCode::KafkaStorageError,
        },
        ReplicaError::Offline => ErrorCode::KafkaStorageError,
        ReplicaError::Damaged => ErrorCode::CorruptMessage,
    }
}

fn refusal_code(refusal: &Refusal) -> ErrorCode {
    match refusal {
        Refusal::UnknownTopicId => ErrorCode::UnknownTopicId,
        Refusal::InconsistentTopicId => ErrorCode::InconsistentTopicId,
        Refusal::Acks(_) => ErrorCode::InvalidRequiredAcks,
        Refusal::InternalTopic => ErrorCode::InvalidTopicException,
        Refusal::Batch(error) => batch_code(error),
        Refusal::Log(fault) => log_code(fault),
        Refusal::OutOfRange { .. } | Refusal::Deleted => ErrorCode::OffsetOutOfRange,
        Refusal::NotDeletable => ErrorCode::PolicyViolation,
        Refusal::Lookup(_) => ErrorCode::UnsupportedVersion,
        Refusal::Twice(_) => ErrorCode::InvalidRequest,
        Refusal::Size(_) => ErrorCode::UnknownServerError,
        Refusal::NameTooLong => ErrorCode::InvalidTopicException,
        Refusal::UnknownDirectory(_) => ErrorCode::LogDirNotFound,
    }
}

fn batch_code(error: &BatchError) -> ErrorCode {
    match error {
        BatchError::Unreadable(_) | BatchError::Corrupt { .. } => ErrorCode::CorruptMessage,
        BatchError::TooLarge { .. } => ErrorCode::MessageTooLarge,
        BatchError::ZstdTooEarly { .. } => ErrorCode::UnsupportedCompressionType,
        BatchError::Invalid(_) => ErrorCode::InvalidRecord,
        BatchError::Records(faults) if faults.iter().any(|fault| fault.is_timestamp()) => {
            ErrorCode::InvalidTimestamp
        }
        BatchError::Records(_) => ErrorCode::InvalidRecord,
        BatchError::Undecodable(_) | BatchError::UnknownCodec(_) => ErrorCode::UnknownServerError,
    }
}

fn log_code(fault: &LogFault) -> ErrorCode {
    match fault {
        LogFault::OutOfRange { .. } => ErrorCode::OffsetOutOfRange,
        LogFault::OverSegment { .. } => ErrorCode::RecordListTooLarge,
        LogFault::OutOfOrderSequence { .. } => ErrorCode::OutOfOrderSequenceNumber,
        LogFault::StaleEpoch { .. } => ErrorCode::InvalidProducerEpoch,
        LogFault::InsideTransaction { .. } | LogFault::NoTransaction { .. } => {
            ErrorCode::InvalidTxnState
        }
        LogFault::StaleCoordinator { .. } => ErrorCode::TransactionCoordinatorFenced,
    }
}

/// AlterReplicaLogDirs says of a replica on another node that it is not available here.
pub fn move_code(error: &ReplicaError) -> ErrorCode {
    match replica_code(error) {
        ErrorCode::NotLeaderOrFollower => ErrorCode::ReplicaNotAvailable,
        code => code,
    }
}

/// ListOffsets before v5 does not know "not available yet".
pub fn list_offsets_code(error: &ReplicaError, version: i16) -> ErrorCode {
    match replica_code(error) {
        ErrorCode::OffsetNotAvailable if version < 5 => ErrorCode::LeaderNotAvailable,
        code => code,
    }
}

/// A Fetch is refused for its session.
pub fn session_code(error: &SessionError) -> ErrorCode {
    match error {
        SessionError::NotFound { .. } => ErrorCode::FetchSessionIdNotFound,
        SessionError::Epoch { .. } => ErrorCode::InvalidFetchSessionEpoch,
        SessionError::TopicIds { .. } => ErrorCode::FetchSessionTopicIdError,
    }
}

/// What Produce says of a partition that refused.
pub struct ProduceRefusal {
    pub code: ErrorCode,
    pub message: Option<String>,
    /// (number in the batch, why), for refused records (KIP-467).
    pub records: Vec<(i32, Option<String>)>,
}

/// `partition` as Kafka writes it, `topic-0`, for the sentences that name it.
pub fn produce_refusal(error: &ReplicaError, partition: &dyn std::fmt::Display) -> ProduceRefusal {
    let code = replica_code(error);
    let (message, records) = match error {
        ReplicaError::Client(Refusal::Batch(error)) => {
            let records = match error {
                BatchError::Records(faults) => {
                    let named = faults.iter();
                    named.map(|fault| (fault.batch_index, Some(fault.message(partition)))).collect()
                }
                _ => Vec::new(),
            };
            (error.message(partition), records)
        }
        ReplicaError::NotNow(NotNow::Unverified) => {
            (Some(NotNow::Unverified.to_string()), Vec::new())
        }
        _ => (None, Vec::new()),
    };
    ProduceRefusal { code, message, records }
}

/// Collects the leaders that refusals name, for the answer's endpoints (KIP-951).
pub struct Leaders<'a> {
    image: Arc<Image>,
    listener: &'a str,
    named: BTreeSet<i32>,
}

/// A broker's address on the asking listener.
pub struct NodeAddress {
    pub id: i32,
    pub host: StrBytes,
    pub port: i32,
    pub rack: Option<StrBytes>,
}

impl<'a> Leaders<'a> {
    pub fn new(broker: &Broker, listener: &'a str) -> Self {
        Self { image: broker.image(), listener, named: BTreeSet::new() }
    }

    /// The leader to go to and its epoch, when the refusal is that this broker is not it.
    pub fn of(&mut self, error: &ReplicaError) -> Option<(i32, i32)> {
        let ReplicaError::NotNow(NotNow::NotLeader { leader, epoch }) = error else { return None };
        let leader = leader.map_or(-1, |id| id.0);
        if leader >= 0 {
            self.named.insert(leader);
        }
        Some((leader, epoch.0))
    }

    pub fn endpoints(&self) -> impl Iterator<Item = NodeAddress> + '_ {
        self.named.iter().filter_map(|id| {
            let node = self.image.broker(crate::common::BrokerId(*id))?;
            let endpoint = node.endpoints.iter().find(|e| *e.name == *self.listener)?;
            Some(NodeAddress {
                id: *id,
                host: text(&endpoint.host),
                port: i32::from(endpoint.port),
                rack: text_option(node.rack.as_ref()),
            })
        })
    }
}
