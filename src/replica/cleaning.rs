//! One pass of the cleaner over a partition's log, and what its failures mean.

use std::sync::Arc;
use std::time::Duration;

use super::cleaner::{Cleaner, Pick};
use super::housekeeping::Deleted;
use super::partition::{Partition, disk_failed};
use super::replicas::lock;
use crate::storage::{
    CleanError, CleanLimits, CleanOwner, CleanStats, Cleaned, DiskError, StorageError, clean,
};

/// Pauses for `log.cleaner.io.max.bytes.per.second` are no shorter, and none is longer, so that a
/// pass that is called off ends.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(200));

impl Cleaner {
    /// Cleans the log; `None`: not, or not to the end.
    pub(super) fn clean_log(&self, pick: &Pick) -> Option<CleanStats> {
        let partition = &pick.partition;
        // A start after a crash scans above the recovery points, and holes there are damage.
        self.replicas.write_checkpoints();
        let seen = partition.locked(|state, _| {
            let log = state.log.as_ref()?;
            Some((log.clean_view(), log.clean_order()))
        });
        let (view, order) = seen?;
        let mut owner = Owner { cleaner: self, partition };
        match clean(&view, &order, &pick.cleanable, &self.limits(partition), &mut owner) {
            Ok(stats) => {
                let (topic, index) = (&*partition.topic, partition.index);
                tracing::debug!(topic, index, ?stats, "log compacted");
                self.compacted(partition, stats.clean_until);
                Some(stats)
            }
            Err(CleanError::CalledOff) => None,
            Err(error @ CleanError::NoMemory) => {
                self.warn(&error.to_string());
                None
            }
            Err(CleanError::Disk(error)) => {
                if owner.is_wanted() {
                    self.disk_error(partition, error);
                }
                None
            }
        }
    }

    fn limits(&self, partition: &Partition) -> CleanLimits {
        let keys = self.keys.borrow().clone();
        let threads = i64::from(keys.threads.max(1));
        let io_bytes = i64::from(keys.io_buffer_size) / threads / 2;
        CleanLimits {
            map_bytes: u64::try_from(keys.dedupe_buffer_size / threads).unwrap_or(0),
            load_factor: keys.io_buffer_load_factor,
            io_bytes: usize::try_from(io_bytes).unwrap_or(0),
            delete_retention_ms: partition.config.load().delete_retention_ms,
            now_ms: self.replicas.env().clock.wall_ms(),
        }
    }

    /// A damaged log is given up, a failed disk goes offline, anything else is tried again.
    pub(super) fn disk_error(&self, partition: &Partition, error: DiskError) {
        let text = error.to_string();
        if error.is_damage() {
            return self.mark_uncleanable(partition, &text);
        }
        match disk_failed(&StorageError::Disk(error)) {
            Some(text) => self.replicas.directory_failed(partition, &text),
            None => self.warn(&text),
        }
    }

    fn warn(&self, error: &str) {
        let now = self.replicas.env().clock.now();
        if let Some(suppressed) = self.warnings.pass(now.0) {
            tracing::warn!(error, suppressed, "a log was not compacted, it is tried again");
        }
    }

    /// Waits as long as `log.cleaner.io.max.bytes.per.second` asks for, or a part of it.
    fn pay_for(&self, bytes: u64) -> Option<Duration> {
        let rate = self.keys.borrow().io_max_bytes_per_second.max(1.0);
        let price = bytes as f64 / rate;
        if price < 1e-9 {
            return None;
        }
        let now = self.replicas.env().clock.now();
        let mut paid_until = lock(&self.paid_until);
        *paid_until = (*paid_until).max(now) + Duration::try_from_secs_f64(price).ok()?;
        let owed = *paid_until - now;
        (owed >= PAUSES.0).then_some(owed)
    }
}

/// The pass's way back to its partition.
struct Owner<'a> {
    cleaner: &'a Cleaner,
    partition: &'a Arc<Partition>,
}

impl Owner<'_> {
    fn is_wanted(&self) -> bool {
        self.partition.config.load().cleanup_policy.compact
            && self.partition.locked(|state, _| state.log.is_some() && state.future.is_none())
    }
}

impl CleanOwner for Owner<'_> {
    fn goes_on(&mut self, bytes: u64) -> bool {
        let Some(mut owed) = self.cleaner.pay_for(bytes) else { return self.is_wanted() };
        // A pass runs on a thread of the blocking pool: there it may wait for the clock.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return self.is_wanted() };
        while self.is_wanted() {
            let pause = owed.min(PAUSES.1);
            runtime.block_on(self.cleaner.replicas.env().clock.sleep(pause));
            owed = owed.saturating_sub(pause);
            if owed.is_zero() {
                return true;
            }
        }
        false
    }

    fn swap_in(&mut self, cleaned: &Cleaned) -> Result<bool, DiskError> {
        let swapped = self.partition.locked(|state, _| {
            // A move goes by the segments as it found them.
            let log = state.log.as_mut().filter(|_| state.future.is_none());
            log.map_or(Ok(None), |log| log.swap_in(cleaned))
        })?;
        let Some(old) = swapped else { return Ok(false) };
        let delay_ms = self.partition.config.load().file_delete_delay_ms;
        let replicas = &self.cleaner.replicas;
        replicas.remove_later(self.partition.dir(), delay_ms, Deleted::Segments(old));
        Ok(true)
    }
}
