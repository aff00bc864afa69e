//! Makes logs durable while appends go on: one thread per log directory, which takes up whatever
//! has gathered while it was busy (group commit).

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::partition::Partition;
use crate::env::{Files, Tasks};
use crate::storage::{DiskError, FlushPlan, run_all};

/// How soon a flush that a full disk has stopped is tried again.
const LOOK_FOR_ROOM_EVERY: Duration = Duration::from_millis(100);

/// Called with the partition whose flush failed; its directory goes offline.
pub(super) type OnFailure = Box<dyn Fn(&Arc<Partition>, &DiskError) + Send>;

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

struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    /// By address: a partition waits once.
    waiting: HashMap<usize, Wanted>,
    closed: bool,
}

impl Flusher {
    /// # Errors
    /// What the system says when it cannot start a thread.
    pub fn start(tasks: &Tasks, files: Files, on_failure: OnFailure) -> io::Result<Self> {
        let shared = Arc::new(Shared { queue: Mutex::default(), wake: Condvar::new() });
        let inner = shared.clone();
        tasks.thread("flusher", move || run(&inner, &files, &on_failure))?;
        Ok(Self(shared))
    }

    /// Without a thread: what is asked for waits for [`Flusher::run_once`].
    #[cfg(test)]
    pub fn by_hand() -> Self {
        Self(Arc::new(Shared { queue: Mutex::default(), wake: Condvar::new() }))
    }

    #[cfg(test)]
    pub fn run_once(&self, files: &Files, on_failure: &OnFailure) {
        let waiting = std::mem::take(&mut lock(&self.0.queue).waiting);
        let stopped = flush(files, &waiting.into_values().collect::<Vec<_>>(), on_failure);
        stopped.iter().for_each(|(partition, until)| self.flush(partition, *until));
    }

    /// Flushes `partition` soon, up to where it has come then.
    pub fn flush(&self, partition: &Arc<Partition>, until: Until) {
        let key = Arc::as_ptr(partition) as usize;
        let mut queue = lock(&self.0.queue);
        let wanted = queue.waiting.entry(key).or_insert_with(|| (partition.clone(), until));
        wanted.1 = wanted.1.max(until);
        drop(queue);
        self.0.wake.notify_one();
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        lock(&self.0.queue).closed = true;
        self.0.wake.notify_one();
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
            queue.waiting.drain().map(|(_, wanted)| wanted).collect()
        };
        let stopped = flush(files, &batch, on_failure);
        if stopped.is_empty() {
            continue;
        }
        let mut queue = lock(&shared.queue);
        for (partition, until) in stopped {
            let key = Arc::as_ptr(&partition) as usize;
            let wanted = queue.waiting.entry(key).or_insert((partition, until));
            wanted.1 = wanted.1.max(until);
        }
        if queue.closed {
            return;
        }
        let waited = shared.wake.wait_timeout(queue, LOOK_FOR_ROOM_EVERY);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// Flushes all that is wanted together and moves the high watermarks on. Returns what a full disk
/// has stopped before anything was synced: it is to be tried again.
fn flush(files: &Files, wanted: &[Wanted], on_failure: &OnFailure) -> Vec<Wanted> {
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
