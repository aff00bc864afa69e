//! Reading sealed segments batch by batch with their checksums, and writing the one that takes
//! their place.

use std::sync::Arc;

use bytes::Bytes;

use super::filter::{Filtered, Kept};
use super::view::CleanView;
use crate::common::Offset;
use crate::env::{File, Files, OpenMode};
use crate::protocol::batch::{BatchError, BatchHeader, HEADER_BYTES, crc_of};
use crate::storage::error::{At, DiskError};
use crate::storage::fd_cache::SegmentFile;
use crate::storage::names::{CLEANED, Kind};
use crate::storage::segment::{ActiveSegment, Appending, SEGMENT_BYTES_MAX, SealedSegment};

/// The batches of a sealed segment.
pub(super) struct Batches {
    segment: Arc<SegmentFile>,
    file: Arc<File>,
    size_bytes: u64,
    chunk_bytes: usize,
    /// Read and not yet given out, from `position` on.
    buffer: Bytes,
    position: u64,
    /// Bytes read since [`Batches::take_read`].
    read: u64,
}

impl Batches {
    pub(super) fn new(
        segment: &Arc<SealedSegment>,
        position: u32,
        chunk_bytes: usize,
    ) -> Result<Self, DiskError> {
        Ok(Self {
            segment: segment.file.clone(),
            file: segment.file.log()?,
            size_bytes: u64::from(segment.size_bytes),
            chunk_bytes,
            buffer: Bytes::new(),
            position: u64::from(position),
            read: 0,
        })
    }

    /// The next batch, whole.
    ///
    /// # Errors
    /// [`DiskError`]; damage when there is none, or its checksum is wrong.
    pub(super) fn next(&mut self) -> Result<Option<(BatchHeader, Bytes)>, DiskError> {
        if self.position >= self.size_bytes {
            return Ok(None);
        }
        let at = self.position;
        self.fill(HEADER_BYTES)?;
        let header = BatchHeader::parse(&self.buffer)
            .map_err(|error| self.damage(at, format!("no batch: {error}")))?;
        let size_bytes = header.size_bytes();
        if at + size_bytes as u64 > self.size_bytes {
            return Err(self.damage(at, "the batch runs over the end".to_owned()));
        }
        self.fill(size_bytes)?;
        let bytes = self.buffer.split_to(size_bytes);
        self.position += size_bytes as u64;
        if crc_of(&bytes) != header.crc {
            return Err(self.damage(at, "the batch's checksum is wrong".to_owned()));
        }
        let reach = header.last_offset() - self.segment.base_offset;
        if !(0..=i64::from(i32::MAX)).contains(&reach) || header.last_offset_delta < 0 {
            return Err(self.damage(at, "offsets that do not belong here".to_owned()));
        }
        Ok(Some((header, bytes)))
    }

    /// Sees to it that `count` bytes, or all that are left, are in the buffer.
    fn fill(&mut self, count: usize) -> Result<(), DiskError> {
        let left = (self.size_bytes - self.position) as usize;
        if self.buffer.len() >= count.min(left) {
            return Ok(());
        }
        let want = left.min(self.chunk_bytes.max(count));
        let mut bytes = Vec::new();
        let read = self.file.read_append(&mut bytes, self.position, want);
        read.at("read", &self.segment.path(Kind::Log))?;
        self.read += bytes.len() as u64;
        self.buffer = Bytes::from(bytes);
        Ok(())
    }

    pub(super) fn take_read(&mut self) -> u64 {
        std::mem::take(&mut self.read)
    }

    /// The batch before the position cannot be read.
    pub(super) fn damaged(&self, header: &BatchHeader, error: &BatchError) -> DiskError {
        self.damage(self.position - header.size_bytes() as u64, error.to_string())
    }

    fn damage(&self, at: u64, what: String) -> DiskError {
        DiskError::damaged(&self.segment.path(Kind::Log), format!("byte {at}: {what}"))
    }
}

/// A segment that takes the place of others.
pub struct CleanedSegment {
    files: Files,
    old: Vec<Arc<SealedSegment>>,
    segment: ActiveSegment,
    /// Noted in the segment's indexes, not yet in its file.
    unwritten: Vec<u8>,
    written_bytes: u32,
}

impl CleanedSegment {
    /// An empty one for `old`, under `.cleaned` names.
    pub(super) fn create(
        view: &CleanView,
        old: &[Arc<SealedSegment>],
        now_ms: i64,
    ) -> Result<Self, DiskError> {
        let (shared, place) = (&view.shared, view.place.clone());
        let base_offset = old.first().map_or(0, |segment| segment.base_offset());
        let (files, cache) = (shared.files.clone(), shared.open_files.clone());
        let file = SegmentFile::suffixed(files.clone(), place, base_offset, cache, CLEANED);
        // Of an earlier pass that failed.
        file.remove()?;
        let path = file.path(Kind::Log);
        files.open(&path, OpenMode::CreateNew).at("create", &path)?;
        let segment = ActiveSegment::empty(file, now_ms, 0);
        let (old, unwritten) = (old.to_vec(), Vec::new());
        Ok(Self { files, old, segment, unwritten, written_bytes: 0 })
    }

    /// The segments it was made from, at least one.
    pub(in crate::storage) fn old(&self) -> &[Arc<SealedSegment>] {
        &self.old
    }

    pub(in crate::storage) fn file(&self) -> &Arc<SegmentFile> {
        &self.segment.file
    }

    /// The segment as a log keeps it.
    pub(in crate::storage) fn sealed(&self) -> SealedSegment {
        let next = self.old.last().map_or(0, |segment| segment.next_base_offset);
        SealedSegment::new(self.segment.file.clone(), self.segment.size_bytes, next)
            .known_max_timestamp(self.segment.max_timestamp)
    }

    /// Takes in what stays of a batch.
    pub(super) fn push(
        &mut self,
        filtered: Filtered,
        header: &BatchHeader,
        bytes: &Bytes,
        interval_bytes: u32,
    ) -> Result<(), DiskError> {
        self.segment.aborted.extend(filtered.entry);
        let (header, bytes) = match filtered.kept {
            Kept::Nothing => return Ok(()),
            Kept::Same => (*header, bytes.clone()),
            Kept::New(header, bytes) => (header, bytes),
        };
        let reach = header.last_offset() - self.segment.base_offset();
        let size_bytes = u64::from(self.segment.size_bytes) + bytes.len() as u64;
        if reach > i64::from(i32::MAX) || size_bytes > SEGMENT_BYTES_MAX {
            let path = self.segment.file.path(Kind::Log);
            return Err(DiskError::damaged(&path, "what is cleaned does not fit one segment"));
        }
        self.unwritten.extend_from_slice(&bytes);
        self.segment.note(&Appending::from(&header), bytes.len() as u32, interval_bytes);
        Ok(())
    }

    /// Writes what has gathered if it is more than `bytes`; returns how much was written.
    pub(super) fn write_beyond(&mut self, bytes: usize) -> Result<u64, DiskError> {
        let count = self.unwritten.len();
        if count <= bytes {
            return Ok(0);
        }
        let file = self.segment.file.log()?;
        let written = file.write_all_at(&[&self.unwritten], u64::from(self.written_bytes));
        written.at("append to", &self.segment.file.path(Kind::Log))?;
        self.written_bytes += count as u32;
        self.unwritten.clear();
        Ok(count as u64)
    }

    /// Completes the indexes and makes all of it durable.
    pub(super) fn finish(&mut self) -> Result<(), DiskError> {
        crate::invariant!(self.written_bytes == self.segment.size_bytes, "all is written");
        self.segment.seal_indexes(&self.files)?;
        let file = &self.segment.file;
        let mut plan = file.plan();
        plan.segments.push(file.clone());
        plan.files.extend(file.names_of_indexes());
        plan.run(&self.files)
    }

    /// Makes the new names durable, before anything else is renamed or removed.
    pub(super) fn settle(&self) -> Result<(), DiskError> {
        let path = self.segment.file.path(Kind::Log);
        let dir = path.parent().unwrap_or(&path);
        self.files.sync_dir(dir).at("sync", dir)
    }

    /// Removes its files, unless it is in the log.
    pub(super) fn discard(&self) -> Result<(), DiskError> {
        if self.segment.file.is_in_log() { Ok(()) } else { self.segment.file.remove() }
    }

    /// Base offset of the first segment, and of what follows the last.
    pub fn range(&self) -> (Offset, Offset) {
        let next = self.old.last().map_or(0, |segment| segment.next_base_offset);
        (self.segment.base_offset(), next)
    }
}
