//! What happens to logs by themselves: old segments go, checkpoints are written, silent producers
//! are forgotten, logs are flushed by age. One task per node; it takes a partition's lock only for
//! short steps.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::flusher::Until;
use super::partition::{Partition, disk_failed};
use super::replicas::{Replicas, lock};
use crate::common::Offset;
use crate::config::TopicConfig;
use crate::env::Instant;
use crate::storage::{CheckpointRow, DeletedLog, Log, StorageError};

/// How often each kind of work is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intervals {
    /// `log.retention.check.interval.ms`
    pub retention: Duration,
    /// `replica.high.watermark.checkpoint.interval.ms`
    pub checkpoints: Duration,
    /// `producer.id.expiration.check.interval.ms`
    pub producers: Duration,
    /// `log.flush.scheduler.interval.ms`; `None`: never.
    pub flush: Option<Duration>,
}

impl Replicas {
    /// Runs until dropped.
    pub async fn keep_house(self: Arc<Self>, every: Intervals) {
        let clock = self.env().clock.clone();
        let far = Duration::from_secs(u64::from(u32::MAX));
        let first = |interval: Duration| clock.deadline_in(interval);
        let mut retention = first(every.retention);
        let mut checkpoints = first(every.checkpoints);
        let mut producers = first(every.producers);
        let mut flush = first(every.flush.unwrap_or(far));
        loop {
            let next = retention.min(checkpoints).min(producers).min(flush);
            clock.sleep_until(next).await;
            let now = clock.now();
            let due = |at: &mut Instant, interval: Duration| {
                let is_due = *at <= now;
                if is_due {
                    *at = now + interval;
                }
                is_due
            };
            let work = Work {
                retention: due(&mut retention, every.retention),
                checkpoints: due(&mut checkpoints, every.checkpoints),
                producers: due(&mut producers, every.producers),
                flush: due(&mut flush, every.flush.unwrap_or(far)),
            };
            let replicas = self.clone();
            let done = self.env().tasks.spawn_blocking(move || replicas.tidy_up(work)).await;
            if let Err(error) = done {
                tracing::error!(%error, "log housekeeping failed");
            }
        }
    }

    fn tidy_up(self: &Arc<Self>, work: Work) {
        let now_ms = self.env().clock.wall_ms();
        if work.retention {
            self.delete_old_segments(now_ms);
        }
        if work.producers {
            for partition in self.partitions() {
                partition.locked(|state, _| {
                    if let Some(log) = &mut state.log {
                        log.expire_producers(now_ms);
                    }
                });
            }
        }
        if work.flush {
            for partition in self.partitions() {
                if partition.locked(|state, _| state.unflushed_records > 0) {
                    self.flush_soon(&partition, Until::End);
                }
            }
        }
        if work.checkpoints {
            self.write_checkpoints();
            self.remove_deleted();
        }
    }

    /// Drops what [`Replicas::measure`] set for a replica that is no longer here.
    pub(super) fn forget_gauges(&self, partition: &Partition) {
        let (metrics, index) = (self.metrics(), partition.index.to_string());
        let gauges = [
            &metrics.log_size,
            &metrics.log_start_offset,
            &metrics.log_end_offset,
            &metrics.log_segments,
        ];
        for gauge in gauges {
            // An error says that it was never set.
            let _ = gauge.remove_label_values(&[&*partition.topic, index.as_str()]);
        }
    }

    /// Sets the gauges of replicas, for a scrape.
    pub(super) fn measure(&self) {
        let metrics = self.metrics();
        let mut sums = Sums::default();
        for partition in self.partitions() {
            let config = partition.config.load();
            let index = partition.index.to_string();
            let labels = [&*partition.topic, index.as_str()];
            partition.locked(|state, _| {
                if state.role.leads {
                    let (in_sync, needed) = (state.role.isr.len(), state.in_sync_needed(&config));
                    sums.leaders += 1;
                    sums.under_replicated += i64::from(in_sync < state.role.replicas);
                    sums.under_min_isr += i64::from(in_sync < needed);
                }
                let Some(log) = &state.log else {
                    sums.offline += 1;
                    return;
                };
                sums.producers += log.producers().iter().count() as i64;
                metrics.log_size.with_label_values(&labels).set(log.size_bytes() as i64);
                metrics.log_start_offset.with_label_values(&labels).set(log.start_offset());
                metrics.log_end_offset.with_label_values(&labels).set(log.end_offset());
                metrics.log_segments.with_label_values(&labels).set(log.segment_count() as i64);
            });
        }
        metrics.leaders.set(sums.leaders);
        metrics.under_replicated.set(sums.under_replicated);
        metrics.under_min_isr.set(sums.under_min_isr);
        metrics.offline_replicas.set(sums.offline);
        metrics.producer_ids.set(sums.producers);
        metrics.fetch_sessions.set(self.sessions().count() as i64);
        metrics.fetch_session_partitions.set(self.sessions().partitions() as i64);
    }

    /// One round of retention over all replicas: by time, by size, below the log start.
    pub fn delete_old_segments(&self, now_ms: i64) {
        for partition in self.partitions() {
            if let Err(error) = partition.delete_old_segments(now_ms)
                && let Some(error) = disk_failed(&error)
            {
                self.directory_failed(&partition, &error);
            }
        }
    }

    /// Writes down where each log starts, what is committed and what is durable.
    pub fn write_checkpoints(&self) {
        let partitions = self.partitions();
        for (at, dir) in self.dirs.iter().enumerate() {
            if dir.offline.load(Ordering::Acquire) {
                continue;
            }
            let row = |partition: &Arc<Partition>| partition.checkpoint_row(at);
            let rows: Vec<CheckpointRow> = partitions.iter().filter_map(row).collect();
            if let Err(error) = dir.logs.write_checkpoints(&rows) {
                self.fail_dir(at, &error.to_string());
            }
        }
    }
}

impl Replicas {
    /// Removes the files of deleted logs whose delay is over.
    fn remove_deleted(&self) {
        let now = self.env().clock.now();
        for (at, dir) in self.dirs.iter().enumerate() {
            let due: Vec<DeletedLog> = {
                let mut deleted = lock(&dir.deleted);
                deleted.extract_if(.., |(due, _)| *due <= now).map(|(_, log)| log).collect()
            };
            for log in due {
                if let Err(error) = dir.logs.remove(&log) {
                    self.fail_dir(at, &error.to_string());
                }
            }
        }
    }
}

/// Sums over all replicas.
#[derive(Default)]
struct Sums {
    leaders: i64,
    under_replicated: i64,
    under_min_isr: i64,
    offline: i64,
    producers: i64,
}

/// What is due.
#[derive(Clone, Copy)]
struct Work {
    retention: bool,
    checkpoints: bool,
    producers: bool,
    flush: bool,
}

impl Partition {
    /// Of the log in directory `dir`, be it a future one: it has no other there.
    fn checkpoint_row(&self, dir: usize) -> Option<CheckpointRow> {
        self.locked(|state, _| {
            let future = state.future.as_ref().filter(|future| future.dir == dir);
            let log = match future {
                Some(future) => &future.log,
                None => state.log.as_ref().filter(|_| self.dir() == dir)?,
            };
            Some(log.checkpoint_row(self.name(), state.high_watermark))
        })
    }

    /// Deletes the segments that retention lets go; returns how many.
    pub(super) fn delete_old_segments(&self, now_ms: i64) -> Result<usize, StorageError> {
        let config = self.config.load();
        self.locked(|state, _| {
            let high_watermark = state.high_watermark;
            let Some(log) = &mut state.log else { return Ok(0) };
            if config.cleanup_policy.delete && active_is_old(log, high_watermark, &config, now_ms)?
            {
                log.roll(now_ms)?;
            }
            let until = deletable_until(log, high_watermark, &config, now_ms)?;
            Ok(log.delete_segments_below(until)?)
        })
    }
}

/// Segments that end at or below the result may go: always those below the log start; with the
/// policy `delete` also those too old, or over the size, all from the oldest on and never one that
/// is not committed.
fn deletable_until(
    log: &Log,
    high_watermark: Offset,
    config: &TopicConfig,
    now_ms: i64,
) -> Result<Offset, StorageError> {
    let segments = log.sealed_segments()?;
    let mut until = log.start_offset();
    if !config.cleanup_policy.delete {
        return Ok(until);
    }
    let mut too_much = match config.retention_bytes {
        most @ 0.. => log.size_bytes().saturating_sub(most as u64),
        _ => 0,
    };
    for segment in segments {
        if segment.next_base_offset > high_watermark {
            break;
        }
        let old = config.retention_ms >= 0
            && segment.max_timestamp >= 0
            && now_ms.saturating_sub(segment.max_timestamp) > config.retention_ms;
        let over = too_much > 0 && too_much >= segment.size_bytes;
        let below_start = segment.next_base_offset <= until;
        if !(old || over || below_start) {
            break;
        }
        too_much = too_much.saturating_sub(segment.size_bytes);
        until = until.max(segment.next_base_offset);
    }
    Ok(until)
}

/// Whether everything in the log is too old: then the active segment is rolled and goes too.
fn active_is_old(
    log: &Log,
    high_watermark: Offset,
    config: &TopicConfig,
    now_ms: i64,
) -> Result<bool, StorageError> {
    let committed =
        log.end_offset() <= high_watermark && log.end_offset() > log.active_base_offset();
    if config.retention_ms < 0 || !committed {
        return Ok(false);
    }
    let newest = log.max_timestamp()?.map(|found| found.timestamp);
    Ok(newest.is_some_and(|newest| now_ms.saturating_sub(newest) > config.retention_ms))
}
