//! The log cleaner's workers: which log is filthiest, up to where each is compacted (kept in
//! `cleaner-offset-checkpoint`), which cannot be. A pass itself is in `cleaning.rs`; it takes the
//! partition's lock to see the segments and to swap them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use tokio::sync::watch;

use super::flusher::Until;
use super::partition::{Partition, last_stable};
use super::replicas::{Replicas, lock};
use crate::common::{Offset, TopicId, TopicPartition};
use crate::config::CleanerKeys;
use crate::env::Instant;
use crate::storage::{CleanBounds, CleanStats, CleanView, Cleanable, DiskError};
use crate::telemetry::RateLimit;

/// One line per interval for what each pass could say again.
const WARN_INTERVAL: Duration = Duration::from_secs(60);

/// The cleaner of a node: as many workers as `log.cleaner.threads`, each on one log at a time.
pub struct Cleaner {
    pub(super) replicas: Arc<Replicas>,
    pub(super) keys: watch::Sender<CleanerKeys>,
    state: Mutex<State>,
    /// When what was read and written so far has been waited for.
    pub(super) paid_until: Mutex<Instant>,
    pub(super) warnings: RateLimit,
}

#[derive(Default)]
struct State {
    /// Per log directory: up to where logs are compacted.
    clean: Vec<BTreeMap<TopicPartition, Compacted>>,
    busy: BTreeSet<TopicPartition>,
    uncleanable: BTreeMap<TopicPartition, TopicId>,
    workers: BTreeMap<usize, Worker>,
    last_look: Instant,
    max_dirty_ratio: f64,
}

struct Compacted {
    /// `None`: as read from the checkpoint, which does not say it.
    topic_id: Option<TopicId>,
    until: Offset,
}

#[derive(Default)]
struct Worker {
    runs: bool,
    /// What it works on.
    on: Option<Arc<Partition>>,
    stats: CleanStats,
    took: Duration,
    overdue_ms: i64,
}

/// A log to be cleaned, and by what.
pub(super) struct Pick {
    pub partition: Arc<Partition>,
    pub cleanable: Cleanable,
    pub overdue_ms: i64,
}

impl Cleaner {
    /// Starts the workers, unless `log.cleaner.enable` says no; all they do is in the background.
    pub fn start(replicas: Arc<Replicas>, keys: CleanerKeys) -> Arc<Self> {
        let cleaner = Self::by_hand(replicas, keys);
        if cleaner.keys.borrow().enable {
            let tasks = &cleaner.replicas.env().tasks;
            tasks.spawn_data(cleaner.clone().keep_workers());
        }
        cleaner
    }

    /// Without workers: each pass is called.
    pub(super) fn by_hand(replicas: Arc<Replicas>, keys: CleanerKeys) -> Arc<Self> {
        let read = |dir: &super::replicas::Dir| {
            let known = dir.logs.read_clean_offsets().unwrap_or_else(|error| {
                tracing::warn!(%error, "all compacted logs are looked through again");
                BTreeMap::new()
            });
            let row = |(name, until)| (name, Compacted { topic_id: None, until });
            known.into_iter().map(row).collect()
        };
        let state = State {
            clean: replicas.dirs.iter().map(read).collect(),
            last_look: replicas.env().clock.now(),
            ..State::default()
        };
        let cleaner = Arc::new(Self {
            keys: watch::Sender::new(keys),
            state: Mutex::new(state),
            paid_until: Mutex::default(),
            warnings: RateLimit::per(WARN_INTERVAL),
            replicas,
        });
        let own: Weak<Self> = Arc::downgrade(&cleaner);
        cleaner.replicas.metrics().on_scrape(move |_| {
            if let Some(cleaner) = own.upgrade() {
                cleaner.measure();
            }
        });
        cleaner
    }

    /// The broker's configuration has changed.
    pub fn configure(&self, keys: CleanerKeys) {
        self.keys.send_if_modified(|old| {
            let changed = *old != keys;
            *old = keys;
            changed
        });
    }

    async fn keep_workers(self: Arc<Self>) {
        let mut keys = self.keys.subscribe();
        loop {
            let wanted = usize::try_from(keys.borrow_and_update().threads).unwrap_or(0);
            for number in 0..wanted {
                let mut state = self.state();
                let worker = state.workers.entry(number).or_default();
                if !std::mem::replace(&mut worker.runs, true) {
                    self.replicas.env().tasks.spawn_data(self.clone().work(number));
                }
            }
            if keys.changed().await.is_err() {
                return;
            }
        }
    }

    async fn work(self: Arc<Self>, number: usize) {
        let (clock, tasks) = (self.replicas.env().clock.clone(), self.replicas.env().tasks.clone());
        let mut keys = self.keys.subscribe();
        let mut cleaned = false;
        loop {
            let (wanted, pause_ms) = {
                let keys = keys.borrow_and_update();
                (keys.threads, keys.backoff_ms)
            };
            if number >= usize::try_from(wanted).unwrap_or(0) {
                self.state().workers.remove(&number);
                return;
            }
            if !cleaned {
                let pause = Duration::from_millis(u64::try_from(pause_ms).unwrap_or(0).max(1));
                // A change of the configuration ends the pause.
                if clock.until(clock.deadline_in(pause), keys.changed()).await.is_some() {
                    continue;
                }
            }
            let cleaner = self.clone();
            let done = tasks.spawn_blocking(move || cleaner.clean_filthiest(number)).await;
            cleaned = done.unwrap_or_else(|error| {
                self.failed(number, &error.to_string());
                false
            });
        }
    }

    /// One round of a worker; whether a log was cleaned.
    pub(super) fn clean_filthiest(&self, number: usize) -> bool {
        self.forget_gone();
        let Some(pick) = self.pick(number) else { return false };
        let began = self.replicas.env().clock.now();
        let stats = self.clean_log(&pick);
        let took = self.replicas.env().clock.now() - began;
        let mut state = self.state();
        state.busy.remove(&pick.partition.name());
        let worker = state.workers.entry(number).or_default();
        worker.on = None;
        let Some(stats) = stats else { return false };
        (worker.stats, worker.took, worker.overdue_ms) = (stats, took, pick.overdue_ms);
        true
    }

    /// The worker broke down in the middle of a pass: the partition is given up, the rest goes on.
    fn failed(&self, number: usize, error: &str) {
        let on = self.state().workers.get_mut(&number).and_then(|worker| worker.on.take());
        if let Some(partition) = on {
            self.state().busy.remove(&partition.name());
            self.mark_uncleanable(&partition, error);
        }
    }

    /// The log with the largest part that is not compacted yet, of those where that is over the
    /// topic's ratio, or `max.compaction.lag.ms` is over.
    fn pick(&self, number: usize) -> Option<Pick> {
        let now_ms = self.replicas.env().clock.wall_ms();
        let (mut best, mut max_dirty, mut overdue_ms) = (None::<Pick>, 0_f64, 0);
        for partition in self.replicas.partitions() {
            let config = partition.config.load();
            let offline = self.replicas.is_offline(partition.dir());
            if !config.cleanup_policy.compact || offline || !self.is_free(&partition) {
                continue;
            }
            let Some(cleanable) = self.cleanable(&partition, now_ms) else { continue };
            overdue_ms = overdue_ms.max(cleanable.overdue_ms);
            let ratio = cleanable.dirty_ratio();
            max_dirty = max_dirty.max(ratio);
            let due = cleanable.overdue_ms > 0 && cleanable.cleanable_bytes > 0;
            let filthier = best.as_ref().is_none_or(|b| ratio > b.cleanable.dirty_ratio());
            if (due || ratio > config.min_cleanable_dirty_ratio) && filthier {
                best = Some(Pick { partition, cleanable, overdue_ms: 0 });
            }
        }
        let mut state = self.state();
        state.last_look = self.replicas.env().clock.now();
        state.max_dirty_ratio = max_dirty;
        let pick = Pick { overdue_ms, ..best? };
        if !state.busy.insert(pick.partition.name()) {
            return None;
        }
        state.workers.entry(number).or_default().on = Some(pick.partition.clone());
        Some(pick)
    }

    fn is_free(&self, partition: &Partition) -> bool {
        let (state, name) = (self.state(), partition.name());
        let given_up = state.uncleanable.get(&name).is_some_and(|id| *id == partition.topic_id);
        !given_up && !state.busy.contains(&name)
    }

    /// What there is to clean; `None`: nothing can be said now, or the log is given up.
    fn cleanable(&self, partition: &Arc<Partition>, now_ms: i64) -> Option<Cleanable> {
        let (view, measured) = self.measured(partition, now_ms)?;
        match measured {
            Ok(cleanable) => {
                if cleanable.awaits_flush {
                    self.replicas.flush_soon(partition, Until::Rolled);
                }
                Some(cleanable)
            }
            Err(error) => {
                self.measure_failed(partition, &view, error);
                None
            }
        }
    }

    /// The segments as they are now, and what of them there is to clean; `None`: there is no log,
    /// or it is on its way to another directory.
    fn measured(
        &self,
        partition: &Partition,
        now_ms: i64,
    ) -> Option<(CleanView, Result<Cleanable, DiskError>)> {
        let (view, last_stable_offset) = partition.locked(|state, _| {
            let high_watermark = state.high_watermark;
            let log = state.log.as_mut().filter(|_| state.future.is_none())?;
            Some((log.clean_view(), last_stable(log, high_watermark)))
        })?;
        let measured = view.measure(&self.bounds(partition, last_stable_offset, now_ms));
        Some((view, measured))
    }

    fn bounds(
        &self,
        partition: &Partition,
        last_stable_offset: Offset,
        now_ms: i64,
    ) -> CleanBounds {
        let config = partition.config.load();
        let state = self.state();
        let known = state.clean[partition.dir()].get(&partition.name());
        // A topic of this name that was deleted says nothing of this one.
        let known = known.filter(|c| c.topic_id.is_none_or(|id| id == partition.topic_id));
        CleanBounds {
            clean_until: known.map(|compacted| compacted.until),
            last_stable_offset,
            min_lag_ms: config.min_compaction_lag_ms,
            max_lag_ms: config.max_compaction_lag_ms,
            now_ms,
        }
    }

    fn measure_failed(&self, partition: &Arc<Partition>, view: &CleanView, error: DiskError) {
        let current =
            partition.locked(|state, _| state.log.as_ref().is_some_and(|log| view.is_current(log)));
        // Else retention took a segment away meanwhile.
        if current {
            self.disk_error(partition, error);
        }
    }

    /// No pass is tried on the partition any more, until it is deleted or the node starts anew.
    pub(super) fn mark_uncleanable(&self, partition: &Partition, error: &str) {
        let (topic, index) = (&*partition.topic, partition.index);
        tracing::error!(topic, index, error, "log cannot be compacted, it stays as it is");
        self.state().uncleanable.insert(partition.name(), partition.topic_id);
    }

    /// Notes up to where the log is compacted, on disk too.
    pub(super) fn compacted(&self, partition: &Partition, until: Offset) {
        let dir = partition.dir();
        let topic_id = Some(partition.topic_id);
        let rows: BTreeMap<TopicPartition, Offset> = {
            let mut state = self.state();
            state.clean[dir].insert(partition.name(), Compacted { topic_id, until });
            state.clean[dir].iter().map(|(name, c)| (name.clone(), c.until)).collect()
        };
        if let Err(error) = self.replicas.dirs[dir].logs.write_clean_offsets(&rows) {
            self.disk_error(partition, error);
        }
    }

    /// Partitions that are deleted have no state.
    fn forget_gone(&self) {
        let mut state = self.state();
        let here = |name: &TopicPartition| {
            let partition = self.replicas.partition(&name.topic, name.partition);
            partition.map(|partition| (partition.dir(), partition.topic_id))
        };
        state.uncleanable.retain(|name, id| here(name).is_some_and(|(_, now)| now == *id));
        for (dir, logs) in state.clean.iter_mut().enumerate() {
            logs.retain(|name, compacted| match here(name) {
                Some((at, id)) => at == dir && *compacted.topic_id.get_or_insert(id) == id,
                // The image may not be read yet.
                None => compacted.topic_id.is_none(),
            });
        }
    }

    fn measure(&self) {
        let (metrics, env) = (self.replicas.metrics(), self.replicas.env());
        let uncleanable: Vec<TopicPartition> = {
            let state = self.state();
            let workers = || state.workers.values();
            let most = |of: &dyn Fn(&Worker) -> f64| workers().map(of).fold(0.0, f64::max) as i64;
            metrics.cleaner_buffer_percent.set(most(&|w| w.stats.map_utilization * 100.0));
            metrics.cleaner_max_secs.set(most(&|w| w.took.as_secs_f64()));
            metrics.cleaner_max_delay_secs.set(most(&|w| w.overdue_ms as f64 / 1_000.0));
            let written: u64 = workers().map(|worker| worker.stats.written_bytes).sum();
            let read: u64 = workers().map(|worker| worker.stats.read_bytes).sum();
            metrics.cleaner_recopy_percent.set((written * 100 / read.max(1)) as i64);
            metrics.cleaner_max_dirty_percent.set((state.max_dirty_ratio * 100.0) as i64);
            metrics
                .cleaner_since_run_ms
                .set((env.clock.now() - state.last_look).as_millis() as i64);
            let keys = self.keys.borrow();
            let wanted = if keys.enable { i64::from(keys.threads) } else { 0 };
            let running = workers().filter(|worker| worker.runs).count() as i64;
            metrics.cleaner_dead_threads.set((wanted - running).max(0));
            state.uncleanable.keys().cloned().collect()
        };
        let now_ms = env.clock.wall_ms();
        for (at, dir) in self.replicas.dirs.iter().enumerate() {
            let (mut count, mut bytes) = (0, 0);
            for name in &uncleanable {
                let partition = self.replicas.partition(&name.topic, name.partition);
                let Some(partition) = partition.filter(|p| p.dir() == at) else { continue };
                count += 1;
                bytes += self.waiting_bytes(&partition, now_ms);
            }
            let label = dir.logs.path().display().to_string();
            metrics.uncleanable_partitions.with_label_values(&[&label]).set(count);
            metrics.uncleanable_bytes.with_label_values(&[&label]).set(bytes);
        }
    }

    fn waiting_bytes(&self, partition: &Partition, now_ms: i64) -> i64 {
        let measured = self.measured(partition, now_ms);
        let cleanable = measured.and_then(|(_, measured)| measured.ok());
        cleanable.map_or(0, |cleanable| cleanable.cleanable_bytes as i64)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

#[cfg(test)]
#[path = "cleaner_tests.rs"]
mod tests;
