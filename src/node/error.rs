//! Why a node does not start, in the sentence that the operator sees.

use std::io;

use crate::cli::Failure;
use crate::controller::Refusal;
use crate::machine::AskError;
use crate::metadata::PublishError;
use crate::quorum::QuorumError;
use crate::storage::{OperatorFault, StorageError};

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
    /// A directory of Kafka's that this version cannot take over; nothing in it was touched.
    #[error("`{dir}` cannot be taken over from Kafka: {reason}")]
    Import { dir: String, reason: String },
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Quorum(#[from] QuorumError),
    #[error("this version cannot read the cluster's metadata: {0}")]
    Metadata(#[from] PublishError),
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
            Self::Bind { source, .. } if source.kind() == io::ErrorKind::AddrInUse => failure
                .hint("another program listens there; give another `--port`, or 0 for a free one"),
            Self::Bind { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                failure.hint("ports below 1024 need privileges; give another `--port`")
            }
            Self::Directory { .. } => {
                failure.hint("give another `--data-dir`, or make this one writable")
            }
            Self::Quorum(QuorumError::InUse { .. }) => failure
                .hint("another Ottla uses this directory; stop it, or give another `--data-dir`"),
            Self::Storage(StorageError::Operator(fault)) => failure.hint(way_out(fault)),
            Self::MixedClusters(_) => failure.hint("give directories of one cluster in `log.dirs`"),
            _ => failure,
        }
    }
}

fn way_out(fault: &OperatorFault) -> &'static str {
    match fault {
        OperatorFault::InUse { .. } => "stop the other process, or give another `--data-dir`",
        OperatorFault::NotALogDirectory { .. } => "give an empty directory with `--data-dir`",
        OperatorFault::OtherCluster { .. } => {
            "give another `--data-dir`, or drop `--set ottla.cluster.id` to start that cluster"
        }
        OperatorFault::OtherNode { .. } => "give another `--data-dir`, or the node's own `node.id`",
        OperatorFault::NameTooLong { .. } => "give the topic a shorter name",
        OperatorFault::Unreadable { .. } => "restore the file, or give another `--data-dir`",
    }
}
