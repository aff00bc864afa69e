//! Raft's state machine: applies committed entries to [`State`], makes, installs and hands out
//! its snapshots.

use std::io::{self, Cursor};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use openraft::storage::RaftStateMachine;
use openraft::{AnyError, OptionalSend, RaftSnapshotBuilder, Snapshot, StorageIOError};

use super::checkpoint::{self, CheckpointId};
use super::error::QuorumError;
use super::frame::Frame;
use super::log_store::Log;
use super::state::{Capture, State};
use super::types::{
    Applied, LogId, RaftEntry, SnapshotMeta, StorageError, StoredMembership, Types,
};
use super::writer::{LogFile, Writer};
use crate::env::Files;
use crate::machine::JournalRecord;

#[derive(Clone)]
pub(super) struct StateStore {
    pub state: Arc<State>,
    pub log: Log,
    pub writer: Writer,
    pub dir: PathBuf,
}

/// One snapshot to be made: the state was taken when this was, so that later entries do not
/// show in it.
pub(super) struct SnapshotBuilder {
    store: StateStore,
    capture: Option<Capture>,
}

type InstalledSnapshot = (SnapshotMeta, Arc<Vec<u8>>);

impl StateStore {
    /// Writes the snapshot's file, then the pointer to it, and removes the file of the one before.
    async fn save(
        &self,
        meta: SnapshotMeta,
        content: impl FnOnce() -> Vec<u8> + Send + 'static,
    ) -> io::Result<InstalledSnapshot> {
        let id = CheckpointId::parse(&meta.snapshot_id);
        let id = id.ok_or_else(|| io::Error::other("the snapshot's id is not one of ours"))?;
        let (dir, log) = (self.dir.clone(), self.log.clone());
        let saving = self.writer.run(move |file: &mut LogFile| {
            let content = content();
            file.write_beside(&dir.join(id.file_name()), &content)?;
            let mut frames = Vec::new();
            Frame::Snapshot(meta.clone()).put(&mut frames);
            file.append(&frames, true)?;
            let before = log.lock().snapshot.replace(meta.clone());
            let before = before.and_then(|meta| CheckpointId::parse(&meta.snapshot_id));
            if let Some(before) = before.filter(|before| *before != id) {
                // What stays is removed by the next start.
                let _ = file.files.remove_file(&dir.join(before.file_name()));
            }
            Ok((meta, Arc::new(content)))
        });
        saving.await
    }
}

/// Puts the newest snapshot into `state` and removes the files of others.
///
/// # Errors
/// [`QuorumError::Damaged`], [`QuorumError::Io`].
pub(super) fn restore(
    files: &Files,
    dir: &Path,
    log: &Log,
    state: &State,
) -> Result<(), QuorumError> {
    let (meta, purged) = {
        let content = log.lock();
        (content.snapshot.clone(), content.purged)
    };
    let id = meta.as_ref().and_then(|meta| CheckpointId::parse(&meta.snapshot_id));
    for entry in files.list(dir).map_err(QuorumError::io(dir))? {
        let found = CheckpointId::of_file(&entry.name);
        if found.is_some() && found != id {
            // Made, but its pointer was not; or replaced. Nothing refers to it.
            files.remove_file(&dir.join(&entry.name)).map_err(QuorumError::io(dir))?;
        }
    }
    let damaged = |path: PathBuf, at, reason: &str| {
        Err(QuorumError::Damaged { path, at, reason: reason.to_owned() })
    };
    match (meta, id) {
        (Some(meta), Some(id)) => {
            let path = dir.join(id.file_name());
            let file = Bytes::from(files.read(&path).map_err(QuorumError::io(&path))?);
            match checkpoint::decode(&file) {
                Ok(records) => {
                    state.install(id, meta.last_log_id, meta.last_membership, &records);
                    Ok(())
                }
                Err((at, reason)) => damaged(path, at, &reason),
            }
        }
        (None, _) if purged.is_none() => Ok(()),
        _ => damaged(dir.to_path_buf(), 0, "the log refers to a snapshot that it does not name"),
    }
}

impl RaftSnapshotBuilder<Types> for SnapshotBuilder {
    async fn build_snapshot(&mut self) -> Result<Snapshot<Types>, StorageError> {
        let gone = || StorageIOError::write_snapshot(None, AnyError::error("made before"));
        let Capture { applied, membership, id, last_timestamp_ms, records } =
            self.capture.take().ok_or_else(gone)?;
        let meta = SnapshotMeta {
            last_log_id: applied,
            last_membership: membership,
            snapshot_id: id.text(),
        };
        let content = move || checkpoint::encode(id, &records, last_timestamp_ms);
        let saved = self.store.save(meta, content).await;
        let (meta, content) =
            saved.map_err(|error| StorageIOError::write_snapshot(None, &error))?;
        Ok(snapshot(meta, &content))
    }
}

fn snapshot(meta: SnapshotMeta, content: &[u8]) -> Snapshot<Types> {
    Snapshot { meta, snapshot: Box::new(Cursor::new(content.to_vec())) }
}

impl RaftStateMachine<Types> for StateStore {
    type SnapshotBuilder = SnapshotBuilder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), StorageError> {
        Ok(self.state.applied())
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Applied>, StorageError>
    where
        I: IntoIterator<Item = RaftEntry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let applied = self.state.apply(entries);
        Ok(applied.map_err(|error| StorageIOError::read_logs(&error))?)
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder {
        SnapshotBuilder { store: self.clone(), capture: Some(self.state.capture()) }
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Cursor<Vec<u8>>>, StorageError> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        snapshot: Box<Cursor<Vec<u8>>>,
    ) -> Result<(), StorageError> {
        let wrong = |reason: String| {
            StorageIOError::read_snapshot(Some(meta.signature()), AnyError::error(reason))
        };
        let content = Bytes::from(snapshot.into_inner());
        let id = CheckpointId::parse(&meta.snapshot_id)
            .ok_or_else(|| wrong(format!("`{}` is no snapshot id", meta.snapshot_id)))?;
        let records: Vec<JournalRecord> = checkpoint::decode(&content)
            .map_err(|(at, reason)| wrong(format!("{at}: {reason}")))?;
        let saved = self.save(meta.clone(), move || content.to_vec()).await;
        saved.map_err(|error| StorageIOError::write_snapshot(Some(meta.signature()), &error))?;
        self.state.install(id, meta.last_log_id, meta.last_membership.clone(), &records);
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<Types>>, StorageError> {
        let dir = self.dir.clone();
        let log = self.log.clone();
        let reading = self.writer.run(move |file| {
            // In the writer's turn, so that the file is not removed in between.
            let Some(meta) = log.lock().snapshot.clone() else { return Ok(None) };
            let id = CheckpointId::parse(&meta.snapshot_id);
            let id = id.ok_or_else(|| io::Error::other("the snapshot's id is not one of ours"))?;
            let content = file.files.read(&dir.join(id.file_name()))?;
            Ok(Some(snapshot(meta, &content)))
        });
        Ok(reading.await.map_err(|error| StorageIOError::read_snapshot(None, &error))?)
    }
}
