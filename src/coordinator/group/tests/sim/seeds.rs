//! Which seeds run when.

use super::{Outcome, run};
use crate::env::seeds;

fn run_all(seeds: std::ops::Range<u64>) -> Outcome {
    let mut all = Outcome::default();
    for outcome in seeds::each(seeds, run) {
        all.taken_up += outcome.taken_up;
        all.commits += outcome.commits;
        all.failovers += outcome.failovers;
    }
    all
}

macro_rules! slices {
    ($($name:ident: $seeds:expr;)+) => {$(
        #[test]
        fn $name() {
            let all = run_all($seeds);
            // A simulation that does nothing shows nothing.
            let did = [all.taken_up, all.commits, all.failovers];
            assert!(did.iter().all(|count| *count >= 250), "{all:?}");
        }
    )+};
}

// In slices, so that the test threads share them.
slices! {
    no_seed_of_0_to_249_breaks_a_promise: 0..250;
    no_seed_of_250_to_499_breaks_a_promise: 250..500;
    no_seed_of_500_to_749_breaks_a_promise: 500..750;
    no_seed_of_750_to_999_breaks_a_promise: 750..1_000;
}

#[test]
fn a_seed_replays_decision_for_decision() {
    for seed in 2_000..2_010 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}

#[test]
#[ignore = "for long runs: OTTLA_SIM_SEEDS=FIRST..END"]
fn simulation_of_many_groups() {
    let seeds = seeds::wanted();
    let (first, count) = (seeds.start, seeds.end - seeds.start);
    let all = run_all(seeds);
    println!(
        "simulation of groups: {count} seeds from {first}, {} assignments, {} commits, {} failovers",
        all.taken_up, all.commits, all.failovers
    );
}
