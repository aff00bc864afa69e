//! Tasks and threads: two runtimes, data and control, and counted spawning; and the end of the
//! process they run in. Simulated, everything is a task of one runtime and the process only
//! counts as ended.

use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::random::Random;

const BLOCKING_DELAY_US_MAX: u64 = 3_000;

/// Where tasks run. `data` serves clients; `control` runs the quorum, the controller and the
/// broker's heartbeats, so that a slow disk may delay clients but never leadership.
#[derive(Clone)]
pub struct Tasks {
    data: Handle,
    control: Handle,
    counts: Arc<Counts>,
    process: Process,
}

#[derive(Default)]
struct Counts {
    running: AtomicUsize,
    panicked: AtomicUsize,
}

#[derive(Clone)]
enum Process {
    Real,
    Simulated(Arc<watch::Sender<bool>>, Random),
}

struct Counted(Arc<Counts>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
        if std::thread::panicking() {
            self.0.panicked.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Tasks {
    pub fn new(data: Handle, control: Handle) -> Self {
        Self { data, control, counts: Arc::default(), process: Process::Real }
    }

    /// Both kinds on the runtime this is called in: for tests and tools.
    pub fn current() -> Self {
        Self::new(Handle::current(), Handle::current())
    }

    /// As [`Tasks::current`], without threads: what would block runs in a task's turn.
    /// It begins up to [`BLOCKING_DELAY_US_MAX`] later, as on a pool that is busy.
    pub fn simulated(random: Random) -> Self {
        let process = Process::Simulated(Arc::new(watch::Sender::new(false)), random);
        Self { process, ..Self::current() }
    }

    /// False where time is virtual: it would run away while a thread works.
    pub fn has_threads(&self) -> bool {
        matches!(self.process, Process::Real)
    }

    /// Ends the process at once, as `kill -9` would. Simulated, it returns, and only the test
    /// knows that nothing of what follows ever happened.
    pub fn end_process(&self) {
        match &self.process {
            Process::Real => std::process::abort(),
            Process::Simulated(ended, _) => _ = ended.send_replace(true),
        }
    }

    /// Whether the simulated process has ended.
    pub fn has_ended(&self) -> bool {
        match &self.process {
            Process::Real => false,
            Process::Simulated(ended, _) => *ended.borrow(),
        }
    }

    /// Resolves when the simulated process has ended.
    pub async fn process_ended(&self) {
        match &self.process {
            Process::Real => std::future::pending().await,
            // The sender lives in `self`, so waiting cannot fail.
            Process::Simulated(ended, _) => _ = ended.subscribe().wait_for(|ended| *ended).await,
        }
    }

    pub fn spawn_data<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.spawn_on(&self.data, work)
    }

    pub fn spawn_control<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.spawn_on(&self.control, work)
    }

    fn spawn_on<F>(&self, runtime: &Handle, work: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.counts.running.fetch_add(1, Ordering::Relaxed);
        let counted = Counted(self.counts.clone());
        // In place the task would have room for the work twice: given to it, and awaited.
        let work = Box::pin(work);
        runtime.spawn(async move {
            let _counted = counted;
            work.await
        })
    }

    /// Work that may wait for a disk or burn CPU; runs on the data runtime's blocking pool.
    pub fn spawn_blocking<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> JoinHandle<R> {
        match &self.process {
            Process::Real => self.data.spawn_blocking(work),
            Process::Simulated(_, random) => {
                let delay_us = random.below(BLOCKING_DELAY_US_MAX);
                self.spawn_data(async move {
                    tokio::time::sleep(Duration::from_micros(delay_us)).await;
                    work()
                })
            }
        }
    }

    /// A named thread of its own for a single writer (quorum log, flusher).
    ///
    /// # Errors
    /// What the system says when it cannot start one.
    pub fn thread(&self, name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let builder = std::thread::Builder::new().name(name.to_owned()).stack_size(256 << 10);
        builder.spawn(work).map(|_| ())
    }

    /// Tasks spawned here that have not ended; work on threads is not counted.
    pub fn running(&self) -> usize {
        self.counts.running.load(Ordering::Relaxed)
    }

    /// Tasks spawned here that ended in a panic.
    pub fn panicked(&self) -> usize {
        self.counts.panicked.load(Ordering::Relaxed)
    }
}

/// Does `work` on each item, on up to `threads` threads, the calling one among them; with 1 in
/// order. Returns what each gave, in the order of the items.
///
/// # Errors
/// The first that any thread met; the items that were not begun by then are left.
pub fn on_each<T: Send, R: Send, E: Send>(
    threads: usize,
    items: Vec<T>,
    work: impl Fn(T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    if threads <= 1 || items.len() <= 1 {
        return items.into_iter().map(work).collect();
    }
    let others = threads.min(items.len()) - 1;
    let (left, failed) = (Mutex::new(items.into_iter().enumerate()), AtomicBool::new(false));
    let take = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let worker = || {
        let mut done = Vec::new();
        while let Some((at, item)) = take() {
            if failed.load(Ordering::Relaxed) {
                break;
            }
            let outcome = work(item);
            failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
            done.push((at, outcome?));
        }
        Ok(done)
    };
    let mut done = std::thread::scope(|scope| {
        // Those that the system does not start are not missed.
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, worker).ok();
        let others: Vec<_> = (0..others).filter_map(start).collect();
        let mut done = worker()?;
        for other in others {
            let outcome = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            done.extend(outcome?);
        }
        Ok(done)
    })?;
    done.sort_unstable_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, given)| given).collect())
}

#[cfg(test)]
mod tests {
    use super::on_each;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn each_item_is_done_once_and_the_answers_keep_their_order() {
        for threads in [0, 1, 2, 7] {
            let done = on_each(threads, (0..100).collect(), |n: i32| Ok::<_, ()>(n * 2));
            assert_eq!(done, Ok((0..100).map(|n| n * 2).collect()), "{threads} threads");
            assert_eq!(on_each(threads, vec![], Ok::<i32, ()>), Ok(vec![]));
        }
    }

    #[test]
    fn as_many_threads_work_at_once_as_are_asked_for() {
        // Nobody goes on before three are there.
        let three = Barrier::new(3);
        let done = on_each(3, vec![(); 3], |()| Ok::<_, ()>(three.wait().is_leader()));
        assert_eq!(done.map(|all| all.iter().filter(|first| **first).count()), Ok(1));
    }

    #[test]
    fn the_first_error_ends_it() {
        for threads in [1, 2] {
            let begun = AtomicUsize::new(0);
            let done = on_each(threads, (0..1000).collect(), |n: i32| {
                begun.fetch_add(1, Ordering::Relaxed);
                if n == 0 { Err("no") } else { Ok(n) }
            });
            assert_eq!(done, Err("no"), "{threads} threads");
            assert!(threads > 1 || begun.load(Ordering::Relaxed) == 1);
        }
    }
}
