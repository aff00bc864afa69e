//! What must reach the disk before the recovery point may move. A plan is made under the
//! partition's lock and run without it, alone or with those of other logs.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::{At, DiskError};
use super::fd_cache::SegmentFile;
use super::log::Log;
use super::names::{Kind, Place};
use crate::common::Offset;
use crate::env::{File, Files, OpenMode};

/// Files to sync, then temporary files to rename into place, then directories to sync.
///
/// A log does not stand still between plan and run: it may be deleted or moved as a whole, and
/// retention or the cleaner may take files of it. What is gone by then has to last no longer.
#[derive(Debug, Default)]
#[must_use = "nothing is on disk before it has run"]
pub struct FlushPlan {
    /// The log that the names below are in; without one they are paths that must be there.
    place: Option<Arc<Place>>,
    pub(super) segments: Vec<Arc<SegmentFile>>,
    pub(super) files: Vec<PathBuf>,
    /// Within one directory.
    pub(super) renames: Vec<(PathBuf, PathBuf)>,
    /// Absolute paths.
    pub(super) dirs: Vec<PathBuf>,
    /// The log's own directory, too.
    pub(super) own_dir: bool,
    /// Offsets of the snapshots among the files.
    pub(super) snapshots: Vec<Offset>,
    /// All segments below it are wholly durable once the plan has run.
    pub(super) synced_until: Offset,
    /// All data below it is durable once the plan has run.
    pub(super) until: Offset,
}

impl FlushPlan {
    pub(super) fn of(place: &Arc<Place>) -> Self {
        Self { place: Some(place.clone()), ..Self::default() }
    }

    /// Nothing needs to be done.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.files.is_empty() && self.dirs.is_empty() && !self.own_dir
    }

    pub fn until(&self) -> Offset {
        self.until
    }

    /// Runs this plan.
    ///
    /// # Errors
    /// [`DiskError`]: what of it is durable is unknown; the directory must go offline.
    pub fn run(&self, files: &Files) -> Result<(), DiskError> {
        run_all(files, std::slice::from_ref(self))
    }

    /// Does something with what is at `path`; `None` where that is gone.
    fn on<T>(
        &self,
        path: &Path,
        doing: &'static str,
        act: impl FnOnce(&Path) -> io::Result<T>,
    ) -> Result<Option<T>, DiskError> {
        let Some(place) = &self.place else { return act(path).at(doing, path).map(Some) };
        place.standing(|dir| {
            let path = dir.join(path);
            match act(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                outcome => outcome.at(doing, &path).map(Some),
            }
        })
    }
}

/// Runs several plans as one: all files are synced side by side, then come the renames, then
/// every directory once.
///
/// # Errors
/// [`DiskError`], as [`FlushPlan::run`].
pub fn run_all(files: &Files, plans: &[FlushPlan]) -> Result<(), DiskError> {
    let mut open: Vec<(Arc<File>, PathBuf)> = Vec::new();
    for plan in plans {
        for segment in &plan.segments {
            match segment.log() {
                Ok(file) => open.push((file, segment.path(Kind::Log))),
                Err(error) if error.is_deleted() => {}
                Err(error) => return Err(error),
            }
        }
        for path in &plan.files {
            let file = plan.on(path, "open", |path| {
                files.open(path, OpenMode::ReadWrite).map(|file| (Arc::new(file), path.to_owned()))
            })?;
            open.extend(file);
        }
        if open.len() >= SYNCED_AT_ONCE {
            sync(files, &mut open)?;
        }
    }
    sync(files, &mut open)?;
    for plan in plans {
        for (from, to) in &plan.renames {
            let name = to.file_name().unwrap_or_default();
            plan.on(from, "rename", |from| files.rename(from, &from.with_file_name(name)))?;
        }
    }
    let mut dirs: Vec<&PathBuf> = plans.iter().flat_map(|plan| &plan.dirs).collect();
    dirs.sort();
    dirs.dedup();
    dirs.into_iter().try_for_each(|dir| files.sync_dir(dir).at("sync", dir))?;
    for plan in plans.iter().filter(|plan| plan.own_dir) {
        plan.on(Path::new(""), "sync", |dir| files.sync_dir(dir))?;
    }
    Ok(())
}

/// Bytes that are read and written again in one go.
const WRITTEN_AT_ONCE: usize = 1 << 20;

impl Log {
    /// Writes all data again that no flush has covered as far as a start can tell.
    pub(super) fn write_anew(&mut self) -> Result<(), DiskError> {
        let sealed = self.sealed.iter().filter(|one| one.base_offset() >= self.checked_from);
        let files = sealed.map(|one| &one.file).chain([&self.active.file]);
        let mut bytes = vec![0; WRITTEN_AT_ONCE];
        for segment in files {
            let (file, path) = (segment.log()?, segment.path(Kind::Log));
            let mut position = 0;
            loop {
                let count = file.read_at(&mut bytes, position).at("read", &path)?;
                if count == 0 {
                    break;
                }
                file.write_all_at(&[&bytes[..count]], position).at("write", &path)?;
                position += count as u64;
            }
        }
        self.dir_unsynced = true;
        Ok(())
    }
}

/// Bounds the descriptors that a flush of many logs holds open.
const SYNCED_AT_ONCE: usize = 256;

fn sync(files: &Files, open: &mut Vec<(Arc<File>, PathBuf)>) -> Result<(), DiskError> {
    let list: Vec<&File> = open.iter().map(|(file, _)| &**file).collect();
    if let Err((at, source)) = files.sync_many(&list) {
        return Err(source).at("sync", &open[at].1);
    }
    open.clear();
    Ok(())
}
