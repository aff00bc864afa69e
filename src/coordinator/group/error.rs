//! Why the group coordinator said no, by who has to act.

use super::consumer::ConsumerFault;
use crate::common::TopicId;
use crate::machine::ProducerFault;

/// The answer to a request that was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// The client did wrong, or knows too little; the same request will fail again.
    #[error(transparent)]
    Client(#[from] ClientFault),
    /// Nobody did wrong; the same request can succeed later, or elsewhere.
    #[error(transparent)]
    NotNow(#[from] NotNow),
    /// A consumer group refused its member.
    #[error(transparent)]
    Consumer(#[from] ConsumerFault),
    /// The offsets' log takes nothing of the producer that commits in a transaction.
    #[error(transparent)]
    Producer(#[from] ProducerFault),
    /// We cannot store what was asked for; nobody can help that but the operator.
    #[error("{bytes} bytes of records do not fit a batch of __consumer_offsets ({bytes_max})")]
    TooLarge { bytes: usize, bytes_max: usize },
}

/// What the client must change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientFault {
    #[error("the group id must not be empty")]
    InvalidGroupId,
    #[error("session timeout {sent_ms} ms is outside {min_ms}..={max_ms} ms")]
    InvalidSessionTimeout { sent_ms: i32, min_ms: i32, max_ms: i32 },
    #[error("the coordinator does not know this member")]
    UnknownMember,
    #[error("generation {sent} is not the current one, {current}")]
    IllegalGeneration { sent: i32, current: i32 },
    /// Another member carries this `group.instance.id` now (KIP-345).
    #[error("the group instance id belongs to another member")]
    FencedInstance,
    #[error("the protocol type or the protocols do not fit the group's")]
    InconsistentProtocol,
    #[error("the group has {size_max} members, its largest size")]
    GroupFull { size_max: usize },
    /// A member id that was handed out to a dynamic member came back with an instance id.
    #[error("a pending member must not carry a group instance id")]
    PendingMemberWithInstance,
    /// The text is Kafka's: DescribeGroups and DeleteGroups show it.
    #[error("Group {0} not found.")]
    GroupNotFound(String),
    /// The text is Kafka's.
    #[error("Group {0} is not a classic group.")]
    NotClassic(String),
    #[error("The group is not empty.")]
    GroupNotEmpty,
    /// A group id, client id or protocol that no record can hold.
    #[error("a name is longer than 32767 bytes")]
    NameTooLong,
    #[error("members of the group are subscribed to the topic")]
    SubscribedToTopic,
    #[error("the commit's metadata is longer than offset.metadata.max.bytes")]
    MetadataTooLarge,
    #[error("no such topic or partition")]
    UnknownTopicOrPartition,
    #[error("no topic has the id {0}")]
    UnknownTopicId(TopicId),
}

/// What to wait for, or where to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotNow {
    /// Join again with the member id that the refusal carries (KIP-394).
    #[error("join again with the member id given")]
    MemberIdRequired,
    #[error("the group is rebalancing")]
    RebalanceInProgress,
    /// A transaction that commits this offset is not finished (KIP-447).
    #[error("a transaction that commits the offset is still open")]
    UnstableOffset,
    #[error("the coordinator is reading its partition")]
    Loading,
    #[error("another broker coordinates this group")]
    NotCoordinator,
    #[error("the coordinator cannot write to its partition now")]
    NotAvailable,
}
