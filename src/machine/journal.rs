//! The seam between a machine and where its records are kept: the metadata quorum, or a
//! partition that this broker leads.

use bytes::Bytes;
use tokio::sync::watch;

use crate::common::{Offset, ProducerEpoch, ProducerId, Proof};

/// The offset of a record in its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(pub Offset);

/// One record as the journal keeps it; a null value deletes its key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JournalRecord {
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
}

impl JournalRecord {
    /// Key and value, without what the batch adds around them (at most 30 bytes).
    pub fn size_bytes(&self) -> usize {
        self.key.as_ref().map_or(0, Bytes::len) + self.value.as_ref().map_or(0, Bytes::len)
    }
}

/// Which kind of batch a record stands in (TxnOffsetCommit and end markers reach
/// `__consumer_offsets` as the second and third kind).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    Plain,
    Transactional { producer_id: ProducerId, producer_epoch: ProducerEpoch },
    Marker { producer_id: ProducerId, producer_epoch: ProducerEpoch, commit: bool },
}

/// The kind of a batch that is to be written, with what the journal judges it by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Write {
    #[default]
    Plain,
    Transactional {
        producer_id: ProducerId,
        producer_epoch: ProducerEpoch,
        proof: Proof,
    },
    /// Ends the producer's transaction; such a batch has no records of its machine.
    Marker {
        producer_id: ProducerId,
        producer_epoch: ProducerEpoch,
        commit: bool,
        /// Of the transaction coordinator that ends it.
        coordinator_epoch: i32,
        /// Level of `transaction.version`: from 2 on the epoch is one above the transaction's.
        transaction_version: i16,
    },
}

impl Write {
    pub fn kind(self) -> EntryKind {
        match self {
            Self::Plain => EntryKind::Plain,
            Self::Transactional { producer_id, producer_epoch, .. } => {
                EntryKind::Transactional { producer_id, producer_epoch }
            }
            Self::Marker { producer_id, producer_epoch, commit, .. } => {
                EntryKind::Marker { producer_id, producer_epoch, commit }
            }
        }
    }
}

/// Why a log takes no batch of a producer; nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProducerFault {
    #[error("the producer epoch is below the current one")]
    StaleEpoch,
    #[error("the transaction coordinator's epoch is below the current one")]
    StaleCoordinator,
    #[error("the partition is in no open transaction of the producer")]
    NoTransaction,
}

/// A record on its way into a machine, with the kind of its batch; a marker has no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<R> {
    pub kind: EntryKind,
    pub record: Option<R>,
}

impl<R> Entry<R> {
    pub fn plain_of(record: R) -> Self {
        Self { kind: EntryKind::Plain, record: Some(record) }
    }

    /// The record of a journal that holds plain batches only.
    pub fn plain(self) -> R {
        match (self.kind, self.record) {
            (EntryKind::Plain, Some(record)) => record,
            (kind, _) => crate::common::broken_invariant(
                concat!(file!(), ":", line!()),
                "plain entry",
                &format!("a {kind:?} entry stands in a journal of plain records"),
            ),
        }
    }
}

/// One atomic append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub write: Write,
    pub records: Vec<JournalRecord>,
    /// CreateTime of every record, in milliseconds since the Unix epoch.
    pub timestamp_ms: i64,
}

impl Batch {
    /// What a batch takes beside its records.
    pub const HEADER_BYTES: usize = 61;

    /// An upper bound of the batch on disk: its header, at most 30 bytes around each record.
    pub fn size_bytes(&self) -> usize {
        let records = self.records.iter();
        Self::HEADER_BYTES + records.map(|record| record.size_bytes() + 30).sum::<usize>()
    }
}

/// A record read back, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadEntry {
    pub position: Position,
    pub kind: EntryKind,
    pub record: Option<JournalRecord>,
}

/// Whether this node may append, and under which epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Leadership {
    pub epoch: i32,
    pub leads: bool,
}

/// Why nothing may be decided now. Nothing has changed; the asker may try again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    #[error("this node does not lead the journal")]
    NotLeader,
    #[error("fewer in-sync replicas than min.insync.replicas")]
    TooFewReplicas,
    #[error("the journal's storage is offline or full")]
    Storage,
}

/// Why an append failed after the decision; the machine is dropped and rebuilt, unless its log
/// [refused](JournalError::Refused) a producer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    #[error("epoch {asked} is not the current leadership")]
    NotLeader { asked: i32 },
    #[error("the journal ends at {found}, the decision was made at {expected}")]
    Moved { expected: Offset, found: Offset },
    #[error("a batch of {found} records, at most {most} are allowed")]
    TooManyRecords { found: usize, most: usize },
    #[error("a batch of {size_bytes} bytes, at most {most_bytes} are allowed")]
    TooLarge { size_bytes: usize, most_bytes: usize },
    #[error("storage: {0}")]
    Storage(String),
    /// The machine stays: the decision is undone, who asked is told.
    #[error(transparent)]
    Refused(#[from] ProducerFault),
}

/// An ordered, replicated log of records with one writer, its `Runtime`.
pub trait Journal: Send + Sync + 'static {
    fn leadership(&self) -> watch::Receiver<Leadership>;

    /// # Errors
    /// [`NotReady`]: a retriable refusal.
    fn ready(&self) -> Result<(), NotReady>;

    /// Appends one batch whose first record gets offset `expected_base`; returns the new end.
    /// Appended is not committed: wait for [`Journal::committed`] to reach the end.
    ///
    /// # Errors
    /// [`JournalError`]; whether the batch is in the log is then unknown.
    fn append(
        &self,
        epoch: i32,
        expected_base: Offset,
        batch: Batch,
    ) -> Result<Offset, JournalError>;

    /// The first offset that is not committed.
    fn committed(&self) -> watch::Receiver<Offset>;

    /// The next offset to be written.
    fn end_offset(&self) -> Offset;

    /// Where reading starts.
    fn start_offset(&self) -> Offset;

    /// Largest batch that [`Journal::append`] takes, in bytes.
    fn batch_bytes_max(&self) -> usize;

    /// Entries from `from` on, in order, about `bytes_max` of them, at least one where there is
    /// one; empty at the end.
    ///
    /// # Errors
    /// [`JournalError::Storage`].
    fn read(&self, from: Offset, bytes_max: usize) -> Result<Vec<ReadEntry>, JournalError>;
}

/// Receives what the metadata quorum commits, on every node that is a member of it. Called by one
/// task, in order, and never beside itself; must not block.
pub trait CommitSink: Send + Sync + 'static {
    /// The next committed entries; told before [`Journal::committed`] passes them.
    fn committed(&self, entries: &[ReadEntry]);

    /// The whole state after the last entry told, as records that make it from nothing.
    fn snapshot(&self) -> Vec<JournalRecord>;

    /// Replaces the state by what these records make from nothing: that of the journal up to
    /// `end` (exclusive). Told at the start when there is a snapshot, and when this node was too
    /// far behind.
    fn install(&self, records: &[JournalRecord], end: Offset);
}
