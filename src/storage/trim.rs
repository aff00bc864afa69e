//! Making a log shorter: at its start (DeleteRecords, retention) and at its end (a follower that
//! must give up what its leader does not have).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::error::{At, ClientFault, DiskError, StorageError};
use super::fd_cache::SegmentFile;
use super::load;
use super::log::Log;
use super::names::{Kind, parse_segment_file};
use super::producer_state::Producers;
use super::segment::{ActiveSegment, SealedSegment, find};
use crate::common::Offset;
use crate::env::OpenMode;

/// A segment that has records, as retention judges it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentInfo {
    pub base_offset: Offset,
    /// Where the next one begins; of the active one the log end.
    pub next_base_offset: Offset,
    pub size_bytes: u64,
    pub is_active: bool,
}

/// Segments that are no longer in the log; who still reads them can go on until their files are
/// removed.
#[derive(Debug, Default)]
pub struct DeletedSegments(Vec<Arc<SegmentFile>>);

impl DeletedSegments {
    pub(super) fn of(segments: &[Arc<SealedSegment>]) -> Self {
        Self(segments.iter().map(|segment| segment.file.clone()).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes their files (after `file.delete.delay.ms`). What went with its partition's directory
    /// is no longer there.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn remove(&self) -> Result<(), DiskError> {
        self.0.iter().try_for_each(|segment| segment.remove())
    }
}

impl Log {
    /// Moves the log start to `offset`; returns whether it moved. Whole segments below it stay
    /// until [`Log::delete_segments_below`].
    ///
    /// # Errors
    /// [`ClientFault::OutOfRange`]: `offset` is above the log end.
    pub fn advance_start(&mut self, offset: Offset) -> Result<bool, StorageError> {
        let (start, end) = (self.start_offset, self.end_offset);
        if offset > end {
            return Err(ClientFault::OutOfRange { asked: offset, start, end }.into());
        }
        if offset <= start {
            return Ok(false);
        }
        self.start_offset = offset;
        self.epochs.truncate_from_start(offset);
        self.producers.forget_below(offset);
        Ok(true)
    }

    /// The segments that have records, oldest first; the active one last.
    pub fn segments(&self) -> Vec<SegmentInfo> {
        let sealed = self.sealed.iter().map(|segment| SegmentInfo {
            base_offset: segment.base_offset(),
            next_base_offset: segment.next_base_offset,
            size_bytes: u64::from(segment.size_bytes),
            is_active: false,
        });
        let active = SegmentInfo {
            base_offset: self.active.base_offset(),
            next_base_offset: self.end_offset,
            size_bytes: u64::from(self.active.size_bytes),
            is_active: true,
        };
        sealed.chain((active.size_bytes > 0).then_some(active)).collect()
    }

    /// The largest timestamp of the segment that begins at `base_offset`, in milliseconds since the
    /// Unix epoch; where no record has one, when its file was last written (as in Kafka). `None`:
    /// not even that is known, or there is no such segment.
    ///
    /// # Errors
    /// [`DiskError`] of looking at a file.
    pub fn newest_of_segment(&self, base_offset: Offset) -> Result<Option<i64>, DiskError> {
        let active = self.active.base_offset() == base_offset;
        let (file, newest) = if active {
            (&self.active.file, self.active.max_timestamp.timestamp)
        } else {
            let at = self.sealed.binary_search_by_key(&base_offset, |s| s.base_offset());
            let Some(segment) = at.ok().and_then(|at| self.sealed.get(at)) else { return Ok(None) };
            (&segment.file, segment.max_timestamp()?.timestamp)
        };
        if newest >= 0 {
            return Ok(Some(newest));
        }
        let path = file.path(Kind::Log);
        self.shared.files.modified_ms(&path).at("stat", &path)
    }

    /// Takes the sealed segments that end at or below `offset` out of the log; the log start moves
    /// up to what is left. Their files get the names of deleted ones and are to be removed later:
    /// readers that hold them go on until then. What was not flushed yet costs fsyncs: the snapshot
    /// behind each segment that goes must be durable, or a crash in between would forget the
    /// producers.
    ///
    /// # Errors
    /// [`DiskError`]; a segment whose renaming failed is out of the log all the same, and the next
    /// load finds it below the log start.
    pub fn delete_segments_below(&mut self, offset: Offset) -> Result<DeletedSegments, DiskError> {
        let count = self.sealed.partition_point(|segment| segment.next_base_offset <= offset);
        if count == 0 {
            return Ok(DeletedSegments::default());
        }
        self.sync_snapshots(count)?;
        let gone: Vec<_> = Arc::make_mut(&mut self.sealed).drain(..count).collect();
        let first = self.first_base_offset();
        if self.start_offset < first {
            self.start_offset = first;
            self.epochs.truncate_from_start(first);
            self.producers.forget_below(first);
        }
        self.dir_unsynced = true;
        for segment in &gone {
            segment.file.set_aside()?;
            if self.producers.snapshot_offset != segment.base_offset() {
                segment.file.set_snapshot_aside()?;
            }
        }
        Ok(DeletedSegments::of(&gone))
    }

    /// Cuts the log so that it ends at `offset`, or below where a batch holds it in its middle;
    /// returns whether anything was cut. Producers and epochs go back with it. The caller writes the
    /// checkpoints before it appends: a recovery point above the end would let the next start trust
    /// what is not durable (as Kafka does).
    ///
    /// # Errors
    /// [`DiskError`]; the log may then hold less than before, and must be loaded anew.
    pub fn truncate_to(&mut self, offset: Offset, now_ms: i64) -> Result<bool, DiskError> {
        if offset >= self.end_offset {
            return Ok(false);
        }
        if offset < self.first_base_offset() {
            self.truncate_fully(offset, now_ms)?;
            return Ok(true);
        }
        while self.active.base_offset() > offset {
            self.remove_files(&self.active.file.clone())?;
            self.reopen_last(now_ms)?;
        }
        let active = &mut self.active;
        let from = active.position_before(offset);
        let found = find(&active.file, from, active.size_bytes, offset)?;
        self.end_offset = found.map_or(offset, |found| found.header.base_offset.min(offset));
        active
            .truncate(found.map_or(active.size_bytes, |found| found.position), self.end_offset)?;
        self.start_offset = self.start_offset.min(self.end_offset);
        self.durable_until = self.durable_until.min(self.end_offset);
        self.unsynced_from = self.unsynced_from.min(self.active.base_offset());
        self.snapshots_unsynced.retain(|snapshot| *snapshot <= self.end_offset);
        self.epochs.truncate_from_end(self.end_offset);
        let snapshots = self.keep_snapshots(self.end_offset)?;
        self.sync_dir()?;
        load::rebuild_producers(self, &snapshots, now_ms)?;
        Ok(true)
    }

    /// Drops everything; the next record gets `offset`.
    ///
    /// # Errors
    /// [`DiskError`], as [`Log::truncate_to`].
    pub fn truncate_fully(&mut self, offset: Offset, now_ms: i64) -> Result<(), DiskError> {
        self.remove_files(&self.active.file.clone())?;
        let sealed = std::mem::take(&mut self.sealed);
        sealed.iter().rev().try_for_each(|segment| self.remove_files(&segment.file))?;
        self.keep_snapshots(-1)?;
        self.active = self.begin_segment(offset, now_ms)?;
        (self.start_offset, self.end_offset) = (offset, offset);
        (self.durable_until, self.unsynced_from) = (offset, offset);
        self.snapshots_unsynced.clear();
        self.epochs.truncate_from_end(offset.min(0));
        self.producers = Producers::at(offset);
        self.sync_dir()
    }

    /// Makes the snapshots behind the first `count` sealed segments durable, if no flush has.
    fn sync_snapshots(&mut self, count: usize) -> Result<(), DiskError> {
        let behind = self.sealed[..count].iter().map(|segment| segment.next_base_offset);
        let unsynced: Vec<_> =
            behind.filter(|offset| self.snapshots_unsynced.contains(offset)).collect();
        for offset in &unsynced {
            let path = self.place.segment(*offset, Kind::Snapshot);
            let file = self.shared.files.open(&path, OpenMode::ReadWrite).at("open", &path)?;
            file.sync_data().at("sync", &path)?;
        }
        if unsynced.is_empty() {
            return Ok(());
        }
        self.snapshots_unsynced.retain(|offset| !unsynced.contains(offset));
        self.sync_dir()
    }

    /// What was removed must not come back behind what is appended next.
    fn sync_dir(&mut self) -> Result<(), DiskError> {
        let dir = self.place.dir();
        self.dir_unsynced = false;
        self.shared.files.sync_dir(&dir).at("sync", &dir)
    }

    /// The last sealed segment becomes the active one.
    fn reopen_last(&mut self, now_ms: i64) -> Result<(), DiskError> {
        let Some(last) = Arc::make_mut(&mut self.sealed).pop() else {
            return Err(DiskError::damaged(&self.place.dir(), "no segment is left to cut"));
        };
        // Its indexes will be written anew: no map of them may stay in the cache.
        last.file.forget_indexes();
        let (files, jitter_ms) = (&self.shared.files, self.draw_jitter());
        let indexes = super::segment::Indexes::read(files, &last.file, last.size_bytes)?;
        self.active = match indexes {
            Some(indexes) => {
                let file = last.file.clone();
                ActiveSegment::opened(file, last.size_bytes, indexes, now_ms, jitter_ms)
            }
            None => {
                let interval_bytes = self.config.load().index_interval_bytes;
                let anew = load::index_anew(&last.file, last.size_bytes, interval_bytes, now_ms)?;
                anew.1.map_or(Ok(anew.0), Err)?
            }
        };
        self.end_offset = last.next_base_offset;
        Ok(())
    }

    /// Removes all files of a segment but its snapshot, newest data first. Under the name of deleted
    /// ones, so that a reader that had not opened them yet looks again; Kafka lets them wait for
    /// such readers.
    pub(super) fn remove_files(&self, segment: &SegmentFile) -> Result<(), DiskError> {
        let files = &self.shared.files;
        segment.set_aside()?;
        segment.remove()?;
        let snapshot = segment.path(Kind::Snapshot);
        let needed = self.producers.snapshot_offset == segment.base_offset;
        if !needed && files.exists(&snapshot) {
            files.remove_file(&snapshot).at("remove", &snapshot)?;
        }
        Ok(())
    }

    /// Removes the snapshots above `offset`; returns those that are left.
    fn keep_snapshots(&self, offset: Offset) -> Result<BTreeSet<Offset>, DiskError> {
        let (files, dir) = (&self.shared.files, self.place.dir());
        let mut kept = BTreeSet::new();
        for entry in files.list(&dir).at("list", &dir)? {
            match parse_segment_file(&entry.name) {
                Some((at, Kind::Snapshot)) if at <= offset => drop(kept.insert(at)),
                Some((_, Kind::Snapshot)) => {
                    let path = dir.join(&entry.name);
                    files.remove_file(&path).at("remove", &path)?;
                }
                _ => {}
            }
        }
        Ok(kept)
    }
}
