//! Consumer groups of the next generation (KIP-848): members tell what they want and have, the
//! coordinator assigns and leads each of them there step by step.
//! Lives here: a group's replicated state, the assignors, the steps between two assignments, who
//! is fenced, classic members in such a group and its conversion from and to a classic one.
//! Other kinds of groups (share, streams) are to stand beside this one, as
//! [`Kept`](super::state::Kept) says.

mod assignor;
mod change;
mod classic;
mod convert;
mod describe;
mod fence;
mod hash;
mod heartbeat;
mod offsets;
mod reconcile;
mod regex;
mod state;
mod step;
mod types;

pub use change::ConsumerChange;
pub use convert::tombstones;
pub use describe::{DescribedConsumer, DescribedConsumerGroup, TopicPartitions};
pub use heartbeat::check;
pub use regex::resolve;
pub use state::{
    Assignment, ClassicSide, ConsumerGroup, ConsumerMember, Current, GroupEpoch, MemberState,
    Owned, ResolvedRegex, Subscription, TargetEpoch,
};
pub use step::Watches;
pub use types::{ConsumerFault, ConsumerHeartbeat, HeartbeatAnswer, LEAVES, LEAVES_FOR_A_WHILE};
