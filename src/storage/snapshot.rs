//! `.snapshot`: the producers of a log at an offset, Kafka's ProducerSnapshot v1. Version i16 = 1,
//! CRC-32C u32 of all that follows, count i32, then 46 bytes each: producer id i64, epoch i16,
//! last sequence i32, last offset i64, offset delta i32, timestamp i64, coordinator epoch i32,
//! first offset of the open transaction i64 (-1: none). Big-endian.

use bytes::{Buf, BufMut};

use super::producer_state::{BatchSeen, Producer};
use crate::common::{NO_OFFSET, Offset, ProducerEpoch, ProducerId};

const VERSION: i16 = 1;
const FRONT_BYTES: usize = 2 + 4;
const ENTRY_BYTES: usize = 46;

/// The file's bytes; of each producer only the last batch is kept, as in Kafka.
pub(super) fn encode<'a>(
    producers: impl ExactSizeIterator<Item = (ProducerId, &'a Producer)>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(FRONT_BYTES + 4 + producers.len() * ENTRY_BYTES);
    out.put_i16(VERSION);
    out.put_u32(0);
    out.put_i32(producers.len() as i32);
    for (id, producer) in producers {
        let last = producer.seen().last().copied();
        let last = last.unwrap_or(BatchSeen {
            last_sequence: -1,
            last_offset: NO_OFFSET,
            ..BatchSeen::default()
        });
        out.put_i64(id.0);
        out.put_i16(producer.epoch.0);
        out.put_i32(last.last_sequence);
        out.put_i64(last.last_offset);
        out.put_i32(last.offset_delta);
        out.put_i64(producer.last_timestamp);
        out.put_i32(producer.coordinator_epoch);
        out.put_i64(producer.txn_first_offset.unwrap_or(NO_OFFSET));
    }
    let crc = crc32c::crc32c(&out[FRONT_BYTES..]);
    out[2..FRONT_BYTES].copy_from_slice(&crc.to_be_bytes());
    out
}

/// Reads what [`encode`] writes; `None` for another version, a wrong CRC or a wrong size: the
/// caller then looks for an older snapshot.
pub(super) fn decode(mut bytes: &[u8]) -> Option<Vec<(ProducerId, Producer)>> {
    if bytes.len() < FRONT_BYTES + 4 || bytes.get_i16() != VERSION {
        return None;
    }
    if bytes.get_u32() != crc32c::crc32c(bytes) {
        return None;
    }
    let count = usize::try_from(bytes.get_i32()).ok()?;
    if bytes.len() != count.checked_mul(ENTRY_BYTES)? {
        return None;
    }
    Some((0..count).map(|_| entry(&mut bytes)).collect())
}

fn entry(bytes: &mut &[u8]) -> (ProducerId, Producer) {
    let id = ProducerId(bytes.get_i64());
    let mut producer = Producer::new(ProducerEpoch(bytes.get_i16()));
    let (last_sequence, last_offset): (i32, Offset) = (bytes.get_i32(), bytes.get_i64());
    let (offset_delta, timestamp) = (bytes.get_i32(), bytes.get_i64());
    if last_offset >= 0 {
        producer.remember(BatchSeen { last_sequence, last_offset, offset_delta, timestamp });
    }
    producer.last_timestamp = timestamp;
    producer.coordinator_epoch = bytes.get_i32();
    producer.txn_first_offset = Some(bytes.get_i64()).filter(|offset| *offset >= 0);
    (id, producer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_are_kafkas() {
        let mut producer = Producer::new(ProducerEpoch(3));
        producer.remember(BatchSeen {
            last_sequence: 9,
            last_offset: 109,
            offset_delta: 4,
            timestamp: 5,
        });
        producer.last_timestamp = 5;
        producer.txn_first_offset = Some(100);
        let one = [(ProducerId(1_000), &producer)];
        let bytes = encode(one.into_iter());
        #[rustfmt::skip]
        let want = [
            0, 0, 0, 1,
            0, 0, 0, 0, 0, 0, 3, 0xe8, 0, 3,
            0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 109, 0, 0, 0, 4,
            0, 0, 0, 0, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff,
            0, 0, 0, 0, 0, 0, 0, 100,
        ];
        assert_eq!(&bytes[6..], want);
        assert_eq!(bytes[..2], [0, 1]);
        assert_eq!(bytes[2..6], crc32c::crc32c(&want).to_be_bytes());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_and_damage_is_seen(
            ids in proptest::collection::btree_set(0i64..100, 0..10),
            (epoch, sequence, offset, delta) in any::<(i16, i32, i64, i32)>(),
            (timestamp, coordinator) in any::<(i64, i32)>(),
            txn in proptest::option::of(0i64..1_000),
            (at, bit) in (0usize..1_000, 0u8..8),
        ) {
            let mut producer = Producer::new(ProducerEpoch(epoch));
            if offset >= 0 {
                producer.remember(BatchSeen { last_sequence: sequence, last_offset: offset, offset_delta: delta, timestamp });
            }
            producer.last_timestamp = timestamp;
            producer.coordinator_epoch = coordinator;
            producer.txn_first_offset = txn;
            let all: Vec<(ProducerId, Producer)> = ids.into_iter().map(|id| (ProducerId(id), producer.clone())).collect();
            let mut bytes = encode(all.iter().map(|(id, producer)| (*id, producer)));
            prop_assert_eq!(decode(&bytes), Some(all));
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(decode(&bytes), None);
            prop_assert_eq!(decode(&bytes[..at]), None);
        }
    }
}
