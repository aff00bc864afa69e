//! Why a batch is refused, by what the sender can do about it.

use std::fmt::{self, Display};

/// Why a batch is not taken, or cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The first bytes are no batch: a size or magic that no version knows. A request holding
    /// one is refused for all of its partitions, as corrupt (so does Kafka).
    #[error("no record batch: {0}")]
    Unreadable(Unreadable),
    /// Damaged on the way; the same bytes sent again may be whole.
    #[error("record batch is corrupt: size {size_bytes}, stored crc {crc}")]
    Corrupt { size_bytes: usize, crc: u32 },
    /// Over `max.message.bytes`, as compressed.
    #[error("record batch of {size_bytes} bytes, at most {max_bytes} are allowed")]
    TooLarge { size_bytes: usize, max_bytes: usize },
    /// zstd in a Produce version that does not know it.
    #[error("Produce v{version} may not hold zstd batches")]
    ZstdTooEarly { version: i16 },
    /// Against the format's rules; will fail again.
    #[error("invalid record batch: {0}")]
    Invalid(#[from] Invalid),
    /// Single records are against the topic's rules; named for the producer (KIP-467).
    #[error("{} records rejected, the first is number {}", .0.len(), .0[0].batch_index)]
    Records(Vec<RecordFault>),
    /// The payload does not decompress, or its codec is unknown. Kafka has no code for this but
    /// "unknown server error".
    #[error("cannot decode the records: {0}")]
    Undecodable(String),
    /// A codec number that no version knows. Kafka has no code for this either.
    #[error("compression type {0} is unknown")]
    UnknownCodec(i16),
}

/// See [`BatchError::Unreadable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("size {0} is below that of any record")]
    Size(i32),
    #[error("magic {0} is unknown")]
    Magic(i8),
}

/// Which rule of the format a batch breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("no batch")]
    NoBatch,
    #[error("more than one batch")]
    ManyBatches,
    #[error("magic {0} instead of 2")]
    Magic(i8),
    #[error("base offset {0} instead of 0")]
    BaseOffset(i64),
    #[error("last offset delta {0}")]
    OffsetRange(i32),
    #[error("{0} records")]
    Count(i32),
    #[error("last offset delta {last_offset_delta} with {count} records")]
    OffsetsAndCount { last_offset_delta: i32, count: i32 },
    #[error("a client may not write control records")]
    Control,
    #[error("sequence {0} with a producer id")]
    Sequence(i32),
    #[error("record {index}: {what}")]
    Record { index: i32, what: &'static str },
    #[error("bytes are left after the last record")]
    Trailing,
}

/// One record that a topic's rules refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordFault {
    /// Which record of the batch, from 0.
    pub batch_index: i32,
    pub kind: RecordFaultKind,
}

/// What a record did wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFaultKind {
    /// No key on a compacted topic.
    NullKey,
    /// CreateTime outside `message.timestamp.before.max.ms` / `.after.max.ms`.
    Timestamp { timestamp: i64, offset: i64, earliest: i64, latest: i64 },
    /// The producer set the LogAppendTime bit itself.
    AppendTime { offset: i64, timestamp: i64, key: i32, value: i32, compressed: bool },
}

impl RecordFault {
    pub fn is_timestamp(&self) -> bool {
        !matches!(self.kind, RecordFaultKind::NullKey)
    }

    /// What Kafka tells the producer of this record.
    pub fn message(&self, partition: &dyn Display) -> String {
        use RecordFaultKind::{AppendTime, NullKey, Timestamp};
        match self.kind {
            NullKey => format!(
                "Compacted topic cannot accept message without key in topic partition {partition}"
            ),
            Timestamp { timestamp, offset, earliest, latest } => format!(
                "Timestamp {timestamp} of message with offset {offset} is out of range. \
                 The timestamp should be within [{earliest}, {latest}]"
            ),
            AppendTime { offset, timestamp, key, value, compressed } => format!(
                "Invalid timestamp type in message {}DefaultRecord(offset={offset}, \
                 timestamp={timestamp}, key={} bytes, value={} bytes). Producer should not set \
                 timestamp type to LogAppendTime.",
                if compressed { "Partial" } else { "" },
                key.max(0),
                value.max(0),
            ),
        }
    }
}

impl BatchError {
    /// The sentence that Kafka answers for the partition, where it answers one.
    pub fn message(&self, partition: &dyn Display) -> Option<String> {
        let faults = match self {
            Self::Records(faults) => faults,
            Self::Unreadable(Unreadable::Magic(magic)) => {
                return Some(format!("Invalid magic found in record: {magic}"));
            }
            Self::Unreadable(Unreadable::Size(size)) => {
                return Some(format!(
                    "Record size {size} is less than the minimum record overhead (14)"
                ));
            }
            _ => return None,
        };
        if faults.iter().any(RecordFault::is_timestamp) {
            return Some(
                "One or more records have been rejected due to invalid timestamp".to_owned(),
            );
        }
        let shown: Vec<String> =
            faults.iter().take(3).map(|fault| Shown(fault, partition).to_string()).collect();
        Some(format!(
            "One or more records have been rejected due to {} record errors in total, and only \
             showing the first three errors at most: [{}]",
            faults.len(),
            shown.join(", ")
        ))
    }
}

struct Shown<'a>(&'a RecordFault, &'a dyn Display);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(fault, partition) = self;
        let message = fault.message(partition);
        write!(f, "RecordError(batchIndex={}, message='{message}')", fault.batch_index)
    }
}
