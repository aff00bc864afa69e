//! OffsetCommit and OffsetDelete: what is kept of a group's progress.

use std::sync::Arc;

use super::error::{ClientFault, GroupError, NotNow};
use super::live::Live;
use super::machine::{GroupAnswer, LiveGroups, Turn, not_found};
use super::record::{GroupRecord, NAME_BYTES_MAX};
use super::state::{CommittedOffset, OffsetKey};
use super::types::{
    CommitPartition, CommitTopic, GroupState, OffsetCommit, OffsetDelete, TopicOutcome,
};
use crate::common::TopicId;

type Outcomes = Result<Vec<TopicOutcome>, GroupError>;

impl Turn<'_> {
    pub fn decide_commit(&mut self, groups: &LiveGroups, ask: OffsetCommit) {
        let outcomes = self.commit(groups, &ask);
        self.answer(GroupAnswer::Commit(outcomes));
    }

    fn commit(&mut self, groups: &LiveGroups, ask: &OffsetCommit) -> Outcomes {
        if ask.group_id.len() > NAME_BYTES_MAX {
            return Err(ClientFault::NameTooLong.into());
        }
        let consumer = self.state.consumer(&ask.group_id).cloned();
        let behind = match &consumer {
            Some(group) => group.committer(ask)?,
            None => {
                self.check_commit(groups, ask)?;
                None
            }
        };
        let now_ms = self.cx.now_ms;
        let expire_timestamp_ms = ask.retention_ms.map(|ms| now_ms.saturating_add(ms));
        let mut records = Vec::new();
        let mut outcomes = Vec::with_capacity(ask.topics.len());
        for topic in &ask.topics {
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            for sent in &topic.partitions {
                let metadata = sent.metadata.as_deref().unwrap_or_default();
                if self.is_too_long(metadata, expire_timestamp_ms.is_some()) {
                    partitions.push((sent.partition, Err(ClientFault::MetadataTooLarge.into())));
                    continue;
                }
                let allowed = behind.map_or(Ok(()), |member| {
                    member.check_commit(ask.generation_id, topic.id, sent.partition)
                });
                partitions.push((sent.partition, allowed.clone()));
                if allowed.is_err() {
                    continue;
                }
                let (key, value) = to_keep(&ask.group_id, topic, sent, now_ms);
                let value = CommittedOffset { expire_timestamp_ms, ..value };
                records.push(GroupRecord::Offset { key, value: Some(value) });
            }
            outcomes.push(TopicOutcome { id: topic.id, name: topic.name.clone(), partitions });
        }
        self.write(records)?;
        Ok(outcomes)
    }

    /// Who may commit: a member of the current generation, and anybody while the group is empty.
    fn check_commit(&mut self, groups: &LiveGroups, ask: &OffsetCommit) -> Result<(), GroupError> {
        let is_unmanaged = ask.generation_id < 0;
        let Some(group) = groups.get(&ask.group_id) else {
            return match self.state.classic(&ask.group_id) {
                // Without members, or not there yet: the commit makes it.
                _ if is_unmanaged => Ok(()),
                Some(_) => Err(ClientFault::UnknownMember.into()),
                None if ask.knows_group_not_found => Err(not_found(&ask.group_id)),
                None => {
                    let sent = ask.generation_id;
                    Err(ClientFault::IllegalGeneration { sent, current: -1 }.into())
                }
            };
        };
        if is_unmanaged && group.state == GroupState::Empty {
            return Ok(());
        }
        if is_unmanaged && ask.member_id.is_empty() && ask.group_instance_id.is_none() {
            return Err(ClientFault::UnknownMember.into());
        }
        group.check_member(&ask.member_id, ask.group_instance_id.as_ref())?;
        group.check_generation(ask.generation_id)?;
        match group.state {
            // It has heard of the generation, but not of its assignment.
            GroupState::CompletingRebalance => Err(NotNow::RebalanceInProgress.into()),
            GroupState::Stable | GroupState::PreparingRebalance => {
                self.arm_session(group, &ask.member_id);
                Ok(())
            }
            GroupState::Empty => Ok(()),
        }
    }

    /// - `expires`: the record's version with an expiry has two bytes for the length.
    fn is_too_long(&self, metadata: &str, expires: bool) -> bool {
        let most = usize::try_from(self.config.offset_metadata_max_bytes).unwrap_or(0);
        // No character takes more UTF-16 units than bytes.
        let is_over = metadata.len() > most && metadata.encode_utf16().count() > most;
        is_over || expires && metadata.len() > NAME_BYTES_MAX
    }

    pub fn decide_delete_offsets(&mut self, groups: &LiveGroups, ask: OffsetDelete) {
        let live = groups.get(&ask.group_id).map(|group| &**group);
        let outcomes = match check_delete_offsets(live) {
            _ if !self.state.has_group(&ask.group_id) => Err(not_found(&ask.group_id)),
            Err(fault) => Err(fault.into()),
            Ok(()) => self.delete_offsets(live, ask),
        };
        self.answer(GroupAnswer::DeleteOffsets(outcomes));
    }

    fn delete_offsets(&mut self, group: Option<&Live>, ask: OffsetDelete) -> Outcomes {
        let mut records = Vec::new();
        let mut outcomes = Vec::with_capacity(ask.topics.len());
        let consumer = self.state.consumer(&ask.group_id);
        for (name, partitions) in ask.topics {
            let is_subscribed = group.is_some_and(|group| group.is_subscribed(&name))
                || consumer.is_some_and(|group| group.is_subscribed(&name));
            let mut results = Vec::with_capacity(partitions.len());
            for partition in partitions {
                if is_subscribed {
                    results.push((partition, Err(ClientFault::SubscribedToTopic.into())));
                    continue;
                }
                results.push((partition, Ok(())));
                let key = OffsetKey::new(ask.group_id.clone(), name.clone(), partition);
                if self.state.committed(&key).is_some() || self.state.is_pending(&key) {
                    records.push(GroupRecord::Offset { key, value: None });
                }
            }
            outcomes.push(TopicOutcome { id: TopicId::NONE, name, partitions: results });
        }
        self.write(records)?;
        Ok(outcomes)
    }
}

/// While it has members only a consumers' group can say which topics are not in use.
fn check_delete_offsets(group: Option<&Live>) -> Result<(), ClientFault> {
    match group {
        Some(group) if group.state != GroupState::Empty && !group.has_consumers() => {
            Err(ClientFault::GroupNotEmpty)
        }
        _ => Ok(()),
    }
}

fn to_keep(
    group_id: &Arc<str>,
    topic: &CommitTopic,
    sent: &CommitPartition,
    now_ms: i64,
) -> (OffsetKey, CommittedOffset) {
    let key = OffsetKey::new(group_id.clone(), topic.name.clone(), sent.partition);
    let value = CommittedOffset {
        offset: sent.offset,
        leader_epoch: sent.leader_epoch,
        metadata: sent.metadata.clone().unwrap_or_default(),
        commit_timestamp_ms: now_ms,
        expire_timestamp_ms: None,
        topic_id: topic.id,
    };
    (key, value)
}
