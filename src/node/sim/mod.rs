//! A whole broker in one thread: simulated disk, network, clock and random, clients that do
//! anything, and power that goes at any call. Each life ends in a stop, a kill or a power loss;
//! the next one is looked at against a simple model of what must be there. One seed replays byte
//! for byte.
//! `OTTLA_SIM_SEEDS=FIRST..END cargo test --release -p ottla simulation_of_many -- --ignored`
//! runs as many as wanted and prints how many, and what they did.

mod client;
mod groups;
mod look;
mod model;
mod seeds;
mod topics;
mod wire;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::Node;
use crate::cli::Run;
use crate::config::{self, Sources};
use crate::env::{Clock, Env, FaultOn, Files, Net, Random, SimFiles, SimNet, Tasks, Trace};
use client::Client;
use model::{Kept, Model};

const ADDRESS: &str = "127.0.0.1:9092";
const DATA: &str = "/data";
/// One topic a client.
const NAMES: [&str; 3] = ["base", "left", "right"];
const START_MS: i64 = 1_700_000_000_000;
const EIO: i32 = 5;
const GRACE: Duration = Duration::from_secs(5);

/// Codes that a client may see once the disk has failed or was full: the storage, the leadership
/// and the coordinators that went with it, and a deadline that passed meanwhile.
const AFTER_A_FAULT: [i16; 9] = [-1, 5, 6, 7, 14, 15, 16, 41, 56];

/// What the parts of one life share.
#[derive(Clone)]
struct Lab {
    env: Env,
    disk: SimFiles,
    model: Arc<Mutex<Model>>,
    /// Of all answers.
    answers: Arc<Mutex<Trace>>,
    /// A power loss has taken something away in an earlier life.
    lost: bool,
}

impl Lab {
    fn env(&self) -> &Env {
        &self.env
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().expect("no client has panicked")
    }

    /// Whether the node is gone, whatever it still seems to do.
    fn is_down(&self) -> bool {
        !self.disk.has_power() || self.env.tasks.has_ended()
    }

    fn has_lost(&self) -> bool {
        self.lost
    }

    fn note(&self, bytes: &[u8]) {
        let mut answers = self.answers.lock().expect("no client has panicked");
        answers.note(&self.env.clock.now().0.as_micros().to_be_bytes());
        answers.note(bytes);
    }

    /// An error is no answer on a sound disk.
    fn allows(&self, what: &str, code: i16) {
        assert!(self.disk.faults_hit() > 0, "{what}: error {code} on a sound disk");
        assert!(AFTER_A_FAULT.contains(&code), "{what}: error {code} after a fault");
    }
}

/// How a life ends, or what happens in it.
#[derive(Debug, Clone, Copy)]
enum Fate {
    /// In order.
    Stop,
    /// After all clients are done.
    Kill,
    /// At a call that changes the disk; the page cache stays.
    KillAt(u64),
    /// At a call that changes the disk; what was not synced is torn or lost.
    PowerLossAt(u64),
    /// One call fails with EIO.
    Broken { on: FaultOn, spare: u64, power: bool },
    /// The disk is full for a while.
    Full { from_ms: u64, for_ms: u64 },
}

/// What a run came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Outcome {
    /// Of all answers, and of all that the disk was asked.
    trace: (u64, u64),
    lives: u64,
    acknowledged: u64,
}

struct World {
    random: Random,
    disk: SimFiles,
    model: Arc<Mutex<Model>>,
    answers: Arc<Mutex<Trace>>,
    clients: [Client; 3],
    lost: bool,
    virtual_ms: i64,
    lives: u64,
    steps: u64,
}

/// Runs one seed; panics where the broker broke a promise.
fn run(seed: u64) -> Outcome {
    let random = Random::seeded(seed);
    let disk = SimFiles::default();
    let files = Files::Sim(disk.clone());
    files.create_dir_all(DATA.as_ref()).expect("made");
    files.sync_dir("/".as_ref()).expect("synced");
    let flushes_by_default = random.below(3) == 0;
    let mut world = World {
        disk,
        model: Arc::new(Mutex::new(Model::new(&NAMES, flushes_by_default))),
        answers: Arc::default(),
        clients: [0, 1, 2].map(|id| Client::new(id, random.next_u64())),
        lost: false,
        virtual_ms: START_MS,
        lives: 0,
        steps: 4 + random.below(16),
        random,
    };
    for _ in 0..=world.random.below(3) {
        let fate = world.fate();
        world.live(fate);
    }
    // Whatever happened: it starts by itself, serves, stops in order, and has all of it then.
    world.live(Fate::Stop);
    world.steps = 0;
    world.live(Fate::Stop);
    let trace = (world.answers.lock().expect("free").value(), world.disk.trace());
    let acknowledged = world.model.lock().expect("free").acknowledged;
    Outcome { trace, lives: world.lives, acknowledged }
}

impl World {
    fn fate(&self) -> Fate {
        let random = &self.random;
        // Starts are short and worth as much as all the rest.
        let call = || match random.below(3) {
            0 => random.below(40),
            _ => random.below(600),
        };
        match random.below(10) {
            0 => Fate::Stop,
            1 => Fate::Kill,
            2..=3 => Fate::KillAt(call()),
            4..=6 => Fate::PowerLossAt(call()),
            7 | 8 => {
                let on = [FaultOn::Write, FaultOn::Sync, FaultOn::Name][random.below(3) as usize];
                let spare = random.below(if on == FaultOn::Write { 300 } else { 60 });
                // A directory that cannot be synced ends a file system until the next boot.
                let on = match on {
                    FaultOn::Sync if random.below(2) == 0 => FaultOn::Data,
                    on => on,
                };
                let power = on == FaultOn::Sync || random.below(2) == 0;
                Fate::Broken { on, spare, power }
            }
            _ => Fate::Full { from_ms: random.below(1_000), for_ms: 1 + random.below(2_000) },
        }
    }

    fn live(&mut self, fate: Fate) {
        self.lives += 1;
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().expect("a runtime");
        let tasks = runtime.block_on(async {
            let lab = self.lab();
            match fate {
                Fate::KillAt(calls) | Fate::PowerLossAt(calls) => self.disk.lose_power(calls),
                Fate::Broken { on, spare, .. } => self.disk.fail(on, spare, EIO),
                Fate::Stop | Fate::Kill | Fate::Full { .. } => {}
            }
            let tasks = lab.env.tasks.clone();
            let down = async {
                tokio::select! {
                    biased;
                    () = lab.disk.power_lost() => {}
                    () = tasks.process_ended() => {}
                }
            };
            let (disk, clients, steps) = (lab.disk.clone(), &mut self.clients, self.steps);
            tokio::select! {
                biased;
                () = down => {}
                () = one_life(&lab, clients, steps, fate) => {}
            }
            self.virtual_ms = lab.env.clock.wall_ms() + 1;
            disk.set_full(false);
            lab.env.tasks.clone()
        });
        drop(runtime);
        assert_eq!(tasks.panicked(), 0, "a task panicked");
        let power = matches!(fate, Fate::PowerLossAt(_) | Fate::Broken { power: true, .. });
        if power {
            self.lost = true;
            self.disk.crash(self.random.next_u64());
        } else {
            self.disk.kill();
        }
        let kept = if power { Kept::Synced } else { Kept::Written };
        self.model.lock().expect("free").end_life(kept);
    }

    fn lab(&self) -> Lab {
        Lab {
            env: Env {
                clock: Clock::simulated(self.virtual_ms),
                random: Random::seeded(self.random.next_u64()),
                files: Files::Sim(self.disk.clone()),
                net: Net::Sim(SimNet::default()),
                tasks: Tasks::simulated(Random::seeded(self.random.next_u64())),
            },
            disk: self.disk.clone(),
            model: self.model.clone(),
            answers: self.answers.clone(),
            lost: self.lost,
        }
    }
}

async fn one_life(lab: &Lab, clients: &mut [Client; 3], steps: u64, fate: Fate) {
    let flushes = lab.model().flushes_by_default;
    let node = match Node::start(settings(flushes), lab.env.clone()).await {
        Ok(node) => node,
        Err(error) => {
            assert!(lab.is_down() || lab.disk.faults_hit() > 0, "it does not start: {error}");
            return;
        }
    };
    if look::look_at_everything(lab).await.is_none() {
        return;
    }
    let [first, second, third] = clients;
    let filling = async {
        if let Fate::Full { from_ms, for_ms } = fate {
            lab.env.clock.sleep(Duration::from_millis(from_ms)).await;
            lab.disk.set_full(true);
            lab.env.clock.sleep(Duration::from_millis(for_ms)).await;
            lab.disk.set_full(false);
        }
    };
    tokio::join!(first.run(lab, steps), second.run(lab, steps), third.run(lab, steps), filling);
    if matches!(fate, Fate::Stop) {
        let stopped = node.shut_down(GRACE).await;
        if !lab.is_down() {
            stopped.expect("stopped in order");
            lab.model().stopped_cleanly();
        }
    }
}

fn settings(flushes_by_default: bool) -> Run {
    let flush = if flushes_by_default { "1" } else { "9223372036854775807" };
    let keys = [
        ("listeners", "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"),
        ("log.dirs", DATA),
        ("ottla.http.port", "-1"),
        ("auto.create.topics.enable", "false"),
        ("offsets.topic.num.partitions", "2"),
        ("group.initial.rebalance.delay.ms", "0"),
        ("log.flush.interval.messages", flush),
        ("log.retention.check.interval.ms", "900"),
        ("replica.high.watermark.checkpoint.interval.ms", "700"),
    ];
    let argument = |(key, value): (&str, &str)| (key.to_owned(), key.to_owned(), value.to_owned());
    let arguments = keys.into_iter().map(argument).collect();
    let (config, notices) =
        config::load(&Sources { arguments, ..Sources::default() }).expect("a configuration");
    Run { config, notices, topics: Vec::new(), is_ephemeral: false }
}
