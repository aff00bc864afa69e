//! One log directory: whose it is, the logs in it, its checkpoints, its clean mark.
//! Invariant: one process at a time; the clean mark stands only while all in it is durable.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use uuid::Uuid;

use super::checkpoint::{
    self, CLEANER, LOG_START, Malformed, Offsets, RECOVERY_POINT, REPLICATION,
};
use super::error::{At, DiskError, OperatorFault, StorageError};
use super::fd_cache::FdCache;
use super::flush::{FlushPlan, run_all};
use super::load::Opening;
use super::log::{Log, LogConfig, Shared};
use super::meta_properties::MetaProperties;
use super::names::{PARTITION_METADATA, Place, deleted_dir};
use super::room::Room;
use super::small_files::{CLEAN_SHUTDOWN, CleanShutdown, encode_partition_metadata};
use crate::common::{BrokerId, Offset, TopicId, TopicPartition, format_uuid};
use crate::env::{FileLock, Files, Random};

/// Stands while a failure of this directory is to be seen to by the next start.
pub(super) const FAILED: &str = ".ottla_failed";
pub(super) const META_PROPERTIES: &str = "meta.properties";
const LOCK: &str = ".lock";
/// What a directory may hold beside hidden files before it is ours.
const HARMLESS: [&str; 4] =
    ["lost+found", "meta.properties.tmp", "__ottla_metadata", "bootstrap.checkpoint"];

/// Who opens a directory.
#[derive(Debug, Clone)]
pub struct Identity {
    /// `None`: whatever the directory says, or a new one for a fresh directory.
    pub cluster_id: Option<String>,
    pub node_id: BrokerId,
}

/// Limits of a directory.
#[derive(Debug, Clone)]
pub struct LogDirOptions {
    /// Segments that are open at once, at most.
    pub open_segments_max: usize,
    /// `producer.id.expiration.ms`
    pub producer_expiration_ms: i64,
    /// `ottla.disk.reserve.bytes`; 0: none is kept.
    pub reserve_bytes: u64,
}

impl Default for LogDirOptions {
    fn default() -> Self {
        Self { open_segments_max: 4096, producer_expiration_ms: 24 * 3_600_000, reserve_bytes: 0 }
    }
}

/// A deleted log whose files are still there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedLog {
    pub(super) dir: PathBuf,
}

/// What the checkpoints say of one log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointRow {
    pub partition: TopicPartition,
    pub recovery_point: Offset,
    /// `None`: the log starts with its first segment, which needs no word.
    pub start_offset: Option<Offset>,
    pub high_watermark: Offset,
}

impl Log {
    /// What the checkpoints are to say of this log.
    pub fn checkpoint_row(
        &self,
        partition: TopicPartition,
        high_watermark: Offset,
    ) -> CheckpointRow {
        let start = self.start_offset();
        CheckpointRow {
            partition,
            recovery_point: self.recovery_point(),
            start_offset: (start > self.first_base_offset()).then_some(start),
            high_watermark,
        }
    }
}

/// A log directory, held by this process. Shared by all its partitions.
pub struct LogDir {
    pub(super) path: PathBuf,
    meta: MetaProperties,
    directory_id: Uuid,
    pub(super) shared: Arc<Shared>,
    /// Partition directories were made or renamed since the last sync.
    pub(super) unsynced: AtomicBool,
    /// What the checkpoint files hold, so that an unchanged one is not written again.
    written: Mutex<BTreeMap<&'static str, Vec<u8>>>,
    /// One writer of checkpoints at a time, and none after a clean stop.
    is_closed: Mutex<bool>,
    _lock: FileLock,
}

impl LogDir {
    /// Takes the directory, making it if it is not there (two fsyncs then; one after a stop that
    /// was not clean).
    ///
    /// # Errors
    /// [`OperatorFault`] when it is another's, in use, or no log directory; [`DiskError`].
    pub fn open(
        files: &Files,
        random: &Random,
        path: &Path,
        identity: &Identity,
        options: &LogDirOptions,
    ) -> Result<Self, StorageError> {
        files.create_dir_all(path).at("create", path)?;
        let lock = files.lock(&path.join(LOCK)).map_err(|source| match source.kind() {
            ErrorKind::WouldBlock => OperatorFault::InUse { dir: path.to_owned() }.into(),
            _ => StorageError::from(DiskError { doing: "lock", path: path.join(LOCK), source }),
        })?;
        let meta = match read(files, &path.join(META_PROPERTIES))? {
            Some(bytes) => {
                let meta = check_identity(path, &bytes, identity)?;
                // A killed start may have left it, or the directory beside it, to the page cache.
                if !files.exists(&path.join(CLEAN_SHUTDOWN)) {
                    files.sync_dir(path).at("sync", path)?;
                }
                meta
            }
            None => make(files, random, path, identity)?,
        };
        // Only files of before Kafka 3.7 lack one; such a directory gets it now.
        let (meta, directory_id) = match meta.directory_id {
            Some(id) => (meta, id),
            None => {
                let id = random.uuid();
                let meta = MetaProperties { directory_id: Some(id), ..meta };
                write_meta(files, path, &meta)?;
                (meta, id)
            }
        };
        Ok(Self {
            path: path.to_owned(),
            meta,
            directory_id,
            shared: Arc::new(Shared {
                files: files.clone(),
                random: random.clone(),
                open_files: FdCache::new(options.open_segments_max),
                producer_expiration_ms: options.producer_expiration_ms,
                room: Room::new(files, path, options.reserve_bytes),
            }),
            unsynced: AtomicBool::new(false),
            written: Mutex::default(),
            is_closed: Mutex::default(),
            _lock: lock,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn cluster_id(&self) -> &str {
        &self.meta.cluster_id
    }

    pub fn directory_id(&self) -> Uuid {
        self.directory_id
    }

    /// Makes the directory and first segment of a partition. Durable with
    /// [`LogDir::sync_created`], once for a batch of partitions.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn create_log(
        &self,
        partition: &TopicPartition,
        topic_id: TopicId,
        config: Arc<ArcSwap<LogConfig>>,
        now_ms: i64,
    ) -> Result<Log, DiskError> {
        self.forget_checkpoints_of(partition)?;
        let dir = self.path.join(partition.to_string());
        self.create_in(dir, topic_id, config, (0, now_ms))
    }

    pub(super) fn create_in(
        &self,
        dir: PathBuf,
        topic_id: TopicId,
        config: Arc<ArcSwap<LogConfig>>,
        (start_offset, now_ms): (Offset, i64),
    ) -> Result<Log, DiskError> {
        self.shared.files.create_dir_all(&dir).at("create", &dir)?;
        let metadata = dir.join(PARTITION_METADATA);
        let content = encode_partition_metadata(topic_id);
        self.shared.files.write(&metadata, content.as_bytes()).at("write", &metadata)?;
        self.unsynced.store(true, Ordering::Relaxed);
        let opening = Opening {
            shared: self.shared.clone(),
            place: Arc::new(Place::new(dir)),
            config,
            clean: false,
            recovery_point: Some(0),
            start_offset,
            high_watermark: None,
            now_ms,
        };
        opening.open()
    }

    /// A deleted log of the same name may still stand in the checkpoints; its word may not pass
    /// for one on the log that is made now.
    fn forget_checkpoints_of(&self, partition: &TopicPartition) -> Result<(), DiskError> {
        let is_closed = self.is_closed();
        if *is_closed {
            return Ok(());
        }
        let row = format!("\n{} {} ", partition.topic, partition.partition);
        let without = |(name, content): (&&'static str, &Vec<u8>)| {
            if !String::from_utf8_lossy(content).contains(&row) {
                return None;
            }
            let mut offsets = checkpoint::decode_offsets(content).ok()?;
            offsets.remove(partition)?;
            Some((*name, checkpoint::encode_offsets(&offsets)))
        };
        let contents: Vec<_> = self.written().iter().filter_map(without).collect();
        let mut plan = FlushPlan::default();
        for (name, content) in &contents {
            self.plan_replacement(name, content, &mut plan)?;
        }
        plan.run(&self.shared.files)?;
        self.written().extend(contents);
        Ok(())
    }

    /// Gives a log that had none (or whose file a crash emptied) its topic id.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn set_topic_id(&self, log: &mut Log, topic_id: TopicId) -> Result<(), DiskError> {
        let path = log.place.file(PARTITION_METADATA);
        let content = encode_partition_metadata(topic_id);
        // The one that is there may be whole but for a bit; a torn one would pass for never flushed.
        self.shared.files.write_atomic(&path, content.as_bytes()).at("write", &path)?;
        log.metadata_unsynced = true;
        Ok(())
    }

    /// Makes the creations and deletions of partitions so far durable: one fsync, or none.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn sync_created(&self) -> Result<(), DiskError> {
        if self.unsynced.swap(false, Ordering::Relaxed) {
            self.shared.files.sync_dir(&self.path).at("sync", &self.path)?;
        }
        Ok(())
    }

    /// Takes a log out of the directory by a rename; its files go with [`LogDir::remove`]. Readers
    /// that hold its segments go on.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn delete_log(
        &self,
        partition: &TopicPartition,
        log: &Log,
    ) -> Result<DeletedLog, DiskError> {
        self.take_out(partition, &log.place)
    }

    pub(super) fn take_out(
        &self,
        partition: &TopicPartition,
        place: &Place,
    ) -> Result<DeletedLog, DiskError> {
        let to = self.path.join(deleted_dir(partition, self.shared.random.uuid()));
        let rename = |from: &Path| self.shared.files.rename(from, &to).at("rename", from);
        place.renamed(&to, true, rename)?;
        self.unsynced.store(true, Ordering::Relaxed);
        Ok(DeletedLog { dir: to })
    }

    /// Removes the files of a deleted log (after `file.delete.delay.ms`).
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn remove(&self, deleted: &DeletedLog) -> Result<(), DiskError> {
        self.shared.files.remove_dir_all(&deleted.dir).at("remove", &deleted.dir)
    }

    /// Writes the three checkpoints of all logs of this directory; unchanged ones are left alone,
    /// and after a clean stop all are. `rows` are taken once nobody else writes: of a log that was
    /// deleted meanwhile there must be none, for the next one of its name.
    ///
    /// # Errors
    /// [`DiskError`]; the old ones then still stand.
    pub fn write_checkpoints(
        &self,
        rows: impl IntoIterator<Item = CheckpointRow>,
    ) -> Result<(), DiskError> {
        let is_closed = self.is_closed();
        if *is_closed {
            return Ok(());
        }
        let rows: Vec<CheckpointRow> = rows.into_iter().collect();
        let mut plan = FlushPlan::default();
        let contents = self.plan_checkpoints(&rows, &mut plan)?;
        plan.run(&self.shared.files)?;
        self.written().extend(contents);
        Ok(())
    }

    /// Up to where each log is compacted, as written down.
    ///
    /// # Errors
    /// [`OperatorFault::Unreadable`]; [`DiskError`].
    pub fn read_clean_offsets(&self) -> Result<BTreeMap<TopicPartition, Offset>, StorageError> {
        self.read_checkpoint(CLEANER)
    }

    /// Writes down up to where each log is compacted.
    ///
    /// # Errors
    /// [`DiskError`]; the old file then still stands.
    pub fn write_clean_offsets(
        &self,
        offsets: &BTreeMap<TopicPartition, Offset>,
    ) -> Result<(), DiskError> {
        let content = checkpoint::encode_offsets(offsets);
        let is_closed = self.is_closed();
        if *is_closed || self.written().get(CLEANER) == Some(&content) {
            return Ok(());
        }
        let mut plan = FlushPlan::default();
        self.plan_replacement(CLEANER, &content, &mut plan)?;
        plan.run(&self.shared.files)?;
        self.written().insert(CLEANER, content);
        Ok(())
    }

    fn plan_checkpoints(
        &self,
        rows: &[CheckpointRow],
        plan: &mut FlushPlan,
    ) -> Result<Vec<(&'static str, Vec<u8>)>, DiskError> {
        let offsets = |of: fn(&CheckpointRow) -> Option<Offset>| -> Vec<u8> {
            let row = |row: &CheckpointRow| Some((row.partition.clone(), of(row)?));
            checkpoint::encode_offsets(&rows.iter().filter_map(row).collect())
        };
        let mut contents = vec![
            (RECOVERY_POINT, offsets(|row| Some(row.recovery_point))),
            // Before the starts: on disk no log starts above its high watermark.
            (REPLICATION, offsets(|row| Some(row.high_watermark))),
            (LOG_START, offsets(|row| row.start_offset)),
        ];
        let written = self.written();
        contents.retain(|(name, content)| written.get(name) != Some(content));
        drop(written);
        for (name, content) in &contents {
            self.plan_replacement(name, content, plan)?;
        }
        Ok(contents)
    }

    /// Writes `content` beside `name`; the plan puts it in place.
    fn plan_replacement(
        &self,
        name: &str,
        content: &[u8],
        plan: &mut FlushPlan,
    ) -> Result<(), DiskError> {
        let (path, temporary) = (self.path.join(name), self.path.join(format!("{name}.tmp")));
        self.shared.files.write(&temporary, content).at("write", &temporary)?;
        plan.files.push(temporary.clone());
        plan.renames.push((temporary, path));
        plan.dirs = vec![self.path.clone()];
        Ok(())
    }

    /// The last step of a clean stop, with the plans of [`Log::close`] of every log: makes all
    /// durable, then marks the directory clean. `rows` are of after the close.
    ///
    /// # Errors
    /// [`DiskError`]; the directory is then not marked, and the next start scans.
    pub fn close_clean(
        &self,
        plans: &[FlushPlan],
        rows: &[CheckpointRow],
        broker_epoch: i64,
    ) -> Result<(), DiskError> {
        let mut is_closed = self.is_closed();
        *is_closed = true;
        let closed = self.close_all(plans, rows, broker_epoch);
        closed.inspect_err(|_| self.note_failure())
    }

    fn close_all(
        &self,
        plans: &[FlushPlan],
        rows: &[CheckpointRow],
        broker_epoch: i64,
    ) -> Result<(), DiskError> {
        run_all(&self.shared.files, plans)?;
        let mut plan = FlushPlan::default();
        self.plan_checkpoints(rows, &mut plan)?;
        // Renamed last of the directory's files, so that it never stands without the others.
        let mark = CleanShutdown::new(broker_epoch).encode();
        self.plan_replacement(CLEAN_SHUTDOWN, mark.as_bytes(), &mut plan)?;
        plan.run(&self.shared.files)
    }

    /// A file that could not be synced may still be read from the page cache, as long as this boot
    /// lasts: the next start is told not to believe that.
    pub fn note_failure(&self) {
        let path = self.path.join(FAILED);
        // Not synced: with the page cache the reason goes too.
        if let Err(error) = self.shared.files.write(&path, b"") {
            tracing::warn!(file = %path.display(), %error, "the next start is not told of the failure");
        }
    }

    pub(super) fn read_checkpoint(&self, name: &'static str) -> Result<Offsets, StorageError> {
        let path = self.path.join(name);
        let Some(bytes) = read(&self.shared.files, &path)? else { return Ok(Offsets::new()) };
        match checkpoint::decode_offsets(&bytes) {
            Ok(offsets) => {
                self.written().insert(name, bytes);
                Ok(offsets)
            }
            Err(error) => {
                // As if it were missing: more is scanned, and it is written anew.
                tracing::error!(file = %path.display(), %error, "checkpoint is damaged, it is left out");
                Ok(Offsets::new())
            }
        }
    }

    fn is_closed(&self) -> std::sync::MutexGuard<'_, bool> {
        self.is_closed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn written(&self) -> std::sync::MutexGuard<'_, BTreeMap<&'static str, Vec<u8>>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `None`: there is no such file.
pub(super) fn read(files: &Files, path: &Path) -> Result<Option<Vec<u8>>, DiskError> {
    match files.read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        outcome => outcome.at("read", path).map(Some),
    }
}

fn unreadable(path: &Path, error: Malformed) -> OperatorFault {
    OperatorFault::Unreadable { file: path.to_owned(), line: error.line, what: error.what }
}

pub(super) fn check_identity(
    dir: &Path,
    bytes: &[u8],
    identity: &Identity,
) -> Result<MetaProperties, OperatorFault> {
    let text = String::from_utf8_lossy(bytes);
    let path = dir.join(META_PROPERTIES);
    let meta = MetaProperties::decode(&text).map_err(|error| unreadable(&path, error))?;
    let dir = dir.to_owned();
    if let Some(asked) = identity.cluster_id.as_ref().filter(|asked| **asked != meta.cluster_id) {
        let (found, asked) = (meta.cluster_id, asked.clone());
        return Err(OperatorFault::OtherCluster { dir, found, asked });
    }
    if meta.node_id != identity.node_id {
        let (found, asked) = (meta.node_id.0, identity.node_id.0);
        return Err(OperatorFault::OtherNode { dir, found, asked });
    }
    Ok(meta)
}

/// Makes an empty directory ours.
fn make(
    files: &Files,
    random: &Random,
    dir: &Path,
    identity: &Identity,
) -> Result<MetaProperties, StorageError> {
    let foreign = files
        .list(dir)
        .at("list", dir)?
        .into_iter()
        .find(|entry| !entry.name.starts_with('.') && !HARMLESS.contains(&entry.name.as_str()));
    if let Some(found) = foreign {
        let dir = dir.to_owned();
        return Err(OperatorFault::NotALogDirectory { dir, found: found.name }.into());
    }
    let cluster_id = identity.cluster_id.clone();
    let meta = MetaProperties {
        cluster_id: cluster_id.unwrap_or_else(|| format_uuid(random.uuid())),
        node_id: identity.node_id,
        directory_id: Some(random.uuid()),
    };
    write_meta(files, dir, &meta)?;
    Ok(meta)
}

fn write_meta(files: &Files, dir: &Path, meta: &MetaProperties) -> Result<(), DiskError> {
    let path = dir.join(META_PROPERTIES);
    files.write_atomic(&path, meta.encode().as_bytes()).at("write", &path)
}
