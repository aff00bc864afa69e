//! The rebalance itself: from "members are to join again" to "everybody knows the generation".

use super::error::{ClientFault, GroupError, NotNow};
use super::live::{InitialDelay, Live, Member};
use super::machine::{GroupAnswer, LiveGroups, Turn};
use super::record::GroupRecord;
use super::timers::{Timer, millis};
use super::types::{GroupState, JoinRefused, Joined, MemberId, Synced};
use crate::machine::Ticket;

impl Turn<'_> {
    /// Starts a rebalance where one can start, else looks whether the running one is complete.
    pub fn rebalance_or_complete(&mut self, group: &mut Live) {
        if group.state == GroupState::PreparingRebalance {
            self.complete_if_all_joined(group);
        } else {
            self.prepare_rebalance(group);
        }
    }

    /// The first rebalance of an empty group only ends by its delay.
    pub fn complete_if_all_joined(&mut self, group: &mut Live) {
        let is_preparing = group.state == GroupState::PreparingRebalance;
        if is_preparing && group.initial.is_none() && group.all_have_joined() {
            self.complete_join(group);
        }
    }

    /// Everybody is to join again. Who waits for an assignment is told so.
    pub fn prepare_rebalance(&mut self, group: &mut Live) {
        if group.state == GroupState::CompletingRebalance {
            self.drop_assignments(group, &NotNow::RebalanceInProgress.into());
        }
        group.pending_sync.clear();
        self.timers.cancel(&Timer::Sync(group.id.clone()));
        let was_empty = group.state == GroupState::Empty;
        group.enter(GroupState::PreparingRebalance, self.cx.now_ms);
        if was_empty {
            let delay_ms = self.config.initial_rebalance_delay_ms;
            let remaining_ms = group.rebalance_timeout_ms().saturating_sub(delay_ms).max(0);
            group.initial = Some(InitialDelay { delay_ms, remaining_ms, is_extended: false });
            self.arm_join(group, delay_ms);
        } else if group.all_have_joined() {
            self.complete_join(group);
        } else {
            self.arm_join(group, group.rebalance_timeout_ms());
        }
    }

    /// Time to join is over.
    fn join_time_passed(&mut self, group: &mut Live) {
        match &mut group.initial {
            Some(initial) if initial.is_extended && initial.remaining_ms != 0 => {
                initial.is_extended = false;
                let longest = self.config.initial_rebalance_delay_ms;
                let next_ms = longest.min(initial.remaining_ms);
                initial.remaining_ms = (initial.remaining_ms - initial.delay_ms).max(0);
                initial.delay_ms = next_ms;
                self.arm_join(group, next_ms);
            }
            _ => self.complete_join(group),
        }
    }

    /// The next generation: dynamic members that have not joined are gone, the others hear of it.
    pub fn complete_join(&mut self, group: &mut Live) {
        self.timers.cancel(&Timer::Join(group.id.clone()));
        let is_gone =
            |member: &&Member| member.awaiting_join.is_none() && member.group_instance_id.is_none();
        let gone: Vec<MemberId> =
            group.members.values().filter(is_gone).map(|member| member.id.clone()).collect();
        for member_id in &gone {
            group.remove(member_id);
            self.cancel_session(group, member_id);
        }
        if !group.elect_leader() && !group.members.is_empty() {
            // Static members only, and none is back: their sessions decide.
            self.arm_join(group, group.rebalance_timeout_ms());
            return;
        }
        group.next_generation(self.cx.now_ms);
        if group.state == GroupState::Empty {
            let record = GroupRecord::group(group.id.clone(), group.metadata());
            self.push(record);
            return;
        }
        for member_id in group.members.keys().cloned().collect::<Vec<_>>() {
            if let Some(ticket) = group.take_join(&member_id) {
                let joined = Self::joined(group, &member_id);
                self.decision.answers.push((ticket, GroupAnswer::Join(Ok(joined))));
            }
            if let Some(member) = group.members.get_mut(&member_id) {
                member.is_new = false;
            }
            self.arm_session(group, &member_id);
            group.pending_sync.insert(member_id);
        }
        let timeout = millis(group.rebalance_timeout_ms());
        self.timers.arm(Timer::Sync(group.id.clone()), self.cx.now + timeout);
    }

    /// What a member is told of the current generation; the leader gets everybody's metadata.
    pub fn joined(group: &Live, member_id: &MemberId) -> Joined {
        Joined {
            member_id: member_id.clone(),
            generation_id: group.generation_id,
            protocol_type: group.protocol_type.clone(),
            protocol_name: group.protocol_name.clone(),
            leader: group.leader.clone().unwrap_or_default(),
            skip_assignment: false,
            members: if group.is_leader(member_id) { group.joined_members() } else { Vec::new() },
        }
    }

    /// Members that have not fetched their assignment in time are gone.
    fn sync_time_passed(&mut self, group: &mut Live) {
        if group.pending_sync.is_empty() {
            return;
        }
        for member_id in std::mem::take(&mut group.pending_sync) {
            group.remove(&member_id);
            self.cancel_session(group, &member_id);
        }
        self.prepare_rebalance(group);
    }

    /// Takes all assignments back and tells those who wait for one why.
    pub fn drop_assignments(&mut self, group: &mut Live, error: &GroupError) {
        for member in group.members.values_mut() {
            member.assignment = bytes::Bytes::new();
        }
        self.answer_syncs(group, Some(error));
    }

    /// Answers everybody who waits for an assignment; their sessions start anew.
    pub fn answer_syncs(&mut self, group: &mut Live, error: Option<&GroupError>) {
        let mut answered = Vec::new();
        for member in group.members.values_mut() {
            let Some(ticket) = member.awaiting_sync.take() else { continue };
            let outcome = match error {
                Some(error) => Err(error.clone()),
                None => Ok(Synced {
                    protocol_type: group.protocol_type.clone(),
                    protocol_name: group.protocol_name.clone(),
                    assignment: member.assignment.clone(),
                }),
            };
            self.decision.answers.push((ticket, GroupAnswer::Sync(outcome)));
            answered.push(member.id.clone());
        }
        for member_id in answered {
            self.arm_session(group, &member_id);
        }
    }

    /// A deadline of a group passed.
    pub fn decide_passed(&mut self, groups: &mut LiveGroups, timer: Timer) {
        let id = match &timer {
            Timer::Join(id) | Timer::Sync(id) => id,
            Timer::Session(id, _) if self.state.consumer(id).is_none() => id,
            _ => return self.decide_member_passed(groups, &timer),
        };
        // A group that is only in the log has no members and no deadlines.
        let Some(group) = groups.get_mut(id) else { return };
        match &timer {
            Timer::Join(_) => self.join_time_passed(group),
            Timer::Sync(_) => self.sync_time_passed(group),
            Timer::Session(_, member_id) => self.session_passed(group, member_id),
            _ => {}
        }
        self.settle(groups, id);
    }

    /// A member has not been heard of for its session timeout, or never came back with its id.
    fn session_passed(&mut self, group: &mut Live, member_id: &MemberId) {
        if group.pending_join.contains(member_id) {
            group.remove(member_id);
        } else if group.members.get(member_id).is_some_and(|member| !member.is_excused()) {
            self.remove_member(group, member_id);
            if group.state != GroupState::PreparingRebalance {
                return self.rebalance_or_complete(group);
            }
        } else {
            return;
        }
        if group.state == GroupState::PreparingRebalance && group.all_have_joined() {
            self.complete_join(group);
        }
    }

    /// Removes a member; who waits with its id learns that it is no longer known.
    pub fn remove_member(&mut self, group: &mut Live, member_id: &MemberId) {
        let Some(member) = group.remove(member_id) else { return };
        self.cancel_session(group, member_id);
        if let Some(ticket) = member.awaiting_join {
            let error = ClientFault::UnknownMember.into();
            let refused = JoinRefused { member_id: MemberId::default(), error };
            self.decision.answers.push((ticket, GroupAnswer::Join(Err(refused))));
        }
        if let Some(ticket) = member.awaiting_sync {
            let error = Err(ClientFault::UnknownMember.into());
            self.decision.answers.push((ticket, GroupAnswer::Sync(error)));
        }
    }

    /// An earlier join of the same member, from a connection that it has given up.
    pub fn refuse_old_join(&mut self, ticket: Option<Ticket>, member_id: &MemberId) {
        if let Some(ticket) = ticket {
            let error = NotNow::RebalanceInProgress.into();
            let refused = JoinRefused { member_id: member_id.clone(), error };
            self.decision.answers.push((ticket, GroupAnswer::Join(Err(refused))));
        }
    }

    fn arm_join(&mut self, group: &Live, timeout_ms: i32) {
        self.timers.arm(Timer::Join(group.id.clone()), self.cx.now + millis(timeout_ms));
    }

    /// The member was heard of.
    pub fn arm_session(&mut self, group: &Live, member_id: &MemberId) {
        if let Some(member) = group.members.get(member_id) {
            self.arm_session_for(group, member_id, member.session_timeout_ms);
        }
    }

    pub fn arm_session_for(&mut self, group: &Live, member_id: &MemberId, timeout_ms: i32) {
        let timer = Timer::Session(group.id.clone(), member_id.clone());
        self.timers.arm(timer, self.cx.now + millis(timeout_ms));
    }

    pub fn arm_sessions(&mut self, group: &Live) {
        for member_id in group.members.keys() {
            self.arm_session(group, member_id);
        }
    }

    pub fn cancel_session(&mut self, group: &Live, member_id: &MemberId) {
        self.timers.cancel(&Timer::Session(group.id.clone(), member_id.clone()));
    }
}
