//! Frames of the write-ahead log: length, CRC-32C, kind, body. Little-endian.
//!
//! ```text
//! frame  = length u32 (of kind and body), crc u32 (over kind and body), kind u8, body
//! file   = Head, then writes; every write is one Mark and the frames that belong to it
//! ```
//! A Mark says up to which byte the file was durable when the write was made. So a frame that
//! cannot be read is the torn end of the last write, or, where a later Mark says that it was
//! durable, a damaged file.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Buf, BufMut, Bytes};
use openraft::{BasicNode, EntryPayload};
use uuid::Uuid;

use super::types::{
    LogId, MemberId, Membership, Payload, RaftEntry, SnapshotMeta, StoredMembership, Vote, log_id,
};

/// Length and CRC.
const FRONT_BYTES: usize = 8;
/// Largest frame: a payload of 8 MiB and what is around it.
pub(super) const FRAME_BYTES_MAX: usize = 16 << 20;
/// Raised when an older version could misread the file.
const VERSION: u16 = 1;

/// One statement of the log; later ones overrule earlier ones.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Frame {
    /// The first of each file: whose it is, and how many bytes were durable before it got its
    /// name.
    Head {
        member: MemberId,
        durable_bytes: u64,
    },
    /// Before this write the file was durable up to here.
    Mark {
        durable_bytes: u64,
    },
    Vote(Vote),
    Entry(RaftEntry),
    /// Entries from this index on are void.
    Truncate(u64),
    /// Entries up to this one stand in a snapshot and are not kept.
    Purged(LogId),
    /// A hint, never waited for: entries up to this one are committed.
    Committed(LogId),
    /// The newest snapshot; its file was durable before.
    Snapshot(SnapshotMeta),
    /// The last of a file that was closed in order.
    Closed,
}

mod kind {
    pub const HEAD: u8 = 0;
    pub const MARK: u8 = 1;
    pub const VOTE: u8 = 2;
    pub const BLANK: u8 = 3;
    pub const NORMAL: u8 = 4;
    pub const MEMBERSHIP: u8 = 5;
    pub const TRUNCATE: u8 = 6;
    pub const PURGED: u8 = 7;
    pub const COMMITTED: u8 = 8;
    pub const SNAPSHOT: u8 = 9;
    pub const CLOSED: u8 = 10;
}

impl Frame {
    /// How much of the file it calls durable.
    pub fn durable_bytes(&self) -> Option<u64> {
        match self {
            Self::Head { durable_bytes, .. } | Self::Mark { durable_bytes } => Some(*durable_bytes),
            _ => None,
        }
    }

    /// Appends the frame to `out`.
    pub fn put(&self, out: &mut Vec<u8>) {
        let at = out.len();
        out.put_bytes(0, FRONT_BYTES);
        self.put_content(out);
        let content = &out[at + FRONT_BYTES..];
        let (length, crc) = (content.len() as u32, crc32c::crc32c(content));
        out[at..at + 4].copy_from_slice(&length.to_le_bytes());
        out[at + 4..at + 8].copy_from_slice(&crc.to_le_bytes());
    }

    fn put_content(&self, out: &mut Vec<u8>) {
        match self {
            Self::Head { member, durable_bytes } => {
                out.put_u8(kind::HEAD);
                out.put_u16_le(VERSION);
                put_member(out, *member);
                out.put_u64_le(*durable_bytes);
            }
            Self::Mark { durable_bytes } => {
                out.put_u8(kind::MARK);
                out.put_u64_le(*durable_bytes);
            }
            Self::Vote(vote) => {
                out.put_u8(kind::VOTE);
                out.put_u64_le(vote.leader_id.term);
                out.put_u8(u8::from(vote.committed));
                out.put_u8(u8::from(vote.leader_id.voted_for.is_some()));
                put_member(out, vote.leader_id.voted_for.unwrap_or_default());
            }
            Self::Entry(entry) => put_entry(out, entry),
            Self::Truncate(index) => {
                out.put_u8(kind::TRUNCATE);
                out.put_u64_le(*index);
            }
            Self::Purged(id) => {
                out.put_u8(kind::PURGED);
                put_log_id(out, id);
            }
            Self::Committed(id) => {
                out.put_u8(kind::COMMITTED);
                put_log_id(out, id);
            }
            Self::Snapshot(meta) => {
                out.put_u8(kind::SNAPSHOT);
                put_option(out, meta.last_log_id.as_ref());
                put_option(out, meta.last_membership.log_id().as_ref());
                put_text(out, &meta.snapshot_id);
                put_membership(out, meta.last_membership.membership());
            }
            Self::Closed => out.put_u8(kind::CLOSED),
        }
    }

    /// Reads the content of a frame whose CRC holds. `None`: a kind or form that this version
    /// does not know.
    fn take_content(mut content: Bytes) -> Option<Self> {
        let content = &mut content;
        Some(match content.try_get_u8().ok()? {
            kind::HEAD => {
                let version = content.try_get_u16_le().ok()?;
                if version != VERSION {
                    return None;
                }
                let member = take_member(content)?;
                Self::Head { member, durable_bytes: content.try_get_u64_le().ok()? }
            }
            kind::MARK => Self::Mark { durable_bytes: content.try_get_u64_le().ok()? },
            kind::VOTE => {
                let term = content.try_get_u64_le().ok()?;
                let committed = content.try_get_u8().ok()? == 1;
                let is_for_somebody = content.try_get_u8().ok()? == 1;
                let member = take_member(content)?;
                let mut vote = Vote::new(term, member);
                vote.leader_id.voted_for = is_for_somebody.then_some(member);
                vote.committed = committed;
                Self::Vote(vote)
            }
            kind::BLANK => entry(take_log_id(content)?, EntryPayload::Blank),
            kind::NORMAL => {
                let id = take_log_id(content)?;
                entry(id, EntryPayload::Normal(Payload(content.split_off(0))))
            }
            kind::MEMBERSHIP => {
                let id = take_log_id(content)?;
                entry(id, EntryPayload::Membership(take_membership(content)?))
            }
            kind::TRUNCATE => Self::Truncate(content.try_get_u64_le().ok()?),
            kind::PURGED => Self::Purged(take_log_id(content)?),
            kind::COMMITTED => Self::Committed(take_log_id(content)?),
            kind::SNAPSHOT => {
                let last_log_id = take_option(content)?;
                let of_membership = take_option(content)?;
                let snapshot_id = take_text(content)?;
                let membership = take_membership(content)?;
                let last_membership = StoredMembership::new(of_membership, membership);
                Self::Snapshot(SnapshotMeta { last_log_id, last_membership, snapshot_id })
            }
            kind::CLOSED => Self::Closed,
            _ => return None,
        })
    }
}

fn entry(log_id: LogId, payload: EntryPayload<super::types::Types>) -> Frame {
    Frame::Entry(RaftEntry { log_id, payload })
}

fn put_entry(out: &mut Vec<u8>, entry: &RaftEntry) {
    match &entry.payload {
        EntryPayload::Blank => {
            out.put_u8(kind::BLANK);
            put_log_id(out, &entry.log_id);
        }
        EntryPayload::Normal(Payload(batches)) => {
            out.put_u8(kind::NORMAL);
            put_log_id(out, &entry.log_id);
            out.extend_from_slice(batches);
        }
        EntryPayload::Membership(membership) => {
            out.put_u8(kind::MEMBERSHIP);
            put_log_id(out, &entry.log_id);
            put_membership(out, membership);
        }
    }
}

fn put_member(out: &mut Vec<u8>, member: MemberId) {
    out.put_i32_le(member.node_id);
    out.put_u128_le(member.directory_id.as_u128());
}

fn take_member(from: &mut Bytes) -> Option<MemberId> {
    let node_id = from.try_get_i32_le().ok()?;
    let directory_id = Uuid::from_u128(from.try_get_u128_le().ok()?);
    Some(MemberId { node_id, directory_id })
}

fn put_log_id(out: &mut Vec<u8>, id: &LogId) {
    out.put_u64_le(id.leader_id.term);
    out.put_u64_le(id.index);
}

fn take_log_id(from: &mut Bytes) -> Option<LogId> {
    let term = from.try_get_u64_le().ok()?;
    Some(log_id(term, from.try_get_u64_le().ok()?))
}

fn put_option(out: &mut Vec<u8>, id: Option<&LogId>) {
    out.put_u8(u8::from(id.is_some()));
    if let Some(id) = id {
        put_log_id(out, id);
    }
}

fn take_option(from: &mut Bytes) -> Option<Option<LogId>> {
    match from.try_get_u8().ok()? {
        0 => Some(None),
        _ => take_log_id(from).map(Some),
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.put_u32_le(text.len() as u32);
    out.extend_from_slice(text.as_bytes());
}

fn take_text(from: &mut Bytes) -> Option<String> {
    let length = from.try_get_u32_le().ok()? as usize;
    if length > from.len() {
        return None;
    }
    String::from_utf8(from.split_to(length).to_vec()).ok()
}

fn put_membership(out: &mut Vec<u8>, membership: &Membership) {
    let configs = membership.get_joint_config();
    out.put_u32_le(configs.len() as u32);
    for config in configs {
        out.put_u32_le(config.len() as u32);
        config.iter().for_each(|member| put_member(out, *member));
    }
    let nodes: Vec<_> = membership.nodes().collect();
    out.put_u32_le(nodes.len() as u32);
    for (member, node) in nodes {
        put_member(out, *member);
        put_text(out, &node.addr);
    }
}

fn take_membership(from: &mut Bytes) -> Option<Membership> {
    let mut configs = Vec::new();
    for _ in 0..from.try_get_u32_le().ok()? {
        let mut config = BTreeSet::new();
        for _ in 0..from.try_get_u32_le().ok()? {
            config.insert(take_member(from)?);
        }
        configs.push(config);
    }
    let mut nodes = BTreeMap::new();
    for _ in 0..from.try_get_u32_le().ok()? {
        nodes.insert(take_member(from)?, BasicNode::new(take_text(from)?));
    }
    Some(Membership::new(configs, nodes))
}

/// What [`scan`] found.
#[derive(Debug)]
pub(super) struct Scanned {
    pub frames: Vec<Frame>,
    /// Bytes of whole frames; what follows was torn off by a crash.
    pub whole_bytes: usize,
}

/// A frame that was durable cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Damage {
    pub at: usize,
    pub reason: &'static str,
}

/// Reads the frames of a file, whose payloads are slices of it.
///
/// # Errors
/// [`Damage`] where more than the end of the last write is unreadable.
pub(super) fn scan(file: &Bytes) -> Result<Scanned, Damage> {
    let (mut frames, mut at) = (Vec::new(), 0);
    while let Some(content) = content_at(file, at) {
        let size = FRONT_BYTES + content.len();
        match Frame::take_content(content) {
            Some(frame) => frames.push(frame),
            None => return Err(Damage { at, reason: "written by a later version of Ottla" }),
        }
        at += size;
    }
    let durable = match frames.first() {
        Some(Frame::Head { durable_bytes, .. }) => *durable_bytes,
        _ => return Err(Damage { at: 0, reason: "the file does not begin as Ottla's log" }),
    };
    if (at as u64) < durable.max(durable_after(file, at)) {
        return Err(Damage { at, reason: "bytes that were once durable are not readable" });
    }
    Ok(Scanned { frames, whole_bytes: at })
}

/// The content of the frame at `at`, if it is whole and its CRC holds.
fn content_at(file: &Bytes, at: usize) -> Option<Bytes> {
    let front = file.get(at..at + FRONT_BYTES)?;
    let length = u32::from_le_bytes([front[0], front[1], front[2], front[3]]) as usize;
    let crc = u32::from_le_bytes([front[4], front[5], front[6], front[7]]);
    let end = at + FRONT_BYTES + length;
    if length == 0 || length > FRAME_BYTES_MAX || end > file.len() {
        return None;
    }
    let content = file.slice(at + FRONT_BYTES..end);
    (crc32c::crc32c(&content) == crc).then_some(content)
}

/// The furthest byte that a Mark behind `at` calls durable. Marks have one length, so only that
/// is looked for, byte by byte.
fn durable_after(file: &Bytes, at: usize) -> u64 {
    const MARK_LENGTH: [u8; 4] = [9, 0, 0, 0];
    let mut furthest = 0;
    for at in at..file.len().saturating_sub(FRONT_BYTES) {
        if file[at..at + 4] != MARK_LENGTH {
            continue;
        }
        if let Some(Frame::Mark { durable_bytes }) =
            content_at(file, at).and_then(Frame::take_content)
        {
            furthest = furthest.max(durable_bytes);
        }
    }
    furthest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(node_id: i32) -> MemberId {
        MemberId { node_id, directory_id: Uuid::from_u128(u128::MAX - node_id as u128) }
    }

    fn one_of_each() -> Vec<Frame> {
        let nodes: BTreeMap<_, _> =
            (1..4).map(|n| (member(n), BasicNode::new(format!("controller-{n}:9093")))).collect();
        let joint = [[member(1), member(2)].into(), [member(2), member(3)].into()];
        let membership = Membership::new(joint.to_vec(), nodes);
        let last_membership = StoredMembership::new(Some(log_id(3, 8)), membership.clone());
        let normal = EntryPayload::Normal(Payload(Bytes::from_static(b"batches")));
        let mut nobody = Vote::new(9, member(1));
        nobody.leader_id.voted_for = None;
        vec![
            Frame::Head { member: member(7), durable_bytes: 0 },
            Frame::Mark { durable_bytes: 0 },
            Frame::Vote(Vote::new_committed(u64::MAX, member(-1))),
            Frame::Vote(nobody),
            entry(log_id(1, 0), EntryPayload::Blank),
            entry(log_id(1, 1), normal),
            entry(log_id(1, 2), EntryPayload::Membership(membership)),
            Frame::Truncate(7),
            Frame::Purged(log_id(2, 6)),
            Frame::Committed(log_id(2, 7)),
            Frame::Snapshot(SnapshotMeta {
                last_log_id: Some(log_id(3, 9)),
                last_membership,
                snapshot_id: "00000000000000000009-0000000003".into(),
            }),
            Frame::Snapshot(SnapshotMeta {
                last_log_id: None,
                last_membership: StoredMembership::default(),
                snapshot_id: String::new(),
            }),
            Frame::Closed,
        ]
    }

    fn file_of(frames: &[Frame]) -> Vec<u8> {
        let mut file = Vec::new();
        frames.iter().for_each(|frame| frame.put(&mut file));
        file
    }

    #[test]
    fn every_frame_is_read_as_written() {
        let frames = one_of_each();
        let file = Bytes::from(file_of(&frames));
        let scanned = scan(&file).expect("readable");
        assert_eq!(scanned.frames, frames);
        assert_eq!(scanned.whole_bytes, file.len());
    }

    #[test]
    fn a_file_cut_anywhere_loses_its_torn_frame_only() {
        let frames = one_of_each();
        let file = file_of(&frames);
        let head = file_of(&frames[..1]).len();
        for cut in head..file.len() {
            let scanned = scan(&Bytes::copy_from_slice(&file[..cut])).expect("a torn end");
            assert_eq!(scanned.frames, frames[..scanned.frames.len()], "cut at {cut}");
            assert!(scanned.whole_bytes <= cut);
            let kept = file_of(&scanned.frames).len();
            let next = file_of(&frames[..scanned.frames.len() + 1]).len();
            assert!(kept <= cut && cut < next, "cut at {cut}: {kept} bytes kept");
        }
    }

    #[test]
    fn a_spoilt_byte_is_damage_only_where_the_file_was_durable() {
        let head = Frame::Head { member: member(1), durable_bytes: 0 };
        let first = file_of(&[head.clone(), Frame::Mark { durable_bytes: 0 }, Frame::Truncate(1)]);
        let durable_bytes = first.len() as u64;
        let mut file = first.clone();
        file.extend(file_of(&[Frame::Mark { durable_bytes }, Frame::Truncate(2)]));
        let length = file.len();
        for spoilt in file_of(&[head]).len()..length {
            let mut file = file.clone();
            file[spoilt] ^= 0x10;
            let found = scan(&Bytes::from(file)).map(|scanned| scanned.frames.len());
            let was_durable = spoilt < first.len();
            assert_eq!(found.is_err(), was_durable, "byte {spoilt}: {found:?}");
        }
    }

    #[test]
    fn a_file_shorter_than_what_its_head_says_is_damaged() {
        let frames = [
            Frame::Head { member: member(1), durable_bytes: 100 },
            Frame::Vote(Vote::new(1, member(1))),
        ];
        let file = Bytes::from(file_of(&frames));
        assert_eq!(scan(&file).map(|_| ()).map_err(|damage| damage.at), Err(file.len()));
    }
}
