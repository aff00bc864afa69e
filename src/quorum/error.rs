//! What can go wrong below the seam.

use std::io;
use std::path::{Path, PathBuf};

use crate::env::Tasks;

/// Why the quorum does not start, or stopped. Each ends the node; the operator has to act.
#[derive(Debug, thiserror::Error)]
pub enum QuorumError {
    /// The directory is that of another node, or of another disk of this one.
    #[error("`{}` belongs to {found}, this is {expected}", path.display())]
    Foreign { path: PathBuf, found: String, expected: String },
    /// Another process, or another node of this one, uses the directory.
    #[error("`{}` is in use: {source}", path.display())]
    InUse { path: PathBuf, source: io::Error },
    /// What was once durable is not readable any more.
    #[error("`{}` is damaged at byte {at}: {reason}", path.display())]
    Damaged { path: PathBuf, at: usize, reason: String },
    /// What the system said; whether the change is on the disk is unknown.
    #[error("`{}`: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The consensus engine ended by itself.
    #[error("consensus engine: {0}")]
    Engine(String),
}

impl QuorumError {
    pub(super) fn io(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_path_buf(), source }
    }
}

/// Stops the process by name. After a failed fsync nothing that is in memory can be trusted to be
/// on the disk; the next start rewrites the log's tail before it believes it.
pub fn end_process(error: &QuorumError, tasks: &Tasks) {
    tracing::error!(%error, "metadata quorum failed, stopping");
    tasks.end_process();
}
