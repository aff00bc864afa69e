//! The 61 bytes at the front of a batch.

use super::{BatchError, Compression};
use crate::common::{LeaderEpoch, Offset, ProducerEpoch, ProducerId};

/// Size of the header of a v2 batch.
pub const HEADER_BYTES: usize = 61;
/// Base offset and length, which the length does not count.
pub const LOG_OVERHEAD_BYTES: usize = 12;
/// Where the CRC-covered part begins: after the CRC itself.
pub(super) const CRC_START: usize = 21;

const TIMESTAMP_TYPE: i16 = 1 << 3;
const TRANSACTIONAL: i16 = 1 << 4;
const CONTROL: i16 = 1 << 5;
pub(super) const DELETE_HORIZON: i16 = 1 << 6;

/// Who sets the timestamps of records (`message.timestamp.type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimestampType {
    #[default]
    CreateTime,
    LogAppendTime,
}

/// The header, field by field, in wire order. Big-endian: base offset at 0, length 8, leader
/// epoch 12, magic 16, CRC 17, attributes 21, last offset delta 23, base timestamp 27, max
/// timestamp 35, producer id 43, producer epoch 51, base sequence 53, record count 57.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    pub base_offset: Offset,
    /// Bytes after this field.
    pub batch_length: i32,
    pub leader_epoch: LeaderEpoch,
    pub magic: i8,
    pub crc: u32,
    pub attributes: i16,
    pub last_offset_delta: i32,
    /// The delete horizon, where [`BatchHeader::delete_horizon`] is set (KIP-534).
    pub base_timestamp: i64,
    pub max_timestamp: i64,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub base_sequence: i32,
    pub records_count: i32,
}

impl BatchHeader {
    /// Reads the header at the front of `bytes`; what follows it is not looked at.
    ///
    /// # Errors
    /// [`BatchError::Corrupt`]: fewer than [`HEADER_BYTES`], or a length below the header's own.
    /// [`BatchError::Unreadable`]: a magic other than 2.
    pub fn parse(bytes: &[u8]) -> Result<Self, BatchError> {
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(BatchError::Corrupt { size_bytes: bytes.len(), crc: 0 });
        };
        let header = Self {
            base_offset: i64::from_be_bytes(at(bytes, 0)),
            batch_length: i32::from_be_bytes(at(bytes, 8)),
            leader_epoch: LeaderEpoch(i32::from_be_bytes(at(bytes, 12))),
            magic: bytes[16] as i8,
            crc: u32::from_be_bytes(at(bytes, 17)),
            attributes: i16::from_be_bytes(at(bytes, 21)),
            last_offset_delta: i32::from_be_bytes(at(bytes, 23)),
            base_timestamp: i64::from_be_bytes(at(bytes, 27)),
            max_timestamp: i64::from_be_bytes(at(bytes, 35)),
            producer_id: ProducerId(i64::from_be_bytes(at(bytes, 43))),
            producer_epoch: ProducerEpoch(i16::from_be_bytes(at(bytes, 51))),
            base_sequence: i32::from_be_bytes(at(bytes, 53)),
            records_count: i32::from_be_bytes(at(bytes, 57)),
        };
        if header.magic != 2 {
            return Err(BatchError::Unreadable(super::error::Unreadable::Magic(header.magic)));
        }
        if header.batch_length < (HEADER_BYTES - LOG_OVERHEAD_BYTES) as i32 {
            let size_bytes = usize::try_from(header.batch_length).unwrap_or(0);
            return Err(BatchError::Corrupt { size_bytes, crc: header.crc });
        }
        Ok(header)
    }

    pub fn write(&self, out: &mut [u8; HEADER_BYTES]) {
        out[0..8].copy_from_slice(&self.base_offset.to_be_bytes());
        out[8..12].copy_from_slice(&self.batch_length.to_be_bytes());
        out[12..16].copy_from_slice(&self.leader_epoch.0.to_be_bytes());
        out[16] = self.magic as u8;
        out[17..21].copy_from_slice(&self.crc.to_be_bytes());
        out[21..23].copy_from_slice(&self.attributes.to_be_bytes());
        out[23..27].copy_from_slice(&self.last_offset_delta.to_be_bytes());
        out[27..35].copy_from_slice(&self.base_timestamp.to_be_bytes());
        out[35..43].copy_from_slice(&self.max_timestamp.to_be_bytes());
        out[43..51].copy_from_slice(&self.producer_id.0.to_be_bytes());
        out[51..53].copy_from_slice(&self.producer_epoch.0.to_be_bytes());
        out[53..57].copy_from_slice(&self.base_sequence.to_be_bytes());
        out[57..61].copy_from_slice(&self.records_count.to_be_bytes());
    }

    /// The whole batch, header included.
    pub fn size_bytes(&self) -> usize {
        LOG_OVERHEAD_BYTES + usize::try_from(self.batch_length).unwrap_or(0)
    }

    /// Offset of the last record (or of the last one before compaction).
    pub fn last_offset(&self) -> Offset {
        self.base_offset.wrapping_add(i64::from(self.last_offset_delta))
    }

    /// The offset after the last one.
    pub fn next_offset(&self) -> Offset {
        self.last_offset().wrapping_add(1)
    }

    /// Sequence of the last record; wraps from 2³¹−1 to 0. -1 without a sequence.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 {
            return -1;
        }
        let sum = i64::from(self.base_sequence) + i64::from(self.last_offset_delta);
        (sum % (1 << 31)) as i32
    }

    pub fn has_producer_id(&self) -> bool {
        self.producer_id.0 > ProducerId::NONE.0
    }

    /// # Errors
    /// [`BatchError::UnknownCodec`] for a codec that does not exist.
    pub fn compression(&self) -> Result<Compression, BatchError> {
        Compression::from_id((self.attributes & 7) as u8)
    }

    pub fn timestamp_type(&self) -> TimestampType {
        match self.attributes & TIMESTAMP_TYPE {
            0 => TimestampType::CreateTime,
            _ => TimestampType::LogAppendTime,
        }
    }

    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    /// When the batch's tombstones and markers may go, in milliseconds since the Unix epoch.
    pub fn delete_horizon(&self) -> Option<i64> {
        (self.attributes & DELETE_HORIZON != 0).then_some(self.base_timestamp)
    }

    pub(super) fn attributes(compression: Compression, transactional: bool, control: bool) -> i16 {
        i16::from(compression.id())
            | if transactional { TRANSACTIONAL } else { 0 }
            | if control { CONTROL } else { 0 }
    }

    /// The same header as the log keeps it: its offsets and epoch assigned, and its timestamp
    /// where the broker sets it. The CRC follows without a look at the records.
    /// - `append_time_ms`: the time for LogAppendTime, `None` for CreateTime.
    /// - `max_timestamp`: of the records; used for CreateTime.
    pub(super) fn patched(
        &self,
        base_offset: Offset,
        leader_epoch: LeaderEpoch,
        append_time_ms: Option<i64>,
        max_timestamp: i64,
    ) -> [u8; HEADER_BYTES] {
        let mut new = Self { base_offset, leader_epoch, ..*self };
        match append_time_ms {
            Some(now_ms) => {
                new.attributes |= TIMESTAMP_TYPE;
                new.max_timestamp = now_ms;
            }
            None => {
                new.attributes &= !TIMESTAMP_TYPE;
                new.max_timestamp = max_timestamp;
            }
        }
        let mut bytes = [0; HEADER_BYTES];
        new.write(&mut bytes);
        if (new.attributes, new.max_timestamp) != (self.attributes, self.max_timestamp) {
            let mut old = [0; HEADER_BYTES];
            self.write(&mut old);
            let body = self.size_bytes() - HEADER_BYTES;
            // CRC is linear: what the header contributes to it is taken out and put in anew.
            let share = |header: &[u8; HEADER_BYTES]| {
                crc32c::crc32c_combine(crc32c::crc32c(&header[CRC_START..]), 0, body)
            };
            let crc = self.crc ^ share(&old) ^ share(&bytes);
            bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        }
        bytes
    }
}

/// The CRC-32C of a whole batch: everything after the CRC field.
pub fn crc_of(batch: &[u8]) -> u32 {
    crc32c::crc32c(batch.get(CRC_START..).unwrap_or(&[]))
}

fn at<const N: usize>(bytes: &[u8; HEADER_BYTES], position: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[position..position + N]);
    field
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::batch::BatchBuilder;
    use proptest::prelude::*;

    #[test]
    fn the_last_sequence_wraps_to_zero() {
        let table =
            [(0, 0, 0), (5, 4, 9), (i32::MAX, 0, i32::MAX), (i32::MAX - 1, 3, 1), (-1, 4, -1)];
        let header = BatchBuilder::new(0).header();
        for (base_sequence, last_offset_delta, last) in table {
            let header = BatchHeader { base_sequence, last_offset_delta, ..header };
            assert_eq!(header.last_sequence(), last, "{base_sequence} + {last_offset_delta}");
        }
    }

    proptest! {
        #[test]
        fn a_patched_header_keeps_the_batch_valid(base: i64, epoch: i32, time in proptest::option::of(0..i64::MAX), max: i64) {
            let mut builder = BatchBuilder::new(7);
            builder.push(1000, Some(b"k"), Some(b"value"), &[]);
            let batch = builder.build();
            let header = BatchHeader::parse(&batch).expect("own batch");
            let mut patched = header.patched(base, LeaderEpoch(epoch), time, max).to_vec();
            patched.extend_from_slice(&batch[HEADER_BYTES..]);
            let read = BatchHeader::parse(&patched).expect("still a batch");
            prop_assert_eq!(read.crc, crc_of(&patched));
            prop_assert_eq!((read.base_offset, read.leader_epoch.0), (base, epoch));
            prop_assert_eq!(read.max_timestamp, time.unwrap_or(max));
        }
    }
}
