//! Moves between log directories (KIP-113): a future log is filled with what the current one holds,
//! byte for byte, and takes its place by a rename.

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::error::{At, DiskError, OperatorFault, StorageError};
use super::log::{Log, LogConfig, marker_of};
use super::log_dir::LogDir;
use super::names::future_dir;
use crate::common::{Offset, TopicId, TopicPartition};
use crate::protocol::batch::{BatchHeader, HEADER_BYTES, crc_of};

impl LogDir {
    /// Makes an empty future log whose first record will have `start_offset`. Durable with
    /// [`LogDir::sync_created`].
    ///
    /// # Errors
    /// [`OperatorFault::NameTooLong`], see [`LogDir::has_room_for_future`]; [`DiskError`].
    pub fn create_future(
        &self,
        partition: &TopicPartition,
        topic_id: TopicId,
        config: Arc<ArcSwap<LogConfig>>,
        start_offset: Offset,
        now_ms: i64,
    ) -> Result<Log, StorageError> {
        let Some(name) = future_dir(partition, self.shared.random.uuid()) else {
            return Err(OperatorFault::NameTooLong { partition: partition.clone() }.into());
        };
        let dir = self.path().join(name);
        let mut log = self.create_in(dir, topic_id, config, (start_offset, now_ms))?;
        log.metadata_unsynced = true;
        Ok(log)
    }

    /// Whether the directory of a future log of `partition` has a name that the system takes.
    pub fn has_room_for_future(partition: &TopicPartition) -> bool {
        future_dir(partition, uuid::Uuid::nil()).is_some()
    }

    /// Gives a future log the name of the current one. Readers that hold its segments go on.
    ///
    /// # Errors
    /// [`DiskError`]; the log then still has its old name.
    pub fn promote(&self, partition: &TopicPartition, log: &Log) -> Result<(), DiskError> {
        let to = self.path().join(partition.to_string());
        let rename = |from: &Path| self.shared.files.rename(from, &to).at("rename", from);
        log.place.renamed(&to, false, rename)?;
        self.unsynced.store(true, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }
}

impl Log {
    /// Appends whole batches as another log has them, offsets and leader epochs included; a batch
    /// cut short at the end of `batches` is left for the next call. An empty log begins where the
    /// first batch does.
    ///
    /// # Errors
    /// [`DiskError`]: what is before the failed batch is appended; [`DiskError::is_damage`] for a
    /// batch whose checksum is wrong.
    pub fn append_copied(&mut self, batches: &[u8], now_ms: i64) -> Result<(), DiskError> {
        let mut rest = batches;
        while let Ok(header) = BatchHeader::parse(rest) {
            let Some((batch, next)) = rest.split_at_checked(header.size_bytes()) else { break };
            rest = next;
            if crc_of(batch) != header.crc {
                let what = format!("the batch at offset {} is damaged", header.base_offset);
                return Err(DiskError::damaged(&self.place.dir(), what));
            }
            if header.last_offset() < self.end_offset {
                continue;
            }
            if self.size_bytes() == 0 && header.base_offset != self.end_offset {
                self.truncate_fully(header.base_offset, now_ms)?;
            }
            let Some((front, body)) = batch.split_first_chunk::<HEADER_BYTES>() else { break };
            let marker = marker_of(&header, || bytes::Bytes::copy_from_slice(batch));
            self.put(front, body, &header, marker, now_ms)?;
        }
        Ok(())
    }

    /// Drops what it has and goes on from `offset`: the other log was cut at its start past all
    /// that was copied.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn restart_copy(&mut self, offset: Offset, now_ms: i64) -> Result<(), DiskError> {
        self.truncate_fully(offset, now_ms)
    }

    /// Takes over what `other`, which holds the same records, knows of its producers and epochs
    /// beyond them, and its configs: batches that retention has taken included.
    pub fn take_over(&mut self, other: &mut Log) {
        let snapshot_offset = self.producers.snapshot_offset.min(other.producers.end_offset);
        self.producers = std::mem::take(&mut other.producers);
        self.producers.snapshot_offset = snapshot_offset;
        self.epochs = other.epochs.clone();
        self.config = other.config.clone();
    }

    /// Has its configs from the cell of the partition that it belongs to.
    pub fn share_config(&mut self, config: Arc<ArcSwap<LogConfig>>) {
        self.config = config;
    }
}
