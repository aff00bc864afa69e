//! Between the seam's batches and Kafka's record batches, which is what the log holds.

use bytes::{Bytes, BytesMut};

use crate::common::{LeaderEpoch, Offset};
use crate::machine::{Batch, EntryKind, JournalRecord, Position, ReadEntry};
use crate::protocol::batch::{self, BatchBuilder, BatchError, BatchHeader};

/// `records` as one batch from `base` on, decided under `epoch`.
pub(super) fn encode(
    records: &[JournalRecord],
    timestamp_ms: i64,
    epoch: i32,
    base: Offset,
) -> Bytes {
    let mut builder = BatchBuilder::new(base).leader_epoch(LeaderEpoch(epoch));
    for record in records {
        builder.push(timestamp_ms, record.key.as_deref(), record.value.as_deref(), &[]);
    }
    builder.build()
}

/// The batches one after the other from offset 0 on, as the first payload of a fresh log.
pub(super) fn encode_all(batches: &[Batch], epoch: i32) -> Bytes {
    let (mut out, mut base) = (BytesMut::new(), 0);
    for batch in batches {
        out.extend_from_slice(&encode(&batch.records, batch.timestamp_ms, epoch, base));
        base += batch.records.len() as Offset;
    }
    out.freeze()
}

/// The records of one batch; their bytes are slices of it.
///
/// # Errors
/// [`BatchError`]: our own log holds a batch that is none.
pub(super) fn decode(batch: &Bytes, into: &mut Vec<ReadEntry>) -> Result<(), BatchError> {
    for record in batch::records(batch) {
        let record = record?;
        let position = Position(record.offset);
        let record = JournalRecord { key: record.key, value: record.value };
        into.push(ReadEntry { position, kind: EntryKind::Plain, record: Some(record) });
    }
    Ok(())
}

/// The batches of a payload. What stands in the log was whole when it was proposed, so a batch
/// that cannot be read, or does not end with the payload, is damage.
///
/// # Errors
/// [`BatchError`].
pub(super) fn split(payload: &Bytes) -> Result<Vec<(BatchHeader, Bytes)>, BatchError> {
    let batches: Vec<_> = batch::batches(payload).collect::<Result<_, _>>()?;
    let whole: usize = batches.iter().map(|(_, bytes)| bytes.len()).sum();
    if whole < payload.len() {
        return Err(BatchError::Corrupt { size_bytes: payload.len(), crc: 0 });
    }
    Ok(batches)
}
