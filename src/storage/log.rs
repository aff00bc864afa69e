//! One partition's log: a chain of segments, the producers that wrote to it, the epochs of its
//! leaders. Owned by its partition, under one lock.
//! Invariant: offsets are dense at the end: a batch gets the end offset and moves it by its count;
//! state changes after the write, and only if it succeeded.

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::error::{At, ClientFault, DiskError, StorageError};
use super::fd_cache::{FdCache, SegmentFile};
use super::flush::FlushPlan;
use super::leader_epochs::LeaderEpochs;
use super::names::{EPOCH_CHECKPOINT, Kind, PARTITION_METADATA, Place, segment_file};
use super::producer_state::{Origin, Producers};
use super::room::Room;
use super::segment::{ActiveSegment, Appending, SEGMENT_BYTES_MAX, SealedSegment};
use super::snapshot;
use crate::common::{LeaderEpoch, NO_TIMESTAMP, Offset, Proof};
use crate::env::{Files, OpenMode, Random};
use crate::protocol::batch::{BatchHeader, CheckedBatch, EndTxnMarker, HEADER_BYTES, records};

/// What a topic's configuration says to the log engine; changes reach running logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// `segment.bytes`
    pub segment_bytes: u32,
    /// `segment.ms`
    pub segment_ms: i64,
    /// `segment.jitter.ms`
    pub segment_jitter_ms: i64,
    /// `segment.index.bytes`
    pub segment_index_bytes: u32,
    /// `index.interval.bytes`
    pub index_interval_bytes: u32,
    /// `cleanup.policy` has `compact`: holes in the offsets are no damage.
    pub compacted: bool,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            segment_bytes: 1 << 30,
            segment_ms: 7 * 24 * 3_600_000,
            segment_jitter_ms: 0,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            compacted: false,
        }
    }
}

/// What all logs of a directory share.
pub(super) struct Shared {
    pub files: Files,
    pub random: Random,
    pub open_files: Arc<FdCache>,
    /// `producer.id.expiration.ms`
    pub producer_expiration_ms: i64,
    pub room: Room,
}

/// Where an appended batch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    pub base_offset: Offset,
    pub last_offset: Offset,
    /// The broker's time where the topic has LogAppendTime, else -1.
    pub log_append_time: i64,
    /// A retry: nothing was written, the offsets are those of the first time. It is to be answered
    /// once they are committed.
    pub duplicate: bool,
    /// A new segment was begun: [`Log::plan_flush`] up to its base offset is due.
    pub rolled: bool,
}

pub struct Log {
    pub(super) shared: Arc<Shared>,
    pub(super) place: Arc<Place>,
    pub(super) config: Arc<ArcSwap<LogConfig>>,
    /// By base offset. Copied when it changes, so that readers keep theirs.
    pub(super) sealed: Arc<Vec<Arc<SealedSegment>>>,
    pub(super) active: ActiveSegment,
    pub(super) producers: Producers,
    pub(super) epochs: LeaderEpochs,
    /// What their file says.
    pub(super) epochs_saved: LeaderEpochs,
    pub(super) start_offset: Offset,
    pub(super) end_offset: Offset,
    /// All data below it is durable.
    pub(super) durable_until: Offset,
    /// Base offset of the first segment of which not all is durable: data, indexes, and the
    /// snapshot behind it.
    pub(super) unsynced_from: Offset,
    /// Files were made or removed since the directory was synced.
    pub(super) dir_unsynced: bool,
    /// Batches from it on were written or looked at in this life of the process; those below are
    /// looked at when they are read.
    pub(super) checked_from: Offset,
    /// `partition.metadata` was never synced.
    pub(super) metadata_unsynced: bool,
    /// Snapshot files that no flush has made durable yet, ascending.
    pub(super) snapshots_unsynced: Vec<Offset>,
}

impl Log {
    /// The first offset that may be read (DeleteRecords and retention move it).
    pub fn start_offset(&self) -> Offset {
        self.start_offset
    }

    /// The first offset on this disk; differs from the start once older data is remote.
    pub fn local_start_offset(&self) -> Offset {
        self.start_offset.max(self.first_base_offset())
    }

    /// The next offset to be written.
    pub fn end_offset(&self) -> Offset {
        self.end_offset
    }

    /// All data below it is durable.
    pub fn durable_until(&self) -> Offset {
        self.durable_until
    }

    /// A start after a crash scans the segment that holds it, and all later ones; so it lies inside
    /// the first segment whose indexes are not durable, though all its data may be. (At its end it
    /// would lie in the next one as soon as the log rolls.)
    pub fn recovery_point(&self) -> Offset {
        let unsynced = self.sealed.iter().find(|s| s.base_offset() >= self.unsynced_from);
        let next = unsynced.map_or(self.end_offset, |segment| segment.next_base_offset);
        self.durable_until.min((next - 1).max(self.first_base_offset()))
    }

    /// Bytes of all segments.
    pub fn size_bytes(&self) -> u64 {
        let sealed: u64 = self.sealed.iter().map(|s| u64::from(s.size_bytes)).sum();
        sealed + u64::from(self.active.size_bytes)
    }

    pub fn segment_count(&self) -> usize {
        self.sealed.len() + 1
    }

    /// Base offset of the segment that is appended to.
    pub fn active_base_offset(&self) -> Offset {
        self.active.base_offset()
    }

    pub fn producers(&self) -> &Producers {
        &self.producers
    }

    /// For verifications to begin (KIP-890).
    pub fn producers_mut(&mut self) -> &mut Producers {
        &mut self.producers
    }

    pub fn epochs(&self) -> &LeaderEpochs {
        &self.epochs
    }

    /// The epoch that wrote `offset`.
    pub fn epoch_of(&self, offset: Offset) -> Option<LeaderEpoch> {
        self.epochs.of(offset)
    }

    /// See [`LeaderEpochs::end_of`].
    pub fn epoch_end(&self, epoch: LeaderEpoch) -> Option<(LeaderEpoch, Offset)> {
        self.epochs.end_of(epoch, self.end_offset)
    }

    /// A new leader writes from the end on.
    pub fn assign_epoch(&mut self, epoch: LeaderEpoch) {
        self.epochs.assign(epoch, self.end_offset);
    }

    /// The first offset that a read-committed consumer must wait for; `None`: nothing is open.
    pub fn first_unstable_offset(&mut self, high_watermark: Offset) -> Option<Offset> {
        self.producers.first_unstable_offset(high_watermark)
    }

    /// Forgets producers that have been silent for `producer.id.expiration.ms`.
    pub fn expire_producers(&mut self, now_ms: i64) {
        self.producers.expire(now_ms, self.shared.producer_expiration_ms);
    }

    /// Appends a client's batch, or finds that it is a retry.
    /// - `append_time`: the broker's time for LogAppendTime; `None` for CreateTime.
    /// - Cost: one vectored write, no allocation.
    ///
    /// # Errors
    /// [`StorageError::Client`] before anything is written; [`StorageError::Disk`] with nothing
    /// appended.
    pub fn append(
        &mut self,
        batch: &CheckedBatch,
        proof: Proof,
        leader_epoch: LeaderEpoch,
        now_ms: i64,
        append_time: Option<i64>,
    ) -> Result<Appended, StorageError> {
        if batch.header.has_producer_id() {
            if let Some(seen) = self.producers.retry_of(&batch.header) {
                return Ok(Appended {
                    base_offset: seen.base_offset(),
                    last_offset: seen.last_offset,
                    log_append_time: seen.timestamp,
                    duplicate: true,
                    rolled: false,
                });
            }
            self.producers.check(&batch.header, Origin::Client, proof)?;
        }
        let path = || self.active.file.path(Kind::Log);
        self.shared.room.take(batch.bytes.len(), path)?;
        self.write(batch, None, leader_epoch, now_ms, append_time)
    }

    /// Appends a coordinator's batch, plain or transactional, if it was made for the log's end.
    ///
    /// # Errors
    /// [`StorageError::Moved`], and those of [`Log::append`].
    pub fn append_journal(
        &mut self,
        batch: &CheckedBatch,
        expected_base: Offset,
        proof: Proof,
        leader_epoch: LeaderEpoch,
        now_ms: i64,
    ) -> Result<Appended, StorageError> {
        self.check_end(expected_base)?;
        if batch.header.has_producer_id() {
            self.producers.check(&batch.header, Origin::Coordinator, proof)?;
        }
        self.write(batch, None, leader_epoch, now_ms, None)
    }

    /// Appends the batch of a transaction marker.
    /// - `expected_base`: where it must stand, if that matters.
    /// - `transaction_version`: level of `transaction.version` that its epoch goes by.
    ///
    /// # Errors
    /// [`StorageError::Moved`], and those of [`Log::append`].
    pub fn append_marker(
        &mut self,
        batch: &CheckedBatch,
        expected_base: Option<Offset>,
        transaction_version: i16,
        leader_epoch: LeaderEpoch,
        now_ms: i64,
    ) -> Result<Appended, StorageError> {
        self.check_end(expected_base.unwrap_or(self.end_offset))?;
        let marker = marker_of(&batch.header, || batch.bytes.clone());
        if let Some(marker) = marker {
            self.producers.check_marker(&batch.header, marker, transaction_version)?;
        }
        self.write(batch, marker, leader_epoch, now_ms, None)
    }

    fn check_end(&self, expected: Offset) -> Result<(), StorageError> {
        let found = self.end_offset;
        if expected == found { Ok(()) } else { Err(StorageError::Moved { expected, found }) }
    }

    /// Writes a batch that may be written; a full disk is told.
    fn write(
        &mut self,
        batch: &CheckedBatch,
        marker: Option<EndTxnMarker>,
        leader_epoch: LeaderEpoch,
        now_ms: i64,
        append_time: Option<i64>,
    ) -> Result<Appended, StorageError> {
        let written = self.write_at_end(batch, marker, leader_epoch, now_ms, append_time);
        match &written {
            Ok(_) => self.shared.room.tell_room(),
            Err(StorageError::Disk(error)) => self.shared.room.tell_full(error),
            Err(_) => {}
        }
        written
    }

    fn write_at_end(
        &mut self,
        batch: &CheckedBatch,
        marker: Option<EndTxnMarker>,
        leader_epoch: LeaderEpoch,
        now_ms: i64,
        append_time: Option<i64>,
    ) -> Result<Appended, StorageError> {
        let base_offset = self.end_offset;
        let front = batch.patched_header(base_offset, leader_epoch, append_time);
        let max_timestamp = append_time.unwrap_or(batch.max_timestamp);
        let header = BatchHeader { base_offset, leader_epoch, max_timestamp, ..batch.header };
        crate::invariant!(header.last_offset() >= base_offset, "offsets run back: {header:?}");
        let (size_bytes, config) = (batch.bytes.len(), self.config.load());
        let segment_bytes = config.segment_bytes as usize;
        if size_bytes > segment_bytes {
            return Err(ClientFault::OverSegment { size_bytes, segment_bytes }.into());
        }
        drop(config);
        let body = &batch.bytes[HEADER_BYTES..];
        let rolled = self.put(&front, body, &header, marker, now_ms)?;
        Ok(Appended {
            base_offset,
            last_offset: header.last_offset(),
            log_append_time: append_time.unwrap_or(NO_TIMESTAMP),
            duplicate: false,
            rolled,
        })
    }

    /// Writes a batch whose header says where it stands; returns whether a segment was begun.
    pub(super) fn put(
        &mut self,
        front: &[u8; HEADER_BYTES],
        body: &[u8],
        header: &BatchHeader,
        marker: Option<EndTxnMarker>,
        now_ms: i64,
    ) -> Result<bool, DiskError> {
        let config = self.config.load();
        let rolled = self.should_roll(&config, front.len() + body.len(), header, now_ms)?;
        if rolled {
            self.roll(now_ms)?;
        }
        let appending = Appending::from(header);
        self.active.append(front, body, &appending, config.index_interval_bytes)?;
        self.end_offset = header.next_offset();
        self.epochs.assign(header.leader_epoch, header.base_offset);
        self.active.write_full_pieces(&self.shared.files);
        if let Some((ended, stable)) = self.producers.apply(header, marker) {
            self.active.note_ended(&ended, stable);
        }
        Ok(rolled)
    }

    /// Kafka's rule: by size, by the age of the first record, by full indexes, by offsets that no
    /// longer fit four bytes.
    fn should_roll(
        &mut self,
        config: &LogConfig,
        size_bytes: usize,
        header: &BatchHeader,
        now_ms: i64,
    ) -> Result<bool, DiskError> {
        let active = &mut self.active;
        if active.size_bytes == 0 {
            return Ok(false);
        }
        let after = u64::from(active.size_bytes) + size_bytes as u64;
        let index_bytes = config.segment_index_bytes as usize;
        let full = after > u64::from(config.segment_bytes).min(SEGMENT_BYTES_MAX)
            || active.offsets.entries().len() >= index_bytes / 8
            || active.times.entries().len() + 1 >= index_bytes / 12
            || header.last_offset() - active.base_offset() > i64::from(i32::MAX);
        if full {
            return Ok(true);
        }
        let waited_ms = active.waited_ms(now_ms, header.max_timestamp)?;
        Ok(waited_ms > config.segment_ms - active.jitter_ms)
    }

    /// Seals the active segment and begins a new one at the end offset. The snapshot of producers
    /// at that point is what a later recovery begins with. An empty active segment stays.
    ///
    /// # Errors
    /// [`DiskError`]; the log is then as it was.
    pub fn roll(&mut self, now_ms: i64) -> Result<(), DiskError> {
        if self.active.size_bytes == 0 {
            return Ok(());
        }
        let shared = self.shared.clone();
        self.active.complete_indexes(&shared.files)?;
        self.write_snapshot()?;
        let next = self.begin_segment(self.end_offset, now_ms)?;
        let old = std::mem::replace(&mut self.active, next);
        let sealed = SealedSegment::new(old.file, old.size_bytes, self.end_offset)
            .known_max_timestamp(old.max_timestamp);
        Arc::make_mut(&mut self.sealed).push(Arc::new(sealed));
        Ok(())
    }

    /// Makes the files of an empty segment. What an earlier failed try left is cut to nothing.
    pub(super) fn begin_segment(
        &mut self,
        base_offset: Offset,
        now_ms: i64,
    ) -> Result<ActiveSegment, DiskError> {
        let shared = &self.shared;
        let (place, cache) = (self.place.clone(), shared.open_files.clone());
        let file = SegmentFile::new(shared.files.clone(), place, base_offset, cache);
        let path = file.path(Kind::Log);
        let made = shared.files.open(&path, OpenMode::Create).at("create", &path)?;
        made.set_len(0).at("truncate", &path)?;
        self.dir_unsynced = true;
        Ok(ActiveSegment::empty(file, now_ms, self.draw_jitter()))
    }

    pub(super) fn draw_jitter(&self) -> i64 {
        let config = self.config.load();
        let most = config.segment_jitter_ms.min(config.segment_ms).max(0) as u64;
        if most == 0 { 0 } else { self.shared.random.below(most) as i64 }
    }

    /// Writes the producers' state at the end offset, unless that snapshot is there.
    pub(super) fn write_snapshot(&mut self) -> Result<(), DiskError> {
        if self.producers.snapshot_offset >= self.producers.end_offset {
            return Ok(());
        }
        let offset = self.producers.end_offset;
        let path = self.place.segment(offset, Kind::Snapshot);
        let count = self.producers.by_id.iter().map(|(id, producer)| (*id, producer));
        self.shared.files.write(&path, &snapshot::encode(count)).at("write", &path)?;
        self.producers.snapshot_offset = offset;
        self.snapshots_unsynced.push(offset);
        self.dir_unsynced = true;
        Ok(())
    }

    /// What must be synced so that all below `until` (usually the active segment's base after a
    /// roll, or the end) survives a crash. Run it without the lock, then [`Log::flushed`].
    ///
    /// # Errors
    /// [`DiskError`] of writing the epochs' file.
    pub fn plan_flush(&mut self, until: Offset) -> Result<FlushPlan, DiskError> {
        let mut plan = FlushPlan::of(&self.place);
        plan.until = until;
        self.plan_epochs(&mut plan)?;
        let unsynced = |base: Offset| base >= self.unsynced_from && base < until;
        for segment in self.sealed.iter().filter(|segment| unsynced(segment.base_offset())) {
            plan.segments.push(segment.file.clone());
            plan.files.extend(segment.file.names_of_indexes());
            plan.synced_until = segment.next_base_offset;
        }
        let active = until > self.active.base_offset() && until > self.durable_until;
        if active {
            plan.segments.push(self.active.file.clone());
        }
        if plan.segments.is_empty() && self.snapshots_unsynced.is_empty() {
            return Ok(plan);
        }
        plan.snapshots.clone_from(&self.snapshots_unsynced);
        let name = |offset: &Offset| segment_file(*offset, Kind::Snapshot).into();
        plan.files.extend(plan.snapshots.iter().map(name));
        if std::mem::take(&mut self.metadata_unsynced) {
            plan.files.push(PARTITION_METADATA.into());
            // The log's own name too: whoever made it may not have come to that yet.
            plan.dirs.extend(self.place.dir().parent().map(Path::to_path_buf));
        }
        plan.own_dir |= std::mem::take(&mut self.dir_unsynced);
        Ok(plan)
    }

    /// An epoch that wrote nothing yet is not worth a file: the next leader's would replace it.
    fn plan_epochs(&mut self, plan: &mut FlushPlan) -> Result<(), DiskError> {
        let mut written = self.epochs.clone();
        written.truncate_from_end(self.end_offset);
        if written == self.epochs_saved {
            return Ok(());
        }
        let name = format!("{EPOCH_CHECKPOINT}.tmp");
        let temporary = self.place.file(&name);
        self.shared.files.write(&temporary, &written.encode()).at("write", &temporary)?;
        plan.files.push(name.clone().into());
        plan.renames.push((name.into(), EPOCH_CHECKPOINT.into()));
        plan.own_dir = true;
        self.epochs_saved = written;
        Ok(())
    }

    /// The plan has run. One plan of a log may be under way at a time.
    pub fn flushed(&mut self, plan: &FlushPlan) {
        self.durable_until = self.durable_until.max(plan.until.min(self.end_offset));
        let synced_until = plan.synced_until.min(self.active.base_offset());
        self.unsynced_from = self.unsynced_from.max(synced_until);
        self.snapshots_unsynced.retain(|offset| !plan.snapshots.contains(offset));
    }

    /// Makes all that is appended durable, under the lock.
    ///
    /// # Errors
    /// [`DiskError`]; never to be retried, the directory must go offline.
    pub fn flush(&mut self) -> Result<(), DiskError> {
        let plan = self.plan_flush(self.end_offset)?;
        plan.run(&self.shared.files)?;
        self.flushed(&plan);
        Ok(())
    }

    /// Leaves all files as a clean start finds them; nothing may be appended after it. The plan is
    /// to be run before the directory is marked clean.
    ///
    /// # Errors
    /// [`DiskError`]; the directory must then not be marked clean.
    pub fn close(&mut self) -> Result<FlushPlan, DiskError> {
        self.write_snapshot()?;
        let shared = self.shared.clone();
        let completed = self.active.complete_indexes(&shared.files)?;
        let mut plan = self.plan_flush(self.end_offset)?;
        if completed {
            plan.files.extend(self.active.file.names_of_indexes());
        }
        Ok(plan)
    }

    pub(super) fn first_base_offset(&self) -> Offset {
        self.sealed.first().map_or(self.active.base_offset(), |first| first.base_offset())
    }
}

/// The marker in a control batch that ends a transaction; `None` for any other batch.
pub(super) fn marker_of(
    header: &BatchHeader,
    bytes: impl FnOnce() -> bytes::Bytes,
) -> Option<EndTxnMarker> {
    if !header.is_control() || !header.has_producer_id() {
        return None;
    }
    let record = records(&bytes()).next()?.ok()?;
    EndTxnMarker::parse(&record.key?, &record.value?)
}
