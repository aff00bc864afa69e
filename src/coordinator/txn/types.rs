//! What the transaction coordinator is asked and what it answers, free of the protocol.

use imbl::OrdSet;
use regex::Regex;

use crate::common::{ProducerEpoch, ProducerId, TopicPartition, TransactionalId};
use crate::coordinator::pattern::compile;
use crate::machine::Position;

/// A producer in one of its incarnations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    pub id: ProducerId,
    pub epoch: ProducerEpoch,
}

impl Owner {
    pub const fn new(id: i64, epoch: i16) -> Self {
        Self { id: ProducerId(id), epoch: ProducerEpoch(epoch) }
    }

    /// The last epoch that a client may have; the one above it is left for fencing.
    const LAST_EPOCH: i16 = i16::MAX - 1;

    pub fn is_exhausted(self) -> bool {
        self.epoch.0 >= Self::LAST_EPOCH
    }

    pub fn is_last(self) -> bool {
        self.epoch.0 == Self::LAST_EPOCH
    }

    /// The next incarnation; the highest epoch has none.
    pub fn bumped(self) -> Self {
        Self { epoch: ProducerEpoch(self.epoch.0.saturating_add(1)), ..self }
    }

    pub fn precedes(self, other: Self) -> bool {
        self.epoch.0.checked_add(1) == Some(other.epoch.0)
    }
}

/// The states that are written down, by their numbers in the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TxnState {
    Empty = 0,
    Ongoing = 1,
    PrepareCommit = 2,
    PrepareAbort = 3,
    CompleteCommit = 4,
    CompleteAbort = 5,
}

impl TxnState {
    const ALL: [Self; 6] = [
        Self::Empty,
        Self::Ongoing,
        Self::PrepareCommit,
        Self::PrepareAbort,
        Self::CompleteCommit,
        Self::CompleteAbort,
    ];

    pub fn from_number(number: i8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as i8 == number)
    }

    /// As clients see and filter by it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Ongoing => "Ongoing",
            Self::PrepareCommit => "PrepareCommit",
            Self::PrepareAbort => "PrepareAbort",
            Self::CompleteCommit => "CompleteCommit",
            Self::CompleteAbort => "CompleteAbort",
        }
    }

    /// What its markers say, while they are owed.
    pub fn prepared(self) -> Option<bool> {
        match self {
            Self::PrepareCommit => Some(true),
            Self::PrepareAbort => Some(false),
            _ => None,
        }
    }

    /// Of a transaction that is to end.
    pub fn prepare(commit: bool) -> Self {
        if commit { Self::PrepareCommit } else { Self::PrepareAbort }
    }

    /// Of a transaction whose markers are all written.
    pub fn complete(commit: bool) -> Self {
        if commit { Self::CompleteCommit } else { Self::CompleteAbort }
    }
}

/// The level of `transaction.version` that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ClientVersion(pub i16);

impl ClientVersion {
    /// Each end of a transaction gives the client a new epoch (KIP-890).
    pub fn bumps_epoch(self) -> bool {
        self.0 >= 2
    }
}

/// InitProducerId with a transactional id.
#[derive(Debug, Clone)]
pub struct InitProducer {
    pub transactional_id: TransactionalId,
    pub timeout_ms: i32,
    /// Who the client has been so far (KIP-360).
    pub expected: Option<Owner>,
    /// A producer id that nobody has, if the last answer was [`super::TxnAnswer::NeedsProducerId`].
    pub fresh: Option<ProducerId>,
}

/// AddPartitionsToTxn, AddOffsetsToTxn.
#[derive(Debug, Clone)]
pub struct AddPartitions {
    pub transactional_id: TransactionalId,
    pub owner: Owner,
    pub partitions: OrdSet<TopicPartition>,
    pub client: ClientVersion,
}

/// AddPartitionsToTxn of a broker that is about to append (KIP-890).
#[derive(Debug, Clone)]
pub struct VerifyPartitions {
    pub transactional_id: TransactionalId,
    pub owner: Owner,
    pub partitions: Vec<TopicPartition>,
}

/// EndTxn.
#[derive(Debug, Clone)]
pub struct EndTxn {
    pub transactional_id: TransactionalId,
    pub owner: Owner,
    pub commit: bool,
    pub client: ClientVersion,
    /// As in [`InitProducer`].
    pub fresh: Option<ProducerId>,
}

/// Markers that are owed to the partitions of a prepared transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Markers {
    pub transactional_id: TransactionalId,
    /// Where the record stands that prepared it: no other transaction has that one.
    pub at: Position,
    pub owner: Owner,
    pub commit: bool,
    pub partitions: OrdSet<TopicPartition>,
    /// Epoch of the leader that owes them.
    pub coordinator_epoch: i32,
    pub client: ClientVersion,
}

/// Which transactions ListTransactions wants; an empty list wants all.
#[derive(Debug, Clone, Default)]
pub struct TxnFilter {
    pub states: Vec<TxnState>,
    pub producer_ids: Vec<ProducerId>,
    /// Ongoing for longer than this; negative: however long.
    pub longer_than_ms: i64,
    /// The transactional id as a whole matches it (KIP-1152).
    pub pattern: Option<Regex>,
}

impl TxnFilter {
    /// # Errors
    /// What is wrong with the expression.
    pub fn pattern(text: &str) -> Result<Regex, String> {
        compile(text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTxn {
    pub transactional_id: TransactionalId,
    pub producer_id: ProducerId,
    pub state: TxnState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedTxn {
    pub owner: Owner,
    pub state: TxnState,
    pub timeout_ms: i32,
    /// -1: none has begun.
    pub start_ms: i64,
    pub partitions: OrdSet<TopicPartition>,
}
