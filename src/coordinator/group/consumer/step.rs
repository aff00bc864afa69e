//! A decision on one consumer group in the making: records are applied to a copy of the group as
//! they are decided, so that each part of the decision sees what the parts before it did.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::change::ConsumerChange;
use super::state::{Assignment, ConsumerGroup, GroupEpoch, Subscription, TargetEpoch};
use super::types::ConsumerFault;
use super::{assignor, hash, reconcile};
use crate::common::{Offset, TopicId};
use crate::coordinator::group::error::GroupError;
use crate::coordinator::group::machine::{GroupEffect, LiveGroups, Turn};
use crate::coordinator::group::record::GroupRecord;
use crate::coordinator::group::timers::Timer;
use crate::coordinator::group::types::{GroupId, MemberId};

/// What a coordinator remembers of a consumer group beside its records.
#[derive(Debug, Default)]
pub struct Watch {
    /// End offset of the image that the group's topics were last compared with.
    pub checked: Option<Offset>,
    /// Its regular expressions are being resolved.
    pub is_resolving: bool,
}

pub type Watches = BTreeMap<GroupId, Watch>;

/// The copy of the group with the records that made it.
pub struct Work {
    pub id: GroupId,
    pub group: ConsumerGroup,
    records: Vec<GroupRecord>,
    checked: Option<Offset>,
    /// The group was a classic one until now.
    pub was_classic: bool,
}

impl Work {
    pub fn on(id: &GroupId, group: &ConsumerGroup) -> Self {
        let (id, group) = (id.clone(), group.clone());
        Self { id, group, records: Vec::new(), checked: None, was_classic: false }
    }

    /// A group that takes the place of a classic one.
    pub fn instead_of_classic(id: &GroupId) -> Self {
        let mut work = Self::on(id, &ConsumerGroup::default());
        work.records.push(GroupRecord::group_tombstone(id.clone()));
        work.was_classic = true;
        work
    }

    pub fn push(&mut self, change: ConsumerChange) {
        self.group.apply(&change);
        self.records.push(GroupRecord::Consumer { group_id: self.id.clone(), change });
    }

    /// A record that is not of the consumer group.
    pub fn push_other(&mut self, record: GroupRecord) {
        self.records.push(record);
    }

    pub fn remove_member(&mut self, id: &MemberId) {
        self.push(ConsumerChange::Current(id.clone(), None));
        self.push(ConsumerChange::Target(id.clone(), None));
        self.push(ConsumerChange::Member(id.clone(), None));
    }
}

impl Turn<'_> {
    /// Puts the records into the decision.
    ///
    /// # Errors
    /// [`GroupError::TooLarge`]: nothing has changed.
    pub fn finish(&mut self, groups: &mut LiveGroups, work: &mut Work) -> Result<(), GroupError> {
        self.write(std::mem::take(&mut work.records))?;
        if work.was_classic {
            self.forget(groups, &work.id);
            for (id, member) in &work.group.members {
                let Some(classic) = &member.about.classic else { continue };
                self.arm_member(Timer::Session, &work.id, id, classic.session_timeout_ms);
            }
        }
        if let Some(checked) = work.checked {
            self.watches.entry(work.id.clone()).or_default().checked = Some(checked);
        }
        Ok(())
    }

    /// Compares the group with the image where that is due; the group's epoch goes up if its
    /// topics have changed, or if `bump` says so.
    pub fn renew_epoch(&mut self, work: &mut Work, bump: bool) {
        let checked = self.watches.get(&work.id).and_then(|watch| watch.checked);
        if !bump && checked == Some(self.image.end_offset) {
            return;
        }
        let metadata_hash = hash::of_topics(&work.group.subscribed(), &self.image);
        let GroupEpoch { epoch, metadata_hash: before } = work.group.epoch;
        if bump || metadata_hash != before {
            let next = GroupEpoch { epoch: epoch + 1, metadata_hash };
            work.push(ConsumerChange::Epoch(Some(next)));
            self.decision.effects.push(GroupEffect::ConsumerRebalance);
        }
        if work.group.has_partition_metadata {
            work.push(ConsumerChange::PartitionMetadata { exists: false });
        }
        work.checked = Some(self.image.end_offset);
    }

    /// A new target for the group's epoch, unless the last one is too fresh: a rebalance that many
    /// members join costs one assignment per interval (KIP-1263).
    pub fn renew_target(&mut self, work: &mut Work) -> Result<(), GroupError> {
        let (epoch, last) = (work.group.epoch.epoch, work.group.target_epoch);
        if last.epoch >= epoch {
            return Ok(());
        }
        let interval_ms = i64::from(self.settings(&work.id).assignment_interval_ms);
        let next_ms = last.timestamp_ms.saturating_add(interval_ms);
        if last.timestamp_ms != 0 && self.cx.now_ms < next_ms {
            return Ok(());
        }
        let assignor = self.assignor_of(&work.group)?;
        let spec = self.assignor_view(&work.group);
        for (member, target) in spec.members.iter().zip(assignor.assign(&spec)) {
            if work.group.targets.get(&member.id).is_none_or(|before| **before != target) {
                work.push(ConsumerChange::Target(member.id.clone(), Some(Arc::new(target))));
            }
        }
        let target = TargetEpoch { epoch, timestamp_ms: self.cx.now_ms };
        work.push(ConsumerChange::TargetEpoch(Some(target)));
        Ok(())
    }

    /// The assignor that most members want, else the broker's first.
    fn assignor_of(&self, group: &ConsumerGroup) -> Result<assignor::Assignor, ConsumerFault> {
        let name = self.assignor_name(group);
        assignor::Assignor::named(&name)
            .ok_or_else(|| ConsumerFault::Assignor(format!("there is no assignor {name}")))
    }

    /// By the name that clients know.
    pub fn assignor_name(&self, group: &ConsumerGroup) -> Arc<str> {
        let first = || self.config.consumer_assignors.first().map(|name| Arc::from(&**name));
        let name = group.preferred_assignor().cloned().or_else(first).unwrap_or_default();
        assignor::Assignor::named(&name).map_or(name, |assignor| assignor.name().into())
    }

    fn assignor_view(&self, group: &ConsumerGroup) -> assignor::Group {
        let mut partitions = BTreeMap::new();
        let members = group.members.iter().map(|(id, member)| {
            let topics = self.topic_ids(group, &member.about);
            for topic in topics.iter().filter_map(|id| self.image.topics().by_id(*id)) {
                partitions.insert(topic.id, topic.partition_count());
            }
            assignor::Member {
                id: id.clone(),
                instance_id: member.about.instance_id.clone(),
                topics,
                target: group.target_of(id),
            }
        });
        let members = members.collect();
        assignor::Group { members, partitions }
    }

    /// Topics of a member that are there.
    fn topic_ids(&self, group: &ConsumerGroup, about: &Subscription) -> BTreeSet<TopicId> {
        let names = group.topics_of(about);
        names.iter().filter_map(|name| self.image.topics().id(name)).collect()
    }

    /// Takes a member one step on towards its target.
    ///
    /// # Errors
    /// [`ConsumerFault::UnknownState`].
    pub fn reconcile(
        &mut self,
        work: &mut Work,
        id: &MemberId,
        subscription_changed: bool,
        owned: Option<&Assignment>,
    ) -> Result<(), GroupError> {
        let Some(member) = work.group.members.get(id).cloned() else { return Ok(()) };
        let target_epoch = work.group.target_epoch.epoch;
        if !subscription_changed && member.current.is_reconciled_to(target_epoch) {
            return Ok(());
        }
        let step = reconcile::Step {
            target_epoch,
            target: &work.group.target_of(id),
            subscribed: &self.topic_ids(&work.group, &member.about),
            subscription_changed,
            owned,
            has_owner: &|topic, partition| work.group.has_owner(topic, partition),
        };
        let next = step.from(&member.current)?;
        if next != *member.current {
            work.push(ConsumerChange::Current(id.clone(), Some(Arc::new(next))));
        }
        Ok(())
    }
}
