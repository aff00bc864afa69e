//! What happens to logs by themselves: old segments go, checkpoints are written, silent producers
//! are forgotten, logs are flushed by age. One task per node; it takes a partition's lock only for
//! short steps.

use std::sync::Arc;
use std::time::Duration;

use super::flusher::Until;
use super::partition::{Partition, disk_failed};
use super::replicas::{Dir, Replicas, lock};
use crate::common::Offset;
use crate::config::TopicConfig;
use crate::env::Instant;
use crate::storage::{CheckpointRow, DeletedLog, DeletedSegments, Log, SegmentInfo, StorageError};

/// How often each kind of work is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intervals {
    /// `log.initial.task.delay.ms`: before the first retention and flush.
    pub initial_delay: Duration,
    /// `log.retention.check.interval.ms`
    pub retention: Duration,
    /// `replica.high.watermark.checkpoint.interval.ms`
    pub checkpoints: Duration,
    /// `producer.id.expiration.check.interval.ms`
    pub producers: Duration,
    /// `log.flush.scheduler.interval.ms`; `None`: never.
    pub flush: Option<Duration>,
}

/// When each kind of work is due next.
struct Schedule {
    every: Intervals,
    retention: Instant,
    checkpoints: Instant,
    producers: Instant,
    flush: Option<Instant>,
}

impl Schedule {
    fn new(every: Intervals, start: Instant) -> Self {
        let after_delay = start + every.initial_delay;
        Self {
            every,
            retention: after_delay,
            checkpoints: start + every.checkpoints,
            producers: start + every.producers,
            flush: every.flush.map(|_| after_delay),
        }
    }

    fn next(&self) -> Instant {
        let next = self.retention.min(self.checkpoints).min(self.producers);
        self.flush.map_or(next, |flush| next.min(flush))
    }

    /// What is due now; each is due again an interval later.
    fn take(&mut self, now: Instant) -> Work {
        let due = |at: &mut Instant, interval: Duration| {
            let is_due = *at <= now;
            if is_due {
                *at = now + interval;
            }
            is_due
        };
        let every = self.every;
        let flush = self.flush.as_mut().zip(every.flush);
        Work {
            retention: due(&mut self.retention, every.retention),
            checkpoints: due(&mut self.checkpoints, every.checkpoints),
            producers: due(&mut self.producers, every.producers),
            flush: flush.is_some_and(|(at, interval)| due(at, interval)),
        }
    }
}

impl Replicas {
    /// Runs until dropped.
    pub async fn keep_house(self: Arc<Self>, every: Intervals) {
        let clock = self.env().clock.clone();
        let mut schedule = Schedule::new(every, clock.now());
        loop {
            let next = self.next_removal().map_or(schedule.next(), |at| at.min(schedule.next()));
            // Woken early when files were deleted, which may be due sooner.
            let _ = clock.until(next, self.deletions.notified()).await;
            let work = schedule.take(clock.now());
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
            self.make_missing_logs();
        }
        self.remove_deleted();
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

    /// One round of retention over all replicas: by time, by size, below the log start. The files
    /// go after `file.delete.delay.ms`.
    pub fn delete_old_segments(&self, now_ms: i64) {
        for partition in self.partitions() {
            match partition.delete_old_segments(now_ms) {
                Ok(deleted) if deleted.is_empty() => {}
                Ok(deleted) => {
                    let delay_ms = partition.config.load().file_delete_delay_ms;
                    self.remove_later(partition.dir(), delay_ms, Deleted::Segments(deleted));
                }
                Err(error) => {
                    if let Some(error) = disk_failed(&error) {
                        self.directory_failed(&partition, &error);
                    }
                }
            }
        }
    }

    /// Writes down where each log starts, what is committed and what is durable.
    pub fn write_checkpoints(&self) {
        let partitions = self.partitions();
        for (at, dir) in self.dirs.iter().enumerate() {
            if self.is_offline(at) {
                continue;
            }
            let row = |partition: &Arc<Partition>| partition.checkpoint_row(at);
            if let Err(error) = dir.logs.write_checkpoints(partitions.iter().filter_map(row)) {
                self.not_done(at, &error);
            }
        }
    }
}

/// What is out of its log or directory, and still has files.
pub(super) enum Deleted {
    Log(DeletedLog),
    Segments(DeletedSegments),
}

impl Replicas {
    /// Removes files `delay_ms` from now.
    pub(super) fn remove_later(&self, dir: usize, delay_ms: i64, deleted: Deleted) {
        let delay = Duration::from_millis(u64::try_from(delay_ms).unwrap_or(0));
        let due = self.env().clock.deadline_in(delay);
        lock(&self.dirs[dir].deleted).push((due, deleted));
        self.deletions.notify_one();
    }

    fn next_removal(&self) -> Option<Instant> {
        let of_dir = |dir: &Dir| lock(&dir.deleted).iter().map(|(due, _)| *due).min();
        self.dirs.iter().filter_map(of_dir).min()
    }

    /// Removes what was deleted long enough ago.
    pub(super) fn remove_deleted(&self) {
        let now = self.env().clock.now();
        for (at, dir) in self.dirs.iter().enumerate() {
            let due: Vec<Deleted> = {
                let mut deleted = lock(&dir.deleted);
                deleted.extract_if(.., |(due, _)| *due <= now).map(|(_, files)| files).collect()
            };
            for deleted in due {
                let removed = match deleted {
                    Deleted::Log(log) => dir.logs.remove(&log),
                    Deleted::Segments(segments) => segments.remove(),
                };
                if let Err(error) = removed {
                    self.not_done(at, &error);
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

    /// Takes out the segments that retention lets go.
    pub(super) fn delete_old_segments(&self, now_ms: i64) -> Result<DeletedSegments, StorageError> {
        let config = self.config.load();
        self.locked(|state, _| {
            let high_watermark = state.high_watermark;
            let Some(log) = &mut state.log else { return Ok(DeletedSegments::default()) };
            let (until, active_too) = deletable_until(log, high_watermark, &config, now_ms)?;
            if active_too {
                log.roll(now_ms)?;
            }
            Ok(log.delete_segments_below(until)?)
        })
    }
}

/// Segments that end at or below the result may go, all from the oldest on and never one that is
/// not committed: those below the log start, but not the active one; with the policy `delete` then
/// those over the size, then those too old, the active one too (the second value).
fn deletable_until(
    log: &Log,
    high_watermark: Offset,
    config: &TopicConfig,
    now_ms: i64,
) -> Result<(Offset, bool), StorageError> {
    let segments = log.segments();
    let mut until = log.start_offset();
    let below = segments.partition_point(|s| !s.is_active && s.next_base_offset <= until);
    let committed = |segment: &&SegmentInfo| segment.next_base_offset <= high_watermark;
    let mut left = segments[below..].iter().take_while(committed).peekable();
    if !config.cleanup_policy.delete {
        return Ok((until, false));
    }
    let mut active_too = false;
    if let Ok(most) = u64::try_from(config.retention_bytes) {
        let size_bytes: u64 = segments[below..].iter().map(|segment| segment.size_bytes).sum();
        let mut too_much = size_bytes.saturating_sub(most);
        while let Some(over) = left.next_if(|segment| segment.size_bytes <= too_much) {
            too_much -= over.size_bytes;
            (until, active_too) = (over.next_base_offset, over.is_active);
        }
    }
    if config.retention_ms >= 0 {
        for segment in left {
            let newest = log.newest_of_segment(segment.base_offset)?;
            if newest.is_none_or(|at| now_ms.saturating_sub(at) <= config.retention_ms) {
                break;
            }
            (until, active_too) = (segment.next_base_offset, segment.is_active);
        }
    }
    Ok((until, active_too))
}
