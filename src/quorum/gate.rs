//! The way in: takes batches while this node leads, and hands them to Raft in groups.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use tokio::sync::{Notify, watch};

use super::batches;
use super::types::{Payload, Raft};
use crate::common::Offset;
use crate::machine::{Batch, JournalError, Leadership, NotReady, Write};

/// Largest batch: 10 000 records of 800 bytes.
pub(super) const BATCH_BYTES_MAX: usize = 8 << 20;
/// Batches go into one Raft entry, and so share one fsync, up to this size.
const GROUP_BYTES: usize = 1 << 20;
/// With more than this waiting, the disk or the quorum has stalled and nothing more is taken.
const QUEUED_BYTES_MAX: usize = 64 << 20;

/// Open while this node leads and has applied all that earlier leaders committed.
pub(super) struct Gate {
    inner: Mutex<Inner>,
    leadership: watch::Sender<Leadership>,
    is_full: Arc<AtomicBool>,
    /// Something to propose, or the end.
    pub work: Notify,
    /// A proposal's fate is unknown: the gate has closed until the log has been looked at again.
    pub doubt: Notify,
}

#[derive(Default)]
struct Inner {
    leadership: Leadership,
    /// Of the log with everything that was taken in.
    end: Offset,
    queue: VecDeque<Bytes>,
    queued_bytes: usize,
    stopped: bool,
}

impl Gate {
    /// - `is_full`: the disk has no room; raised and lowered by the log's writer.
    pub fn new(is_full: Arc<AtomicBool>) -> Arc<Self> {
        Arc::new(Self {
            inner: Mutex::default(),
            leadership: watch::channel(Leadership::default()).0,
            is_full,
            work: Notify::new(),
            doubt: Notify::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.leadership.subscribe()
    }

    pub fn epoch(&self) -> i32 {
        self.lock().leadership.epoch
    }

    pub fn ready(&self) -> Result<(), NotReady> {
        let inner = self.lock();
        if !inner.leadership.leads {
            Err(NotReady::NotLeader)
        } else if inner.queued_bytes > QUEUED_BYTES_MAX || self.is_full.load(Ordering::Relaxed) {
            Err(NotReady::Storage)
        } else {
            Ok(())
        }
    }

    pub fn end(&self) -> Offset {
        self.lock().end
    }

    /// See `Journal::append`.
    ///
    /// # Errors
    /// As there; nothing has changed.
    pub fn append(
        &self,
        epoch: i32,
        expected: Offset,
        batch: &Batch,
    ) -> Result<Offset, JournalError> {
        crate::invariant!(batch.write == Write::Plain, "a {:?} batch of metadata", batch.write);
        let (size_bytes, most_bytes) = (batch.size_bytes(), BATCH_BYTES_MAX);
        if size_bytes > most_bytes {
            return Err(JournalError::TooLarge { size_bytes, most_bytes });
        }
        let mut inner = self.lock();
        if inner.leadership != (Leadership { epoch, leads: true }) {
            return Err(JournalError::NotLeader { asked: epoch });
        }
        if inner.end != expected {
            return Err(JournalError::Moved { expected, found: inner.end });
        }
        if !batch.records.is_empty() {
            let bytes = batches::encode(&batch.records, batch.timestamp_ms, epoch, expected);
            inner.queued_bytes += bytes.len();
            inner.queue.push_back(bytes);
            inner.end += batch.records.len() as Offset;
        }
        let end = inner.end;
        drop(inner);
        self.work.notify_one();
        Ok(end)
    }

    /// From now on batches are taken, from offset `end` on. Told even where the same leadership
    /// was told before: what was taken then may be lost.
    pub fn open(&self, epoch: i32, end: Offset) {
        let mut inner = self.lock();
        if inner.stopped {
            return;
        }
        inner.end = end;
        inner.leadership = Leadership { epoch, leads: true };
        self.leadership.send_replace(inner.leadership);
    }

    /// From now on nothing is taken; what is queued is dropped, its fate is "lost".
    pub fn close(&self, epoch: i32) {
        let mut inner = self.lock();
        inner.queue.clear();
        inner.queued_bytes = 0;
        inner.leadership = Leadership { epoch, leads: false };
        self.leadership
            .send_if_modified(|told| std::mem::replace(told, inner.leadership) != inner.leadership);
    }

    pub fn is_open_in(&self, epoch: i32) -> bool {
        self.lock().leadership == Leadership { epoch, leads: true }
    }

    pub fn stop(&self) {
        self.lock().stopped = true;
        self.close(self.epoch());
        self.work.notify_one();
        self.doubt.notify_one();
    }

    pub fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    /// What goes into the next Raft entry; at least one batch where there is one.
    fn take(&self) -> Option<Payload> {
        let mut inner = self.lock();
        let first = inner.queue.pop_front()?;
        inner.queued_bytes -= first.len();
        let fits = |total: usize, next: Option<&Bytes>| {
            next.is_some_and(|next| total + next.len() <= GROUP_BYTES)
        };
        if !fits(first.len(), inner.queue.front()) {
            return Some(Payload(first));
        }
        let mut group = BytesMut::from(&first[..]);
        while fits(group.len(), inner.queue.front()) {
            let Some(next) = inner.queue.pop_front() else { break };
            inner.queued_bytes -= next.len();
            group.extend_from_slice(&next);
        }
        Some(Payload(group.freeze()))
    }

    /// Proposes what is taken in, one group at a time, until stopped. Whatever else than success
    /// a proposal comes to, it may still be committed later: the gate closes, and opens only
    /// after the log has been looked at.
    pub async fn propose_to(self: Arc<Self>, raft: Raft) {
        while !self.is_stopped() {
            let Some(payload) = self.take() else {
                self.work.notified().await;
                continue;
            };
            let outcome = raft.client_write(payload).await;
            let reason = match outcome {
                Ok(response) if response.data.fitted => continue,
                Ok(_) => "it did not fit any more".to_owned(),
                Err(error) => error.to_string(),
            };
            if self.is_stopped() {
                return;
            }
            tracing::warn!(reason, "a proposal to the metadata quorum is in doubt");
            self.close(self.epoch());
            self.doubt.notify_one();
        }
    }
}
