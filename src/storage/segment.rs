//! One segment of a log: the active one, which is appended to, and sealed ones, which are not.
//! Who may write: the log that owns the active segment, under its partition's lock.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use super::error::{At, DiskError};
use super::fd_cache::SegmentFile;
use super::index::{self, ActiveIndex, OffsetEntry, TimeEntry, last, lookup};
use super::names::Kind;
use super::producer_state::EndedTxn;
use super::txn_index::{self, AbortedTxn};
use super::walk::Headers;
use crate::common::{NO_OFFSET, NO_TIMESTAMP, Offset};
use crate::env::Files;
use crate::protocol::batch::{BatchHeader, HEADER_BYTES};

/// Positions in a segment are 31 bits (Kafka's `.index` format).
pub(super) const SEGMENT_BYTES_MAX: u64 = i32::MAX as u64;
/// Batches of the newest part whose place is known without a look at the file.
const TAIL_BATCHES: usize = 64;

/// The largest timestamp of a segment, and the last offset of the batch that has it first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MaxTimestamp {
    pub timestamp: i64,
    pub offset: Offset,
}

impl MaxTimestamp {
    pub(super) fn later(self, header: &BatchHeader) -> Self {
        if header.max_timestamp > self.timestamp {
            return Self { timestamp: header.max_timestamp, offset: header.last_offset() };
        }
        self
    }
}

/// The index files of a segment, read whole.
pub(super) struct Indexes {
    pub offsets: ActiveIndex<OffsetEntry>,
    pub times: ActiveIndex<TimeEntry>,
    pub aborted: Vec<AbortedTxn>,
}

impl Indexes {
    /// Reads them; `None` when one is missing or damaged, so that all are to be made anew.
    ///
    /// # Errors
    /// [`DiskError`].
    pub(super) fn read(
        files: &Files,
        file: &SegmentFile,
        size_bytes: u32,
    ) -> Result<Option<Self>, DiskError> {
        let read = |kind| {
            let path = file.path(kind);
            match files.read(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                outcome => outcome.at("read", &path).map(Some),
            }
        };
        let damaged = |kind| move || file.tell_index_damage(kind);
        let Some(bytes) = read(Kind::OffsetIndex)? else { return Ok(None) };
        let offsets = ActiveIndex::<OffsetEntry>::read(&bytes);
        let offsets = offsets.filter(|o| o.last().is_none_or(|last| last.position < size_bytes));
        let offsets = or_tell(offsets, damaged(Kind::OffsetIndex));
        let Some(bytes) = read(Kind::TimeIndex)? else { return Ok(None) };
        let times = or_tell(ActiveIndex::<TimeEntry>::read(&bytes), damaged(Kind::TimeIndex));
        let aborted = txn_index::decode(&read(Kind::TxnIndex)?.unwrap_or_default());
        let aborted = or_tell(aborted, damaged(Kind::TxnIndex));
        let (Some(offsets), Some(times), Some(aborted)) = (offsets, times, aborted) else {
            return Ok(None);
        };
        Ok(Some(Self { offsets, times, aborted }))
    }
}

fn or_tell<T>(read: Option<T>, tell: impl FnOnce()) -> Option<T> {
    if read.is_none() {
        tell();
    }
    read
}

/// What the segment needs to know of a batch that it appends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Appending {
    pub base_offset: Offset,
    pub last_offset: Offset,
    pub max_timestamp: i64,
}

impl From<&BatchHeader> for Appending {
    fn from(header: &BatchHeader) -> Self {
        let (base_offset, last_offset) = (header.base_offset, header.last_offset());
        Self { base_offset, last_offset, max_timestamp: header.max_timestamp }
    }
}

/// A batch found in a segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub position: u32,
    pub header: BatchHeader,
}

impl Found {
    pub(super) fn located(&self) -> Located {
        let (base_offset, size_bytes) = (self.header.base_offset, self.header.size_bytes());
        Located { position: self.position, base_offset, size_bytes }
    }
}

/// Where a batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Located {
    pub position: u32,
    pub base_offset: Offset,
    pub size_bytes: usize,
}

/// What memory tells of the place of an offset in the active segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hint {
    /// The batch that holds it.
    There(Located),
    /// A batch at or before it.
    From(u32),
}

/// The segment that the log appends to.
#[derive(Debug)]
pub(super) struct ActiveSegment {
    pub file: Arc<SegmentFile>,
    pub size_bytes: u32,
    pub offsets: ActiveIndex<OffsetEntry>,
    pub times: ActiveIndex<TimeEntry>,
    /// Aborted transactions whose marker is here.
    pub aborted: Vec<AbortedTxn>,
    /// How many of them the file has; `None`: it is to be made anew.
    aborted_written: Option<usize>,
    /// Bytes since the last entry of the offset index.
    unindexed_bytes: u32,
    pub max_timestamp: MaxTimestamp,
    /// Largest timestamp of the first batch: rolling by time counts from it. `None`: not known
    /// yet, or nothing written.
    first_timestamp: Option<i64>,
    pub created_ms: i64,
    /// `segment.jitter.ms` drawn for this segment.
    pub jitter_ms: i64,
    /// (base offset, position) of the newest batches, without holes between them.
    tail: VecDeque<(Offset, u32)>,
    /// The offset after the newest batch.
    tail_end: Offset,
}

impl ActiveSegment {
    /// An empty segment whose file is there.
    pub(super) fn empty(file: Arc<SegmentFile>, created_ms: i64, jitter_ms: i64) -> Self {
        let max_timestamp = MaxTimestamp { timestamp: NO_TIMESTAMP, offset: file.base_offset };
        Self {
            file,
            size_bytes: 0,
            offsets: ActiveIndex::empty(),
            times: ActiveIndex::empty(),
            aborted: Vec::new(),
            aborted_written: None,
            unindexed_bytes: 0,
            max_timestamp,
            first_timestamp: None,
            created_ms,
            jitter_ms,
            tail: VecDeque::new(),
            tail_end: NO_OFFSET,
        }
    }

    /// A segment whose indexes are as a clean stop left them, or as they are to be made anew. The
    /// largest timestamp is still to be found.
    pub(super) fn opened(
        file: Arc<SegmentFile>,
        size_bytes: u32,
        indexes: Indexes,
        created_ms: i64,
        jitter_ms: i64,
    ) -> Self {
        let mut segment = Self::empty(file, created_ms, jitter_ms);
        segment.size_bytes = size_bytes;
        (segment.offsets, segment.times) = (indexes.offsets, indexes.times);
        segment.aborted_written = Some(indexes.aborted.len());
        segment.aborted = indexes.aborted;
        segment
    }

    pub(super) fn base_offset(&self) -> Offset {
        self.file.base_offset
    }

    /// Writes one batch behind the last and takes it into the indexes.
    /// - `index_interval_bytes`: `index.interval.bytes`.
    /// # Errors
    /// [`DiskError`]: nothing is appended; what was half written is cut off, or lies behind the
    /// end where nobody reads and recovery cuts.
    pub(super) fn append(
        &mut self,
        header: &[u8; HEADER_BYTES],
        body: &[u8],
        batch: &Appending,
        index_interval_bytes: u32,
    ) -> Result<(), DiskError> {
        let (position, size) = (u64::from(self.size_bytes), (HEADER_BYTES + body.len()) as u64);
        crate::invariant!(position + size <= SEGMENT_BYTES_MAX, "the log rolls first");
        let file = self.file.log()?;
        if let Err(source) = file.write_all_at(&[header, body], position) {
            // A second failure changes nothing: the bytes lie behind the end either way.
            drop(file.set_len(position));
            return Err(source).at("append to", &self.file.path(Kind::Log));
        }
        self.note(batch, size as u32, index_interval_bytes);
        Ok(())
    }

    /// Takes a batch that stands at the end of the file into the indexes, as Kafka does: the entry
    /// is made when a batch begins more than the interval behind the last one.
    pub(super) fn note(&mut self, batch: &Appending, size_bytes: u32, interval_bytes: u32) {
        let position = self.size_bytes;
        let base_offset = self.base_offset();
        if position == 0 {
            self.first_timestamp = Some(batch.max_timestamp);
        }
        if batch.max_timestamp > self.max_timestamp.timestamp {
            let (timestamp, offset) = (batch.max_timestamp, batch.last_offset);
            self.max_timestamp = MaxTimestamp { timestamp, offset };
        }
        if self.unindexed_bytes > interval_bytes {
            let relative_offset = (batch.last_offset - base_offset) as u32;
            self.offsets.push(OffsetEntry { relative_offset, position });
            self.note_time();
            self.unindexed_bytes = 0;
        }
        if batch.base_offset != self.tail_end {
            self.tail.clear();
        } else if self.tail.len() == TAIL_BATCHES {
            self.tail.pop_front();
        }
        self.tail.push_back((batch.base_offset, position));
        self.tail_end = batch.last_offset + 1;
        self.unindexed_bytes = self.unindexed_bytes.saturating_add(size_bytes);
        self.size_bytes += size_bytes;
    }

    /// Enters the largest timestamp so far, unless the index has it.
    fn note_time(&mut self) {
        let MaxTimestamp { timestamp, offset } = self.max_timestamp;
        if timestamp > self.times.last().map_or(NO_TIMESTAMP, |entry| entry.timestamp) {
            let relative_offset = (offset - self.base_offset()) as u32;
            self.times.push(TimeEntry { timestamp, relative_offset });
        }
    }

    /// Writes what the index files lack when a piece is full. They are disposable, so a failure
    /// waits for the next time; sealing reports it.
    pub(super) fn write_full_pieces(&mut self, files: &Files) {
        if self.offsets.wants_writing() {
            drop(self.offsets.write(files, &self.file.path(Kind::OffsetIndex)));
        }
        if self.times.wants_writing() {
            drop(self.times.write(files, &self.file.path(Kind::TimeIndex)));
        }
    }

    /// Takes in a transaction that a marker in this segment ended.
    pub(super) fn note_ended(&mut self, ended: &EndedTxn, last_stable_offset: Offset) {
        self.aborted.extend(AbortedTxn::of(ended, last_stable_offset));
    }

    /// Completes the index files, as a roll or a clean stop leaves them. Returns whether there was
    /// anything to write; an empty segment has no index.
    ///
    /// # Errors
    /// [`DiskError`]; can be tried again.
    pub(super) fn complete_indexes(&mut self, files: &Files) -> Result<bool, DiskError> {
        if self.size_bytes == 0 {
            return Ok(false);
        }
        self.note_time();
        let complete = self.offsets.is_written() && self.times.is_written();
        if complete && self.aborted_written == Some(self.aborted.len()) {
            return Ok(false);
        }
        self.offsets.write(files, &self.file.path(Kind::OffsetIndex))?;
        self.times.write(files, &self.file.path(Kind::TimeIndex))?;
        self.write_aborted(files)?;
        Ok(true)
    }

    /// [`ActiveSegment::complete_indexes`] for a segment that is sealed: an empty one, which
    /// compaction may leave, gets empty index files.
    ///
    /// # Errors
    /// [`DiskError`]; can be tried again.
    pub(super) fn seal_indexes(&mut self, files: &Files) -> Result<(), DiskError> {
        if self.size_bytes > 0 {
            return self.complete_indexes(files).map(|_| ());
        }
        for kind in [Kind::OffsetIndex, Kind::TimeIndex] {
            let path = self.file.path(kind);
            files.write(&path, &[]).at("write", &path)?;
        }
        self.write_aborted(files)
    }

    fn write_aborted(&mut self, files: &Files) -> Result<(), DiskError> {
        let path = self.file.path(Kind::TxnIndex);
        if self.aborted_written.is_none() && files.exists(&path) {
            files.remove_file(&path).at("remove", &path)?;
        }
        let written = self.aborted_written.unwrap_or(0);
        if written < self.aborted.len() {
            txn_index::append(files, &path, &self.aborted, written)?;
        }
        self.aborted_written = Some(self.aborted.len());
        Ok(())
    }

    /// How long records have waited for this segment to roll (`segment.ms`), counted from the
    /// first batch's time where it has one. The first call after a start reads it from the file.
    ///
    /// # Errors
    /// [`DiskError`].
    pub(super) fn waited_ms(&mut self, now_ms: i64, timestamp: i64) -> Result<i64, DiskError> {
        if self.first_timestamp.is_none() && self.size_bytes > 0 {
            let first = Headers::new(&self.file, 0, self.size_bytes)?.next();
            self.first_timestamp = match first {
                Ok(first) => first.map(|(_, header)| header.max_timestamp),
                // Reading it is refused; writing goes on.
                Err(error) if error.is_damage() => Some(NO_TIMESTAMP),
                Err(error) => return Err(error),
            };
        }
        Ok(match self.first_timestamp {
            Some(first) if first >= 0 => timestamp.saturating_sub(first),
            _ => now_ms - self.created_ms,
        })
    }

    /// Where the batch that holds `offset` is, from memory: exactly for the newest ones.
    pub(super) fn hint(&self, offset: Offset) -> Hint {
        let newer = self.tail.partition_point(|(base, _)| *base <= offset);
        if let Some((base_offset, position)) = newer.checked_sub(1).and_then(|at| self.tail.get(at))
        {
            if offset >= self.tail_end {
                return Hint::From(*position);
            }
            let next = self.tail.get(newer).map_or(self.size_bytes, |(_, position)| *position);
            let (position, base_offset) = (*position, *base_offset);
            let size_bytes = (next - position) as usize;
            return Hint::There(Located { position, base_offset, size_bytes });
        }
        let relative = offset.saturating_sub(self.base_offset()).clamp(0, i64::from(u32::MAX));
        Hint::From(self.offsets.lookup(relative as u32).map_or(0, |entry| entry.position))
    }

    /// A position at or before the batch that holds `offset`, from memory.
    pub(super) fn position_before(&self, offset: Offset) -> u32 {
        match self.hint(offset) {
            Hint::There(Located { position, .. }) | Hint::From(position) => position,
        }
    }

    /// The position of the index entry that is the `count`th before `offset`, or the segment's begin;
    /// how many entries lie between.
    pub(super) fn position_back(&self, offset: Offset, count: usize) -> (u32, usize) {
        let before = self.offsets.count_until(relative_before(self.base_offset(), offset));
        back(before, count, |at| self.offsets.entries()[at])
    }

    /// Cuts the file at `position` and the indexes with it; `offset` is the new end. The largest
    /// timestamp is found anew.
    ///
    /// # Errors
    /// [`DiskError`]; the segment is then as it was, in memory.
    pub(super) fn truncate(&mut self, position: u32, offset: Offset) -> Result<(), DiskError> {
        let path = self.file.path(Kind::Log);
        let file = self.file.log()?;
        file.set_len(u64::from(position)).at("truncate", &path)?;
        // Or a crash could bring the cut part back behind what is appended next.
        file.sync_data().at("sync", &path)?;
        let relative = offset - self.base_offset();
        self.offsets.truncate(|entry| i64::from(entry.relative_offset) < relative);
        self.times.truncate(|entry| i64::from(entry.relative_offset) < relative);
        self.aborted.retain(|txn| txn.last_offset < offset);
        self.aborted_written = None;
        self.tail.clear();
        self.size_bytes = position;
        if position == 0 {
            self.first_timestamp = None;
        }
        self.find_max_timestamp()
    }

    /// Sets the largest timestamp from the last entry of the time index and what follows it.
    ///
    /// # Errors
    /// [`DiskError`].
    pub(super) fn find_max_timestamp(&mut self) -> Result<(), DiskError> {
        let mut found = self.known_max_timestamp();
        let from = self.position_before(found.offset);
        let mut headers = Headers::new(&self.file, from, self.size_bytes)?;
        while let Some((_, header)) = headers.next()? {
            found = found.later(&header);
        }
        self.max_timestamp = found;
        Ok(())
    }

    /// What the time index says; after a clean stop it is the segment's largest.
    pub(super) fn known_max_timestamp(&self) -> MaxTimestamp {
        let base_offset = self.base_offset();
        self.times.last().map_or(
            MaxTimestamp { timestamp: NO_TIMESTAMP, offset: base_offset },
            |entry| MaxTimestamp {
                timestamp: entry.timestamp,
                offset: base_offset + i64::from(entry.relative_offset),
            },
        )
    }
}

/// A segment that no longer changes.
#[derive(Debug)]
pub(super) struct SealedSegment {
    pub file: Arc<SegmentFile>,
    pub size_bytes: u32,
    /// Base offset of the next segment.
    pub next_base_offset: Offset,
    max_timestamp: OnceLock<MaxTimestamp>,
}

impl SealedSegment {
    pub(super) fn new(file: Arc<SegmentFile>, size_bytes: u32, next_base_offset: Offset) -> Self {
        Self { file, size_bytes, next_base_offset, max_timestamp: OnceLock::new() }
    }

    pub(super) fn known_max_timestamp(self, max_timestamp: MaxTimestamp) -> Self {
        Self { max_timestamp: OnceLock::from(max_timestamp), ..self }
    }

    pub(super) fn base_offset(&self) -> Offset {
        self.file.base_offset
    }

    /// The last entry of the time index, if the batch it speaks of says the same, else what all
    /// batches say; found once.
    ///
    /// # Errors
    /// [`DiskError`].
    pub(super) fn max_timestamp(&self) -> Result<MaxTimestamp, DiskError> {
        if let Some(known) = self.max_timestamp.get() {
            return Ok(*known);
        }
        let none = MaxTimestamp { timestamp: NO_TIMESTAMP, offset: self.base_offset() };
        let found = match last::<TimeEntry>(&self.file.time_index()?) {
            Some(entry) if self.place_of(&entry)?.is_some() => self.max_of(&entry),
            Some(_) => self.find_max_timestamp(none)?,
            None => none,
        };
        Ok(*self.max_timestamp.get_or_init(|| found))
    }

    fn max_of(&self, entry: &TimeEntry) -> MaxTimestamp {
        let offset = self.base_offset() + i64::from(entry.relative_offset);
        MaxTimestamp { timestamp: entry.timestamp, offset }
    }

    /// Where the batch is that an entry of the time index names, if it has its timestamp: the index
    /// has no checksum, and retention believes it. `None` is told.
    ///
    /// # Errors
    /// [`DiskError`].
    pub(super) fn place_of(&self, entry: &TimeEntry) -> Result<Option<u32>, DiskError> {
        let MaxTimestamp { timestamp, offset } = self.max_of(entry);
        let from = self.position_before(offset)?;
        let found = match find(&self.file, from, self.size_bytes, offset) {
            Ok(found) => found.filter(|found| found.header.max_timestamp == timestamp),
            Err(error) if error.is_damage() => None,
            Err(error) => return Err(error),
        };
        if found.is_none() {
            self.file.tell_index_damage(Kind::TimeIndex);
        }
        Ok(found.map(|found| found.position))
    }

    /// As far as the batches can be read.
    fn find_max_timestamp(&self, mut found: MaxTimestamp) -> Result<MaxTimestamp, DiskError> {
        let mut headers = Headers::new(&self.file, 0, self.size_bytes)?;
        loop {
            match headers.next() {
                Ok(Some((_, header))) => found = found.later(&header),
                Ok(None) => return Ok(found),
                Err(error) if error.is_damage() => return Ok(found),
                Err(error) => return Err(error),
            }
        }
    }

    /// A position at or before the batch that holds `offset`, by the index.
    ///
    /// # Errors
    /// [`DiskError`].
    pub(super) fn position_before(&self, offset: Offset) -> Result<u32, DiskError> {
        let relative = (offset - self.base_offset()).clamp(0, i64::from(u32::MAX)) as u32;
        let entry = lookup::<OffsetEntry>(&self.file.offset_index()?, relative);
        Ok(entry.map_or(0, |entry| entry.position).min(self.size_bytes))
    }

    /// As [`ActiveSegment::position_back`].
    ///
    /// # Errors
    /// [`DiskError`].
    pub(super) fn position_back(
        &self,
        offset: Offset,
        count: usize,
    ) -> Result<(u32, usize), DiskError> {
        let entries = self.file.offset_index()?;
        let before = relative_before(self.base_offset(), offset);
        let before = index::count_until::<OffsetEntry>(&entries, before);
        let (position, found) = back(before, count, |at| index::entry(&entries, at));
        Ok((position.min(self.size_bytes), found))
    }
}

/// The offset before `offset`, as an index has it.
fn relative_before(base_offset: Offset, offset: Offset) -> u32 {
    (offset - base_offset - 1).clamp(0, i64::from(u32::MAX)) as u32
}

/// Goes `count` entries back from the first `before` ones, or to the segment's begin.
fn back(before: usize, count: usize, entry: impl Fn(usize) -> OffsetEntry) -> (u32, usize) {
    let at = before.checked_sub(count);
    at.map_or((0, before), |at| (entry(at).position, count))
}

/// The first batch from `position` on whose last offset is ≥ `offset`; `None` when `end` comes
/// first. A position that turns out to be no batch's, or one behind the offset (a damaged index),
/// is not trusted: the walk begins again at the front.
///
/// # Errors
/// [`DiskError`].
pub(super) fn find(
    file: &Arc<SegmentFile>,
    position: u32,
    end: u32,
    offset: Offset,
) -> Result<Option<Found>, DiskError> {
    let mut headers = Headers::new(file, position, end)?;
    let mut first = true;
    loop {
        let (position, header) = match headers.next() {
            Ok(Some(next)) => next,
            Ok(None) if first && position > 0 => {
                // No entry of an index names the end.
                file.tell_index_damage(Kind::OffsetIndex);
                return find(file, 0, end, offset);
            }
            Ok(None) => return Ok(None),
            Err(error) if first && position > 0 && error.is_damage() => {
                file.tell_index_damage(Kind::OffsetIndex);
                return find(file, 0, end, offset);
            }
            Err(error) => {
                if error.is_damage() {
                    file.tell_damage(&error);
                }
                return Err(error);
            }
        };
        if first && position > 0 && header.base_offset > offset {
            file.tell_index_damage(Kind::OffsetIndex);
            return find(file, 0, end, offset);
        }
        if header.last_offset() >= offset {
            return Ok(Some(Found { position, header }));
        }
        first = false;
    }
}
