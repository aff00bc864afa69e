//! What a machine decided: records, answers, effects.

use super::{Context, Entry, Machine, Position, Write};

/// Names one asked request for as long as it waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ticket(pub u64);

/// The outcome of one decision. Records are one atomic batch of at most
/// [`Decision::RECORDS_MAX`]; answers and effects are released when the state that they were
/// decided on is committed.
#[derive(Debug)]
pub struct Decision<M: Machine> {
    /// What kind of batch the records make.
    pub write: Write,
    pub records: Vec<M::Record>,
    pub answers: Vec<(Ticket, M::Answer)>,
    pub effects: Vec<M::Effect>,
}

impl<M: Machine> Default for Decision<M> {
    fn default() -> Self {
        Self { write: Write::Plain, records: Vec::new(), answers: Vec::new(), effects: Vec::new() }
    }
}

impl<M: Machine> Decision<M> {
    pub const RECORDS_MAX: usize = 10_000;

    /// Nothing yet: the asker stays parked in the soft state.
    pub fn park() -> Self {
        Self::default()
    }

    /// Answers `ticket` without a record.
    pub fn answer(ticket: Ticket, answer: M::Answer) -> Self {
        Self { answers: vec![(ticket, answer)], ..Self::default() }
    }

    /// Writes `records` and answers `ticket` once they are committed.
    pub fn done(records: Vec<M::Record>, ticket: Ticket, answer: M::Answer) -> Self {
        Self { records, answers: vec![(ticket, answer)], ..Self::default() }
    }
}

/// A decision of several steps: pushed records are replayed on a clone of the state, so that
/// later steps see earlier ones.
pub struct Draft<M: Machine> {
    state: M,
    next: Position,
    pub decision: Decision<M>,
}

impl<M: Machine> Draft<M> {
    pub fn new(state: &M, cx: &Context<'_, M::World>) -> Self {
        Self { state: state.clone(), next: cx.position, decision: Decision::default() }
    }

    /// The state with all pushed records applied.
    pub fn state(&self) -> &M {
        &self.state
    }

    /// Where the next pushed record will stand in the journal.
    pub fn next_position(&self) -> Position {
        self.next
    }

    pub fn push(&mut self, record: M::Record) {
        self.state.replay(Entry::plain_of(&record), self.next);
        self.next = Position(self.next.0 + 1);
        self.decision.records.push(record);
    }

    pub fn answer(&mut self, ticket: super::Ticket, answer: M::Answer) {
        self.decision.answers.push((ticket, answer));
    }

    pub fn effect(&mut self, effect: M::Effect) {
        self.decision.effects.push(effect);
    }
}
