//! All replicas of this node, and what they share.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use arc_swap::ArcSwap;
use prometheus::IntGauge;
use tokio::sync::Notify;
use uuid::Uuid;

use super::directories::{self, Opened, Unclaimed};
use super::flusher::{Flusher, OnFailure, Until};
use super::housekeeping::Deleted;
use super::partition::{FutureLog, Left, Partition};
use super::session::Sessions;
use super::topics::{Topic, TopicRef};
use crate::common::{BrokerId, TopicId, TopicName, TopicPartition};
use crate::config::TopicConfig;
use crate::env::{Env, Instant};
use crate::metadata::Image;
use crate::storage::{DiskError, Log, LogConfig, LogDir, StorageError};
use crate::telemetry::Metrics;

/// See [`ReplicasConfig::on_dir_failed`].
pub type OnDirFailed = Box<dyn Fn(&Path, bool) + Send + Sync>;

/// What a node's replicas are made with.
pub struct ReplicasConfig {
    pub node: BrokerId,
    /// A topic without configs of its own has these; see [`Replicas::set_topic_defaults`].
    pub topic_defaults: TopicConfig,
    /// `num.recovery.threads.per.data.dir`; 1 where there are no threads.
    pub recovery_threads: usize,
    /// `fetch.max.bytes`
    pub fetch_bytes_max: i32,
    /// `max.incremental.fetch.session.cache.slots`
    pub session_slots: usize,
    /// Log directories that could not be opened, as absolute paths.
    pub dead_dirs: Vec<String>,
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
    /// There may be something to do for [`Replicas::keep_directories`].
    pub(super) moves_due: Notify,
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

/// A log with the cell that its configs are changed through.
pub(super) struct OwnedLog {
    pub log: Log,
    pub config: Arc<ArcSwap<LogConfig>>,
}

/// A log directory.
pub(super) struct Dir {
    pub logs: LogDir,
    /// As an absolute path, which is how clients name it.
    pub path: String,
    /// Logs in it, future ones included.
    pub held: AtomicUsize,
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
        let Opened { dirs, unclaimed, is_clean, dead } =
            directories::open(&env, (&config, image), dirs, last_broker_epoch)?;
        let mut config = config;
        config.dead_dirs.extend(dead);
        let is_clean = is_clean && config.dead_dirs.is_empty();
        metrics.log_dirs_offline.set(config.dead_dirs.len() as i64);
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
            dirs,
            moves_due: Notify::new(),
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
        self.dirs_that(|is_offline| !is_offline)
    }

    /// Ids of the directories whose being offline is as wanted.
    pub(super) fn dirs_that(&self, wanted: impl Fn(bool) -> bool) -> Vec<Uuid> {
        let chosen = self.dirs.iter().enumerate().filter(|(at, _)| wanted(self.is_offline(*at)));
        chosen.map(|(_, dir)| dir.logs.directory_id()).collect()
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
        let at = partition.dir();
        let Some(dir) = self.dirs.get(at) else { return };
        let flusher = match dir.flusher.get() {
            Some(flusher) => flusher,
            None => {
                let flusher = Flusher::start(&self.env, self.on_failure());
                match flusher {
                    Ok(flusher) => dir.flusher.get_or_init(|| flusher),
                    // Without a thread nothing is ever acknowledged: as bad as a broken disk.
                    Err(error) => return self.fail_dir(at, &error.to_string()),
                }
            }
        };
        flusher.flush(partition, until);
    }

    /// What is left to do after an append, without the lock: the directory that failed goes
    /// offline, else what is due is flushed.
    pub(super) fn after_append(
        &self,
        partition: &Arc<Partition>,
        flush: Option<Until>,
        failure: Option<String>,
    ) {
        if let Some(error) = failure {
            self.directory_failed(partition, &error);
        } else if let Some(until) = flush {
            self.flush_soon(partition, until);
        }
    }

    pub(super) fn on_failure(&self) -> OnFailure {
        let own = self.own.clone();
        Box::new(move |partition: &Arc<Partition>, error: &DiskError| {
            if let Some(replicas) = own.upgrade() {
                replicas.fail_dir(partition.dir(), &error.to_string());
            }
        })
    }

    /// Takes the partition's log directory offline (the JBOD rule): its replicas answer that
    /// their storage failed, the others go on.
    pub(super) fn directory_failed(&self, partition: &Partition, error: &str) {
        self.fail_dir(partition.dir(), error);
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
        let Some(failed) = self.dirs.get(dir) else { return };
        if failed.offline.swap(true, Ordering::AcqRel) {
            return;
        }
        let path = failed.logs.path();
        tracing::error!(dir = %path.display(), error, "log directory offline");
        failed.logs.note_failure();
        self.metrics.log_dirs_offline.inc();
        self.partitions().iter().for_each(|partition| partition.lost_dir(dir));
        self.moves_due.notify_one();
        // A change of the image on its way must not bring one back: it looks at `offline` too.
        let is_last = (0..self.dirs.len()).all(|dir| self.is_offline(dir));
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
        let mut closed: Vec<_> = self.dirs.iter().map(|_| (Vec::new(), Vec::new())).collect();
        let mut close = |at: usize, log: &mut Log, name: TopicPartition, high_watermark| {
            if self.is_offline(at) {
                return Ok(());
            }
            let (plans, rows) = &mut closed[at];
            let plan = log.close()?;
            // The rows are written once all plans have run.
            log.flushed(&plan);
            plans.push(plan);
            rows.push(log.checkpoint_row(name, high_watermark));
            Ok::<(), DiskError>(())
        };
        for partition in partitions {
            let Left { dir, log, high_watermark, future } = partition.leave(false);
            if let Some(mut log) = log {
                close(dir, &mut log, partition.name(), high_watermark)?;
            }
            if let Some(FutureLog { dir, mut log, .. }) = future {
                close(dir, &mut log, partition.name(), high_watermark)?;
            }
        }
        // What no topic claimed stays as it is, checkpoints included.
        for (name, all) in &mut self.publishing().found {
            for found in all {
                close(found.dir, &mut found.log.log, name.clone(), found.high_watermark)?;
            }
        }
        for (at, (dir, (plans, rows))) in self.dirs.iter().zip(&closed).enumerate() {
            if !self.is_offline(at) {
                dir.logs.close_clean(plans, rows, broker_epoch)?;
            }
        }
        Ok(())
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that is kept under these locks can be half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
