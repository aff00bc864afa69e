//! What compaction makes of a batch: some of its records under their old offsets, or its header
//! alone. The last offset stays, and with it the producer's last sequence.

use bytes::{Bytes, BytesMut};

use super::builder::{assemble, put_record};
use super::header::DELETE_HORIZON;
use super::{BatchError, BatchHeader, Codec, Compression, Record, TimestampType};
use crate::common::NO_TIMESTAMP;

/// The lowest bits of the attributes: the codec.
const CODEC: i16 = 7;

/// The batch of `header` with only `kept` of its records, in its codec, and the largest timestamp
/// that they have.
/// - `kept`: at least one record of that batch, ascending.
/// - `delete_horizon_ms`: takes the place of the base timestamp (KIP-534), in milliseconds since
///   the Unix epoch.
///
/// # Errors
/// [`BatchError::UnknownCodec`].
pub fn rebuilt(
    header: &BatchHeader,
    kept: &[Record],
    delete_horizon_ms: Option<i64>,
) -> Result<(BatchHeader, Bytes), BatchError> {
    let first_timestamp = kept.first().map_or(NO_TIMESTAMP, |record| record.timestamp);
    let base_timestamp = delete_horizon_ms.unwrap_or(first_timestamp);
    let mut plain = BytesMut::new();
    for record in kept {
        let offset_delta = (record.offset - header.base_offset) as i32;
        let timestamp_delta = record.timestamp.wrapping_sub(base_timestamp);
        let fields = (record.key.as_deref(), record.value.as_deref());
        put_record(&mut plain, timestamp_delta, offset_delta, fields, &record.headers);
    }
    let compression = header.compression()?;
    // As in `BatchBuilder`: a batch left uncompressed is right as well.
    let packed = match compression {
        Compression::None => None,
        _ => Codec::of(compression).compress(&plain).ok(),
    };
    let codec = packed.as_ref().map_or(Compression::None, |_| compression);
    let newest = kept.iter().map(|record| record.timestamp).max().unwrap_or(NO_TIMESTAMP);
    let max_timestamp = match header.timestamp_type() {
        TimestampType::CreateTime => newest.max(NO_TIMESTAMP),
        TimestampType::LogAppendTime => header.max_timestamp,
    };
    let horizon = if delete_horizon_ms.is_some() { DELETE_HORIZON } else { 0 };
    let mut made = BatchHeader {
        attributes: (header.attributes & !(CODEC | DELETE_HORIZON))
            | i16::from(codec.id())
            | horizon,
        base_timestamp,
        max_timestamp,
        records_count: kept.len() as i32,
        ..*header
    };
    let bytes = assemble(&mut made, packed.as_deref().unwrap_or(&plain));
    Ok((made, bytes))
}

/// The batch of `header` without records: what is left when only its last offset or its producer's
/// sequence is still needed.
pub fn emptied(header: &BatchHeader) -> (BatchHeader, Bytes) {
    let mut made = BatchHeader {
        attributes: header.attributes & !(CODEC | DELETE_HORIZON),
        base_timestamp: NO_TIMESTAMP,
        records_count: 0,
        ..*header
    };
    let bytes = assemble(&mut made, &[]);
    (made, bytes)
}

#[cfg(test)]
mod tests {
    use super::super::{BatchBuilder, records};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever is kept reads as it did before, under any codec and horizon; a second rebuild
        /// too.
        #[test]
        fn kept_records_read_as_before(
            values in proptest::collection::vec((0i64..10_000, "[a-c]{0,3}"), 1..20),
            keep in proptest::collection::vec(any::<bool>(), 20),
            codec in 0usize..5,
            horizon in proptest::option::of(0i64..1 << 45),
        ) {
            let mut builder = BatchBuilder::new(0).codec(Codec::of(Compression::ALL[codec]));
            for (timestamp, value) in &values {
                builder.push(*timestamp, Some(b"k"), Some(value.as_bytes()), &[]);
            }
            let whole = builder.build();
            let header = BatchHeader::parse(&whole).unwrap();
            let all: Vec<Record> = records(&whole).map(Result::unwrap).collect();
            let kept: Vec<Record> =
                all.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(r, _)| r.clone()).collect();
            prop_assume!(!kept.is_empty());
            let (made, bytes) = rebuilt(&header, &kept, horizon).unwrap();
            prop_assert_eq!(BatchHeader::parse(&bytes).unwrap(), made);
            prop_assert_eq!(made.crc, super::super::crc_of(&bytes));
            prop_assert_eq!(made.delete_horizon(), horizon);
            prop_assert_eq!(made.last_offset(), header.last_offset());
            prop_assert_eq!(made.compression().unwrap(), Compression::ALL[codec]);
            let read: Vec<Record> = records(&bytes).map(Result::unwrap).collect();
            prop_assert_eq!(&read, &kept);
            prop_assert_eq!(Some(made.max_timestamp), kept.iter().map(|r| r.timestamp).max());
            let (again, bytes) = rebuilt(&made, &read[..1], made.delete_horizon()).unwrap();
            prop_assert_eq!(again.delete_horizon(), horizon);
            let read: Vec<Record> = records(&bytes).map(Result::unwrap).collect();
            prop_assert_eq!(&read[..], &kept[..1]);
        }
    }

    #[test]
    fn an_emptied_batch_keeps_its_producer_and_its_last_sequence() {
        let producer = super::super::Producer {
            id: crate::common::ProducerId(7),
            epoch: crate::common::ProducerEpoch(2),
            base_sequence: 40,
            transactional: true,
        };
        let gzip = Codec::of(Compression::Gzip);
        let mut builder = BatchBuilder::new(9).producer(producer).codec(gzip);
        (0..3).for_each(|at| builder.push(100 + at, Some(b"k"), Some(b"v"), &[]));
        let header = BatchHeader::parse(&builder.build()).unwrap();
        let (made, bytes) = emptied(&header);
        assert_eq!(bytes.len(), super::super::HEADER_BYTES);
        assert_eq!(BatchHeader::parse(&bytes).unwrap(), made);
        assert_eq!(records(&bytes).count(), 0);
        let kept = |header: &BatchHeader| {
            let producer = (header.producer_id, header.producer_epoch, header.last_sequence());
            (producer, header.last_offset(), header.max_timestamp, header.is_transactional())
        };
        assert_eq!(kept(&made), kept(&header));
        assert_eq!(made.compression().unwrap(), Compression::None);
    }
}
