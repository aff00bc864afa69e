//! JoinGroup: who comes in, under which id, and what that does to the group.

use uuid::Uuid;

use super::error::{ClientFault, GroupError, NotNow};
use super::live::{Live, Member};
use super::machine::{GroupAnswer, LiveGroups, Turn};
use super::record::{GroupRecord, NAME_BYTES_MAX};
use super::types::{GroupState, InstanceId, JoinGroup, JoinRefused, Joined, MemberId};
use crate::env::Random;

/// How long a new member waits in its first rebalance: it has no id yet to send heartbeats with,
/// and a client that gave up would otherwise stay forever. Kafka's fixed 5 minutes.
const NEW_MEMBER_TIMEOUT_MS: i32 = 5 * 60 * 1000;

impl Turn<'_> {
    pub fn decide_join(&mut self, groups: &mut LiveGroups, ask: JoinGroup) {
        let id = ask.group_id.clone();
        if !names_fit(&ask) {
            return self.refuse_join(ask.member_id, ClientFault::NameTooLong);
        }
        let is_new_group = self.state.classic(&id).is_none();
        if let Some(group) = self.state.consumer(&id).cloned() {
            if !group.members.is_empty() {
                return self.decide_join_consumer(groups, &group, ask);
            }
            if ask.member_id.is_empty()
                && let Err(error) = self.remove_consumer(&id, &group)
            {
                return self.refuse_join(ask.member_id, error);
            }
        }
        let written = self.decision.records.len();
        if is_new_group {
            if !ask.member_id.is_empty() {
                return self.refuse_join(ask.member_id, ClientFault::UnknownMember);
            }
            let group = Live::new(id.clone(), self.cx.now_ms);
            groups.insert(id.clone(), Box::new(group));
        }
        let Some(group) = self.live(groups, &id) else { return };
        if !self.has_room(group, &ask.member_id) {
            group.remove(&ask.member_id);
            self.cancel_session(group, &ask.member_id);
            let size_max = self.size_max();
            self.refuse_join(MemberId::default(), ClientFault::GroupFull { size_max });
        } else if ask.member_id.is_empty() {
            self.join_new(group, ask);
        } else {
            self.join_known(group, ask);
        }
        if is_new_group && self.decision.records.len() == written {
            // As in Kafka, a group is in the log from its first join on, whatever came of it.
            let group = Live::new(id.clone(), self.cx.now_ms);
            self.push(GroupRecord::group(id.clone(), group.metadata()));
        }
        self.settle(groups, &id);
    }

    fn refuse_join(&mut self, member_id: MemberId, error: impl Into<GroupError>) {
        let refused = JoinRefused { member_id, error: error.into() };
        self.answer(GroupAnswer::Join(Err(refused)));
    }

    /// `group.max.size`. While members gather it counts those that wait, so that of a group above
    /// the limit (it was lowered) the last ones to rejoin are kept out.
    fn has_room(&self, group: &Live, member_id: &MemberId) -> bool {
        let size_max = self.size_max();
        let member = group.members.get(member_id);
        match group.state {
            GroupState::Empty => true,
            GroupState::PreparingRebalance => {
                let waits = member.is_some_and(|member| member.awaiting_join.is_some());
                waits || group.awaiting_join() < size_max
            }
            GroupState::CompletingRebalance | GroupState::Stable => {
                member.is_some() || group.members.len() < size_max
            }
        }
    }

    fn join_new(&mut self, group: &mut Live, ask: JoinGroup) {
        if !group.supports(&ask.protocol_type, &ask.protocols) {
            return self.refuse_join(MemberId::default(), ClientFault::InconsistentProtocol);
        }
        let prefix = ask.group_instance_id.as_ref().unwrap_or(&ask.client_id);
        let uuid: Uuid = Random::seeded(self.cx.seed).uuid();
        let member_id = MemberId::from(format!("{prefix}-{uuid}"));
        match &ask.group_instance_id {
            Some(instance) => match group.instances.get(instance).cloned() {
                Some(replaced) => self.replace_static(group, ask, &replaced, member_id),
                None => self.add_member(group, ask, member_id),
            },
            None if ask.requires_member_id => {
                group.pending_join.insert(member_id.clone());
                self.arm_session_for(group, &member_id, ask.session_timeout_ms);
                self.refuse_join(member_id, NotNow::MemberIdRequired);
            }
            None => self.add_member(group, ask, member_id),
        }
    }

    fn add_member(&mut self, group: &mut Live, ask: JoinGroup, member_id: MemberId) {
        if let Some(initial) = &mut group.initial {
            initial.is_extended = true;
        }
        if group.members.is_empty() {
            group.protocol_type = Some(ask.protocol_type.clone());
        }
        group.add(Member {
            id: member_id.clone(),
            rebalance_timeout_ms: ask.rebalance_timeout_ms.unwrap_or(ask.session_timeout_ms),
            session_timeout_ms: ask.session_timeout_ms,
            group_instance_id: ask.group_instance_id,
            client_id: ask.client_id,
            client_host: ask.client_host,
            protocols: ask.protocols,
            assignment: bytes::Bytes::new(),
            awaiting_join: Some(self.cx.ticket),
            awaiting_sync: None,
            is_new: true,
        });
        self.arm_session_for(group, &member_id, NEW_MEMBER_TIMEOUT_MS);
        self.rebalance_or_complete(group);
    }

    fn join_known(&mut self, group: &mut Live, ask: JoinGroup) {
        let member_id = ask.member_id.clone();
        if !group.supports(&ask.protocol_type, &ask.protocols) {
            return self.refuse_join(member_id, ClientFault::InconsistentProtocol);
        }
        if group.pending_join.contains(&member_id) {
            if ask.group_instance_id.is_some() {
                return self.refuse_join(member_id, ClientFault::PendingMemberWithInstance);
            }
            return self.add_member(group, ask, member_id);
        }
        if let Err(fault) = group.check_member(&member_id, ask.group_instance_id.as_ref()) {
            return self.refuse_join(member_id, fault);
        }
        let is_changed =
            group.members.get(&member_id).is_none_or(|member| member.protocols != ask.protocols);
        let rejoins = match group.state {
            GroupState::PreparingRebalance => true,
            GroupState::CompletingRebalance => is_changed,
            // The leader rejoins when it has seen something that only it can see, such as new
            // partitions.
            GroupState::Stable => is_changed || group.is_leader(&member_id),
            GroupState::Empty => return self.refuse_join(member_id, ClientFault::UnknownMember),
        };
        if rejoins {
            self.rejoin(group, ask, &member_id);
            self.rebalance_or_complete(group);
        } else {
            // It did not get the answer; in a stable group it is a follower.
            let joined = Self::joined(group, &member_id);
            self.answer(GroupAnswer::Join(Ok(joined)));
        }
    }

    /// The member waits again, with what it now says of itself.
    fn rejoin(&mut self, group: &mut Live, ask: JoinGroup, member_id: &MemberId) {
        let rebalance_timeout_ms = ask.rebalance_timeout_ms.unwrap_or(ask.session_timeout_ms);
        let timeouts_ms = (ask.session_timeout_ms, rebalance_timeout_ms);
        let before = group.rejoin(member_id, ask.protocols, timeouts_ms, self.cx.ticket);
        self.refuse_old_join(before, member_id);
    }

    /// A static member came back without its id (it restarted): it takes its place, its
    /// assignment and, if it led, the leadership over under a new id.
    fn replace_static(
        &mut self,
        group: &mut Live,
        ask: JoinGroup,
        replaced: &MemberId,
        member_id: MemberId,
    ) {
        let before = group.clone();
        let Some(instance) = ask.group_instance_id.clone() else { return };
        let can_skip_assignment = ask.can_skip_assignment;
        self.rename(group, &instance, replaced, member_id.clone());
        self.arm_session(group, &member_id);
        self.rejoin(group, ask, &member_id);
        match group.state {
            GroupState::PreparingRebalance => self.complete_if_all_joined(group),
            // The leader may already assign to the id that is gone.
            GroupState::CompletingRebalance => self.prepare_rebalance(group),
            GroupState::Empty => {}
            GroupState::Stable if group.select_protocol() != group.protocol_name => {
                self.prepare_rebalance(group);
            }
            GroupState::Stable => {
                let record = GroupRecord::group(group.id.clone(), group.metadata());
                if let Err(error) = self.write(vec![record]) {
                    *group = before;
                    self.arm_session(group, replaced);
                    return self.refuse_join(MemberId::default(), error);
                }
                group.take_join(&member_id);
                let joined = Self::rejoined(group, &member_id, &before, can_skip_assignment);
                self.answer(GroupAnswer::Join(Ok(joined)));
            }
        }
    }

    /// Without a rebalance a leader must not assign: it is told so, or (before version 9) told
    /// that somebody else leads, by the id that it had before.
    fn rejoined(group: &Live, member_id: &MemberId, before: &Live, can_skip: bool) -> Joined {
        let joined = Self::joined(group, member_id);
        if can_skip {
            Joined { skip_assignment: group.is_leader(member_id), ..joined }
        } else {
            let leader = before.leader.clone().unwrap_or_default();
            Joined { leader, members: Vec::new(), ..joined }
        }
    }

    /// Gives a static member a new id; whoever still waits with the old one is fenced.
    fn rename(&mut self, group: &mut Live, instance: &InstanceId, old: &MemberId, new: MemberId) {
        let fenced = || GroupError::from(ClientFault::FencedInstance);
        if let Some(ticket) = group.take_join(old) {
            let refused = JoinRefused { member_id: old.clone(), error: fenced() };
            self.decision.answers.push((ticket, GroupAnswer::Join(Err(refused))));
        }
        let leads = group.is_leader(old);
        let Some(mut member) = group.remove(old) else { return };
        self.cancel_session(group, old);
        if let Some(ticket) = member.awaiting_sync.take() {
            self.decision.answers.push((ticket, GroupAnswer::Sync(Err(fenced()))));
        }
        member.id = new.clone();
        member.is_new = false;
        group.add(member);
        if leads {
            group.leader = Some(new.clone());
        }
        group.instances.insert(instance.clone(), new);
    }
}

/// Whether all that goes into the group's records can be written; ids made of the client's get
/// a dash and a UUID.
fn names_fit(ask: &JoinGroup) -> bool {
    const ADDED: usize = 37;
    let instance = ask.group_instance_id.as_deref().unwrap_or_default();
    let protocols = ask.protocols.iter().map(|protocol| protocol.name.len());
    [
        ask.group_id.len(),
        ask.client_id.len() + ADDED,
        instance.len() + ADDED,
        ask.client_host.len(),
        ask.protocol_type.len(),
    ]
    .into_iter()
    .chain(protocols)
    .all(|bytes| bytes <= NAME_BYTES_MAX)
}
