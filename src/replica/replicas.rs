//! All replicas of this node, and what they share.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use arc_swap::ArcSwap;
use prometheus::IntGauge;
use tokio::sync::Notify;
use uuid::Uuid;

use super::flusher::{Flusher, OnFailure, Until};
use super::housekeeping::Deleted;
use super::partition::Partition;
use super::session::Sessions;
use super::topics::{Topic, TopicRef};
use crate::common::{BrokerId, Offset, TopicId, TopicName, TopicPartition};
use crate::config::TopicConfig;
use crate::env::{Env, Instant};
use crate::metadata::Image;
use crate::storage::{DiskError, LoadedLog, Loading, Log, LogConfig, LogDir, StorageError};
use crate::telemetry::Metrics;

/// See [`ReplicasConfig::on_dir_failed`].
pub type OnDirFailed = Box<dyn Fn(&Path, bool) + Send + Sync>;

/// What a node's replicas are made with.
pub struct ReplicasConfig {
    pub node: BrokerId,
    /// A topic without configs of its own has these; see [`Replicas::set_topic_defaults`].
    pub topic_defaults: TopicConfig,
    /// `fetch.max.bytes`
    pub fetch_bytes_max: i32,
    /// `max.incremental.fetch.session.cache.slots`
    pub session_slots: usize,
    /// Called when a log directory has failed; the second value: it was the last one.
    pub on_dir_failed: OnDirFailed,
}

/// All replicas of a node.
pub struct Replicas {
    pub(super) config: ReplicasConfig,
    env: Env,
    metrics: Arc<Metrics>,
    pub(super) defaults: ArcSwap<TopicConfig>,
    pub(super) dirs: Vec<Dir>,
    pub(super) topics: ArcSwap<Topics>,
    /// One change of `topics` at a time.
    pub(super) publishing: Mutex<Unclaimed>,
    /// Partition directories were made or renamed since they were last synced.
    pub(super) dirs_changed: AtomicBool,
    /// Something was put into a directory's `deleted`.
    pub(super) deletions: Notify,
    sessions: Sessions,
    pub(super) waiting: Waiting,
    own: Weak<Self>,
    /// Every directory was closed in order by its last user, this broker.
    is_clean: bool,
}

/// How many requests wait now.
pub(super) struct Waiting {
    pub produce: IntGauge,
    pub fetch: IntGauge,
}

/// Counts one waiting request until dropped.
pub(super) struct Counted(IntGauge);

impl Counted {
    pub fn one(gauge: &IntGauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Logs found on disk that no topic of the image has claimed yet.
pub(super) type Unclaimed = BTreeMap<TopicPartition, Found>;

pub(super) struct Found {
    pub dir: usize,
    pub topic_id: Option<TopicId>,
    pub log: OwnedLog,
    pub high_watermark: Offset,
}

/// A log with the cell that its configs are changed through.
pub(super) struct OwnedLog {
    pub log: Log,
    pub config: Arc<ArcSwap<LogConfig>>,
}

/// A log directory.
pub(super) struct Dir {
    pub logs: LogDir,
    pub offline: AtomicBool,
    pub flusher: OnceLock<Flusher>,
    /// What is deleted and has files that are to go, and when.
    pub deleted: Mutex<Vec<(Instant, Deleted)>>,
}

type ByKey<K> =
    imbl::GenericHashMap<K, Arc<Topic>, ahash::RandomState, imbl::shared_ptr::DefaultSharedPtr>;

/// The topics of the image, in persistent maps.
#[derive(Clone)]
pub(super) struct Topics {
    pub by_name: ByKey<TopicName>,
    pub by_id: ByKey<TopicId>,
}

impl Topics {
    fn new(env: &Env) -> Self {
        let seed = || env.random.next_u64();
        let hasher = ahash::RandomState::with_seeds(seed(), seed(), seed(), seed());
        Self {
            by_name: imbl::GenericHashMap::with_hasher(hasher.clone()),
            by_id: imbl::GenericHashMap::with_hasher(hasher),
        }
    }
}

impl Replicas {
    /// Opens all logs in `dirs`; nothing is served before the first [`Replicas::publish`].
    /// - `last_broker_epoch`: what this broker registered with last, if the image says.
    /// - `image`: what the topics were when the node stopped.
    ///
    /// # Errors
    /// [`StorageError`]: a log that cannot be opened stops the start.
    pub fn open(
        config: ReplicasConfig,
        env: Env,
        metrics: Arc<Metrics>,
        dirs: Vec<LogDir>,
        last_broker_epoch: Option<i64>,
        image: &Image,
    ) -> Result<Arc<Self>, StorageError> {
        let mut unclaimed = Unclaimed::new();
        let mut is_clean = true;
        let mut opened = Vec::with_capacity(dirs.len());
        for (at, logs) in dirs.into_iter().enumerate() {
            let cells = Mutex::new(HashMap::new());
            let cell = |name: &TopicPartition| {
                let of_topic = opening_config(&config.topic_defaults, image, name);
                let cell = Arc::new(ArcSwap::from_pointee(of_topic));
                lock(&cells).insert(name.clone(), cell.clone());
                cell
            };
            let now_ms = env.clock.wall_ms();
            let found = logs.load(&Loading { last_broker_epoch, now_ms, config: &cell })?;
            is_clean &= found.clean;
            let mut cells = lock(&cells);
            for LoadedLog { partition, topic_id, log, high_watermark } in found.logs {
                let config = cells.remove(&partition).unwrap_or_default();
                let log = OwnedLog { log, config };
                unclaimed.insert(partition, Found { dir: at, topic_id, log, high_watermark });
            }
            drop(cells);
            let now = env.clock.now();
            let deleted = found.deleted.into_iter().map(|log| (now, Deleted::Log(log))).collect();
            opened.push(Dir {
                logs,
                offline: AtomicBool::new(false),
                flusher: OnceLock::new(),
                deleted: Mutex::new(deleted),
            });
        }
        let waits = |kind| metrics.delayed.with_label_values(&[kind]);
        let waiting = Waiting { produce: waits("Produce"), fetch: waits("Fetch") };
        let scraped = metrics.clone();
        let replicas = Arc::new_cyclic(|own| Self {
            waiting,
            defaults: ArcSwap::from_pointee(config.topic_defaults.clone()),
            sessions: Sessions::new(
                config.session_slots,
                env.random.clone(),
                metrics.fetch_sessions_evicted.clone(),
            ),
            topics: ArcSwap::from_pointee(Topics::new(&env)),
            dirs: opened,
            publishing: Mutex::new(unclaimed),
            dirs_changed: AtomicBool::new(false),
            deletions: Notify::new(),
            own: own.clone(),
            is_clean,
            config,
            env,
            metrics,
        });
        let own = replicas.own.clone();
        scraped.on_scrape(move |_| {
            if let Some(replicas) = own.upgrade() {
                replicas.measure();
            }
        });
        Ok(replicas)
    }

    pub(super) fn env(&self) -> &Env {
        &self.env
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub(super) fn fetch_bytes_max(&self) -> i32 {
        self.config.fetch_bytes_max
    }

    /// Whether the last stop was clean in all directories.
    pub fn was_clean(&self) -> bool {
        self.is_clean
    }

    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Ids of the directories that work.
    pub fn online_dirs(&self) -> Vec<Uuid> {
        let online = self.dirs.iter().filter(|dir| !dir.offline.load(Ordering::Acquire));
        online.map(|dir| dir.logs.directory_id()).collect()
    }

    pub fn topic(&self, name: &str) -> Option<Arc<Topic>> {
        self.topics.load().by_name.get(name).cloned()
    }

    pub fn topic_by_id(&self, id: TopicId) -> Option<Arc<Topic>> {
        self.topics.load().by_id.get(&id).cloned()
    }

    /// A topic as a request names it, known or not.
    pub fn named(&self, name: &str) -> TopicRef {
        self.topic(name).map_or_else(|| TopicRef::Name(name.into()), TopicRef::Known)
    }

    /// See [`Replicas::named`].
    pub fn with_id(&self, id: TopicId) -> TopicRef {
        self.topic_by_id(id).map_or(TopicRef::Id(id), TopicRef::Known)
    }

    /// Looks again for a topic that was not there, or has gone since.
    pub(super) fn resolve(&self, topic: &mut TopicRef, by_id: bool) {
        let found = match topic {
            // By id a topic that is gone does not come back.
            TopicRef::Known(known) if by_id || !known.is_gone() => return,
            TopicRef::Known(gone) => self.named(&gone.name),
            TopicRef::Name(name) => self.topic(name).map_or(topic.clone(), TopicRef::Known),
            TopicRef::Id(id) => self.with_id(*id),
        };
        *topic = found;
    }

    /// The replica of a partition here.
    pub fn partition(&self, topic: &str, index: i32) -> Option<Arc<Partition>> {
        self.topic(topic)?.partition(index).ok()
    }

    /// All replicas here, in no order.
    pub fn partitions(&self) -> Vec<Arc<Partition>> {
        self.topics.load().by_id.values().flat_map(|topic| topic.here()).collect()
    }

    pub(super) fn flush_soon(&self, partition: &Arc<Partition>, until: Until) {
        let dir = &self.dirs[partition.dir];
        let flusher = match dir.flusher.get() {
            Some(flusher) => flusher,
            None => {
                let flusher = Flusher::start(&self.env, self.on_failure());
                match flusher {
                    Ok(flusher) => dir.flusher.get_or_init(|| flusher),
                    // Without a thread nothing is ever acknowledged: as bad as a broken disk.
                    Err(error) => return self.fail_dir(partition.dir, &error.to_string()),
                }
            }
        };
        flusher.flush(partition, until);
    }

    pub(super) fn on_failure(&self) -> OnFailure {
        let own = self.own.clone();
        Box::new(move |partition: &Arc<Partition>, error: &DiskError| {
            if let Some(replicas) = own.upgrade() {
                replicas.fail_dir(partition.dir, &error.to_string());
            }
        })
    }

    /// Takes the partition's log directory offline (the JBOD rule): its replicas answer that
    /// their storage failed, the others go on.
    pub(super) fn directory_failed(&self, partition: &Partition, error: &str) {
        self.fail_dir(partition.dir, error);
    }

    /// What could not be done in a directory beside an append or a read. A full disk is told and
    /// tried again later; anything else takes the directory offline.
    pub(super) fn not_done(&self, dir: usize, error: &DiskError) {
        match error.is_full() {
            true => {
                let dir = self.dirs[dir].logs.path().display();
                tracing::warn!(%dir, %error, "put off, the disk is full");
            }
            false => self.fail_dir(dir, &error.to_string()),
        }
    }

    pub(super) fn fail_dir(&self, dir: usize, error: &str) {
        if self.dirs[dir].offline.swap(true, Ordering::AcqRel) {
            return;
        }
        let path = self.dirs[dir].logs.path();
        tracing::error!(dir = %path.display(), error, "log directory offline");
        self.metrics.log_dirs_offline.inc();
        for partition in self.partitions() {
            if partition.dir == dir {
                partition.go_offline();
            }
        }
        // A change of the image on its way must not bring one back: it looks at `offline` too.
        let is_last = self.dirs.iter().all(|dir| dir.offline.load(Ordering::Acquire));
        (self.config.on_dir_failed)(path, is_last);
    }

    pub(super) fn publishing(&self) -> MutexGuard<'_, Unclaimed> {
        lock(&self.publishing)
    }

    /// A clean stop: all logs are made durable and marked whole. Nothing may be appended after.
    ///
    /// # Errors
    /// [`DiskError`]; the directory is then not marked, and the next start scans it.
    pub fn close(&self, broker_epoch: i64) -> Result<(), DiskError> {
        let partitions = self.partitions();
        for (at, dir) in self.dirs.iter().enumerate() {
            if dir.offline.load(Ordering::Acquire) {
                continue;
            }
            let (mut plans, mut rows) = (Vec::new(), Vec::new());
            for partition in partitions.iter().filter(|partition| partition.dir == at) {
                if let Some((mut log, high_watermark)) = partition.close() {
                    let plan = log.close()?;
                    // The rows are written once all plans have run.
                    log.flushed(&plan);
                    plans.push(plan);
                    rows.push(log.checkpoint_row(partition.name(), high_watermark));
                }
            }
            // What no topic claimed stays as it is, checkpoints included.
            for (name, found) in self.publishing().iter_mut().filter(|(_, found)| found.dir == at) {
                plans.push(found.log.log.close()?);
                rows.push(found.log.log.checkpoint_row(name.clone(), found.high_watermark));
            }
            dir.logs.close_clean(&plans, &rows, broker_epoch)?;
        }
        Ok(())
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

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that is kept under these locks can be half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
