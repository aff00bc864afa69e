//! What every room shares: ids and epochs, byte helpers, the `invariant!` macro.
//! May not live here: I/O, time, anything that knows of a topic's data or a request.

mod ids;
mod invariant;
mod proof;
pub mod varint;

pub use ids::{
    BrokerId, LeaderEpoch, NO_OFFSET, NO_TIMESTAMP, Offset, ParseUuidError, ProducerEpoch,
    ProducerId, TopicId, TopicName, TopicPartition, TransactionalId, format_uuid, parse_uuid,
};
pub use invariant::broken_invariant;
pub use proof::Proof;
