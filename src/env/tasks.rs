//! Tasks and threads: two runtimes, data and control, and counted spawning.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Where tasks run. `data` serves clients; `control` runs the quorum, the controller and the
/// broker's heartbeats, so that a slow disk may delay clients but never leadership.
#[derive(Clone)]
pub struct Tasks {
    data: Handle,
    control: Handle,
    running: Arc<AtomicUsize>,
}

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Tasks {
    pub fn new(data: Handle, control: Handle) -> Self {
        Self { data, control, running: Arc::default() }
    }

    /// Both kinds on the runtime this is called in: for tests and tools.
    pub fn current() -> Self {
        Self::new(Handle::current(), Handle::current())
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
        self.running.fetch_add(1, Ordering::Relaxed);
        let counted = Counted(self.running.clone());
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
        self.data.spawn_blocking(work)
    }

    /// A named thread of its own for a single writer (quorum log, flusher).
    ///
    /// # Errors
    /// What the system says when it cannot start one.
    pub fn thread(&self, name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let builder = std::thread::Builder::new().name(name.to_owned()).stack_size(256 << 10);
        builder.spawn(work).map(|_| ())
    }

    /// Tasks spawned here that have not ended.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }
}
