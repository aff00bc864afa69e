//! The replicated state of one partition of `__consumer_offsets`: what its records say.

use std::sync::Arc;

use bytes::Bytes;
use imbl::{OrdMap, OrdSet};

use super::consumer::{ConsumerChange, ConsumerGroup};
use super::error::NotNow;
use super::record::GroupRecord;
use super::types::{
    FetchTopic, FetchedPartition, FetchedTopic, GroupId, GroupState, InstanceId, MemberId,
};
use crate::common::{NO_OFFSET, Offset, ProducerId, TopicId, TopicName};
use crate::machine::{Entry, EntryKind, Position};

/// The groups of one partition of `__consumer_offsets`, as far as they are durable: offsets, and
/// each group's last finished generation. A rebalance under way is soft, as in Kafka.
#[derive(Debug, Clone, Default)]
pub struct Groups {
    groups: OrdMap<GroupId, Kept>,
    offsets: OrdMap<OffsetKey, Arc<Committed>>,
    /// Offsets committed in transactions that are not finished, by producer.
    pending: OrdMap<(ProducerId, OffsetKey), Arc<Committed>>,
    /// The keys of `pending` by offset.
    open: OrdSet<(OffsetKey, ProducerId)>,
}

/// A group by its kind; share and streams groups will be further ones.
#[derive(Debug, Clone)]
pub enum Kept {
    Classic(Arc<GroupMetadata>),
    Consumer(Arc<ConsumerGroup>),
}

/// A classic group's last record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupMetadata {
    /// `None`: a group that only keeps offsets (a "simple" one), or has never had a member.
    pub protocol_type: Option<Arc<str>>,
    pub generation_id: i32,
    pub protocol_name: Option<Arc<str>>,
    pub leader: Option<MemberId>,
    /// When the state was entered that led to this record; `None` where it is not known.
    pub state_timestamp_ms: Option<i64>,
    pub members: Vec<MemberMetadata>,
}

/// A member in a group's last record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberMetadata {
    pub member_id: MemberId,
    pub group_instance_id: Option<InstanceId>,
    pub client_id: Arc<str>,
    pub client_host: Arc<str>,
    pub rebalance_timeout_ms: i32,
    pub session_timeout_ms: i32,
    /// Metadata of the chosen protocol.
    pub subscription: Bytes,
    pub assignment: Bytes,
}

/// Names one committed offset.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OffsetKey {
    pub group_id: GroupId,
    pub topic: TopicName,
    pub partition: i32,
}

/// One committed offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedOffset {
    pub offset: Offset,
    /// -1: unknown.
    pub leader_epoch: i32,
    pub metadata: Arc<str>,
    pub commit_timestamp_ms: i64,
    /// Given by the client in versions 2 to 4 of OffsetCommit.
    pub expire_timestamp_ms: Option<i64>,
    /// Of the topic at the time of the commit; zero in records of Kafka before 4.4, and where a
    /// transaction commits.
    pub topic_id: TopicId,
}

/// A committed offset and where its record stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    pub value: CommittedOffset,
    at: Position,
}

impl Groups {
    pub(super) fn apply(&mut self, entry: Entry<&GroupRecord>, at: Position) {
        match (entry.kind, entry.record) {
            (EntryKind::Marker { producer_id, commit, .. }, _) => self.end(producer_id, commit),
            (_, None) => {}
            (_, Some(GroupRecord::Group { group_id, value })) => match value {
                Some(metadata) => {
                    self.groups.insert(group_id.clone(), Kept::Classic(metadata.clone()));
                }
                None if self.classic(group_id).is_some() => {
                    self.groups.remove(group_id);
                }
                None => {}
            },
            (_, Some(GroupRecord::Consumer { group_id, change })) => {
                self.apply_consumer(group_id, change);
            }
            (_, Some(GroupRecord::Offset { key, value: None })) => self.forget(key),
            (kind, Some(GroupRecord::Offset { key, value: Some(value) })) => {
                // A commit makes its group: an empty one, without a protocol.
                if !self.groups.contains_key(&key.group_id) {
                    self.groups.insert(key.group_id.clone(), Kept::Classic(Arc::default()));
                }
                let committed = Arc::new(Committed { value: value.clone(), at });
                if let EntryKind::Transactional { producer_id, .. } = kind {
                    self.pending.insert((producer_id, key.clone()), committed);
                    self.open.insert((key.clone(), producer_id));
                } else {
                    self.offsets.insert(key.clone(), committed);
                }
            }
        }
    }

    /// A consumer group is there from its first record that is no tombstone on, in the place of a
    /// classic one that only kept offsets, and until its epoch is removed.
    fn apply_consumer(&mut self, group_id: &GroupId, change: &ConsumerChange) {
        if let Some(Kept::Consumer(group)) = self.groups.get_mut(group_id) {
            if matches!(change, ConsumerChange::Epoch(None)) {
                self.groups.remove(group_id);
            } else {
                Arc::make_mut(group).apply(change);
            }
        } else if !change.removes() {
            let mut group = ConsumerGroup::default();
            group.apply(change);
            self.groups.insert(group_id.clone(), Kept::Consumer(Arc::new(group)));
        }
    }

    /// A transaction is over: its offsets count, or are dropped.
    fn end(&mut self, producer_id: ProducerId, commit: bool) {
        let first = (producer_id, OffsetKey::first_of("".into()));
        let ended: Vec<_> = self
            .pending
            .range(first..)
            .take_while(|((producer, _), _)| *producer == producer_id)
            .map(|((_, key), committed)| (key.clone(), committed.clone()))
            .collect();
        for (key, committed) in ended {
            self.open.remove(&(key.clone(), producer_id));
            self.pending.remove(&(producer_id, key.clone()));
            // A plain commit that came later stays; the log may have lost one in between to
            // compaction, so only the records' places tell.
            let is_newer = self.offsets.get(&key).is_none_or(|old| old.at < committed.at);
            if commit && is_newer {
                self.offsets.insert(key, committed);
            }
        }
    }

    fn forget(&mut self, key: &OffsetKey) {
        self.offsets.remove(key);
        let producers: Vec<_> = self.producers_of(key).collect();
        for producer_id in producers {
            self.open.remove(&(key.clone(), producer_id));
            self.pending.remove(&(producer_id, key.clone()));
        }
    }

    fn producers_of(&self, key: &OffsetKey) -> impl Iterator<Item = ProducerId> {
        let range = (key.clone(), ProducerId(i64::MIN))..=(key.clone(), ProducerId(i64::MAX));
        self.open.range(range).map(|(_, producer)| *producer)
    }

    pub fn has_group(&self, group_id: &str) -> bool {
        self.groups.contains_key(group_id)
    }

    pub fn classic(&self, group_id: &str) -> Option<&Arc<GroupMetadata>> {
        match self.groups.get(group_id)? {
            Kept::Classic(metadata) => Some(metadata),
            Kept::Consumer(_) => None,
        }
    }

    pub fn consumer(&self, group_id: &str) -> Option<&Arc<ConsumerGroup>> {
        match self.groups.get(group_id)? {
            Kept::Consumer(group) => Some(group),
            Kept::Classic(_) => None,
        }
    }

    /// Groups in order of their ids, from `first` on.
    pub fn groups_from(&self, first: GroupId) -> impl Iterator<Item = (&GroupId, &Kept)> {
        self.groups.range(first..)
    }

    pub fn committed(&self, key: &OffsetKey) -> Option<&CommittedOffset> {
        self.offsets.get(key).map(|committed| &committed.value)
    }

    /// Whether a transaction that is not finished commits this offset.
    pub fn is_pending(&self, key: &OffsetKey) -> bool {
        self.producers_of(key).next().is_some()
    }

    /// All offsets of a group, in order of topic and partition.
    pub fn offsets_of(
        &self,
        group_id: &GroupId,
    ) -> impl Iterator<Item = (&OffsetKey, &CommittedOffset)> {
        let range = self.offsets.range(OffsetKey::all_of(group_id));
        range
            .take_while(|(key, _)| key.group_id == *group_id)
            .map(|(key, committed)| (key, &committed.value))
    }

    /// Offsets of a group that unfinished transactions commit; one may come more than once.
    pub fn pending_of(&self, group_id: &GroupId) -> impl Iterator<Item = &OffsetKey> {
        let first = (OffsetKey::first_of(group_id.clone()), ProducerId(i64::MIN));
        let range = self.open.range(first..).map(|(key, _)| key);
        range.take_while(|key| key.group_id == *group_id)
    }

    /// Every key with a committed or pending offset; one that has both comes twice.
    pub fn all_keys(&self) -> impl Iterator<Item = &OffsetKey> {
        self.offsets.keys().chain(self.open.iter().map(|(key, _)| key))
    }

    /// Offsets asked for, one entry each, in the order asked for; `topics: None` asks for all.
    /// - `require_stable`: where a transaction is open the entry fails with [`NotNow::UnstableOffset`].
    pub fn fetch(
        &self,
        group_id: &GroupId,
        topics: Option<&[FetchTopic]>,
        require_stable: bool,
    ) -> Vec<FetchedTopic> {
        // Offsets of a group that is gone may linger in the log; nobody sees them.
        let exists = self.groups.contains_key(group_id);
        let Some(topics) = topics else {
            return if exists { self.fetch_all(group_id, require_stable) } else { Vec::new() };
        };
        let fetch = |topic: &FetchTopic| FetchedTopic {
            id: topic.id,
            name: topic.name.clone(),
            partitions: topic
                .partitions
                .iter()
                .map(|partition| {
                    let key = OffsetKey::new(group_id.clone(), topic.name.clone(), *partition);
                    if require_stable && exists && self.is_pending(&key) {
                        return FetchedPartition::unstable(*partition);
                    }
                    let committed = self.committed(&key).filter(|c| exists && c.fits(topic.id));
                    FetchedPartition::of(*partition, committed)
                })
                .collect(),
        };
        topics.iter().map(fetch).collect()
    }

    fn fetch_all(&self, group_id: &GroupId, require_stable: bool) -> Vec<FetchedTopic> {
        let mut topics: Vec<FetchedTopic> = Vec::new();
        for (key, committed) in self.offsets_of(group_id) {
            let partition = if require_stable && self.is_pending(key) {
                FetchedPartition::unstable(key.partition)
            } else {
                FetchedPartition::of(key.partition, Some(committed))
            };
            match topics.last_mut() {
                Some(topic) if topic.name == key.topic => topic.partitions.push(partition),
                _ => topics.push(FetchedTopic {
                    id: TopicId::NONE,
                    name: key.topic.clone(),
                    partitions: vec![partition],
                }),
            }
        }
        topics
    }

    pub fn groups_count(&self) -> usize {
        self.groups.len()
    }

    pub fn offsets_count(&self) -> usize {
        self.offsets.len()
    }
}

impl GroupMetadata {
    /// The state that a group is in when all that is known of it is its last record.
    pub fn state(&self) -> GroupState {
        if self.members.is_empty() { GroupState::Empty } else { GroupState::Stable }
    }
}

impl OffsetKey {
    pub fn new(group_id: GroupId, topic: TopicName, partition: i32) -> Self {
        Self { group_id, topic, partition }
    }

    fn first_of(group_id: GroupId) -> Self {
        Self::new(group_id, "".into(), i32::MIN)
    }

    fn all_of(group_id: &GroupId) -> std::ops::RangeFrom<Self> {
        Self::first_of(group_id.clone())..
    }
}

impl CommittedOffset {
    /// Whether it was committed for the topic with this id, as far as both are known.
    fn fits(&self, topic_id: TopicId) -> bool {
        self.topic_id == topic_id || self.topic_id == TopicId::NONE || topic_id == TopicId::NONE
    }
}

impl FetchedPartition {
    pub(super) fn of(partition: i32, committed: Option<&CommittedOffset>) -> Self {
        let (offset, leader_epoch, metadata) = match committed {
            Some(c) => (c.offset, c.leader_epoch, c.metadata.clone()),
            None => (NO_OFFSET, -1, "".into()),
        };
        Self { partition, offset, leader_epoch, metadata, outcome: Ok(()) }
    }

    fn unstable(partition: i32) -> Self {
        Self { outcome: Err(NotNow::UnstableOffset.into()), ..Self::of(partition, None) }
    }
}
