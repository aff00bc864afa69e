//! Compaction: the same keyed batches go to the broker and to an Apache Kafka beside it; once both have
//! compacted all that they may, a real client must read the same records under the same offsets from both.
//! Then Kafka's dumper reads the files, and the broker opens them after kill -9. The offsets topic compacts
//! too, and the coordinator knows the last commits from what is left.

mod load;

use crate::broker::{Broker, Kind, Stop, data};
use crate::folder::Folder;
use crate::places::Places;
use crate::restart::state::{self, Client};
use crate::restart::{output, python, tools};
use crate::verdict::Test;
use std::process::Command;
use std::time::{Duration, Instant};

const TOPIC: &str = "table";
/// Of whose partitions offsets are committed.
const COMMITTED: &str = "committed";
const OFFSETS: &str = "__consumer_offsets";
/// For the cleaners, which look for work ten times a second.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn run(places: &Places, folder: &Folder, kind: Kind) -> Result<Vec<Test>, String> {
    let settings = folder.settings()?;
    let mut broker = Broker::start(kind, places, "compaction", &settings)?;
    let kafka = Broker::start(Kind::Kafka, places, "compaction-beside", &settings)?;
    let mut tests = Vec::new();
    let sent = load::records();
    let mut actives = Vec::new();
    for broker in [&broker, &kafka] {
        let mut client = Client::open(places, &broker.bootstrap())?;
        load::send(&mut client, TOPIC, &sent)?;
        actives.push(compacted(broker, TOPIC)?);
    }
    let read = |broker: &Broker| read_all(places, folder, broker);
    let (left, beside) = (read(&broker)?, read(&kafka)?);
    tests.push(Test::of("each key has its last value", load::judge(&sent, &left, actives[0])));
    tests.push(Test::of("what is left is what Kafka leaves", same(&left, &beside)));
    drop(kafka);
    tests.push(Test::of("committed offsets outlive compaction", commits(places, &mut broker)));
    let again = read(&broker)?;
    tests.push(Test::of("kill -9 changes nothing that is left", same(&again, &left)));
    broker.stop(Stop::Term)?;
    tests.push(Test::of("files of the swap are gone", swapped(&broker)));
    tests.extend(tools::dump_log(places, &broker));
    Ok(tests)
}

/// For the self-check: the judge names what is planted.
pub fn notices() -> Result<(), String> {
    load::check_the_judge()
}

fn read_all(places: &Places, folder: &Folder, broker: &Broker) -> Result<Vec<String>, String> {
    let mut script = Command::new(python(places)?);
    script.arg(folder.path.join("read_all.py")).args([&broker.bootstrap(), TOPIC]);
    Ok(output(script)?.lines().map(String::from).collect())
}

fn same(found: &[String], wanted: &[String]) -> Result<(), String> {
    let differs = found.iter().zip(wanted).find(|(found, wanted)| found != wanted);
    match differs {
        Some((found, wanted)) => Err(format!("`{found}` instead of `{wanted}`")),
        None if found.len() == wanted.len() => Ok(()),
        None => Err(format!("{} records instead of {}", found.len(), wanted.len())),
    }
}

/// Waits until the broker's checkpoint says that all below the active segment is compacted.
fn compacted(broker: &Broker, topic: &str) -> Result<i64, String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let active = data::bases(&broker.data(), topic, ".log").last().copied();
        let done = data::checkpoint(&broker.data(), "cleaner-offset-checkpoint", topic);
        if let (Some(active @ 1..), Some(done)) = (active, done)
            && done == active
        {
            return Ok(active);
        }
        if Instant::now() > deadline {
            let kind = broker.kind;
            return Err(format!("{kind}: {topic} is compacted to {done:?}, of {active:?}"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Commits until the offsets topic has rolled, waits for its compaction, kills, and asks.
fn commits(places: &Places, broker: &mut Broker) -> Result<(), String> {
    let mut client = Client::open(places, &broker.bootstrap())?;
    state::create_topic(places, &broker.bootstrap(), COMMITTED, load::PARTITIONS)?;
    let last = load::commit_much(&mut client, COMMITTED)?;
    let active = compacted(broker, OFFSETS)?;
    broker.restart(Stop::Kill)?;
    let mut client = Client::open(places, &broker.bootstrap())?;
    let found = load::committed(&mut client, COMMITTED)?;
    match found {
        found if found == last && active > last => Ok(()),
        found => Err(format!("{found} is committed, not {last}; compacted to {active}")),
    }
}

/// The files that a swap goes through, and deleted ones, are not there after a stop and their delay.
fn swapped(broker: &Broker) -> Result<(), String> {
    let names = data::files(&broker.data(), TOPIC);
    if names.is_empty() {
        return Err("the partition has no files".into());
    }
    let stray = |name: &&String| name.ends_with(".cleaned") || name.ends_with(".swap");
    names.iter().find(stray).map_or(Ok(()), |name| Err(format!("{name} is left")))
}
