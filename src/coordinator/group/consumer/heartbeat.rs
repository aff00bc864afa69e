//! ConsumerGroupHeartbeat: who comes in, what it now wants, and what it is given.

use std::sync::Arc;

use super::change::{ConsumerChange, partitions_of};
use super::fence::check_instance;
use super::state::{Assignment, ConsumerGroup, ConsumerMember, Current, MemberState, Subscription};
use super::step::Work;
use super::types::{
    ConsumerFault, ConsumerHeartbeat, HeartbeatAnswer, JOINS, LEAVES, LEAVES_FOR_A_WHILE,
};
use super::{assignor::Assignor, regex};
use crate::config::GroupSettings;
use crate::coordinator::group::error::GroupError;
use crate::coordinator::group::machine::{GroupAnswer, GroupConfig, GroupEffect, LiveGroups, Turn};
use crate::coordinator::group::state::Groups;
use crate::coordinator::group::timers::Timer;
use crate::coordinator::group::types::{GroupId, GroupState, InstanceId, MemberId};
use crate::env::Random;
use crate::metadata::ConfigResource;

/// Regular expressions of a group are looked up again at most this often.
const REFRESH_MS: i64 = 10_000;

/// What a heartbeat changed of what its group is subscribed to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Changed {
    pub subscription: bool,
    /// The group needs a new target for it.
    pub bumps: bool,
}

/// What is wrong with the request itself, whatever the group says.
///
/// # Errors
/// [`ConsumerFault::InvalidRequest`], [`ConsumerFault::UnsupportedAssignor`].
pub fn check(ask: &ConsumerHeartbeat, config: &GroupConfig) -> Result<(), ConsumerFault> {
    let is_blank = |text: &str| text.trim().is_empty();
    let is_blank_option = |text: &Option<Arc<str>>| text.as_deref().is_some_and(is_blank);
    let invalid = |why| Err(ConsumerFault::InvalidRequest(why));
    let needs_id = ask.brings_member_id || ask.member_epoch > JOINS || ask.member_epoch == LEAVES;
    if needs_id && is_blank(&ask.member_id) {
        return invalid("MemberId can't be empty.");
    }
    if is_blank(&ask.group_id) {
        return invalid("GroupId can't be empty.");
    }
    if is_blank_option(&ask.instance_id) {
        return invalid("InstanceId can't be empty.");
    }
    if is_blank_option(&ask.rack_id) {
        return invalid("RackId can't be empty.");
    }
    match ask.member_epoch {
        JOINS if ask.rebalance_timeout_ms == -1 => {
            return invalid("RebalanceTimeoutMs must be provided in first request.");
        }
        JOINS if ask.owned.as_ref().is_none_or(|owned| !owned.is_empty()) => {
            return invalid("TopicPartitions must be empty when (re-)joining.");
        }
        JOINS if ask.topics.is_none() && ask.regex.is_none() => {
            return invalid(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
            );
        }
        LEAVES_FOR_A_WHILE if ask.instance_id.is_none() => {
            return invalid("InstanceId can't be null.");
        }
        epoch if epoch < LEAVES_FOR_A_WHILE => return invalid("MemberEpoch is invalid."),
        _ => {}
    }
    let Some(sent) = &ask.assignor else { return Ok(()) };
    let known = config.consumer_assignors.iter().map(|name| match Assignor::named(name) {
        Some(assignor) => assignor.name(),
        None => name,
    });
    let supported: Vec<&str> = known.collect();
    if supported.contains(&&**sent) {
        return Ok(());
    }
    let supported = supported.join(", ");
    Err(ConsumerFault::UnsupportedAssignor { sent: sent.clone(), supported })
}

impl Turn<'_> {
    pub fn decide_consumer_heartbeat(&mut self, groups: &mut LiveGroups, ask: &ConsumerHeartbeat) {
        let outcome = match ask.member_epoch {
            LEAVES | LEAVES_FOR_A_WHILE => self.leave_consumer(groups, ask),
            _ => self.beat(groups, ask),
        };
        self.answer(GroupAnswer::ConsumerHeartbeat(outcome));
    }

    /// The group's own settings, or the broker's.
    pub fn settings(&self, id: &GroupId) -> GroupSettings {
        let own = self.image.configs(&ConfigResource::group(id.clone()));
        GroupSettings::of(own.map(|own| &**own), &self.config)
    }

    fn beat(
        &mut self,
        groups: &mut LiveGroups,
        ask: &ConsumerHeartbeat,
    ) -> Result<HeartbeatAnswer, GroupError> {
        let mut work = self.open(groups, &ask.group_id, ask.member_epoch == JOINS)?;
        self.check_room(&work.group, &ask.member_id, ask.instance_id.as_ref())?;
        let member_id = match ask.member_id.is_empty() {
            true => Random::seeded(self.cx.seed).uuid().to_string().into(),
            false => ask.member_id.clone(),
        };
        let before = enter(&mut work, ask, &member_id)?;
        let about = told(&before.about, ask);
        let changed = self.subscribe(&mut work, &member_id, &before.about, about)?;
        self.renew_epoch(&mut work, changed.bumps);
        self.renew_target(&mut work)?;
        self.reconcile(&mut work, &member_id, changed.subscription, ask.owned.as_ref())?;
        self.finish(groups, &mut work)?;
        let settings = self.settings(&work.id);
        self.arm_member(Timer::Session, &work.id, &member_id, settings.session_timeout_ms);
        let member = work.group.members.get(&member_id).cloned().unwrap_or_default();
        self.watch_revocation(&work.id, &member_id, &before.current, &member);
        let is_full = ask.rebalance_timeout_ms != -1
            && (ask.topics.is_some() || ask.regex.is_some())
            && ask.owned.is_some();
        let is_told = ask.member_epoch == JOINS
            || is_full
            || before.current.assigned != member.current.assigned;
        Ok(HeartbeatAnswer {
            member_id,
            member_epoch: member.current.epoch,
            heartbeat_interval_ms: settings.heartbeat_interval_ms,
            assignment: is_told.then(|| partitions_of(&member.current.assigned)),
        })
    }

    /// The time to give partitions back runs while a member is to do so.
    pub fn watch_revocation(
        &mut self,
        group_id: &GroupId,
        member_id: &MemberId,
        before: &Current,
        member: &ConsumerMember,
    ) {
        if *before == *member.current || member.about.classic.is_some() {
            return;
        }
        if member.current.state == MemberState::Unrevoked {
            let timeout_ms = member.about.rebalance_timeout_ms;
            self.arm_member(Timer::Revoke, group_id, member_id, timeout_ms);
        } else {
            self.timers.cancel(&Timer::Revoke(group_id.clone(), member_id.clone()));
        }
    }

    /// The group to work on: one that is there, or a new one for a member that joins. An empty
    /// classic group makes room, one with members is converted.
    fn open(
        &mut self,
        groups: &mut LiveGroups,
        id: &GroupId,
        joins: bool,
    ) -> Result<Work, GroupError> {
        if let Some(group) = self.state.consumer(id) {
            return Ok(Work::on(id, group));
        }
        if self.state.classic(id).is_none() {
            return match joins {
                true => Ok(Work::on(id, &ConsumerGroup::default())),
                false => Err(not_found(format!("Consumer group {id} not found."))),
            };
        }
        if !joins {
            return Err(not_found(format!("Group {id} is not a consumer group.")));
        }
        match groups.get(id).is_some_and(|group| group.state != GroupState::Empty) {
            true => self.upgrade(groups, id),
            false => Ok(Work::instead_of_classic(id)),
        }
    }

    /// `group.consumer.max.size` holds for those that are not members yet.
    pub fn check_room(
        &self,
        group: &ConsumerGroup,
        member_id: &MemberId,
        instance: Option<&InstanceId>,
    ) -> Result<(), ConsumerFault> {
        let size_max = self.config.consumer_max_size;
        let is_static_member = instance.is_some_and(|i| group.static_member(i).is_some());
        let has_room = group.members.len() < usize::try_from(size_max).unwrap_or(0);
        if has_room || is_static_member || group.members.contains_key(member_id) {
            return Ok(());
        }
        Err(ConsumerFault::GroupFull(size_max))
    }

    /// Takes in what a member now says of itself.
    pub fn subscribe(
        &mut self,
        work: &mut Work,
        id: &MemberId,
        before: &Subscription,
        about: Subscription,
    ) -> Result<Changed, GroupError> {
        let names_changed = before.topics != about.topics;
        let (old, new) = (before.regex.clone(), about.regex.clone());
        let mut assignor_changed = false;
        if *before != about {
            let assignor = self.assignor_name(&work.group);
            work.push(ConsumerChange::Member(id.clone(), Some(Arc::new(about))));
            assignor_changed = assignor != self.assignor_name(&work.group);
        }
        let is_resolved = self.follow_regexes(work, &old, &new)?;
        Ok(Changed {
            subscription: names_changed || old != new,
            bumps: names_changed || is_resolved || assignor_changed,
        })
    }

    /// A member goes from one regular expression to another; either may be none. Asks for those
    /// of the group to be resolved where that is due. Returns whether the topics of the new one
    /// are known already.
    fn follow_regexes(
        &mut self,
        work: &mut Work,
        old: &Arc<str>,
        new: &Arc<str>,
    ) -> Result<bool, ConsumerFault> {
        let (mut is_resolved, mut is_due) = (false, false);
        if old != new {
            if !old.is_empty() && work.group.subscribers(old) == 0 {
                work.push(ConsumerChange::Regex(old.clone(), None));
            }
            if new.is_empty() {
                is_resolved = true;
            } else if work.group.subscribers(new) == 1 {
                regex::check(new)?;
                is_due = true;
            } else {
                is_resolved = work.group.regexes.contains_key(new);
            }
        }
        let regexes = work.group.subscribed_regexes();
        if regexes.len() == 0 {
            return Ok(is_resolved);
        }
        let watch = self.watches.entry(work.id.clone()).or_default();
        if watch.is_resolving {
            return Ok(is_resolved);
        }
        let last = work.group.regexes.values().next();
        if last.is_some_and(|last| self.cx.now_ms <= last.timestamp_ms + REFRESH_MS) {
            return Ok(is_resolved);
        }
        let refresh_ms = i64::from(self.config.consumer_regex_refresh_interval_ms);
        is_due |= regexes.len() != work.group.regexes.len();
        is_due |= last.is_none_or(|last| {
            last.version < self.topics_made_at || self.cx.now_ms > last.timestamp_ms + refresh_ms
        });
        if is_due {
            watch.is_resolving = true;
            let (group_id, regexes) = (work.id.clone(), regexes.cloned().collect());
            self.decision.effects.push(GroupEffect::ResolveRegexes { group_id, regexes });
        }
        Ok(is_resolved)
    }

    /// Regular expressions of a group have been resolved aside.
    pub fn decide_resolved(
        &mut self,
        groups: &mut LiveGroups,
        id: &GroupId,
        resolved: Vec<(Arc<str>, Arc<super::ResolvedRegex>)>,
    ) {
        self.watches.entry(id.clone()).or_default().is_resolving = false;
        let Some(group) = self.state.consumer(id) else { return };
        let mut work = Work::on(id, group);
        let mut bump = false;
        for (regex, resolved) in resolved.into_iter().filter(|(r, _)| group.subscribers(r) > 0) {
            bump |= match group.regexes.get(&regex) {
                Some(before) => before.topics != resolved.topics,
                None => !resolved.topics.is_empty(),
            };
            work.push(ConsumerChange::Regex(regex, Some(resolved)));
        }
        self.renew_epoch(&mut work, bump);
        // What fits no batch is asked for again with the next refresh.
        let _ = self.finish(groups, &mut work);
    }
}

pub fn not_found(text: String) -> GroupError {
    ConsumerFault::GroupNotFound(text).into()
}

/// # Errors
/// [`ConsumerFault::GroupNotFound`]: there is no such group, or it is a classic one.
pub fn find<'g>(groups: &'g Groups, id: &GroupId) -> Result<&'g ConsumerGroup, GroupError> {
    match (groups.consumer(id), groups.classic(id)) {
        (Some(group), _) => Ok(group),
        (None, Some(_)) => Err(not_found(format!("Group {id} is not a consumer group."))),
        (None, None) => Err(not_found(format!("Group {id} not found."))),
    }
}

/// The member as the group knows it by now; of a new one nothing is known. A static member takes
/// the place of the one that left under its instance id.
fn enter(
    work: &mut Work,
    ask: &ConsumerHeartbeat,
    id: &MemberId,
) -> Result<ConsumerMember, ConsumerFault> {
    let joins = ask.member_epoch == JOINS;
    let Some(instance) = &ask.instance_id else {
        let Some(member) = work.group.members.get(id) else {
            return joins.then(ConsumerMember::default).ok_or_else(|| unknown(id, &work.id));
        };
        check_epoch(&member.current, ask)?;
        return Ok(member.clone());
    };
    let known = work.group.static_member(instance).map(|(id, member)| (id.clone(), member.clone()));
    let Some((owner, member)) = known else {
        if !joins {
            return Err(ConsumerFault::UnknownInstance(instance.clone()));
        }
        return Ok(work.group.members.get(id).cloned().unwrap_or_default());
    };
    if joins {
        if member.about.classic.is_none() && member.current.epoch != LEAVES_FOR_A_WHILE {
            let (member, instance) = (id.clone(), instance.clone());
            return Err(ConsumerFault::InstanceUnreleased { member, instance, owner });
        }
        return Ok(replace(work, &owner, &member, id));
    }
    check_instance(id, instance, &owner)?;
    check_epoch(&member.current, ask)?;
    Ok(member)
}

/// A static member goes on under a new id, with all that the old one had.
pub fn replace(
    work: &mut Work,
    old: &MemberId,
    member: &ConsumerMember,
    new: &MemberId,
) -> ConsumerMember {
    let target = work.group.target_of(old);
    work.remove_member(old);
    let current =
        Arc::new(Current { epoch: 0, previous_epoch: 0, ..Current::clone(&member.current) });
    work.push(ConsumerChange::Member(new.clone(), Some(member.about.clone())));
    work.push(ConsumerChange::Target(new.clone(), Some(target)));
    work.push(ConsumerChange::Current(new.clone(), Some(current.clone())));
    ConsumerMember { about: member.about.clone(), current }
}

pub fn unknown(member: &MemberId, group: &GroupId) -> ConsumerFault {
    ConsumerFault::UnknownMember { member: member.clone(), group: group.clone() }
}

/// The epoch before the current one will do if the answer with the current one may have been
/// lost: the member owns nothing that it was not given.
fn check_epoch(current: &Current, ask: &ConsumerHeartbeat) -> Result<(), ConsumerFault> {
    let sent = ask.member_epoch;
    let is_subset = |owned: &Assignment| {
        owned.iter().all(|(topic, partitions)| {
            let assigned = current.assigned.get(topic);
            assigned.is_some_and(|a| partitions.iter().all(|p| a.contains_key(p)))
        })
    };
    let is_retry = || sent == current.previous_epoch && ask.owned.as_ref().is_some_and(is_subset);
    if sent == JOINS || sent == current.epoch || sent < current.epoch && is_retry() {
        return Ok(());
    }
    Err(ConsumerFault::Fenced { sent, current: current.epoch })
}

/// What the member has told by now.
fn told(before: &Subscription, ask: &ConsumerHeartbeat) -> Subscription {
    let or_before =
        |new: &Option<Arc<str>>, before: &Option<Arc<str>>| new.clone().or_else(|| before.clone());
    let rebalance_timeout_ms = match ask.rebalance_timeout_ms {
        -1 => before.rebalance_timeout_ms,
        timeout => timeout,
    };
    Subscription {
        instance_id: or_before(&ask.instance_id, &before.instance_id),
        rack_id: or_before(&ask.rack_id, &before.rack_id),
        client_id: ask.client_id.clone(),
        client_host: ask.client_host.clone(),
        topics: match &ask.topics {
            Some(topics) => topics.iter().cloned().collect(),
            None => before.topics.clone(),
        },
        regex: ask.regex.clone().unwrap_or_else(|| before.regex.clone()),
        rebalance_timeout_ms,
        assignor: or_before(&ask.assignor, &before.assignor),
        classic: None,
    }
}
