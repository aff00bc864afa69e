//! Why a partition says no, by who has to act.

use crate::common::{BrokerId, LeaderEpoch, Offset};
use crate::protocol::batch::BatchError;
use crate::storage::{ClientFault, DiskError, StorageError};

/// Why a partition, or a request for one, is refused.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// The client did wrong; the same request will fail again.
    #[error(transparent)]
    Client(#[from] Refusal),
    /// Nobody did wrong; the same request can succeed later, here or elsewhere.
    #[error(transparent)]
    NotNow(#[from] NotNow),
    /// We failed: the log's directory does. Logged where it was taken offline.
    #[error("the partition's log is offline")]
    Offline,
    /// What was asked for cannot be read any more; the rest of the log can. Told where it was found.
    #[error("the records are damaged on the disk")]
    Damaged,
}

/// What a client asked that will not be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("there is no topic with this id")]
    UnknownTopicId,
    #[error("acks={0} is none of -1, 0, 1")]
    Acks(i16),
    #[error("an internal topic is written by its coordinator only")]
    InternalTopic,
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// Offsets out of range, sequences, producer epochs, segment size.
    #[error(transparent)]
    Log(#[from] ClientFault),
    #[error("offset {offset} is outside {start}..={end}")]
    OutOfRange { offset: Offset, start: Offset, end: Offset },
    #[error("the topic of this name has another id now")]
    InconsistentTopicId,
    #[error("the records were deleted while they were looked for")]
    Deleted,
    #[error("records of a compacted topic cannot be deleted")]
    NotDeletable,
    #[error("this lookup is not supported for offset {0}")]
    Lookup(i64),
    #[error("the request may not name partition {0} twice")]
    Twice(i32),
    #[error("the topic's name is too long for a move between log directories")]
    NameTooLong,
    #[error("`{0}` is not one of this node's log directories")]
    UnknownDirectory(String),
    /// A size that is none, in bytes.
    #[error("{0} is no size")]
    Size(i32),
}

/// Why the partition cannot do it now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotNow {
    /// May exist soon: clients ask for metadata and come back.
    #[error("there is no such topic or partition")]
    UnknownPartition,
    #[error("the leader is {leader:?} in epoch {epoch}")]
    NotLeader { leader: Option<BrokerId>, epoch: LeaderEpoch },
    #[error("the request knows leader epoch {asked}, the current one is {current}")]
    FencedLeaderEpoch { asked: LeaderEpoch, current: LeaderEpoch },
    #[error("the request knows leader epoch {asked}, this replica only {current}")]
    UnknownLeaderEpoch { asked: LeaderEpoch, current: LeaderEpoch },
    #[error("{in_sync} replicas are in sync, {needed} are needed")]
    TooFewReplicas { in_sync: usize, needed: usize },
    #[error("written, but only {in_sync} of {needed} replicas needed are in sync now")]
    TooFewReplicasAfter { in_sync: usize, needed: usize },
    #[error("not acknowledged in time")]
    TimedOut,
    #[error("the high watermark has not reached the leader's own epoch")]
    OffsetNotAvailable,
    #[error("the disk is full")]
    Full,
    /// Nobody can say whether the partition is part of the producer's transaction; the text is
    /// Kafka's.
    #[error(
        "Unable to verify the partition has been added to the transaction. Underlying error: \
         COORDINATOR_NOT_AVAILABLE"
    )]
    Unverified,
}

impl ReplicaError {
    pub(super) fn unknown() -> Self {
        NotNow::UnknownPartition.into()
    }

    /// What a reader is told of a file that could not be read.
    pub fn of_read(error: &DiskError) -> Self {
        match error.is_deleted() {
            true => Refusal::Deleted.into(),
            false if error.is_damage() => Self::Damaged,
            false => Self::Offline,
        }
    }

    /// Splits what storage says into the client's fault and ours.
    pub(super) fn of_storage(error: StorageError) -> Self {
        match error {
            StorageError::Client(ClientFault::OutOfRange { asked, start, end }) => {
                Refusal::OutOfRange { offset: asked, start, end }.into()
            }
            StorageError::Client(fault) => Refusal::Log(fault).into(),
            StorageError::Disk(error) if error.is_full() => NotNow::Full.into(),
            StorageError::Disk(error) if error.is_deleted() => Refusal::Deleted.into(),
            StorageError::Disk(_) | StorageError::Moved { .. } | StorageError::Operator(_) => {
                Self::Offline
            }
        }
    }
}

impl From<BatchError> for ReplicaError {
    fn from(error: BatchError) -> Self {
        Refusal::Batch(error).into()
    }
}
