//! What is committed: which batches count, at which offsets, and who is told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use openraft::EntryPayload;
use tokio::sync::watch;

use super::batches;
use super::checkpoint::CheckpointId;
use super::types::{Applied, LogId, Payload, RaftEntry, StoredMembership};
use crate::common::Offset;
use crate::machine::{CommitSink, JournalError, JournalRecord, ReadEntry};
use crate::protocol::batch::{BatchError, BatchHeader};

/// The sink is told of so many records at a time.
const TELL_RECORDS: usize = 1_024;

/// The committed state of the log, without the meaning of its records: that is the sink's.
pub(super) struct State {
    inner: Mutex<Inner>,
    committed: watch::Sender<Offset>,
    sink: Arc<dyn CommitSink>,
}

#[derive(Default)]
struct Inner {
    applied: Option<LogId>,
    membership: StoredMembership,
    /// Ascending, without holes; the last one ends at `last.end`.
    kept: VecDeque<Kept>,
    start: Offset,
    last: Last,
}

/// Where the last applied batch ends, and what it said of itself.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    end: Offset,
    epoch: i32,
    timestamp_ms: i64,
}

/// A batch that counts, while its Raft entry is in the log.
struct Kept {
    index: u64,
    end: Offset,
    bytes: Bytes,
}

/// What a snapshot is made from.
pub(super) struct Capture {
    pub applied: Option<LogId>,
    pub membership: StoredMembership,
    pub id: CheckpointId,
    pub last_timestamp_ms: i64,
    pub records: Vec<JournalRecord>,
}

impl State {
    pub fn new(sink: Arc<dyn CommitSink>) -> Arc<Self> {
        let committed = watch::channel(0).0;
        Arc::new(Self { inner: Mutex::default(), committed, sink })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn committed(&self) -> watch::Receiver<Offset> {
        self.committed.subscribe()
    }

    pub fn start(&self) -> Offset {
        self.lock().start
    }

    pub fn applied(&self) -> (Option<LogId>, StoredMembership) {
        let inner = self.lock();
        (inner.applied, inner.membership.clone())
    }

    /// Applies committed entries in order. A batch counts if it was decided in the term it was
    /// written in, on the state right before it; any other does nothing, on every member alike.
    ///
    /// # Errors
    /// [`BatchError`]: our own log holds bytes that are no batch.
    pub fn apply(
        &self,
        entries: impl IntoIterator<Item = RaftEntry>,
    ) -> Result<Vec<Applied>, BatchError> {
        let (mut results, mut news) = (Vec::new(), Vec::new());
        for entry in entries {
            let fitted = match &entry.payload {
                EntryPayload::Normal(payload) => self.apply_payload(&entry, payload, &mut news)?,
                EntryPayload::Blank | EntryPayload::Membership(_) => true,
            };
            let mut inner = self.lock();
            inner.applied = Some(entry.log_id);
            if let EntryPayload::Membership(membership) = entry.payload {
                inner.membership = StoredMembership::new(Some(entry.log_id), membership);
            }
            results.push(Applied { fitted, end: inner.last.end });
            drop(inner);
            if news.len() >= TELL_RECORDS {
                self.tell(&mut news);
            }
        }
        self.tell(&mut news);
        Ok(results)
    }

    fn apply_payload(
        &self,
        entry: &RaftEntry,
        payload: &Payload,
        news: &mut Vec<ReadEntry>,
    ) -> Result<bool, BatchError> {
        let mut all_fit = true;
        for (header, bytes) in batches::split(&payload.0)? {
            let mut inner = self.lock();
            let fits = i64::from(header.leader_epoch.0) == entry.log_id.leader_id.term as i64
                && header.base_offset == inner.last.end;
            if !fits {
                all_fit = false;
                continue;
            }
            batches::decode(&bytes, news)?;
            inner.last = Last::of(&header);
            let (index, end) = (entry.log_id.index, header.next_offset());
            inner.kept.push_back(Kept { index, end, bytes });
        }
        Ok(all_fit)
    }

    /// The sink first, then everybody who waits for the commit.
    fn tell(&self, news: &mut Vec<ReadEntry>) {
        if let Some(last) = news.last() {
            let end = last.position.0 + 1;
            self.sink.committed(news);
            self.committed.send_replace(end);
            news.clear();
        }
    }

    /// Entries up to `index` have left the log.
    pub fn forget(&self, index: u64) {
        let mut inner = self.lock();
        let gone = inner.kept.partition_point(|kept| kept.index <= index);
        let last = inner.kept.drain(..gone).next_back();
        inner.start = last.map_or(inner.start, |last| last.end);
    }

    /// The state as it is between two calls of [`State::apply`].
    pub fn capture(&self) -> Capture {
        let records = self.sink.snapshot();
        let inner = self.lock();
        Capture {
            applied: inner.applied,
            membership: inner.membership.clone(),
            id: CheckpointId { end: inner.last.end, epoch: inner.last.epoch },
            last_timestamp_ms: inner.last.timestamp_ms,
            records,
        }
    }

    /// Replaces everything by what a snapshot holds.
    pub fn install(
        &self,
        id: CheckpointId,
        applied: Option<LogId>,
        membership: StoredMembership,
        records: &[JournalRecord],
    ) {
        self.sink.install(records, id.end);
        let mut inner = self.lock();
        inner.kept.clear();
        inner.start = id.end;
        inner.last = Last { end: id.end, epoch: id.epoch, timestamp_ms: inner.last.timestamp_ms };
        inner.applied = applied;
        inner.membership = membership;
        drop(inner);
        self.committed.send_replace(id.end);
    }

    /// Whole batches from the one that holds `from` on, without the records before `from`, until
    /// `bytes_max` is reached.
    ///
    /// # Errors
    /// [`JournalError::Storage`] where `from` has left the log.
    pub fn read(&self, from: Offset, bytes_max: usize) -> Result<Vec<ReadEntry>, JournalError> {
        let taken: Vec<Bytes> = {
            let inner = self.lock();
            if from < inner.start {
                let start = inner.start;
                let what = format!("offset {from} has left the log, which starts at {start}");
                return Err(JournalError::Storage(what));
            }
            let first = inner.kept.partition_point(|kept| kept.end <= from);
            let mut bytes = 0;
            let fits = |kept: &&Kept| {
                let is_first = bytes == 0;
                bytes += kept.bytes.len();
                is_first || bytes <= bytes_max
            };
            inner.kept.range(first..).take_while(fits).map(|kept| kept.bytes.clone()).collect()
        };
        let mut entries = Vec::new();
        for bytes in taken {
            let decoded = batches::decode(&bytes, &mut entries);
            decoded.map_err(|error| JournalError::Storage(error.to_string()))?;
        }
        entries.retain(|entry| entry.position.0 >= from);
        Ok(entries)
    }
}

impl Last {
    fn of(header: &BatchHeader) -> Self {
        Self {
            end: header.next_offset(),
            epoch: header.leader_epoch.0,
            timestamp_ms: header.max_timestamp,
        }
    }
}
