//! The coordinators, each a `Machine` over a led partition.

pub mod group;
mod hash;
mod pattern;
mod shards;
pub mod txn;

use bytes::Bytes;

use crate::machine::JournalRecord;
use crate::protocol::wire::EncodeError;

pub use hash::partition_for;
pub use shards::Journals;

/// A decided record on its way into a journal. What fits no record was refused before the decision.
fn decided(encoded: Result<(Bytes, Option<Bytes>), EncodeError>) -> JournalRecord {
    match encoded {
        Ok((key, value)) => JournalRecord { key: Some(key), value },
        Err(error) => crate::common::broken_invariant(
            concat!(file!(), ":", line!()),
            "a decided record can be written",
            &error.to_string(),
        ),
    }
}

/// A machine's answer of another kind than the question: our own mistake.
fn mismatched(answer: &impl std::fmt::Debug) -> ! {
    crate::common::broken_invariant(
        concat!(file!(), ":", line!()),
        "the answer is of the question's kind",
        &format!("{answer:?}"),
    )
}
