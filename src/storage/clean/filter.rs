//! What stays of one batch: Kafka's rules of compaction, record by record.

use bytes::Bytes;

use super::offset_map::OffsetMap;
use super::transactions::{CleanedTxns, Marker};
use super::view::LastRecords;
use crate::common::Offset;
use crate::protocol::batch::{
    BatchError, BatchHeader, EndTxnMarker, Record, emptied, rebuilt, records,
};
use crate::storage::txn_index::AbortedTxn;

/// What a pass decides by.
pub(super) struct Filter<'a> {
    pub map: &'a OffsetMap,
    pub txns: CleanedTxns,
    /// Whose batches are the last ones of their producers.
    pub last: &'a LastRecords,
    /// Where the pass ends: the last batch before it stays, so that the offsets below it do.
    pub until: Offset,
    pub now_ms: i64,
    pub delete_retention_ms: i64,
    /// Records seen so far.
    pub records_read: u64,
    pub records_kept: u64,
    /// Without a key: what a topic that was not always compacted may hold.
    pub keyless: u64,
}

/// What stays of a batch.
pub(super) enum Kept {
    Nothing,
    Same,
    New(BatchHeader, Bytes),
}

/// What stays, and what the transaction index of its segment gets.
pub(super) struct Filtered {
    pub kept: Kept,
    pub entry: Option<AbortedTxn>,
}

impl Filter<'_> {
    /// Judges the next batch; they must come in order.
    /// - `bytes`: the whole batch.
    ///
    /// # Errors
    /// [`BatchError`]: it cannot be read.
    pub(super) fn batch(
        &mut self,
        header: &BatchHeader,
        bytes: &Bytes,
    ) -> Result<Filtered, BatchError> {
        let (can_go, entry) = self.follow_transactions(header, bytes)?;
        let horizon = header.delete_horizon();
        let is_over = horizon.is_some_and(|horizon| horizon <= self.now_ms);
        let goes_whole = can_go && (is_over || !header.is_control());
        let header_stays = self.last.is_last(header) || header.next_offset() == self.until;
        self.records_read += header.records_count.max(0) as u64;
        if goes_whole && !header_stays {
            return Ok(Filtered { kept: Kept::Nothing, entry });
        }
        let mut kept = Vec::new();
        if !goes_whole {
            for record in records(bytes) {
                let record = record?;
                if header.is_control() || self.stays(&record, is_over) {
                    kept.push(record);
                }
            }
        }
        self.records_kept += kept.len() as u64;
        let has_tombstones = kept.iter().any(|record| record.value.is_none());
        let ends_nothing = header.is_control() && can_go;
        let begins_horizon = (has_tombstones || ends_nothing) && horizon.is_none();
        let kept = match kept.len() {
            0 if header_stays => {
                let (header, bytes) = emptied(header);
                Kept::New(header, bytes)
            }
            0 => Kept::Nothing,
            all if all as i64 == i64::from(header.records_count) && !begins_horizon => Kept::Same,
            _ => {
                let new =
                    begins_horizon.then(|| self.now_ms.saturating_add(self.delete_retention_ms));
                let (header, bytes) = rebuilt(header, &kept, new.or(horizon))?;
                Kept::New(header, bytes)
            }
        };
        Ok(Filtered { kept, entry })
    }

    /// Whether the batch may go for its transaction's sake.
    fn follow_transactions(
        &mut self,
        header: &BatchHeader,
        bytes: &Bytes,
    ) -> Result<(bool, Option<AbortedTxn>), BatchError> {
        if !header.is_control() {
            return Ok((self.txns.saw_data(header), None));
        }
        let Marker { can_go, entry } = match control_of(bytes)? {
            Control::Marker(marker) => self.txns.saw_marker(header, Some(marker)),
            Control::Emptied => self.txns.saw_marker(header, None),
            Control::Other => Marker { can_go: false, entry: None },
        };
        Ok((can_go, entry))
    }

    /// - `is_over`: the batch's delete horizon has passed.
    fn stays(&mut self, record: &Record, is_over: bool) -> bool {
        if record.offset > self.map.latest() {
            return true;
        }
        let Some(key) = &record.key else {
            self.keyless += 1;
            return false;
        };
        let is_newest = self.map.get(key).is_none_or(|newest| record.offset >= newest);
        is_newest && (record.value.is_some() || !is_over)
    }
}

/// What a control batch is.
pub(super) enum Control {
    Marker(EndTxnMarker),
    /// Compaction took its record.
    Emptied,
    Other,
}

/// # Errors
/// [`BatchError`]: it cannot be read.
pub(super) fn control_of(batch: &Bytes) -> Result<Control, BatchError> {
    let Some(record) = records(batch).next() else { return Ok(Control::Emptied) };
    let Record { key, value, .. } = record?;
    let marker = key.zip(value).and_then(|(key, value)| EndTxnMarker::parse(&key, &value));
    Ok(marker.map_or(Control::Other, Control::Marker))
}
