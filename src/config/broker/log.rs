//! Log directories and what the log engine does on its own. What is also a topic key stands in
//! `topic.rs`, except where the broker's key has another unit or no default.

use crate::config::table::config_keys;

config_keys! {
    /// `log.*` keys that are not simply defaults of topic keys.
    LogKeys;

    /// Where logs are, when `log.dirs` is not set.
    dir: Vec<String> = "/tmp/kafka-logs", NotEmptyList;
        key "log.dir", dynamic ReadOnly;
    /// Directories of the logs, separated by commas.
    dirs: Option<Vec<String>> = null, NotEmptyList;
        key "log.dirs", dynamic ReadOnly;
    /// Threads of each directory that open its logs at the start.
    recovery_threads: i32 = "2", AtLeast(1);
        key "num.recovery.threads.per.data.dir", dynamic ClusterWide;
    /// The log is synced when its oldest unsynced record is this old, in milliseconds; not set:
    /// `log.flush.scheduler.interval.ms`.
    flush_interval_ms: Option<i64> = null, Any;
        key "log.flush.interval.ms", dynamic ClusterWide;
    /// How often the flusher looks for logs to sync, in milliseconds.
    flush_scheduler_interval_ms: i64 = "9223372036854775807", Any;
        key "log.flush.scheduler.interval.ms", dynamic ReadOnly;
    /// Age in milliseconds at which segments are deleted; -1: never; not set: the minutes.
    retention_ms: Option<i64> = null, Any;
        key "log.retention.ms", dynamic ClusterWide;
    /// Age in minutes at which segments are deleted; not set: the hours.
    retention_minutes: Option<i32> = null, Any;
        key "log.retention.minutes", dynamic ReadOnly;
    /// Age in hours at which segments are deleted.
    retention_hours: i32 = "168", Any;
        key "log.retention.hours", dynamic ReadOnly;
    /// How often logs are looked through for segments to delete, in milliseconds.
    retention_check_interval_ms: i64 = "300000", AtLeast(1);
        key "log.retention.check.interval.ms", dynamic ReadOnly;
    /// How long after the start logs are first looked through, for segments to delete and for what
    /// to sync, in milliseconds.
    initial_task_delay_ms: i64 = "30000", AtLeast(0);
        key "log.initial.task.delay.ms", dynamic ReadOnly, internal;
    /// How often recovery points are written to disk at least, in milliseconds.
    flush_offset_checkpoint_interval_ms: i32 = "60000", AtLeast(0);
        key "log.flush.offset.checkpoint.interval.ms", dynamic ReadOnly;
    /// How often log starts are written to disk at least, in milliseconds.
    flush_start_offset_checkpoint_interval_ms: i32 = "60000", AtLeast(0);
        key "log.flush.start.offset.checkpoint.interval.ms", dynamic ReadOnly;
    /// Age in milliseconds at which a segment is rolled; not set: the hours.
    roll_ms: Option<i64> = null, Any;
        key "log.roll.ms", dynamic ClusterWide;
    /// Age in hours at which a segment is rolled.
    roll_hours: i32 = "168", AtLeast(1);
        key "log.roll.hours", dynamic ReadOnly;
    /// Random part of the age at which a segment is rolled, in milliseconds; not set: the hours.
    roll_jitter_ms: Option<i64> = null, Any;
        key "log.roll.jitter.ms", dynamic ClusterWide;
    /// Random part of the age at which a segment is rolled, in hours.
    roll_jitter_hours: i32 = "0", AtLeast(0);
        key "log.roll.jitter.hours", dynamic ReadOnly;
    /// How long a producer id is remembered after its last write, in milliseconds.
    producer_id_expiration_ms: i32 = "86400000", AtLeast(1);
        key "producer.id.expiration.ms", dynamic ClusterWide;
    /// How often expired producer ids are looked for, in milliseconds.
    producer_id_expiration_check_interval_ms: i32 = "600000", AtLeast(1);
        key "producer.id.expiration.check.interval.ms", dynamic ReadOnly, internal;
}

const HOUR_MS: i64 = 3_600_000;
const MINUTE_MS: i64 = 60_000;

impl LogKeys {
    /// The directories in use, at least one.
    pub fn directories(&self) -> &[String] {
        self.dirs.as_deref().unwrap_or(&self.dir)
    }

    /// A directory named twice is one directory.
    pub(in crate::config) fn drop_repeated(&mut self) {
        let lists = std::iter::once(&mut self.dir).chain(&mut self.dirs);
        for list in lists {
            let mut seen = Vec::new();
            list.retain(|dir| {
                let is_new = !seen.contains(dir);
                seen.push(dir.clone());
                is_new
            });
        }
    }

    pub(in crate::config) fn topic_flush_ms(&self) -> i64 {
        self.flush_interval_ms.unwrap_or(self.flush_scheduler_interval_ms)
    }

    pub(in crate::config) fn topic_retention_ms(&self) -> i64 {
        let minutes = self.retention_minutes.map(|minutes| i64::from(minutes) * MINUTE_MS);
        let hours = i64::from(self.retention_hours) * HOUR_MS;
        self.retention_ms.or(minutes).unwrap_or(hours).max(-1)
    }

    pub(in crate::config) fn topic_segment_ms(&self) -> i64 {
        self.roll_ms.unwrap_or(i64::from(self.roll_hours) * HOUR_MS)
    }

    pub(in crate::config) fn topic_segment_jitter_ms(&self) -> i64 {
        self.roll_jitter_ms.unwrap_or(i64::from(self.roll_jitter_hours) * HOUR_MS)
    }
}
