//! Members of a consumer group that speak the classic protocol, while their application is being
//! upgraded: a generation is the member's epoch, the coordinator assigns, and "rejoin" is how a
//! member takes the next step.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::fence::check_instance;
use super::heartbeat::{replace, unknown};
use super::state::{
    Assignment, ClassicSide, ConsumerGroup, ConsumerMember, MemberState, Subscription,
};
use super::step::Work;
use super::types::ConsumerFault;
use crate::config::MigrationPolicy;
use crate::coordinator::group::error::{ClientFault, GroupError, NotNow};
use crate::coordinator::group::machine::{GroupAnswer, LiveGroups, Turn};
use crate::coordinator::group::subscription::CONSUMER;
use crate::coordinator::group::timers::Timer;
use crate::coordinator::group::types::{
    GroupId, Heartbeat, InstanceId, JoinGroup, JoinRefused, Joined, LeaveGroup, LeavingMember,
    LeftMember, MemberId, SyncGroup, Synced,
};
use crate::env::Random;
use crate::metadata::Image;
use crate::protocol::records::consumer_protocol::{
    ConsumerProtocolAssignment, ConsumerProtocolSubscription, TopicPartition,
};

impl Turn<'_> {
    /// JoinGroup by a member of a consumer group: it is told its epoch, never others.
    pub fn decide_join_consumer(
        &mut self,
        groups: &mut LiveGroups,
        group: &ConsumerGroup,
        ask: JoinGroup,
    ) {
        let member_id = match ask.member_id.is_empty() {
            true => Random::seeded(self.cx.seed).uuid().to_string().into(),
            false => ask.member_id.clone(),
        };
        let outcome = self.join_consumer(groups, group, ask, &member_id).map_err(|error| {
            // As Kafka has it: no id with another refusal, not even the one that came.
            let needs_id = error == NotNow::MemberIdRequired.into();
            JoinRefused { member_id: if needs_id { member_id } else { "".into() }, error }
        });
        self.answer(GroupAnswer::Join(outcome));
    }

    fn join_consumer(
        &mut self,
        groups: &mut LiveGroups,
        group: &ConsumerGroup,
        ask: JoinGroup,
        member_id: &MemberId,
    ) -> Result<Joined, GroupError> {
        if self.config.consumer_migration_policy == MigrationPolicy::Disabled {
            return Err(ClientFault::InconsistentProtocol.into());
        }
        let instance = ask.group_instance_id.as_ref();
        self.check_room(group, member_id, instance)?;
        if !supports(group, &ask) {
            return Err(ClientFault::InconsistentProtocol.into());
        }
        if ask.requires_member_id && ask.member_id.is_empty() && instance.is_none() {
            return Err(NotNow::MemberIdRequired.into());
        }
        let first = ask.protocols.first().ok_or(ClientFault::InconsistentProtocol)?.clone();
        let (wanted, _) = ConsumerProtocolSubscription::parse(&first.metadata)
            .map_err(|_| ClientFault::InconsistentProtocol)?;
        let replaced = instance.and_then(|instance| group.static_member(instance));
        let downgrades =
            replaced.is_some_and(|(_, member)| self.may_downgrade_without(group, member));
        let mut work = Work::on(&ask.group_id, group);
        let before = enter(&mut work, &ask, member_id)?;
        let (session_ms, rebalance_ms) = (ask.session_timeout_ms, ask.rebalance_timeout_ms);
        let owned = by_id(&wanted.owned_partitions, &self.image);
        let about = told(&before.about, ask, wanted);
        let rebalance_ms = rebalance_ms.unwrap_or(about.rebalance_timeout_ms);
        let changed = self.subscribe(&mut work, member_id, &before.about, about)?;
        self.renew_epoch(&mut work, changed.subscription);
        if downgrades {
            let is_stale = work.group.target_epoch.epoch < work.group.epoch.epoch;
            if !is_stale {
                self.reconcile(&mut work, member_id, changed.subscription, Some(&owned))?;
            }
            let generation_id = epoch_of(&work.group, member_id);
            self.convert_to_classic(groups, work, &BTreeSet::new(), is_stale)?;
            return Ok(joined(member_id, generation_id, &first.name));
        }
        self.renew_target(&mut work)?;
        self.reconcile(&mut work, member_id, changed.subscription, Some(&owned))?;
        self.finish(groups, &mut work)?;
        let id = &work.id;
        self.timers.cancel(&Timer::ClassicJoin(id.clone(), member_id.clone()));
        self.arm_member(Timer::Session, id, member_id, session_ms);
        self.arm_member(Timer::ClassicSync, id, member_id, rebalance_ms);
        Ok(joined(member_id, epoch_of(&work.group, member_id), &first.name))
    }

    /// SyncGroup: what the member has now.
    pub fn sync_consumer(
        &mut self,
        group: &ConsumerGroup,
        ask: SyncGroup,
    ) -> Result<Synced, GroupError> {
        let instance = ask.group_instance_id.as_ref();
        let (member, classic) =
            classic_member(group, &ask.group_id, &ask.member_id, instance, ask.generation_id)?;
        let first = classic.protocols.first().ok_or(ClientFault::InconsistentProtocol)?;
        let fits_type = ask.protocol_type.as_deref().is_none_or(|sent| sent == CONSUMER);
        if !fits_type || ask.protocol_name.as_ref().is_some_and(|sent| *sent != first.name) {
            return Err(ClientFault::InconsistentProtocol.into());
        }
        let is_behind = group.target_epoch.epoch > member.current.epoch;
        if is_behind && member.current.state != MemberState::Unrevoked {
            self.ask_to_join(&ask.group_id, &ask.member_id, member);
            return Err(NotNow::RebalanceInProgress.into());
        }
        self.timers.cancel(&Timer::ClassicSync(ask.group_id.clone(), ask.member_id.clone()));
        self.arm_member(Timer::Session, &ask.group_id, &ask.member_id, classic.session_timeout_ms);
        let assigned = super::change::partitions_of(&member.current.assigned);
        Ok(Synced {
            assignment: to_bytes(&assigned, &first.metadata, &self.image)?,
            protocol_type: ask.protocol_type,
            protocol_name: ask.protocol_name,
        })
    }

    /// Heartbeat: a member that could take a step is told to join again.
    pub fn heartbeat_consumer(
        &mut self,
        group: &ConsumerGroup,
        ask: &Heartbeat,
    ) -> Result<(), GroupError> {
        let instance = ask.group_instance_id.as_ref();
        let (member, classic) =
            classic_member(group, &ask.group_id, &ask.member_id, instance, ask.generation_id)?;
        self.arm_member(Timer::Session, &ask.group_id, &ask.member_id, classic.session_timeout_ms);
        let can_move = match member.current.state {
            MemberState::Unrevoked => true,
            MemberState::Unreleased => !waits_for_others(group, &ask.member_id, member),
            MemberState::Stable | MemberState::Unknown => false,
        };
        if can_move || member.current.epoch < group.target_epoch.epoch {
            self.ask_to_join(&ask.group_id, &ask.member_id, member);
            return Err(NotNow::RebalanceInProgress.into());
        }
        Ok(())
    }

    /// From the first time that it is asked to, a member has its rebalance timeout to join.
    fn ask_to_join(&mut self, group: &GroupId, id: &MemberId, member: &ConsumerMember) {
        if !self.timers.has(&Timer::ClassicJoin(group.clone(), id.clone())) {
            self.arm_member(Timer::ClassicJoin, group, id, member.about.rebalance_timeout_ms);
        }
    }

    /// LeaveGroup.
    pub fn leave_as_classic(
        &mut self,
        groups: &mut LiveGroups,
        group: &ConsumerGroup,
        ask: LeaveGroup,
    ) {
        let mut gone = BTreeSet::new();
        let mut left = Vec::with_capacity(ask.members.len());
        for member in ask.members {
            let outcome = match leaving(group, &member, &ask.group_id) {
                Ok(id) => {
                    gone.insert(id);
                    Ok(())
                }
                Err(error) => Err(error),
            };
            left.push(LeftMember { member, outcome });
        }
        if !gone.is_empty()
            && let Err(error) = self.fence(groups, Work::on(&ask.group_id, group), &gone)
        {
            let failed = left.iter_mut().filter(|member| member.outcome.is_ok());
            failed.for_each(|member| member.outcome = Err(error.clone()));
        }
        self.answer(GroupAnswer::Leave(left));
    }
}

fn leaving(
    group: &ConsumerGroup,
    leaving: &LeavingMember,
    group_id: &GroupId,
) -> Result<MemberId, GroupError> {
    let id = &leaving.member_id;
    match &leaving.group_instance_id {
        None if group.members.contains_key(id) => Ok(id.clone()),
        None => Err(unknown(id, group_id).into()),
        Some(instance) => {
            let found = group.static_member(instance);
            let (owner, _) = found.ok_or(ClientFault::UnknownMember)?;
            if !id.is_empty() && owner != id {
                return Err(ClientFault::FencedInstance.into());
            }
            Ok(owner.clone())
        }
    }
}

/// The member's epoch is its generation.
fn epoch_of(group: &ConsumerGroup, id: &MemberId) -> i32 {
    group.members.get(id).map_or(0, |member| member.current.epoch)
}

fn joined(member_id: &MemberId, generation_id: i32, protocol: &std::sync::Arc<str>) -> Joined {
    Joined {
        member_id: member_id.clone(),
        generation_id,
        protocol_type: Some(CONSUMER.into()),
        protocol_name: Some(protocol.clone()),
        leader: MemberId::default(),
        skip_assignment: false,
        members: Vec::new(),
    }
}

/// Whether it speaks the consumer protocol, with an assignor that all classic members have.
fn supports(group: &ConsumerGroup, ask: &JoinGroup) -> bool {
    let classic = || group.members.values().filter_map(|member| member.about.classic.as_ref());
    let all_have = |name| classic().all(|side| side.protocols.iter().any(|p| p.name == name));
    *ask.protocol_type == *CONSUMER
        && ask.protocols.iter().any(|protocol| all_have(protocol.name.clone()))
}

fn enter(work: &mut Work, ask: &JoinGroup, id: &MemberId) -> Result<ConsumerMember, GroupError> {
    let known = work.group.members.get(id).cloned().unwrap_or_default();
    let Some(instance) = &ask.group_instance_id else { return Ok(known) };
    let found = work.group.static_member(instance).map(|(id, member)| (id.clone(), member.clone()));
    match found {
        None if ask.member_id.is_empty() => Ok(known),
        None => Err(ConsumerFault::UnknownInstance(instance.clone()).into()),
        Some((owner, member)) if ask.member_id.is_empty() => Ok(replace(work, &owner, &member, id)),
        Some((owner, member)) => {
            check_instance(id, instance, &owner)?;
            Ok(member)
        }
    }
}

fn told(
    before: &Subscription,
    ask: JoinGroup,
    wanted: ConsumerProtocolSubscription,
) -> Subscription {
    let rack_id = wanted.rack_id.filter(|rack| !rack.is_empty());
    Subscription {
        instance_id: ask.group_instance_id.or_else(|| before.instance_id.clone()),
        rack_id: rack_id.or_else(|| before.rack_id.clone()),
        client_id: ask.client_id,
        client_host: ask.client_host,
        topics: wanted.topics.into_iter().collect(),
        regex: "".into(),
        rebalance_timeout_ms: match ask.rebalance_timeout_ms {
            None | Some(-1) => before.rebalance_timeout_ms,
            Some(timeout_ms) => timeout_ms,
        },
        assignor: before.assignor.clone(),
        classic: Some(ClassicSide {
            session_timeout_ms: ask.session_timeout_ms,
            protocols: ask.protocols,
        }),
    }
}

/// A member that speaks the classic protocol, in the generation that it says.
fn classic_member<'g>(
    group: &'g ConsumerGroup,
    group_id: &GroupId,
    id: &MemberId,
    instance: Option<&InstanceId>,
    generation_id: i32,
) -> Result<(&'g ConsumerMember, &'g ClassicSide), GroupError> {
    let member = match instance {
        None => group.members.get(id).ok_or_else(|| unknown(id, group_id))?,
        Some(instance) => {
            let found = group.static_member(instance).ok_or(ClientFault::UnknownMember)?;
            check_instance(id, instance, found.0)?;
            found.1
        }
    };
    let classic = member.about.classic.as_ref().ok_or(ClientFault::UnknownMember)?;
    let current = member.current.epoch;
    if generation_id != current {
        return Err(ClientFault::IllegalGeneration { sent: generation_id, current }.into());
    }
    Ok((member, classic))
}

/// Whether something that the member is to have is still with somebody else.
fn waits_for_others(group: &ConsumerGroup, id: &MemberId, member: &ConsumerMember) -> bool {
    let target = group.target_of(id);
    target.iter().any(|(topic, partitions)| {
        let assigned = member.current.assigned.get(topic);
        let is_missing = |p: &&i32| assigned.is_none_or(|assigned| !assigned.contains_key(p));
        partitions.iter().filter(is_missing).any(|p| group.has_owner(*topic, *p))
    })
}

/// Partitions of topics that are there.
pub fn by_id(topics: &[TopicPartition], image: &Image) -> Assignment {
    let topics = topics.iter().filter_map(|topic| {
        let partitions = topic.partitions.iter().copied().collect();
        Some((image.topics().id(&topic.topic)?, partitions))
    });
    topics.collect()
}

/// An assignment as a member wants it whose metadata is `metadata`.
///
/// # Errors
/// [`ClientFault::InconsistentProtocol`]: the metadata is not a consumer's.
pub fn to_bytes(
    assignment: &Assignment,
    metadata: &[u8],
    image: &Image,
) -> Result<Bytes, GroupError> {
    let topics = assignment.iter().filter_map(|(id, partitions)| {
        let topic = image.topics().by_id(*id)?.name.clone();
        Some(TopicPartition { topic, partitions: partitions.iter().copied().collect() })
    });
    let assigned_partitions = topics.collect();
    let assignment = ConsumerProtocolAssignment { assigned_partitions, user_data: None };
    let (_, version) = ConsumerProtocolSubscription::parse(metadata)
        .map_err(|_| ClientFault::InconsistentProtocol)?;
    assignment.to_bytes(version).map_err(|_| ClientFault::NameTooLong.into())
}
