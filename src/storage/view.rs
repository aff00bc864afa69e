//! Reading a log. What a reader needs is taken under the partition's lock, in constant time; the
//! looking up and reading is done without it, on segments that no longer change or only grow.

use std::sync::Arc;

use bytes::Bytes;

use super::error::{At, ClientFault, DiskError, StorageError};
use super::fd_cache::SegmentFile;
use super::index::{TimeEntry, lookup};
use super::log::Log;
use super::names::Kind;
use super::segment::{Found, Hint, Located, MaxTimestamp, SealedSegment, find};
use super::txn_index::{self, AbortedTxn};
use super::walk::{Expected, Headers, Looked, look_at, read_batch};
use crate::common::{LeaderEpoch, Offset};
use crate::env::{File, FileSlice};
use crate::protocol::batch::{BatchHeader, HEADER_BYTES, records};

/// The segments of a log at one moment.
#[derive(Clone)]
struct View {
    sealed: Arc<Vec<Arc<SealedSegment>>>,
    active: Arc<SegmentFile>,
    active_bytes: u32,
    end_offset: Offset,
    checked_from: Offset,
    compacted: bool,
}

/// One segment as a reader sees it.
#[derive(Clone, Copy)]
struct Piece<'a> {
    file: &'a Arc<SegmentFile>,
    size_bytes: u32,
    next_base_offset: Offset,
    /// `None`: the active one, whose index is not in a file.
    sealed: Option<&'a Arc<SealedSegment>>,
}

impl View {
    fn of(log: &Log) -> Self {
        Self {
            sealed: log.sealed.clone(),
            active: log.active.file.clone(),
            active_bytes: log.active.size_bytes,
            end_offset: log.end_offset,
            checked_from: log.checked_from,
            compacted: log.config.load().compacted,
        }
    }

    fn count(&self) -> usize {
        self.sealed.len() + 1
    }

    fn piece(&self, at: usize) -> Piece<'_> {
        match self.sealed.get(at) {
            Some(sealed) => Piece {
                file: &sealed.file,
                size_bytes: sealed.size_bytes,
                next_base_offset: sealed.next_base_offset,
                sealed: Some(sealed),
            },
            None => Piece {
                file: &self.active,
                size_bytes: self.active_bytes,
                next_base_offset: self.end_offset,
                sealed: None,
            },
        }
    }

    /// Bytes of the segments that begin above `base_offset`.
    fn bytes_after(&self, base_offset: Offset) -> u64 {
        if base_offset == self.active.base_offset {
            return 0;
        }
        let sealed = self.sealed.iter().rev().take_while(|s| s.base_offset() > base_offset);
        sealed.map(|s| u64::from(s.size_bytes)).sum::<u64>() + u64::from(self.active_bytes)
    }

    /// The last segment that begins at or below `offset`.
    fn at(&self, offset: Offset) -> usize {
        if offset >= self.active.base_offset {
            return self.sealed.len();
        }
        self.sealed.partition_point(|s| s.base_offset() <= offset).saturating_sub(1)
    }
}

/// A read that is planned but not looked up yet.
pub struct ReadPlan {
    view: View,
    from: Offset,
    until: Offset,
    /// Where `from` and `until` are, if they are in the active segment.
    from_hint: Hint,
    until_hint: Hint,
}

impl ReadPlan {
    /// Finds the bytes: whole batches from the one that holds `from` on, of one segment, at most
    /// `max_bytes` of them (the last batch may be cut short, as Kafka does). When the first alone is
    /// larger, it comes whole if `min_one`, else nothing.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn locate(&self, max_bytes: usize, min_one: bool) -> Result<LogSlices, DiskError> {
        if self.from >= self.until {
            return Ok(LogSlices::EMPTY);
        }
        for at in self.view.at(self.from)..self.view.count() {
            let piece = self.view.piece(at);
            if let Some(first) = self.position_of(piece, self.from, self.from_hint)? {
                if first.base_offset >= self.until {
                    return Ok(LogSlices::EMPTY);
                }
                return self.slice(piece, first, max_bytes, min_one);
            }
        }
        Ok(LogSlices::EMPTY)
    }

    /// Whether the read begins in an older segment than the one it may go up to.
    pub fn is_behind(&self) -> bool {
        self.view.at(self.from) < self.view.at(self.until)
    }

    /// The first batch of `piece` that ends at or above `offset`.
    fn position_of(
        &self,
        piece: Piece<'_>,
        offset: Offset,
        hint: Hint,
    ) -> Result<Option<Located>, DiskError> {
        let from = match (piece.sealed, hint) {
            (Some(sealed), _) => sealed.position_before(offset)?,
            (None, Hint::There(located)) => return Ok(Some(located)),
            (None, Hint::From(position)) => position,
        };
        let mut found = find(piece.file, from, piece.size_bytes, offset)?;
        let hole = found.is_none_or(|found| found.header.base_offset > offset);
        if hole && from > 0 && !self.view.compacted {
            // Where the index points may be a batch whose offset is damaged.
            found = find(piece.file, 0, piece.size_bytes, offset)?;
        }
        if let Some(Found { position, header }) = found
            && header.next_offset() > piece.next_base_offset
        {
            let (base, end) = (header.base_offset, piece.next_base_offset);
            let what = format!("the batch at byte {position}: offset {base} is behind {end}");
            let damage = DiskError::damaged(&piece.file.path(Kind::Log), what);
            piece.file.tell_damage(&damage);
            return Err(damage);
        }
        Ok(found.map(|found| found.located()))
    }

    fn slice(
        &self,
        piece: Piece<'_>,
        first: Located,
        max_bytes: usize,
        min_one: bool,
    ) -> Result<LogSlices, DiskError> {
        let end = if self.until >= piece.next_base_offset {
            piece.size_bytes
        } else {
            let stop = self.position_of(piece, self.until, self.until_hint)?;
            stop.map_or(piece.size_bytes, |found| found.position)
        };
        let first_bytes = first.size_bytes;
        let available_bytes = end.saturating_sub(first.position) as usize;
        let wanted = match max_bytes {
            max if max >= first_bytes => max,
            _ if min_one => first_bytes,
            _ => return Ok(LogSlices { available_bytes, ..LogSlices::EMPTY }),
        };
        let position = u64::from(first.position);
        let size_bytes = wanted.min(available_bytes);
        let newer = self.view.bytes_after(piece.file.base_offset);
        let bytes_to_end = newer + u64::from(piece.size_bytes.saturating_sub(first.position));
        let (end_offset, end) = (piece.next_base_offset, u64::from(piece.size_bytes));
        let expected = Expected { end_offset, end };
        let is_checked = first.base_offset >= self.view.checked_from
            || piece.file.is_sound_until(position + size_bytes as u64);
        let unchecked = (!is_checked).then_some(expected);
        let (file, open) = (piece.file.clone(), piece.file.log()?);
        let slice = LogSlice { file, open, position, size_bytes, unchecked };
        Ok(LogSlices { slice: Some(slice), bytes_to_end, available_bytes })
    }
}

/// Bytes of a segment, not read yet.
#[derive(Debug, Clone)]
struct LogSlice {
    file: Arc<SegmentFile>,
    /// So that it can be read whatever becomes of the segment.
    open: Arc<File>,
    position: u64,
    size_bytes: usize,
    /// Nobody has looked at all of these batches since the start.
    unchecked: Option<Expected>,
}

impl LogSlice {
    /// Leaves of the bytes read those before the first damaged batch.
    fn cut_at_damage(&self, out: &mut Vec<u8>, expected: &Expected) -> Result<(), DiskError> {
        // What follows says whether the last offset can be.
        let whole = out.len();
        let after = self.position + self.size_bytes as u64;
        let more = expected.end.saturating_sub(after).min(HEADER_BYTES as u64) as usize;
        let read = self.open.read_append(out, after, more);
        read.at("read", &self.file.path(Kind::Log))?;
        let Looked { sound, damage } = look_at(out, expected);
        let sound_until = self.position + sound.min(whole) as u64;
        self.file.note_sound(self.position..sound_until);
        let Some(reason) = damage.filter(|_| sound < whole) else {
            out.truncate(whole);
            return Ok(());
        };
        out.truncate(sound);
        let path = self.file.path(Kind::Log);
        let what = format!("the batch at byte {sound_until}: {reason}");
        let damage = DiskError::damaged(&path, what);
        self.file.tell_damage(&damage);
        if sound == 0 { Err(damage) } else { Ok(()) }
    }
}

/// What a read found: local bytes, of one segment.
#[derive(Debug, Clone)]
pub struct LogSlices {
    slice: Option<LogSlice>,
    bytes_to_end: u64,
    available_bytes: usize,
}

impl LogSlices {
    pub const EMPTY: Self = Self { slice: None, bytes_to_end: 0, available_bytes: 0 };

    /// What there is to read of the segment, whatever the limits of this read left of it.
    pub fn available_bytes(&self) -> usize {
        self.available_bytes
    }

    pub fn is_empty(&self) -> bool {
        self.size_bytes() == 0
    }

    pub fn size_bytes(&self) -> usize {
        self.slice.as_ref().map_or(0, |slice| slice.size_bytes)
    }

    /// They are to be looked at, so [`LogSlices::read`] has to read them; what it finds damaged it
    /// leaves out, or says when it is the first batch.
    pub fn is_unchecked(&self) -> bool {
        self.slice.as_ref().is_some_and(|slice| slice.unchecked.is_some())
    }

    /// From the first byte to the log end: what is far from it may not be in the page cache.
    pub fn bytes_to_end(&self) -> u64 {
        self.bytes_to_end
    }

    /// Whether reading them will hardly wait for the disk.
    pub fn is_cached(&self) -> bool {
        let Some(slice) = &self.slice else { return true };
        slice.open.is_cached(slice.position, slice.size_bytes)
    }

    /// The bytes where they are; `None`: there are none.
    pub fn in_file(&self) -> Option<FileSlice> {
        let LogSlice { open, position, size_bytes, .. } = self.slice.as_ref()?;
        Some(FileSlice { file: open.clone(), position: *position, size_bytes: *size_bytes })
    }

    /// The bytes; of batches that nobody has looked at since the start, those before the first damaged one.
    ///
    /// # Errors
    /// [`DiskError`], also when the first batch is damaged.
    pub fn read(&self) -> Result<Bytes, DiskError> {
        let Some(slice) = &self.slice else { return Ok(Bytes::new()) };
        let mut out = Vec::new();
        let read = slice.open.read_append(&mut out, slice.position, slice.size_bytes);
        read.at("read", &slice.file.path(Kind::Log))?;
        if let Some(expected) = &slice.unchecked {
            slice.cut_at_damage(&mut out, expected)?;
        }
        Ok(Bytes::from(out))
    }
}

/// A record found by its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedOffset {
    pub timestamp: i64,
    pub offset: Offset,
    pub leader_epoch: LeaderEpoch,
}

/// A search by time that is planned but not done yet.
pub struct TimePlan {
    view: View,
    start_offset: Offset,
    active_max: MaxTimestamp,
    timestamp: i64,
    /// Where to begin to look in the active segment: at this offset, which is near the position.
    near: Offset,
    hint: u32,
    /// What the time index says of that batch.
    near_ms: Option<i64>,
}

impl TimePlan {
    /// The first record at or above the log start whose timestamp is ≥ the one asked for; single
    /// records are looked at, compressed ones too.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn first_at_or_after(&self) -> Result<Option<TimedOffset>, DiskError> {
        for at in self.view.at(self.start_offset)..self.view.count() {
            let piece = self.view.piece(at);
            let max = match piece.sealed {
                Some(sealed) => sealed.max_timestamp()?,
                None => self.active_max,
            };
            if max.timestamp >= self.timestamp
                && let Some(found) = self.search(piece)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Where to begin in the active segment, whose index may have been damaged when it was read: the
    /// batch that it names has to have its timestamp.
    fn place_in_active(&self, piece: Piece<'_>) -> Result<u32, DiskError> {
        let found = find(piece.file, self.hint, piece.size_bytes, self.near)?;
        let is_true =
            |found: &Found| self.near_ms.is_none_or(|ms| ms == found.header.max_timestamp);
        let place = found.filter(is_true).map(|found| found.position);
        if place.is_none() && self.near_ms.is_some() {
            piece.file.tell_index_damage(Kind::TimeIndex);
        }
        Ok(place.unwrap_or(0))
    }

    fn search(&self, piece: Piece<'_>) -> Result<Option<TimedOffset>, DiskError> {
        let from = match piece.sealed {
            Some(sealed) => {
                let entry = lookup::<TimeEntry>(&piece.file.time_index()?, self.timestamp);
                let place = entry.map(|entry| sealed.place_of(&entry)).transpose()?;
                place.flatten().unwrap_or(0)
            }
            // The index may be damaged: a batch has to be there.
            None => self.place_in_active(piece)?,
        };
        let mut headers = Headers::new(piece.file, from, piece.size_bytes)?;
        while let Some((position, header)) = headers.next()? {
            let late = header.max_timestamp >= self.timestamp;
            if late && header.last_offset() >= self.start_offset {
                let wanted = |timestamp| timestamp >= self.timestamp;
                let found = first_record(piece.file, position, &header, self.start_offset, wanted)?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }

    /// The first record that has the largest timestamp of the log (ListOffsets -3); as in Kafka also
    /// one below the log start, as long as its segment is there (C022).
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn max(&self) -> Result<Option<TimedOffset>, DiskError> {
        let mut best: Option<(MaxTimestamp, usize)> = None;
        for at in 0..self.view.count() {
            let max = match self.view.piece(at).sealed {
                Some(sealed) => sealed.max_timestamp()?,
                None => self.active_max,
            };
            if best.is_none_or(|(known, _)| max.timestamp > known.timestamp) {
                best = Some((max, at));
            }
        }
        let Some((max, at)) = best.filter(|(max, _)| max.timestamp >= 0) else { return Ok(None) };
        let piece = self.view.piece(at);
        let from = match piece.sealed {
            Some(sealed) => sealed.position_before(max.offset)?,
            None => self.hint,
        };
        let Some(found) = find(piece.file, from, piece.size_bytes, max.offset)? else {
            return Ok(None);
        };
        let wanted = |timestamp| timestamp >= max.timestamp;
        first_record(piece.file, found.position, &found.header, 0, wanted)
    }
}

/// The first record of a batch at or above `start_offset` whose timestamp is wanted.
fn first_record(
    file: &Arc<SegmentFile>,
    position: u32,
    header: &BatchHeader,
    start_offset: Offset,
    wanted: impl Fn(i64) -> bool,
) -> Result<Option<TimedOffset>, DiskError> {
    for record in records(&read_batch(file, position, header)?) {
        let damage = |error| DiskError::damaged(&file.path(Kind::Log), format!("{error}"));
        let record = record.map_err(damage)?;
        if wanted(record.timestamp) && record.offset >= start_offset {
            let leader_epoch = header.leader_epoch;
            let (timestamp, offset) = (record.timestamp, record.offset);
            return Ok(Some(TimedOffset { timestamp, offset, leader_epoch }));
        }
    }
    Ok(None)
}

impl Log {
    /// Plans a read of `from..until`; to be looked up with [`ReadPlan::locate`], without the lock.
    /// `until` (a high watermark, a last stable offset, the end) is a border between batches.
    ///
    /// # Errors
    /// [`ClientFault::OutOfRange`]: `from` is below the log start or above the log end.
    pub fn plan_read(&self, from: Offset, until: Offset) -> Result<ReadPlan, StorageError> {
        let (start, end) = (self.start_offset, self.end_offset);
        if from < start || from > end {
            return Err(ClientFault::OutOfRange { asked: from, start, end }.into());
        }
        let until = until.min(end);
        Ok(ReadPlan {
            view: View::of(self),
            from,
            until,
            from_hint: self.active.hint(from),
            until_hint: self.active.hint(until),
        })
    }

    /// [`Log::plan_read`] and [`ReadPlan::locate`] in one.
    ///
    /// # Errors
    /// Those of both.
    pub fn read(
        &self,
        from: Offset,
        until: Offset,
        max_bytes: usize,
        min_one: bool,
    ) -> Result<LogSlices, StorageError> {
        Ok(self.plan_read(from, until)?.locate(max_bytes, min_one)?)
    }

    /// Plans [`TimePlan::first_at_or_after`] for `timestamp`.
    pub fn plan_time(&self, timestamp: i64) -> TimePlan {
        let base_offset = self.active.base_offset();
        let entry = self.active.times.lookup(timestamp);
        let relative = entry.map_or(0, |entry| entry.relative_offset);
        let near_ms = entry.map(|entry| entry.timestamp);
        TimePlan { near_ms, ..self.time_plan(timestamp, base_offset + i64::from(relative)) }
    }

    /// Plans [`TimePlan::max`].
    pub fn plan_max_timestamp(&self) -> TimePlan {
        self.time_plan(i64::MAX, self.active.max_timestamp.offset)
    }

    fn time_plan(&self, timestamp: i64, near: Offset) -> TimePlan {
        TimePlan {
            view: View::of(self),
            start_offset: self.start_offset,
            active_max: self.active.max_timestamp,
            timestamp,
            near,
            near_ms: None,
            hint: self.active.position_before(near),
        }
    }

    /// [`Log::plan_time`] and its search in one; `None` when the record is not below `until`.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn offset_for_timestamp(
        &self,
        timestamp: i64,
        until: Offset,
    ) -> Result<Option<TimedOffset>, DiskError> {
        let found = self.plan_time(timestamp).first_at_or_after()?;
        Ok(found.filter(|found| found.offset < until))
    }

    /// [`Log::plan_max_timestamp`] and its search in one.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn max_timestamp(&self) -> Result<Option<TimedOffset>, DiskError> {
        self.plan_max_timestamp().max()
    }

    /// The aborted transactions that overlap `from..until`, for read-committed consumers.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn aborted_transactions(
        &self,
        from: Offset,
        until: Offset,
    ) -> Result<Vec<AbortedTxn>, DiskError> {
        let view = View::of(self);
        let mut found = Vec::new();
        for at in view.at(from)..view.count() {
            let piece = view.piece(at);
            let entries = match piece.sealed {
                Some(_) => self.sealed_aborted(piece.file)?,
                None => self.active.aborted.clone(),
            };
            for txn in entries {
                if txn.last_offset >= from && txn.first_offset < until {
                    found.push(txn);
                }
                if txn.last_stable_offset >= until {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    fn sealed_aborted(&self, file: &Arc<SegmentFile>) -> Result<Vec<AbortedTxn>, DiskError> {
        let path = file.path(Kind::TxnIndex);
        if !self.shared.files.exists(&path) {
            return Ok(Vec::new());
        }
        let bytes = self.shared.files.read(&path).at("read", &path)?;
        let entries = txn_index::decode(&bytes);
        let entries = entries.filter(|entries| entries.iter().all(|txn| txn.is_plausible()));
        match entries {
            Some(entries) => Ok(entries),
            None => self.aborted_anew(file),
        }
    }
}
