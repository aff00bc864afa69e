//! Walking over the batches of a segment file: headers only, or whole batches with their CRC.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use super::error::{At, DiskError};
use super::fd_cache::SegmentFile;
use super::names::Kind;
use crate::common::Offset;
use crate::env::File;
use crate::protocol::batch::{BatchHeader, HEADER_BYTES, crc_of};

/// Read ahead for headers: small batches come many to a read.
const WINDOW_BYTES: usize = 4 << 10;
/// Read ahead for whole batches.
const SCAN_BYTES: usize = 1 << 20;

/// The headers of the batches in `position..end` of a segment, in order.
pub(super) struct Headers {
    file: Arc<File>,
    segment: Arc<SegmentFile>,
    position: u64,
    end: u64,
    /// Offsets only grow.
    next_offset: Offset,
    window: [u8; WINDOW_BYTES],
    window_at: u64,
    window_size: usize,
}

impl Headers {
    /// # Errors
    /// [`DiskError`] when the segment cannot be opened.
    pub(super) fn new(
        segment: &Arc<SegmentFile>,
        position: u32,
        end: u32,
    ) -> Result<Self, DiskError> {
        Ok(Self {
            file: segment.log()?,
            segment: segment.clone(),
            position: u64::from(position),
            end: u64::from(end),
            next_offset: segment.base_offset,
            window: [0; WINDOW_BYTES],
            window_at: 0,
            window_size: 0,
        })
    }

    /// The next header and its position; `None` at the end.
    ///
    /// # Errors
    /// [`DiskError`]; damage when there is no batch, or one that runs over the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, BatchHeader)>, DiskError> {
        if self.position >= self.end {
            return Ok(None);
        }
        let at = self.position;
        let inside = at >= self.window_at
            && at + HEADER_BYTES as u64 <= self.window_at + self.window_size as u64;
        if !inside {
            let want = (self.end - at).min(WINDOW_BYTES as u64) as usize;
            let read = self.file.read_at(&mut self.window[..want], at);
            self.window_size = read.at("read", &self.path())?;
            self.window_at = at;
        }
        let from = (at - self.window_at) as usize;
        let header = BatchHeader::parse(&self.window[from..self.window_size])
            .map_err(|error| self.damaged(&format!("no batch at byte {at}: {error}")))?;
        self.position = at + header.size_bytes() as u64;
        if self.position > self.end {
            return Err(self.damaged(&format!("the batch at byte {at} runs over the end")));
        }
        let in_order = header.base_offset >= self.next_offset && header.last_offset_delta >= 0;
        if !in_order || header.last_offset() - self.segment.base_offset > i64::from(i32::MAX) {
            let (base, last) = (header.base_offset, header.last_offset());
            let what = format!("the batch at byte {at} has the offsets {base} to {last}");
            return Err(self.damaged(&what));
        }
        self.next_offset = header.next_offset();
        Ok(Some((at as u32, header)))
    }

    fn path(&self) -> PathBuf {
        self.segment.path(Kind::Log)
    }

    fn damaged(&self, what: &str) -> DiskError {
        DiskError::damaged(&self.path(), what)
    }
}

/// What batches that were not looked at since the start have to be like.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    /// All batches end below.
    pub end_offset: Offset,
    /// Where the segment ends, in bytes.
    pub end: u64,
}

/// What [`look_at`] says of bytes from the start of a batch on.
pub(super) struct Looked {
    /// Bytes of whole batches with the right CRC, in order.
    pub sound: usize,
    /// What is wrong with the batch behind them.
    pub damage: Option<String>,
}

/// Goes through whole batches up to the first damaged one, or one that is cut short.
pub(super) fn look_at(bytes: &[u8], expected: &Expected) -> Looked {
    let damaged = |sound, what| Looked { sound, damage: Some(what) };
    // Where the batch before begins, and whether its own offset is beyond doubt.
    let (mut at, mut before) = (0, None::<(usize, Offset, bool)>);
    while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= HEADER_BYTES) {
        let header = match BatchHeader::parse(rest) {
            Ok(header) => header,
            Err(error) => return damaged(at, error.to_string()),
        };
        let (base, next) = (header.base_offset, header.next_offset());
        if let Some((begin, end, is_sure)) = before
            && base < end
        {
            // One of the two offsets is wrong: this one, unless only the other is in doubt.
            let wrong = if is_sure { at } else { begin };
            return damaged(wrong, format!("offset {base} stands behind {}", end - 1));
        }
        if base < 0 || header.last_offset_delta < 0 || next > expected.end_offset {
            return damaged(at, format!("offsets {base} to {} cannot be here", next - 1));
        }
        let Some(batch) = rest.get(..header.size_bytes()) else { break };
        if crc_of(batch) != header.crc {
            return damaged(at, "the CRC is wrong".to_owned());
        }
        let follows = before.is_some_and(|(_, end, _)| base == end);
        before = Some((at, next, follows));
        at += batch.len();
    }
    Looked { sound: at, damage: None }
}

/// One batch that [`ValidBatches`] found.
pub(super) struct ValidBatch<'a> {
    pub header: BatchHeader,
    pub bytes: &'a [u8],
}

/// Whole, CRC-valid batches from the front of a segment, as recovery reads it: whatever is not
/// one ends the walk without an error.
pub(super) struct ValidBatches {
    file: Arc<File>,
    path: PathBuf,
    buffer: Vec<u8>,
    /// Where the buffer starts in the file.
    buffer_at: u64,
    position: u64,
    size_bytes: u64,
    /// The next batch begins here, or above where holes are allowed.
    next_offset: Offset,
    tear_from: Option<Offset>,
    base_offset: Offset,
}

impl ValidBatches {
    /// - `next_offset`: where the first batch begins, or above.
    /// - `tear_from`: from this offset on a hole in the offsets ends the walk: writes behind it
    ///   reached the disk, those before did not. `None`: holes are compaction's.
    ///
    /// # Errors
    /// [`DiskError`].
    pub(super) fn new(
        segment: &Arc<SegmentFile>,
        next_offset: Offset,
        tear_from: Option<Offset>,
    ) -> Result<Self, DiskError> {
        let (file, path) = (segment.log()?, segment.path(Kind::Log));
        let size_bytes = file.size_bytes().at("stat", &path)?;
        Ok(Self {
            file,
            path,
            buffer: Vec::new(),
            buffer_at: 0,
            position: 0,
            size_bytes,
            next_offset: next_offset.max(segment.base_offset),
            tear_from,
            base_offset: segment.base_offset,
        })
    }

    /// Bytes of valid batches so far: where the file is to be cut when the walk has ended.
    pub(super) fn valid_bytes(&self) -> u64 {
        self.position
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// The next batch, until the next call.
    ///
    /// # Errors
    /// [`DiskError`] of reading.
    pub(super) fn next(&mut self) -> Result<Option<ValidBatch<'_>>, DiskError> {
        let at = self.position;
        let Some(head) = self.bytes(HEADER_BYTES)? else { return Ok(None) };
        let Ok(header) = BatchHeader::parse(head) else { return Ok(None) };
        let limit = self.base_offset + i64::from(i32::MAX);
        // A hole of compaction lies where all was durable.
        let torn = self.tear_from.is_some_and(|from| header.base_offset > from);
        let fits = header.base_offset >= self.next_offset
            && (header.base_offset == self.next_offset || !torn)
            && header.last_offset_delta >= 0
            && header.last_offset() <= limit
            && at + header.size_bytes() as u64 <= i32::MAX as u64;
        if !fits {
            return Ok(None);
        }
        let whole = self.bytes(header.size_bytes())?;
        if whole.is_none_or(|bytes| crc_of(bytes) != header.crc) {
            return Ok(None);
        }
        self.position = at + header.size_bytes() as u64;
        self.next_offset = header.next_offset();
        let from = (at - self.buffer_at) as usize;
        let bytes = &self.buffer[from..from + header.size_bytes()];
        Ok(Some(ValidBatch { header, bytes }))
    }

    /// `count` bytes from the position on; `None` where the file ends before.
    fn bytes(&mut self, count: usize) -> Result<Option<&[u8]>, DiskError> {
        if self.size_bytes - self.position < count as u64 {
            return Ok(None);
        }
        let from = (self.position - self.buffer_at) as usize;
        if self.buffer.len() < from + count {
            let want = (self.size_bytes - self.position).min(SCAN_BYTES.max(count) as u64);
            self.buffer.clear();
            let read = self.file.read_append(&mut self.buffer, self.position, want as usize);
            read.at("read", &self.path)?;
            self.buffer_at = self.position;
        }
        let from = (self.position - self.buffer_at) as usize;
        Ok(Some(&self.buffer[from..from + count]))
    }
}

/// The bytes of the batch at `position`.
///
/// # Errors
/// [`DiskError`]; damage when the CRC is wrong.
pub(super) fn read_batch(
    segment: &Arc<SegmentFile>,
    position: u32,
    header: &BatchHeader,
) -> Result<Bytes, DiskError> {
    let mut bytes = Vec::new();
    let read = segment.log()?.read_append(&mut bytes, u64::from(position), header.size_bytes());
    read.at("read", &segment.path(Kind::Log))?;
    if crc_of(&bytes) != header.crc {
        let what = format!("the batch at byte {position}: the CRC is wrong");
        let error = DiskError::damaged(&segment.path(Kind::Log), what);
        segment.tell_damage(&error);
        return Err(error);
    }
    Ok(Bytes::from(bytes))
}
