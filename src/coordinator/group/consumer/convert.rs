//! A classic group becomes a consumer group when the first member of the next generation joins it,
//! and a classic one again when the last of them has gone, if `group.consumer.migration.policy`
//! lets it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::change::ConsumerChange;
use super::classic::{by_id, to_bytes};
use super::hash;
use super::heartbeat::not_found;
use super::state::{
    Assignment, ClassicSide, ConsumerGroup, ConsumerMember, Current, FIRST_EPOCH, GroupEpoch,
    MemberState, Subscription, TargetEpoch,
};
use super::step::Work;
use crate::config::MigrationPolicy;
use crate::coordinator::group::error::GroupError;
use crate::coordinator::group::live::{Live, Member};
use crate::coordinator::group::machine::{LiveGroups, Turn};
use crate::coordinator::group::record::GroupRecord;
use crate::coordinator::group::subscription::CONSUMER;
use crate::coordinator::group::types::{GroupId, GroupState, MemberId};
use crate::protocol::records::consumer_protocol::{
    ConsumerProtocolAssignment, ConsumerProtocolSubscription,
};

impl Turn<'_> {
    fn may(&self, direction: MigrationPolicy) -> bool {
        let policy = self.config.consumer_migration_policy;
        policy == direction || policy == MigrationPolicy::Bidirectional
    }

    /// # Errors
    /// Kafka's sentence, as "no such group": the member must stay with the classic protocol.
    pub fn upgrade(&mut self, groups: &LiveGroups, id: &GroupId) -> Result<Work, GroupError> {
        let refused = |why: &str| {
            not_found(format!("Cannot upgrade classic group {id} to consumer group because {why}"))
        };
        let Some(group) = groups.get(id) else { return Ok(Work::instead_of_classic(id)) };
        if !self.may(MigrationPolicy::Upgrade) {
            return Err(refused("online upgrade is disabled."));
        }
        if !group.has_consumers() {
            return Err(refused("the group does not use the consumer embedded protocol."));
        }
        if group.members.len() > usize::try_from(self.config.consumer_max_size).unwrap_or(0) {
            return Err(refused("the group size exceeds the consumer group maximum size."));
        }
        let protocol = group.protocol_name.clone().or_else(|| group.select_protocol());
        let protocol = protocol.unwrap_or_default();
        let mut members = Vec::with_capacity(group.members.len());
        for member in group.members.values() {
            let (about, assigned) =
                self.converted(member, &protocol).map_err(|why| refused(why.text()))?;
            members.push((member.id.clone(), Arc::new(about), Arc::new(assigned)));
        }
        let mut work = Work::instead_of_classic(id);
        // A group that is still in its first rebalance has generation 0.
        let epoch = group.generation_id.max(FIRST_EPOCH);
        for (id, about, _) in &members {
            work.push(ConsumerChange::Member(id.clone(), Some(about.clone())));
        }
        let metadata_hash = hash::of_topics(&work.group.subscribed(), &self.image);
        work.push(ConsumerChange::Epoch(Some(GroupEpoch { epoch, metadata_hash })));
        for (id, _, assigned) in &members {
            work.push(ConsumerChange::Target(id.clone(), Some(assigned.clone())));
        }
        work.push(ConsumerChange::TargetEpoch(Some(TargetEpoch { epoch, timestamp_ms: 0 })));
        for (id, _, assigned) in members {
            let since = |(topic, partitions): (&_, &BTreeSet<i32>)| {
                (*topic, partitions.iter().map(|partition| (*partition, epoch)).collect())
            };
            let current = Current {
                epoch,
                previous_epoch: epoch,
                state: MemberState::Stable,
                assigned: assigned.iter().map(since).collect(),
                ..Current::default()
            };
            work.push(ConsumerChange::Current(id, Some(Arc::new(current))));
        }
        Ok(work)
    }

    fn converted(
        &self,
        member: &Member,
        protocol: &str,
    ) -> Result<(Subscription, Assignment), NotConverted> {
        let mut assigned = Assignment::new();
        if !member.assignment.is_empty() {
            let parsed = ConsumerProtocolAssignment::parse(&member.assignment)
                .map_err(|_| NotConverted::Malformed)?;
            if parsed.user_data.is_some_and(|data| !data.is_empty()) {
                return Err(NotConverted::CustomAssignor);
            }
            assigned = by_id(&parsed.assigned_partitions, &self.image);
        }
        let (wanted, _) = ConsumerProtocolSubscription::parse(&member.metadata(protocol))
            .map_err(|_| NotConverted::Malformed)?;
        let about = Subscription {
            instance_id: member.group_instance_id.clone(),
            rack_id: wanted.rack_id.filter(|rack| !rack.is_empty()),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            topics: wanted.topics.into_iter().collect(),
            regex: "".into(),
            rebalance_timeout_ms: member.rebalance_timeout_ms,
            assignor: None,
            classic: Some(ClassicSide {
                session_timeout_ms: member.session_timeout_ms,
                protocols: member.protocols.clone(),
            }),
        };
        Ok((about, assigned))
    }

    /// Whether only classic members are left when `leaving` are gone, and some are.
    pub fn may_downgrade(&self, group: &ConsumerGroup, leaving: &BTreeSet<MemberId>) -> bool {
        let stays = group.members.iter().filter(|(id, _)| !leaving.contains(*id));
        let mut count = 0;
        for (_, member) in stays {
            if member.about.classic.is_none() {
                return false;
            }
            count += 1;
        }
        count > 0 && self.may(MigrationPolicy::Downgrade) && count <= self.size_max()
    }

    /// The same for a static member that a classic one replaces.
    pub fn may_downgrade_without(&self, group: &ConsumerGroup, member: &ConsumerMember) -> bool {
        let (all, classic) = (group.members.len(), group.classic_members());
        member.about.classic.is_none()
            && classic + 1 == all
            && self.may(MigrationPolicy::Downgrade)
            && all <= self.size_max()
    }

    /// # Errors
    /// No batch can take it, or a member's metadata is damaged: nothing has changed.
    pub fn convert_to_classic(
        &mut self,
        groups: &mut LiveGroups,
        mut work: Work,
        leaving: &BTreeSet<MemberId>,
        rebalances: bool,
    ) -> Result<(), GroupError> {
        let mut live = Live::new(work.id.clone(), self.cx.now_ms);
        live.state = GroupState::Stable;
        live.generation_id = work.group.epoch.epoch;
        live.protocol_type = Some(CONSUMER.into());
        for (id, member) in work.group.members.iter().filter(|(id, _)| !leaving.contains(*id)) {
            live.add(to_classic(id, member));
        }
        live.protocol_name = live.select_protocol();
        let protocol = live.protocol_name.clone().unwrap_or_default();
        for member in live.members.values_mut() {
            let target = work.group.target_of(&member.id);
            let metadata = member.metadata(&protocol);
            member.assignment = to_bytes(&target, &metadata, &self.image).map_err(|error| {
                not_found(format!("Cannot downgrade the classic group {}: {error}.", work.id))
            })?;
        }
        live.find_subscribed_again();
        for change in tombstones(&work.group) {
            work.push(change);
        }
        work.push_other(GroupRecord::group(work.id.clone(), live.metadata()));
        let members: Vec<MemberId> = work.group.members.keys().cloned().collect();
        self.finish(groups, &mut work)?;
        self.watches.remove(&work.id);
        for id in members.iter().chain(leaving) {
            self.cancel_member(&work.id, id);
        }
        self.arm_sessions(&live);
        if rebalances {
            self.prepare_rebalance(&mut live);
        }
        groups.insert(work.id.clone(), Box::new(live));
        Ok(())
    }
}

/// Why a classic group cannot be converted, in Kafka's words.
enum NotConverted {
    Malformed,
    CustomAssignor,
}

impl NotConverted {
    fn text(&self) -> &'static str {
        match self {
            Self::Malformed => "the embedded consumer protocol is malformed.",
            Self::CustomAssignor => {
                "an unsupported custom assignor is in use. Please refer to the documentation or switch to \
                 a default assignor before re-attempting the upgrade."
            }
        }
    }
}

fn to_classic(id: &MemberId, member: &ConsumerMember) -> Member {
    let about = &member.about;
    let classic = about.classic.clone();
    let (session_timeout_ms, protocols) =
        classic.map_or((0, Vec::new()), |classic| (classic.session_timeout_ms, classic.protocols));
    Member {
        id: id.clone(),
        group_instance_id: about.instance_id.clone(),
        client_id: about.client_id.clone(),
        client_host: about.client_host.clone(),
        rebalance_timeout_ms: about.rebalance_timeout_ms,
        session_timeout_ms,
        protocols,
        assignment: bytes::Bytes::new(),
        awaiting_join: None,
        awaiting_sync: None,
        is_new: false,
    }
}

/// All that removes a group, itself last.
pub fn tombstones(group: &ConsumerGroup) -> Vec<ConsumerChange> {
    let ids = || group.members.keys().cloned();
    let mut all: Vec<ConsumerChange> = ids().map(|id| ConsumerChange::Current(id, None)).collect();
    all.extend(ids().map(|id| ConsumerChange::Target(id, None)));
    all.push(ConsumerChange::TargetEpoch(None));
    all.extend(ids().map(|id| ConsumerChange::Member(id, None)));
    all.extend(group.regexes.keys().map(|regex| ConsumerChange::Regex(regex.clone(), None)));
    all.push(ConsumerChange::PartitionMetadata { exists: false });
    all.push(ConsumerChange::Epoch(None));
    all
}
