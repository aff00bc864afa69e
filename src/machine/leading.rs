//! What the runtime's lock guards: the loaded machine, who waits, and what waits for a commit.

use std::collections::{BTreeMap, VecDeque};

use tokio::sync::oneshot;

use super::runtime::{AskError, Core, RuntimeState};
use super::{
    Batch, Context, Decision, Entry, JournalError, Machine, Position, ProducerFault, Record,
    Ticket, Write,
};
use crate::common::Offset;
use crate::env::{Instant, Random};

pub(super) type Outcome<M> = Result<(<M as Machine>::Answer, Offset), AskError>;

pub(super) enum Phase<M: Machine> {
    Idle,
    /// The task reads the journal into a machine of its own.
    Loading,
    Leading(Box<Leading<M>>),
    /// Something failed after a decision; the task rebuilds the machine.
    Failed,
    Broken,
    Stopped,
}

/// A machine that decides.
pub(super) struct Leading<M: Machine> {
    pub machine: M,
    pub soft: M::Soft,
    pub epoch: i32,
    /// Where the next record goes: all below is replayed.
    pub end: Offset,
}

/// What is released when the journal is committed up to an offset.
enum Held<M: Machine> {
    Answer(Ticket, M::Answer),
    Read(oneshot::Sender<()>),
}

pub(super) struct Inner<M: Machine> {
    pub phase: Phase<M>,
    /// Who asked and has no answer yet. Ordered, so that a loss is told in the order of asking.
    pub waiters: BTreeMap<Ticket, oneshot::Sender<Outcome<M>>>,
    /// With ascending offsets.
    held: VecDeque<(Offset, Held<M>)>,
    /// With ascending offsets; the task alone takes them.
    effects: VecDeque<(Offset, M::Effect)>,
    last_ticket: u64,
    seeds: Random,
    /// When the task will look at the timers again; `None`: not by itself.
    pub armed: Option<Instant>,
}

/// Answers on their way to their askers, collected under the lock and sent without it.
pub(super) struct Released<M: Machine> {
    pub answers: Vec<(oneshot::Sender<Outcome<M>>, Outcome<M>)>,
    pub readers: Vec<oneshot::Sender<()>>,
    /// Answers to tickets that nobody waits for: the one being asked now, or one given up.
    unclaimed: Vec<(Ticket, Outcome<M>)>,
}

impl<M: Machine> Released<M> {
    fn nothing() -> Self {
        Self { answers: Vec::new(), readers: Vec::new(), unclaimed: Vec::new() }
    }

    pub fn take(&mut self, ticket: Ticket) -> Option<Outcome<M>> {
        let at = self.unclaimed.iter().position(|(of, _)| *of == ticket)?;
        Some(self.unclaimed.swap_remove(at).1)
    }
}

impl<M: Machine> Inner<M> {
    pub fn new(seeds: Random) -> Self {
        Self {
            phase: Phase::Idle,
            waiters: BTreeMap::new(),
            held: VecDeque::new(),
            effects: VecDeque::new(),
            last_ticket: 0,
            seeds,
            armed: None,
        }
    }

    pub fn ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    pub fn seed(&self) -> u64 {
        self.seeds.next_u64()
    }

    pub fn is_leading(&self) -> bool {
        matches!(self.phase, Phase::Leading(_))
    }

    pub fn holds(&self) -> bool {
        !self.held.is_empty() || !self.effects.is_empty()
    }

    /// When the machine wants to be asked for what is due.
    pub fn next_due(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Leading(leading) => leading.machine.next_due(&leading.soft),
            _ => None,
        }
    }

    /// Whether the task sleeps over something: a held answer or effect, an earlier deadline, or
    /// a machine to rebuild.
    pub fn task_must_look(&self) -> bool {
        let earlier = match (self.next_due(), self.armed) {
            (Some(due), Some(armed)) => due < armed,
            (Some(_), None) => true,
            (None, _) => false,
        };
        earlier || self.holds() || matches!(self.phase, Phase::Failed)
    }

    pub fn hold_read(&mut self, end: Offset) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.held.push_back((end, Held::Read(sender)));
        receiver
    }

    /// Takes out what `committed` (the first offset not committed) sets free.
    pub fn settle(&mut self, committed: Offset) -> Released<M> {
        let mut released = Released::nothing();
        while self.held.front().is_some_and(|(until, _)| *until <= committed) {
            match self.held.pop_front() {
                Some((end, Held::Answer(ticket, answer))) => {
                    let outcome = Ok((answer, end));
                    match self.waiters.remove(&ticket) {
                        Some(sender) => released.answers.push((sender, outcome)),
                        None => released.unclaimed.push((ticket, outcome)),
                    }
                }
                Some((_, Held::Read(sender))) => released.readers.push(sender),
                None => {}
            }
        }
        released
    }

    pub fn committed_effects(&mut self, committed: Offset) -> Vec<M::Effect> {
        let free = self.effects.partition_point(|(until, _)| *until <= committed);
        self.effects.drain(..free).map(|(_, effect)| effect).collect()
    }

    /// Drops the machine and all that depends on it; everybody who waits has lost.
    pub fn leave(&mut self, phase: Phase<M>) -> Released<M> {
        self.phase = phase;
        self.held.clear();
        self.effects.clear();
        self.armed = None;
        let mut released = Released::nothing();
        let waiters = std::mem::take(&mut self.waiters).into_values();
        released.answers.extend(waiters.map(|sender| (sender, Err(AskError::Lost))));
        released
    }
}

impl<M: Machine> Core<M> {
    /// A failure after a decision: the task rebuilds the machine. Rare, so that the askers are
    /// woken under the lock.
    pub fn fail(&self, inner: &mut Inner<M>) {
        if let Phase::Leading(leading) = &inner.phase {
            self.state.send_replace(RuntimeState::Loading { epoch: leading.epoch });
            inner.settle(*self.committed.borrow()).send();
            inner.leave(Phase::Failed).send();
        }
    }

    /// One decision: decides, appends, replays, and holds answers and effects for the commit of
    /// the newest state, whether or not this decision wrote anything. A failure drops the machine.
    ///
    /// # Errors
    /// The journal refuses the producer that the decision writes for; nothing has changed.
    pub fn step(
        &self,
        inner: &mut Inner<M>,
        world: &M::World,
        ticket: Ticket,
        decide: impl FnOnce(&M, &mut M::Soft, &Context<'_, M::World>) -> Decision<M>,
    ) -> Result<(), ProducerFault> {
        let seed = inner.seed();
        let Phase::Leading(leading) = &mut inner.phase else { return Ok(()) };
        let cx = self.context(world, leading.epoch, leading.end, ticket, seed);
        let decision = decide(&leading.machine, &mut leading.soft, &cx);
        match self.write(leading, decision.write, &decision.records, cx.now_ms) {
            Ok(()) => {}
            Err(JournalError::Refused(fault)) => return Err(fault),
            Err(error) => {
                let epoch = leading.epoch;
                tracing::warn!(%error, epoch, "append failed, rebuilding the machine");
                self.fail(inner);
                return Ok(());
            }
        }
        let end = leading.end;
        let answers = decision.answers.into_iter();
        inner.held.extend(answers.map(|(to, answer)| (end, Held::Answer(to, answer))));
        inner.effects.extend(decision.effects.into_iter().map(|effect| (end, effect)));
        Ok(())
    }

    pub fn context<'a>(
        &self,
        world: &'a M::World,
        epoch: i32,
        end: Offset,
        ticket: Ticket,
        seed: u64,
    ) -> Context<'a, M::World> {
        Context {
            now_ms: self.env.clock.wall_ms(),
            now: self.env.clock.now(),
            epoch,
            position: Position(end),
            ticket,
            seed,
            batch_bytes_max: self.journal.batch_bytes_max(),
            world,
        }
    }

    fn write(
        &self,
        leading: &mut Leading<M>,
        write: Write,
        records: &[M::Record],
        timestamp_ms: i64,
    ) -> Result<(), JournalError> {
        let is_marker = matches!(write, Write::Marker { .. });
        if records.is_empty() && !is_marker {
            return Ok(());
        }
        if records.len() > Decision::<M>::RECORDS_MAX {
            let (found, most) = (records.len(), Decision::<M>::RECORDS_MAX);
            return Err(JournalError::TooManyRecords { found, most });
        }
        let encoded = records.iter().map(Record::encode).collect();
        let batch = Batch { write, records: encoded, timestamp_ms };
        let end = self.journal.append(leading.epoch, leading.end, batch)?;
        let mut at = leading.end;
        let kind = write.kind();
        let marker = is_marker.then_some(None);
        for record in records.iter().map(Some).chain(marker) {
            leading.machine.replay(Entry { kind, record }, Position(at));
            at += 1;
        }
        crate::invariant!(at == end, "the journal ends at {end} after an append up to {at}");
        leading.end = end;
        Ok(())
    }
}
