//! One member of the quorum: opening, the `Journal` over it, shutting down.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use openraft::{Config, SnapshotPolicy};
use tokio::sync::watch;
use uuid::Uuid;

use super::batches;
use super::error::QuorumError;
use super::frame::Frame;
use super::gate::{BATCH_BYTES_MAX, Gate};
use super::log_store::{Log, LogStore};
use super::network::Network;
use super::snapshots::{StateStore, restore};
use super::state::State;
use super::types::{MemberId, Raft};
use super::wal;
use super::watch::{ELECTION_TIMEOUT_MIN, LEASE, Watch};
use super::writer::{Full, LogFile, Writer, Writes};
use crate::common::{BrokerId, Offset};
use crate::env::{Env, FileLock};
use crate::machine::{Batch, CommitSink, Journal, JournalError, Leadership, NotReady, ReadEntry};

/// Told once, by name, when the quorum cannot go on; see [`super::end_process`].
pub type OnFatal = Arc<dyn Fn(&QuorumError) + Send + Sync>;

/// Entries behind a snapshot that stay in the log, for members that are a little late.
const ENTRIES_KEPT: u64 = 100;
const HEARTBEAT_MS: u64 = 200;
const LOCK_NAME: &str = ".lock";

/// What a member needs to know of itself.
pub struct QuorumConfig {
    /// The quorum's own directory, made if missing. Its name is durable once its parent is
    /// synced: make it before the parent's `meta.properties` is written, which does that.
    pub dir: PathBuf,
    pub node_id: BrokerId,
    /// Of the disk that `dir` is on: a wiped disk is another member.
    pub directory_id: Uuid,
    /// Where other members would reach this one, `host:port`; kept in the membership.
    pub address: String,
    /// What a fresh log begins with, from offset 0 on. Not looked at when there is a log.
    pub first: Vec<Batch>,
    pub writes: Writes,
    pub on_fatal: OnFatal,
}

/// A running member. In this version it is the only voter.
pub struct Quorum {
    raft: Raft,
    gate: Arc<Gate>,
    state: Arc<State>,
    log: Log,
    writer: Writer,
}

impl Quorum {
    /// Opens the log, or makes one, and returns when this node leads it: what was committed has
    /// been told to `sink` by then. A fresh directory costs two fsyncs, a log closed in order
    /// none, any other two.
    ///
    /// # Errors
    /// [`QuorumError`]; nothing runs then.
    pub async fn open(
        config: QuorumConfig,
        env: Env,
        sink: Arc<dyn CommitSink>,
    ) -> Result<Arc<Self>, QuorumError> {
        // openraft spawns where it is made.
        let opening = env.tasks.clone().spawn_control(Self::open_here(config, env, sink));
        opening.await.map_err(|error| QuorumError::Engine(error.to_string()))?
    }

    async fn open_here(
        config: QuorumConfig,
        env: Env,
        sink: Arc<dyn CommitSink>,
    ) -> Result<Arc<Self>, QuorumError> {
        let member = MemberId { node_id: config.node_id.0, directory_id: config.directory_id };
        let lock = take_directory(&config, &env)?;
        let (dir, files) = (config.dir, env.files.clone());
        let first = batches::encode_all(&config.first, wal::FIRST_TERM as i32);
        let opened = wal::open(&files, &dir, member, &config.address, first)?;
        let (log, state) = (Log::new(opened.content), State::new(sink));
        restore(&files, &dir, &log, &state)?;

        let path = dir.join(wal::FILE_NAME);
        let on_fatal = only_once(config.on_fatal);
        let full = Full::new(config.writes);
        let known = (opened.whole_bytes, opened.durable_bytes);
        let is_full = full.is_full.clone();
        let file = LogFile::open(files, path.clone(), lock, known, full, on_fatal.clone());
        let file = file.map_err(QuorumError::io(&path))?;
        let writer =
            Writer::start(file, config.writes, &env.tasks).map_err(QuorumError::io(&path))?;
        let hinted = log.lock().committed.map_or(0, |id| id.index);
        let log_store = LogStore {
            member,
            log: log.clone(),
            state: state.clone(),
            writer: writer.clone(),
            hinted,
        };
        let state_store =
            StateStore { state: state.clone(), log: log.clone(), writer: writer.clone(), dir };
        let engine = |error: String| QuorumError::Engine(error);
        let raft = Raft::new(member, Arc::new(raft_config()), Network, log_store, state_store);
        let raft = raft.await.map_err(|error| engine(error.to_string()))?;

        let gate = Gate::new(is_full);
        let watch = Watch {
            member,
            raft: raft.clone(),
            gate: gate.clone(),
            state: state.clone(),
            log: log.clone(),
            env: env.clone(),
            on_fatal,
            campaign: None,
            snapshot_asked: (0, 0),
        };
        env.tasks.spawn_control(gate.clone().propose_to(raft.clone()));
        let mut watching = env.tasks.spawn_control(watch.run());
        let mut leadership = gate.leadership();
        tokio::select! {
            biased;
            led = leadership.wait_for(|leadership| leadership.leads) => {
                led.map_err(|error| engine(error.to_string()))?;
            }
            _ = &mut watching => {
                gate.stop();
                return Err(engine("it ended at its start".into()));
            }
        }
        Ok(Arc::new(Self { raft, gate, state, log, writer }))
    }

    /// Stops taking batches, ends the engine, and closes the log in order, so that the next start
    /// believes it as it is. What was appended and is not committed yet may be lost.
    ///
    /// # Errors
    /// [`QuorumError`]: the log was not closed in order.
    pub async fn shutdown(&self) -> Result<(), QuorumError> {
        self.gate.stop();
        self.raft.shutdown().await.map_err(|error| QuorumError::Engine(error.to_string()))?;
        let mut frames = Vec::new();
        if let Some(id) = self.log.lock().committed {
            Frame::Committed(id).put(&mut frames);
        }
        let closing = self.writer.run(move |file| file.close(frames));
        closing.await.map_err(|source| QuorumError::Io { path: wal::FILE_NAME.into(), source })
    }

    /// Makes a snapshot of what is committed now, and lets the log before it go; both happen in
    /// the background.
    ///
    /// # Errors
    /// [`QuorumError::Engine`]: it has ended.
    pub async fn snapshot(&self) -> Result<(), QuorumError> {
        let asked = self.raft.trigger().snapshot().await;
        asked.map_err(|error| QuorumError::Engine(error.to_string()))
    }
}

/// What tests of this room see and do beside the seam.
#[cfg(test)]
impl Quorum {
    /// A log file like ours, but of a node that asked for `vote` and fell before the answer.
    pub(super) fn log_as_voted(&self, vote: super::types::Vote, member: MemberId) -> Vec<u8> {
        let mut content = self.log.lock();
        content.vote = Some(vote);
        content.to_file(member)
    }

    /// Proposes whole batches past the gate.
    pub(super) async fn propose_beside(&self, batches: bytes::Bytes) -> super::types::Applied {
        let proposed = self.raft.client_write(super::types::Payload(batches)).await;
        proposed.expect("committed").data
    }

    /// Index of the newest Raft entry.
    pub(super) fn last_index(&self) -> u64 {
        self.log.lock().last().map_or(0, |id| id.index)
    }
}

impl Drop for Quorum {
    fn drop(&mut self) {
        self.gate.stop();
    }
}

fn take_directory(config: &QuorumConfig, env: &Env) -> Result<FileLock, QuorumError> {
    let dir = &config.dir;
    env.files.create_dir_all(dir).map_err(QuorumError::io(dir))?;
    let lock = env.files.lock(&dir.join(LOCK_NAME));
    lock.map_err(|source| QuorumError::InUse { path: dir.clone(), source })
}

/// A failed write ends the engine as well; the first reason is the one to tell.
fn only_once(on_fatal: OnFatal) -> OnFatal {
    let told = AtomicBool::new(false);
    Arc::new(move |error| {
        if !told.swap(true, Ordering::Relaxed) {
            on_fatal(error);
        }
    })
}

/// A literal, since `Config::default` runs a command-line parser.
#[expect(deprecated, reason = "a literal names every field, `send_snapshot_timeout` included")]
fn raft_config() -> Config {
    Config {
        cluster_name: "ottla".to_owned(),
        election_timeout_min: ELECTION_TIMEOUT_MIN.as_millis() as u64,
        election_timeout_max: LEASE.as_millis() as u64,
        heartbeat_interval: HEARTBEAT_MS,
        install_snapshot_timeout: 10_000,
        send_snapshot_timeout: 0,
        max_payload_entries: 64,
        replication_lag_threshold: 20_000,
        // By bytes and entries, which `Watch` looks at.
        snapshot_policy: SnapshotPolicy::Never,
        snapshot_max_chunk_size: 3 << 20,
        max_in_snapshot_log_to_keep: ENTRIES_KEPT,
        purge_batch_size: 1,
        enable_tick: true,
        enable_heartbeat: true,
        // The election timer is `Watch`'s.
        enable_elect: false,
    }
}

impl Journal for Quorum {
    fn leadership(&self) -> watch::Receiver<Leadership> {
        self.gate.leadership()
    }

    fn ready(&self) -> Result<(), NotReady> {
        self.gate.ready()
    }

    fn append(
        &self,
        epoch: i32,
        expected_base: Offset,
        batch: Batch,
    ) -> Result<Offset, JournalError> {
        self.gate.append(epoch, expected_base, &batch)
    }

    fn committed(&self) -> watch::Receiver<Offset> {
        self.state.committed()
    }

    fn end_offset(&self) -> Offset {
        self.gate.end()
    }

    fn start_offset(&self) -> Offset {
        self.state.start()
    }

    fn batch_bytes_max(&self) -> usize {
        BATCH_BYTES_MAX
    }

    fn read(&self, from: Offset, bytes_max: usize) -> Result<Vec<ReadEntry>, JournalError> {
        self.state.read(from, bytes_max)
    }
}
