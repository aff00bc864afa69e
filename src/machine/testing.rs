//! For tests of any room: a journal in memory whose commits, leadership and failures the test
//! moves by hand.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::{
    Batch, EntryKind, Journal, JournalError, JournalRecord, Leadership, NotReady, Position,
    ReadEntry, Record, Write,
};
use crate::common::Offset;
use crate::env::{Clock, Env, Files, Net, Random, Tasks};

/// Holds a record to what its machine foretold of its size, and to its way through the log's format;
/// the bytes that it takes in a batch.
pub(crate) fn through_the_log<R: Record + PartialEq>(record: &R, foretold: usize) -> usize {
    let stored = record.encode();
    let size = stored.size_bytes() + 30;
    assert!(size <= foretold, "{size} > {foretold}: {record:?}");
    assert_eq!(R::decode(&stored).as_ref().map(Option::as_ref), Ok(Some(record)), "round trip");
    size
}

/// Starts empty, leading epoch 1, and commits each batch as it is appended.
pub(crate) struct MemoryJournal {
    inner: Mutex<Inner>,
    leadership: watch::Sender<Leadership>,
    committed: watch::Sender<Offset>,
}

struct Inner {
    entries: Vec<ReadEntry>,
    end: Offset,
    commits_at_once: bool,
    refusal: Option<NotReady>,
    failure: Option<JournalError>,
    batch_bytes_max: usize,
}

impl MemoryJournal {
    pub fn new() -> Arc<Self> {
        let inner = Inner {
            entries: Vec::new(),
            end: 0,
            commits_at_once: true,
            refusal: None,
            failure: None,
            batch_bytes_max: 1 << 20,
        };
        Arc::new(Self {
            inner: Mutex::new(inner),
            leadership: watch::channel(Leadership { epoch: 1, leads: true }).0,
            committed: watch::channel(0).0,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on only [`MemoryJournal::commit_to`] commits.
    pub fn hold_commits(&self) {
        self.lock().commits_at_once = false;
    }

    /// Commits all below `end`.
    pub fn commit_to(&self, end: Offset) {
        self.committed.send_replace(end);
    }

    /// This node leads `epoch`; what was not committed stays in the log.
    pub fn lead(&self, epoch: i32) {
        self.leadership.send_replace(Leadership { epoch, leads: true });
    }

    /// Another node leads `epoch`.
    pub fn resign(&self, epoch: i32) {
        self.leadership.send_replace(Leadership { epoch, leads: false });
    }

    /// What [`Journal::ready`] says from now on.
    pub fn refuse(&self, refusal: Option<NotReady>) {
        self.lock().refusal = refusal;
    }

    /// The next append fails and writes nothing.
    pub fn fail_next_append(&self, error: JournalError) {
        self.lock().failure = Some(error);
    }

    /// Loses what stands at `end` and above, as a new leader's log does.
    pub fn truncate_to(&self, end: Offset) {
        let mut inner = self.lock();
        inner.entries.retain(|entry| entry.position.0 < end);
        inner.end = end;
    }

    /// Writes and commits one entry beside the runtime, as end markers and TxnOffsetCommit do; to
    /// be called before the journal is loaded.
    pub fn put(&self, kind: EntryKind, record: Option<JournalRecord>) {
        let mut inner = self.lock();
        let position = Position(inner.end);
        inner.entries.push(ReadEntry { position, kind, record });
        inner.end += 1;
        self.committed.send_replace(inner.end);
    }

    pub fn entries(&self) -> Vec<ReadEntry> {
        self.lock().entries.clone()
    }
}

impl Journal for MemoryJournal {
    fn leadership(&self) -> watch::Receiver<Leadership> {
        self.leadership.subscribe()
    }

    fn ready(&self) -> Result<(), NotReady> {
        if !self.leadership.borrow().leads {
            return Err(NotReady::NotLeader);
        }
        self.lock().refusal.clone().map_or(Ok(()), Err)
    }

    fn append(
        &self,
        epoch: i32,
        expected_base: Offset,
        batch: Batch,
    ) -> Result<Offset, JournalError> {
        let mut inner = self.lock();
        if let Some(error) = inner.failure.take() {
            return Err(error);
        }
        if *self.leadership.borrow() != (Leadership { epoch, leads: true }) {
            return Err(JournalError::NotLeader { asked: epoch });
        }
        if inner.end != expected_base {
            return Err(JournalError::Moved { expected: expected_base, found: inner.end });
        }
        let size_bytes = batch.size_bytes();
        if size_bytes > inner.batch_bytes_max {
            return Err(JournalError::TooLarge { size_bytes, most_bytes: inner.batch_bytes_max });
        }
        let kind = batch.write.kind();
        let marker = matches!(batch.write, Write::Marker { .. }).then_some(None);
        for record in batch.records.into_iter().map(Some).chain(marker) {
            let position = Position(inner.end);
            inner.entries.push(ReadEntry { position, kind, record });
            inner.end += 1;
        }
        if inner.commits_at_once {
            self.committed.send_replace(inner.end);
        }
        Ok(inner.end)
    }

    fn committed(&self) -> watch::Receiver<Offset> {
        self.committed.subscribe()
    }

    fn end_offset(&self) -> Offset {
        self.lock().end
    }

    fn start_offset(&self) -> Offset {
        0
    }

    fn batch_bytes_max(&self) -> usize {
        self.lock().batch_bytes_max
    }

    fn read(&self, from: Offset, bytes_max: usize) -> Result<Vec<ReadEntry>, JournalError> {
        let inner = self.lock();
        let (mut taken, mut bytes) = (Vec::new(), 0);
        for entry in inner.entries.iter().filter(|entry| entry.position.0 >= from) {
            bytes += entry.record.as_ref().map_or(0, JournalRecord::size_bytes);
            if bytes > bytes_max && !taken.is_empty() {
                break;
            }
            taken.push(entry.clone());
        }
        Ok(taken)
    }
}

/// Doors on virtual time with seeded random; to be called within a tokio runtime.
pub(crate) fn simulated_env(seed: u64) -> Env {
    Env {
        clock: Clock::simulated(1_700_000_000_000),
        random: Random::seeded(seed),
        files: Files::Real,
        net: Net::default(),
        tasks: Tasks::current(),
    }
}

/// Runs `test` on a paused clock: time passes only when every task waits for it.
pub(crate) fn on_virtual_time<F: Future>(test: F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build();
    runtime.expect("a runtime on the current thread").block_on(test)
}
