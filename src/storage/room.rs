//! Room on the disk of a log directory. Below a reserve clients' appends are refused, so that
//! coordinators, indexes, checkpoints and the metadata log still find some; a full disk is told
//! once when it begins and once when it is over.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use super::error::DiskError;
use crate::env::Files;

/// Shared by all logs of a directory.
pub(super) struct Room {
    files: Files,
    dir: PathBuf,
    /// `ottla.disk.reserve.bytes`; 0: none is kept.
    reserve_bytes: u64,
    /// What may be appended before the disk is asked again.
    left: AtomicI64,
    is_short: AtomicBool,
}

impl Room {
    pub(super) fn new(files: &Files, dir: &Path, reserve_bytes: u64) -> Self {
        let (files, dir) = (files.clone(), dir.to_owned());
        Self { files, dir, reserve_bytes, left: AtomicI64::new(0), is_short: false.into() }
    }

    /// Takes room for a client's batch that goes to the end of `path()`.
    /// - Cost: one atomic; a look at the disk each time half the reserve was appended.
    ///
    /// # Errors
    /// A full disk: less than the reserve would be left. The next call asks the disk again.
    pub(super) fn take(
        &self,
        size_bytes: usize,
        path: impl FnOnce() -> PathBuf,
    ) -> Result<(), DiskError> {
        let size = size_bytes as i64;
        if self.reserve_bytes == 0 || self.left.fetch_sub(size, Ordering::Relaxed) >= size {
            return Ok(());
        }
        // A disk that does not even say how full it is will say more when it is written to.
        let Ok(free_bytes) = self.files.free_bytes(&self.dir) else { return Ok(()) };
        let spare = free_bytes.saturating_sub(self.reserve_bytes);
        if spare < size_bytes as u64 {
            self.left.store(0, Ordering::Relaxed);
            let reserve_bytes = self.reserve_bytes;
            let what = format!("{free_bytes} bytes are free, {reserve_bytes} are kept in reserve");
            let source = io::Error::new(io::ErrorKind::StorageFull, what);
            let error = DiskError { doing: "append to", path: path(), source };
            self.tell_full(&error);
            return Err(error);
        }
        let most = spare.min(self.reserve_bytes / 2);
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.left.store(most.saturating_sub(size), Ordering::Relaxed);
        self.tell_room();
        Ok(())
    }

    /// Says that the disk is full, if `error` does and it was not said yet.
    pub(super) fn tell_full(&self, error: &DiskError) {
        if error.is_full() && !self.is_short.swap(true, Ordering::Relaxed) {
            let dir = self.dir.display();
            tracing::error!(%dir, %error, "log directory is full, waiting for room");
        }
    }

    /// Something was written: the disk is not full any more.
    pub(super) fn tell_room(&self) {
        if self.is_short.load(Ordering::Relaxed) && self.is_short.swap(false, Ordering::Relaxed) {
            tracing::info!(dir = %self.dir.display(), "log directory has room again");
        }
    }
}
