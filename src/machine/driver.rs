//! The runtime's task: follows the leadership, loads the machine, runs timers, releases what
//! commits, delivers effects.

use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use tokio::sync::watch;

use super::leading::{Inner, Leading, Phase};
use super::runtime::{Core, RuntimeState};
use super::{Entry, JournalError, Leadership, Machine, NotReady, Position, ReadEntry, Record};
use crate::common::Offset;
use crate::env::Instant;

/// One read of the load; between two of them others run.
const LOAD_CHUNK_BYTES: usize = 1 << 20;
/// How long to wait before looking again at a journal that said no.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// What the task does after a look.
enum Next {
    Again,
    Load,
    Stop,
    Sleep {
        deadline: Option<Instant>,
        /// Something is held until a commit.
        commit: bool,
    },
}

/// Why a load did not end in a machine that decides.
enum NotLoaded {
    /// The leadership changed, or the journal grew: the loop starts over.
    Overtaken,
    /// The same load can succeed later.
    Later(String),
    /// A record that this version must know and does not.
    Broken { at: Offset, reason: String },
}

impl From<JournalError> for NotLoaded {
    fn from(error: JournalError) -> Self {
        Self::Later(error.to_string())
    }
}

impl From<NotReady> for NotLoaded {
    fn from(error: NotReady) -> Self {
        Self::Later(error.to_string())
    }
}

pub(super) async fn run<M: Machine>(core: Arc<Core<M>>) {
    let (mut leadership, mut committed) = (core.leadership.clone(), core.committed.clone());
    leadership.mark_changed();
    loop {
        if leadership.has_changed().unwrap_or(false) {
            core.follow(*leadership.borrow_and_update());
        }
        // Marked seen before the look, so that a commit during it wakes us again.
        committed.mark_unchanged();
        let next = match core.look() {
            Next::Load => core.load(&leadership).await,
            next => next,
        };
        let (deadline, commit) = match next {
            Next::Stop => return,
            Next::Again | Next::Load => continue,
            Next::Sleep { deadline, commit } => (deadline, commit),
        };
        let journal_is_there = tokio::select! {
            biased;
            changed = leadership.changed() => {
                leadership.mark_changed();
                changed.is_ok()
            }
            changed = committed.changed(), if commit => changed.is_ok(),
            () = core.wake.notified() => true,
            () = core.sleep_until(deadline) => true,
        };
        if !journal_is_there {
            return core.leave(Phase::Stopped, RuntimeState::Stopped);
        }
    }
}

impl<M: Machine> Core<M> {
    async fn sleep_until(&self, deadline: Option<Instant>) {
        match deadline {
            Some(deadline) => self.env.clock.sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }

    /// Takes a new leadership over, or the same one again: the machine of before is dropped.
    fn follow(&self, now: Leadership) {
        if now.leads {
            self.leave(Phase::Loading, RuntimeState::Loading { epoch: now.epoch });
        } else {
            self.leave(Phase::Idle, RuntimeState::Idle);
        }
    }

    /// Runs what is due, releases what is committed, and says what comes next.
    fn look(&self) -> Next {
        let inner = self.lock();
        match inner.phase {
            Phase::Leading(_) => self.look_at_leading(inner),
            Phase::Stopped => Next::Stop,
            Phase::Loading => Next::Load,
            Phase::Failed => {
                drop(inner);
                self.follow(*self.leadership.borrow());
                Next::Again
            }
            Phase::Idle | Phase::Broken => Next::Sleep { deadline: None, commit: false },
        }
    }

    fn look_at_leading(&self, mut inner: MutexGuard<'_, Inner<M>>) -> Next {
        let (now, is_ready) = (self.env.clock.now(), self.journal.ready().is_ok());
        if is_ready && inner.next_due().is_some_and(|due| due <= now) {
            self.run_due(&mut inner);
        }
        let Phase::Leading(leading) = &inner.phase else { return Next::Again };
        let epoch = leading.epoch;
        let committed = *self.committed.borrow();
        let released = inner.settle(committed);
        let effects = inner.committed_effects(committed);
        let soonest = if is_ready { now } else { now + RETRY_AFTER };
        let deadline = inner.next_due().map(|due| due.max(soonest));
        let commit = inner.holds();
        inner.armed = deadline;
        drop(inner);
        released.send();
        for effect in effects {
            (self.on_effect)(effect, epoch);
        }
        Next::Sleep { deadline, commit }
    }

    /// Decides one bounded round of due requests; nobody waits for their answers.
    fn run_due(&self, inner: &mut Inner<M>) {
        let world = self.world.load();
        let (ticket, seed) = (inner.ticket(), inner.seed());
        let Phase::Leading(leading) = &mut inner.phase else { return };
        let cx = self.context(&world, leading.epoch, leading.end, ticket, seed);
        let due = leading.machine.due(&mut leading.soft, &cx);
        for request in due {
            let ticket = inner.ticket();
            // What time brings writes for no producer.
            let _ = self
                .step(inner, &world, ticket, |machine, soft, cx| machine.decide(soft, request, cx));
        }
    }

    /// Rebuilds the machine from its journal and lets it decide.
    async fn load(&self, leadership: &watch::Receiver<Leadership>) -> Next {
        let now = *self.leadership.borrow();
        let loaded = match self.read_all(leadership).await {
            Ok((machine, end)) => self.elect(machine, end, now),
            Err(error) => Err(error),
        };
        match loaded {
            Ok(()) | Err(NotLoaded::Overtaken) => Next::Again,
            Err(NotLoaded::Later(error)) => {
                tracing::warn!(error, epoch = now.epoch, "journal not loaded, trying again");
                let deadline = self.env.clock.deadline_in(RETRY_AFTER);
                Next::Sleep { deadline: Some(deadline), commit: false }
            }
            Err(NotLoaded::Broken { at, reason }) => {
                tracing::error!(offset = at, error = reason, "journal cannot be loaded");
                self.leave(Phase::Broken, RuntimeState::Broken);
                Next::Again
            }
        }
    }

    /// Returns the machine with all of the journal replayed, and the journal's end.
    async fn read_all(
        &self,
        leadership: &watch::Receiver<Leadership>,
    ) -> Result<(M, Offset), NotLoaded> {
        let (mut machine, mut next) = (self.origin)();
        let mut skipped = 0_u64;
        loop {
            let entries = self.journal.read(next, LOAD_CHUNK_BYTES)?;
            let Some(last) = entries.last() else { break };
            next = last.position.0 + 1;
            for entry in &entries {
                skipped += u64::from(!replay_read(&mut machine, entry)?);
            }
            tokio::task::yield_now().await;
            if leadership.has_changed().unwrap_or(true) || self.is_stopped() {
                return Err(NotLoaded::Overtaken);
            }
        }
        if skipped > 0 {
            tracing::warn!(skipped, "records of types unknown to this version were skipped");
        }
        // Compaction may have taken the last records away, then the end lies further on.
        Ok((machine, next.max(self.journal.end_offset())))
    }

    fn is_stopped(&self) -> bool {
        matches!(self.lock().phase, Phase::Stopped)
    }

    fn elect(&self, machine: M, end: Offset, now: Leadership) -> Result<(), NotLoaded> {
        let world = self.world.load();
        let mut inner = self.lock();
        if !matches!(inner.phase, Phase::Loading) || *self.leadership.borrow() != now {
            return Err(NotLoaded::Overtaken);
        }
        self.journal.ready()?;
        let (ticket, seed) = (inner.ticket(), inner.seed());
        let cx = self.context(&world, now.epoch, end, ticket, seed);
        let (soft, decision) = machine.elected(&cx);
        let leading = Leading { machine, soft, epoch: now.epoch, end };
        inner.phase = Phase::Leading(Box::new(leading));
        let decided = self.step(&mut inner, &world, ticket, |_, _, _| decision);
        if decided.is_err() || !inner.is_leading() {
            return Err(NotLoaded::Later("the records of the election were not appended".into()));
        }
        self.state.send_replace(RuntimeState::Leading { epoch: now.epoch });
        Ok(())
    }
}

/// Whether the entry was of a known type.
fn replay_read<M: Machine>(machine: &mut M, entry: &ReadEntry) -> Result<bool, NotLoaded> {
    let at = entry.position;
    let Some(record) = &entry.record else {
        machine.replay(Entry { kind: entry.kind, record: None }, at);
        return Ok(true);
    };
    let decoded = M::Record::decode(record);
    match decoded.map_err(|reason| NotLoaded::Broken { at: at.0, reason })? {
        Some(record) => {
            machine.replay(Entry { kind: entry.kind, record: Some(&record) }, Position(at.0));
            Ok(true)
        }
        None => Ok(false),
    }
}
