//! The clock: monotonic time for deadlines, wall time for records.

use std::future::Future;
use std::ops::{Add, Sub};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point in monotonic time, counted from the clock's making; not comparable between clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(pub Duration);

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, later: Duration) -> Self {
        Self(self.0.saturating_add(later))
    }
}

impl Sub for Instant {
    type Output = Duration;
    /// Zero when `earlier` is in fact later.
    fn sub(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// Time. On the simulated side both clocks follow tokio's, which tests pause and advance.
#[derive(Clone)]
pub struct Clock {
    base: tokio::time::Instant,
    wall: Wall,
}

#[derive(Clone)]
enum Wall {
    System,
    Simulated { base_ms: i64 },
}

impl Clock {
    pub fn real() -> Self {
        Self { base: tokio::time::Instant::now(), wall: Wall::System }
    }

    /// Starts at `base_ms` of wall time and moves only as tokio's (paused) clock does.
    pub fn simulated(base_ms: i64) -> Self {
        Self { base: tokio::time::Instant::now(), wall: Wall::Simulated { base_ms } }
    }

    pub fn now(&self) -> Instant {
        Instant(self.base.elapsed())
    }

    /// Milliseconds since the Unix epoch.
    pub fn wall_ms(&self) -> i64 {
        match self.wall {
            Wall::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
            }
            Wall::Simulated { base_ms } => base_ms + self.now().0.as_millis() as i64,
        }
    }

    pub fn deadline_in(&self, wait: Duration) -> Instant {
        self.now() + wait
    }

    pub async fn sleep(&self, wait: Duration) {
        tokio::time::sleep(wait).await;
    }

    pub async fn sleep_until(&self, deadline: Instant) {
        tokio::time::sleep_until(self.base + deadline.0).await;
    }

    /// Runs `work` until `deadline`; `None` when the deadline came first.
    pub async fn until<F: Future>(&self, deadline: Instant, work: F) -> Option<F::Output> {
        tokio::time::timeout_at(self.base + deadline.0, work).await.ok()
    }
}
