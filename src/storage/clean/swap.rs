//! Putting a cleaned segment in the place of the old ones. A crash at any rename leaves the old
//! segments or the new one whole; `leftovers.rs` tells which by the suffixes.

use std::sync::Arc;

use super::segments::CleanedSegment;
use crate::env::Files;
use crate::storage::error::{At, DiskError};
use crate::storage::log::Log;
use crate::storage::names::SWAP;
use crate::storage::segment::SealedSegment;
use crate::storage::trim::DeletedSegments;

impl Log {
    /// Puts a cleaned segment in the place of those it was made from; `None`: the log does not
    /// have them any more (retention, a truncation). Renames only, no fsync.
    ///
    /// # Errors
    /// [`DiskError`]: the log is as it was. Where even that failed, the error is none of a full
    /// disk, and the next start puts the files in order.
    pub fn swap_in(
        &mut self,
        cleaned: &CleanedSegment,
    ) -> Result<Option<DeletedSegments>, DiskError> {
        let old = cleaned.old();
        let first = old.first().map_or(0, |segment| segment.base_offset());
        let at = self.sealed.partition_point(|segment| segment.base_offset() < first);
        let found = self.sealed.get(at..at + old.len());
        let same = |pair: (&Arc<SealedSegment>, &Arc<SealedSegment>)| Arc::ptr_eq(pair.0, pair.1);
        if !found.is_some_and(|found| found.iter().zip(old).all(same)) {
            return Ok(None);
        }
        let new = cleaned.file();
        new.rename(SWAP)?;
        for (count, segment) in old.iter().enumerate() {
            if let Err(error) = segment.file.set_aside() {
                return Err(undo(&old[..count], error));
            }
        }
        if let Err(error) = new.rename("") {
            return Err(undo(old, error));
        }
        let sealed = Arc::new(cleaned.sealed());
        Arc::make_mut(&mut self.sealed).splice(at..at + old.len(), [sealed]);
        self.dir_unsynced = true;
        // What cannot be removed now goes with the next load.
        drop(self.remove_snapshots(&old[1..]));
        Ok(Some(DeletedSegments::of(old)))
    }

    /// No segment begins there any more, so no recovery does.
    fn remove_snapshots(&self, gone: &[Arc<SealedSegment>]) -> Result<(), DiskError> {
        let files: &Files = &self.shared.files;
        for segment in gone {
            let offset = segment.base_offset();
            let needed = self.producers.snapshot_offset == offset
                || self.snapshots_unsynced.contains(&offset);
            let path = segment.file.path_of_snapshot();
            if !needed && files.exists(&path) {
                files.remove_file(&path).at("remove", &path)?;
            }
        }
        Ok(())
    }
}

/// Gives the old segments their names back.
fn undo(renamed: &[Arc<SealedSegment>], error: DiskError) -> DiskError {
    for segment in renamed.iter().rev() {
        if let Err(second) = segment.file.rename("") {
            // Half of a swap is on the disk: worse than any shortage that may be behind it.
            let DiskError { doing, path, source } = second;
            let source = std::io::Error::other(source.to_string());
            return DiskError { doing, path, source };
        }
    }
    error
}
