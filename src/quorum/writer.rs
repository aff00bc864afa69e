//! The one writer of the log file: a thread with a queue, or inline where time is virtual.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use tokio::sync::oneshot;

use super::error::QuorumError;
use super::frame::Frame;
use super::node::OnFatal;
use crate::env::{File, FileLock, Files, OpenMode, Tasks};

const LOOK_FOR_ROOM_EVERY: Duration = Duration::from_millis(100);

/// Where the log's bytes are written and synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writes {
    /// On a thread of their own: a slow disk delays proposals, never the tasks.
    OnThread,
    /// In the task that asks. For simulated files, and for virtual time, which would run away
    /// while a thread works.
    Inline,
}

/// The open log file. After a failed write or fsync it refuses everything: what the disk holds
/// is unknown then.
pub(super) struct LogFile {
    pub files: Files,
    pub path: PathBuf,
    file: File,
    /// Where the next write goes.
    end: u64,
    /// Up to where the file is known to be on the disk.
    durable: u64,
    state: FileState,
    on_fatal: OnFatal,
    full: Full,
    /// Keeps other processes out while something may still be written.
    lock: Option<FileLock>,
}

/// A full disk is not a broken one: what a write left is cut off and the write is made again,
/// until there is room.
#[derive(Clone)]
pub(super) struct Full {
    pub is_full: Arc<AtomicBool>,
    /// Whether to wait for room; where writes are inline a full disk is an error like others.
    waits: bool,
}

impl Full {
    pub fn new(writes: Writes) -> Self {
        Self { is_full: Arc::default(), waits: writes == Writes::OnThread }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileState {
    Open,
    Failed,
    Closed,
}

impl LogFile {
    /// Opens a file of which so many bytes are whole, and so many of these durable; the rest is
    /// void.
    pub fn open(
        files: Files,
        path: PathBuf,
        lock: FileLock,
        (whole_bytes, durable_bytes): (u64, u64),
        full: Full,
        on_fatal: OnFatal,
    ) -> io::Result<Self> {
        let file = files.open(&path, OpenMode::ReadWrite)?;
        let (end, durable) = (whole_bytes, durable_bytes);
        let (state, lock) = (FileState::Open, Some(lock));
        Ok(Self { files, path, file, end, durable, state, on_fatal, full, lock })
    }

    /// Appends `frames` as one write.
    ///
    /// # Errors
    /// What the system says; `on_fatal` has been told.
    pub fn append(&mut self, frames: &[u8], sync: bool) -> io::Result<()> {
        self.guarded(|log| {
            let mut mark = Vec::with_capacity(17);
            Frame::Mark { durable_bytes: log.durable }.put(&mut mark);
            log.once_there_is_room(|log| {
                let written = log.file.write_all_at(&[&mark, frames], log.end);
                written.or_else(|error| log.file.set_len(log.end).and(Err(error)))
            })?;
            log.end += (mark.len() + frames.len()) as u64;
            if sync {
                log.file.sync_data()?;
                log.durable = log.end;
            }
            Ok(())
        })
    }

    /// Puts a new file in the place of the old one, durably.
    ///
    /// # Errors
    /// As for [`LogFile::append`].
    pub fn replace(&mut self, content: &[u8]) -> io::Result<()> {
        self.guarded(|log| {
            log.once_there_is_room(|log| log.files.write_atomic(&log.path, content))?;
            log.file = log.files.open(&log.path, OpenMode::ReadWrite)?;
            log.end = content.len() as u64;
            log.durable = log.end;
            Ok(())
        })
    }

    /// Writes a file beside the log, durably.
    ///
    /// # Errors
    /// As for [`LogFile::append`].
    pub fn write_beside(&mut self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.guarded(|log| log.once_there_is_room(|log| log.files.write_atomic(path, content)))
    }

    /// Marks the file as closed in order and lets others in. Not waited for to be durable: a
    /// lost mark costs the next start a rewrite.
    ///
    /// # Errors
    /// As for [`LogFile::append`].
    pub fn close(&mut self, mut frames: Vec<u8>) -> io::Result<()> {
        Frame::Closed.put(&mut frames);
        let closed = self.append(&frames, false);
        self.state = FileState::Closed;
        self.lock = None;
        closed
    }

    fn once_there_is_room(&self, mut write: impl FnMut(&Self) -> io::Result<()>) -> io::Result<()> {
        loop {
            let written = write(self);
            let is_full = written.as_ref().is_err_and(|error| {
                matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
            });
            let was_full = self.full.is_full.swap(is_full, Ordering::Relaxed);
            if !is_full || !self.full.waits {
                return written;
            }
            if !was_full {
                tracing::error!(path = %self.path.display(), "no space for metadata, waiting");
            }
            std::thread::park_timeout(LOOK_FOR_ROOM_EVERY);
        }
    }

    fn guarded(&mut self, write: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        match self.state {
            FileState::Open => {}
            FileState::Failed => {
                return Err(io::Error::other("an earlier write to the metadata log failed"));
            }
            FileState::Closed => return Err(io::Error::other("the metadata log is closed")),
        }
        write(self).inspect_err(|error| {
            self.state = FileState::Failed;
            let source = io::Error::new(error.kind(), error.to_string());
            (self.on_fatal)(&QuorumError::Io { path: self.path.clone(), source });
        })
    }
}

type Work = Box<dyn FnOnce(&mut LogFile) + Send>;

/// Hands work to the writer, in order. Cloning shares it; when all are dropped the thread ends.
#[derive(Clone)]
pub(super) enum Writer {
    Thread(mpsc::Sender<Work>),
    Inline(Arc<Mutex<LogFile>>),
}

impl Writer {
    /// # Errors
    /// What the system says when it cannot start a thread.
    pub fn start(mut log: LogFile, writes: Writes, tasks: &Tasks) -> io::Result<Self> {
        match writes {
            Writes::Inline => Ok(Self::Inline(Arc::new(Mutex::new(log)))),
            Writes::OnThread => {
                let (sender, work) = mpsc::channel::<Work>();
                tasks.thread("quorum-log", move || {
                    while let Ok(work) = work.recv() {
                        work(&mut log);
                    }
                })?;
                Ok(Self::Thread(sender))
            }
        }
    }

    /// Runs `work` after all that was handed over before.
    pub fn submit(&self, work: impl FnOnce(&mut LogFile) + Send + 'static) {
        match self {
            // The thread ends with the last sender, and we hold one.
            Self::Thread(sender) => drop(sender.send(Box::new(work))),
            Self::Inline(log) => work(&mut log.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Runs `work` in its turn and waits for what it returns.
    ///
    /// # Errors
    /// What `work` says.
    pub async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut LogFile) -> io::Result<R> + Send + 'static,
    ) -> io::Result<R> {
        let (sender, done) = oneshot::channel();
        self.submit(move |log| {
            // Whoever waited may be gone; the work is done either way.
            let _ = sender.send(work(log));
        });
        done.await.unwrap_or_else(|_| Err(io::Error::other("the metadata log's writer ended")))
    }
}
