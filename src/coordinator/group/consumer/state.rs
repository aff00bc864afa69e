//! The replicated state of a consumer group: what its records say, and what follows from them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use imbl::OrdMap;

use super::change::ConsumerChange;
use crate::common::{TopicId, TopicName};
use crate::coordinator::group::types::{InstanceId, MemberId, Protocol};

/// Partitions by topic.
pub type Assignment = BTreeMap<TopicId, BTreeSet<i32>>;
/// Partitions by topic, each with the epoch since which a member has it.
pub type Owned = BTreeMap<TopicId, BTreeMap<i32, i32>>;

/// What a member says of itself; an empty `regex` is none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subscription {
    pub instance_id: Option<InstanceId>,
    pub rack_id: Option<Arc<str>>,
    pub client_id: Arc<str>,
    pub client_host: Arc<str>,
    pub topics: BTreeSet<TopicName>,
    pub regex: Arc<str>,
    pub rebalance_timeout_ms: i32,
    pub assignor: Option<Arc<str>>,
    /// Of a member that speaks the classic protocol.
    pub classic: Option<ClassicSide>,
}

/// What only a classic member has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassicSide {
    pub session_timeout_ms: i32,
    /// In order of preference.
    pub protocols: Vec<Protocol>,
}

/// How far a member is on its way to its target assignment; the numbers are Kafka's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemberState {
    #[default]
    Stable = 0,
    /// It is to give partitions back first.
    Unrevoked = 1,
    /// It waits for partitions that others still have.
    Unreleased = 2,
    /// Written by a later version.
    Unknown = 127,
}

/// What a member has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Current {
    /// -1: it has left; -2: a static member that will be back.
    pub epoch: i32,
    pub previous_epoch: i32,
    pub state: MemberState,
    pub assigned: Owned,
    /// What it is to give back.
    pub revoking: Owned,
}

impl Default for Current {
    fn default() -> Self {
        let (assigned, revoking) = (Owned::new(), Owned::new());
        Self { epoch: 0, previous_epoch: -1, state: MemberState::Stable, assigned, revoking }
    }
}

impl Current {
    pub fn is_reconciled_to(&self, target_epoch: i32) -> bool {
        self.state == MemberState::Stable && self.epoch == target_epoch
    }
}

/// A member: the last of its two records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConsumerMember {
    pub about: Arc<Subscription>,
    pub current: Arc<Current>,
}

/// Of a new group; 0 would tell a member to join.
pub const FIRST_EPOCH: i32 = 1;

/// The group's epoch and the hash of its topics (see [`hash`](super::hash)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupEpoch {
    pub epoch: i32,
    pub metadata_hash: i64,
}

/// For which epoch the target assignment was made, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TargetEpoch {
    pub epoch: i32,
    /// 0: the next one may follow at once.
    pub timestamp_ms: i64,
}

/// The topics that a regular expression stands for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResolvedRegex {
    pub topics: BTreeSet<TopicName>,
    /// End offset of the image that they were looked up in.
    pub version: i64,
    pub timestamp_ms: i64,
}

/// A consumer group. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct ConsumerGroup {
    pub epoch: GroupEpoch,
    pub target_epoch: TargetEpoch,
    pub members: OrdMap<MemberId, ConsumerMember>,
    pub targets: OrdMap<MemberId, Arc<Assignment>>,
    pub regexes: OrdMap<Arc<str>, Arc<ResolvedRegex>>,
    /// Member ids of the static members; follows from `members`.
    instances: OrdMap<InstanceId, MemberId>,
    /// How many members subscribe by each regular expression; follows from `members`.
    subscribers: OrdMap<Arc<str>, usize>,
    /// Epoch of the member that has a partition, or is to give it back; follows from `members`.
    owners: OrdMap<(TopicId, i32), i32>,
    /// A record of Kafka before 4.1 that is to go.
    pub has_partition_metadata: bool,
}

impl Default for ConsumerGroup {
    fn default() -> Self {
        Self {
            epoch: GroupEpoch { epoch: FIRST_EPOCH, metadata_hash: 0 },
            // Nobody has been assigned anything yet, which needs no record.
            target_epoch: TargetEpoch { epoch: FIRST_EPOCH, timestamp_ms: 0 },
            members: OrdMap::new(),
            targets: OrdMap::new(),
            regexes: OrdMap::new(),
            instances: OrdMap::new(),
            subscribers: OrdMap::new(),
            owners: OrdMap::new(),
            has_partition_metadata: false,
        }
    }
}

impl ConsumerGroup {
    /// One record. The end of the group itself is its owner's business.
    pub fn apply(&mut self, change: &ConsumerChange) {
        match change {
            ConsumerChange::Epoch(epoch) => self.epoch = epoch.unwrap_or(self.epoch),
            ConsumerChange::PartitionMetadata { exists } => self.has_partition_metadata = *exists,
            ConsumerChange::Member(id, Some(about)) => self.set_about(id, about),
            ConsumerChange::Member(id, None) => self.remove(id),
            ConsumerChange::TargetEpoch(epoch) => self.target_epoch = epoch.unwrap_or_default(),
            ConsumerChange::Target(id, Some(target)) => {
                self.targets.insert(id.clone(), target.clone());
            }
            ConsumerChange::Target(id, None) => {
                self.targets.remove(id);
            }
            ConsumerChange::Current(id, current) => match current {
                Some(current) => self.set_current(id, current.clone()),
                None if self.members.contains_key(id) => {
                    let gone = Current { epoch: -1, previous_epoch: -1, ..Current::default() };
                    self.set_current(id, Arc::new(gone));
                }
                None => {}
            },
            ConsumerChange::Regex(regex, Some(resolved)) => {
                self.regexes.insert(regex.clone(), resolved.clone());
            }
            ConsumerChange::Regex(regex, None) => {
                self.regexes.remove(regex);
            }
        }
    }

    fn set_about(&mut self, id: &MemberId, about: &Arc<Subscription>) {
        let member = self.members.entry(id.clone()).or_default();
        let before = std::mem::replace(&mut member.about, about.clone());
        if let Some(instance) = &before.instance_id {
            self.instances.remove(instance);
        }
        if let Some(instance) = &about.instance_id {
            self.instances.insert(instance.clone(), id.clone());
        }
        self.unsubscribe(&before.regex);
        if !about.regex.is_empty() {
            *self.subscribers.entry(about.regex.clone()).or_default() += 1;
        }
    }

    /// One member less subscribes by `regex`.
    fn unsubscribe(&mut self, regex: &Arc<str>) {
        match self.subscribers.get_mut(regex) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.subscribers.remove(regex)),
        }
    }

    fn set_current(&mut self, id: &MemberId, current: Arc<Current>) {
        let member = self.members.entry(id.clone()).or_default();
        let before = std::mem::replace(&mut member.current, current.clone());
        self.disown(&before);
        for (topic, partitions) in current.assigned.iter().chain(&current.revoking) {
            for partition in partitions.keys() {
                self.owners.insert((*topic, *partition), current.epoch);
            }
        }
    }

    /// Forgets what `member` has, unless somebody has got it meanwhile.
    fn disown(&mut self, member: &Current) {
        for (topic, partitions) in member.assigned.iter().chain(&member.revoking) {
            for partition in partitions.keys() {
                let key = (*topic, *partition);
                if self.owners.get(&key) == Some(&member.epoch) {
                    self.owners.remove(&key);
                }
            }
        }
    }

    fn remove(&mut self, id: &MemberId) {
        let Some(member) = self.members.remove(id) else { return };
        self.disown(&member.current);
        self.unsubscribe(&member.about.regex);
        // Who replaced it may carry its instance id by now.
        if let Some(instance) = &member.about.instance_id
            && self.instances.get(instance) == Some(id)
        {
            self.instances.remove(instance);
        }
    }

    pub fn static_member(&self, instance: &str) -> Option<(&MemberId, &ConsumerMember)> {
        let id = self.instances.get(instance)?;
        self.members.get_key_value(id)
    }

    /// Whether a member has the partition or is yet to give it back.
    pub fn has_owner(&self, topic: TopicId, partition: i32) -> bool {
        self.owners.contains_key(&(topic, partition))
    }

    /// Kafka's name of the group's state.
    pub fn state(&self) -> &'static str {
        let target = self.target_epoch.epoch;
        if self.members.is_empty() {
            "Empty"
        } else if self.epoch.epoch > target {
            "Assigning"
        } else if self.members.values().all(|member| member.current.is_reconciled_to(target)) {
            "Stable"
        } else {
            "Reconciling"
        }
    }

    /// Topics of all members, those that their regular expressions stand for included.
    pub fn subscribed(&self) -> BTreeSet<TopicName> {
        let named = self.members.values().flat_map(|member| &member.about.topics);
        let matched = self.regexes.values().flat_map(|resolved| &resolved.topics);
        named.chain(matched).cloned().collect()
    }

    pub fn is_subscribed(&self, topic: &str) -> bool {
        self.members.values().any(|member| member.about.topics.contains(topic))
            || self.regexes.values().any(|resolved| resolved.topics.contains(topic))
    }

    /// The topics of one member.
    pub fn topics_of(&self, about: &Subscription) -> BTreeSet<TopicName> {
        let resolved = self.regexes.get(&about.regex);
        let matched = resolved.into_iter().flat_map(|resolved| &resolved.topics);
        about.topics.iter().chain(matched).cloned().collect()
    }

    /// How many members subscribe by `regex`.
    pub fn subscribers(&self, regex: &str) -> usize {
        self.subscribers.get(regex).copied().unwrap_or(0)
    }

    /// The regular expressions that members subscribe by.
    pub fn subscribed_regexes(&self) -> impl ExactSizeIterator<Item = &Arc<str>> {
        self.subscribers.keys()
    }

    /// The assignor that most members ask for, if any asks for one.
    pub fn preferred_assignor(&self) -> Option<&Arc<str>> {
        let mut votes: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        for assignor in self.members.values().filter_map(|member| member.about.assignor.as_ref()) {
            *votes.entry(assignor).or_default() += 1;
        }
        votes.into_iter().max_by_key(|(_, count)| *count).map(|(name, _)| name)
    }

    /// What a member is to have.
    pub fn target_of(&self, id: &MemberId) -> Arc<Assignment> {
        self.targets.get(id).cloned().unwrap_or_default()
    }

    /// How many members speak the classic protocol.
    pub fn classic_members(&self) -> usize {
        self.members.values().filter(|member| member.about.classic.is_some()).count()
    }
}
