//! One shape for every replicated state: decide, log, replay, answer at the commit.
//! Lives here: the [`Machine`] trait, the [`Journal`] seam below it, and the [`Runtime`] that
//! joins the two. May not live here: what a machine decides, where a journal keeps its bytes.
//! Invariant: the replicated state changes in [`Machine::replay`] only, in journal order.

mod decision;
mod driver;
mod journal;
#[cfg(test)]
pub(crate) mod laws;
mod leading;
mod runtime;
#[cfg(test)]
pub(crate) mod testing;

use std::fmt::Debug;

pub use decision::{Decision, Draft, Ticket};
pub use journal::{
    Batch, CommitSink, Entry, EntryKind, Journal, JournalError, JournalRecord, Leadership,
    NotReady, Position, ProducerFault, ReadEntry, Write,
};
pub use runtime::{AskError, Asked, OnEffect, Origin, Runtime, RuntimeState};

use crate::env::Instant;

/// A deterministic replicated state (`self`). No I/O, no clock, no randomness: all are arguments.
/// `Clone` must be cheap (persistent maps): a [`Draft`] works on a clone.
pub trait Machine: Clone + Send + Sync + 'static {
    /// What the decision may look at beside the state: configs, the metadata image.
    type World: Send + Sync + 'static;
    type Request: Send + 'static;
    type Answer: Send + 'static;
    type Record: Record;
    type Effect: Debug + Send + 'static;
    /// What failover may lose by design: sessions, parked joins, timers, effects in flight.
    type Soft: Send + 'static;

    /// This node now leads the journal and has replayed it: arm timers, and issue again every
    /// effect still owed.
    fn elected(&self, cx: &Context<'_, Self::World>) -> (Self::Soft, Decision<Self>);

    /// Decides. The replicated state is only read; soft state may change, but what a decision that
    /// writes for a producer changes there must hold if the journal refuses the producer.
    fn decide(
        &self,
        soft: &mut Self::Soft,
        request: Self::Request,
        cx: &Context<'_, Self::World>,
    ) -> Decision<Self>;

    /// Applies one appended entry: the only place where the replicated state changes.
    fn replay(&mut self, entry: Entry<&Self::Record>, at: Position);

    /// A bounded number of requests that fall due; the runtime decides each in turn.
    fn due(&self, soft: &mut Self::Soft, cx: &Context<'_, Self::World>) -> Vec<Self::Request>;

    /// When to ask [`Machine::due`] again; `None`: not before the next request.
    fn next_due(&self, soft: &Self::Soft) -> Option<Instant>;
}

/// A record as its machine sees it, and as the journal keeps it.
pub trait Record: Clone + Debug + Send + Sync + 'static {
    /// Key and value as on disk.
    fn encode(&self) -> JournalRecord;

    /// `Ok(None)` for a record type this version does not know and may skip.
    ///
    /// # Errors
    /// A sentence saying what is wrong with the bytes, or which record type must be known.
    fn decode(record: &JournalRecord) -> Result<Option<Self>, String>;
}

/// What a decision may depend on beside the state.
#[derive(Debug)]
pub struct Context<'a, W> {
    /// Wall time in milliseconds since the Unix epoch: for records.
    pub now_ms: i64,
    /// Monotonic time: for deadlines.
    pub now: Instant,
    /// Epoch of the leadership that this decision is made under.
    pub epoch: i32,
    /// Offset that this decision's first record will get.
    pub position: Position,
    /// Names the asker; an answer may be given to it now or by a later decision.
    pub ticket: Ticket,
    /// Fresh for each decision.
    pub seed: u64,
    /// Largest batch the journal takes, in bytes.
    pub batch_bytes_max: usize,
    pub world: &'a W,
}
