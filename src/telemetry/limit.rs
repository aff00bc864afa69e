//! A limit on warnings that a peer can cause as often as it likes.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Lets one line through per interval and counts those it held back.
///
/// ```
/// # use std::time::Duration;
/// # use ottla::telemetry::RateLimit;
/// let limit = RateLimit::per(Duration::from_secs(10));
/// let now = Duration::from_secs(5); // of the node's monotonic clock
/// if let Some(suppressed) = limit.pass(now) {
///     tracing::warn!(suppressed, "request frame refused, closing the connection");
/// }
/// ```
pub struct RateLimit {
    interval: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: Duration,
    suppressed: u64,
}

impl RateLimit {
    pub fn per(interval: Duration) -> Self {
        Self { interval, state: Mutex::default() }
    }

    /// `now`: monotonic, as in `env::Instant`. `Some(held back since the last line)` when a line
    /// may be written, `None` otherwise.
    pub fn pass(&self, now: Duration) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if now < state.next {
            state.suppressed += 1;
            return None;
        }
        state.next = now + self.interval;
        Some(std::mem::take(&mut state.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_passes_per_interval_and_says_how_many_were_held_back() {
        let limit = RateLimit::per(Duration::from_secs(10));
        #[rustfmt::skip]
        let table = [
            // at s  passes
            (0,      Some(0)),
            (1,      None),
            (9,      None),
            (10,     Some(2)),
            (19,     None),
            (100,    Some(1)),
        ];
        for (second, passes) in table {
            assert_eq!(limit.pass(Duration::from_secs(second)), passes, "at {second} s");
        }
    }
}
