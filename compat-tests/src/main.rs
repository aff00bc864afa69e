//! The proof that foreign clients work on Ottla exactly as on Apache Kafka. Called by `compat-tests/run`.
//! Lives here: the command line, the order of a run. May not live here: tests, knowledge of the wire.

mod alone;
mod broker;
mod compaction;
mod differential;
mod faults;
mod folder;
mod formats;
mod from_kafka;
mod hostile;
mod jbod;
mod kafka_tests;
mod options;
mod places;
mod proxy;
mod report;
mod restart;
mod retention;
mod self_check;
mod suite;
mod tables;
mod verdict;
mod wire;

use broker::Kind;
use folder::judge::{self, Judgement};
use folder::{expect, oracle::Oracle};
use options::{Mode, Options};
use places::Places;
use report::Row;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;
use suite::{Body, Suite};
use verdict::{Test, Verdict};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, socket, order @ ..] = words.as_slice()
        && word == "ctl"
    {
        return finish(broker::control::order(socket.as_ref(), order).map(|()| 0));
    }
    if let [word, name] = words.as_slice()
        && word == "keep-format"
    {
        return finish(Places::find().and_then(|places| formats::keep(&places, name)).map(|()| 0));
    }
    finish(Options::parse(&words).and_then(|options| run(&options)))
}

fn finish(outcome: Result<u8, String>) -> ExitCode {
    outcome.map_or_else(
        |why| {
            eprintln!("error: {why}");
            ExitCode::from(2)
        },
        ExitCode::from,
    )
}

/// Not all was run, but what ran is well.
const NOT_ALL: u8 = 3;

fn run(options: &Options) -> Result<u8, String> {
    let mut places = Places::find()?;
    places.set = options.set;
    let suites = suite::all(&places)?;
    let chosen = options.choose(&suites)?;
    let rows = match options.mode {
        Mode::Ottla => {
            let serves = self_check::served(&places)?;
            one_by_one(&chosen, |suite| against_ottla(&places, suite, &serves))
        }
        Mode::Oracle => one_by_one(&chosen, |suite| against_kafka(&places, suite)),
        // Scripts that ask a dead port wait most of the time.
        Mode::SelfCheck(kind) => {
            side_by_side(&chosen, |suite| self_check::run(&places, suite, kind))
        }
    };
    let well = report::close(&rows);
    if well {
        let _ = std::fs::remove_dir_all(&places.work);
    } else {
        eprintln!("what brokers and clients wrote: {}", places.work.display());
    }
    let left: Vec<&str> = suites
        .iter()
        .map(|suite| suite.folder.name.as_str())
        .filter(|name| !chosen.iter().any(|suite| suite.folder.name == **name))
        .collect();
    if options.partial() {
        left.iter().for_each(|name| println!("NOT RUN {name}"));
    }
    Ok(match (well, options.partial()) {
        (false, _) => 1,
        (true, true) => NOT_ALL,
        (true, false) => 0,
    })
}

type Outcome = Result<Row, String>;

fn one_by_one(suites: &[&Suite], run: impl Fn(&Suite) -> Outcome) -> Vec<Row> {
    suites.iter().map(|suite| timed(suite, &run)).collect()
}

/// So many self-checks at once.
const BESIDE: usize = 4;

fn side_by_side(suites: &[&Suite], run: impl Fn(&Suite) -> Outcome + Sync) -> Vec<Row> {
    let run = &run;
    let group = |group: &[&Suite]| {
        std::thread::scope(|scope| {
            let started: Vec<_> =
                group.iter().map(|suite| scope.spawn(|| timed(suite, run))).collect();
            started.into_iter().filter_map(|thread| thread.join().ok()).collect::<Vec<_>>()
        })
    };
    suites.chunks(BESIDE).flat_map(group).collect()
}

fn timed(suite: &Suite, run: impl Fn(&Suite) -> Outcome) -> Row {
    let start = Instant::now();
    println!("--- {}", suite.folder.name);
    let failed = |why: String| {
        let judgement = Judgement { problems: vec![why], ..Judgement::default() };
        Row { suite: String::new(), kafka: None, ottla: None, judgement, took: start.elapsed() }
    };
    let row = run(suite).unwrap_or_else(failed);
    Row { suite: suite.folder.name.clone(), took: start.elapsed(), ..row }
}

fn against_ottla(places: &Places, suite: &Suite, serves: &[String]) -> Result<Row, String> {
    // A record that cannot be used is told before minutes are spent.
    let oracle = match suite.body {
        Body::Client | Body::Own(_) => Some(Oracle::usable(places, &suite.folder)?),
        Body::Differential | Body::Beside(_) | Body::Probes | Body::Alone(_) => None,
    };
    let tests = suite.run(places, Kind::Ottla)?;
    let kafka: BTreeMap<String, Verdict> = match suite.body {
        Body::Probes => suite.run(places, Kind::Kafka)?.iter().map(recorded).collect(),
        // Kafka ran beside it, or is what the tables were compared with: its answers are the right ones.
        Body::Differential | Body::Beside(_) | Body::Alone(_) => {
            tests.iter().map(|test| (test.name.clone(), Verdict::Pass)).collect()
        }
        Body::Client | Body::Own(_) => oracle.map_or_else(BTreeMap::new, |oracle| oracle.tests),
    };
    let allowed = expect::load(&suite.folder.path)?;
    let serves = |name: &str| serves.iter().any(|served| served == name);
    let judgement = judge::judge(&kafka, &tests, &allowed, serves);
    let ottla = Some(report::count_tests(&tests));
    let kafka = Some(report::count(kafka.values()));
    Ok(Row { suite: String::new(), kafka, ottla, judgement, took: Default::default() })
}

fn recorded(test: &Test) -> (String, Verdict) {
    (test.name.clone(), test.verdict)
}

/// Runs a suite on Kafka: records what it did, or checks that the record holds.
fn against_kafka(places: &Places, suite: &Suite) -> Result<Row, String> {
    let tests = suite.run(places, Kind::Kafka)?;
    for test in tests.iter().filter(|test| test.verdict != Verdict::Pass) {
        println!("{:?} {} -- {}", test.verdict, test.name, test.detail);
    }
    let failing = |tests: &[Test]| -> Vec<String> {
        let failed = tests.iter().filter(|t| t.verdict == Verdict::Fail);
        failed.map(|t| format!("{}: {}", t.name, t.detail)).collect()
    };
    let problems = match suite.body {
        Body::Differential | Body::Beside(_) | Body::Alone(_) | Body::Probes => failing(&tests),
        Body::Client | Body::Own(_) => Oracle::record(places, &suite.folder, &tests)?,
    };
    let passed = tests.len() - problems.len().min(tests.len());
    let judgement = Judgement { passed, problems, allowed: 0 };
    let kafka = Some(report::count_tests(&tests));
    Ok(Row { suite: String::new(), kafka, ottla: None, judgement, took: Default::default() })
}
