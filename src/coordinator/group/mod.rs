//! The classic consumer group coordinator (JoinGroup, SyncGroup, Heartbeat, LeaveGroup; KIP-62,
//! KIP-345, KIP-394, KIP-814) and the offsets of all groups: one [`Machine`](crate::machine::Machine)
//! over each partition of `__consumer_offsets`, and the [`GroupCoordinator`] that routes to those
//! that this broker leads.
//! Lives here: the states of a group, who may move them, which protocol and which leader it gets,
//! when members, pending ids and offsets expire, what is in its records.
//! May not live here: sockets, files, the clock (time comes in `Context`), Kafka's error codes
//! (`broker::border` maps [`GroupError`]), who may do what (`broker::dispatch`).
//! Replicated ([`Groups`]): offsets and the last finished generation. Soft: a rebalance under way,
//! parked joins and syncs, deadlines; a new coordinator starts from a stable or empty group, as
//! Kafka's does.

mod commit;
pub mod consumer;
mod coordinator;
mod delete;
mod describe;
mod error;
mod join;
mod leave;
mod live;
mod machine;
mod offsets;
mod rebalance;
mod record;
mod state;
mod subscription;
mod sync;
#[cfg(test)]
mod tests;
mod timers;
mod types;

pub use coordinator::{GROUP_TOPIC, GroupCoordinator, OnGroupEffect};
pub use describe::ListFilter;
pub use error::{ClientFault, GroupError, NotNow};
pub use machine::{
    GroupAnswer, GroupConfig, GroupEffect, GroupRequest, GroupWorld, Progress, Soft,
};
pub use record::GroupRecord;
pub use state::{CommittedOffset, GroupMetadata, Groups, Kept, MemberMetadata, OffsetKey};
pub use types::{
    CLASSIC_TYPE, CONSUMER_TYPE, CommitPartition, CommitTopic, DescribedMember, Description,
    FetchTopic, FetchedPartition, FetchedTopic, GroupId, GroupState, Heartbeat, InstanceId,
    JoinGroup, JoinRefused, Joined, JoinedMember, LeaveGroup, LeavingMember, LeftMember,
    ListGroups, ListedGroup, MemberId, OffsetCommit, OffsetDelete, OffsetFetch, Protocol,
    SyncGroup, Synced, TopicOutcome,
};
