//! How groups and offsets end: DeleteGroups, deleted topics, retention.

use std::collections::BTreeSet;

use super::consumer::{ConsumerGroup, tombstones};
use super::error::{ClientFault, GroupError, NotNow};
use super::live::Live;
use super::machine::{GroupAnswer, GroupEffect, LiveGroups, Progress, Turn, not_found};
use super::record::GroupRecord;
use super::state::{CommittedOffset, GroupMetadata, Kept, OffsetKey};
use super::timers::Timer;
use super::types::{GroupId, GroupState};
use crate::common::TopicName;

/// Groups looked at in one decision of the search for expired offsets.
const EXPIRY_GROUPS_MAX: usize = 1_000;

impl Turn<'_> {
    /// DeleteGroups, one group: its offsets, then itself.
    pub fn decide_delete(&mut self, groups: &mut LiveGroups, group_id: &GroupId) {
        let outcome = self.delete(groups, group_id);
        self.answer(GroupAnswer::Delete(outcome));
    }

    fn delete(
        &mut self,
        groups: &mut LiveGroups,
        group_id: &GroupId,
    ) -> Result<Progress, GroupError> {
        if !self.state.has_group(group_id) {
            return Err(not_found(group_id));
        }
        let consumer = self.state.consumer(group_id).cloned();
        if consumer.as_ref().is_some_and(|group| !group.members.is_empty()) {
            return Err(ClientFault::GroupNotEmpty.into());
        }
        if groups.get(group_id).is_some_and(|group| group.state != GroupState::Empty) {
            return Err(ClientFault::GroupNotEmpty.into());
        }
        let committed = self.state.offsets_of(group_id).map(|(key, _)| key);
        let keys: BTreeSet<&OffsetKey> = committed.chain(self.state.pending_of(group_id)).collect();
        let tombstones = keys.into_iter().map(|key| GroupRecord::offset_tombstone(key.clone()));
        let group = group_tombstones(group_id, consumer.as_deref());
        let progress = self.write_some(tombstones.chain(group))?;
        if progress == Progress::Done {
            self.group_ended(groups, group_id);
        }
        Ok(progress)
    }

    /// Nothing is remembered of a group of any kind that is gone.
    fn group_ended(&mut self, groups: &mut LiveGroups, group_id: &GroupId) {
        self.watches.remove(group_id);
        self.forget(groups, group_id);
    }

    /// Removes an empty consumer group whose place a classic one takes; its offsets stay.
    pub fn remove_consumer(
        &mut self,
        group_id: &GroupId,
        group: &ConsumerGroup,
    ) -> Result<(), GroupError> {
        self.watches.remove(group_id);
        self.write(group_tombstones(group_id, Some(group)))
    }

    /// A classic group is gone, or no classic one any more: who waits is to ask again, and ids
    /// that were handed out for it are not known any more.
    pub fn forget(&mut self, groups: &mut LiveGroups, group_id: &GroupId) {
        let Some(mut group) = groups.remove(group_id) else { return };
        for member_id in group.members.keys().cloned().collect::<Vec<_>>() {
            let ticket = group.take_join(&member_id);
            self.refuse_old_join(ticket, &member_id);
        }
        self.answer_syncs(&mut group, Some(&NotNow::RebalanceInProgress.into()));
        for member_id in group.pending_join.iter().chain(group.members.keys()) {
            self.cancel_session(&group, member_id);
        }
        self.timers.cancel(&Timer::Join(group_id.clone()));
        self.timers.cancel(&Timer::Sync(group_id.clone()));
    }

    /// Offsets of topics that are gone.
    pub fn decide_topics_deleted(&mut self, topics: Vec<TopicName>) {
        let topics: BTreeSet<TopicName> = topics.into_iter().collect();
        let keys: BTreeSet<&OffsetKey> =
            self.state.all_keys().filter(|key| topics.contains(&key.topic)).collect();
        let tombstones = keys.into_iter().map(|key| GroupRecord::offset_tombstone(key.clone()));
        // One that fits no batch stays until the group goes, as what no leader tells us of does.
        let progress = self.write_some(tombstones).unwrap_or(Progress::Done);
        self.answer(GroupAnswer::TopicsDeleted(progress));
    }

    /// One bounded step of the search for expired offsets; groups that are left without any are
    /// deleted. Goes on at `from`, and arms itself again.
    pub fn expire_offsets(&mut self, groups: &mut LiveGroups, from: &mut Option<GroupId>) {
        let first = from.take().unwrap_or_default();
        let state = self.state;
        for (seen, (group_id, kept)) in state.groups_from(first).enumerate() {
            let is_whole = seen < EXPIRY_GROUPS_MAX
                && self.expire_group(groups, group_id, kept) == Progress::Done;
            if !is_whole {
                *from = Some(group_id.clone());
                break;
            }
        }
        let is_offset = |record: &&GroupRecord| matches!(record, GroupRecord::Offset { .. });
        let count = self.decision.records.iter().filter(is_offset).count();
        if count > 0 {
            self.decision.effects.push(GroupEffect::OffsetsExpired { count });
        }
        match from {
            Some(_) => self.timers.arm(Timer::Expiry, self.cx.now),
            None => self.arm_expiry(),
        }
    }

    fn expire_group(
        &mut self,
        groups: &mut LiveGroups,
        group_id: &GroupId,
        kept: &Kept,
    ) -> Progress {
        let live = groups.get(group_id);
        let (metadata, consumer) = match kept {
            Kept::Classic(metadata) => (Some(metadata), None),
            Kept::Consumer(group) => (None, Some(group)),
        };
        let is_empty = live.is_none_or(|group| group.state == GroupState::Empty)
            && consumer.is_none_or(|group| group.members.is_empty());
        let (mut records, mut all_expired) = (Vec::new(), true);
        for (key, committed) in self.state.offsets_of(group_id) {
            let base_ms = match (live, consumer) {
                (_, Some(group)) => {
                    let is_unused = !group.is_subscribed(&key.topic);
                    is_unused.then_some(committed.commit_timestamp_ms)
                }
                (Some(group), None) if !is_empty => base_of_live(group, key, committed),
                _ => metadata.map(|metadata| base_of_empty(metadata, committed)),
            };
            let is_expired = base_ms.is_some_and(|base| self.is_expired(committed, base));
            if is_expired && !self.state.is_pending(key) {
                records.push(GroupRecord::offset_tombstone(key.clone()));
            } else {
                all_expired = false;
            }
        }
        let is_gone = all_expired && is_empty && self.state.pending_of(group_id).next().is_none();
        if is_gone {
            records.extend(group_tombstones(group_id, consumer.map(|group| &**group)));
        }
        let progress = self.write_some(records);
        if is_gone && progress == Ok(Progress::Done) {
            self.group_ended(groups, group_id);
        }
        // What fits no batch is passed over, else the search would never end.
        progress.unwrap_or(Progress::Done)
    }

    /// A retention of the client's own (OffsetCommit 2 to 4) goes before the broker's.
    fn is_expired(&self, committed: &CommittedOffset, base_ms: i64) -> bool {
        let retention_ms = i64::from(self.config.offsets_retention_minutes) * 60_000;
        let expires_ms = base_ms.saturating_add(retention_ms);
        self.cx.now_ms >= committed.expire_timestamp_ms.unwrap_or(expires_ms)
    }
}

/// What ends a group without members.
fn group_tombstones(group_id: &GroupId, consumer: Option<&ConsumerGroup>) -> Vec<GroupRecord> {
    let Some(group) = consumer else { return vec![GroupRecord::group_tombstone(group_id.clone())] };
    let all = tombstones(group).into_iter();
    all.map(|change| GroupRecord::Consumer { group_id: group_id.clone(), change }).collect()
}

/// From when on the offset of a group without members ages: since it lost its members, or, if it
/// never had any, since the commit.
fn base_of_empty(metadata: &GroupMetadata, committed: &CommittedOffset) -> i64 {
    let since_empty = metadata.protocol_type.as_ref().and(metadata.state_timestamp_ms);
    since_empty.unwrap_or(committed.commit_timestamp_ms)
}

/// With members only a stable consumers' group is sure of which topics it does not use; their
/// offsets age from their commit.
fn base_of_live(group: &Live, key: &OffsetKey, committed: &CommittedOffset) -> Option<i64> {
    let knows_topics = group.state == GroupState::Stable && group.subscribed.is_some();
    let may_expire = knows_topics && !group.is_subscribed(&key.topic);
    may_expire.then_some(committed.commit_timestamp_ms)
}
