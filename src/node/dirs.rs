//! The log directories of a node: opened at the start, told to the controller, given up one by one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::NodeError;
use super::{import, quorum};
use crate::common::BrokerId;
use crate::config::BrokerConfig;
use crate::controller::{AssignDirectories, FailDirectories, Handle};
use crate::env::{Env, Tasks};
use crate::metadata::Image;
use crate::replica::{Assign, Replicas, ReplicasConfig, TellFailed};
use crate::storage::{Identity, Inspected, LogDir, LogDirOptions, StorageError, inspect};
use crate::telemetry::Metrics;

/// What the start found.
pub struct OpenedDirs {
    /// At least one.
    pub dirs: Vec<LogDir>,
    /// Those that the system would not let us use, as absolute paths.
    pub dead: Vec<String>,
    /// Where the quorum has its log.
    pub metadata: PathBuf,
    /// What Kafka left, if these were its directories.
    pub imported: Option<import::Imported>,
}

/// The directory whose loss ends the process, since the metadata is in it.
fn metadata_parent(config: &BrokerConfig) -> PathBuf {
    let first = || PathBuf::from(&config.log.directories()[0]);
    config.node.metadata_log_dir.as_ref().map_or_else(first, PathBuf::from)
}

/// Looks at all directories before anything in them is touched.
fn look(
    config: &BrokerConfig,
    env: &Env,
    parent: &Path,
) -> Result<Vec<(PathBuf, Inspected)>, NodeError> {
    let node_id = BrokerId(config.node.node_id);
    let mut cluster_id = config.ottla.cluster_id.clone();
    let mut found = Vec::new();
    for path in config.log.directories().iter().map(PathBuf::from) {
        let identity = Identity { cluster_id: cluster_id.clone(), node_id };
        match inspect(&env.files, &path, &identity) {
            Ok(inspected) => {
                cluster_id = inspected.cluster_id.clone().or(cluster_id);
                found.push((path, inspected));
            }
            // It may be left out, see below.
            Err(StorageError::Disk(_)) if path != parent => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

/// Opens all log directories. One that fails is left out, unless it is the last one or holds the
/// metadata.
///
/// # Errors
/// [`NodeError`].
pub fn open(config: &BrokerConfig, env: &Env) -> Result<OpenedDirs, NodeError> {
    let parent = metadata_parent(config);
    let metadata = parent.join(quorum::DIR_NAME);
    let (node, found) = (BrokerId(config.node.node_id), look(config, env, &parent)?);
    let imported = import::look(node, &env.files, &parent, &found)?;
    let made = env.files.create_dir_all(&metadata);
    let dir = metadata.display().to_string();
    made.map_err(|source| NodeError::Directory { dir, source })?;
    let mut cluster_id = config.ottla.cluster_id.clone();
    let (mut dirs, mut dead, mut failed): (Vec<LogDir>, Vec<String>, Option<StorageError>) =
        Default::default();
    for path in config.log.directories().iter().map(PathBuf::from) {
        let node_id = BrokerId(config.node.node_id);
        let identity = Identity { cluster_id: cluster_id.clone(), node_id };
        let options = LogDirOptions {
            producer_expiration_ms: i64::from(config.log.producer_id_expiration_ms),
            reserve_bytes: config.ottla.disk_reserve_bytes.unsigned_abs(),
            ..LogDirOptions::default()
        };
        match LogDir::open(&env.files, &env.random, &path, &identity, &options) {
            Ok(opened) => {
                cluster_id = Some(opened.cluster_id().to_owned());
                dirs.push(opened);
            }
            Err(error @ StorageError::Disk(_)) if path != parent => {
                let absolute = env.files.absolute(&path).unwrap_or(path).display().to_string();
                tracing::error!(dir = absolute, %error, "log directory offline");
                dead.push(absolute);
                failed = Some(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    // A log directory syncs its own names; a `metadata.log.dir` beside them is nobody else's.
    if !dirs.iter().any(|dir| dir.path() == parent) {
        let synced = env.files.sync_dir(&parent);
        let dir = parent.display().to_string();
        synced.map_err(|source| NodeError::Directory { dir, source })?;
    }
    match failed {
        Some(error) if dirs.is_empty() => Err(error.into()),
        _ => Ok(OpenedDirs { dirs, dead, metadata, imported }),
    }
}

/// Opens the logs in all directories.
///
/// # Errors
/// [`NodeError`].
pub fn replicas(
    (config, image): (&BrokerConfig, &Image),
    env: &Env,
    metrics: &Arc<Metrics>,
    (dirs, dead_dirs): (Vec<LogDir>, Vec<String>),
    last_epoch: Option<i64>,
) -> Result<Arc<Replicas>, NodeError> {
    let (parent, tasks) = (metadata_parent(config), env.tasks.clone());
    let settings = ReplicasConfig {
        node: BrokerId(config.node.node_id),
        topic_defaults: config.topic_defaults.clone(),
        recovery_threads: if env.tasks.has_threads() {
            usize::try_from(config.log.recovery_threads).unwrap_or(1)
        } else {
            1
        },
        fetch_bytes_max: config.network.fetch_max_bytes,
        session_slots: super::session_slots(config),
        dead_dirs,
        on_dir_failed: Box::new(move |dir, was_last| end_without(&tasks, dir, was_last, &parent)),
    };
    Ok(Replicas::open(settings, env.clone(), metrics.clone(), dirs, last_epoch, image)?)
}

/// Goes on while there is a directory left, and the metadata.
fn end_without(tasks: &Tasks, dir: &Path, was_last: bool, metadata: &Path) {
    let which = match (was_last, dir == metadata) {
        (true, _) => "last",
        (false, true) => "metadata",
        (false, false) => return,
    };
    tracing::error!(dir = %dir.display(), "the {which} log directory failed, stopping");
    tasks.end_process();
}

/// Moves replicas between directories and keeps the controller in the picture, until dropped.
pub fn keep(
    replicas: Arc<Replicas>,
    controller: &Handle,
    broker: BrokerId,
) -> impl Future<Output = ()> + use<> {
    let tell_failed = tell_failed(controller.clone(), broker);
    replicas.keep_directories(assign(controller.clone(), broker), tell_failed)
}

/// Tells the controller which directories this broker's replicas are in.
fn assign(controller: Handle, broker: BrokerId) -> Assign {
    Box::new(move |replicas| {
        let controller = controller.clone();
        Box::pin(async move {
            let Some(node) = controller.image().broker(broker).cloned() else { return false };
            let wanted = replicas.len();
            let ask = AssignDirectories { broker, broker_epoch: node.epoch, replicas };
            match controller.ask(ask).await {
                Ok(Ok(known)) => known == wanted,
                Ok(Err(error)) => {
                    tracing::warn!(%error, "replica directories were not taken by the controller");
                    false
                }
                Err(error) => {
                    tracing::debug!(%error, "the controller was not told of replica directories");
                    false
                }
            }
        })
    })
}

/// Tells the controller which directories of this broker have failed.
fn tell_failed(controller: Handle, broker: BrokerId) -> TellFailed {
    Box::new(move |failed| {
        let controller = controller.clone();
        Box::pin(async move {
            loop {
                let Some(node) = controller.image().broker(broker).cloned() else { return false };
                let failed = failed.clone();
                let ask = FailDirectories { broker, broker_epoch: node.epoch, failed };
                match controller.ask(ask).await {
                    Ok(Ok(true)) => return true,
                    Ok(Ok(false)) => {}
                    Ok(Err(error)) => {
                        tracing::warn!(%error, "failed directories were not taken by the controller");
                        return false;
                    }
                    Err(error) => {
                        tracing::debug!(%error, "the controller was not told of failed directories");
                        return false;
                    }
                }
            }
        })
    })
}
