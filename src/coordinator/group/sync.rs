//! SyncGroup and Heartbeat: a generation's assignment, and staying in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::error::{ClientFault, GroupError, NotNow};
use super::live::Live;
use super::machine::{GroupAnswer, GroupEffect, LiveGroups, Turn};
use super::record::GroupRecord;
use super::timers::Timer;
use super::types::{GroupState, Heartbeat, MemberId, SyncGroup, Synced};

impl Turn<'_> {
    pub fn decide_sync(&mut self, groups: &mut LiveGroups, ask: SyncGroup) {
        if let Some(group) = self.state.consumer(&ask.group_id).cloned() {
            let outcome = self.sync_consumer(&group, ask);
            return self.answer(GroupAnswer::Sync(outcome));
        }
        // Who is not in memory has no members.
        let Some(group) = groups.get_mut(&ask.group_id) else {
            return self.answer(GroupAnswer::Sync(Err(ClientFault::UnknownMember.into())));
        };
        if let Err(fault) = check_sync(group, &ask) {
            return self.answer(GroupAnswer::Sync(Err(fault.into())));
        }
        match group.state {
            GroupState::Empty => {
                self.answer(GroupAnswer::Sync(Err(ClientFault::UnknownMember.into())));
            }
            GroupState::PreparingRebalance => {
                self.answer(GroupAnswer::Sync(Err(NotNow::RebalanceInProgress.into())));
            }
            GroupState::CompletingRebalance => self.sync_completing(group, ask),
            GroupState::Stable => {
                self.has_synced(group, &ask.member_id);
                // It has been heard of, perhaps for the first time since the rebalance ended.
                self.arm_session(group, &ask.member_id);
                let member = group.members.get(&ask.member_id);
                let assignment = member.map(|member| member.assignment.clone());
                self.answer(GroupAnswer::Sync(Ok(Synced {
                    protocol_type: group.protocol_type.clone(),
                    protocol_name: group.protocol_name.clone(),
                    assignment: assignment.unwrap_or_default(),
                })));
            }
        }
    }

    /// A follower waits for the leader; the leader's assignment makes the group stable.
    fn sync_completing(&mut self, group: &mut Live, ask: SyncGroup) {
        if let Some(member) = group.members.get_mut(&ask.member_id) {
            let before = member.awaiting_sync.replace(self.cx.ticket);
            if let Some(ticket) = before {
                // From a connection that the member has given up.
                let error = Err(NotNow::RebalanceInProgress.into());
                self.decision.answers.push((ticket, GroupAnswer::Sync(error)));
            }
        }
        self.has_synced(group, &ask.member_id);
        if !group.is_leader(&ask.member_id) {
            return;
        }
        let mut assignments: BTreeMap<MemberId, Bytes> = ask.assignments.into_iter().collect();
        for member in group.members.values_mut() {
            member.assignment = assignments.remove(&member.id).unwrap_or_default();
        }
        let record = GroupRecord::group(group.id.clone(), group.metadata());
        match self.write(vec![record]) {
            Ok(()) => {
                group.enter(GroupState::Stable, self.cx.now_ms);
                self.answer_syncs(group, None);
                self.decision.effects.push(GroupEffect::RebalanceCompleted);
            }
            Err(error) => {
                self.drop_assignments(group, &error);
                self.prepare_rebalance(group);
            }
        }
    }

    /// The member has asked for its assignment.
    fn has_synced(&mut self, group: &mut Live, member_id: &MemberId) {
        group.pending_sync.remove(member_id);
        if group.pending_sync.is_empty() {
            self.timers.cancel(&Timer::Sync(group.id.clone()));
        }
    }

    pub fn decide_heartbeat(&mut self, groups: &mut LiveGroups, ask: &Heartbeat) {
        let outcome = match (self.state.consumer(&ask.group_id).cloned(), groups.get(&ask.group_id))
        {
            (Some(group), _) => self.heartbeat_consumer(&group, ask),
            (None, Some(group)) => self.heartbeat(group, ask),
            (None, None) => Err(ClientFault::UnknownMember.into()),
        };
        self.answer(GroupAnswer::Heartbeat(outcome));
    }

    fn heartbeat(&mut self, group: &Live, ask: &Heartbeat) -> Result<(), GroupError> {
        group.check_member(&ask.member_id, ask.group_instance_id.as_ref())?;
        group.check_generation(ask.generation_id)?;
        self.arm_session(group, &ask.member_id);
        match group.state {
            GroupState::PreparingRebalance => Err(NotNow::RebalanceInProgress.into()),
            GroupState::Empty | GroupState::CompletingRebalance | GroupState::Stable => Ok(()),
        }
    }
}

fn check_sync(group: &Live, ask: &SyncGroup) -> Result<(), ClientFault> {
    group.check_member(&ask.member_id, ask.group_instance_id.as_ref())?;
    group.check_generation(ask.generation_id)?;
    let differs = |sent: &Option<Arc<str>>, current: &Option<Arc<str>>| {
        sent.is_some() && current.is_some() && sent != current
    };
    if differs(&ask.protocol_type, &group.protocol_type)
        || differs(&ask.protocol_name, &group.protocol_name)
    {
        return Err(ClientFault::InconsistentProtocol);
    }
    Ok(())
}
