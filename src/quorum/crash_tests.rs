//! The quorum on a simulated disk: power loss, kill, failed writes and fsyncs.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::node::{Quorum, QuorumConfig};
use super::tests::{Book, append_all, batch, config, numbered, with_first};
use super::{QuorumError, Writes};
use crate::env::{Env, FaultOn, Files, SimFiles};
use crate::machine::testing::{on_virtual_time, simulated_env};
use crate::machine::{Journal, NotReady};

const DIR: &str = "/data/__ottla_metadata";
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// A disk on which the quorum's directory has been made and its name is durable.
fn disk() -> SimFiles {
    let disk = SimFiles::default();
    let files = Files::Sim(disk.clone());
    files.create_dir_all(Path::new(DIR)).expect("made");
    files.sync_dir(Path::new("/")).expect("synced");
    files.sync_dir(Path::new("/data")).expect("synced");
    disk
}

fn env_on(disk: &SimFiles) -> Env {
    Env { files: Files::Sim(disk.clone()), ..simulated_env(1) }
}

async fn open(disk: &SimFiles, config: QuorumConfig) -> (Arc<Quorum>, Arc<Book>) {
    let book = Arc::new(Book::default());
    let quorum = Quorum::open(config, env_on(disk), book.clone()).await.expect("opened");
    (quorum, book)
}

#[test]
fn starts_cost_the_fsyncs_that_they_must() {
    let disk = disk();
    let syncs_of = |life: fn(SimFiles, bool), close| {
        let before = disk.counts().syncs;
        life(disk.clone(), close);
        disk.counts().syncs - before
    };
    let life = |disk: SimFiles, close: bool| {
        on_virtual_time(async {
            let (quorum, _) = open(&disk, config(Path::new(DIR))).await;
            if close {
                quorum.shutdown().await.expect("closed");
            }
        });
        if !close {
            disk.kill();
        }
    };
    assert_eq!(syncs_of(life, true), 2, "fresh");
    assert_eq!(syncs_of(life, true), 0, "closed in order");
    assert_eq!(syncs_of(life, false), 0, "closed in order, then nothing written");
    assert_eq!(syncs_of(life, true), 0, "killed before it wrote anything");
}

#[test]
fn a_failed_fsync_is_told_once_and_ends_all_answers() {
    for (on, spare) in [(FaultOn::Sync, 0), (FaultOn::Write, 0)] {
        let (disk, told) = (disk(), Arc::new(AtomicUsize::new(0)));
        on_virtual_time(async {
            let teller = told.clone();
            let on_fatal = Arc::new(move |error: &QuorumError| {
                let text = error.to_string();
                assert!(text.contains("quorum.log"), "{text}");
                teller.fetch_add(1, Ordering::Relaxed);
            });
            let config = QuorumConfig { on_fatal, ..config(Path::new(DIR)) };
            let (quorum, book) = open(&disk, config).await;
            disk.fail(on, spare, EIO);
            let mut leadership = quorum.leadership();
            quorum.append(1, 2, batch(&numbered(0..1))).expect("taken in");
            leadership.wait_for(|now| !now.leads).await.expect("told");
            assert_eq!(quorum.ready(), Err(NotReady::NotLeader));
            assert_eq!(book.values(), with_first(&[]), "never acknowledged");
        });
        assert_eq!(told.load(Ordering::Relaxed), 1, "{on:?}");
        disk.crash(1);
        on_virtual_time(async {
            let (quorum, book) = open(&disk, config(Path::new(DIR))).await;
            let found = book.values();
            assert!(found == with_first(&[]) || found == with_first(&numbered(0..1)), "{found:?}");
            append_all(&quorum, &numbered(5..6)).await;
        });
    }
}

/// The kernel shows what a failed fsync did not save; a start that believed it would tell of
/// records that a power loss takes back.
#[test]
fn what_only_the_page_cache_had_is_made_durable_before_it_is_believed() {
    let disk = disk();
    on_virtual_time(async {
        let config = QuorumConfig { on_fatal: Arc::new(|_| {}), ..config(Path::new(DIR)) };
        let (quorum, _) = open(&disk, config).await;
        disk.fail(FaultOn::Sync, 0, EIO);
        let mut leadership = quorum.leadership();
        quorum.append(1, 2, batch(&numbered(0..1))).expect("taken in");
        leadership.wait_for(|now| !now.leads).await.expect("told");
    });
    disk.kill();
    for _ in 0..2 {
        on_virtual_time(async {
            let (_, book) = open(&disk, config(Path::new(DIR))).await;
            assert_eq!(book.values(), with_first(&numbered(0..1)));
        });
        disk.crash(1);
    }
}

/// The last write of a clean stop is not waited for: what stands behind it may not call it
/// durable, or a power loss that tears it leaves a log that nobody opens again.
#[test]
fn a_power_loss_right_after_a_clean_restart_leaves_a_log_that_opens() {
    for seed in 0..128 {
        let disk = disk();
        on_virtual_time(async {
            let (quorum, _) = open(&disk, config(Path::new(DIR))).await;
            append_all(&quorum, &numbered(0..1)).await;
            quorum.shutdown().await.expect("closed");
        });
        disk.kill();
        on_virtual_time(async {
            let config = QuorumConfig { on_fatal: Arc::new(|_| {}), ..config(Path::new(DIR)) };
            let (quorum, _) = open(&disk, config).await;
            disk.lose_power(1); // between the write and its fsync
            let mut leadership = quorum.leadership();
            let (epoch, end) = (leadership.borrow().epoch, quorum.end_offset());
            quorum.append(epoch, end, batch(&numbered(1..2))).expect("taken in");
            leadership.wait_for(|now| !now.leads).await.expect("told");
        });
        disk.crash(seed);
        on_virtual_time(async {
            let (_, book) = open(&disk, config(Path::new(DIR))).await;
            assert!(book.values().starts_with(&with_first(&numbered(0..1))), "seed {seed}");
        });
    }
}

#[test]
fn a_full_disk_delays_and_loses_nothing() {
    let disk = disk();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let config = QuorumConfig { writes: Writes::OnThread, ..config(Path::new(DIR)) };
        let (quorum, book) = open(&disk, config).await;
        disk.fail(FaultOn::Write, 0, ENOSPC);
        append_all(&quorum, &numbered(0..3)).await;
        assert_eq!(book.values(), with_first(&numbered(0..3)));
        assert_eq!(quorum.ready(), Ok(()));
        quorum.shutdown().await.expect("closed");
    });
    on_virtual_time(async {
        let (_, book) = open(&disk, config(Path::new(DIR))).await;
        assert_eq!(book.values(), with_first(&numbered(0..3)));
    });
}

/// One life of a node, and how it ends.
#[derive(Debug, Clone)]
struct Life {
    /// Each appended and waited for.
    acknowledged: usize,
    snapshot: bool,
    /// Appended at the end and not waited for, with so many turns of the tasks after them.
    pending: usize,
    turns: usize,
    end: End,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Shutdown,
    Kill,
    PowerLoss(u64),
}

fn any_life() -> impl Strategy<Value = Life> {
    let end =
        prop_oneof![Just(End::Shutdown), Just(End::Kill), any::<u64>().prop_map(End::PowerLoss),];
    (0..40_usize, any::<bool>(), 0..4_usize, 0..12_usize, end).prop_map(
        |(acknowledged, snapshot, pending, turns, end)| Life {
            acknowledged,
            snapshot,
            pending,
            turns,
            end,
        },
    )
}

/// Lives `life` on `disk`; returns what was there at its start, and all that was acknowledged in
/// it or appended without an answer.
fn live(disk: &SimFiles, life: &Life, name: usize) -> (Vec<String>, Vec<String>, Vec<String>) {
    let values = |kind: &str, count: usize| -> Vec<String> {
        (0..count).map(|n| format!("{kind} {n} of life {name}")).collect()
    };
    let lived = Mutex::new((Vec::new(), Vec::new(), Vec::new()));
    on_virtual_time(async {
        let (quorum, book) = open(disk, config(Path::new(DIR))).await;
        lived.lock().expect("lived").0 = book.values();
        for value in values("acknowledged", life.acknowledged) {
            append_all(&quorum, std::slice::from_ref(&value)).await;
            lived.lock().expect("lived").1.push(value);
        }
        if life.snapshot {
            quorum.snapshot().await.expect("asked for");
        }
        let epoch = quorum.leadership().borrow().epoch;
        for value in values("pending", life.pending) {
            let one = batch(std::slice::from_ref(&value));
            quorum.append(epoch, quorum.end_offset(), one).expect("taken in");
            lived.lock().expect("lived").2.push(value);
        }
        for _ in 0..life.turns {
            tokio::task::yield_now().await;
        }
        if matches!(life.end, End::Shutdown) {
            quorum.shutdown().await.expect("closed");
        }
    });
    match life.end {
        End::Shutdown | End::Kill => disk.kill(),
        End::PowerLoss(seed) => disk.crash(seed),
    }
    lived.into_inner().expect("lived")
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        max_shrink_iters: 60,
        failure_persistence: None,
        ..ProptestConfig::with_cases(64)
    })]
    /// What was acknowledged is there after any number of lives, in order; of what was not, a
    /// prefix.
    #[test]
    fn acknowledged_records_survive_every_end(lives in prop::collection::vec(any_life(), 1..6)) {
        let disk = disk();
        let mut certain = with_first(&[]);
        let mut doubtful: Vec<String> = Vec::new();
        for (name, life) in lives.iter().enumerate() {
            let (found, acknowledged, pending) = live(&disk, life, name);
            prop_assert!(found.starts_with(&certain), "life {name} lost something acknowledged");
            prop_assert!(doubtful.starts_with(&found[certain.len()..]), "life {name}: {found:?}");
            certain = [found, acknowledged].concat();
            doubtful = pending;
        }
    }
}
