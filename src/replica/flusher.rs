//! Makes logs durable while appends go on: one thread per log directory, which takes up whatever
//! has gathered while it was busy (group commit). Where there are no threads a task does it.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::partition::Partition;
use crate::common::TopicId;
use crate::env::{Clock, Env, Files};
use crate::storage::{DiskError, FlushPlan, run_all};

/// How soon a flush that a full disk has stopped is tried again.
const LOOK_FOR_ROOM_EVERY: Duration = Duration::from_millis(100);

/// Called with the partition whose flush failed; its directory goes offline.
pub(super) type OnFailure = Box<dyn Fn(&Arc<Partition>, &DiskError) + Send + Sync>;

/// Up to where a log is to be flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Until {
    /// Sealed segments only: one was just rolled.
    Rolled,
    /// All that is appended.
    End,
}

/// A log that waits to be flushed.
pub(super) type Wanted = (Arc<Partition>, Until);

/// The queue of one directory's thread. The thread ends with the last handle.
pub(super) struct Flusher(Arc<Shared>);

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    wake_task: Notify,
}

#[derive(Default)]
struct Queue {
    /// A partition waits once.
    waiting: BTreeMap<(TopicId, i32), Wanted>,
    closed: bool,
}

impl Queue {
    fn add(&mut self, partition: &Arc<Partition>, until: Until) {
        let key = (partition.topic_id, partition.index);
        let wanted = self.waiting.entry(key).or_insert_with(|| (partition.clone(), until));
        // Another replica of that name is one that has left.
        wanted.0.clone_from(partition);
        wanted.1 = wanted.1.max(until);
    }

    fn put_back(&mut self, stopped: Vec<Wanted>) {
        for (partition, until) in stopped {
            let key = (partition.topic_id, partition.index);
            let wanted = self.waiting.entry(key).or_insert((partition, until));
            wanted.1 = wanted.1.max(until);
        }
    }
}

impl Flusher {
    /// # Errors
    /// What the system says when it cannot start a thread.
    pub fn start(env: &Env, on_failure: OnFailure) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let inner = shared.clone();
        let files = env.files.clone();
        if env.tasks.has_threads() {
            env.tasks.thread("flusher", move || run(&inner, &files, &on_failure))?;
        } else {
            env.tasks.spawn_data(run_as_task(inner, files, env.clock.clone(), on_failure));
        }
        Ok(Self(shared))
    }

    /// Without a thread: what is asked for waits for [`Flusher::run_once`].
    #[cfg(test)]
    pub fn by_hand() -> Self {
        Self(Arc::new(Shared::default()))
    }

    #[cfg(test)]
    pub fn run_once(&self, files: &Files, on_failure: &OnFailure) {
        let waiting = std::mem::take(&mut lock(&self.0.queue).waiting);
        let stopped = flush(files, &waiting.into_values().collect::<Vec<_>>(), on_failure);
        lock(&self.0.queue).put_back(stopped);
    }

    /// Flushes `partition` soon, up to where it has come then.
    pub fn flush(&self, partition: &Arc<Partition>, until: Until) {
        lock(&self.0.queue).add(partition, until);
        self.0.wake();
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        lock(&self.0.queue).closed = true;
        self.0.wake();
    }
}

impl Shared {
    fn wake(&self) {
        self.wake.notify_one();
        self.wake_task.notify_one();
    }
}

fn run(shared: &Shared, files: &Files, on_failure: &OnFailure) {
    loop {
        let batch: Vec<Wanted> = {
            let mut queue = lock(&shared.queue);
            while queue.waiting.is_empty() {
                if queue.closed {
                    return;
                }
                queue = shared.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            std::mem::take(&mut queue.waiting).into_values().collect()
        };
        let stopped = flush(files, &batch, on_failure);
        if stopped.is_empty() {
            continue;
        }
        let mut queue = lock(&shared.queue);
        queue.put_back(stopped);
        if queue.closed {
            return;
        }
        let waited = shared.wake.wait_timeout(queue, LOOK_FOR_ROOM_EVERY);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

async fn run_as_task(shared: Arc<Shared>, files: Files, clock: Clock, on_failure: OnFailure) {
    loop {
        shared.wake_task.notified().await;
        let (waiting, closed) = {
            let mut queue = lock(&shared.queue);
            (std::mem::take(&mut queue.waiting), queue.closed)
        };
        let stopped = flush(&files, &waiting.into_values().collect::<Vec<_>>(), &on_failure);
        if closed {
            return;
        }
        if !stopped.is_empty() {
            lock(&shared.queue).put_back(stopped);
            clock.sleep(LOOK_FOR_ROOM_EVERY).await;
            shared.wake_task.notify_one();
        }
    }
}

/// Flushes all that is wanted together and moves the high watermarks on. Returns what a full disk
/// has stopped before anything was synced: it is to be tried again.
pub(super) fn flush(files: &Files, wanted: &[Wanted], on_failure: &OnFailure) -> Vec<Wanted> {
    let mut stopped = Vec::new();
    let mut planned: Vec<&Arc<Partition>> = Vec::with_capacity(wanted.len());
    let mut plans: Vec<FlushPlan> = Vec::with_capacity(wanted.len());
    for (partition, until) in wanted {
        match partition.plan_flush(*until) {
            Ok(Some(plan)) => {
                planned.push(partition);
                plans.push(plan);
            }
            Ok(None) => {}
            Err(error) if error.is_full() => stopped.push((partition.clone(), *until)),
            Err(error) => on_failure(partition, &error),
        }
    }
    match run_all(files, &plans) {
        Ok(()) => planned.iter().zip(&plans).for_each(|(partition, plan)| partition.flushed(plan)),
        // Which of them failed does not matter: they share a directory.
        Err(error) => planned.iter().for_each(|partition| on_failure(partition, &error)),
    }
    stopped
}

impl Partition {
    fn plan_flush(&self, until: Until) -> Result<Option<FlushPlan>, DiskError> {
        self.locked(|state, _| {
            let Some(log) = &mut state.log else { return Ok(None) };
            let until = match until {
                Until::Rolled => log.active_base_offset(),
                Until::End => {
                    state.unflushed_records = 0;
                    log.end_offset()
                }
            };
            log.plan_flush(until).map(|plan| (!plan.is_empty()).then_some(plan))
        })
    }

    fn flushed(&self, plan: &FlushPlan) {
        self.locked(|state, wakes| {
            if let Some(log) = &mut state.log {
                log.flushed(plan);
            }
            self.advance(state, wakes);
        });
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}
