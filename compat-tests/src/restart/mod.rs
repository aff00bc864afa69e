//! Restarts and kill -9: nothing acknowledged is lost, groups resume, the files on disk are Kafka's.
//! Real clients make the load (`restart/*.py`), Kafka's own tools read what is left.

pub mod history;
pub mod load;
pub mod state;
mod sync_calls;
pub mod tools;

use crate::broker::{Broker, Kind, Stop};
use crate::folder::Folder;
use crate::places::Places;
use crate::verdict::Test;
use load::{Load, script};
use std::path::PathBuf;
use std::process::Command;

/// kill -9 under load, in one run of the suite.
const KILLS: usize = 5;

pub fn run(places: &Places, folder: &Folder, kind: Kind) -> Result<Vec<Test>, String> {
    let mut tests =
        vec![Test::of("the checker names planted anomalies", history::check_the_checker())];
    let scene = Scene { places };
    let mut broker = Broker::start(kind, places, "restart", &folder.settings()?)?;
    tests.push(Test::of("idempotent load through kill -9", load(places, &mut broker)));
    for (how, name) in [(Stop::Term, "SIGTERM"), (Stop::Kill, "kill -9")] {
        tests.push(Test::of(
            format!("a group resumes after {name}"),
            scene.group(&mut broker, how, name),
        ));
        tests.push(Test::of(
            format!("state after {name}"),
            state::survives(places, &mut broker, how),
        ));
    }
    tests.extend(tools::console_consumer(places, &broker));
    let code = broker.stop(Stop::Term);
    let clean = code.and_then(|code| match (kind, code) {
        // The JVM reports the signal that ended it.
        (Kind::Kafka, Some(0 | 143)) | (Kind::Ottla, Some(0)) => Ok(()),
        (_, code) => Err(format!("exit code {code:?}")),
    });
    tests.push(Test::of("SIGTERM ends well", clean));
    tests.extend(tools::dump_log(places, &broker));
    drop(broker);
    tests.extend(sync_calls::run(places, folder, kind));
    Ok(tests)
}

/// For the self-check: the checker of histories names what is planted.
pub fn notices() -> Result<(), String> {
    history::check_the_checker()
}

pub fn python(places: &Places) -> Result<PathBuf, String> {
    let room = format!("confluent-kafka-{}", places.pin("CONFLUENT_KAFKA")?);
    let python = places.cache.join(room).join("bin/python");
    if python.exists() { Ok(python) } else { Err(format!("{python:?} is missing: run setup")) }
}

/// A producer writes through kills; then every acknowledged record is looked for.
fn load(places: &Places, broker: &mut Broker) -> Result<(), String> {
    state::create_topic(places, &broker.bootstrap(), "load", 4)?;
    let load = Load { name: "load", outages: KILLS, records: 400, per_second: 2000 };
    load.run(places, broker, |broker, _| broker.restart(Stop::Kill)).map(|_| ())
}

struct Scene<'a> {
    places: &'a Places,
}

impl Scene<'_> {
    fn group(&self, broker: &mut Broker, how: Stop, name: &str) -> Result<(), String> {
        let topic = format!("group-{}", name.replace(' ', ""));
        let bootstrap = broker.bootstrap();
        state::create_topic(self.places, &bootstrap, &topic, 1)?;
        state::produce(self.places, &bootstrap, &topic, &["a", "b", "c"])?;
        let read = |count: &str| {
            output(script(
                self.places,
                "group.py",
                &[&bootstrap, &topic, &format!("g-{topic}"), count],
            )?)
        };
        let before = read("2")?;
        broker.restart(how)?;
        let after = read("1")?;
        match (before.trim(), after.trim()) {
            ("a b", "c") => Ok(()),
            pair => Err(format!("read {pair:?}")),
        }
    }
}

/// What a program printed; an error if it failed.
pub fn output(mut command: Command) -> Result<String, String> {
    let done = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_string();
    if done.status.success() {
        return Ok(text(&done.stdout));
    }
    let said = text(&done.stderr);
    let lines: Vec<&str> = said.lines().filter(|l| !l.starts_with("SLF4J")).collect();
    Err(lines[lines.len().saturating_sub(5)..].join(" | "))
}
