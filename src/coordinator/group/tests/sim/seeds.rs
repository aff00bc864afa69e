//! Which seeds run when.

use super::{Outcome, run};

/// Runs `seeds`; a failure names its seed.
fn run_all(seeds: std::ops::Range<u64>) -> Outcome {
    let mut all = Outcome::default();
    for seed in seeds {
        let ran = std::panic::catch_unwind(|| run(seed));
        let outcome = ran.unwrap_or_else(|_| panic!("seed {seed} failed, see above"));
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
fn groups_of_many_seeds() {
    let wanted = std::env::var("OTTLA_SIM_SEEDS").unwrap_or("1000..11000".to_owned());
    let numbers = wanted
        .split_once("..")
        .and_then(|(first, end)| Some(first.parse::<u64>().ok()?..end.parse::<u64>().ok()?));
    let seeds = numbers.expect("OTTLA_SIM_SEEDS=FIRST..END");
    println!("groups: {} seeds, {:?}", seeds.end - seeds.start, run_all(seeds));
}
