//! Following the image: topics come and go, leaders change, configs reach running partitions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arc_swap::ArcSwap;

use super::directories::{NO_DIR, Unclaimed};
use super::flusher::{self, Until, Wanted};
use super::housekeeping::Deleted;
use super::partition::{FutureLog, Partition, Role};
use super::replicas::{OwnedLog, Replicas, Topics};
use super::topics::{Slot, Topic, TopicCounters};
use crate::common::{TopicId, TopicPartition};
use crate::config::TopicConfig;
use crate::metadata::{self, ConfigKind, Delta, Image, PartitionChange};
use crate::storage::{DeletedLog, Log, LogConfig};

impl Replicas {
    /// One step of the image. Not to be called from two threads at once.
    pub fn publish(self: &Arc<Self>, delta: &Delta) {
        let mut unclaimed = self.publishing();
        let mut topics = Topics::clone(&self.topics.load());
        for deleted in delta.deleted() {
            if let Some(topic) = topics.by_id.remove(&deleted.id) {
                // The name may be another topic's by now.
                if topics.by_name.get(&topic.name).is_some_and(|now| now.id == topic.id) {
                    topics.by_name.remove(&topic.name);
                }
                self.drop_topic(&topic);
            }
        }
        let mut changed: BTreeMap<TopicId, Vec<Slot>> = BTreeMap::new();
        for change in delta.partitions() {
            let topic = match topics.by_id.get(&change.topic.id) {
                Some(topic) => topic.clone(),
                None => self.add_topic(&mut topics, change.topic, &delta.after),
            };
            let slots = changed.entry(topic.id).or_insert_with(|| Vec::clone(&topic.slots()));
            self.change(&topic, slots, &change, &mut unclaimed, delta.before.end_offset == 0);
        }
        for (id, slots) in changed {
            if let Some(topic) = topics.by_id.get(&id) {
                topic.set_slots(slots);
            }
        }
        self.topics.store(Arc::new(topics));
        for resource in delta.configs().filter(|resource| resource.kind == ConfigKind::Topic) {
            if let Some(topic) = self.topic(&resource.name) {
                self.configure(&topic, &delta.after);
            }
        }
        if delta.before.end_offset == 0 && !unclaimed.found.is_empty() {
            let strays = unclaimed.found.len();
            tracing::warn!(strays, "logs that no topic claims are left alone");
        }
        if self.dirs_changed.swap(false, Ordering::AcqRel) {
            self.sync_dirs_soon();
        }
        self.drop_logs_of_failed_dirs();
        self.metrics().partitions.set(self.partitions().len() as i64);
    }

    /// The broker's own defaults for topics have changed.
    pub fn set_topic_defaults(&self, defaults: TopicConfig, image: &Image) {
        let _one_at_a_time = self.publishing();
        self.defaults.store(Arc::new(defaults));
        for topic in self.topics.load().by_id.values() {
            self.configure(topic, image);
        }
    }

    fn add_topic(&self, topics: &mut Topics, topic: &metadata::Topic, image: &Image) -> Arc<Topic> {
        let config = self.resolved(&topic.name, image);
        let counters = TopicCounters::new(self.metrics(), &topic.name);
        let topic = Arc::new(Topic::new(topic.name.clone(), topic.id, config, counters));
        topics.by_name.insert(topic.name.clone(), topic.clone());
        topics.by_id.insert(topic.id, topic.clone());
        topic
    }

    /// What holds for a topic: its own values over the broker's.
    fn resolved(&self, name: &str, image: &Image) -> TopicConfig {
        let defaults = self.defaults.load();
        let Some(own) = image.topic_configs(name) else { return TopicConfig::clone(&defaults) };
        let own = own.iter().map(|(key, value)| (&**key, &**value));
        defaults.with(own).unwrap_or_else(|error| {
            // The controller checked the values; another version may have had other rules.
            tracing::warn!(topic = name, %error, "topic config ignored");
            TopicConfig::clone(&defaults)
        })
    }

    fn configure(&self, topic: &Topic, image: &Image) {
        let config = self.resolved(&topic.name, image);
        let of_log = Arc::new(log_config(&config));
        topic.config.store(Arc::new(config));
        for partition in topic.here() {
            partition.reconfigured(&of_log);
            self.flush_what_waits(&partition);
        }
    }

    /// Records that a crash or another config left unflushed count only once they are flushed;
    /// nobody may write here for a long time.
    fn flush_what_waits(&self, partition: &Arc<Partition>) {
        if partition.waits_for_flush() {
            self.flush_soon(partition, Until::End);
        }
    }

    /// Before the ports open, so that nobody sees a high watermark below what was acknowledged.
    pub async fn flush_what_a_crash_left(self: &Arc<Self>) {
        let mut waiting = self.partitions();
        waiting.retain(|partition| partition.waits_for_flush());
        if waiting.is_empty() {
            return;
        }
        let replicas = self.clone();
        let flushed = self.env().tasks.spawn_blocking(move || replicas.flush_now(waiting)).await;
        if let Err(error) = flushed {
            tracing::error!(%error, "logs that a crash left were not flushed");
        }
    }

    fn flush_now(&self, partitions: Vec<Arc<Partition>>) {
        let mut by_dir: BTreeMap<usize, Vec<Wanted>> = BTreeMap::new();
        for partition in partitions {
            by_dir.entry(partition.dir()).or_default().push((partition, Until::End));
        }
        for wanted in by_dir.values() {
            let stopped = flusher::flush(&self.env().files, wanted, &self.on_failure());
            stopped.iter().for_each(|(partition, until)| self.flush_soon(partition, *until));
        }
    }

    fn change(
        &self,
        topic: &Arc<Topic>,
        slots: &mut Vec<Slot>,
        change: &PartitionChange<'_>,
        unclaimed: &mut Unclaimed,
        is_start: bool,
    ) {
        let Ok(at) = usize::try_from(change.index) else { return };
        let elsewhere =
            Slot::Elsewhere { leader: change.after.leader, epoch: change.after.leader_epoch };
        if slots.len() <= at {
            slots.resize(at + 1, elsewhere.clone());
        }
        let mine = change.after.replicas.contains(&self.config.node);
        match (&slots[at], mine) {
            (Slot::Here(partition), true) => {
                self.lead_or_follow(partition, change);
            }
            (Slot::Here(partition), false) => {
                self.drop_replica(partition);
                slots[at] = elsewhere;
            }
            (Slot::Elsewhere { .. }, true) => {
                let partition = self.make_replica(topic, change, unclaimed, is_start);
                self.lead_or_follow(&partition, change);
                slots[at] = Slot::Here(partition);
            }
            (Slot::Elsewhere { .. }, false) => slots[at] = elsewhere,
        }
    }

    fn lead_or_follow(&self, partition: &Arc<Partition>, change: &PartitionChange<'_>) {
        let role = Role::of(change.after, self.config.node);
        let home = self.dirs.get(partition.dir()).map(|dir| dir.logs.directory_id());
        if home.is_some_and(|home| home != role.directory) {
            self.moves_due.notify_one();
        }
        partition.lead_or_follow(role);
        self.flush_what_waits(partition);
    }

    /// The log that is on disk, or a new one.
    fn make_replica(
        &self,
        topic: &Arc<Topic>,
        change: &PartitionChange<'_>,
        unclaimed: &mut Unclaimed,
        is_start: bool,
    ) -> Arc<Partition> {
        let name = TopicPartition { topic: topic.name.clone(), partition: change.index };
        let node = self.config.node;
        let assigned = Role::of(change.after, node).directory;
        let claimed = self.claim(&name, topic, assigned, unclaimed);
        let (dir, log, high_watermark) = match claimed.log {
            Some(found) => {
                found.log.config.store(Arc::new(log_config(&topic.config.load())));
                (found.dir, Some(found.log), found.high_watermark)
            }
            None if self.may_be_offline(assigned, is_start) => (NO_DIR, None, 0),
            None => {
                let asked = unclaimed.preferred.remove(&name);
                let (dir, log) = self.create_log(topic, &name, self.dir_for(assigned, asked));
                (dir, log, 0)
            }
        };
        let log = log.filter(|_| !self.is_offline(dir));
        let partition = Partition::new(topic, change.index, node, (dir, log), high_watermark);
        if let Some(mut found) = claimed.future {
            found.log.log.share_config(partition.log_config.clone());
            let future = FutureLog { dir: found.dir, log: found.log.log, caught_up: false };
            partition.locked(|state, _| state.future = Some(future));
            self.moves_due.notify_one();
        }
        Arc::new(partition)
    }

    /// `None`: the directory failed, or is full; then housekeeping tries again.
    fn create_log(
        &self,
        topic: &Topic,
        name: &TopicPartition,
        dir: usize,
    ) -> (usize, Option<OwnedLog>) {
        let config = Arc::new(ArcSwap::from_pointee(log_config(&topic.config.load())));
        let now_ms = self.env().clock.wall_ms();
        match self.dirs[dir].logs.create_log(name, topic.id, config.clone(), now_ms) {
            Ok(log) => {
                self.dirs[dir].held.fetch_add(1, Ordering::Relaxed);
                self.dirs_changed.store(true, Ordering::Release);
                (dir, Some(OwnedLog { log, config }))
            }
            Err(error) => {
                self.not_done(dir, &error);
                (dir, None)
            }
        }
    }

    fn drop_topic(&self, topic: &Arc<Topic>) {
        topic.set_gone();
        for partition in topic.here() {
            self.drop_replica(&partition);
        }
        self.metrics().forget_topic(&topic.name);
    }

    fn drop_replica(&self, partition: &Partition) {
        self.forget_gauges(partition);
        let left = partition.leave(true);
        let future = left.future.map(|future| (future.dir, future.log));
        let log = left.log.map(|log| (left.dir, log));
        for (dir, log) in log.into_iter().chain(future) {
            self.delete_log(&partition.name(), dir, &log);
        }
    }

    /// Takes the log out of its directory; its files go after `file.delete.delay.ms`.
    pub(super) fn delete_log(&self, name: &TopicPartition, dir: usize, log: &Log) {
        match self.dirs[dir].logs.delete_log(name, log) {
            Ok(deleted) => {
                // The broker's delay, as in Kafka: the topic's config is gone with it.
                let delay_ms = self.defaults.load().file_delete_delay_ms;
                self.log_left(dir, delay_ms, deleted);
            }
            Err(error) => self.not_done(dir, &error),
        }
    }

    /// Makes the logs that a full disk did not take when their partitions came.
    pub(super) fn make_missing_logs(&self) {
        let _one_at_a_time = self.publishing();
        for topic in self.topics.load().by_id.values() {
            for partition in topic.here() {
                let dir = partition.dir();
                if !partition.lacks_log() || self.is_offline(dir) {
                    continue;
                }
                let of_log = Arc::new(log_config(&topic.config.load()));
                let (logs, config) = (&self.dirs[dir].logs, partition.of_log(of_log));
                let now_ms = self.env().clock.wall_ms();
                match logs.create_log(&partition.name(), topic.id, config, now_ms) {
                    Ok(log) => {
                        self.dirs[dir].held.fetch_add(1, Ordering::Relaxed);
                        partition.take_log(log);
                    }
                    Err(error) => return self.not_done(dir, &error),
                }
            }
        }
        self.sync_dirs();
    }

    /// A log is out of its directory; its files go later.
    pub(super) fn log_left(&self, dir: usize, delay_ms: i64, deleted: DeletedLog) {
        self.dirs[dir].held.fetch_sub(1, Ordering::Relaxed);
        self.dirs_changed.store(true, Ordering::Release);
        self.remove_later(dir, delay_ms, Deleted::Log(deleted));
    }

    /// A directory may have failed between the making of a replica and its showing.
    fn drop_logs_of_failed_dirs(&self) {
        for dir in (0..self.dirs.len()).filter(|dir| self.is_offline(*dir)) {
            self.partitions().iter().for_each(|partition| partition.lost_dir(dir));
        }
    }

    /// Directory entries made or renamed by this step reach the disk soon, not on this thread.
    fn sync_dirs_soon(self: &Arc<Self>) {
        let replicas = self.clone();
        drop(self.env().tasks.spawn_blocking(move || replicas.sync_dirs()));
    }

    fn sync_dirs(&self) {
        for (at, dir) in self.dirs.iter().enumerate() {
            if let Err(error) = dir.logs.sync_created() {
                self.fail_dir(at, &error.to_string());
            }
        }
    }
}

/// What the log engine needs of a topic's config.
pub(super) fn log_config(config: &TopicConfig) -> LogConfig {
    let size = |bytes: i32| u32::try_from(bytes).unwrap_or(0);
    LogConfig {
        segment_bytes: size(config.segment_size_bytes()),
        segment_ms: config.segment_ms,
        segment_jitter_ms: config.segment_jitter_ms,
        segment_index_bytes: size(config.segment_index_bytes),
        index_interval_bytes: size(config.index_interval_bytes),
        compacted: config.cleanup_policy.compact,
    }
}

#[cfg(test)]
#[path = "publish_tests.rs"]
mod tests;
