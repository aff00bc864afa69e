//! Memory of requests in flight, over all connections (`queued.max.request.bytes`): when it is
//! used up, reading pauses; nothing is refused.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The node-wide account. Cloning shares it.
#[derive(Clone)]
pub struct RequestMemory {
    shared: Arc<Shared>,
}

struct Shared {
    used_bytes: AtomicUsize,
    max_bytes: usize,
    freed: Notify,
}

impl RequestMemory {
    /// `max_bytes` ≤ 0 stands for "no limit", as in Kafka.
    pub fn new(max_bytes: i64) -> Self {
        let max_bytes = usize::try_from(max_bytes).ok().filter(|max| *max > 0);
        let max_bytes = max_bytes.unwrap_or(usize::MAX);
        let shared = Shared { used_bytes: AtomicUsize::new(0), max_bytes, freed: Notify::new() };
        Self { shared: Arc::new(shared) }
    }

    /// Waits until `bytes` fit. A request larger than the whole account is admitted alone.
    pub async fn charge(&self, bytes: usize) -> Charge {
        loop {
            let freed = self.shared.freed.notified();
            if let Some(charge) = self.try_charge(bytes) {
                return charge;
            }
            freed.await;
        }
    }

    /// [`RequestMemory::charge`] as a value to keep and poll.
    pub fn charged(self, bytes: usize) -> Pin<Box<dyn Future<Output = Charge> + Send>> {
        Box::pin(async move { self.charge(bytes).await })
    }

    /// `None` when `bytes` do not fit now.
    pub fn try_charge(&self, bytes: usize) -> Option<Charge> {
        let max = self.shared.max_bytes;
        let fits = |used: usize| {
            let after = used.saturating_add(bytes);
            (after <= max || used == 0).then_some(after)
        };
        let used = &self.shared.used_bytes;
        used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        Some(Charge { shared: self.shared.clone(), bytes })
    }

    pub fn used_bytes(&self) -> usize {
        self.shared.used_bytes.load(Ordering::Relaxed)
    }
}

/// Bytes taken from the account; dropping gives them back.
pub struct Charge {
    shared: Arc<Shared>,
    bytes: usize,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.shared.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        if self.shared.max_bytes != usize::MAX {
            self.shared.freed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_account_makes_wait_and_a_giant_goes_alone() {
        let memory = RequestMemory::new(100);
        let first = memory.try_charge(60);
        assert!(first.is_some());
        assert!(memory.try_charge(41).is_none());
        drop(first);
        let giant = memory.try_charge(1000);
        assert!(giant.is_some() && memory.try_charge(1).is_none());
        drop(giant);
        assert_eq!(memory.used_bytes(), 0);
    }

    #[tokio::test]
    async fn who_waits_goes_on_when_bytes_come_back() {
        let memory = RequestMemory::new(10);
        let held = memory.charge(10).await;
        let waiting = memory.charge(5);
        tokio::pin!(waiting);
        assert!(std::future::Future::poll(waiting.as_mut(), &mut noop_context()).is_pending());
        drop(held);
        waiting.await;
    }

    fn noop_context() -> std::task::Context<'static> {
        std::task::Context::from_waker(std::task::Waker::noop())
    }
}
