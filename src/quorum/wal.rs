//! The write-ahead log as a whole: what it says, how it is made, opened and rewritten.

use std::collections::VecDeque;
use std::path::Path;

use bytes::Bytes;
use openraft::EntryPayload;

use super::checkpoint::CheckpointId;
use super::error::QuorumError;
use super::frame::{Frame, Scanned, scan};
use super::types::{LogId, MemberId, Membership, Payload, RaftEntry, SnapshotMeta, Vote, log_id};
use crate::env::Files;

/// The log of Raft: entries, vote, and what stands in the newest snapshot.
pub(super) const FILE_NAME: &str = "quorum.log";
/// Term of the first leader; the epoch of the first records.
pub(super) const FIRST_TERM: u64 = 1;

/// What the log says, in memory. Payloads are slices of the file as it was read.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// Consecutive, the first one right behind `purged`.
    pub entries: VecDeque<RaftEntry>,
    pub purged: Option<LogId>,
    pub vote: Option<Vote>,
    pub committed: Option<LogId>,
    pub snapshot: Option<SnapshotMeta>,
    /// Of the payloads of all entries read and pushed since the start.
    pub logged_bytes: usize,
}

impl Content {
    fn replay(frames: Vec<Frame>) -> (Self, bool) {
        let (mut content, mut closed) = (Self::default(), false);
        for frame in frames {
            closed = matches!(frame, Frame::Closed);
            match frame {
                Frame::Head { .. } | Frame::Mark { .. } | Frame::Closed => {}
                Frame::Vote(vote) => content.vote = Some(vote),
                Frame::Entry(entry) => content.push(entry),
                Frame::Truncate(index) => content.truncate(index),
                Frame::Purged(id) => content.purge(id),
                Frame::Committed(id) => content.committed = Some(id),
                Frame::Snapshot(meta) => content.snapshot = Some(meta),
            }
        }
        // The hint was not waited for and may be of entries that the crash took.
        content.committed = content.committed.min(content.last());
        (content, closed)
    }

    /// Index of the first entry kept.
    fn first(&self) -> u64 {
        self.entries.front().map_or(0, |entry| entry.log_id.index)
    }

    pub fn last(&self) -> Option<LogId> {
        self.entries.back().map(|entry| entry.log_id).or(self.purged)
    }

    pub fn push(&mut self, entry: RaftEntry) {
        self.logged_bytes += payload_bytes(&entry);
        self.entries.push_back(entry);
    }

    /// Entries with indexes in `from..until`, as far as they are kept and take at most
    /// `bytes_max`; at least one where there is one.
    pub fn range(&self, from: u64, until: u64, bytes_max: usize) -> Vec<RaftEntry> {
        let first = self.first();
        let skipped = from.saturating_sub(first) as usize;
        let end = (until.saturating_sub(first) as usize).min(self.entries.len());
        let (mut taken, mut bytes) = (Vec::new(), 0);
        for entry in self.entries.range(skipped.min(end)..end) {
            bytes += payload_bytes(entry);
            if bytes > bytes_max && !taken.is_empty() {
                break;
            }
            taken.push(entry.clone());
        }
        taken
    }

    /// Voids the entries from `index` on.
    pub fn truncate(&mut self, index: u64) {
        let kept = index.saturating_sub(self.first()) as usize;
        self.entries.truncate(kept);
    }

    /// Forgets the entries up to `id`.
    pub fn purge(&mut self, id: LogId) {
        while self.entries.front().is_some_and(|entry| entry.log_id.index <= id.index) {
            self.entries.pop_front();
        }
        self.purged = self.purged.max(Some(id));
    }

    /// A file that says the same, for [`Files::write_atomic`].
    pub fn to_file(&self, member: MemberId) -> Vec<u8> {
        let mut out = Vec::new();
        let mut head = Frame::Head { member, durable_bytes: 0 };
        head.put(&mut out);
        let frames = [
            self.purged.map(Frame::Purged),
            self.snapshot.clone().map(Frame::Snapshot),
            self.vote.map(Frame::Vote),
        ];
        frames.iter().flatten().for_each(|frame| frame.put(&mut out));
        for entry in &self.entries {
            Frame::Entry(entry.clone()).put(&mut out);
        }
        if let Some(id) = self.committed {
            Frame::Committed(id).put(&mut out);
        }
        head = Frame::Head { member, durable_bytes: out.len() as u64 };
        let mut front = Vec::new();
        head.put(&mut front);
        out[..front.len()].copy_from_slice(&front);
        out
    }
}

fn payload_bytes(entry: &RaftEntry) -> usize {
    match &entry.payload {
        EntryPayload::Normal(Payload(batches)) => batches.len(),
        EntryPayload::Blank | EntryPayload::Membership(_) => 0,
    }
}

/// What [`open`] found.
pub(super) struct Opened {
    pub content: Content,
    /// Where the next write goes.
    pub whole_bytes: u64,
    /// Up to where the file is known to be on the disk.
    pub durable_bytes: u64,
}

/// Reads the log in `dir`, or makes one that has `member` as its only voter and leader and holds
/// `first` (batches, or nothing) as committed records: two fsyncs, and no election afterwards.
///
/// A log that was not closed in order is written anew before it is believed (two fsyncs): what
/// was read may be in the page cache only, and its end may be torn.
///
/// # Errors
/// [`QuorumError::Foreign`], [`QuorumError::Damaged`], [`QuorumError::Io`].
pub(super) fn open(
    files: &Files,
    dir: &Path,
    member: MemberId,
    address: &str,
    first: Bytes,
) -> Result<Opened, QuorumError> {
    let path = dir.join(FILE_NAME);
    if !files.exists(&path) {
        check_is_fresh(files, dir, &path)?;
        let content = fresh(member, address, first);
        return rewritten(files, &path, member, content);
    }
    let file = Bytes::from(files.read(&path).map_err(QuorumError::io(&path))?);
    let scanned = scan(&file).map_err(|damage| QuorumError::Damaged {
        path: path.clone(),
        at: damage.at,
        reason: damage.reason.to_owned(),
    })?;
    check_owner(&path, &scanned, member)?;
    let (whole_bytes, is_whole) = (scanned.whole_bytes, scanned.whole_bytes == file.len());
    // The end of a file that was closed in order was not waited for.
    let durable_bytes = scanned.frames.iter().rev().find_map(Frame::durable_bytes).unwrap_or(0);
    let (content, closed) = Content::replay(scanned.frames);
    check_order(&path, &content)?;
    if closed && is_whole {
        return Ok(Opened { content, whole_bytes: whole_bytes as u64, durable_bytes });
    }
    tracing::info!(torn_bytes = file.len() - whole_bytes, "metadata log was not closed in order");
    rewritten(files, &path, member, content)
}

/// A directory with snapshots is not fresh: its log is missing, and a new one would be another,
/// empty cluster.
fn check_is_fresh(files: &Files, dir: &Path, path: &Path) -> Result<(), QuorumError> {
    let names = files.list(dir).map_err(QuorumError::io(dir))?;
    match names.iter().find(|entry| CheckpointId::of_file(&entry.name).is_some()) {
        None => Ok(()),
        Some(entry) => Err(QuorumError::Damaged {
            path: path.to_path_buf(),
            at: 0,
            reason: format!("the file is missing, but its snapshot `{}` is there", entry.name),
        }),
    }
}

fn rewritten(
    files: &Files,
    path: &Path,
    member: MemberId,
    content: Content,
) -> Result<Opened, QuorumError> {
    let file = content.to_file(member);
    files.write_atomic(path, &file).map_err(QuorumError::io(path))?;
    let whole_bytes = file.len() as u64;
    Ok(Opened { content, whole_bytes, durable_bytes: whole_bytes })
}

fn check_owner(path: &Path, scanned: &Scanned, member: MemberId) -> Result<(), QuorumError> {
    match scanned.frames.first() {
        Some(Frame::Head { member: found, .. }) if *found != member => Err(QuorumError::Foreign {
            path: path.to_path_buf(),
            found: found.to_string(),
            expected: member.to_string(),
        }),
        _ => Ok(()),
    }
}

/// Raft relies on entries without a hole; the file is ours, so a hole is damage.
fn check_order(path: &Path, content: &Content) -> Result<(), QuorumError> {
    let expected = content.purged.map_or(0, |purged| purged.index + 1)..;
    let is_wrong = |(entry, expected): (&RaftEntry, u64)| entry.log_id.index != expected;
    if content.entries.iter().zip(expected).any(is_wrong) {
        let reason = "the entries are not consecutive".to_owned();
        return Err(QuorumError::Damaged { path: path.to_path_buf(), at: 0, reason });
    }
    Ok(())
}

/// A quorum of one that has elected itself and committed `first`.
fn fresh(member: MemberId, address: &str, first: Bytes) -> Content {
    let nodes = [(member, openraft::BasicNode::new(address))];
    let membership = Membership::new(
        vec![[member].into()],
        nodes.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
    );
    let mut content = Content::default();
    let payload = EntryPayload::Membership(membership);
    content.push(RaftEntry { log_id: log_id(0, 0), payload });
    content.push(RaftEntry { log_id: log_id(FIRST_TERM, 1), payload: EntryPayload::Blank });
    if !first.is_empty() {
        let payload = EntryPayload::Normal(Payload(first));
        content.push(RaftEntry { log_id: log_id(FIRST_TERM, 2), payload });
    }
    content.vote = Some(Vote::new_committed(FIRST_TERM, member));
    content
}
