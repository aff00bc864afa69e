//! What the cleaner sees of a log: taken under the partition's lock, looked at without it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{Offset, ProducerEpoch, ProducerId};
use crate::protocol::batch::BatchHeader;
use crate::storage::error::{At, DiskError};
use crate::storage::log::{Log, Shared};
use crate::storage::names::{Kind, Place};
use crate::storage::segment::SealedSegment;
use crate::storage::txn_index::{self, AbortedTxn};
use crate::storage::walk::Headers;

/// The sealed segments of a log at one moment, and what bounds a pass over them.
pub struct CleanView {
    pub(super) shared: Arc<Shared>,
    pub(super) place: Arc<Place>,
    pub(super) sealed: Arc<Vec<Arc<SealedSegment>>>,
    start_offset: Offset,
    end_offset: Offset,
    active_base_offset: Offset,
    /// Segments from here on may still be written by a flush that knows them by name.
    unsynced_from: Offset,
}

/// How a topic and the moment bound what may be cleaned.
#[derive(Debug, Clone, Copy)]
pub struct CleanBounds {
    /// Where the last pass ended; `None`: there was none.
    pub clean_until: Option<Offset>,
    pub last_stable_offset: Offset,
    /// `min.compaction.lag.ms`
    pub min_lag_ms: i64,
    /// `max.compaction.lag.ms`
    pub max_lag_ms: i64,
    pub now_ms: i64,
}

/// What there is to clean in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cleanable {
    pub first_dirty: Offset,
    /// A segment's base offset; what lies there and above is left alone.
    pub until: Offset,
    pub clean_bytes: u64,
    pub cleanable_bytes: u64,
    /// For how long `max.compaction.lag.ms` is over, in milliseconds.
    pub overdue_ms: i64,
    /// The last pass's end does not fit the log (any more).
    pub is_reset: bool,
    /// Sealed segments wait for their fsync; what is above them waits too.
    pub awaits_flush: bool,
}

impl Cleanable {
    /// The part of the log that is not cleaned yet; 0 for an empty log.
    pub fn dirty_ratio(&self) -> f64 {
        match self.clean_bytes + self.cleanable_bytes {
            0 => 0.0,
            total => self.cleanable_bytes as f64 / total as f64,
        }
    }
}

impl CleanView {
    /// Kafka's rule of what may be cleaned: no active segment, nothing at or above the last stable
    /// offset, nothing within `min.compaction.lag.ms`. Reads time indexes and first headers.
    ///
    /// # Errors
    /// [`DiskError`]; also when retention has removed a segment since.
    pub fn measure(&self, bounds: &CleanBounds) -> Result<Cleanable, DiskError> {
        let known = bounds.clean_until.unwrap_or(self.start_offset);
        let fits = (self.start_offset..=self.end_offset).contains(&known);
        let first_dirty = if fits { known } else { self.start_offset };
        let dirty = &self.sealed[self.at(first_dirty)..];
        let flushed = self.unsynced_from.min(self.active_base_offset);
        let mut stop = bounds.last_stable_offset.min(flushed);
        if bounds.min_lag_ms > 0 {
            for segment in dirty {
                let newest = segment.max_timestamp()?.timestamp;
                if newest > bounds.now_ms.saturating_sub(bounds.min_lag_ms) {
                    stop = stop.min(segment.base_offset());
                    break;
                }
            }
        }
        let until = self.base_below(stop.max(first_dirty).min(flushed));
        let sizes = |segments: &[Arc<SealedSegment>]| -> u64 {
            segments.iter().map(|segment| u64::from(segment.size_bytes)).sum()
        };
        let clean = self.sealed.partition_point(|segment| segment.base_offset() < first_dirty);
        let cleanable = self.between(first_dirty, until);
        Ok(Cleanable {
            first_dirty,
            until,
            clean_bytes: sizes(&self.sealed[..clean]),
            cleanable_bytes: sizes(cleanable),
            overdue_ms: overdue_ms(dirty, bounds)?,
            is_reset: !fits,
            awaits_flush: self.unsynced_from < self.active_base_offset,
        })
    }

    /// Whether the log still has all these segments.
    pub fn is_current(&self, log: &Log) -> bool {
        Arc::ptr_eq(&self.sealed, &log.sealed)
    }

    /// The base of the segment that holds `offset`: of the one after the sealed ones, if it does.
    fn base_below(&self, offset: Offset) -> Offset {
        if offset >= self.active_base_offset {
            return self.active_base_offset;
        }
        let base = |segment: &Arc<SealedSegment>| segment.base_offset();
        self.sealed.get(self.at(offset)).map_or(self.active_base_offset, base)
    }

    /// Number of the last segment that begins at or below `offset`.
    fn at(&self, offset: Offset) -> usize {
        let after = self.sealed.partition_point(|segment| segment.base_offset() <= offset);
        match after.checked_sub(1) {
            Some(at) if self.sealed[at].next_base_offset > offset => at,
            Some(at) => at + 1,
            None => 0,
        }
    }

    /// The segments from the one that holds `from` on that begin below `until`.
    pub(super) fn between(&self, from: Offset, until: Offset) -> &[Arc<SealedSegment>] {
        let end = self.sealed.partition_point(|segment| segment.base_offset() < until);
        &self.sealed[self.at(from).min(end)..end]
    }

    pub(super) fn below(&self, until: Offset) -> &[Arc<SealedSegment>] {
        &self.sealed[..self.sealed.partition_point(|segment| segment.base_offset() < until)]
    }

    /// The aborted transactions that overlap `from..until`, those of the sealed segments and of
    /// `active`.
    pub(super) fn aborted(
        &self,
        from: Offset,
        until: Offset,
        active: &[AbortedTxn],
    ) -> Result<Vec<AbortedTxn>, DiskError> {
        let mut found = Vec::new();
        let overlaps = |txn: &AbortedTxn| txn.last_offset >= from && txn.first_offset < until;
        for segment in &self.sealed[self.at(from).min(self.sealed.len())..] {
            let path = segment.file.path(Kind::TxnIndex);
            if !self.shared.files.exists(&path) {
                continue;
            }
            let bytes = self.shared.files.read(&path).at("read", &path)?;
            let entries = txn_index::decode(&bytes)
                .ok_or_else(|| DiskError::damaged(&path, "no transaction index"))?;
            found.extend(entries.iter().copied().filter(overlaps));
            if entries.iter().any(|txn| txn.last_stable_offset >= until) {
                return Ok(found);
            }
        }
        found.extend(active.iter().copied().filter(overlaps));
        Ok(found)
    }
}

/// For how long the oldest record that is not cleaned should have been, by its segment's first
/// batch.
fn overdue_ms(dirty: &[Arc<SealedSegment>], bounds: &CleanBounds) -> Result<i64, DiskError> {
    let latest = bounds.now_ms.saturating_sub(bounds.max_lag_ms.max(0));
    if latest <= 0 {
        return Ok(0);
    }
    let mut oldest = i64::MAX;
    for segment in dirty {
        let first = Headers::new(&segment.file, 0, segment.size_bytes)?.next()?;
        let timestamp = first.map(|(_, header)| header.max_timestamp);
        oldest = oldest.min(timestamp.filter(|timestamp| *timestamp > 0).unwrap_or(i64::MAX));
    }
    Ok(latest.saturating_sub(oldest).max(0))
}

/// The last record of each producer that may still write: compaction keeps the header of its batch.
#[derive(Debug, Default)]
pub(super) struct LastRecords(BTreeMap<ProducerId, (ProducerEpoch, Option<Offset>)>);

impl LastRecords {
    fn of(log: &Log) -> Self {
        let last = |producer: &crate::storage::Producer| {
            let seen = producer.seen().last().map(|batch| batch.last_offset);
            (producer.epoch, seen)
        };
        Self(log.producers.iter().map(|(id, producer)| (id, last(producer))).collect())
    }

    /// A producer's last data batch has its last sequence; where it wrote none, a marker has its
    /// epoch.
    pub(super) fn is_last(&self, header: &BatchHeader) -> bool {
        header.has_producer_id()
            && self.0.get(&header.producer_id).is_some_and(|(epoch, offset)| match offset {
                Some(offset) => header.last_offset() == *offset,
                None => header.is_control() && header.producer_epoch == *epoch,
            })
    }
}

/// What a pass must know beside the segments.
pub struct CleanOrder {
    pub(super) last: LastRecords,
    pub(super) active_aborted: Vec<AbortedTxn>,
    pub(super) segment_bytes: u64,
    pub(super) index_bytes: u64,
    pub(super) index_interval_bytes: u32,
}

impl Log {
    /// For [`CleanView::measure`]; constant time.
    pub fn clean_view(&self) -> CleanView {
        CleanView {
            shared: self.shared.clone(),
            place: self.place.clone(),
            sealed: self.sealed.clone(),
            start_offset: self.start_offset,
            end_offset: self.end_offset,
            active_base_offset: self.active.base_offset(),
            unsynced_from: self.unsynced_from,
        }
    }

    /// For a pass over a view of this log.
    pub fn clean_order(&self) -> CleanOrder {
        let config = self.config.load();
        CleanOrder {
            last: LastRecords::of(self),
            active_aborted: self.active.aborted.clone(),
            segment_bytes: u64::from(config.segment_bytes),
            index_bytes: u64::from(config.segment_index_bytes),
            index_interval_bytes: config.index_interval_bytes,
        }
    }
}
