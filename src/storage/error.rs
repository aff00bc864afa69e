//! Why the log engine says no, by who has to act.

use std::io;
use std::path::{Path, PathBuf};

use crate::common::{Offset, ProducerEpoch, ProducerId, TopicPartition};

/// Why the log engine says no.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The client did wrong; the same request will fail again.
    #[error(transparent)]
    Client(#[from] ClientFault),
    /// The writer decided on another end than the log's: it must read and decide again.
    #[error("the log ends at {found}, the batch was made for {expected}")]
    Moved { expected: Offset, found: Offset },
    /// The directory is not this node's to use; a person must choose.
    #[error(transparent)]
    Operator(#[from] OperatorFault),
    /// The disk failed. Nothing that was answered before is lost; what failed is not in the log.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// What a client asked that this log cannot do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClientFault {
    #[error("offset {asked} is not within {start}..={end}")]
    OutOfRange { asked: Offset, start: Offset, end: Offset },
    #[error("a batch of {size_bytes} bytes is over the segment size of {segment_bytes}")]
    OverSegment { size_bytes: usize, segment_bytes: usize },
    #[error("producer {producer_id}: sequence {sent} does not follow {last} (epoch {epoch})")]
    OutOfOrderSequence {
        producer_id: ProducerId,
        epoch: ProducerEpoch,
        sent: i32,
        /// Last sequence known under that epoch; -1 when there is none.
        last: i32,
    },
    #[error("producer {producer_id}: epoch {sent} is below {current}")]
    StaleEpoch { producer_id: ProducerId, sent: ProducerEpoch, current: ProducerEpoch },
    #[error("producer {producer_id}: the partition is in no open transaction of it")]
    NoTransaction { producer_id: ProducerId },
    #[error("producer {producer_id}: a plain write inside its open transaction")]
    InsideTransaction { producer_id: ProducerId },
    #[error("producer {producer_id}: marker of coordinator epoch {sent}, known is {current}")]
    StaleCoordinator { producer_id: ProducerId, sent: i32, current: i32 },
}

/// Why a directory cannot be used as a log directory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OperatorFault {
    #[error("log directory `{}` is used by another process", dir.display())]
    InUse { dir: PathBuf },
    #[error(
        "`{}` holds files (`{found}`) but no meta.properties: it is not a log directory, and an \
         empty one is needed to make one", dir.display()
    )]
    NotALogDirectory { dir: PathBuf, found: String },
    #[error("log directory `{}` belongs to cluster `{found}`, not `{asked}`", dir.display())]
    OtherCluster { dir: PathBuf, found: String, asked: String },
    #[error("log directory `{}` belongs to node {found}, not {asked}", dir.display())]
    OtherNode { dir: PathBuf, found: i32, asked: i32 },
    #[error("the topic name of {partition} is too long for a move between log directories")]
    NameTooLong { partition: TopicPartition },
    #[error("`{}`, line {line}: {what}", file.display())]
    Unreadable { file: PathBuf, line: usize, what: String },
}

/// The system refused a file operation, or a file holds what cannot be.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} `{}`: {source}", path.display())]
pub struct DiskError {
    pub doing: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

impl DiskError {
    /// No space is left: the directory is sound, and goes on when space returns.
    pub fn is_full(&self) -> bool {
        matches!(self.source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    /// The file holds what this engine never writes.
    pub fn damaged(path: &Path, what: impl Into<String>) -> Self {
        let source = io::Error::new(io::ErrorKind::InvalidData, what.into());
        Self { doing: "use", path: path.to_owned(), source }
    }

    /// The segment was deleted while a reader still held it.
    pub(super) fn deleted(path: &Path) -> Self {
        let source = io::Error::new(io::ErrorKind::NotFound, "the segment was deleted meanwhile");
        Self { doing: "use", path: path.to_owned(), source }
    }

    /// See [`DiskError::deleted`]; a file that is missing for another reason has a system's error.
    pub fn is_deleted(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound && self.source.raw_os_error().is_none()
    }

    pub fn is_damage(&self) -> bool {
        self.source.kind() == io::ErrorKind::InvalidData
    }
}

/// Says which file an I/O error is about.
pub(super) trait At<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T, DiskError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T, DiskError> {
        self.map_err(|source| DiskError { doing, path: path.to_owned(), source })
    }
}
