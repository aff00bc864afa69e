//! Running simulations seed by seed.

use std::ops::Range;
use std::panic::{RefUnwindSafe, catch_unwind};

/// What each of `seeds` came to; a failure names its seed.
pub fn each<O>(
    seeds: Range<u64>,
    run: impl Fn(u64) -> O + RefUnwindSafe,
) -> impl Iterator<Item = O> {
    seeds.map(move |seed| {
        let ran = catch_unwind(|| run(seed));
        ran.unwrap_or_else(|_| panic!("seed {seed} failed, see above"))
    })
}

/// `OTTLA_SIM_SEEDS=FIRST..END`, for long runs.
pub fn wanted() -> Range<u64> {
    let wanted = std::env::var("OTTLA_SIM_SEEDS").unwrap_or("1000..11000".to_owned());
    let numbers = wanted
        .split_once("..")
        .and_then(|(first, end)| Some(first.parse::<u64>().ok()?..end.parse::<u64>().ok()?));
    numbers.expect("OTTLA_SIM_SEEDS=FIRST..END")
}
