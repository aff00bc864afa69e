//! A look at a directory before anything in it is touched.

use std::path::Path;

use super::error::{At, StorageError};
use super::log_dir::{Identity, META_PROPERTIES, check_identity, read};
use super::names::{DirName, parse_dir};
use crate::env::Files;

/// What a directory is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inspected {
    /// `None`: it has no `meta.properties`, or is not there.
    pub cluster_id: Option<String>,
    /// It has logs of partitions.
    pub has_logs: bool,
    /// Names of what an unfinished move or Kafka's clearing up left.
    pub aside: Vec<String>,
}

/// Reads whose directory `path` is, and the names in it.
///
/// # Errors
/// [`super::OperatorFault`] when it is not `identity`'s; [`super::DiskError`].
pub fn inspect(files: &Files, path: &Path, identity: &Identity) -> Result<Inspected, StorageError> {
    let mut found = Inspected::default();
    if !files.exists(path) {
        return Ok(found);
    }
    if let Some(bytes) = read(files, &path.join(META_PROPERTIES))? {
        found.cluster_id = Some(check_identity(path, &bytes, identity)?.cluster_id);
    }
    for entry in files.list(path).at("list", path)?.into_iter().filter(|entry| entry.is_dir) {
        match parse_dir(&entry.name) {
            DirName::Partition(_) => found.has_logs = true,
            DirName::Future(_) | DirName::Aside => found.aside.push(entry.name),
            DirName::Deleted | DirName::Other => {}
        }
    }
    Ok(found)
}
