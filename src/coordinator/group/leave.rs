//! LeaveGroup: members go by themselves, or an administrator removes static ones.

use super::error::{ClientFault, GroupError};
use super::live::Live;
use super::machine::{GroupAnswer, LiveGroups, Turn};
use super::types::{GroupState, LeaveGroup, LeavingMember, LeftMember};

impl Turn<'_> {
    pub fn decide_leave(&mut self, groups: &mut LiveGroups, ask: LeaveGroup) {
        if let Some(group) = self.state.consumer(&ask.group_id).cloned() {
            return self.leave_as_classic(groups, &group, ask);
        }
        let Some(group) = groups.get_mut(&ask.group_id) else {
            let left = ask.members.into_iter().map(|member| LeftMember {
                member,
                outcome: Err(ClientFault::UnknownMember.into()),
            });
            return self.answer(GroupAnswer::Leave(left.collect()));
        };
        let mut left = Vec::with_capacity(ask.members.len());
        for member in ask.members {
            let outcome = self.remove_leaving(group, &member);
            left.push(LeftMember { member, outcome });
        }
        if left.iter().any(|member| member.outcome.is_ok()) && group.state != GroupState::Empty {
            self.rebalance_or_complete(group);
        }
        self.answer(GroupAnswer::Leave(left));
        self.settle(groups, &ask.group_id);
    }

    fn remove_leaving(
        &mut self,
        group: &mut Live,
        leaving: &LeavingMember,
    ) -> Result<(), GroupError> {
        let member_id = if leaving.member_id.is_empty() {
            let instance = leaving.group_instance_id.as_ref();
            let found = instance.and_then(|instance| group.instances.get(instance));
            found.cloned().ok_or(ClientFault::UnknownMember)?
        } else {
            leaving.member_id.clone()
        };
        if group.pending_join.contains(&member_id) {
            group.remove(&member_id);
            self.cancel_session(group, &member_id);
            return Ok(());
        }
        if !leaving.member_id.is_empty() {
            group.check_member(&member_id, leaving.group_instance_id.as_ref())?;
        }
        self.remove_member(group, &member_id);
        Ok(())
    }
}
