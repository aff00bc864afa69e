//! One change of a consumer group, between the state's types and those of the log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::state::{
    Assignment, ClassicSide, Current, GroupEpoch, MemberState, Owned, ResolvedRegex, Subscription,
    TargetEpoch,
};
use crate::common::TopicId;
use crate::coordinator::group::types::{GroupId, MemberId, Protocol};
use crate::protocol::records::consumer_group::{self as stored, ConsumerGroupRecord as Stored};

/// One record of a consumer group; `None` removes. Without its epoch there is no group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConsumerChange {
    Epoch(Option<GroupEpoch>),
    /// Kafka before 4.1 wrote one; its content follows from the image.
    PartitionMetadata {
        exists: bool,
    },
    Member(MemberId, Option<Arc<Subscription>>),
    TargetEpoch(Option<TargetEpoch>),
    Target(MemberId, Option<Arc<Assignment>>),
    Current(MemberId, Option<Arc<Current>>),
    Regex(Arc<str>, Option<Arc<ResolvedRegex>>),
}

impl ConsumerChange {
    pub fn removes(&self) -> bool {
        match self {
            Self::Epoch(value) => value.is_none(),
            Self::PartitionMetadata { exists } => !exists,
            Self::Member(_, value) => value.is_none(),
            Self::TargetEpoch(value) => value.is_none(),
            Self::Target(_, value) => value.is_none(),
            Self::Current(_, value) => value.is_none(),
            Self::Regex(_, value) => value.is_none(),
        }
    }

    /// An upper bound of key and value without the group's id, found without encoding them.
    pub fn bytes_at_most(&self) -> usize {
        const LENGTHS: usize = 5;
        const UUID: usize = 16;
        let text = |text: &Option<Arc<str>>| LENGTHS + text.as_ref().map_or(0, |text| text.len());
        match self {
            Self::Epoch(_) | Self::PartitionMetadata { .. } | Self::TargetEpoch(_) => 0,
            Self::Member(id, about) => {
                let about = about.as_ref().map_or(0, |about| {
                    let topics = about.topics.iter().map(|topic| LENGTHS + topic.len());
                    let classic = about.classic.iter().flat_map(|classic| &classic.protocols);
                    let protocols = classic.map(|p| 2 * LENGTHS + p.name.len() + p.metadata.len());
                    let names = [&about.instance_id, &about.rack_id, &about.assignor];
                    let names: usize = names.into_iter().map(text).sum();
                    let client = about.client_id.len() + about.client_host.len();
                    let sum = topics.sum::<usize>() + protocols.sum::<usize>();
                    names + client + about.regex.len() + sum
                });
                id.len() + about
            }
            Self::Target(id, target) => {
                let topics = target.iter().flat_map(|target| target.values());
                id.len() + topics.map(|p| UUID + 2 * LENGTHS + 4 * p.len()).sum::<usize>()
            }
            Self::Current(id, current) => {
                let owned =
                    current.iter().flat_map(|c| c.assigned.values().chain(c.revoking.values()));
                id.len() + owned.map(|p| UUID + 4 * LENGTHS + 8 * p.len()).sum::<usize>()
            }
            Self::Regex(regex, resolved) => {
                let topics = resolved.iter().flat_map(|resolved| &resolved.topics);
                regex.len() + topics.map(|topic| LENGTHS + topic.len()).sum::<usize>()
            }
        }
    }

    pub fn to_stored(&self, group_id: &GroupId) -> Stored {
        let group_id = group_id.clone();
        match self {
            Self::Epoch(epoch) => Stored::Metadata(
                stored::ConsumerGroupMetadataKey { group_id },
                epoch.map(|e| stored::ConsumerGroupMetadataValue {
                    epoch: e.epoch,
                    metadata_hash: e.metadata_hash,
                }),
            ),
            Self::PartitionMetadata { exists } => Stored::PartitionMetadata(
                stored::ConsumerGroupPartitionMetadataKey { group_id },
                exists.then(stored::ConsumerGroupPartitionMetadataValue::default),
            ),
            Self::Member(member_id, about) => Stored::MemberMetadata(
                stored::ConsumerGroupMemberMetadataKey { group_id, member_id: member_id.clone() },
                about.as_deref().map(Into::into),
            ),
            Self::TargetEpoch(epoch) => Stored::TargetMetadata(
                stored::ConsumerGroupTargetAssignmentMetadataKey { group_id },
                epoch.map(|e| stored::ConsumerGroupTargetAssignmentMetadataValue {
                    assignment_epoch: e.epoch,
                    assignment_timestamp: e.timestamp_ms,
                }),
            ),
            Self::Target(member_id, target) => {
                let member_id = member_id.clone();
                let value = target.as_deref().map(|target| {
                    let topics = target.iter().map(|(topic, partitions)| stored::TopicPartition {
                        topic_id: topic.0,
                        partitions: partitions.iter().copied().collect(),
                    });
                    let topic_partitions = topics.collect();
                    stored::ConsumerGroupTargetAssignmentMemberValue { topic_partitions }
                });
                let key = stored::ConsumerGroupTargetAssignmentMemberKey { group_id, member_id };
                Stored::TargetMember(key, value)
            }
            Self::Current(member_id, current) => {
                let member_id = member_id.clone();
                let key = stored::ConsumerGroupCurrentMemberAssignmentKey { group_id, member_id };
                Stored::CurrentMember(key, current.as_deref().map(Into::into))
            }
            Self::Regex(regex, resolved) => {
                let regular_expression = regex.clone();
                let key =
                    stored::ConsumerGroupRegularExpressionKey { group_id, regular_expression };
                let value = resolved.as_deref().map(|resolved| {
                    let topics = resolved.topics.iter().cloned().collect();
                    let (version, timestamp) = (resolved.version, resolved.timestamp_ms);
                    stored::ConsumerGroupRegularExpressionValue { topics, version, timestamp }
                });
                Stored::RegularExpression(key, value)
            }
        }
    }

    pub fn from_stored(record: Stored) -> (GroupId, Self) {
        match record {
            Stored::Metadata(key, value) => {
                let epoch = value.map(|value| GroupEpoch {
                    epoch: value.epoch,
                    metadata_hash: value.metadata_hash,
                });
                (key.group_id, Self::Epoch(epoch))
            }
            Stored::PartitionMetadata(key, value) => {
                (key.group_id, Self::PartitionMetadata { exists: value.is_some() })
            }
            Stored::MemberMetadata(key, value) => {
                let about = value.map(|value| Arc::new(value.into()));
                (key.group_id, Self::Member(key.member_id, about))
            }
            Stored::TargetMetadata(key, value) => {
                let epoch = value.map(|value| TargetEpoch {
                    epoch: value.assignment_epoch,
                    timestamp_ms: value.assignment_timestamp,
                });
                (key.group_id, Self::TargetEpoch(epoch))
            }
            Stored::TargetMember(key, value) => {
                let target = value.map(|value| {
                    let topics = value.topic_partitions.into_iter();
                    let topics =
                        topics.map(|t| (TopicId(t.topic_id), t.partitions.into_iter().collect()));
                    Arc::new(topics.collect::<Assignment>())
                });
                (key.group_id, Self::Target(key.member_id, target))
            }
            Stored::CurrentMember(key, value) => {
                let current = value.map(|value| Arc::new(value.into()));
                (key.group_id, Self::Current(key.member_id, current))
            }
            Stored::RegularExpression(key, value) => {
                let resolved = value.map(|value| ResolvedRegex {
                    topics: value.topics.into_iter().collect(),
                    version: value.version,
                    timestamp_ms: value.timestamp,
                });
                (key.group_id, Self::Regex(key.regular_expression, resolved.map(Arc::new)))
            }
        }
    }
}

impl From<&Subscription> for stored::ConsumerGroupMemberMetadataValue {
    fn from(about: &Subscription) -> Self {
        let classic = about.classic.as_ref().map(|classic| {
            let protocol = |p: &Protocol| stored::ClassicProtocol {
                name: p.name.clone(),
                metadata: p.metadata.clone(),
            };
            stored::ClassicMemberMetadata {
                session_timeout_ms: classic.session_timeout_ms,
                supported_protocols: classic.protocols.iter().map(protocol).collect(),
            }
        });
        Self {
            instance_id: about.instance_id.clone(),
            rack_id: about.rack_id.clone(),
            client_id: about.client_id.clone(),
            client_host: about.client_host.clone(),
            subscribed_topic_names: about.topics.iter().cloned().collect(),
            subscribed_topic_regex: Some(about.regex.clone()),
            rebalance_timeout_ms: about.rebalance_timeout_ms,
            server_assignor: about.assignor.clone(),
            classic_member_metadata: classic,
        }
    }
}

impl From<stored::ConsumerGroupMemberMetadataValue> for Subscription {
    fn from(value: stored::ConsumerGroupMemberMetadataValue) -> Self {
        let classic = value.classic_member_metadata.map(|classic| {
            let protocols = classic.supported_protocols.into_iter();
            let protocols = protocols.map(|p| Protocol { name: p.name, metadata: p.metadata });
            let session_timeout_ms = classic.session_timeout_ms;
            ClassicSide { session_timeout_ms, protocols: protocols.collect() }
        });
        Self {
            instance_id: value.instance_id,
            rack_id: value.rack_id,
            client_id: value.client_id,
            client_host: value.client_host,
            topics: value.subscribed_topic_names.into_iter().collect(),
            regex: value.subscribed_topic_regex.unwrap_or_default(),
            rebalance_timeout_ms: value.rebalance_timeout_ms,
            assignor: value.server_assignor,
            classic,
        }
    }
}

impl From<&Current> for stored::ConsumerGroupCurrentMemberAssignmentValue {
    fn from(current: &Current) -> Self {
        Self {
            member_epoch: current.epoch,
            previous_member_epoch: current.previous_epoch,
            state: current.state as i8,
            assigned_partitions: owned_to_stored(&current.assigned),
            partitions_pending_revocation: owned_to_stored(&current.revoking),
        }
    }
}

impl From<stored::ConsumerGroupCurrentMemberAssignmentValue> for Current {
    fn from(value: stored::ConsumerGroupCurrentMemberAssignmentValue) -> Self {
        let state = match value.state {
            0 => MemberState::Stable,
            1 => MemberState::Unrevoked,
            2 => MemberState::Unreleased,
            _ => MemberState::Unknown,
        };
        // Before 4.3 the epochs were not kept: the member's own stands for them.
        let epoch = value.member_epoch.max(0);
        Self {
            epoch: value.member_epoch,
            previous_epoch: value.previous_member_epoch,
            state,
            assigned: owned_from_stored(value.assigned_partitions, epoch),
            revoking: owned_from_stored(value.partitions_pending_revocation, epoch),
        }
    }
}

fn owned_to_stored(owned: &Owned) -> Vec<stored::TopicPartitions> {
    let topics = owned.iter().map(|(topic, partitions)| stored::TopicPartitions {
        topic_id: topic.0,
        partitions: partitions.keys().copied().collect(),
        assignment_epochs: Some(partitions.values().copied().collect()),
    });
    topics.collect()
}

fn owned_from_stored(topics: Vec<stored::TopicPartitions>, epoch: i32) -> Owned {
    let topics = topics.into_iter().map(|topic| {
        let count = topic.partitions.len();
        let epochs = topic.assignment_epochs.filter(|epochs| epochs.len() == count);
        let epochs = epochs.unwrap_or_else(|| vec![epoch; count]);
        let partitions: BTreeMap<i32, i32> = topic.partitions.into_iter().zip(epochs).collect();
        (TopicId(topic.topic_id), partitions)
    });
    topics.collect()
}

/// Without the epochs.
pub fn partitions_of(owned: &Owned) -> Assignment {
    let topics = owned
        .iter()
        .map(|(topic, partitions)| (*topic, partitions.keys().copied().collect::<BTreeSet<i32>>()));
    topics.collect()
}
