//! Groups under members that do anything, at random, in both protocols: they vanish, come back
//! late, drop answers and speak for generations that are over, while the journals are slow and
//! coordinators crash or lose their leadership. One seed replays decision for decision.

mod classic;
mod consumer;
mod member;
mod model;
mod seeds;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::super::*;
use super::bench::config;
use super::cluster::Cluster;
use crate::common::Offset;
use crate::env::{Env, Random, Tasks, Trace};
use crate::machine::testing::{MemoryJournal, on_virtual_time, simulated_env};
use crate::machine::{Entry, Journal, Machine, Record};
use member::{Member, Plan};
use model::Model;

/// Partitions of topic `t`, which all members read.
const PARTITIONS: usize = 5;
/// Kafka's least for classic members; the same for those of consumer groups.
const SESSION_MS: i32 = 6_000;
const REBALANCE_MS: i32 = 10_000;
/// A day: no group goes while it is looked at.
const NEVER_MS: i64 = 86_400_000;
/// By then whoever is gone is out of the group.
const QUIET: Duration = Duration::from_secs(120);

/// What the parts of one run share.
struct Lab {
    env: Env,
    cluster: Mutex<Cluster>,
    model: Mutex<Model>,
    /// All members have lived their lives; leadership stays.
    is_quiet: AtomicBool,
    is_over: AtomicBool,
    /// `OTTLA_SIM_TRACE`: what happens is printed.
    prints: bool,
}

impl Lab {
    fn coordinator(&self) -> GroupCoordinator {
        self.cluster().coordinator.clone()
    }

    fn cluster(&self) -> MutexGuard<'_, Cluster> {
        self.cluster.lock().expect("no member has panicked")
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().expect("no member has panicked")
    }

    /// Something has happened.
    fn note(&self, what: &str) {
        let now_us = self.env.clock.now().0.as_micros();
        let trace = &mut self.model().outcome.trace;
        trace.note(&now_us.to_be_bytes());
        trace.note(what.as_bytes());
        if self.prints {
            println!("{:>8} ms  {what}", now_us / 1_000);
        }
    }

    async fn sleep_ms(&self, ms: u64) {
        self.env.clock.sleep(Duration::from_millis(ms)).await;
    }
}

/// What a run came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Outcome {
    /// Assignments that members took up.
    taken_up: u64,
    commits: u64,
    failovers: u64,
    /// Of all answers and failovers.
    trace: Trace,
}

/// Runs one seed; panics where the coordinator broke a promise.
fn run(seed: u64) -> Outcome {
    on_virtual_time(async {
        let random = Random::seeded(seed);
        let env = Env {
            tasks: Tasks::simulated(Random::seeded(random.next_u64())),
            ..simulated_env(random.next_u64())
        };
        let cluster = Cluster::with(env.clone(), settings(&random), PARTITIONS).await;
        let groups = [cluster.group_in(0), cluster.group_in(1)];
        let lab = Arc::new(Lab {
            env: env.clone(),
            cluster: Mutex::new(cluster),
            model: Mutex::default(),
            is_quiet: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            prints: std::env::var_os("OTTLA_SIM_TRACE").is_some(),
        });
        let hands = (0..2).map(|partition| {
            let (lab, random) = (lab.clone(), Random::seeded(random.next_u64()));
            env.tasks.spawn_data(async move { Hand::new(&lab, partition, random).run(&lab).await })
        });
        let hands: Vec<_> = hands.collect();
        let plans = groups.map(|group_id| (group_id, Plan::any(&random)));
        let members = (0..2 + random.below(7)).map(|id| {
            let group = plans[random.below(2) as usize].clone();
            let member = Member::new(lab.clone(), id, group, Random::seeded(random.next_u64()));
            env.tasks.spawn_data(member.run())
        });
        for member in members.collect::<Vec<_>>() {
            member.await.expect("no promise is broken");
        }
        lab.is_quiet.store(true, Ordering::Relaxed);
        env.clock.sleep(QUIET).await;
        lab.is_over.store(true, Ordering::Relaxed);
        for hand in hands {
            hand.await.expect("no promise is broken");
        }
        look_at_the_end(&lab).await;
        lab.coordinator().stop();
        assert_eq!(env.tasks.panicked(), 0, "a task panicked");
        lab.model().outcome
    })
}

fn settings(random: &Random) -> GroupConfig {
    GroupConfig {
        initial_rebalance_delay_ms: [0, 3_000][random.below(2) as usize],
        consumer_assignment_interval_ms: [0, 1_000][random.below(2) as usize],
        consumer_session_timeout_ms: SESSION_MS,
        consumer_min_session_timeout_ms: SESSION_MS,
        offsets_retention_check_interval_ms: NEVER_MS,
        ..config()
    }
}

/// All members are gone, so all groups are empty.
async fn look_at_the_end(lab: &Lab) {
    let listed = lab.coordinator().list_groups(&ListGroups::default()).await;
    for group in listed.expect("the groups") {
        assert_eq!(group.state, "Empty", "{}: its members are long gone", group.group_id);
    }
}

/// Moves one journal: commits late, in steps; loses what is not committed when leadership moves.
struct Hand {
    partition: i32,
    journal: Arc<MemoryJournal>,
    random: Random,
    epoch: i32,
    /// Ends that the log has had: whole decisions. Ascending, none below what is committed.
    ends: Vec<Offset>,
}

impl Hand {
    fn new(lab: &Lab, partition: i32, random: Random) -> Self {
        let journal = lab.cluster().journal(partition);
        journal.hold_commits();
        Self { partition, journal, random, epoch: 1, ends: Vec::new() }
    }

    async fn run(mut self, lab: &Lab) {
        while !lab.is_over.load(Ordering::Relaxed) {
            let pause_ms = if self.random.below(30) == 0 { 1_500 } else { 60 };
            lab.sleep_ms(self.random.below(pause_ms)).await;
            self.ends.push(self.journal.end_offset());
            if self.random.below(200) == 0 && !lab.is_quiet.load(Ordering::Relaxed) {
                self.fail_over(lab).await;
            } else if self.random.below(400) == 0 {
                self.look_at_replay(lab).await;
            }
            self.commit_to(self.random.below(self.ends.len() as u64) as usize);
        }
        self.journal.commit_to(self.journal.end_offset());
        self.look_at_replay(lab).await;
    }

    fn commit_to(&mut self, at: usize) {
        self.journal.commit_to(self.ends[at]);
        self.ends.drain(..at);
    }

    /// Another leader has what was committed, and perhaps more; then this broker leads again.
    async fn fail_over(&mut self, lab: &Lab) {
        lab.model().outcome.failovers += 1;
        lab.note(&format!("partition {} loses its leader", self.partition));
        let crashes = self.random.below(2) == 0;
        self.epoch += 1;
        self.journal.resign(self.epoch);
        if !crashes {
            lab.sleep_ms(self.random.below(3_000)).await;
        }
        let committed = *self.journal.committed().borrow();
        let kept = self.ends.get(self.random.below(self.ends.len() as u64 + 1) as usize);
        let kept = kept.copied().unwrap_or(committed);
        self.journal.truncate_to(kept);
        self.ends = vec![kept];
        self.epoch += 1;
        self.journal.lead(self.epoch);
        if crashes {
            lab.cluster().restart();
        }
    }

    /// What the coordinator has is what its journal says, committed or not.
    async fn look_at_replay(&self, lab: &Lab) {
        let coordinator = lab.coordinator();
        let group_id = lab.cluster().group_in(self.partition);
        let shard = coordinator.shard(&group_id).expect("a machine");
        let look = shard.read(|groups| {
            let replayed = format!("{:?}", replayed(&self.journal));
            assert_eq!(format!("{groups:?}"), replayed, "state and journal have parted");
        });
        // It looks at once; what this hand has yet to commit is not waited for.
        tokio::select! { biased; _ = look => {}, () = std::future::ready(()) => {} }
    }
}

fn replayed(journal: &MemoryJournal) -> Groups {
    let mut groups = Groups::default();
    for entry in journal.entries() {
        let decode = |record| GroupRecord::decode(record).expect("a record").expect("a known one");
        let record = entry.record.as_ref().map(decode);
        groups.replay(Entry { kind: entry.kind, record: record.as_ref() }, entry.position);
    }
    groups
}
