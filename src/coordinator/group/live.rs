//! A group with members, as its leader holds it in memory: soft state. Only a finished rebalance
//! reaches the log ([`Live::metadata`]); what failover loses here it also loses in Kafka.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::error::ClientFault;
use super::state::{GroupMetadata, MemberMetadata};
use super::subscription;
use super::types::{GroupId, GroupState, InstanceId, JoinedMember, MemberId, Protocol};
use crate::common::TopicName;
use crate::coordinator::hash::java_bucket;
use crate::machine::Ticket;

/// A member, from its first complete join until it leaves or times out.
#[derive(Debug, Clone)]
pub struct Member {
    pub id: MemberId,
    pub group_instance_id: Option<InstanceId>,
    pub client_id: Arc<str>,
    pub client_host: Arc<str>,
    pub rebalance_timeout_ms: i32,
    pub session_timeout_ms: i32,
    /// In order of preference.
    pub protocols: Vec<Protocol>,
    pub assignment: Bytes,
    pub awaiting_join: Option<Ticket>,
    pub awaiting_sync: Option<Ticket>,
    /// In its first rebalance: it can time out even while it waits, since it has no id yet with
    /// which it could send heartbeats.
    pub is_new: bool,
}

/// How long the first rebalance of an empty group still waits for more members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InitialDelay {
    /// Of the wait that runs now.
    pub delay_ms: i32,
    /// What may come after it.
    pub remaining_ms: i32,
    /// A member came during this wait.
    pub is_extended: bool,
}

/// A group that has members or may get them.
#[derive(Debug, Clone)]
pub struct Live {
    pub id: GroupId,
    pub state: GroupState,
    pub generation_id: i32,
    pub protocol_type: Option<Arc<str>>,
    pub protocol_name: Option<Arc<str>>,
    pub leader: Option<MemberId>,
    pub state_timestamp_ms: Option<i64>,
    pub members: BTreeMap<MemberId, Member>,
    /// Member ids of the static members.
    pub instances: BTreeMap<InstanceId, MemberId>,
    /// Ids handed out with MEMBER_ID_REQUIRED that have not joined with it yet.
    pub pending_join: BTreeSet<MemberId>,
    /// Members of this generation that have not fetched their assignment.
    pub pending_sync: BTreeSet<MemberId>,
    /// Topics of all members; `None` where that is not known.
    pub subscribed: Option<BTreeSet<TopicName>>,
    /// In the first rebalance of an empty group.
    pub initial: Option<InitialDelay>,
    /// How many members support each protocol.
    supported: BTreeMap<Arc<str>, usize>,
    awaiting_join: usize,
}

impl Live {
    /// The group that `metadata` tells of: stable with its members, or empty.
    pub fn loaded(id: GroupId, metadata: &GroupMetadata) -> Self {
        let mut group = Self {
            id,
            state: metadata.state(),
            generation_id: metadata.generation_id,
            protocol_type: metadata.protocol_type.clone(),
            protocol_name: metadata.protocol_name.clone(),
            leader: metadata.leader.clone(),
            state_timestamp_ms: metadata.state_timestamp_ms,
            members: BTreeMap::new(),
            instances: BTreeMap::new(),
            pending_join: BTreeSet::new(),
            pending_sync: BTreeSet::new(),
            subscribed: None,
            initial: None,
            supported: BTreeMap::new(),
            awaiting_join: 0,
        };
        let protocol = metadata.protocol_name.clone().unwrap_or_default();
        for member in &metadata.members {
            group.add(Member::loaded(member, protocol.clone()));
        }
        group.subscribed = group.find_subscribed();
        group
    }

    /// A group that nobody has heard of.
    pub fn new(id: GroupId, now_ms: i64) -> Self {
        let state_timestamp_ms = Some(now_ms);
        Self::loaded(id, &GroupMetadata { state_timestamp_ms, ..GroupMetadata::default() })
    }

    /// The group's record: what a coordinator that takes over will know. The members' metadata is
    /// that of the chosen protocol.
    pub fn metadata(&self) -> GroupMetadata {
        let protocol = self.protocol_name.as_deref().unwrap_or_default();
        let members = self.members.values().map(|member| MemberMetadata {
            member_id: member.id.clone(),
            group_instance_id: member.group_instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            rebalance_timeout_ms: member.rebalance_timeout_ms,
            session_timeout_ms: member.session_timeout_ms,
            subscription: member.metadata(protocol),
            assignment: member.assignment.clone(),
        });
        GroupMetadata {
            protocol_type: self.protocol_type.clone(),
            generation_id: self.generation_id,
            protocol_name: self.protocol_name.clone(),
            leader: self.leader.clone(),
            state_timestamp_ms: self.state_timestamp_ms,
            members: members.collect(),
        }
    }

    /// Nothing that its record does not say: it need not be kept in memory.
    pub fn is_idle(&self) -> bool {
        self.state == GroupState::Empty && self.pending_join.is_empty()
    }

    pub fn enter(&mut self, state: GroupState, now_ms: i64) {
        self.state = state;
        self.state_timestamp_ms = Some(now_ms);
    }

    pub fn is_leader(&self, member_id: &str) -> bool {
        self.leader.as_deref() == Some(member_id)
    }

    /// Adds a member with its ticket, if it waits; the first one leads and brings the protocol
    /// type.
    pub fn add(&mut self, member: Member) {
        if let Some(instance) = &member.group_instance_id {
            self.instances.insert(instance.clone(), member.id.clone());
        }
        self.leader.get_or_insert_with(|| member.id.clone());
        self.awaiting_join += usize::from(member.awaiting_join.is_some());
        self.count_protocols(&member.protocols, 1);
        self.pending_join.remove(&member.id);
        self.members.insert(member.id.clone(), member);
    }

    /// Forgets a member, joined or pending; another one leads if it led.
    pub fn remove(&mut self, member_id: &str) -> Option<Member> {
        let removed = self.members.remove(member_id);
        if let Some(member) = &removed {
            self.count_protocols(&member.protocols, -1);
            self.awaiting_join -= usize::from(member.awaiting_join.is_some());
            if let Some(instance) = &member.group_instance_id {
                self.instances.remove(instance);
            }
        }
        if self.is_leader(member_id) {
            self.leader = self.members.keys().next().cloned();
        }
        self.pending_join.remove(member_id);
        self.pending_sync.remove(member_id);
        removed
    }

    fn count_protocols(&mut self, protocols: &[Protocol], change: isize) {
        for protocol in protocols {
            let count = self.supported.entry(protocol.name.clone()).or_default();
            *count = count.saturating_add_signed(change);
            if *count == 0 {
                self.supported.remove(&protocol.name);
            }
        }
    }

    /// A member joins again, with what it now says of itself.
    /// - Returns the ticket of an earlier join that it no longer waits for.
    pub fn rejoin(
        &mut self,
        member_id: &str,
        protocols: Vec<Protocol>,
        timeouts_ms: (i32, i32),
        ticket: Ticket,
    ) -> Option<Ticket> {
        let mut member = self.members.remove(member_id)?;
        self.count_protocols(&member.protocols, -1);
        self.count_protocols(&protocols, 1);
        member.protocols = protocols;
        (member.session_timeout_ms, member.rebalance_timeout_ms) = timeouts_ms;
        let before = member.awaiting_join.replace(ticket);
        self.awaiting_join += usize::from(before.is_none());
        self.members.insert(member.id.clone(), member);
        before
    }

    /// Takes the ticket of a member that waits for its generation.
    pub fn take_join(&mut self, member_id: &str) -> Option<Ticket> {
        let ticket = self.members.get_mut(member_id)?.awaiting_join.take();
        self.awaiting_join -= usize::from(ticket.is_some());
        ticket
    }

    pub fn awaiting_join(&self) -> usize {
        self.awaiting_join
    }

    pub fn all_have_joined(&self) -> bool {
        self.awaiting_join == self.members.len() && self.pending_join.is_empty()
    }

    /// The longest of the members', so that nobody is thrown out early.
    pub fn rebalance_timeout_ms(&self) -> i32 {
        self.members.values().map(|member| member.rebalance_timeout_ms).fold(0, i32::max)
    }

    /// Whether a joining member can be served: it speaks the group's protocol type, and at least
    /// one protocol that every member has.
    pub fn supports(&self, protocol_type: &str, protocols: &[Protocol]) -> bool {
        if self.state == GroupState::Empty {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        self.protocol_type.as_deref() == Some(protocol_type)
            && protocols.iter().any(|protocol| self.all_support(&protocol.name))
    }

    fn all_support(&self, protocol: &str) -> bool {
        self.supported.get(protocol).copied().unwrap_or(0) == self.members.len()
    }

    /// Who is asking: by instance id first, so that a replaced static member learns of it.
    pub fn check_member(
        &self,
        member_id: &str,
        group_instance_id: Option<&InstanceId>,
    ) -> Result<(), ClientFault> {
        if let Some(instance) = group_instance_id {
            let current = self.instances.get(instance).ok_or(ClientFault::UnknownMember)?;
            if **current != *member_id {
                return Err(ClientFault::FencedInstance);
            }
        }
        if self.members.contains_key(member_id) { Ok(()) } else { Err(ClientFault::UnknownMember) }
    }

    pub fn check_generation(&self, sent: i32) -> Result<(), ClientFault> {
        let current = self.generation_id;
        if sent == current { Ok(()) } else { Err(ClientFault::IllegalGeneration { sent, current }) }
    }

    /// Keeps the leader if it has joined, else takes another one that has.
    /// - Returns false when nobody has.
    pub fn elect_leader(&mut self) -> bool {
        let has_joined = |member: &Member| member.awaiting_join.is_some();
        let leader = self.leader.as_ref().and_then(|id| self.members.get(id));
        match leader {
            None => false,
            Some(leader) if has_joined(leader) => true,
            Some(_) => {
                let other = self.members.values().find(|member| has_joined(member));
                let id = other.map(|member| member.id.clone());
                let found = id.is_some();
                self.leader = id.or(self.leader.take());
                found
            }
        }
    }

    /// Each member votes for the first of its protocols that all support; most votes win, and of
    /// equals the one that Java's `HashMap` walks over first, as Kafka has it.
    pub fn select_protocol(&self) -> Option<Arc<str>> {
        let mut votes: Vec<(Arc<str>, usize)> = Vec::new();
        for member in self.members.values() {
            let mut names = member.protocols.iter().map(|protocol| &protocol.name);
            let Some(vote) = names.find(|name| self.all_support(name)) else { continue };
            match votes.iter_mut().find(|(name, _)| name == vote) {
                Some((_, count)) => *count += 1,
                None => votes.push((vote.clone(), 1)),
            }
        }
        votes.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), java_bucket(name)));
        votes.into_iter().next().map(|(name, _)| name)
    }

    /// Counts the generation up: the members wait for their assignment, or the group is empty.
    pub fn next_generation(&mut self, now_ms: i64) {
        self.generation_id += 1;
        let is_empty = self.members.is_empty();
        self.protocol_name = if is_empty { None } else { self.select_protocol() };
        self.subscribed = self.find_subscribed();
        let state = if is_empty { GroupState::Empty } else { GroupState::CompletingRebalance };
        self.enter(state, now_ms);
        self.initial = None;
        self.pending_sync.clear();
    }

    /// Its members have come or changed by other ways than a rebalance.
    pub fn find_subscribed_again(&mut self) {
        self.subscribed = self.find_subscribed();
    }

    /// Topics of all members by their metadata; `None` if the group is no consumers' group or
    /// one member's metadata cannot be read.
    fn find_subscribed(&self) -> Option<BTreeSet<TopicName>> {
        if !self.has_consumers() {
            return None;
        }
        if self.members.is_empty() {
            return Some(BTreeSet::new());
        }
        let protocol = self.protocol_name.as_deref()?;
        let mut all = BTreeSet::new();
        for member in self.members.values() {
            all.extend(subscription::topics(&member.metadata(protocol))?);
        }
        Some(all)
    }

    /// Whether the members speak the consumer protocol.
    pub fn has_consumers(&self) -> bool {
        self.protocol_type.as_deref() == Some(subscription::CONSUMER)
    }

    /// Whether offsets of `topic` are in use. Where the topics are not known, a consumers' group
    /// uses them all, another one none.
    pub fn is_subscribed(&self, topic: &str) -> bool {
        match &self.subscribed {
            Some(topics) => topics.contains(topic),
            None => self.has_consumers(),
        }
    }

    /// All members, as the leader needs them.
    pub fn joined_members(&self) -> Vec<JoinedMember> {
        let protocol = self.protocol_name.as_deref().unwrap_or_default();
        let members = self.members.values().map(|member| JoinedMember {
            member_id: member.id.clone(),
            group_instance_id: member.group_instance_id.clone(),
            metadata: member.metadata(protocol),
        });
        members.collect()
    }
}

impl Member {
    /// Of a member in the log only the chosen protocol is known.
    fn loaded(from: &MemberMetadata, protocol: Arc<str>) -> Self {
        Self {
            id: from.member_id.clone(),
            group_instance_id: from.group_instance_id.clone(),
            client_id: from.client_id.clone(),
            client_host: from.client_host.clone(),
            rebalance_timeout_ms: from.rebalance_timeout_ms,
            session_timeout_ms: from.session_timeout_ms,
            protocols: vec![Protocol { name: protocol, metadata: from.subscription.clone() }],
            assignment: from.assignment.clone(),
            awaiting_join: None,
            awaiting_sync: None,
            is_new: false,
        }
    }

    /// What it says of itself for a protocol; empty if it does not have it.
    pub fn metadata(&self, protocol: &str) -> Bytes {
        let found = self.protocols.iter().find(|p| *p.name == *protocol);
        found.map(|p| p.metadata.clone()).unwrap_or_default()
    }

    /// Who waits for us need not send heartbeats, unless it is new.
    pub fn is_excused(&self) -> bool {
        !self.is_new && (self.awaiting_join.is_some() || self.awaiting_sync.is_some())
    }
}
