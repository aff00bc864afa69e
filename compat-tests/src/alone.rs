//! Suites that need no broker: the fuzz targets and the long simulation, both built from the sources.

use crate::places::Places;
use crate::verdict::{Test, Verdict};
use ottla::fuzz::TARGETS;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Coverage for libFuzzer; stable flags, no sanitizer.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-simplifycfg-branch-fold-threshold=0";
/// With a target no flag reaches build scripts.
const MACHINE: &str = "x86_64-unknown-linux-gnu";
const SECONDS_EACH: u64 = 60;
/// Of all targets together in the long run, which goes in rounds.
const EXECUTIONS: u64 = 1_000_000_000;
const SECONDS_EACH_ROUND: u64 = 300;
const SEEDS: std::ops::Range<u64> = 1_000..101_000;
const SEEDS_EACH: usize = 1_000;

/// A minute for each target.
pub fn fuzz(places: &Places) -> Result<Vec<Test>, String> {
    Ok(each_target(places, &build(places)?, SECONDS_EACH).0)
}

/// The same time for each target, until all together were executed often enough.
pub fn fuzz_long(places: &Places) -> Result<Vec<Test>, String> {
    let binary = build(places)?;
    let (mut executed, mut tests) = (0, Vec::new());
    while executed < EXECUTIONS && !tests.iter().any(|test: &Test| test.verdict == Verdict::Fail) {
        let (round, count) = each_target(places, &binary, SECONDS_EACH_ROUND);
        (tests, executed) = (round, executed + count);
        println!("fuzz: {executed} of {EXECUTIONS} executions");
    }
    Ok(tests)
}

/// Returns the program that has all targets.
fn build(places: &Places) -> Result<PathBuf, String> {
    let home = places.home.join("fuzz");
    let built = Command::new("cargo")
        .args(["build", "--release", "--quiet", "--target", MACHINE, "--target-dir"])
        .arg(places.cache.join("fuzz"))
        .env("RUSTFLAGS", COVERAGE)
        .current_dir(&home)
        .status();
    if !built.map_err(|e| format!("cargo: {e}"))?.success() {
        return Err("the fuzz targets cannot be built".to_owned());
    }
    Ok(places.cache.join("fuzz").join(MACHINE).join("release/ottla-fuzz"))
}

/// Returns how often all were executed, too.
fn each_target(places: &Places, binary: &Path, seconds: u64) -> (Vec<Test>, u64) {
    let next = AtomicUsize::new(0);
    let ended = Mutex::new(BTreeMap::new());
    let work = || {
        while let Some((name, _)) = TARGETS.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = one_target(places, binary, seconds, name);
            ended.lock().unwrap_or_else(PoisonError::into_inner).insert(*name, outcome);
        }
    };
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        (0..workers).for_each(|_| drop(scope.spawn(work)));
    });
    let (mut executed, mut tests) = (0, Vec::new());
    for (name, outcome) in ended.into_inner().unwrap_or_else(PoisonError::into_inner) {
        executed += outcome.as_ref().copied().unwrap_or(0);
        tests.push(Test::of(format!("fuzz {name}"), outcome.map(drop)));
    }
    println!("fuzz: {executed} executions of {} targets", tests.len());
    (tests, executed)
}

/// Returns how often it was executed.
fn one_target(places: &Places, binary: &Path, seconds: u64, name: &str) -> Result<u64, String> {
    // What was reached once is where the next run begins.
    let corpus = places.cache.join("fuzz-corpus").join(name);
    let found = places.room(&format!("fuzz-{name}"))?;
    std::fs::create_dir_all(&corpus).map_err(|e| format!("{corpus:?}: {e}"))?;
    let output = Command::new(binary)
        .args(["-max_len=4096", "-timeout=10", "-rss_limit_mb=2048"])
        .arg(format!("-max_total_time={seconds}"))
        .arg("-print_final_stats=1")
        .arg(format!("-artifact_prefix={}/", found.display()))
        .arg(&corpus)
        .env("OTTLA_FUZZ_TARGET", name)
        .output()
        .map_err(|e| format!("{binary:?}: {e}"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    let stat = "stat::number_of_executed_units:";
    let count = told.lines().find_map(|line| line.strip_prefix(stat)?.trim().parse().ok());
    let count: u64 = count.unwrap_or(0);
    println!("fuzz {name}: {count} executions");
    match output.status.success() && count > 0 {
        true => Ok(count),
        false => {
            let found = found.display();
            Err(format!("broken; keep the input of {found} in fuzz/findings/{name}"))
        }
    }
}

/// What begins the last line of each simulation; the test runner's dots may stand before it.
const SIMULATIONS: [&str; 2] = ["simulation:", "simulation of groups:"];

/// The broker in one thread on a simulated disk, and its groups' members, many seeds more than `cargo test` runs. A process for
/// each part: a life that was cut off leaves its runtime's descriptors behind.
pub fn simulation(places: &Places) -> Result<Vec<Test>, String> {
    SEEDS.step_by(SEEDS_EACH).map(|first| simulated(places, first)).collect()
}

fn simulated(places: &Places, first: u64) -> Result<Test, String> {
    let seeds = format!("{first}..{}", first + SEEDS_EACH as u64);
    let output = Command::new("cargo")
        .args(["test", "--release", "--quiet", "-p", "ottla", "--lib", "simulation_of_many"])
        .args(["--", "--ignored", "--nocapture"])
        .env("OTTLA_SIM_SEEDS", &seeds)
        .current_dir(places.home.join(".."))
        .output()
        .map_err(|e| format!("cargo: {e}"))?;
    let told = String::from_utf8_lossy(&output.stdout);
    let ended =
        SIMULATIONS.map(|name| told.lines().find_map(|line| line.find(name).map(|at| &line[at..])));
    for (name, line) in SIMULATIONS.iter().zip(ended) {
        println!("{}", line.unwrap_or(&format!("{name} not at its end")));
    }
    let outcome = match output.status.success() && ended.iter().all(Option::is_some) {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    };
    Ok(Test::of(format!("simulation of seeds {seeds}"), outcome))
}
