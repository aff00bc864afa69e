//! What must reach the disk before the recovery point may move. A plan is made under the
//! partition's lock and run without it, alone or with those of other logs.

use std::path::PathBuf;
use std::sync::Arc;

use super::error::{At, DiskError};
use super::fd_cache::SegmentFile;
use super::names::Kind;
use crate::common::Offset;
use crate::env::{File, Files, OpenMode};

/// Files to sync, then temporary files to rename into place, then directories to sync.
#[derive(Debug, Default)]
#[must_use = "nothing is on disk before it has run"]
pub struct FlushPlan {
    pub(super) segments: Vec<Arc<SegmentFile>>,
    pub(super) files: Vec<PathBuf>,
    pub(super) renames: Vec<(PathBuf, PathBuf)>,
    pub(super) dirs: Vec<PathBuf>,
    /// Offsets of the snapshots among the files.
    pub(super) snapshots: Vec<Offset>,
    /// All segments below it are wholly durable once the plan has run.
    pub(super) synced_until: Offset,
    /// All data below it is durable once the plan has run.
    pub(super) until: Offset,
}

impl FlushPlan {
    /// Nothing needs to be done.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.files.is_empty() && self.dirs.is_empty()
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
            open.push((segment.log()?, segment.path(Kind::Log)));
        }
        for path in &plan.files {
            let file = files.open(path, OpenMode::ReadWrite).at("open", path)?;
            open.push((Arc::new(file), path.clone()));
        }
        if open.len() >= SYNCED_AT_ONCE {
            sync(files, &mut open)?;
        }
    }
    sync(files, &mut open)?;
    for (from, to) in plans.iter().flat_map(|plan| &plan.renames) {
        files.rename(from, to).at("rename", from)?;
    }
    let mut dirs: Vec<&PathBuf> = plans.iter().flat_map(|plan| &plan.dirs).collect();
    dirs.sort();
    dirs.dedup();
    dirs.into_iter().try_for_each(|dir| files.sync_dir(dir).at("sync", dir))
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
