//! What the tests of this room share: a simulated disk with one log directory, and batches.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;

use super::{
    CheckpointRow, Identity, Loaded, Loading, Log, LogConfig, LogDir, LogDirOptions, StorageError,
};
use crate::common::{
    BrokerId, LeaderEpoch, Offset, ProducerEpoch, ProducerId, TopicId, TopicPartition,
};
use crate::env::{Files, Random, SimFiles};
use crate::protocol::batch::{
    BatchBuilder, CheckedBatch, EndTxnMarker, Producer, batches, records,
};

pub(super) const NOW: i64 = 1_700_000_000_000;
pub(super) const EPOCH: LeaderEpoch = LeaderEpoch(0);

/// A disk, and a log directory on it.
pub(super) struct Disk {
    pub sim: SimFiles,
    pub files: Files,
    pub path: PathBuf,
    pub config: Arc<ArcSwap<LogConfig>>,
    pub open_segments_max: usize,
}

impl Disk {
    pub fn new(config: LogConfig) -> Self {
        let sim = SimFiles::default();
        let files = Files::Sim(sim.clone());
        let path = PathBuf::from("/data");
        files.create_dir_all(&path).unwrap();
        files.sync_dir(Path::new("/")).unwrap();
        let config = Arc::new(ArcSwap::from_pointee(config));
        Self { sim, files, path, config, open_segments_max: 3 }
    }

    pub fn open(&self) -> Result<LogDir, StorageError> {
        let identity = Identity { cluster_id: Some("cluster".to_owned()), node_id: BrokerId(1) };
        let open_segments_max = self.open_segments_max;
        let options = LogDirOptions { open_segments_max, ..LogDirOptions::default() };
        LogDir::open(&self.files, &Random::seeded(1), &self.path, &identity, &options)
    }

    pub fn load(&self, dir: &LogDir, last_broker_epoch: Option<i64>) -> Loaded {
        let config = |_: &TopicPartition| self.config.clone();
        let loading = Loading { last_broker_epoch, now_ms: NOW, threads: 1, config: &config };
        dir.load(&loading).unwrap()
    }

    /// Makes the one log that most tests use.
    pub fn create(&self, dir: &LogDir) -> Log {
        let log = dir.create_log(&partition(), topic_id(), self.config.clone(), NOW).unwrap();
        dir.sync_created().unwrap();
        log
    }

    /// Opens the directory and the one log in it, after a stop of any kind.
    pub fn reopen(&self, last_broker_epoch: Option<i64>) -> (LogDir, Log) {
        let dir = self.open().unwrap();
        let mut loaded = self.load(&dir, last_broker_epoch);
        assert_eq!(loaded.logs.len(), 1);
        let found = loaded.logs.remove(0);
        assert_eq!((found.partition, found.topic_id), (partition(), Some(topic_id())));
        (dir, found.log)
    }

    /// A clean stop under broker epoch 7.
    pub fn stop(&self, dir: LogDir, mut log: Log) {
        let plan = log.close().unwrap();
        let plans = [plan];
        log.flushed(&plans[0]);
        dir.close_clean(&plans, &[row(&log)], 7).unwrap();
    }
}

pub(super) fn row(log: &Log) -> CheckpointRow {
    log.checkpoint_row(partition(), log.end_offset())
}

pub(super) fn partition() -> TopicPartition {
    TopicPartition::new("orders", 0)
}

pub(super) fn topic_id() -> TopicId {
    "TwABAgMEBQYHCAkKCwwNDg".parse().unwrap()
}

/// Small segments and an index entry for nearly each batch.
pub(super) fn small() -> LogConfig {
    LogConfig { segment_bytes: 600, index_interval_bytes: 100, ..LogConfig::default() }
}

/// A batch of one record a value, each with its own timestamp.
pub(super) fn batch(records: &[(i64, &str)]) -> CheckedBatch {
    let mut builder = BatchBuilder::new(0);
    for (timestamp, value) in records {
        builder.push(*timestamp, None, Some(value.as_bytes()), &[]);
    }
    builder.build_checked()
}

/// A batch of `count` records by producer `id`, from `sequence` on.
pub(super) fn by_producer(
    id: i64,
    epoch: i16,
    sequence: i32,
    count: usize,
    transactional: bool,
) -> CheckedBatch {
    let (id, epoch) = (ProducerId(id), ProducerEpoch(epoch));
    let producer = Producer { id, epoch, base_sequence: sequence, transactional };
    let mut builder = BatchBuilder::new(0).producer(producer);
    (0..count).for_each(|_| builder.push(NOW, None, Some(b"v"), &[]));
    builder.build_checked()
}

pub(super) fn marker(id: i64, epoch: i16, commit: bool, coordinator_epoch: i32) -> CheckedBatch {
    let marker = EndTxnMarker { commit, coordinator_epoch };
    BatchBuilder::marker(0, ProducerId(id), ProducerEpoch(epoch), marker, NOW).build_checked()
}

pub(super) fn append(log: &mut Log, batch: &CheckedBatch) -> Result<Offset, StorageError> {
    log.append(batch, crate::common::Proof::Unneeded, EPOCH, NOW, None)
        .map(|appended| appended.base_offset)
}

/// Appends `count` batches of one record.
pub(super) fn fill(log: &mut Log, count: usize) {
    for _ in 0..count {
        append(log, &batch(&[(NOW, "0123456789")])).unwrap();
    }
}

/// All records from `from` to the end: (offset, value), read through many small reads.
pub(super) fn contents(log: &Log, from: Offset) -> Vec<(Offset, String)> {
    let (mut found, mut next) = (Vec::new(), from);
    while next < log.end_offset() {
        let bytes = log.read(next, log.end_offset(), 300, true).unwrap().read().unwrap();
        let read = whole(&bytes);
        assert!(!read.is_empty(), "nothing at {next}, the log ends at {}", log.end_offset());
        next = read.last().unwrap().0 + 1;
        found.extend(read.into_iter().filter(|(offset, _)| *offset >= from));
    }
    found
}

/// The records of the whole batches in `bytes`.
pub(super) fn whole(bytes: &Bytes) -> Vec<(Offset, String)> {
    let mut found = Vec::new();
    for batch in batches(bytes) {
        for record in records(&batch.unwrap().1) {
            let record = record.unwrap();
            let value = record.value.map(|value| String::from_utf8_lossy(&value).into_owned());
            found.push((record.offset, value.unwrap_or_default()));
        }
    }
    found
}
