//! Records of `__consumer_offsets`, between the state's types and those of the log.

use std::sync::Arc;

use super::consumer::ConsumerChange;
use super::state::{CommittedOffset, GroupMetadata, MemberMetadata, OffsetKey};
use super::types::{GroupId, MemberId};
use crate::common::{NO_TIMESTAMP, TopicId};
use crate::coordinator::decided;
use crate::machine::{JournalRecord, Record};
use crate::protocol::records::group as stored;

/// One change of the state; `None` removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupRecord {
    Group { group_id: GroupId, value: Option<Arc<GroupMetadata>> },
    Consumer { group_id: GroupId, change: ConsumerChange },
    Offset { key: OffsetKey, value: Option<CommittedOffset> },
}

/// Longest name that a record can hold, in bytes (two bytes of length).
pub const NAME_BYTES_MAX: usize = i16::MAX as usize;

impl GroupRecord {
    pub fn group(group_id: GroupId, metadata: GroupMetadata) -> Self {
        Self::Group { group_id, value: Some(Arc::new(metadata)) }
    }

    pub fn group_tombstone(group_id: GroupId) -> Self {
        Self::Group { group_id, value: None }
    }

    pub fn offset_tombstone(key: OffsetKey) -> Self {
        Self::Offset { key, value: None }
    }

    /// An upper bound of its size in a batch, found without encoding it.
    pub fn bytes_at_most(&self) -> usize {
        /// What the batch puts around a record, fields of fixed size, and length fields.
        const AROUND: usize = 30 + 64;
        const AROUND_MEMBER: usize = 32;
        let text = |text: &Option<Arc<str>>| text.as_ref().map_or(0, |text| text.len());
        AROUND
            + match self {
                Self::Offset { key, value } => {
                    let metadata = value.as_ref().map_or(0, |value| value.metadata.len());
                    key.group_id.len() + key.topic.len() + metadata
                }
                Self::Consumer { group_id, change } => group_id.len() + change.bytes_at_most(),
                Self::Group { group_id, value: None } => group_id.len(),
                Self::Group { group_id, value: Some(value) } => {
                    let members = value.members.iter().map(|member| {
                        AROUND_MEMBER
                            + member.member_id.len()
                            + text(&member.group_instance_id)
                            + member.client_id.len()
                            + member.client_host.len()
                            + member.subscription.len()
                            + member.assignment.len()
                    });
                    let names = [&value.protocol_type, &value.protocol_name, &value.leader];
                    let names = names.into_iter().map(text);
                    group_id.len() + names.sum::<usize>() + members.sum::<usize>()
                }
            }
    }

    fn to_stored(&self) -> stored::GroupRecord {
        match self {
            Self::Group { group_id, value } => {
                let key = stored::GroupMetadataKey { group: group_id.clone() };
                stored::GroupRecord::GroupMetadata(key, value.as_deref().map(Into::into))
            }
            Self::Consumer { group_id, change } => {
                stored::GroupRecord::Consumer(change.to_stored(group_id))
            }
            Self::Offset { key, value } => {
                let key = stored::OffsetCommitKey {
                    group: key.group_id.clone(),
                    topic: key.topic.clone(),
                    partition: key.partition,
                };
                stored::GroupRecord::OffsetCommit(key, value.as_ref().map(Into::into))
            }
        }
    }
}

impl Record for GroupRecord {
    fn encode(&self) -> JournalRecord {
        decided(self.to_stored().encode())
    }

    fn decode(record: &JournalRecord) -> Result<Option<Self>, String> {
        let Some(key) = &record.key else { return Err("a record without a key".to_owned()) };
        let found = stored::GroupRecord::decode(key, record.value.as_deref());
        Ok(match found.map_err(|error| error.to_string())? {
            stored::GroupRecord::GroupMetadata(key, value) => {
                let value = value.map(|value| Arc::new(value.into()));
                Some(Self::Group { group_id: key.group, value })
            }
            stored::GroupRecord::OffsetCommit(key, value) => {
                let key = OffsetKey::new(key.group, key.topic, key.partition);
                Some(Self::Offset { key, value: value.map(Into::into) })
            }
            stored::GroupRecord::Consumer(record) => {
                let (group_id, change) = ConsumerChange::from_stored(record);
                Some(Self::Consumer { group_id, change })
            }
            stored::GroupRecord::Unknown { .. } => None,
        })
    }
}

impl From<&CommittedOffset> for stored::OffsetCommitValue {
    fn from(value: &CommittedOffset) -> Self {
        Self {
            offset: value.offset,
            leader_epoch: value.leader_epoch,
            metadata: value.metadata.clone(),
            commit_timestamp: value.commit_timestamp_ms,
            expire_timestamp: value.expire_timestamp_ms.unwrap_or(NO_TIMESTAMP),
            topic_id: value.topic_id.0,
        }
    }
}

impl From<stored::OffsetCommitValue> for CommittedOffset {
    fn from(value: stored::OffsetCommitValue) -> Self {
        Self {
            offset: value.offset,
            leader_epoch: value.leader_epoch,
            metadata: value.metadata,
            commit_timestamp_ms: value.commit_timestamp,
            expire_timestamp_ms: known(value.expire_timestamp),
            topic_id: TopicId(value.topic_id),
        }
    }
}

impl From<&GroupMetadata> for stored::GroupMetadataValue {
    fn from(metadata: &GroupMetadata) -> Self {
        let member = |member: &MemberMetadata| stored::MemberMetadata {
            member_id: member.member_id.clone(),
            group_instance_id: member.group_instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            rebalance_timeout: member.rebalance_timeout_ms,
            session_timeout: member.session_timeout_ms,
            subscription: member.subscription.clone(),
            assignment: member.assignment.clone(),
        };
        Self {
            protocol_type: metadata.protocol_type.clone().unwrap_or_default(),
            generation: metadata.generation_id,
            protocol: metadata.protocol_name.clone(),
            leader: metadata.leader.clone(),
            current_state_timestamp: metadata.state_timestamp_ms.unwrap_or(NO_TIMESTAMP),
            members: metadata.members.iter().map(member).collect(),
        }
    }
}

impl From<stored::GroupMetadataValue> for GroupMetadata {
    fn from(value: stored::GroupMetadataValue) -> Self {
        Self {
            protocol_type: Some(value.protocol_type).filter(|text| !text.is_empty()),
            generation_id: value.generation,
            protocol_name: value.protocol,
            leader: value.leader,
            state_timestamp_ms: known(value.current_state_timestamp),
            members: value.members.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<stored::MemberMetadata> for MemberMetadata {
    fn from(member: stored::MemberMetadata) -> Self {
        // Before version 1 there was one timeout for both.
        let rebalance_timeout_ms = match member.rebalance_timeout {
            -1 => member.session_timeout,
            timeout => timeout,
        };
        Self {
            member_id: MemberId::clone(&member.member_id),
            group_instance_id: member.group_instance_id,
            client_id: member.client_id,
            client_host: member.client_host,
            rebalance_timeout_ms,
            session_timeout_ms: member.session_timeout,
            subscription: member.subscription,
            assignment: member.assignment,
        }
    }
}

/// -1 stands for "not known" in Kafka's timestamps.
fn known(timestamp_ms: i64) -> Option<i64> {
    (timestamp_ms != NO_TIMESTAMP).then_some(timestamp_ms)
}
