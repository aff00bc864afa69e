//! What clients ask the group coordinator, and what it answers: domain types, with what depends on
//! the request's API version as flags. `broker/handlers` shapes them from and to the wire.

use std::sync::Arc;

use bytes::Bytes;

use super::error::GroupError;
use crate::common::{Offset, TopicId, TopicName};

pub type GroupId = Arc<str>;
/// Given out by the coordinator; empty: not known yet.
pub type MemberId = Arc<str>;
/// `group.instance.id` of a static member (KIP-345).
pub type InstanceId = Arc<str>;

/// One way of assigning partitions that a member can follow, with what it tells the leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protocol {
    pub name: Arc<str>,
    pub metadata: Bytes,
}

/// JoinGroup (key 11).
#[derive(Debug, Clone)]
pub struct JoinGroup {
    pub group_id: GroupId,
    pub member_id: MemberId,
    pub group_instance_id: Option<InstanceId>,
    pub client_id: Arc<str>,
    /// As Kafka shows it: `/` and the address.
    pub client_host: Arc<str>,
    pub session_timeout_ms: i32,
    /// `None` in version 0, where the session timeout stands for it.
    pub rebalance_timeout_ms: Option<i32>,
    pub protocol_type: Arc<str>,
    /// In the member's order of preference.
    pub protocols: Vec<Protocol>,
    /// Version 4 and later: a new dynamic member is sent back with its id first (KIP-394).
    pub requires_member_id: bool,
    /// Version 9 and later: a returning static leader is told to skip the assignment (KIP-814).
    pub can_skip_assignment: bool,
}

/// A member has a generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    pub member_id: MemberId,
    pub generation_id: i32,
    pub protocol_type: Option<Arc<str>>,
    pub protocol_name: Option<Arc<str>>,
    pub leader: MemberId,
    pub skip_assignment: bool,
    /// Everyone, to the leader; empty to the others.
    pub members: Vec<JoinedMember>,
}

/// What the leader learns of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedMember {
    pub member_id: MemberId,
    pub group_instance_id: Option<InstanceId>,
    pub metadata: Bytes,
}

/// A join that failed; the wire carries a member id with the code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct JoinRefused {
    pub member_id: MemberId,
    pub error: GroupError,
}

/// SyncGroup (key 14).
#[derive(Debug, Clone)]
pub struct SyncGroup {
    pub group_id: GroupId,
    pub generation_id: i32,
    pub member_id: MemberId,
    pub group_instance_id: Option<InstanceId>,
    /// Version 5 and later; `None` is not compared.
    pub protocol_type: Option<Arc<str>>,
    /// Version 5 and later; `None` is not compared.
    pub protocol_name: Option<Arc<str>>,
    /// By member; only the leader's count.
    pub assignments: Vec<(MemberId, Bytes)>,
}

/// A member's assignment, byte for byte what the leader sent; empty when it sent none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synced {
    pub protocol_type: Option<Arc<str>>,
    pub protocol_name: Option<Arc<str>>,
    pub assignment: Bytes,
}

/// Heartbeat (key 12).
#[derive(Debug, Clone)]
pub struct Heartbeat {
    pub group_id: GroupId,
    pub generation_id: i32,
    pub member_id: MemberId,
    pub group_instance_id: Option<InstanceId>,
}

/// LeaveGroup (key 13); before version 3 with one member.
#[derive(Debug, Clone)]
pub struct LeaveGroup {
    pub group_id: GroupId,
    pub members: Vec<LeavingMember>,
}

/// Who leaves: by member id, or by instance id alone when an administrator removes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeavingMember {
    pub member_id: MemberId,
    pub group_instance_id: Option<InstanceId>,
}

/// What became of a [`LeavingMember`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftMember {
    pub member: LeavingMember,
    pub outcome: Result<(), GroupError>,
}

/// OffsetCommit (key 8).
#[derive(Debug, Clone)]
pub struct OffsetCommit {
    pub group_id: GroupId,
    /// -1: a consumer without group management, or an administrator.
    pub generation_id: i32,
    pub member_id: MemberId,
    pub group_instance_id: Option<InstanceId>,
    /// Versions 2 to 4; `None` (-1 on the wire): the broker's retention.
    pub retention_ms: Option<i64>,
    /// Version 9 and later: an unknown group is called that, not an illegal generation.
    pub knows_group_not_found: bool,
    /// Version 10 and later: topics come by id.
    pub by_topic_id: bool,
    pub topics: Vec<CommitTopic>,
}

/// Offsets of one topic, named by id or by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitTopic {
    pub id: TopicId,
    pub name: TopicName,
    pub partitions: Vec<CommitPartition>,
}

/// One offset to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitPartition {
    pub partition: i32,
    pub offset: Offset,
    /// -1: unknown.
    pub leader_epoch: i32,
    /// `None` is kept as empty.
    pub metadata: Option<Arc<str>>,
}

/// Outcomes by partition of one topic; of OffsetCommit and OffsetDelete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicOutcome {
    pub id: TopicId,
    pub name: TopicName,
    pub partitions: Vec<(i32, Result<(), GroupError>)>,
}

/// OffsetFetch (key 9) for one group.
#[derive(Debug, Clone)]
pub struct OffsetFetch {
    pub group_id: GroupId,
    /// `None`: all that the group has committed.
    pub topics: Option<Vec<FetchTopic>>,
    /// Version 9 and later: who asks; `None` with epoch -1: an administrator.
    pub member_id: Option<MemberId>,
    pub member_epoch: i32,
    /// Version 7 and later: say so where an open transaction may change the offset (KIP-447).
    pub require_stable: bool,
    /// Version 10 and later: topics come and go by id.
    pub by_topic_id: bool,
}

/// Partitions of a topic, named by id or by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchTopic {
    pub id: TopicId,
    pub name: TopicName,
    pub partitions: Vec<i32>,
}

/// Committed offsets of one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedTopic {
    pub id: TopicId,
    pub name: TopicName,
    pub partitions: Vec<FetchedPartition>,
}

/// One committed offset; -1 with epoch -1 and empty metadata when there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedPartition {
    pub partition: i32,
    pub offset: Offset,
    pub leader_epoch: i32,
    pub metadata: Arc<str>,
    pub outcome: Result<(), GroupError>,
}

/// A group as DescribeGroups (key 15) shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    pub state: GroupState,
    pub protocol_type: Arc<str>,
    /// The protocol's name; empty unless the group is stable.
    pub protocol_data: Arc<str>,
    pub members: Vec<DescribedMember>,
}

/// A member as DescribeGroups shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedMember {
    pub member_id: MemberId,
    pub group_instance_id: Option<InstanceId>,
    pub client_id: Arc<str>,
    pub client_host: Arc<str>,
    /// Empty unless the group is stable.
    pub metadata: Bytes,
    pub assignment: Bytes,
}

/// Which groups ListGroups (key 16) shows; an empty list lets all pass.
#[derive(Debug, Clone, Default)]
pub struct ListGroups {
    /// Names of states, in any case.
    pub states: Vec<String>,
    /// Names of group types, in any case.
    pub types: Vec<String>,
}

/// A group as ListGroups shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedGroup {
    pub group_id: GroupId,
    pub protocol_type: Arc<str>,
    /// Kafka's name of it.
    pub state: &'static str,
    pub group_type: &'static str,
}

/// OffsetDelete (key 47).
#[derive(Debug, Clone)]
pub struct OffsetDelete {
    pub group_id: GroupId,
    pub topics: Vec<(TopicName, Vec<i32>)>,
}

/// The types of group that there are, as ListGroups names them.
pub const CLASSIC_TYPE: &str = "classic";
pub const CONSUMER_TYPE: &str = "consumer";

/// Where a classic group stands. Kafka's `Dead` is a group that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupState {
    /// No members; offsets may be there.
    Empty,
    /// Waiting for members to join.
    PreparingRebalance,
    /// Waiting for the leader's assignment.
    CompletingRebalance,
    /// Members have their assignment.
    Stable,
}

impl GroupState {
    /// What DescribeGroups says of a group that is not there.
    pub const DEAD: &str = "Dead";

    /// Kafka's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
        }
    }
}
