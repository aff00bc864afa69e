//! What members of consumer groups ask, what they are answered, and why they are refused.

use std::sync::Arc;

use super::state::Assignment;
use crate::common::TopicName;
use crate::coordinator::group::types::{GroupId, InstanceId, MemberId};

/// Member epochs that are no epochs.
pub const JOINS: i32 = 0;
pub const LEAVES: i32 = -1;
pub const LEAVES_FOR_A_WHILE: i32 = -2;

/// ConsumerGroupHeartbeat (key 68); `None` is "as before".
#[derive(Debug, Clone)]
pub struct ConsumerHeartbeat {
    pub group_id: GroupId,
    /// Empty in version 0 of a member that has no id yet.
    pub member_id: MemberId,
    pub member_epoch: i32,
    pub instance_id: Option<InstanceId>,
    pub rack_id: Option<Arc<str>>,
    /// -1: as before.
    pub rebalance_timeout_ms: i32,
    pub topics: Option<Vec<TopicName>>,
    /// Empty: no longer by regular expression.
    pub regex: Option<Arc<str>>,
    pub assignor: Option<Arc<str>>,
    /// What the member owns.
    pub owned: Option<Assignment>,
    pub client_id: Arc<str>,
    /// As Kafka shows it: `/` and the address.
    pub client_host: Arc<str>,
    /// Version 1 and later: the member makes its own id (KIP-1082).
    pub brings_member_id: bool,
}

/// What a member is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeartbeatAnswer {
    pub member_id: MemberId,
    pub member_epoch: i32,
    pub heartbeat_interval_ms: i32,
    /// `None`: as before.
    pub assignment: Option<Assignment>,
}

/// Why a consumer group refused. The texts are Kafka's: clients show them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConsumerFault {
    #[error("{0}")]
    InvalidRequest(&'static str),
    #[error("ServerAssignor {sent} is not supported. Supported assignors: {supported}.")]
    UnsupportedAssignor { sent: Arc<str>, supported: String },
    #[error("SubscribedTopicRegex `{regex}` is not a valid regular expression: {why}.")]
    InvalidRegex { regex: String, why: String },
    #[error("{0}")]
    GroupNotFound(String),
    #[error("Member {member} is not a member of group {group}.")]
    UnknownMember { member: MemberId, group: GroupId },
    #[error("Instance id {0} is unknown.")]
    UnknownInstance(InstanceId),
    #[error(
        "The consumer group member has a {} member epoch ({sent}) than the one known by the group \
         coordinator ({current}). The member must abandon all its partitions and rejoin.",
        if sent > current { "greater" } else { "smaller" }
    )]
    Fenced { sent: i32, current: i32 },
    #[error(
        "The consumer group member is in a unknown state. The member must abandon all its \
         partitions and rejoin."
    )]
    UnknownState,
    #[error("The consumer group has reached its maximum capacity of {0} members.")]
    GroupFull(i32),
    #[error(
        "Static member {member} with instance id {instance} cannot join the group because the \
         instance id is owned by {owner} member."
    )]
    InstanceUnreleased { member: MemberId, instance: InstanceId, owner: MemberId },
    #[error("Static member {member} with instance id {instance} was fenced by member {owner}.")]
    InstanceFenced { member: MemberId, instance: InstanceId, owner: MemberId },
    /// A commit or fetch of offsets with an epoch that is not the member's.
    #[error("member epoch {0} is not the current one")]
    StaleEpoch(i32),
    #[error("members of consumer groups commit with OffsetCommit 9 or later")]
    CommitTooOld,
    #[error("{0}")]
    Assignor(String),
}
