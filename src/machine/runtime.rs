//! The runtime: a mutex called inline, which decides, appends, replays and holds each answer
//! until the state it was decided on is committed.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context as PollContext, Poll};

use arc_swap::ArcSwap;
use tokio::sync::{Notify, oneshot, watch};

use super::leading::{Inner, Outcome, Phase, Released};
use super::{Journal, Machine, NotReady, ProducerFault, Ticket};
use crate::common::Offset;
use crate::env::{Env, Random};

/// Why a request got no answer from its machine. All but [`AskError::Refused`] can be tried again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// Nothing was decided.
    #[error(transparent)]
    NotReady(#[from] NotReady),
    /// Nothing was decided: the machine is being rebuilt from its journal.
    #[error("the journal is being loaded")]
    Loading,
    /// The machine was dropped while the request waited; whether it had an effect is unknown.
    #[error("the machine was dropped while the request waited")]
    Lost,
    /// The journal takes nothing of this producer; nothing has changed.
    #[error(transparent)]
    Refused(#[from] ProducerFault),
}

/// What a runtime does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuntimeState {
    /// Another node leads the journal, or none.
    Idle,
    Loading {
        epoch: i32,
    },
    Leading {
        epoch: i32,
    },
    /// The journal holds what this version cannot read; logged with the reason.
    Broken,
    Stopped,
}

/// Receives effects in the order of their decisions, each after its commit, with the epoch it was
/// decided under. Called by the runtime's task without a lock; must not block.
pub type OnEffect<E> = Box<dyn Fn(E, i32) + Send + Sync>;

/// The state that a load starts from, and the first offset that is not in it yet.
pub type Origin<M> = Box<dyn Fn() -> (M, Offset) + Send + Sync>;

/// One machine over one journal. Dropping it stops it.
pub struct Runtime<M: Machine> {
    pub(super) core: Arc<Core<M>>,
}

pub(super) struct Core<M: Machine> {
    /// What every load starts from.
    pub origin: Origin<M>,
    pub journal: Arc<dyn Journal>,
    pub env: Env,
    pub world: Arc<ArcSwap<M::World>>,
    pub on_effect: OnEffect<M::Effect>,
    pub leadership: watch::Receiver<super::Leadership>,
    pub committed: watch::Receiver<Offset>,
    pub inner: Mutex<Inner<M>>,
    /// Tells the task to look again: something is held, due earlier, failed or stopped.
    pub wake: Notify,
    pub state: watch::Sender<RuntimeState>,
}

impl<M: Machine> Runtime<M> {
    /// A machine loaded from the first record of its journal on. Nothing happens before
    /// [`Runtime::run`] is spawned.
    /// - `machine`: the empty state; every load starts from a clone of it.
    /// - `world`: looked at afresh by each decision.
    pub fn new(
        machine: M,
        journal: Arc<dyn Journal>,
        env: Env,
        world: Arc<ArcSwap<M::World>>,
        on_effect: OnEffect<M::Effect>,
    ) -> Self {
        let from = journal.clone();
        let origin = Box::new(move || (machine.clone(), from.start_offset()));
        Self::starting_from(origin, journal, env, world, on_effect)
    }

    /// A machine whose older records are not in the journal any more: each load starts from what
    /// `origin` has then (the controller's: the committed image).
    pub fn starting_from(
        origin: Origin<M>,
        journal: Arc<dyn Journal>,
        env: Env,
        world: Arc<ArcSwap<M::World>>,
        on_effect: OnEffect<M::Effect>,
    ) -> Self {
        let seeds = Random::seeded(env.random.next_u64());
        let core = Core {
            origin,
            leadership: journal.leadership(),
            committed: journal.committed(),
            journal,
            env,
            world,
            on_effect,
            inner: Mutex::new(Inner::new(seeds)),
            wake: Notify::new(),
            state: watch::channel(RuntimeState::Idle).0,
        };
        Self { core: Arc::new(core) }
    }

    /// The runtime's one task: follows the leadership, loads, runs timers, releases what commits,
    /// delivers effects. Ends after [`Runtime::stop`].
    pub fn run(&self) -> impl Future<Output = ()> + Send + 'static {
        super::driver::run(self.core.clone())
    }

    /// Decides `request` before this returns; the result is its answer, to be awaited. An answer
    /// that is committed by then is ready at the first poll. Dropping the result gives the ticket
    /// up: what was decided stands, the answer goes nowhere.
    ///
    /// Resolves to the answer and the journal's end when it was decided: the answer tells of all
    /// records below that offset and of no other.
    pub fn ask(&self, request: M::Request) -> Asked<M> {
        let core = &self.core;
        let world = core.world.load();
        let mut inner = core.lock();
        if let Err(error) = core.may_decide(&inner) {
            return Asked::done(Err(error));
        }
        let ticket = inner.ticket();
        let decided = core.step(&mut inner, &world, ticket, |machine, soft, cx| {
            machine.decide(soft, request, cx)
        });
        if let Err(fault) = decided {
            return Asked::done(Err(fault.into()));
        }
        let mut released = inner.settle(*core.committed.borrow());
        let own = released.take(ticket);
        let asked = match own {
            Some(outcome) => Asked::done(outcome),
            None if inner.is_leading() => {
                let (sender, answer) = oneshot::channel();
                inner.waiters.insert(ticket, sender);
                Asked { state: AskedState::Waiting { ticket, answer, core: core.clone() } }
            }
            None => Asked::done(Err(AskError::Lost)),
        };
        let wake = inner.task_must_look();
        drop(inner);
        released.send();
        if wake {
            core.wake.notify_one();
        }
        asked
    }

    /// Looks at the state, and resolves once all that was appended by then is committed.
    ///
    /// # Errors
    /// As for [`Runtime::ask`].
    pub async fn read<R>(&self, look: impl FnOnce(&M) -> R) -> Result<R, AskError> {
        let (found, committed) = self.look(look)?;
        match committed {
            None => Ok(found),
            Some(committed) => committed.await.map(|()| found).map_err(|_| AskError::Lost),
        }
    }

    /// What [`Runtime::read`] found, and what to wait for if its state is not committed yet.
    fn look<R>(
        &self,
        look: impl FnOnce(&M) -> R,
    ) -> Result<(R, Option<oneshot::Receiver<()>>), AskError> {
        let core = &self.core;
        let mut inner = core.lock();
        core.is_current(&inner)?;
        let Phase::Leading(leading) = &inner.phase else { return Err(AskError::Loading) };
        let (found, end) = (look(&leading.machine), leading.end);
        if end <= *core.committed.borrow() {
            return Ok((found, None));
        }
        let committed = inner.hold_read(end);
        drop(inner);
        core.wake.notify_one();
        Ok((found, Some(committed)))
    }

    pub fn state(&self) -> watch::Receiver<RuntimeState> {
        self.core.state.subscribe()
    }

    /// Waits until requests are decided here, or never will be.
    ///
    /// # Errors
    /// [`AskError`] when the runtime broke or was stopped.
    pub async fn until_leading(&self) -> Result<i32, AskError> {
        let mut state = self.state();
        loop {
            match *state.borrow_and_update() {
                RuntimeState::Leading { epoch } => return Ok(epoch),
                RuntimeState::Broken => return Err(NotReady::Storage.into()),
                RuntimeState::Stopped => return Err(AskError::Lost),
                RuntimeState::Idle | RuntimeState::Loading { .. } => {}
            }
            state.changed().await.map_err(|_| AskError::Lost)?;
        }
    }

    /// No decision after this; whoever waits gets [`AskError::Lost`].
    pub fn stop(&self) {
        self.core.leave(Phase::Stopped, RuntimeState::Stopped);
        self.core.wake.notify_one();
    }
}

impl<M: Machine> Drop for Runtime<M> {
    fn drop(&mut self) {
        self.stop();
    }
}

impl<M: Machine> Core<M> {
    /// A panic under the lock may have left half a change behind, so that counts as a failure
    /// after the decision: the machine is dropped.
    pub fn lock(&self) -> MutexGuard<'_, Inner<M>> {
        match self.inner.lock() {
            Ok(inner) => inner,
            Err(poisoned) => {
                self.inner.clear_poison();
                let mut inner = poisoned.into_inner();
                self.fail(&mut inner);
                self.wake.notify_one();
                inner
            }
        }
    }

    /// Whether the loaded state is that of the current leadership.
    fn is_current(&self, inner: &Inner<M>) -> Result<(), AskError> {
        let leadership = *self.leadership.borrow();
        match &inner.phase {
            Phase::Stopped => Err(AskError::Lost),
            Phase::Broken => Err(NotReady::Storage.into()),
            _ if !leadership.leads => Err(NotReady::NotLeader.into()),
            Phase::Leading(leading) if leading.epoch == leadership.epoch => Ok(()),
            Phase::Leading(_) | Phase::Idle | Phase::Loading | Phase::Failed => {
                Err(AskError::Loading)
            }
        }
    }

    fn may_decide(&self, inner: &Inner<M>) -> Result<(), AskError> {
        self.is_current(inner)?;
        Ok(self.journal.ready()?)
    }

    /// Drops the machine for `phase`; what is committed is still answered, the rest is lost.
    pub fn leave(&self, phase: Phase<M>, state: RuntimeState) {
        let mut inner = self.lock();
        if matches!(inner.phase, Phase::Stopped) {
            return;
        }
        let released = inner.settle(*self.committed.borrow());
        let lost = inner.leave(phase);
        self.state.send_if_modified(|now| std::mem::replace(now, state) != state);
        drop(inner);
        released.send();
        lost.send();
    }
}

/// The answer to come; see [`Runtime::ask`].
#[must_use = "the answer goes nowhere when this is dropped"]
pub struct Asked<M: Machine> {
    state: AskedState<M>,
}

enum AskedState<M: Machine> {
    Done(Option<Outcome<M>>),
    Waiting { ticket: Ticket, answer: oneshot::Receiver<Outcome<M>>, core: Arc<Core<M>> },
}

impl<M: Machine> Asked<M> {
    fn done(outcome: Outcome<M>) -> Self {
        Self { state: AskedState::Done(Some(outcome)) }
    }
}

impl<M: Machine> Unpin for Asked<M> {}

impl<M: Machine> Future for Asked<M> {
    type Output = Outcome<M>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut PollContext<'_>) -> Poll<Self::Output> {
        match &mut self.state {
            AskedState::Done(outcome) => Poll::Ready(outcome.take().unwrap_or(Err(AskError::Lost))),
            AskedState::Waiting { answer, .. } => {
                Pin::new(answer).poll(cx).map(|got| got.unwrap_or(Err(AskError::Lost)))
            }
        }
    }
}

impl<M: Machine> Drop for Asked<M> {
    fn drop(&mut self) {
        if let AskedState::Waiting { ticket, core, .. } = &self.state {
            core.lock().waiters.remove(ticket);
        }
    }
}

impl<M: Machine> Released<M> {
    /// Wakes the askers; to be called without the lock.
    pub fn send(self) {
        for (sender, outcome) in self.answers {
            // An asker that went away needs no answer.
            let _ = sender.send(outcome);
        }
        for reader in self.readers {
            let _ = reader.send(());
        }
    }
}
