//! The laws of the runtime and of every journal, as tests. A journal of another room runs
//! [`journal_keeps_its_laws`] on itself.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;

use super::testing::{MemoryJournal, on_virtual_time, simulated_env};
use super::{
    AskError, Batch, Context, Decision, Entry, EntryKind, Journal, JournalError, JournalRecord,
    Machine, NotReady, Position, Record, Runtime, RuntimeState, Ticket, Write,
};
use crate::env::Instant;

/// Holds a journal that leads, and on which nobody else writes, to what the runtime relies on.
pub(crate) async fn journal_keeps_its_laws(journal: Arc<dyn Journal>) {
    let epoch = journal.leadership().borrow().epoch;
    assert_eq!(journal.ready(), Ok(()), "a leader is ready");
    let base = journal.end_offset();
    assert_eq!(*journal.committed().borrow(), base, "starts with all committed");

    let end = journal.append(epoch, base, batch(&["a", "bb"])).expect("appended");
    assert_eq!(end, base + 2, "an append returns the new end");
    let end = journal.append(epoch, end, batch(&["ccc"])).expect("appended before the commit");
    assert_eq!((end, journal.end_offset()), (base + 3, base + 3), "appends need not wait");
    let mut committed = journal.committed();
    committed.wait_for(|committed| *committed == end).await.expect("committed in time");

    let found = read_values(&*journal, base, usize::MAX);
    assert_eq!(found, [(base, "a"), (base + 1, "bb"), (base + 2, "ccc")].map(owned));
    let found = read_values(&*journal, base + 1, 0);
    assert_eq!(found.first(), Some(&owned((base + 1, "bb"))), "at least one entry is read");
    assert_eq!(read_values(&*journal, end, usize::MAX), [], "nothing at the end");

    let moved = journal.append(epoch, base, batch(&["late"]));
    assert_eq!(moved, Err(JournalError::Moved { expected: base, found: end }));
    let stale = journal.append(epoch - 1, end, batch(&["old"]));
    assert_eq!(stale, Err(JournalError::NotLeader { asked: epoch - 1 }));
    let large = "x".repeat(journal.batch_bytes_max());
    let large = journal.append(epoch, end, batch(&[&large]));
    assert!(matches!(large, Err(JournalError::TooLarge { .. })), "{large:?}");
    assert_eq!(journal.end_offset(), end, "what was refused changed nothing");
    let end = journal.append(epoch, end, batch(&["next"])).expect("goes on after a refusal");
    assert_eq!(end, base + 4);
    committed.wait_for(|committed| *committed == end).await.expect("committed in time");
}

fn batch(values: &[&str]) -> Batch {
    let record = |value: &&str| JournalRecord {
        key: None,
        value: Some(Bytes::copy_from_slice(value.as_bytes())),
    };
    Batch {
        write: Write::Plain,
        records: values.iter().map(record).collect(),
        timestamp_ms: 1_700_000_000_000,
    }
}

fn owned((at, value): (i64, &str)) -> (i64, String) {
    (at, value.to_owned())
}

fn read_values(journal: &dyn Journal, from: i64, bytes_max: usize) -> Vec<(i64, String)> {
    let entries = journal.read(from, bytes_max).expect("read");
    let value = |entry: super::ReadEntry| {
        let value = entry.record.and_then(|record| record.value).unwrap_or_default();
        (entry.position.0, String::from_utf8_lossy(&value).into_owned())
    };
    entries.into_iter().map(value).collect()
}

/// A sum, and people who wait for it to reach something.
#[derive(Clone, Default)]
pub(crate) struct Tally {
    pub sum: i64,
    markers: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Added(pub i64);

impl Record for Added {
    fn encode(&self) -> JournalRecord {
        JournalRecord { key: None, value: Some(Bytes::from(self.0.to_string())) }
    }

    fn decode(record: &JournalRecord) -> Result<Option<Self>, String> {
        let text = String::from_utf8_lossy(record.value.as_deref().unwrap_or_default());
        match &*text {
            "of a later version" => Ok(None),
            text => text.parse().map(|n| Some(Self(n))).map_err(|_| format!("`{text}`: no number")),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Ask {
    Add(i64),
    /// Says what the sum is; writes nothing.
    Look,
    /// Waits for the next `Free`.
    Park,
    Free,
    /// Adds one after so many milliseconds, with an effect.
    Later(u64),
    Tick,
    Panic,
}

#[derive(Default)]
pub(crate) struct Waiting {
    parked: Vec<Ticket>,
    alarms: Vec<Instant>,
}

impl Machine for Tally {
    type World = i64;
    type Request = Ask;
    type Answer = i64;
    type Record = Added;
    type Effect = i64;
    type Soft = Waiting;

    fn elected(&self, _: &Context<'_, i64>) -> (Waiting, Decision<Self>) {
        let effects = vec![-self.sum];
        (Waiting::default(), Decision { effects, ..Decision::default() })
    }

    fn decide(&self, soft: &mut Waiting, ask: Ask, cx: &Context<'_, i64>) -> Decision<Self> {
        match ask {
            Ask::Add(n) => {
                let n = n * *cx.world;
                Decision::done(vec![Added(n)], cx.ticket, self.sum + n)
            }
            Ask::Look => Decision::answer(cx.ticket, self.sum),
            Ask::Park => {
                soft.parked.push(cx.ticket);
                Decision::park()
            }
            Ask::Free => {
                let mut decision = Decision::done(vec![Added(1)], cx.ticket, 0);
                let parked = soft.parked.drain(..).map(|ticket| (ticket, self.sum + 1));
                decision.answers.extend(parked);
                decision
            }
            Ask::Later(wait_ms) => {
                soft.alarms.push(cx.now + Duration::from_millis(wait_ms));
                Decision::answer(cx.ticket, 0)
            }
            Ask::Tick => {
                let effects = vec![self.sum + 1];
                Decision { records: vec![Added(1)], effects, ..Decision::default() }
            }
            Ask::Panic => panic!("a mistake in decide"),
        }
    }

    fn replay(&mut self, entry: Entry<&Added>, _: Position) {
        match entry.record {
            Some(added) => self.sum += added.0,
            None => self.markers += 1,
        }
    }

    fn due(&self, soft: &mut Waiting, cx: &Context<'_, i64>) -> Vec<Ask> {
        let due = soft.alarms.iter().filter(|alarm| **alarm <= cx.now).count();
        soft.alarms.retain(|alarm| *alarm > cx.now);
        vec![Ask::Tick; due]
    }

    fn next_due(&self, soft: &Waiting) -> Option<Instant> {
        soft.alarms.iter().min().copied()
    }
}

/// A runtime whose task runs, once it leads.
struct Stand {
    journal: Arc<MemoryJournal>,
    runtime: Runtime<Tally>,
    effects: Arc<Mutex<Vec<(i64, i32)>>>,
}

impl Stand {
    async fn new() -> Self {
        let stand = Self::over(MemoryJournal::new());
        stand.runtime.until_leading().await.expect("leads");
        stand
    }

    fn over(journal: Arc<MemoryJournal>) -> Self {
        let (env, effects) = (simulated_env(1), Arc::new(Mutex::new(Vec::new())));
        let (told, world) = (effects.clone(), Arc::new(ArcSwap::from_pointee(1)));
        let on_effect = move |effect, epoch| told.lock().expect("effects").push((effect, epoch));
        let tasks = env.tasks.clone();
        let runtime =
            Runtime::new(Tally::default(), journal.clone(), env, world, Box::new(on_effect));
        tasks.spawn_control(runtime.run());
        Self { journal, runtime, effects }
    }

    fn effects(&self) -> Vec<(i64, i32)> {
        self.effects.lock().expect("effects").clone()
    }
}

/// Lets every task run until all of them wait.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// The answer if it is there without another task having run.
fn at_once<M: Machine>(asked: super::Asked<M>) -> Option<Result<(M::Answer, i64), AskError>> {
    use std::future::Future;
    let mut asked = std::pin::pin!(asked);
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match asked.as_mut().poll(&mut cx) {
        std::task::Poll::Ready(outcome) => Some(outcome),
        std::task::Poll::Pending => None,
    }
}

#[test]
fn memory_journal_keeps_the_laws_of_journals() {
    on_virtual_time(journal_keeps_its_laws(MemoryJournal::new()));
}

#[test]
fn what_is_committed_at_once_is_answered_without_a_task() {
    on_virtual_time(async {
        let stand = Stand::new().await;
        assert_eq!(at_once(stand.runtime.ask(Ask::Add(2))), Some(Ok((2, 1))));
        assert_eq!(at_once(stand.runtime.ask(Ask::Add(3))), Some(Ok((5, 2))));
        assert_eq!(at_once(stand.runtime.ask(Ask::Look)), Some(Ok((5, 2))));
    });
}

#[test]
fn an_answer_without_records_waits_for_the_state_it_was_decided_on() {
    on_virtual_time(async {
        let stand = Stand::new().await;
        stand.journal.hold_commits();
        let added = stand.runtime.ask(Ask::Add(2));
        let mut looked = Box::pin(stand.runtime.ask(Ask::Look));
        let mut read = Box::pin(stand.runtime.read(|tally| tally.sum));
        settle().await;
        let pending = Duration::from_secs(1);
        let clock = simulated_env(1).clock;
        let deadline = clock.deadline_in(pending);
        assert_eq!(clock.until(deadline, &mut looked).await, None, "told of what may be lost");
        assert_eq!(clock.until(clock.now(), &mut read).await, None, "read what may be lost");
        stand.journal.commit_to(1);
        assert_eq!(looked.await, Ok((2, 1)));
        assert_eq!(read.await, Ok(2));
        assert_eq!(added.await, Ok((2, 1)));
    });
}

#[test]
fn a_later_decision_answers_parked_tickets() {
    on_virtual_time(async {
        let stand = Stand::new().await;
        let (first, second) = (stand.runtime.ask(Ask::Park), stand.runtime.ask(Ask::Park));
        settle().await;
        assert_eq!(at_once(stand.runtime.ask(Ask::Free)), Some(Ok((0, 1))));
        assert_eq!((first.await, second.await), (Ok((1, 1)), Ok((1, 1))));
    });
}

#[test]
fn a_dropped_asker_gives_its_ticket_up_and_its_decision_stands() {
    on_virtual_time(async {
        let stand = Stand::new().await;
        let (gone, stays) = (stand.runtime.ask(Ask::Park), stand.runtime.ask(Ask::Park));
        drop(gone);
        assert_eq!(stand.runtime.core.lock().waiters.len(), 1);
        stand.journal.hold_commits();
        drop(stand.runtime.ask(Ask::Add(4)));
        drop(stand.runtime.ask(Ask::Free));
        stand.journal.commit_to(2);
        assert_eq!(stays.await, Ok((5, 2)));
        assert_eq!(at_once(stand.runtime.ask(Ask::Look)), Some(Ok((5, 2))));
        assert!(stand.runtime.core.lock().waiters.is_empty());
    });
}

#[test]
fn a_journal_that_is_not_ready_refuses_and_nothing_changes() {
    on_virtual_time(async {
        let stand = Stand::new().await;
        for refusal in [NotReady::TooFewReplicas, NotReady::Storage] {
            stand.journal.refuse(Some(refusal.clone()));
            let outcome = at_once(stand.runtime.ask(Ask::Add(1)));
            assert_eq!(outcome, Some(Err(AskError::NotReady(refusal))));
        }
        stand.journal.refuse(None);
        assert_eq!(at_once(stand.runtime.ask(Ask::Look)), Some(Ok((0, 0))));
    });
}

#[test]
fn lost_leadership_drops_the_tickets_and_a_new_one_loads_the_journal() {
    on_virtual_time(async {
        let stand = Stand::new().await;
        let done = stand.runtime.ask(Ask::Add(1));
        stand.journal.hold_commits();
        let (unknown, parked) = (stand.runtime.ask(Ask::Add(2)), stand.runtime.ask(Ask::Park));
        stand.journal.resign(2);
        let refused = at_once(stand.runtime.ask(Ask::Look));
        assert_eq!(refused, Some(Err(AskError::NotReady(NotReady::NotLeader))));
        assert_eq!(done.await, Ok((1, 1)));
        assert_eq!((unknown.await, parked.await), (Err(AskError::Lost), Err(AskError::Lost)));
        assert_eq!(*stand.runtime.state().borrow(), RuntimeState::Idle);

        stand.journal.truncate_to(1);
        stand.journal.lead(3);
        assert_eq!(at_once(stand.runtime.ask(Ask::Look)), Some(Err(AskError::Loading)));
        assert_eq!(stand.runtime.until_leading().await, Ok(3));
        assert_eq!(at_once(stand.runtime.ask(Ask::Look)), Some(Ok((1, 1))));
        settle().await;
        assert_eq!(stand.effects(), [(0, 1), (-1, 3)], "the effect owed is issued again");
    });
}

#[test]
fn a_leadership_renewed_unseen_loads_again() {
    on_virtual_time(async {
        let stand = Stand::new().await;
        stand.journal.hold_commits();
        let unknown = stand.runtime.ask(Ask::Add(2));
        settle().await;
        stand.journal.truncate_to(0);
        stand.journal.resign(1);
        stand.journal.lead(1);
        assert_eq!(unknown.await, Err(AskError::Lost));
        stand.runtime.until_leading().await.expect("leads again");
        assert_eq!(at_once(stand.runtime.ask(Ask::Look)), Some(Ok((0, 0))));
    });
}

#[test]
fn a_failure_after_the_decision_rebuilds_the_machine() {
    on_virtual_time(async {
        let stand = Stand::new().await;
        let parked = stand.runtime.ask(Ask::Park);
        assert_eq!(at_once(stand.runtime.ask(Ask::Add(7))), Some(Ok((7, 1))));
        stand.journal.fail_next_append(JournalError::Storage("no space".into()));
        assert_eq!(at_once(stand.runtime.ask(Ask::Add(1))), Some(Err(AskError::Lost)));
        assert_eq!(at_once(stand.runtime.ask(Ask::Look)), Some(Err(AskError::Loading)));
        assert_eq!(parked.await, Err(AskError::Lost));
        stand.runtime.until_leading().await.expect("leads again");
        assert_eq!(at_once(stand.runtime.ask(Ask::Look)), Some(Ok((7, 1))));
    });
}

#[test]
fn a_panic_in_a_decision_rebuilds_the_machine() {
    on_virtual_time(async {
        let stand = Stand::new().await;
        let parked = stand.runtime.ask(Ask::Park);
        let asking = std::panic::AssertUnwindSafe(|| drop(stand.runtime.ask(Ask::Panic)));
        std::panic::catch_unwind(asking).expect_err("the panic is the asker's");
        assert_eq!(at_once(stand.runtime.ask(Ask::Look)), Some(Err(AskError::Loading)));
        assert_eq!(parked.await, Err(AskError::Lost));
        stand.runtime.until_leading().await.expect("leads again");
    });
}

#[test]
fn what_falls_due_is_decided_and_its_effect_follows_the_commit() {
    on_virtual_time(async {
        let stand = Stand::new().await;
        let clock = simulated_env(1).clock;
        assert_eq!(at_once(stand.runtime.ask(Ask::Later(500))), Some(Ok((0, 0))));
        assert_eq!(at_once(stand.runtime.ask(Ask::Later(300))), Some(Ok((0, 0))));
        clock.sleep(Duration::from_millis(299)).await;
        assert_eq!(at_once(stand.runtime.ask(Ask::Look)), Some(Ok((0, 0))));
        clock.sleep(Duration::from_millis(2)).await;
        assert_eq!(at_once(stand.runtime.ask(Ask::Look)), Some(Ok((1, 1))));
        settle().await;
        assert_eq!(stand.effects(), [(0, 1), (1, 1)]);
        stand.journal.hold_commits();
        clock.sleep(Duration::from_millis(300)).await;
        assert_eq!(stand.journal.entries().len(), 2);
        assert_eq!(stand.effects().len(), 2, "an effect of what may be lost");
        stand.journal.commit_to(2);
        settle().await;
        assert_eq!(stand.effects(), [(0, 1), (1, 1), (2, 1)]);
    });
}

#[test]
fn markers_are_replayed_and_unknown_record_types_skipped() {
    on_virtual_time(async {
        let journal = MemoryJournal::new();
        let of = |text: &str| {
            let value = Some(Bytes::copy_from_slice(text.as_bytes()));
            Some(JournalRecord { key: None, value })
        };
        let (producer_id, producer_epoch) = Default::default();
        journal.put(EntryKind::Transactional { producer_id, producer_epoch }, of("5"));
        journal.put(EntryKind::Plain, of("of a later version"));
        journal.put(EntryKind::Marker { producer_id, producer_epoch, commit: true }, None);
        let stand = Stand::over(journal);
        stand.runtime.until_leading().await.expect("leads");
        assert_eq!(stand.runtime.read(|tally| (tally.sum, tally.markers)).await, Ok((5, 1)));
        assert_eq!(at_once(stand.runtime.ask(Ask::Look)), Some(Ok((5, 3))));
    });
}

#[test]
fn a_load_starts_from_the_state_that_the_origin_has() {
    on_virtual_time(async {
        let journal = MemoryJournal::new();
        for number in ["1", "2", "3"] {
            let value = Some(Bytes::from(number));
            journal.put(EntryKind::Plain, Some(JournalRecord { key: None, value }));
        }
        let (env, world) = (simulated_env(1), Arc::new(ArcSwap::from_pointee(1)));
        let origin = Box::new(|| (Tally { sum: 100, markers: 0 }, 2));
        let runtime =
            Runtime::starting_from(origin, journal, env.clone(), world, Box::new(|_, _| {}));
        env.tasks.spawn_control(runtime.run());
        runtime.until_leading().await.expect("leads");
        assert_eq!(runtime.ask(Ask::Look).await, Ok((103, 3)));
    });
}

#[test]
fn a_record_that_must_be_known_and_is_not_breaks_the_runtime() {
    on_virtual_time(async {
        let journal = MemoryJournal::new();
        journal.put(EntryKind::Plain, Some(JournalRecord::default()));
        let stand = Stand::over(journal);
        let refused = AskError::NotReady(NotReady::Storage);
        assert_eq!(stand.runtime.until_leading().await, Err(refused.clone()));
        assert_eq!(stand.runtime.ask(Ask::Look).await, Err(refused));
    });
}

#[test]
fn a_stopped_runtime_decides_nothing_and_its_task_ends() {
    on_virtual_time(async {
        let stand = Stand::new().await;
        let parked = stand.runtime.ask(Ask::Park);
        stand.runtime.stop();
        assert_eq!(parked.await, Err(AskError::Lost));
        assert_eq!(stand.runtime.ask(Ask::Add(1)).await, Err(AskError::Lost));
        settle().await;
        assert_eq!(stand.runtime.core.env.tasks.running(), 0);
        assert!(stand.journal.entries().is_empty());
    });
}
