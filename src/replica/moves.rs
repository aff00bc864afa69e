//! Replicas moved between the node's log directories (KIP-113, KIP-858): what was asked for, the
//! copying in the background, the swap, and telling the controller where a replica is.
//! Order of a move, so that a stop at any point loses nothing: a future log is made, filled and
//! synced; the controller commits that the replica is in the new directory; under the partition's
//! lock the last batches follow, the future log takes the name of the current one, and that one is
//! renamed to be deleted. A start goes on from what it finds, see `Replicas::claim`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use uuid::Uuid;

use super::error::{Refusal, ReplicaError};
use super::partition::{FutureLog, Partition, State, disk_failed};
use super::replicas::Replicas;
use crate::common::{TopicId, TopicPartition};
use crate::storage::{DeletedLog, DiskError, LogDir, StorageError};

/// (topic, partition, id of the directory that its replica here is in).
pub type Assignment = (TopicId, i32, Uuid);

/// Tells the controller; false: not now, it is to be told again.
pub type Assign =
    Box<dyn Fn(Vec<Assignment>) -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

/// Tells the controller which directories have failed; false: not now, it is to be told again.
pub type TellFailed =
    Box<dyn Fn(Vec<Uuid>) -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

/// Copied under one hold of the partition's lock.
const CHUNK_BYTES: usize = 256 << 10;
/// Copied in the hold of the lock that swaps; with more to go the copying goes on first.
const LAST_BYTES: usize = 1 << 20;
/// After the controller could not be told.
const RETRY: Duration = Duration::from_secs(1);
/// Replicas told of at once.
const ASSIGNMENTS_MAX: usize = 2_000;

/// How far a move has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// There is more to copy.
    Copied,
    /// The controller must know first.
    Unassigned,
    /// Swapped, given up, or never there.
    Over,
}

/// Which side of a move failed.
enum Failed {
    Current(StorageError),
    Future(StorageError),
}

fn current(error: impl Into<StorageError>) -> Failed {
    Failed::Current(error.into())
}

fn future(error: impl Into<StorageError>) -> Failed {
    Failed::Future(error.into())
}

impl Replicas {
    /// Wants the replica of a partition in the directory `path`: moves it there in the background,
    /// or remembers it for a partition that is not here yet. Blocks on the disk.
    ///
    /// # Errors
    /// [`Refusal::NameTooLong`], [`Refusal::UnknownDirectory`], [`ReplicaError::Offline`], and
    /// `UnknownPartition` or `NotLeader` where it was only remembered.
    pub fn move_replica(&self, name: &TopicPartition, path: &str) -> Result<(), ReplicaError> {
        if !LogDir::has_room_for_future(name) {
            return Err(Refusal::NameTooLong.into());
        }
        let is_dead = self.config.dead_dirs.iter().any(|dead| dead == path);
        let dir = self.dirs.iter().position(|dir| dir.path == path);
        let dir = match dir {
            Some(dir) if !self.is_offline(dir) => dir,
            None if !is_dead => return Err(Refusal::UnknownDirectory(path.to_owned()).into()),
            _ => return Err(ReplicaError::Offline),
        };
        let mut unclaimed = self.publishing();
        let topic = self.topic(&name.topic);
        let replica = topic.ok_or_else(ReplicaError::unknown);
        let replica = replica.and_then(|topic| topic.partition(name.partition));
        let partition = match replica {
            Ok(partition) => partition,
            Err(error) => {
                unclaimed.preferred.insert(name.clone(), dir);
                return Err(error);
            }
        };
        self.begin_move(&partition, dir)
    }

    fn begin_move(&self, partition: &Partition, dir: usize) -> Result<(), ReplicaError> {
        let now_ms = self.env().clock.wall_ms();
        let logs = &self.dirs[dir].logs;
        let mut old = None;
        let made = partition.locked(|state, _| {
            let start = state.log()?.start_offset();
            old = state.future.take_if(|future| future.dir != dir);
            if partition.dir() == dir || state.future.is_some() {
                return Ok(Ok(()));
            }
            if self.has_offline_dirs() {
                // A copy of it may lie in one of them.
                return Err(ReplicaError::Offline);
            }
            let (name, config) = (partition.name(), partition.log_config.clone());
            let made = logs.create_future(&name, partition.topic_id, config, start, now_ms);
            Ok(made.map(|log| {
                self.dirs[dir].held.fetch_add(1, Ordering::Relaxed);
                state.future = Some(FutureLog { dir, log, caught_up: false });
            }))
        });
        self.drop_future(partition, old);
        // A move that was taken back may have been told to the controller already.
        self.moves_due.notify_one();
        made?.map_err(|error| self.disk_said(dir, error))
    }

    fn disk_said(&self, dir: usize, error: StorageError) -> ReplicaError {
        if let Some(text) = disk_failed(&error) {
            self.fail_dir(dir, &text);
        }
        ReplicaError::of_storage(error)
    }

    fn drop_future(&self, partition: &Partition, dropped: Option<FutureLog>) {
        if let Some(FutureLog { dir, log, .. }) = dropped {
            self.delete_log(&partition.name(), dir, &log);
        }
    }

    /// Moves what is to be moved, tells the controller where replicas are and which directories have
    /// failed. Runs until dropped.
    pub async fn keep_directories(self: Arc<Self>, assign: Assign, tell_failed: TellFailed) {
        let mut known_failed = 0;
        loop {
            let unassigned = self.unassigned();
            let mut is_told = true;
            for part in unassigned.chunks(ASSIGNMENTS_MAX) {
                is_told &= assign(part.to_vec()).await;
            }
            let failed = self.dirs_that(|is_offline| is_offline);
            if failed.len() > known_failed {
                let count = failed.len();
                match is_told && tell_failed(failed).await {
                    true => known_failed = count,
                    false => is_told = false,
                }
            }
            let mut again = false;
            for partition in self.moving() {
                let replicas = self.clone();
                let step = move || replicas.step_move(&partition);
                match self.env().tasks.spawn_blocking(step).await {
                    Ok(Step::Copied) => again = true,
                    // What was told just now is in the image already.
                    Ok(Step::Unassigned) => again |= is_told,
                    Ok(Step::Over) => {}
                    Err(error) => tracing::error!(%error, "a move between directories failed"),
                }
            }
            if again {
                continue;
            }
            let due = self.moves_due.notified();
            match is_told {
                true => due.await,
                false => {
                    let clock = &self.env().clock;
                    clock.until(clock.deadline_in(RETRY), due).await;
                }
            }
        }
    }

    /// Replicas that the image knows in another directory than they are in, or go to.
    pub(super) fn unassigned(&self) -> Vec<Assignment> {
        let wrong = |partition: Arc<Partition>| {
            partition.locked(|state, _| {
                let coming = state.future.as_ref().filter(|future| future.caught_up);
                let dir = coming.map_or(partition.dir(), |future| future.dir);
                let id = self.dirs.get(dir)?.logs.directory_id();
                // The controller cannot take a lost one's leadership before it knows where it was.
                let is_known = !state.role.directory.is_nil();
                let is_here = state.log.is_some() || (state.is_lost && !is_known);
                let is_wrong = is_here && !state.gone && state.role.directory != id;
                is_wrong.then_some((partition.topic_id, partition.index, id))
            })
        };
        let mut wrong: Vec<_> = self.partitions().into_iter().filter_map(wrong).collect();
        wrong.sort();
        wrong
    }

    pub(super) fn moving(&self) -> Vec<Arc<Partition>> {
        let moves =
            |partition: &Arc<Partition>| partition.locked(|state, _| state.future.is_some());
        self.partitions().into_iter().filter(moves).collect()
    }

    /// One step of a move; short, but blocks on the disk.
    pub(super) fn step_move(&self, partition: &Partition) -> Step {
        let failed = match self.try_step(partition) {
            Ok(step) => return step,
            Err(failed) => failed,
        };
        let future = partition.locked(|state, _| state.future.take());
        let Some(target) = future.as_ref().map(|future| future.dir) else { return Step::Over };
        let (dir, error) = match failed {
            Failed::Current(error) => (partition.dir(), error),
            Failed::Future(error) => (target, error),
        };
        let (name, to) = (partition.name(), &self.dirs[target].path);
        tracing::error!(partition = %name, to, %error, "a move between directories was given up");
        match disk_failed(&error) {
            Some(text) => self.fail_dir(dir, &text),
            None => self.drop_future(partition, future),
        }
        self.moves_due.notify_one();
        Step::Over
    }

    fn try_step(&self, partition: &Partition) -> Result<Step, Failed> {
        let now_ms = self.env().clock.wall_ms();
        let plan = partition.locked(|state, _| {
            let State { log: Some(log), future: Some(coming), .. } = state else {
                return Ok(None);
            };
            follow_start(log, coming, now_ms)?;
            let from = coming.log.end_offset();
            log.plan_read(from, log.end_offset()).map(Some).map_err(current)
        })?;
        let Some(plan) = plan else { return Ok(Step::Over) };
        let bytes = plan.locate(CHUNK_BYTES, true).and_then(|slices| slices.read());
        let bytes = bytes.map_err(current)?;
        if bytes.is_empty() {
            return self.caught_up(partition);
        }
        partition.locked(|state, _| match &mut state.future {
            Some(coming) => coming.log.append_copied(&bytes, now_ms).map_err(future),
            None => Ok(()),
        })?;
        Ok(Step::Copied)
    }

    /// Syncs what was copied, and swaps once the controller knows.
    fn caught_up(&self, partition: &Partition) -> Result<Step, Failed> {
        let plan = partition.locked(|state, _| {
            let Some(coming) = &mut state.future else { return Ok(None) };
            coming.caught_up = true;
            let end = coming.log.end_offset();
            let knows = self.dirs[coming.dir].logs.directory_id() == state.role.directory;
            coming.log.plan_flush(end).map(|plan| Some((plan, coming.dir, knows))).map_err(future)
        })?;
        let Some((plan, dir, knows)) = plan else { return Ok(Step::Over) };
        plan.run(&self.env().files).map_err(future)?;
        partition.locked(|state, _| {
            state.future.iter_mut().for_each(|coming| coming.log.flushed(&plan));
        });
        self.dirs[dir].logs.sync_created().map_err(future)?;
        if !knows {
            return Ok(Step::Unassigned);
        }
        // With the row of the future log, which is that of the log from the swap on.
        self.write_checkpoints();
        self.swap(partition)
    }

    fn swap(&self, partition: &Partition) -> Result<Step, Failed> {
        let now_ms = self.env().clock.wall_ms();
        let home = partition.dir();
        let swapped = partition.locked(|state, wakes| {
            let State { log: Some(log), future: Some(coming), .. } = state else {
                return Ok(None);
            };
            follow_start(log, coming, now_ms)?;
            let (from, end) = (coming.log.end_offset(), log.end_offset());
            let last = log.plan_read(from, end).map_err(current)?;
            let last = last.locate(LAST_BYTES, true).and_then(|slices| slices.read());
            coming.log.append_copied(&last.map_err(current)?, now_ms).map_err(future)?;
            if coming.log.end_offset() != end {
                return Ok(None);
            }
            coming.log.flush().map_err(future)?;
            let name = partition.name();
            self.dirs[coming.dir].logs.promote(&name, &coming.log).map_err(future)?;
            let deleted = self.dirs[home].logs.delete_log(&name, log);
            coming.log.take_over(log);
            let Some(coming) = state.future.take() else { return Ok(None) };
            partition.set_dir(coming.dir);
            state.log = Some(coming.log);
            partition.advance(state, wakes);
            Ok(Some(deleted))
        })?;
        let Some(deleted) = swapped else { return Ok(Step::Copied) };
        self.after_swap(partition, home, deleted);
        Ok(Step::Over)
    }

    /// The new name reaches the disk before the old files go.
    fn after_swap(&self, partition: &Partition, home: usize, old: Result<DeletedLog, DiskError>) {
        if let Err(error) = self.dirs[partition.dir()].logs.sync_created() {
            self.fail_dir(partition.dir(), &error.to_string());
        }
        let old = old.and_then(|deleted| self.dirs[home].logs.sync_created().map(|()| deleted));
        match old {
            Ok(deleted) => {
                let delay_ms = partition.config.load().file_delete_delay_ms;
                self.log_left(home, delay_ms, deleted);
            }
            Err(error) => self.fail_dir(home, &error.to_string()),
        }
        self.write_checkpoints();
        let (name, dir) = (partition.name(), &self.dirs[partition.dir()].path);
        tracing::info!(partition = %name, dir, "replica moved to another log directory");
    }
}

/// What was deleted at the start of the log meanwhile goes from its copy too.
fn follow_start(
    log: &crate::storage::Log,
    coming: &mut FutureLog,
    now_ms: i64,
) -> Result<(), Failed> {
    let start = log.start_offset();
    match start > coming.log.end_offset() {
        true => coming.log.restart_copy(start, now_ms).map_err(future),
        false => coming.log.advance_start(start).map(drop).map_err(future),
    }
}
