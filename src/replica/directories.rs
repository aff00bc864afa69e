//! The node's log directories (JBOD): which log is in which, which one a new log goes to, what
//! clients are told of them.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwap;
use uuid::Uuid;

use super::housekeeping::Deleted;
use super::replicas::{Dir, OwnedLog, Replicas, ReplicasConfig, lock};
use super::topics::Topic;
use crate::common::{Offset, TopicId, TopicPartition};
use crate::config::TopicConfig;
use crate::env::{Env, Space};
use crate::metadata::Image;
use crate::storage::{LoadedLog, Loading, LogConfig, LogDir, StorageError};

/// The directory of a replica whose log may lie in one that is offline since the start.
pub(super) const NO_DIR: usize = usize::MAX;

/// What no replica has taken yet.
#[derive(Default)]
pub(super) struct Unclaimed {
    /// Logs found on disk that no topic of the image has claimed.
    pub found: HashMap<TopicPartition, Vec<Found>>,
    /// Directories asked for before the partition was there.
    pub preferred: HashMap<TopicPartition, usize>,
}

/// A log on disk.
pub(super) struct Found {
    pub dir: usize,
    pub is_future: bool,
    pub topic_id: Option<TopicId>,
    pub log: OwnedLog,
    pub high_watermark: Offset,
}

/// The logs of one replica.
pub(super) struct Claimed {
    pub log: Option<Found>,
    pub future: Option<Found>,
}

/// All directories with what is in them.
pub(super) struct Opened {
    pub dirs: Vec<Dir>,
    pub unclaimed: Unclaimed,
    pub is_clean: bool,
    /// Paths of those whose logs could not be read.
    pub dead: Vec<String>,
}

/// Opens all logs in `dirs`. A directory that fails is left out while another one works.
pub(super) fn open(
    env: &Env,
    (config, image): (&ReplicasConfig, &Image),
    dirs: Vec<LogDir>,
    last_broker_epoch: Option<i64>,
) -> Result<Opened, StorageError> {
    let (mut unclaimed, mut is_clean) = (Unclaimed::default(), true);
    let (mut opened, mut dead, mut failed) = (Vec::with_capacity(dirs.len()), Vec::new(), None);
    for logs in dirs {
        let cells = Mutex::new(HashMap::new());
        let cell = |name: &TopicPartition| {
            let of_topic = opening_config(&config.topic_defaults, image, name);
            let cell = Arc::new(ArcSwap::from_pointee(of_topic));
            lock(&cells).insert(name.clone(), cell.clone());
            cell
        };
        let absolute = env.files.absolute(logs.path());
        let path = absolute.as_deref().unwrap_or(logs.path()).display().to_string();
        let now_ms = env.clock.wall_ms();
        let threads = config.recovery_threads;
        let loading = Loading { last_broker_epoch, now_ms, threads, config: &cell };
        let found = match logs.load(&loading) {
            Ok(found) => found,
            Err(StorageError::Disk(error)) => {
                tracing::error!(dir = path, %error, "log directory offline");
                dead.push(path);
                failed = Some(error);
                continue;
            }
            Err(error) => return Err(error),
        };
        is_clean &= found.clean;
        let held = AtomicUsize::new(found.logs.len());
        let mut cells = lock(&cells);
        for LoadedLog { partition, topic_id, log, high_watermark, is_future } in found.logs {
            let log = OwnedLog { log, config: cells.remove(&partition).unwrap_or_default() };
            let dir = opened.len();
            let found = Found { dir, is_future, topic_id, log, high_watermark };
            unclaimed.found.entry(partition).or_default().push(found);
        }
        drop(cells);
        let deleted =
            found.deleted.into_iter().map(|log| (env.clock.now(), Deleted::Log(log))).collect();
        opened.push(Dir {
            logs,
            path,
            held,
            offline: AtomicBool::new(false),
            flusher: OnceLock::new(),
            deleted: Mutex::new(deleted),
        });
    }
    match failed {
        Some(error) if opened.is_empty() => Err(error.into()),
        _ => Ok(Opened { dirs: opened, unclaimed, is_clean, dead }),
    }
}

/// What a log is opened with, before the image is followed. Of an unknown topic holes in the offsets
/// may be compaction's.
fn opening_config(defaults: &TopicConfig, image: &Image, name: &TopicPartition) -> LogConfig {
    let own = image.topic_configs(&name.topic).map(|own| own.iter());
    let own = own.into_iter().flatten().map(|(key, value)| (&**key, &**value));
    let mut opening = super::publish::log_config(&defaults.with(own).unwrap_or(defaults.clone()));
    opening.compacted |= image.topic(&name.topic).is_none();
    opening
}

/// What clients are told of one directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirDescription {
    /// Absolute.
    pub path: String,
    /// `None`: offline.
    pub online: Option<OnlineDir>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnlineDir {
    pub space: Space,
    /// By partition.
    pub logs: Vec<LogDescription>,
}

/// One log in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogDescription {
    pub partition: TopicPartition,
    pub size_bytes: u64,
    /// Of a future log: behind the current one. Of a current one: behind the high watermark.
    pub offset_lag: Offset,
    pub is_future: bool,
}

impl Replicas {
    /// Sizes and lags of the logs of these partitions in all directories; `None`: of all.
    /// Looks at the file systems: blocks.
    pub fn describe_dirs(&self, only: Option<&HashSet<TopicPartition>>) -> Vec<DirDescription> {
        let mut logs: Vec<Vec<LogDescription>> = vec![Vec::new(); self.dirs.len()];
        for partition in self.partitions() {
            let name = partition.name();
            if only.is_some_and(|only| !only.contains(&name)) {
                continue;
            }
            partition.locked(|state, _| {
                let Some(log) = &state.log else { return };
                let end = log.end_offset();
                logs[partition.dir()].push(LogDescription {
                    partition: name.clone(),
                    size_bytes: log.size_bytes(),
                    offset_lag: (state.high_watermark - end).max(0),
                    is_future: false,
                });
                if let Some(future) = &state.future {
                    logs[future.dir].push(LogDescription {
                        partition: name,
                        size_bytes: future.log.size_bytes(),
                        offset_lag: end - future.log.end_offset(),
                        is_future: true,
                    });
                }
            });
        }
        let living = self.dirs.iter().enumerate().zip(logs).map(|((at, dir), mut logs)| {
            logs.sort_by(|a, b| a.partition.cmp(&b.partition));
            let path = dir.path.clone();
            if self.is_offline(at) {
                return DirDescription { path, online: None };
            }
            match self.env().files.space(dir.logs.path()) {
                Ok(space) => DirDescription { path, online: Some(OnlineDir { space, logs }) },
                Err(error) => {
                    self.fail_dir(at, &error.to_string());
                    DirDescription { path, online: None }
                }
            }
        });
        let dead = self.config.dead_dirs.iter().cloned();
        living.chain(dead.map(|path| DirDescription { path, online: None })).collect()
    }

    pub(super) fn is_offline(&self, dir: usize) -> bool {
        self.dirs.get(dir).is_none_or(|dir| dir.offline.load(Ordering::Acquire))
    }

    pub(super) fn has_offline_dirs(&self) -> bool {
        !self.config.dead_dirs.is_empty() || (0..self.dirs.len()).any(|dir| self.is_offline(dir))
    }

    fn dir_with_id(&self, id: Uuid) -> Option<usize> {
        self.dirs.iter().position(|dir| dir.logs.directory_id() == id)
    }

    /// Whether a replica without a log here may have one in a directory that does not work.
    pub(super) fn may_be_offline(&self, assigned: Uuid, is_start: bool) -> bool {
        let is_online = self.dir_with_id(assigned).is_some_and(|dir| !self.is_offline(dir));
        // Nobody was told yet where an unassigned one is, if it is not new.
        !is_online && self.has_offline_dirs() && (!assigned.is_nil() || is_start)
    }

    /// The directory asked for, else the one that the image assigned, else the working one with
    /// the fewest logs.
    pub(super) fn dir_for(&self, assigned: Uuid, asked: Option<usize>) -> usize {
        let works = |dir: &usize| !self.is_offline(*dir);
        if let Some(dir) = asked.or_else(|| self.dir_with_id(assigned)).filter(works) {
            return dir;
        }
        let held = |at: usize| self.dirs[at].held.load(Ordering::Relaxed);
        (0..self.dirs.len()).min_by_key(|at| (self.is_offline(*at), held(*at))).unwrap_or(NO_DIR)
    }

    /// Takes what is on disk of a replica, and finishes a move that was cut off between its two
    /// renames: the image was told before them which directory shall have the log.
    pub(super) fn claim(
        &self,
        name: &TopicPartition,
        topic: &Topic,
        assigned: Uuid,
        unclaimed: &mut Unclaimed,
    ) -> Claimed {
        let delete = |found: &Found| self.delete_log(name, found.dir, &found.log.log);
        let all = unclaimed.found.remove(name).unwrap_or_default();
        // Others are of a topic of this name that was deleted while this node was down.
        let is_this = |found: &Found| found.topic_id.is_none_or(|id| id.is_nearly(topic.id));
        let (mine, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_this);
        others.iter().for_each(delete);
        let (mut futures, mut logs): (Vec<_>, Vec<_>) =
            mine.into_iter().partition(|found| found.is_future);
        let is_assigned = |found: &Found| self.dir_with_id(assigned) == Some(found.dir);
        logs.sort_by_key(|found| (!is_assigned(found), Reverse(found.log.log.end_offset())));
        futures.sort_by_key(|found| !is_assigned(found));
        let (mut logs, mut futures) = (logs.into_iter(), futures.into_iter());
        let mut log = logs.next();
        match log.as_ref().is_some_and(is_assigned) {
            true => logs.as_slice().iter().for_each(delete),
            false => logs.for_each(|twice| {
                let dir = &self.dirs[twice.dir].path;
                tracing::warn!(partition = %name, dir, "a second log of a partition is left alone");
            }),
        }
        let mut future = futures.next();
        if log.is_none() && future.as_ref().is_some_and(is_assigned) {
            log = future.take().and_then(|found| self.promote_found(name, found));
        }
        // One that nobody needs; where the log itself is offline, it may still be of use.
        let keeps = log.is_some() || self.has_offline_dirs();
        futures.as_slice().iter().for_each(delete);
        if let Some(found) = future.take_if(|_| !keeps) {
            delete(&found);
        }
        let future = future.filter(|found| log.as_ref().is_some_and(|log| log.dir != found.dir));
        let log = log.map(|found| self.with_topic_id(topic, found));
        Claimed { log, future }
    }

    fn promote_found(&self, name: &TopicPartition, found: Found) -> Option<Found> {
        match self.dirs[found.dir].logs.promote(name, &found.log.log) {
            Ok(()) => {
                self.dirs_changed.store(true, Ordering::Release);
                Some(found)
            }
            Err(error) => {
                self.fail_dir(found.dir, &error.to_string());
                None
            }
        }
    }

    /// The log with the topic's id in its `partition.metadata`, should that be lost or damaged.
    fn with_topic_id(&self, topic: &Topic, mut found: Found) -> Found {
        if let Some(id) = found.topic_id.filter(|id| *id != topic.id) {
            let (dir, topic) = (&self.dirs[found.dir].path, &*topic.name);
            tracing::error!(dir, topic, %id, "a topic id is damaged in partition.metadata");
        }
        if found.topic_id != Some(topic.id)
            && let Err(error) = self.dirs[found.dir].logs.set_topic_id(&mut found.log.log, topic.id)
        {
            self.not_done(found.dir, &error);
        }
        found
    }
}

#[cfg(test)]
#[path = "directories_tests.rs"]
mod tests;
