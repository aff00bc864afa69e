//! Deadlines of groups: soft state, armed again by every leader for itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::types::{GroupId, MemberId};
use crate::env::Instant;

/// What a deadline is for; arming one again moves it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// The member has not been heard of.
    Session(GroupId, MemberId),
    /// Time for a member of a consumer group to give partitions back is over.
    Revoke(GroupId, MemberId),
    /// Time for a classic member of a consumer group to join again is over.
    ClassicJoin(GroupId, MemberId),
    /// Time for a classic member of a consumer group to fetch its assignment is over.
    ClassicSync(GroupId, MemberId),
    /// Time for members to join is over.
    Join(GroupId),
    /// Time for members to fetch their assignment is over.
    Sync(GroupId),
    /// Look for offsets to expire.
    Expiry,
}

/// All deadlines of one partition's groups.
#[derive(Debug, Default)]
pub struct Timers {
    by_due: BTreeSet<(Instant, Timer)>,
    due: BTreeMap<Timer, Instant>,
}

impl Timers {
    pub fn arm(&mut self, timer: Timer, at: Instant) {
        if let Some(before) = self.due.insert(timer.clone(), at) {
            let old = (before, timer);
            self.by_due.remove(&old);
            self.by_due.insert((at, old.1));
        } else {
            self.by_due.insert((at, timer));
        }
    }

    pub fn cancel(&mut self, timer: &Timer) {
        if let Some((timer, at)) = self.due.remove_entry(timer) {
            self.by_due.remove(&(at, timer));
        }
    }

    pub fn has(&self, timer: &Timer) -> bool {
        self.due.contains_key(timer)
    }

    /// Consumes `timer` if it is still due at `at`: neither cancelled nor moved since it was seen.
    pub fn fire(&mut self, timer: &Timer, at: Instant) -> bool {
        let fires = self.due.get(timer) == Some(&at);
        if fires {
            self.cancel(timer);
        }
        fires
    }

    /// At most `limit` deadlines that have passed; they stay until [`Timers::fire`].
    pub fn passed(&self, now: Instant, limit: usize) -> Vec<(Timer, Instant)> {
        let passed = self.by_due.iter().take_while(|(at, _)| *at <= now).take(limit);
        passed.map(|(at, timer)| (timer.clone(), *at)).collect()
    }

    pub fn next(&self) -> Option<Instant> {
        self.by_due.first().map(|(at, _)| *at)
    }
}

/// A client's timeout; a negative one is over at once, as in Kafka.
pub fn millis(timeout_ms: i32) -> Duration {
    Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant(Duration::from_millis(ms))
    }

    #[test]
    fn a_moved_or_cancelled_deadline_does_not_fire() {
        let (mut timers, join) = (Timers::default(), Timer::Join("g".into()));
        timers.arm(join.clone(), at(10));
        timers.arm(Timer::Expiry, at(20));
        assert_eq!(timers.passed(at(15), 9), [(join.clone(), at(10))]);
        timers.arm(join.clone(), at(30));
        assert!(!timers.fire(&join, at(10)), "moved");
        assert_eq!(timers.next(), Some(at(20)));
        assert!(timers.fire(&Timer::Expiry, at(20)));
        assert!(!timers.fire(&Timer::Expiry, at(20)), "once");
        timers.cancel(&join);
        assert!(!timers.fire(&join, at(30)), "cancelled");
        assert_eq!(timers.next(), None);
    }
}
