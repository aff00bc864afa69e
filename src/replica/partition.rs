//! One replica on this node: its log, who leads, how far the in-sync replicas have come. All of
//! it under one lock, which is never held across an await and never together with another
//! partition's.
//! Who may move the high watermark: [`State::advance`] alone; it is the least end of the in-sync
//! replicas, this node's own end counting only as far as it is flushed where `flush.messages=1`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwap;
use tokio::sync::watch;
use uuid::Uuid;

use super::error::{NotNow, ReplicaError};
use super::replicas::OwnedLog;
use super::waiters::{Ends, Waiters, Wakes, Wants};
use crate::common::{BrokerId, LeaderEpoch, NO_OFFSET, Offset, TopicId, TopicName, TopicPartition};
use crate::config::TopicConfig;
use crate::machine::Leadership;
use crate::metadata;
use crate::storage::{Log, LogConfig, StorageError};

/// Who leads a partition, as the image says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Role {
    pub leader: Option<BrokerId>,
    /// This node is the leader.
    pub leads: bool,
    pub epoch: LeaderEpoch,
    pub partition_epoch: i32,
    pub isr: Vec<BrokerId>,
    pub replicas: usize,
    /// Id of the log directory that the image knows this replica in; nil while it knows none.
    pub directory: Uuid,
}

impl Role {
    pub fn of(partition: &metadata::Partition, node: BrokerId) -> Self {
        let at = partition.replicas.iter().position(|replica| *replica == node);
        let directory = at.and_then(|at| partition.directories.get(at)).copied();
        Self {
            directory: directory.unwrap_or_default(),
            leader: partition.leader,
            leads: partition.leader == Some(node),
            epoch: partition.leader_epoch,
            partition_epoch: partition.partition_epoch,
            isr: partition.isr.clone(),
            replicas: partition.replicas.len(),
        }
    }
}

/// A replica of a partition on this node.
pub struct Partition {
    pub topic: TopicName,
    pub topic_id: TopicId,
    pub index: i32,
    node: BrokerId,
    /// Which of the node's log directories holds it; changes under the lock.
    dir: AtomicUsize,
    pub(super) config: Arc<ArcSwap<TopicConfig>>,
    pub(super) log_config: Arc<ArcSwap<LogConfig>>,
    state: Mutex<State>,
    journal: OnceLock<Followed>,
}

/// Told to the runtime of a machine whose journal this partition is.
pub(super) struct Followed {
    pub leadership: watch::Sender<Leadership>,
    pub committed: watch::Sender<Offset>,
}

/// What the lock guards.
pub(super) struct State {
    /// `None`: its directory is offline, or it was deleted.
    pub log: Option<Log>,
    /// Filled by a move to another log directory; takes the log's place at its end.
    pub future: Option<FutureLog>,
    pub role: Role,
    /// Where the current leader began to write.
    pub epoch_start: Offset,
    pub high_watermark: Offset,
    /// Ends of the followers, as far as known.
    pub followers: Vec<(BrokerId, Offset)>,
    pub waiters: Waiters,
    /// The topic is deleted, or the replica was moved away.
    pub gone: bool,
    /// Records appended since the last flush was asked for.
    pub unflushed_records: i64,
    /// A segment was sealed and not yet flushed.
    pub rolled: bool,
    /// The log could not be made so far.
    pub log_unmade: bool,
    /// The log's directory failed while it was open.
    pub is_lost: bool,
}

/// A copy of the log that is being made.
pub(super) struct FutureLog {
    pub dir: usize,
    pub log: Log,
    /// It was as long as the log: the directory may be told to the controller.
    pub caught_up: bool,
}

/// What a partition gives back at its end.
pub(super) struct Left {
    pub dir: usize,
    pub log: Option<Log>,
    pub high_watermark: Offset,
    pub future: Option<FutureLog>,
}

/// The ends of a partition, for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offsets {
    pub log_start: Offset,
    pub high_watermark: Offset,
    pub last_stable: Offset,
    pub log_end: Offset,
}

impl Partition {
    /// - `log`: `None` where its directory is offline.
    /// - `high_watermark`: as last written down; an older or newer one than the log has is cut.
    pub(super) fn new(
        topic: &super::topics::Topic,
        index: i32,
        node: BrokerId,
        (dir, log): (usize, Option<OwnedLog>),
        high_watermark: Offset,
    ) -> Self {
        let (log, log_config) = log.map(|owned| (owned.log, owned.config)).unzip();
        let (start, end) =
            log.as_ref().map_or((0, 0), |log| (log.start_offset(), log.end_offset()));
        let role = Role {
            leader: None,
            leads: false,
            epoch: LeaderEpoch::NONE,
            partition_epoch: -1,
            isr: Vec::new(),
            replicas: 1,
            directory: Uuid::nil(),
        };
        let state = State {
            log_unmade: log.is_none(),
            is_lost: false,
            epoch_start: end,
            log,
            future: None,
            role,
            high_watermark: high_watermark.clamp(start, end),
            followers: Vec::new(),
            waiters: Waiters::default(),
            gone: false,
            unflushed_records: 0,
            rolled: false,
        };
        Self {
            topic: topic.name.clone(),
            topic_id: topic.id,
            index,
            node,
            dir: AtomicUsize::new(dir),
            config: topic.config.clone(),
            log_config: log_config.unwrap_or_default(),
            state: Mutex::new(state),
            journal: OnceLock::new(),
        }
    }

    pub fn name(&self) -> TopicPartition {
        TopicPartition { topic: self.topic.clone(), partition: self.index }
    }

    /// Number of the log directory that holds it.
    pub(super) fn dir(&self) -> usize {
        self.dir.load(Ordering::Acquire)
    }

    /// To be called under the lock, with the log that is in `dir`.
    pub(super) fn set_dir(&self, dir: usize) {
        self.dir.store(dir, Ordering::Release);
    }

    /// Runs `work` under the lock, and sends the wake-ups it collected after it.
    pub(super) fn locked<R>(&self, work: impl FnOnce(&mut State, &mut Wakes) -> R) -> R {
        let mut wakes = Wakes::default();
        let result = {
            let Ok(mut state) = self.state.lock() else {
                crate::common::broken_invariant(
                    concat!(file!(), ":", line!()),
                    "the partition's lock is not poisoned",
                    &format!("{}-{}", self.topic, self.index),
                )
            };
            work(&mut state, &mut wakes)
        };
        wakes.send();
        result
    }

    /// Moves the high watermark as far as it may go; called after everything that moves an end.
    pub(super) fn advance(&self, state: &mut State, wakes: &mut Wakes) {
        let config = self.config.load();
        if state.advance(self.node, &config)
            && let Some(followed) = self.journal.get()
        {
            wakes.committed(followed.committed.clone(), state.high_watermark);
        }
        if !state.waiters.is_empty() {
            let ends = state.ends(&config);
            state.waiters.wake(&ends, wakes);
        }
    }

    /// Takes on what the image says. A new epoch begins at the log's end.
    pub(super) fn lead_or_follow(&self, role: Role) {
        self.locked(|state, wakes| {
            let new_epoch = role.epoch > state.role.epoch;
            let lost = state.role.leads && (!role.leads || new_epoch);
            let epoch = role.epoch;
            state.role = role;
            if new_epoch && state.role.leads {
                state.followers.clear();
                if let Some(log) = &mut state.log {
                    log.assign_epoch(epoch);
                    state.epoch_start = log.end_offset();
                }
            }
            if lost {
                state.waiters.wake_all(wakes);
            }
            self.advance(state, wakes);
            self.tell_leadership(state);
        });
    }

    /// Configs have changed: min.insync.replicas and flush.messages may let the high watermark
    /// go on.
    pub(super) fn reconfigured(&self, of_log: &Arc<LogConfig>) {
        self.log_config.store(of_log.clone());
        self.locked(|state, wakes| self.advance(state, wakes));
    }

    /// Whether records here are not committed only because they are not flushed.
    pub(super) fn waits_for_flush(&self) -> bool {
        let config = self.config.load();
        self.locked(|state, _| {
            let unflushed = |log: &Log| log.durable_until() < log.end_offset();
            flushes_each(&config) && state.role.leads && state.log.as_ref().is_some_and(unflushed)
        })
    }

    /// Its log could not be made, and nobody has taken it away since.
    pub(super) fn lacks_log(&self) -> bool {
        self.locked(|state, _| state.log_unmade)
    }

    /// The cell that the configs of its log are changed through, set to `of_log`.
    pub(super) fn of_log(&self, of_log: Arc<LogConfig>) -> Arc<ArcSwap<LogConfig>> {
        self.log_config.store(of_log);
        self.log_config.clone()
    }

    /// The log that could not be made before.
    pub(super) fn take_log(&self, mut log: Log) {
        self.locked(|state, wakes| {
            if state.role.leads {
                log.assign_epoch(state.role.epoch);
            }
            let (start, end) = (log.start_offset(), log.end_offset());
            state.epoch_start = end;
            state.high_watermark = state.high_watermark.clamp(start, end);
            state.log = Some(log);
            state.log_unmade = false;
            self.advance(state, wakes);
            self.tell_leadership(state);
        });
    }

    /// The replica is no longer here (`gone`), or the node stops: gives its logs, and takes nothing
    /// more.
    pub(super) fn leave(&self, gone: bool) -> Left {
        self.locked(|state, wakes| {
            state.gone |= gone;
            state.log_unmade = false;
            state.role.leads = false;
            state.waiters.wake_all(wakes);
            self.tell_leadership(state);
            let (dir, high_watermark) = (self.dir(), state.high_watermark);
            Left { dir, log: state.log.take(), high_watermark, future: state.future.take() }
        })
    }

    /// A directory failed: nothing more is read from it or written to it.
    pub(super) fn lost_dir(&self, dir: usize) {
        self.locked(|state, wakes| {
            let is_home = self.dir() == dir;
            // What a move had copied is no use without the rest.
            if is_home || state.future.as_ref().is_some_and(|future| future.dir == dir) {
                state.future = None;
            }
            if is_home {
                state.is_lost = true;
                state.log = None;
                state.log_unmade = false;
                state.waiters.wake_all(wakes);
                self.tell_leadership(state);
            }
        });
    }

    /// The watches of the machine that lives on this partition.
    pub(super) fn followed(&self) -> &Followed {
        let first = self.journal.get().is_none();
        let followed = self.journal.get_or_init(|| Followed {
            leadership: watch::Sender::default(),
            committed: watch::Sender::new(NO_OFFSET),
        });
        if first {
            self.locked(|state, wakes| {
                self.tell_leadership(state);
                wakes.committed(followed.committed.clone(), state.high_watermark);
            });
        }
        followed
    }

    fn tell_leadership(&self, state: &State) {
        let Some(followed) = self.journal.get() else { return };
        let leads = state.role.leads && state.log.is_some();
        let now = Leadership { epoch: state.role.epoch.0, leads };
        followed.leadership.send_if_modified(|old| std::mem::replace(old, now) != now);
    }

    /// # Errors
    /// [`ReplicaError::Offline`], [`NotNow::UnknownPartition`].
    pub fn offsets(&self) -> Result<Offsets, ReplicaError> {
        self.locked(|state, _| {
            let high_watermark = state.high_watermark;
            let log = state.log()?;
            let last_stable = last_stable(log, high_watermark);
            let (log_start, log_end) = (log.start_offset(), log.end_offset());
            Ok(Offsets { log_start, high_watermark, last_stable, log_end })
        })
    }

    /// Looks at the log; nothing of it moves.
    ///
    /// # Errors
    /// [`ReplicaError::Offline`], [`NotNow::UnknownPartition`].
    pub fn look<R>(&self, look: impl FnOnce(&Log) -> R) -> Result<R, ReplicaError> {
        self.locked(|state, _| state.log().map(|log| look(log)))
    }

    pub fn leader_epoch(&self) -> LeaderEpoch {
        self.locked(|state, _| state.role.epoch)
    }

    /// Whether this node leads it now.
    pub fn leads(&self) -> bool {
        self.locked(|state, _| state.role.leads && !state.gone)
    }

    pub(super) fn remove_waiter(&self, key: usize) {
        self.locked(|state, _| state.waiters.remove(key));
    }
}

impl State {
    /// # Errors
    /// [`ReplicaError::Offline`], [`NotNow::UnknownPartition`].
    pub fn log(&mut self) -> Result<&mut Log, ReplicaError> {
        match &mut self.log {
            Some(log) => Ok(log),
            None if self.gone => Err(ReplicaError::unknown()),
            None => Err(ReplicaError::Offline),
        }
    }

    /// The log of the leader.
    ///
    /// # Errors
    /// [`NotNow::NotLeader`] too.
    pub fn leader_log(&mut self) -> Result<&mut Log, ReplicaError> {
        if !self.role.leads && !self.gone && !self.is_lost {
            let (leader, epoch) = (self.role.leader, self.role.epoch);
            return Err(NotNow::NotLeader { leader, epoch }.into());
        }
        self.log()
    }

    /// The log, for a request that may know of another leader than this replica does.
    ///
    /// # Errors
    /// [`NotNow::FencedLeaderEpoch`], [`NotNow::UnknownLeaderEpoch`], [`NotNow::NotLeader`].
    pub fn fenced_log(&mut self, asked: Option<LeaderEpoch>) -> Result<&mut Log, ReplicaError> {
        let current = self.role.epoch;
        match asked.filter(|_| !self.gone && !self.is_lost) {
            Some(asked) if asked < current => {
                Err(NotNow::FencedLeaderEpoch { asked, current }.into())
            }
            Some(asked) if asked > current => {
                Err(NotNow::UnknownLeaderEpoch { asked, current }.into())
            }
            _ => self.leader_log(),
        }
    }

    /// In-sync replicas that acks=all needs: never more than there are replicas.
    pub fn in_sync_needed(&self, config: &TopicConfig) -> usize {
        usize::try_from(config.min_insync_replicas).unwrap_or(1).min(self.role.replicas)
    }

    /// How far this node's own copy counts.
    pub fn durable_end(&self, config: &TopicConfig) -> Offset {
        let Some(log) = &self.log else { return self.high_watermark };
        match flushes_each(config) {
            true => log.durable_until(),
            false => log.end_offset(),
        }
    }

    fn advance(&mut self, node: BrokerId, config: &TopicConfig) -> bool {
        if !self.role.leads || self.role.isr.len() < self.in_sync_needed(config) {
            return false;
        }
        let own_end = self.durable_end(config);
        let end_of = |replica: &BrokerId| match self.followers.iter().find(|f| f.0 == *replica) {
            _ if *replica == node => own_end,
            Some((_, end)) => *end,
            None => self.high_watermark,
        };
        let least = self.role.isr.iter().map(end_of).min().unwrap_or(self.high_watermark);
        let moved = least > self.high_watermark;
        if moved {
            self.high_watermark = least;
        }
        moved
    }

    fn ends(&mut self, config: &TopicConfig) -> Ends {
        let (high_watermark, durable) = (self.high_watermark, self.durable_end(config));
        let stable = |log: &mut Log| last_stable(log, high_watermark);
        let last_stable = self.log.as_mut().map_or(high_watermark, stable);
        Ends { high_watermark, last_stable, durable }
    }
}

/// Whether an acknowledgement waits for the disk.
pub(super) fn flushes_each(config: &TopicConfig) -> bool {
    config.flush_messages <= 1
}

/// Up to where a read-committed consumer may read.
pub(super) fn last_stable(log: &mut Log, high_watermark: Offset) -> Offset {
    log.first_unstable_offset(high_watermark).unwrap_or(high_watermark).min(high_watermark)
}

/// What storage said, where the log's directory has to go offline for it.
pub(super) fn disk_failed(error: &StorageError) -> Option<String> {
    let StorageError::Disk(disk) = error else { return None };
    // A full disk, one damaged or deleted file, a process out of descriptors: the disk is sound.
    let short = disk.source.raw_os_error().is_some_and(|code| SHORTAGES.contains(&code));
    let sound = short || disk.is_full() || disk.is_damage() || disk.is_deleted();
    (!sound).then(|| disk.to_string())
}

/// ENOMEM, ENFILE, EMFILE.
const SHORTAGES: [i32; 3] = [12, 23, 24];

/// A place in a partition's waiters, given up when dropped.
pub(super) struct Waiting {
    partition: Arc<Partition>,
    key: usize,
}

impl Waiting {
    /// Registers under the lock that `state` is under.
    pub fn register(
        partition: &Arc<Partition>,
        state: &mut State,
        wants: Wants,
        notify: Arc<tokio::sync::Notify>,
    ) -> Self {
        let key = state.waiters.add(wants, notify);
        Self { partition: partition.clone(), key }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.partition.remove_waiter(self.key);
    }
}
