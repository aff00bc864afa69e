//! Compaction of one log (Kafka's cleaner): a first look over what is not cleaned yet notes the
//! newest offset of each key, then all segments up to there are copied without what is superseded
//! and take the place of the old ones. Offsets never change.
//! Lives here: one pass, the swap of segments. May not live here: which log is cleaned when, and
//! the partition's lock (`replica::cleaner`); recovery of a swap (`leftovers.rs`).
//! Invariant: until the last rename of a swap the old segments have all that was ever answered.

mod filter;
mod offset_map;
mod segments;
mod swap;
mod transactions;
mod view;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::error::{At, DiskError};
use super::names::Kind;
use super::segment::SealedSegment;
use crate::common::Offset;
use crate::protocol::batch::records;
use filter::{Control, Filter, control_of};
use offset_map::OffsetMap;
use segments::{Batches, CleanedSegment};
use transactions::CleanedTxns;

pub use segments::CleanedSegment as Cleaned;
pub use view::{CleanBounds, CleanOrder, CleanView, Cleanable};

/// Why a pass ended early. The log is as it was, or cleaned in part.
#[derive(Debug, thiserror::Error)]
pub enum CleanError {
    /// Its owner does not want it to go on, or the log's segments are others by now.
    #[error("the pass was called off")]
    CalledOff,
    /// Not a key fits in the memory: a setting to change.
    #[error(
        "no key fits in the cleaner's memory: raise log.cleaner.dedupe.buffer.size or lower \
         log.cleaner.threads"
    )]
    NoMemory,
    /// Also of a damaged batch.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// What a pass may take, and the topic's wish.
#[derive(Debug, Clone, Copy)]
pub struct CleanLimits {
    /// For the keys, in bytes.
    pub map_bytes: u64,
    /// How full that may get, as a part of 1.
    pub load_factor: f64,
    /// For reading, and for writing, in bytes each.
    pub io_bytes: usize,
    /// `delete.retention.ms`
    pub delete_retention_ms: i64,
    pub now_ms: i64,
}

/// What a pass has done.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CleanStats {
    /// Below it everything is cleaned now.
    pub clean_until: Offset,
    /// Bytes looked through for keys, not counting the copying.
    pub map_bytes: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub records_read: u64,
    pub records_kept: u64,
    /// Records without a key, dropped.
    pub keyless: u64,
    /// Part of the memory for keys that was used.
    pub map_utilization: f64,
}

/// The owner's side of a pass.
pub trait CleanOwner {
    /// Told of bytes read or written; may wait. `false` calls the pass off.
    fn goes_on(&mut self, bytes: u64) -> bool;

    /// Puts the segment in its place in the log with [`Log::swap_in`](super::Log::swap_in), under
    /// the partition's lock; `false`: the log does not have the old ones any more.
    ///
    /// # Errors
    /// [`DiskError`].
    fn swap_in(&mut self, cleaned: &Cleaned) -> Result<bool, DiskError>;
}

/// Cleans what `cleanable` names: [`Cleanable::first_dirty`] to [`Cleanable::until`], or as far as
/// the memory for keys reaches.
///
/// # Errors
/// [`CleanError`]; what was swapped in by then stays.
pub fn clean(
    view: &CleanView,
    order: &CleanOrder,
    cleanable: &Cleanable,
    limits: &CleanLimits,
    owner: &mut dyn CleanOwner,
) -> Result<CleanStats, CleanError> {
    let mut pass = Pass { view, order, cleanable, limits, owner, stats: CleanStats::default() };
    let map = pass.map_keys()?;
    let (end, until) = (map.latest() + 1, cleanable.until);
    let first = view.below(end).first().map_or(0, |segment| segment.base_offset());
    let mut filter = Filter {
        txns: CleanedTxns::new(view.aborted(first, until, &order.active_aborted)?),
        map: &map,
        last: &order.last,
        until,
        now_ms: limits.now_ms,
        delete_retention_ms: limits.delete_retention_ms,
        records_read: 0,
        records_kept: 0,
        keyless: 0,
    };
    for group in pass.groups(view.below(end))? {
        pass.clean_group(group, &mut filter)?;
    }
    Ok(CleanStats {
        clean_until: end,
        records_read: filter.records_read,
        records_kept: filter.records_kept,
        keyless: filter.keyless,
        map_utilization: map.utilization(),
        ..pass.stats
    })
}

struct Pass<'a> {
    view: &'a CleanView,
    order: &'a CleanOrder,
    cleanable: &'a Cleanable,
    limits: &'a CleanLimits,
    owner: &'a mut dyn CleanOwner,
    stats: CleanStats,
}

impl Pass<'_> {
    fn pace(&mut self, bytes: u64) -> Result<(), CleanError> {
        if bytes == 0 || self.owner.goes_on(bytes) { Ok(()) } else { Err(CleanError::CalledOff) }
    }

    fn map_keys(&mut self) -> Result<OffsetMap, CleanError> {
        let Cleanable { first_dirty, until, .. } = *self.cleanable;
        let random = &self.view.shared.random;
        let secret = (random.next_u64(), random.next_u64());
        // What is not cleaned has no holes but those of gone transactions: offsets count records.
        let keys_max = until.saturating_sub(first_dirty).max(0) as u64;
        let CleanLimits { map_bytes, load_factor, .. } = *self.limits;
        let map = OffsetMap::new(map_bytes, load_factor, keys_max, secret);
        let mut map = map.ok_or(CleanError::NoMemory)?;
        map.set_latest(first_dirty - 1);
        let active = &self.order.active_aborted;
        let mut txns = CleanedTxns::new(self.view.aborted(first_dirty, until, active)?);
        for segment in self.view.between(first_dirty, until) {
            if !self.map_segment(segment, &mut map, &mut txns)? {
                break;
            }
        }
        Ok(map)
    }

    /// `false`: the map is full.
    fn map_segment(
        &mut self,
        segment: &Arc<SealedSegment>,
        map: &mut OffsetMap,
        txns: &mut CleanedTxns,
    ) -> Result<bool, CleanError> {
        let first_dirty = self.cleanable.first_dirty;
        let from = segment.position_before(first_dirty)?;
        let mut batches = Batches::new(segment, from, self.limits.io_bytes)?;
        while let Some((header, bytes)) = batches.next()? {
            let read = batches.take_read();
            self.stats.map_bytes += read;
            self.pace(read)?;
            let damaged = |error| batches.damaged(&header, &error);
            if header.is_control() {
                if let Control::Marker(marker) = control_of(&bytes).map_err(damaged)? {
                    txns.saw_marker(&header, Some(marker));
                }
            } else if !txns.saw_data(&header) {
                for record in records(&bytes) {
                    let record = record.map_err(damaged)?;
                    let Some(key) = record.key.filter(|_| record.offset >= first_dirty) else {
                        continue;
                    };
                    if map.is_full() {
                        return Ok(false);
                    }
                    map.put(&key, record.offset);
                }
            }
            if header.last_offset() >= first_dirty {
                map.set_latest(header.last_offset());
            }
        }
        map.set_latest((segment.next_base_offset - 1).max(map.latest()));
        Ok(true)
    }

    /// Neighbours that fit into one segment together, by size, by indexes, by offsets.
    fn groups<'s>(
        &self,
        segments: &'s [Arc<SealedSegment>],
    ) -> Result<Vec<&'s [Arc<SealedSegment>]>, CleanError> {
        let mut groups = Vec::new();
        let (mut from, mut sizes) = (0, [0; 3]);
        for (at, segment) in segments.iter().enumerate() {
            let index_bytes = |kind| self.size_of(segment, kind);
            let more = [
                u64::from(segment.size_bytes),
                index_bytes(Kind::OffsetIndex)?,
                index_bytes(Kind::TimeIndex)?,
            ];
            let most = [self.order.segment_bytes, self.order.index_bytes, self.order.index_bytes];
            let together = |of: usize| sizes[of] + more[of] <= most[of];
            let reach = segment.next_base_offset - 1 - segments[from].base_offset();
            let near = segment.size_bytes == 0 || reach <= i64::from(i32::MAX);
            if at > from && !(near && (0..3).all(together)) {
                groups.push(&segments[from..at]);
                (from, sizes) = (at, [0; 3]);
            }
            (0..3).for_each(|of| sizes[of] += more[of]);
        }
        if from < segments.len() {
            groups.push(&segments[from..]);
        }
        Ok(groups)
    }

    fn size_of(&self, segment: &SealedSegment, kind: Kind) -> Result<u64, CleanError> {
        let path = segment.file.path(kind);
        Ok(self.view.shared.files.size_of(&path).at("stat", &path)?)
    }

    fn clean_group(
        &mut self,
        group: &[Arc<SealedSegment>],
        filter: &mut Filter<'_>,
    ) -> Result<(), CleanError> {
        let mut cleaned = CleanedSegment::create(self.view, group, self.limits.now_ms)?;
        let done = self.fill(&mut cleaned, filter).and_then(|()| {
            cleaned.finish()?;
            match self.owner.swap_in(&cleaned)? {
                true => Ok(cleaned.settle()?),
                false => Err(CleanError::CalledOff),
            }
        });
        if done.is_err() {
            // What cannot be removed now goes with the next start.
            drop(cleaned.discard());
        }
        done
    }

    fn fill(
        &mut self,
        cleaned: &mut CleanedSegment,
        filter: &mut Filter<'_>,
    ) -> Result<(), CleanError> {
        let interval_bytes = self.order.index_interval_bytes;
        for segment in cleaned.old().to_vec() {
            let mut batches = Batches::new(&segment, 0, self.limits.io_bytes)?;
            while let Some((header, bytes)) = batches.next()? {
                let read = batches.take_read();
                self.stats.read_bytes += read;
                self.pace(read)?;
                let filtered = filter.batch(&header, &bytes);
                let filtered = filtered.map_err(|error| batches.damaged(&header, &error))?;
                cleaned.push(filtered, &header, &bytes, interval_bytes)?;
                let written = cleaned.write_beyond(self.limits.io_bytes)?;
                self.stats.written_bytes += written;
                self.pace(written)?;
            }
        }
        let written = cleaned.write_beyond(0)?;
        self.stats.written_bytes += written;
        self.pace(written)
    }
}
