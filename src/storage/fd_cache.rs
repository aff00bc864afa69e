//! Segment files, opened on demand; how many are open at once is bounded.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use super::error::{At, DiskError};
use super::flush::FlushPlan;
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
    /// What stands behind the names of the files: nothing, or one of Kafka's words for files that
    /// are not yet, or no longer, the log's. Changed under `open`, so that nobody opens a name
    /// that is just changing hands.
    suffix: RwLock<String>,
    open: Mutex<Open>,
    used: AtomicBool,
    damage_told: AtomicBool,
    index_told: AtomicBool,
    /// Bytes from the front whose checksums were found right since the start.
    sound_bytes: AtomicU64,
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
        Self::suffixed(files, place, base_offset, cache, "")
    }

    /// The files of a segment that is no part of the log: `suffix` stands behind their names.
    pub(super) fn suffixed(
        files: Files,
        place: Arc<Place>,
        base_offset: Offset,
        cache: Arc<FdCache>,
        suffix: &str,
    ) -> Arc<Self> {
        let (open, used) = (Mutex::default(), AtomicBool::new(false));
        let suffix = RwLock::new(suffix.to_owned());
        let (damage_told, index_told) = (AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Self {
            files,
            place,
            base_offset,
            cache,
            suffix,
            open,
            used,
            damage_told,
            sound_bytes: AtomicU64::new(0),
            index_told,
        })
    }

    pub(super) fn path(&self, kind: Kind) -> PathBuf {
        let suffix = self.suffix.read().unwrap_or_else(PoisonError::into_inner);
        self.path_with(kind, &suffix)
    }

    /// Within the log's directory; there need not be all of them.
    pub(super) fn names_of_indexes(&self) -> impl Iterator<Item = PathBuf> {
        let suffix = self.suffix.read().unwrap_or_else(PoisonError::into_inner).clone();
        let name = move |kind| format!("{}{suffix}", segment_file(self.base_offset, kind)).into();
        Kind::OF_SEGMENT.into_iter().skip(1).map(name)
    }

    /// An empty plan for the log that this is of.
    pub(super) fn plan(&self) -> FlushPlan {
        FlushPlan::of(&self.place)
    }

    fn path_with(&self, kind: Kind, suffix: &str) -> PathBuf {
        self.place.file(&format!("{}{suffix}", segment_file(self.base_offset, kind)))
    }

    /// Of the producers at the segment's base; it keeps its name through a swap.
    pub(super) fn path_of_snapshot(&self) -> PathBuf {
        self.path_with(Kind::Snapshot, "")
    }

    /// Whether the files have the names of a log's segment.
    pub(super) fn is_in_log(&self) -> bool {
        self.suffix.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Gives all files of the segment but its snapshot another suffix, the data first, as Kafka
    /// does: recovery tells by that how far a swap has come. Who has them open does not notice.
    ///
    /// # Errors
    /// [`DiskError`]; what was renamed has its old name again, unless that failed too.
    pub(super) fn rename(&self, suffix: &str) -> Result<(), DiskError> {
        let _nobody_opens = self.open();
        let old = self.suffix.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut renamed: Vec<(PathBuf, PathBuf)> = Vec::new();
        for kind in Kind::OF_SEGMENT {
            let (from, to) = (self.path_with(kind, &old), self.path_with(kind, suffix));
            if !self.files.exists(&from) {
                continue;
            }
            if let Err(source) = self.files.rename(&from, &to) {
                for (from, to) in renamed.iter().rev() {
                    self.files.rename(to, from).at("rename back", to)?;
                }
                return Err(source).at("rename", &from);
            }
            renamed.push((from, to));
        }
        suffix.clone_into(&mut self.suffix.write().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }

    /// [`SegmentFile::rename`] to `.deleted`, or to a name like it where an earlier segment of this
    /// offset still has that.
    ///
    /// # Errors
    /// [`DiskError`], as there.
    pub(super) fn set_aside(&self) -> Result<(), DiskError> {
        let is_free = |suffix: &String| {
            let taken = |kind| self.files.exists(&self.path_with(kind, suffix));
            !Kind::OF_SEGMENT.into_iter().any(taken)
        };
        let others = (1_u64..).map(|number| format!(".{number}{DELETED}"));
        let free = std::iter::once(DELETED.to_owned()).chain(others).find(is_free);
        self.rename(&free.unwrap_or_else(|| DELETED.to_owned()))
    }

    /// Gives the snapshot at the segment's base the name that deleted files wait under.
    ///
    /// # Errors
    /// [`DiskError`].
    pub(super) fn set_snapshot_aside(&self) -> Result<(), DiskError> {
        let (from, to) = (self.path_of_snapshot(), self.path_with(Kind::Snapshot, DELETED));
        match self.files.exists(&from) {
            true => self.files.rename(&from, &to).at("rename", &from),
            false => Ok(()),
        }
    }

    /// Removes all files of a segment that was set aside, and a snapshot that was; those that are
    /// not there (any more) do no harm.
    ///
    /// # Errors
    /// [`DiskError`].
    pub(super) fn remove(&self) -> Result<(), DiskError> {
        let snapshot = self.path_with(Kind::Snapshot, DELETED);
        let paths = Kind::OF_SEGMENT.into_iter().map(|kind| self.path(kind));
        for path in paths.chain([snapshot]) {
            match self.files.remove_file(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                outcome => outcome.at("remove", &path)?,
            }
        }
        Ok(())
    }

    /// Opening a file failed: is it because the segment's files are gone for good?
    fn missing(&self, error: DiskError) -> DiskError {
        let suffix = self.suffix.read().unwrap_or_else(PoisonError::into_inner);
        let is_deleted = suffix.ends_with(DELETED) || self.place.is_deleted();
        match error.source.kind() == ErrorKind::NotFound && is_deleted {
            true => DiskError::deleted(&error.path),
            false => error,
        }
    }

    /// Says once that a file of this segment is damaged: whoever reads it may ask again and again.
    pub(super) fn tell_damage(&self, error: &DiskError) {
        if !self.damage_told.swap(true, Ordering::Relaxed) {
            tracing::error!(%error, "segment is damaged");
        }
    }

    /// Says once that an index file holds what cannot be; it is not believed, or made anew.
    pub(super) fn tell_index_damage(&self, kind: Kind) {
        if !self.index_told.swap(true, Ordering::Relaxed) {
            let file = self.path(kind);
            tracing::warn!(file = %file.display(), "index is damaged, it is not believed");
        }
    }

    /// Whether all checksums up to byte `end` of the data were found right since the start.
    pub(super) fn is_sound_until(&self, end: u64) -> bool {
        end <= self.sound_bytes.load(Ordering::Relaxed)
    }

    /// Notes that the checksums in these bytes are right; only what joins the front counts.
    pub(super) fn note_sound(&self, bytes: std::ops::Range<u64>) {
        if self.is_sound_until(bytes.start) {
            self.sound_bytes.fetch_max(bytes.end, Ordering::Relaxed);
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
