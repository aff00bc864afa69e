//! Makes logs durable while appends go on: one thread per log directory, which takes up whatever
//! has gathered while it was busy (group commit). Where there are no threads a task does it.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::partition::Partition;
use crate::common::TopicId;
use crate::env::{Files, Tasks};
use crate::storage::{DiskError, FlushPlan, run_all};

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

impl Flusher {
    /// # Errors
    /// What the system says when it cannot start a thread.
    pub fn start(tasks: &Tasks, files: Files, on_failure: OnFailure) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let inner = shared.clone();
        if tasks.has_threads() {
            tasks.thread("flusher", move || run(&inner, &files, &on_failure))?;
        } else {
            tasks.spawn_data(run_as_task(inner, files, on_failure));
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
        flush(files, &waiting.into_values().collect::<Vec<_>>(), on_failure);
    }

    /// Flushes `partition` soon, up to where it has come then.
    pub fn flush(&self, partition: &Arc<Partition>, until: Until) {
        let key = (partition.topic_id, partition.index);
        let mut queue = lock(&self.0.queue);
        let wanted = queue.waiting.entry(key).or_insert_with(|| (partition.clone(), until));
        // Another replica of that name is one that has left.
        wanted.0.clone_from(partition);
        wanted.1 = wanted.1.max(until);
        drop(queue);
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
        flush(files, &batch, on_failure);
    }
}

async fn run_as_task(shared: Arc<Shared>, files: Files, on_failure: OnFailure) {
    loop {
        shared.wake_task.notified().await;
        let (waiting, closed) = {
            let mut queue = lock(&shared.queue);
            (std::mem::take(&mut queue.waiting), queue.closed)
        };
        flush(&files, &waiting.into_values().collect::<Vec<_>>(), &on_failure);
        if closed {
            return;
        }
    }
}

/// Flushes all that is wanted together and moves the high watermarks on.
fn flush(files: &Files, wanted: &[Wanted], on_failure: &OnFailure) {
    let mut planned: Vec<&Arc<Partition>> = Vec::with_capacity(wanted.len());
    let mut plans: Vec<FlushPlan> = Vec::with_capacity(wanted.len());
    for (partition, until) in wanted {
        match partition.plan_flush(*until) {
            Ok(Some(plan)) => {
                planned.push(partition);
                plans.push(plan);
            }
            Ok(None) => {}
            Err(error) => on_failure(partition, &error),
        }
    }
    match run_all(files, &plans) {
        Ok(()) => planned.iter().zip(&plans).for_each(|(partition, plan)| partition.flushed(plan)),
        // Which of them failed does not matter: they share a directory.
        Err(error) => planned.iter().for_each(|partition| on_failure(partition, &error)),
    }
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
