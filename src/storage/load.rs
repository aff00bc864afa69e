//! Opening a log: after a clean stop by its indexes and snapshots, after any other by a scan of
//! all segments past the recovery point. The tail is cut at the first batch that is not whole and
//! CRC-valid; indexes, producers and epochs are made anew from what is left. Offsets never change.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;

use super::error::{At, DiskError};
use super::fd_cache::SegmentFile;
use super::leader_epochs::LeaderEpochs;
use super::leftovers::{Listing, tidy};
use super::log::{Log, LogConfig, Shared, marker_of};
use super::names::{EPOCH_CHECKPOINT, Kind, Place};
use super::producer_state::{BATCHES_KEPT, Producers};
use super::segment::{ActiveSegment, Appending, Indexes, SealedSegment, find};
use super::snapshot;
use super::txn_index::{self, AbortedTxn};
use super::walk::{Headers, ValidBatch, ValidBatches, read_batch};
use crate::common::{NO_OFFSET, Offset};
use crate::env::OpenMode;
use crate::protocol::batch::BatchHeader;

/// Entries of the offset index that are gone back from a snapshot: at least as many batches, and of
/// small ones 256 KiB.
const RECALLED_ENTRIES: usize = 64;

/// A log that is about to be opened, or made.
pub(super) struct Opening {
    pub shared: Arc<Shared>,
    pub place: Arc<Place>,
    pub config: Arc<ArcSwap<LogConfig>>,
    /// The directory was stopped cleanly, so indexes and snapshots can be trusted.
    pub clean: bool,
    /// From the checkpoint; `None` where it has none.
    pub recovery_point: Option<Offset>,
    pub start_offset: Offset,
    /// From the checkpoint, which was written before that of the start.
    pub high_watermark: Option<Offset>,
    pub now_ms: i64,
}

impl Opening {
    /// Opens the log of a directory that exists; an empty one gets its first segment.
    ///
    /// # Errors
    /// [`DiskError`].
    pub(super) fn open(mut self) -> Result<Log, DiskError> {
        match self.try_open() {
            Err(error) if error.is_damage() && self.clean => {
                // What a clean stop left is not what is there now.
                tracing::error!(%error, "log is damaged, its last segment is looked at anew");
                self.clean = false;
                self.try_open()
            }
            outcome => outcome,
        }
    }

    fn try_open(&self) -> Result<Log, DiskError> {
        let Listing { segments, snapshots, has_epochs } = tidy(&self.shared.files, &self.place)?;
        let Some(first) = segments.first() else { return self.new_log() };
        let mut log = self.empty_log(first.base);
        let saved = if has_epochs { read_epochs(&log)? } else { None };
        log.epochs = saved.clone().unwrap_or_default();
        log.epochs_saved = saved.clone().unwrap_or_default();
        let recovery_point = self.recovery_point.unwrap_or(0);
        let trusted = match self.clean {
            true => segments.len() - 1,
            // The segment that holds the recovery point is the first to be scanned.
            false => {
                segments.partition_point(|segment| segment.base <= recovery_point).saturating_sub(1)
            }
        };
        for pair in segments[..=trusted].windows(2) {
            self.trust(&mut log, pair[0].base, pair[1].base, pair[0].indexed)?;
        }
        let unindexed = segments[..trusted].iter().find(|segment| !segment.indexed);
        log.unsynced_from = unindexed.map_or(segments[trusted].base, |segment| segment.base);
        if self.clean {
            self.open_active(&mut log, segments[trusted].base)?;
        }
        if saved.is_none() {
            rebuild_epochs(&mut log)?;
        }
        log.checked_from = if self.clean { log.end_offset } else { segments[trusted].base };
        if self.clean {
            log.durable_until = log.end_offset;
            // A stop has nothing to save of a log without records, so it saved not even its name.
            (log.dir_unsynced, log.metadata_unsynced) = (log.end_offset == 0, log.end_offset == 0);
            rebuild_producers(&mut log, &snapshots, self.now_ms)?;
        } else {
            let bases = segments[trusted..].iter().map(|s| s.base).collect();
            self.scan(&mut log, bases, snapshots)?;
            log.durable_until = recovery_point.min(log.end_offset);
        }
        self.settle_start(&mut log)?;
        // A node opens thousands of logs at once and uses few of them soon.
        log.active.file.close();
        Ok(log)
    }

    /// A log that begins now, with the file of its first segment.
    fn new_log(&self) -> Result<Log, DiskError> {
        let log = self.empty_log(self.start_offset);
        let path = log.active.file.path(Kind::Log);
        self.shared.files.open(&path, OpenMode::Create).at("create", &path)?;
        Ok(log)
    }

    /// A log without records; its active segment is still to be opened.
    fn empty_log(&self, base_offset: Offset) -> Log {
        let shared = self.shared.clone();
        let file = self.segment(base_offset);
        let mut log = Log {
            shared,
            place: self.place.clone(),
            config: self.config.clone(),
            sealed: Arc::default(),
            active: ActiveSegment::empty(file, self.now_ms, 0),
            producers: Producers::at(base_offset),
            epochs: LeaderEpochs::default(),
            epochs_saved: LeaderEpochs::default(),
            start_offset: base_offset,
            end_offset: base_offset,
            durable_until: base_offset,
            unsynced_from: base_offset,
            checked_from: base_offset,
            dir_unsynced: !self.clean,
            metadata_unsynced: !self.clean,
            snapshots_unsynced: Vec::new(),
        };
        log.active.jitter_ms = log.draw_jitter();
        log
    }

    fn segment(&self, base_offset: Offset) -> Arc<SegmentFile> {
        let cache = self.shared.open_files.clone();
        SegmentFile::new(self.shared.files.clone(), self.place.clone(), base_offset, cache)
    }

    fn size_of(&self, file: &SegmentFile) -> Result<u32, DiskError> {
        let path = file.path(Kind::Log);
        let size_bytes = self.shared.files.size_of(&path).at("stat", &path)?;
        u32::try_from(size_bytes).map_err(|_| DiskError::damaged(&path, "larger than a segment"))
    }

    fn interval_bytes(&self) -> u32 {
        self.config.load().index_interval_bytes
    }

    /// Takes in a sealed segment whose data is known to be durable and whole.
    fn trust(
        &self,
        log: &mut Log,
        base_offset: Offset,
        next_base_offset: Offset,
        indexed: bool,
    ) -> Result<(), DiskError> {
        let file = self.segment(base_offset);
        let size_bytes = self.size_of(&file)?;
        if !indexed {
            let (mut anew, _) = index_anew(&file, size_bytes, self.interval_bytes(), self.now_ms)?;
            anew.size_bytes = size_bytes;
            anew.seal_indexes(&self.shared.files)?;
        }
        let sealed = Arc::new(SealedSegment::new(file, size_bytes, next_base_offset));
        Arc::make_mut(&mut log.sealed).push(sealed);
        log.end_offset = next_base_offset;
        Ok(())
    }

    /// Opens the last segment after a clean stop: the log end is found behind the last entry of
    /// its index.
    fn open_active(&self, log: &mut Log, base_offset: Offset) -> Result<(), DiskError> {
        let file = self.segment(base_offset);
        let size_bytes = self.size_of(&file)?;
        let jitter_ms = log.draw_jitter();
        log.end_offset = base_offset;
        if size_bytes == 0 {
            log.active = ActiveSegment::empty(file, self.now_ms, jitter_ms);
            return Ok(());
        }
        let indexes = Indexes::read(&self.shared.files, &file, size_bytes)?;
        log.active = match indexes.filter(|read| self.is_true(&file, size_bytes, read)) {
            Some(indexes) => {
                ActiveSegment::opened(file.clone(), size_bytes, indexes, self.now_ms, jitter_ms)
            }
            None => {
                let anew = index_anew(&file, size_bytes, self.interval_bytes(), self.now_ms)?;
                anew.1.map_or(Ok(anew.0), Err)?
            }
        };
        let entry = log.active.offsets.last();
        let from = entry.map_or(0, |entry| entry.position);
        let mut max_timestamp = log.active.known_max_timestamp();
        let mut headers = Headers::new(&file, from, size_bytes)?;
        while let Some((position, header)) = headers.next()? {
            let hole = header.base_offset > log.end_offset;
            let torn = hole && self.tear_from().is_some_and(|from| header.base_offset > from);
            let wrong = match entry.filter(|entry| entry.position == position) {
                Some(entry) => {
                    header.last_offset() != base_offset + i64::from(entry.relative_offset)
                }
                None => torn,
            };
            if wrong {
                let what =
                    format!("the batch at byte {position}: not one with its offset was there");
                return Err(DiskError::damaged(&file.path(Kind::Log), what));
            }
            log.end_offset = header.next_offset();
            max_timestamp = max_timestamp.later(&header);
        }
        if self.tear_from().is_some_and(|from| log.end_offset - 1 > from) {
            let what = format!("it ends at {}, which nobody wrote down", log.end_offset);
            return Err(DiskError::damaged(&file.path(Kind::Log), what));
        }
        log.active.max_timestamp = max_timestamp;
        Ok(())
    }

    /// Whether the batches say what the end of the time index does: it has no checksum.
    fn is_true(&self, file: &Arc<SegmentFile>, size_bytes: u32, indexes: &Indexes) -> bool {
        let Some(entry) = indexes.times.last() else { return true };
        let offset = file.base_offset + i64::from(entry.relative_offset);
        let from = indexes.offsets.lookup(entry.relative_offset).map_or(0, |at| at.position);
        let found = find(file, from, size_bytes, offset).ok().flatten();
        let is_true = found.is_some_and(|found| found.header.max_timestamp == entry.timestamp);
        if !is_true {
            file.tell_index_damage(Kind::TimeIndex);
        }
        is_true
    }

    /// Reads every batch of the segments from `bases[0]` on; cuts where the first is not valid.
    fn scan(
        &self,
        log: &mut Log,
        bases: Vec<Offset>,
        mut snapshots: BTreeSet<Offset>,
    ) -> Result<(), DiskError> {
        let files = &self.shared.files;
        let first = bases[0];
        log.end_offset = log.end_offset.max(first);
        for offset in snapshots.split_off(&(first + 1)) {
            let path = self.place.segment(offset, Kind::Snapshot);
            files.remove_file(&path).at("remove", &path)?;
        }
        log.epochs.truncate_from_end(first);
        rebuild_producers(log, &snapshots, self.now_ms)?;
        for (at, base_offset) in bases.iter().enumerate() {
            let whole = self.scan_segment(log, *base_offset)?;
            let Some(next) = bases.get(at + 1).copied() else { break };
            if !whole || next < log.end_offset || self.is_torn(log.end_offset, &bases[at + 1..])? {
                for later in bases[at + 1..].iter().rev() {
                    let file = self.place.segment(*later, Kind::Log);
                    let file = file.display();
                    tracing::warn!(%file, "segment behind the cut end of its log is removed");
                    log.remove_files(&self.segment(*later))?;
                }
                let dir = self.place.dir();
                return files.sync_dir(&dir).at("sync", &dir);
            }
            self.seal_scanned(log, next)?;
        }
        Ok(())
    }

    fn seal_scanned(&self, log: &mut Log, next_base_offset: Offset) -> Result<(), DiskError> {
        log.active.seal_indexes(&self.shared.files)?;
        let (file, size_bytes) = (log.active.file.clone(), log.active.size_bytes);
        let sealed = SealedSegment::new(file, size_bytes, next_base_offset)
            .known_max_timestamp(log.active.max_timestamp);
        Arc::make_mut(&mut log.sealed).push(Arc::new(sealed));
        log.end_offset = next_base_offset;
        log.producers.end_offset = next_base_offset;
        log.write_snapshot()
    }

    /// Whether the end of the segment before the `later` ones was lost in a crash that left them:
    /// nothing was written behind it. (Compaction empties segments too, but never the last.)
    fn is_torn(&self, end_offset: Offset, later: &[Offset]) -> Result<bool, DiskError> {
        if later[0] <= end_offset {
            return Ok(false);
        }
        if self.tear_from().is_some_and(|from| end_offset >= from) {
            return Ok(true);
        }
        for base_offset in later {
            if self.size_of(&self.segment(*base_offset))? > 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// See [`ValidBatches::new`]: what is below the recovery point was durable, so a hole there,
    /// or in a compacted log, is compaction's.
    fn tear_from(&self) -> Option<Offset> {
        self.recovery_point.filter(|_| !self.config.load().compacted)
    }

    /// Makes `base_offset`'s segment the active one, with what of it is valid. `false`: some of it
    /// was cut off.
    fn scan_segment(&self, log: &mut Log, base_offset: Offset) -> Result<bool, DiskError> {
        let file = self.segment(base_offset);
        log.active = ActiveSegment::empty(file.clone(), self.now_ms, log.draw_jitter());
        let interval_bytes = self.interval_bytes();
        let mut batches = ValidBatches::new(&file, log.end_offset, self.tear_from())?;
        while let Some(ValidBatch { header, bytes }) = batches.next()? {
            log.active.note(&Appending::from(&header), header.size_bytes() as u32, interval_bytes);
            log.epochs.assign(header.leader_epoch, header.base_offset);
            let marker = marker_of(&header, || Bytes::copy_from_slice(bytes));
            if let Some((ended, stable)) = log.producers.apply(&header, marker) {
                log.active.note_ended(&ended, stable);
            }
            log.end_offset = header.next_offset();
        }
        let valid_bytes = batches.valid_bytes();
        if valid_bytes == batches.file_bytes() {
            return Ok(true);
        }
        let path = file.path(Kind::Log);
        self.tell_cut(log, &path, valid_bytes, batches.file_bytes());
        let open = file.log()?;
        open.set_len(valid_bytes).at("truncate", &path)?;
        // Or a second crash could bring the cut part back behind what is appended next.
        open.sync_data().at("sync", &path)?;
        Ok(false)
    }

    fn tell_cut(&self, log: &Log, path: &Path, byte: u64, size_bytes: u64) {
        let (file, cut_bytes, offset) = (path.display(), size_bytes - byte, log.end_offset);
        match self.recovery_point.is_some_and(|durable| offset < durable) {
            true => tracing::error!(
                %file, byte, cut_bytes, offset,
                "log is damaged: no valid batch stands where one was durable, it is cut there"
            ),
            false => tracing::warn!(%file, byte, cut_bytes, offset, "torn end of a log is cut off"),
        }
    }

    /// The log starts where its checkpoint says, or with its first segment. A log that lost all it
    /// had above its start begins anew there, so that no offset is given twice.
    fn settle_start(&self, log: &mut Log) -> Result<(), DiskError> {
        let mut start_offset = self.start_offset.max(log.first_base_offset());
        let never_was = self.high_watermark.is_some_and(|committed| committed < self.start_offset);
        if log.end_offset < start_offset && never_was {
            let (dir, start) = (log.place.dir(), start_offset);
            tracing::error!(
                dir = %dir.display(), start,
                "log start checkpoint is damaged: it was never committed so far"
            );
            start_offset = log.first_base_offset();
        }
        if log.end_offset < start_offset {
            return log.truncate_fully(start_offset, self.now_ms);
        }
        log.start_offset = start_offset;
        log.epochs.truncate_from_end(log.end_offset);
        log.epochs.truncate_from_start(start_offset);
        Ok(())
    }
}

/// Indexes a segment by its headers, without looking at the records; as far as they can be read,
/// and what is wrong there.
pub(super) fn index_anew(
    file: &Arc<SegmentFile>,
    size_bytes: u32,
    interval_bytes: u32,
    now_ms: i64,
) -> Result<(ActiveSegment, Option<DiskError>), DiskError> {
    file.forget_indexes();
    let mut segment = ActiveSegment::empty(file.clone(), now_ms, 0);
    let damage = each_header(file, size_bytes, |_, header| {
        segment.note(&Appending::from(header), header.size_bytes() as u32, interval_bytes);
        Ok(())
    })?;
    Ok((segment, damage))
}

/// Shows the headers of a segment as far as they can be read; told and returned is what ends that.
fn each_header(
    file: &Arc<SegmentFile>,
    size_bytes: u32,
    mut see: impl FnMut(u32, &BatchHeader) -> Result<(), DiskError>,
) -> Result<Option<DiskError>, DiskError> {
    let mut headers = Headers::new(file, 0, size_bytes)?;
    loop {
        let seen = match headers.next() {
            Ok(Some((position, header))) => see(position, &header),
            Ok(None) => return Ok(None),
            Err(error) => Err(error),
        };
        match seen {
            Ok(()) => {}
            Err(error) if error.is_damage() => {
                file.tell_damage(&error);
                return Ok(Some(error));
            }
            Err(error) => return Err(error),
        }
    }
}

/// `None`: the file is missing or damaged.
fn read_epochs(log: &Log) -> Result<Option<LeaderEpochs>, DiskError> {
    let path = log.place.file(EPOCH_CHECKPOINT);
    match log.shared.files.read(&path) {
        Ok(bytes) => {
            let told = |error| tracing::warn!(file = %path.display(), %error, "leader epochs are made anew");
            Ok(LeaderEpochs::decode(&bytes).map_err(told).ok())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).at("read", &path),
    }
}

/// Finds the epochs in the batches of all segments that the log has.
fn rebuild_epochs(log: &mut Log) -> Result<(), DiskError> {
    let sealed = log.sealed.iter().map(|s| (s.file.clone(), s.size_bytes));
    let active = (log.active.file.clone(), log.active.size_bytes);
    let pieces: Vec<_> = sealed.chain([active]).filter(|(_, size_bytes)| *size_bytes > 0).collect();
    for (file, size_bytes) in pieces {
        each_header(&file, size_bytes, |_, header| {
            log.epochs.assign(header.leader_epoch, header.base_offset);
            Ok(())
        })?;
    }
    Ok(())
}

/// Sets the producers to what they are at the log's end: from the newest of `snapshots` that can
/// be read, then batch by batch.
pub(super) fn rebuild_producers(
    log: &mut Log,
    snapshots: &BTreeSet<Offset>,
    now_ms: i64,
) -> Result<(), DiskError> {
    let shared = log.shared.clone();
    log.producers = Producers::at(log.first_base_offset());
    for offset in snapshots.range(..=log.end_offset).rev() {
        let path = log.place.segment(*offset, Kind::Snapshot);
        let bytes = shared.files.read(&path).at("read", &path)?;
        if let Some(producers) = snapshot::decode(&bytes) {
            log.producers = Producers::at(*offset);
            producers.into_iter().for_each(|(id, producer)| log.producers.restore(id, producer));
            log.producers.expire(now_ms, shared.producer_expiration_ms);
            recall(log, *offset)?;
            break;
        }
        tracing::warn!(file = %path.display(), "snapshot of producers is damaged, it is removed");
        shared.files.remove_file(&path).at("remove", &path)?;
    }
    let from = log.producers.end_offset;
    let sealed = log.sealed.iter().filter(|s| s.next_base_offset > from);
    let mut pieces: Vec<_> = sealed.map(|s| (s.file.clone(), s.size_bytes)).collect();
    pieces.push((log.active.file.clone(), log.active.size_bytes));
    if from < log.end_offset {
        pieces.iter().try_for_each(|(file, size)| replay(log, file, *size, from))?;
    }
    log.producers.end_offset = log.end_offset;
    Ok(())
}

/// Finds again what a snapshot leaves out: the batches before the last one of each producer, of which
/// a retry may still come when the answers were lost with the broker.
fn recall(log: &mut Log, snapshot_offset: Offset) -> Result<(), DiskError> {
    if log.producers.by_id.is_empty() {
        return Ok(());
    }
    let mut missing = RECALLED_ENTRIES;
    let mut pieces = Vec::new();
    if log.active.base_offset() < snapshot_offset {
        let (position, found) = log.active.position_back(snapshot_offset, missing);
        missing -= found;
        pieces.push((log.active.file.clone(), position, log.active.size_bytes));
    }
    for sealed in log.sealed.iter().rev().filter(|s| s.base_offset() < snapshot_offset) {
        if missing == 0 || pieces.len() == BATCHES_KEPT {
            break;
        }
        let (position, found) = sealed.position_back(snapshot_offset, missing)?;
        missing -= found;
        pieces.push((sealed.file.clone(), position, sealed.size_bytes));
    }
    let mut tail = Producers::at(NO_OFFSET);
    for (file, position, end) in pieces.into_iter().rev() {
        count_in(&mut tail, Headers::new(&file, position, end)?, snapshot_offset)?;
        file.close();
    }
    log.producers.recall(&tail);
    Ok(())
}

fn count_in(tail: &mut Producers, mut headers: Headers, until: Offset) -> Result<(), DiskError> {
    loop {
        match headers.next() {
            Ok(Some((_, header))) if header.base_offset < until => {
                if !header.is_control() {
                    tail.apply(&header, None);
                }
            }
            Ok(_) => return Ok(()),
            // Who reads it is told; here it only means that less is known.
            Err(error) if error.is_damage() => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

fn replay(
    log: &mut Log,
    file: &Arc<SegmentFile>,
    size_bytes: u32,
    from: Offset,
) -> Result<(), DiskError> {
    each_header(file, size_bytes, |position, header| {
        if header.base_offset < from || !header.has_producer_id() {
            return Ok(());
        }
        let control = match header.is_control() {
            true => read_batch(file, position, header)?,
            false => Bytes::new(),
        };
        log.producers.apply(header, marker_of(header, || control));
        Ok(())
    })
    .map(drop)
}

impl Log {
    /// Finds the aborted transactions of a sealed segment in its batches and writes their file anew.
    ///
    /// # Errors
    /// [`DiskError`].
    pub(super) fn aborted_anew(
        &self,
        file: &Arc<SegmentFile>,
    ) -> Result<Vec<AbortedTxn>, DiskError> {
        file.tell_index_damage(Kind::TxnIndex);
        let files = &self.shared.files;
        let segment = self.sealed.iter().find(|s| s.base_offset() == file.base_offset);
        let size_bytes = segment.map_or(0, |segment| segment.size_bytes);
        let mut producers = Producers::at(file.base_offset);
        let known = files.read(&file.path(Kind::Snapshot)).ok();
        let known = known.and_then(|bytes| snapshot::decode(&bytes)).unwrap_or_default();
        known.into_iter().for_each(|(id, producer)| producers.restore(id, producer));
        let mut aborted = Vec::new();
        each_header(file, size_bytes, |position, header| {
            let control = match header.is_control() {
                true => read_batch(file, position, header)?,
                false => Bytes::new(),
            };
            if let Some((ended, stable)) = producers.apply(header, marker_of(header, || control)) {
                aborted.extend(AbortedTxn::of(&ended, stable));
            }
            Ok(())
        })?;
        txn_index::append(files, &file.path(Kind::TxnIndex), &aborted, 0)?;
        Ok(aborted)
    }
}
