//! How members of consumer groups go: by themselves, or because they were not heard of in time.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::change::ConsumerChange;
use super::hash;
use super::heartbeat::{find, unknown};
use super::state::{ConsumerGroup, ConsumerMember, Current, GroupEpoch, MemberState, TargetEpoch};
use super::step::Work;
use super::types::{ConsumerFault, ConsumerHeartbeat, HeartbeatAnswer, LEAVES_FOR_A_WHILE};
use crate::coordinator::group::error::GroupError;
use crate::coordinator::group::machine::{LiveGroups, Turn};
use crate::coordinator::group::timers::{Timer, millis};
use crate::coordinator::group::types::{GroupId, InstanceId, MemberId};

impl Turn<'_> {
    /// A member says that it leaves; a static one may say that it will be back.
    pub fn leave_consumer(
        &mut self,
        groups: &mut LiveGroups,
        ask: &ConsumerHeartbeat,
    ) -> Result<HeartbeatAnswer, GroupError> {
        let id = &ask.group_id;
        let group = find(self.state, id)?;
        let member = leaving(group, ask)?;
        let mut work = Work::on(id, group);
        if ask.member_epoch == LEAVES_FOR_A_WHILE {
            let mut current =
                Current { epoch: LEAVES_FOR_A_WHILE, ..Current::clone(&member.current) };
            current.revoking.clear();
            current.assigned.values_mut().flat_map(|p| p.values_mut()).for_each(|epoch| *epoch = 0);
            let member_id = ask.member_id.clone();
            work.push(ConsumerChange::Current(member_id, Some(Arc::new(current))));
            self.finish(groups, &mut work)?;
        } else {
            self.fence(groups, work, &BTreeSet::from([ask.member_id.clone()]))?;
        }
        Ok(HeartbeatAnswer {
            member_id: ask.member_id.clone(),
            member_epoch: ask.member_epoch,
            heartbeat_interval_ms: 0,
            assignment: None,
        })
    }

    /// Removes members; where only classic ones are left, the group becomes classic.
    pub fn fence(
        &mut self,
        groups: &mut LiveGroups,
        mut work: Work,
        members: &BTreeSet<MemberId>,
    ) -> Result<(), GroupError> {
        if self.may_downgrade(&work.group, members) {
            self.convert_to_classic(groups, work, members, true)?;
        } else {
            members.iter().for_each(|id| work.remove_member(id));
            let mut unused: Vec<Arc<str>> = work.group.regexes.keys().cloned().collect();
            unused.retain(|regex| work.group.subscribers(regex) == 0);
            for regex in unused {
                work.push(ConsumerChange::Regex(regex, None));
            }
            let metadata_hash = hash::of_topics(&work.group.subscribed(), &self.image);
            let epoch = work.group.epoch.epoch + 1;
            work.push(ConsumerChange::Epoch(Some(GroupEpoch { epoch, metadata_hash })));
            if work.group.members.is_empty() {
                // Whoever comes next is assigned to at once.
                let target = TargetEpoch { epoch, timestamp_ms: 0 };
                work.push(ConsumerChange::TargetEpoch(Some(target)));
            }
            let id = work.id.clone();
            self.finish(groups, &mut work)?;
            members.iter().for_each(|member| self.cancel_member(&id, member));
        }
        Ok(())
    }

    /// Starts a deadline of a member, or starts it anew.
    pub fn arm_member(
        &mut self,
        timer: fn(GroupId, MemberId) -> Timer,
        group: &GroupId,
        member: &MemberId,
        timeout_ms: i32,
    ) {
        self.timers.arm(timer(group.clone(), member.clone()), self.cx.now + millis(timeout_ms));
    }

    pub fn cancel_member(&mut self, group: &GroupId, member: &MemberId) {
        for timer in [Timer::Session, Timer::Revoke, Timer::ClassicJoin, Timer::ClassicSync] {
            self.timers.cancel(&timer(group.clone(), member.clone()));
        }
    }

    /// A deadline of a member of a consumer group passed.
    pub fn decide_member_passed(&mut self, groups: &mut LiveGroups, timer: &Timer) {
        let (Timer::Session(id, member)
        | Timer::Revoke(id, member)
        | Timer::ClassicJoin(id, member)
        | Timer::ClassicSync(id, member)) = timer
        else {
            return;
        };
        let Some(group) = self.state.consumer(id) else { return };
        let Some(found) = group.members.get(member) else { return };
        let has_revoked = found.current.state != MemberState::Unrevoked;
        if matches!(timer, Timer::Revoke(..)) && has_revoked {
            return;
        }
        let fenced = self.fence(groups, Work::on(id, group), &BTreeSet::from([member.clone()]));
        if fenced.is_err() {
            // No batch can take it: looked at again later, like a member that is still heard of.
            let session_ms = self.settings(id).session_timeout_ms;
            self.timers.arm(timer.clone(), self.cx.now + millis(session_ms));
        }
    }

    /// A new coordinator gives every member a whole session to be heard of.
    pub fn arm_consumer(&mut self, id: &GroupId, group: &ConsumerGroup) {
        let session_ms = self.settings(id).session_timeout_ms;
        for (member_id, member) in &group.members {
            self.arm_member(Timer::Session, id, member_id, session_ms);
            self.watch_revocation(id, member_id, &Current::default(), member);
        }
    }
}

fn leaving<'g>(
    group: &'g ConsumerGroup,
    ask: &ConsumerHeartbeat,
) -> Result<&'g ConsumerMember, ConsumerFault> {
    let Some(instance) = &ask.instance_id else {
        let member = group.members.get(&ask.member_id);
        return member.ok_or_else(|| unknown(&ask.member_id, &ask.group_id));
    };
    let (owner, member) = group
        .static_member(instance)
        .ok_or_else(|| ConsumerFault::UnknownInstance(instance.clone()))?;
    check_instance(&ask.member_id, instance, owner)?;
    Ok(member)
}

/// # Errors
/// [`ConsumerFault::InstanceFenced`]: another member carries the instance id.
pub fn check_instance(
    member: &MemberId,
    instance: &InstanceId,
    owner: &MemberId,
) -> Result<(), ConsumerFault> {
    if owner == member {
        return Ok(());
    }
    let (member, instance, owner) = (member.clone(), instance.clone(), owner.clone());
    Err(ConsumerFault::InstanceFenced { member, instance, owner })
}
