//! Making a batch: for journals, control markers, topics that ask for another codec, and tests.

use bytes::{BufMut, Bytes, BytesMut};

use super::check::CheckedBatch;
use super::header::{BatchHeader, HEADER_BYTES, LOG_OVERHEAD_BYTES, crc_of};
use super::{Codec, Header};
use crate::common::{LeaderEpoch, NO_TIMESTAMP, Offset, ProducerEpoch, ProducerId, varint};

/// Who wrote a batch, where the writer is known (KIP-98).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Producer {
    pub id: ProducerId,
    pub epoch: ProducerEpoch,
    /// Of the first record; -1 for control batches.
    pub base_sequence: i32,
    pub transactional: bool,
}

/// The end of a transaction in a partition: a control record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndTxnMarker {
    pub commit: bool,
    pub coordinator_epoch: i32,
}

impl EndTxnMarker {
    /// Key: version 0, then 0 for abort and 1 for commit.
    pub fn key(self) -> [u8; 4] {
        [0, 0, 0, u8::from(self.commit)]
    }

    /// Value: version 0, then the coordinator's epoch.
    pub fn value(self) -> [u8; 6] {
        let epoch = self.coordinator_epoch.to_be_bytes();
        [0, 0, epoch[0], epoch[1], epoch[2], epoch[3]]
    }

    /// `None`: a control record of another type, or cut short.
    pub fn parse(key: &[u8], value: &[u8]) -> Option<Self> {
        let commit = match key.get(2..4)? {
            [0, 0] => false,
            [0, 1] => true,
            _ => return None,
        };
        let epoch: [u8; 4] = value.get(2..6)?.try_into().ok()?;
        Some(Self { commit, coordinator_epoch: i32::from_be_bytes(epoch) })
    }
}

/// Collects records and makes one batch of them; offsets run from the base without holes.
pub struct BatchBuilder {
    header: BatchHeader,
    codec: Codec,
    control: bool,
    transactional: bool,
    records: BytesMut,
    max_timestamp: i64,
    offset_delta_of_max_timestamp: i32,
}

impl BatchBuilder {
    pub fn new(base_offset: Offset) -> Self {
        let header = BatchHeader {
            base_offset,
            batch_length: 0,
            leader_epoch: LeaderEpoch::NONE,
            magic: 2,
            crc: 0,
            attributes: 0,
            last_offset_delta: 0,
            base_timestamp: NO_TIMESTAMP,
            max_timestamp: NO_TIMESTAMP,
            producer_id: ProducerId::NONE,
            producer_epoch: ProducerEpoch::NONE,
            base_sequence: -1,
            records_count: 0,
        };
        Self {
            header,
            codec: Codec::NONE,
            control: false,
            transactional: false,
            records: BytesMut::new(),
            max_timestamp: NO_TIMESTAMP,
            offset_delta_of_max_timestamp: 0,
        }
    }

    #[must_use]
    pub fn leader_epoch(mut self, epoch: LeaderEpoch) -> Self {
        self.header.leader_epoch = epoch;
        self
    }

    #[must_use]
    pub fn producer(mut self, producer: Producer) -> Self {
        self.header.producer_id = producer.id;
        self.header.producer_epoch = producer.epoch;
        self.header.base_sequence = producer.base_sequence;
        self.transactional = producer.transactional;
        self
    }

    #[must_use]
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// The batch will hold control records, which no consumer is shown.
    #[must_use]
    pub fn control(mut self) -> Self {
        self.control = true;
        self
    }

    /// The batch of one transaction marker.
    pub fn marker(
        base_offset: Offset,
        producer_id: ProducerId,
        producer_epoch: ProducerEpoch,
        marker: EndTxnMarker,
        timestamp_ms: i64,
    ) -> Self {
        let producer = Producer {
            id: producer_id,
            epoch: producer_epoch,
            base_sequence: -1,
            transactional: true,
        };
        let mut builder = Self::new(base_offset).producer(producer).control();
        builder.push(timestamp_ms, Some(&marker.key()), Some(&marker.value()), &[]);
        builder
    }

    /// Adds a record at the next offset.
    pub fn push(
        &mut self,
        timestamp_ms: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[Header],
    ) {
        let index = self.header.records_count;
        if index == 0 {
            self.header.base_timestamp = timestamp_ms;
        }
        if timestamp_ms > self.max_timestamp {
            (self.max_timestamp, self.offset_delta_of_max_timestamp) = (timestamp_ms, index);
        }
        let timestamp_delta = timestamp_ms.wrapping_sub(self.header.base_timestamp);
        put_record(&mut self.records, timestamp_delta, index, (key, value), headers);
        self.header.records_count = index + 1;
        self.header.last_offset_delta = index;
    }

    pub fn records_count(&self) -> i32 {
        self.header.records_count
    }

    /// What the batch would take now if it were not compressed.
    pub fn size_bytes(&self) -> usize {
        HEADER_BYTES + self.records.len()
    }

    /// The header so far; length and CRC come with [`BatchBuilder::build`].
    pub fn header(&self) -> BatchHeader {
        self.header
    }

    pub fn build(self) -> Bytes {
        self.build_checked().bytes
    }

    /// The batch, ready for a log.
    pub fn build_checked(mut self) -> CheckedBatch {
        // In memory a codec fails only for lack of memory, which ends the process anyway; a batch
        // left uncompressed is right as well.
        let packed = match self.codec.compression {
            super::Compression::None => None,
            _ => self.codec.compress(&self.records).ok(),
        };
        let compression =
            packed.as_ref().map_or(super::Compression::None, |_| self.codec.compression);
        let payload = packed.as_deref().unwrap_or(&self.records);
        self.header.attributes =
            BatchHeader::attributes(compression, self.transactional, self.control);
        self.header.max_timestamp = self.max_timestamp;
        let bytes = assemble(&mut self.header, payload);
        CheckedBatch {
            bytes,
            header: self.header,
            max_timestamp: self.max_timestamp,
            offset_delta_of_max_timestamp: self.offset_delta_of_max_timestamp,
        }
    }
}

/// Writes one record with its length in front.
pub(super) fn put_record(
    out: &mut BytesMut,
    timestamp_delta: i64,
    offset_delta: i32,
    (key, value): (Option<&[u8]>, Option<&[u8]>),
    headers: &[Header],
) {
    let headers_size: usize = headers
        .iter()
        .map(|header| field_size(Some(&header.key)) + field_size(header.value.as_deref()))
        .sum();
    let size = 1
        + varint::size_i64(timestamp_delta)
        + varint::size_i32(offset_delta)
        + field_size(key)
        + field_size(value)
        + varint::size_i32(headers.len() as i32)
        + headers_size;
    out.reserve(5 + size);
    varint::write_i32(out, size as i32);
    out.put_u8(0);
    varint::write_i64(out, timestamp_delta);
    varint::write_i32(out, offset_delta);
    put_field(out, key);
    put_field(out, value);
    varint::write_i32(out, headers.len() as i32);
    for header in headers {
        put_field(out, Some(&header.key));
        put_field(out, header.value.as_deref());
    }
}

/// The whole batch: `header` with its length and CRC set, then `payload`.
pub(super) fn assemble(header: &mut BatchHeader, payload: &[u8]) -> Bytes {
    header.batch_length = (HEADER_BYTES - LOG_OVERHEAD_BYTES + payload.len()) as i32;
    let mut front = [0; HEADER_BYTES];
    header.write(&mut front);
    let mut bytes = BytesMut::with_capacity(HEADER_BYTES + payload.len());
    bytes.extend_from_slice(&front);
    bytes.extend_from_slice(payload);
    header.crc = crc_of(&bytes);
    bytes[17..21].copy_from_slice(&header.crc.to_be_bytes());
    bytes.freeze()
}

fn field_size(field: Option<&[u8]>) -> usize {
    match field {
        Some(bytes) => varint::size_i32(bytes.len() as i32) + bytes.len(),
        None => 1,
    }
}

fn put_field(out: &mut BytesMut, field: Option<&[u8]>) {
    match field {
        Some(bytes) => {
            varint::write_i32(out, bytes.len() as i32);
            out.extend_from_slice(bytes);
        }
        None => varint::write_i32(out, -1),
    }
}
