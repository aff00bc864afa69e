//! Kafka's rules for a batch that a client sends.

use bytes::Bytes;

use super::error::Unreadable;
use super::walk::{Seen, walk};
use super::{
    BatchBuilder, BatchError, BatchHeader, Codec, Compression, HEADER_BYTES, Invalid,
    LOG_OVERHEAD_BYTES, Producer, RecordFault, RecordFaultKind, TimestampType, crc_of, records,
};
use crate::common::{LeaderEpoch, NO_TIMESTAMP, Offset};

/// Size of the smallest record of the oldest format; a smaller batch length is noise.
const SMALLEST_RECORD_BYTES: i32 = 14;
/// Base offset, length, leader epoch, magic.
const UP_TO_MAGIC_BYTES: usize = 17;
/// First Produce version that may hold zstd (KIP-110).
const ZSTD_SINCE: i16 = 7;

/// A batch whose bytes are known to be whole and by the rules: a client's after [`check`], or one
/// that we built. Logs take nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedBatch {
    /// The whole batch and nothing more, as the producer sent it.
    pub bytes: Bytes,
    pub header: BatchHeader,
    /// Of the records, whatever the header says; -1 if none has a timestamp.
    pub max_timestamp: i64,
    /// Which record (the first such) has it.
    pub offset_delta_of_max_timestamp: i32,
}

impl CheckedBatch {
    /// The header to write before the untouched `bytes[HEADER_BYTES..]`.
    /// - `append_time_ms`: the time for LogAppendTime, `None` for CreateTime.
    pub fn patched_header(
        &self,
        base_offset: Offset,
        leader_epoch: LeaderEpoch,
        append_time_ms: Option<i64>,
    ) -> [u8; HEADER_BYTES] {
        self.header.patched(base_offset, leader_epoch, append_time_ms, self.max_timestamp)
    }
}

/// What a topic asks of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// `max.message.bytes`
    pub max_bytes: usize,
    /// `max.decompressed.message.bytes`: of a record in a compressed batch.
    pub max_record_bytes: i32,
    /// `cleanup.policy` has `compact`: every record needs a key.
    pub compacted: bool,
    /// `message.timestamp.type`
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`
    pub before_max_ms: i64,
    /// `message.timestamp.after.max.ms`
    pub after_max_ms: i64,
    pub now_ms: i64,
    /// `compression.type`; `None`: as the producer did.
    pub codec: Option<Codec>,
}

impl Rules {
    /// A topic with all defaults.
    pub fn defaults(now_ms: i64) -> Self {
        Self {
            max_bytes: 1_048_588,
            max_record_bytes: i32::MAX - 8,
            compacted: false,
            timestamp_type: TimestampType::CreateTime,
            before_max_ms: i64::MAX,
            after_max_ms: 3_600_000,
            now_ms,
            codec: None,
        }
    }
}

/// The only batch of a partition in a Produce request, header included, cut from bytes that
/// follow it without being a batch. Done for all partitions before the first append.
///
/// # Errors
/// [`BatchError::Unreadable`], [`BatchError::Invalid`], [`BatchError::ZstdTooEarly`],
/// [`BatchError::UnknownCodec`];
/// [`BatchError::Corrupt`] for a batch too small for its header.
pub fn shape(bytes: &Bytes, produce_version: i16) -> Result<Bytes, BatchError> {
    let size_bytes = first_size(bytes)?.ok_or(Invalid::NoBatch)?;
    let magic = bytes[UP_TO_MAGIC_BYTES - 1] as i8;
    if magic != 2 {
        return Err(Invalid::Magic(magic).into());
    }
    let header = BatchHeader::parse(&bytes[..size_bytes])?;
    if produce_version < ZSTD_SINCE && header.compression()? == Compression::Zstd {
        return Err(BatchError::ZstdTooEarly { version: produce_version });
    }
    match first_size(&bytes[size_bytes..]) {
        Ok(None) => Ok(bytes.slice(..size_bytes)),
        Ok(Some(_)) => Err(Invalid::ManyBatches.into()),
        Err(_) => Err(BatchError::Corrupt { size_bytes, crc: header.crc }),
    }
}

/// How long the batch at the front is; `None` when it is not all there.
fn first_size(bytes: &[u8]) -> Result<Option<usize>, BatchError> {
    let Some(length) = bytes.get(8..LOG_OVERHEAD_BYTES) else { return Ok(None) };
    let length = i32::from_be_bytes([length[0], length[1], length[2], length[3]]);
    if length < SMALLEST_RECORD_BYTES {
        return Err(BatchError::Unreadable(Unreadable::Size(length)));
    }
    let Some(magic) = bytes.get(UP_TO_MAGIC_BYTES - 1).map(|magic| *magic as i8) else {
        return Ok(None);
    };
    if !(0..=2).contains(&magic) {
        return Err(BatchError::Unreadable(Unreadable::Magic(magic)));
    }
    let size_bytes = LOG_OVERHEAD_BYTES + length as usize;
    Ok((size_bytes <= bytes.len()).then_some(size_bytes))
}

/// A larger batch may take so long to decompress that others on the thread would notice.
pub const HEAVY_BYTES: usize = 1 << 20;

/// Whether `batch` should be checked where it may take its time (decompression of more than
/// [`HEAVY_BYTES`]), not on the connection's thread.
pub fn is_heavy(batch: &Bytes, header: &BatchHeader, rules: &Rules) -> bool {
    let compressed = header.attributes & 7 != 0 || rules.codec.is_some_and(|c| c != Codec::NONE);
    compressed && batch.len() > HEAVY_BYTES
}

/// Checks the batch that [`shape`] cut out, by all of Kafka's rules and in its order.
/// Uncompressed records are walked in place; compressed ones as a stream in constant memory. The
/// bytes stay the producer's, unless the topic has a codec of its own.
///
/// # Errors
/// Every [`BatchError`] but `Unreadable` and `ZstdTooEarly`.
pub fn check(batch: &Bytes, rules: &Rules) -> Result<CheckedBatch, BatchError> {
    let header = BatchHeader::parse(batch)?;
    if header.base_offset != 0 {
        return Err(Invalid::BaseOffset(header.base_offset).into());
    }
    let (size_bytes, max_bytes) = (header.size_bytes(), rules.max_bytes);
    if size_bytes > max_bytes {
        return Err(BatchError::TooLarge { size_bytes, max_bytes });
    }
    if size_bytes != batch.len() || header.crc != crc_of(batch) {
        return Err(BatchError::Corrupt { size_bytes, crc: header.crc });
    }
    let compression = header.compression()?;
    check_header(&header)?;
    let mut pass = Pass::new(rules, &header, compression);
    walk(batch, &header, rules.max_record_bytes.into(), |seen| pass.see(seen))?;
    if !pass.faults.is_empty() {
        return Err(BatchError::Records(pass.faults));
    }
    if let Some(codec) = rules.codec.filter(|codec| codec.compression != compression) {
        return recompress(batch, &header, codec, max_bytes);
    }
    if compression != Compression::None && !pass.in_sequence {
        // Kafka would have to rewrite the batch here, and fails to.
        return Err(BatchError::Undecodable("offsets of compressed records have holes".to_owned()));
    }
    Ok(CheckedBatch {
        bytes: batch.clone(),
        header,
        max_timestamp: pass.max_timestamp,
        offset_delta_of_max_timestamp: pass.offset_delta_of_max_timestamp,
    })
}

fn check_header(header: &BatchHeader) -> Result<(), Invalid> {
    let (last_offset_delta, count) = (header.last_offset_delta, header.records_count);
    if last_offset_delta < 0 {
        return Err(Invalid::OffsetRange(last_offset_delta));
    }
    if count <= 0 {
        return Err(Invalid::Count(count));
    }
    if count != last_offset_delta.wrapping_add(1) {
        return Err(Invalid::OffsetsAndCount { last_offset_delta, count });
    }
    if header.is_control() {
        return Err(Invalid::Control);
    }
    if header.has_producer_id() && header.base_sequence < 0 {
        return Err(Invalid::Sequence(header.base_sequence));
    }
    Ok(())
}

/// What the walk over the records gathers.
struct Pass<'a> {
    rules: &'a Rules,
    append_time_set: bool,
    compressed: bool,
    faults: Vec<RecordFault>,
    max_timestamp: i64,
    offset_delta_of_max_timestamp: i32,
    in_sequence: bool,
}

impl<'a> Pass<'a> {
    fn new(rules: &'a Rules, header: &BatchHeader, compression: Compression) -> Self {
        Self {
            rules,
            append_time_set: header.timestamp_type() == TimestampType::LogAppendTime,
            compressed: compression != Compression::None,
            faults: Vec::new(),
            max_timestamp: NO_TIMESTAMP,
            offset_delta_of_max_timestamp: 0,
            in_sequence: true,
        }
    }

    #[inline]
    fn see(&mut self, seen: Seen) {
        self.in_sequence &= seen.offset_delta == seen.index;
        if seen.timestamp > self.max_timestamp {
            self.max_timestamp = seen.timestamp;
            self.offset_delta_of_max_timestamp = seen.index;
        }
        if let Some(kind) = self.fault_of(&seen) {
            self.faults.push(RecordFault { batch_index: seen.index, kind });
        }
    }

    #[inline]
    fn fault_of(&self, seen: &Seen) -> Option<RecordFaultKind> {
        let rules = self.rules;
        if rules.compacted && seen.key_size < 0 {
            return Some(RecordFaultKind::NullKey);
        }
        let (timestamp, offset) = (seen.timestamp, i64::from(seen.offset_delta));
        if rules.timestamp_type == TimestampType::CreateTime && timestamp != NO_TIMESTAMP {
            let age = rules.now_ms.wrapping_sub(timestamp);
            let outside = age > rules.before_max_ms || age.wrapping_neg() > rules.after_max_ms;
            return outside.then(|| RecordFaultKind::Timestamp {
                timestamp,
                offset,
                earliest: rules.now_ms.wrapping_sub(rules.before_max_ms),
                latest: rules.now_ms.wrapping_add(rules.after_max_ms),
            });
        }
        self.append_time_set.then_some(RecordFaultKind::AppendTime {
            offset,
            timestamp,
            key: seen.key_size,
            value: seen.value_size,
            compressed: self.compressed,
        })
    }
}

/// The same records in the topic's own codec.
#[cold]
fn recompress(
    batch: &Bytes,
    header: &BatchHeader,
    codec: Codec,
    max_bytes: usize,
) -> Result<CheckedBatch, BatchError> {
    let mut builder = BatchBuilder::new(0).codec(codec).producer(Producer {
        id: header.producer_id,
        epoch: header.producer_epoch,
        base_sequence: header.base_sequence,
        transactional: header.is_transactional(),
    });
    for record in records(batch) {
        let record = record?;
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        builder.push(record.timestamp, key, value, &record.headers);
    }
    let batch = builder.build_checked();
    let size_bytes = batch.bytes.len();
    if size_bytes > max_bytes {
        return Err(BatchError::TooLarge { size_bytes, max_bytes });
    }
    Ok(batch)
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
