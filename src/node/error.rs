//! Why a node does not start, in the sentence that the operator sees.

use std::io;

use crate::cli::Failure;
use crate::controller::Refusal;
use crate::machine::AskError;
use crate::quorum::QuorumError;
use crate::storage::StorageError;

/// Nothing runs after one of these.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    #[error("cannot listen on {address}: {source}")]
    Bind { address: String, source: io::Error },
    #[error("cannot resolve `{address}`: {source}")]
    Resolve { address: String, source: io::Error },
    #[error("the log directories belong to different clusters: {0}")]
    MixedClusters(String),
    #[error("`{dir}`: {source}")]
    Directory { dir: String, source: io::Error },
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Quorum(#[from] QuorumError),
    #[error("this broker cannot register: {0}")]
    Register(Refusal),
    #[error("the controller does not answer: {0}")]
    Controller(#[from] AskError),
    #[error("cannot create topic `{name}`: {refusal}")]
    Topic { name: String, refusal: Refusal },
}

impl NodeError {
    /// With the way out, where there is one.
    pub fn into_failure(self) -> Failure {
        let failure = Failure::failed(&self);
        match &self {
            Self::Bind { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                failure.hint("another program listens there; give another `--port`, or 0 for a free one")
            }
            Self::Bind { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                failure.hint("ports below 1024 need privileges; give another `--port`")
            }
            Self::Directory { .. } => failure.hint("give another `--data-dir`, or make this one writable"),
            Self::Quorum(QuorumError::InUse { .. }) => {
                failure.hint("another Ottla uses this directory; stop it, or give another `--data-dir`")
            }
            Self::Storage(error) => match error.hint() {
                Some(hint) => failure.hint(hint),
                None => failure,
            },
            Self::MixedClusters(_) => failure.hint("give directories of one cluster in `log.dirs`"),
            _ => failure,
        }
    }
}
