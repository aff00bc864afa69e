//! Opening a log directory at the start: every log in it, by as many threads as are allowed.

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::checkpoint::{CLEANER, LOG_START, RECOVERY_POINT, REPLICATION};
use super::error::{At, DiskError, StorageError};
use super::load::Opening;
use super::log::{Log, LogConfig};
use super::log_dir::{DeletedLog, FAILED, LogDir, read};
use super::names::{DirName, PARTITION_METADATA, Place, parse_dir};
use super::small_files::{
    CLEAN_SHUTDOWN, CleanShutdown, decode_partition_metadata, is_torn_partition_metadata,
};
use crate::common::{Offset, TopicId, TopicPartition};
use crate::env::on_each;

/// What opening the logs of a directory needs to know.
pub struct Loading<'a> {
    /// The epoch that this broker registered with last: only a clean mark of that epoch is
    /// trusted, since the removal of an older one may have been lost in a crash.
    pub last_broker_epoch: Option<i64>,
    pub now_ms: i64,
    /// `num.recovery.threads.per.data.dir`; with 1 the logs are opened one after another.
    pub threads: usize,
    pub config: &'a dyn Fn(&TopicPartition) -> Arc<ArcSwap<LogConfig>>,
}

/// A log as found on disk.
pub struct LoadedLog {
    pub partition: TopicPartition,
    /// `None` when its file is missing or empty.
    pub topic_id: Option<TopicId>,
    pub log: Log,
    /// As checkpointed, within the log.
    pub high_watermark: Offset,
    /// Copied here by a move that is not over.
    pub is_future: bool,
}

/// What a directory holds.
pub struct Loaded {
    pub logs: Vec<LoadedLog>,
    /// No log had to be scanned.
    pub clean: bool,
    /// Left by deletions; to be removed in the background.
    pub deleted: Vec<DeletedLog>,
}

impl LogDir {
    /// Opens all logs. The clean mark is taken away: from here on a stop is unclean until
    /// [`LogDir::close_clean`]. No fsync after a clean stop.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn load(&self, loading: &Loading<'_>) -> Result<Loaded, StorageError> {
        let loaded = self.load_all(loading).and_then(|mut loaded| {
            self.see_to_failure(&mut loaded.logs)?;
            Ok(loaded)
        });
        loaded.inspect_err(|_| self.note_failure())
    }

    /// After a failure the page cache may show what the disk does not have, and no fsync would
    /// change that; what is written anew reaches the disk.
    fn see_to_failure(&self, logs: &mut [LoadedLog]) -> Result<(), StorageError> {
        let path = self.path.join(FAILED);
        if !self.shared.files.exists(&path) {
            return Ok(());
        }
        tracing::warn!(dir = %self.path.display(), "the directory failed, its unsynced logs are written anew");
        for found in logs {
            if let Some(id) = found.topic_id {
                self.set_topic_id(&mut found.log, id)?;
            }
            found.log.write_anew()?;
            found.log.flush()?;
        }
        self.shared.files.remove_file(&path).at("remove", &path)?;
        Ok(())
    }

    fn load_all(&self, loading: &Loading<'_>) -> Result<Loaded, StorageError> {
        let clean = self.take_clean_mark(loading.last_broker_epoch)?;
        // No checkpoint was due yet, and the cleaner has one written before it begins.
        let has = |name: &str| self.shared.files.exists(&self.path.join(name));
        let is_young = !has(RECOVERY_POINT) && !has(CLEANER);
        let recovery_points = self.read_checkpoint(RECOVERY_POINT)?;
        let recovery_point = |partition: &TopicPartition| match recovery_points.get(partition) {
            Some(offset) => Some(*offset),
            // A log that the checkpoint does not name yet is younger than it.
            None if self.written().contains_key(RECOVERY_POINT) || is_young => Some(0),
            None => None,
        };
        let start_offsets = self.read_checkpoint(LOG_START)?;
        let high_watermarks = self.read_checkpoint(REPLICATION)?;
        let mut loaded = Loaded { logs: Vec::new(), clean, deleted: Vec::new() };
        let mut openings = Vec::new();
        for entry in self.shared.files.list(&self.path).at("list", &self.path)? {
            let dir = self.path.join(&entry.name);
            let (partition, is_future) = match parse_dir(&entry.name) {
                DirName::Partition(partition) if entry.is_dir => (partition, false),
                DirName::Future(partition) if entry.is_dir => (partition, true),
                DirName::Deleted if entry.is_dir => {
                    loaded.deleted.push(DeletedLog { dir });
                    continue;
                }
                DirName::Partition(_)
                | DirName::Future(_)
                | DirName::Deleted
                | DirName::Aside
                | DirName::Other => continue,
            };
            let place = Arc::new(Place::new(dir));
            if !clean && recovery_point(&partition) == Some(0) && self.was_never_flushed(&place)? {
                tracing::warn!(log = %place.dir().display(), "a log that a crash left without its \
                    topic id was never flushed, it is removed");
                loaded.deleted.push(self.take_out(&partition, &place)?);
                continue;
            }
            let opening = Opening {
                shared: self.shared.clone(),
                place,
                config: (loading.config)(&partition),
                clean,
                recovery_point: recovery_point(&partition),
                start_offset: start_offsets.get(&partition).copied().unwrap_or(0),
                high_watermark: high_watermarks.get(&partition).copied(),
                now_ms: loading.now_ms,
            };
            openings.push((partition, is_future, opening));
        }
        loaded.logs = on_each(loading.threads, openings, |(partition, is_future, opening)| {
            let topic_id = self.read_topic_id(&opening.place.dir())?;
            let high_watermark = opening.high_watermark.unwrap_or(0);
            let log = opening.open()?;
            let high_watermark = high_watermark.clamp(log.start_offset(), log.end_offset());
            Ok::<_, StorageError>(LoadedLog { partition, topic_id, log, high_watermark, is_future })
        })?;
        let is_lowered = |found: &LoadedLog| {
            let written = recovery_points.get(&found.partition);
            written.is_some_and(|at| *at > found.log.recovery_point())
        };
        if !clean && loaded.logs.iter().any(is_lowered) {
            // Logs were cut. What is appended to them next may not pass for durable by the old word.
            let row = |found: &LoadedLog| {
                found.log.checkpoint_row(found.partition.clone(), found.high_watermark)
            };
            self.write_checkpoints(loaded.logs.iter().map(row))?;
        }
        Ok(loaded)
    }

    fn take_clean_mark(&self, last_broker_epoch: Option<i64>) -> Result<bool, DiskError> {
        let path = self.path.join(CLEAN_SHUTDOWN);
        let Some(bytes) = read(&self.shared.files, &path)? else { return Ok(false) };
        self.shared.files.remove_file(&path).at("remove", &path)?;
        let mark = CleanShutdown::decode(&bytes).map(|mark| mark.broker_epoch);
        if mark.is_none() {
            tracing::warn!(file = %path.display(), "clean mark is damaged, logs are looked at");
        }
        Ok(mark.is_some() && mark == last_broker_epoch)
    }

    /// The first flush of a log makes its topic id durable too. So where a crash took the id,
    /// nothing in the log was promised to outlive it; and whose it was is not known: a topic that
    /// is deleted by now may have had the name.
    fn was_never_flushed(&self, place: &Place) -> Result<bool, DiskError> {
        let path = place.file(PARTITION_METADATA);
        let found = read(&self.shared.files, &path)?;
        Ok(found.is_none_or(|bytes| is_torn_partition_metadata(&bytes)))
    }

    fn read_topic_id(&self, dir: &Path) -> Result<Option<TopicId>, StorageError> {
        let path = dir.join(PARTITION_METADATA);
        let Some(bytes) = read(&self.shared.files, &path)? else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes);
        Ok(decode_partition_metadata(&text).unwrap_or_else(|error| {
            // The topic of this name will write its own.
            tracing::error!(file = %path.display(), %error, "topic id is damaged, it is left out");
            None
        }))
    }
}
