//! Raft's log storage over the write-ahead log: readable at once, acknowledged when durable.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{LogState, OptionalSend, RaftLogReader, StorageIOError};

use super::frame::Frame;
use super::state::State;
use super::types::{LogId, MemberId, RaftEntry, StorageError, Types, Vote};
use super::wal::Content;
use super::writer::Writer;

/// How many entries pass between two hints of what is committed. After a crash the hint only
/// saves a follower the wait for its leader.
const HINT_EVERY_ENTRIES: u64 = 256;
/// Payload bytes of one replication message.
const READ_BYTES_MAX: usize = 1 << 20;

/// The content, shared by log, state machine and the writer's work.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Content>>);

impl Log {
    pub fn new(content: Content) -> Self {
        Self(Arc::new(Mutex::new(content)))
    }

    pub fn lock(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone)]
pub(super) struct LogStore {
    pub member: MemberId,
    pub log: Log,
    pub state: Arc<State>,
    pub writer: Writer,
    /// Index that the last hint spoke of.
    pub hinted: u64,
}

fn write_error(error: io::Error) -> StorageError {
    StorageIOError::write_logs(&error).into()
}

impl RaftLogReader<Types> for LogStore {
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: R,
    ) -> Result<Vec<RaftEntry>, StorageError> {
        let from = match range.start_bound() {
            Bound::Included(from) => *from,
            Bound::Excluded(before) => before + 1,
            Bound::Unbounded => 0,
        };
        let until = match range.end_bound() {
            Bound::Included(last) => last + 1,
            Bound::Excluded(until) => *until,
            Bound::Unbounded => u64::MAX,
        };
        Ok(self.log.lock().range(from, until, usize::MAX))
    }

    async fn limited_get_log_entries(
        &mut self,
        from: u64,
        until: u64,
    ) -> Result<Vec<RaftEntry>, StorageError> {
        Ok(self.log.lock().range(from, until, READ_BYTES_MAX))
    }
}

impl RaftLogStorage<Types> for LogStore {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, StorageError> {
        let content = self.log.lock();
        let (last_purged_log_id, last_log_id) = (content.purged, content.last());
        Ok(LogState { last_purged_log_id, last_log_id })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), StorageError> {
        let mut frames = Vec::new();
        Frame::Vote(*vote).put(&mut frames);
        let saved = self.writer.run(move |file| file.append(&frames, true)).await;
        saved.map_err(|error| StorageIOError::write_vote(&error))?;
        self.log.lock().vote = Some(*vote);
        Ok(())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, StorageError> {
        Ok(self.log.lock().vote)
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), StorageError> {
        self.log.lock().committed = committed;
        let Some(id) = committed.filter(|id| id.index >= self.hinted + HINT_EVERY_ENTRIES) else {
            return Ok(());
        };
        self.hinted = id.index;
        let mut frames = Vec::new();
        Frame::Committed(id).put(&mut frames);
        // Only a hint: a failure is told to `on_fatal` and stops the next real write.
        self.writer.submit(move |file| drop(file.append(&frames, false)));
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, StorageError> {
        Ok(self.log.lock().committed)
    }

    async fn append<I>(
        &mut self,
        entries: I,
        callback: LogFlushed<Types>,
    ) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = RaftEntry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut frames = Vec::new();
        {
            let mut content = self.log.lock();
            for entry in entries {
                let frame = Frame::Entry(entry);
                frame.put(&mut frames);
                if let Frame::Entry(entry) = frame {
                    content.push(entry);
                }
            }
        }
        self.writer.submit(move |file| callback.log_io_completed(file.append(&frames, true)));
        Ok(())
    }

    async fn truncate(&mut self, from: LogId) -> Result<(), StorageError> {
        self.log.lock().truncate(from.index);
        let mut frames = Vec::new();
        Frame::Truncate(from.index).put(&mut frames);
        self.writer.run(move |file| file.append(&frames, true)).await.map_err(write_error)
    }

    async fn purge(&mut self, up_to: LogId) -> Result<(), StorageError> {
        let (content, snapshot) = {
            let mut content = self.log.lock();
            content.purge(up_to);
            (content.to_file(self.member), content.snapshot.clone())
        };
        self.state.forget(up_to.index);
        let log = self.log.clone();
        let replaced = self.writer.run(move |file| {
            file.replace(&content)?;
            // A snapshot whose pointer was written between the look and now must not be lost.
            let newest = log.lock().snapshot.clone();
            match newest {
                Some(meta) if snapshot.as_ref() != Some(&meta) => {
                    let mut frames = Vec::new();
                    Frame::Snapshot(meta).put(&mut frames);
                    file.append(&frames, true)
                }
                _ => Ok(()),
            }
        });
        replaced.await.map_err(write_error)
    }
}
