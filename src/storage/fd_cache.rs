//! Segment files, opened on demand; how many are open at once is bounded.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::error::{At, DiskError};
use super::mmap::Mapped;
use super::names::{DELETED, Kind, Place, segment_file};
use crate::common::Offset;
use crate::env::{File, Files, OpenMode};

/// Closes the segment files used least of late (CLOCK: a file used since the hand last passed is
/// spared once).
pub(super) struct FdCache {
    open_max: usize,
    hand: Mutex<VecDeque<Weak<SegmentFile>>>,
}

impl FdCache {
    pub(super) fn new(open_max: usize) -> Arc<Self> {
        Arc::new(Self { open_max: open_max.max(1), hand: Mutex::default() })
    }

    /// Takes in a file that was just opened; no lock of a file may be held.
    fn admit(&self, file: &Arc<SegmentFile>) {
        let mut hand = self.hand.lock().unwrap_or_else(PoisonError::into_inner);
        hand.push_back(Arc::downgrade(file));
        let mut spared = 0;
        while hand.len() > self.open_max {
            let Some(oldest) = hand.pop_front() else { return };
            let Some(segment) = oldest.upgrade() else { continue };
            let used = segment.used.swap(false, Ordering::Relaxed);
            if used && spared < self.open_max {
                spared += 1;
                hand.push_back(oldest);
            } else {
                segment.close();
            }
        }
    }
}

/// The files of one segment. Readers hold it, so that they can go on while the log rolls,
/// deletes or is renamed.
pub struct SegmentFile {
    files: Files,
    place: Arc<Place>,
    pub(super) base_offset: Offset,
    cache: Arc<FdCache>,
    open: Mutex<Open>,
    used: AtomicBool,
    /// Its files wait for their removal under other names.
    deleted: AtomicBool,
}

#[derive(Default)]
struct Open {
    /// Whether the cache counts this segment.
    counted: bool,
    log: Option<Arc<File>>,
    offsets: Option<Arc<Mapped>>,
    times: Option<Arc<Mapped>>,
}

impl SegmentFile {
    pub(super) fn new(
        files: Files,
        place: Arc<Place>,
        base_offset: Offset,
        cache: Arc<FdCache>,
    ) -> Arc<Self> {
        let (open, used, deleted) = (Mutex::default(), AtomicBool::new(false), false.into());
        Arc::new(Self { files, place, base_offset, cache, open, used, deleted })
    }

    pub(super) fn path(&self, kind: Kind) -> PathBuf {
        let name = segment_file(self.base_offset, kind);
        match self.deleted.load(Ordering::Acquire) {
            true => self.place.file(&(name + DELETED)),
            false => self.place.file(&name),
        }
    }

    /// Gives its files the names that deleted ones wait under; readers go on. Returns the names.
    ///
    /// # Errors
    /// [`DiskError`]; a file may then have either name.
    pub(super) fn delete(
        &self,
        kinds: impl Iterator<Item = Kind>,
    ) -> Result<Vec<String>, DiskError> {
        let open = self.open();
        let mut names = Vec::new();
        for kind in kinds {
            let name = segment_file(self.base_offset, kind);
            let (from, to) = (self.place.file(&name), name + DELETED);
            if self.files.exists(&from) {
                self.files.rename(&from, &self.place.file(&to)).at("rename", &from)?;
                names.push(to);
            }
        }
        self.deleted.store(true, Ordering::Release);
        drop(open);
        Ok(names)
    }

    /// Opening a file failed: is it because the segment's files are gone for good?
    fn missing(&self, error: DiskError) -> DiskError {
        let is_missing = error.source.kind() == std::io::ErrorKind::NotFound;
        match is_missing && self.deleted.load(Ordering::Acquire) {
            true => DiskError::deleted(&error.path),
            false => error,
        }
    }

    /// The data, opened if it is not.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn log(self: &Arc<Self>) -> Result<Arc<File>, DiskError> {
        let open = self.open();
        if let Some(file) = &open.log {
            self.used.store(true, Ordering::Relaxed);
            return Ok(file.clone());
        }
        self.fill(open, |open| {
            let path = self.path(Kind::Log);
            let file = Arc::new(self.files.open(&path, OpenMode::ReadWrite).at("open", &path)?);
            Ok(open.log.insert(file).clone())
        })
    }

    /// The offset index of a sealed segment.
    pub(super) fn offset_index(self: &Arc<Self>) -> Result<Arc<Mapped>, DiskError> {
        let open = self.open();
        if let Some(map) = &open.offsets {
            self.used.store(true, Ordering::Relaxed);
            return Ok(map.clone());
        }
        self.fill(open, |open| Ok(open.offsets.insert(self.map(Kind::OffsetIndex)?).clone()))
    }

    /// The time index of a sealed segment.
    pub(super) fn time_index(self: &Arc<Self>) -> Result<Arc<Mapped>, DiskError> {
        let open = self.open();
        if let Some(map) = &open.times {
            self.used.store(true, Ordering::Relaxed);
            return Ok(map.clone());
        }
        self.fill(open, |open| Ok(open.times.insert(self.map(Kind::TimeIndex)?).clone()))
    }

    fn map(&self, kind: Kind) -> Result<Arc<Mapped>, DiskError> {
        let path = self.path(kind);
        let file = self.files.open(&path, OpenMode::Read).at("open", &path)?;
        Mapped::new(&file).at("map", &path).map(Arc::new)
    }

    fn fill<T>(
        self: &Arc<Self>,
        mut open: MutexGuard<'_, Open>,
        with: impl FnOnce(&mut Open) -> Result<T, DiskError>,
    ) -> Result<T, DiskError> {
        let filled = with(&mut open).map_err(|error| self.missing(error))?;
        self.used.store(true, Ordering::Relaxed);
        let new = !std::mem::replace(&mut open.counted, true);
        drop(open);
        if new {
            self.cache.admit(self);
        }
        Ok(filled)
    }

    /// Drops descriptors and maps; those in use live on with their users.
    pub(super) fn close(&self) {
        *self.open() = Open::default();
    }

    /// Drops the maps only, before an index is written anew. The cache goes on counting.
    pub(super) fn forget_indexes(&self) {
        let mut open = self.open();
        (open.offsets, open.times) = (None, None);
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for SegmentFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SegmentFile").field(&self.path(Kind::Log)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_files_are_open_than_allowed_and_all_stay_readable() {
        let (files, cache) = (Files::Sim(Default::default()), FdCache::new(3));
        let place = Arc::new(Place::new("/t-0".into()));
        files.create_dir_all(&place.dir()).unwrap();
        let make = |base| {
            files.write(&place.segment(base, Kind::Log), &[base as u8]).unwrap();
            SegmentFile::new(files.clone(), place.clone(), base, cache.clone())
        };
        let segments: Vec<_> = (0..10).map(make).collect();
        for _ in 0..3 {
            for segment in &segments {
                let mut byte = [0];
                segment.log().unwrap().read_exact_at(&mut byte, 0).unwrap();
                assert_eq!(byte[0], segment.base_offset as u8);
                let open = segments.iter().filter(|s| s.open().log.is_some()).count();
                assert!(open <= 3, "{open} are open");
            }
        }
        segments[0].log().unwrap();
        segments[1].log().unwrap();
        for segment in &segments[2..] {
            segment.log().unwrap();
            segments[0].log().unwrap();
        }
        assert!(segments[0].open().log.is_some(), "what is in use stays open");
    }
}
