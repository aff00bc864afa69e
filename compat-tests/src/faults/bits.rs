//! Flipped bits: a data directory is made, one bit of one file is turned over, the broker started on it.
//! What is served is what was written; what is damaged is named, and refused where it cannot be made anew;
//! what can be made anew is.

use super::wire::{self, Account, CORRUPT, Place};
use super::{Counts, Scene, judged};
use crate::broker::{Broker, Kind, Stop};
use crate::restart::output;
use crate::restart::state::Client;
use crate::verdict::Test;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A kind of file and what damage to it may do.
struct Target {
    name: &'static str,
    /// How its path ends, below the data directory; `*` stands for the name of a segment.
    file: &'static str,
    last: bool,
    may: May,
}

#[derive(Clone, Copy, PartialEq)]
enum May {
    /// Nothing at all: it is made anew.
    BeMadeAnew,
    /// Records are missing: they are refused, or were cut off.
    Lose,
    /// The broker does not start, and says why.
    Refuse,
}

#[rustfmt::skip] // columns
const TARGETS: [Target; 14] = [
    Target { name: "a sealed log", file: "bits-0/*.log", last: false, may: May::Lose },
    Target { name: "the active log", file: "bits-0/*.log", last: true, may: May::Lose },
    Target { name: "a sealed index", file: "bits-0/*.index", last: false, may: May::BeMadeAnew },
    Target { name: "the active index", file: "bits-0/*.index", last: true, may: May::BeMadeAnew },
    Target { name: "a sealed time index", file: "bits-0/*.timeindex", last: false, may: May::BeMadeAnew },
    Target { name: "the active time index", file: "bits-0/*.timeindex", last: true, may: May::BeMadeAnew },
    Target { name: "a producer snapshot", file: "bits-0/*.snapshot", last: true, may: May::BeMadeAnew },
    Target { name: "leader epochs", file: "bits-0/leader-epoch-checkpoint", last: true, may: May::BeMadeAnew },
    Target { name: "a topic id", file: "bits-0/partition.metadata", last: true, may: May::BeMadeAnew },
    Target { name: "recovery points", file: "recovery-point-offset-checkpoint", last: true, may: May::BeMadeAnew },
    Target { name: "high watermarks", file: "replication-offset-checkpoint", last: true, may: May::BeMadeAnew },
    Target { name: "meta.properties", file: "meta.properties", last: true, may: May::Refuse },
    Target { name: "the clean mark", file: ".kafka_cleanshutdown", last: true, may: May::BeMadeAnew },
    Target { name: "the metadata log", file: "__ottla_metadata/quorum.log", last: true, may: May::Refuse },
];

pub fn names() -> impl Iterator<Item = &'static str> {
    TARGETS.iter().map(|target| target.name)
}

pub fn run(scene: &Scene) -> Vec<Test> {
    let bench = match Bench::make(scene) {
        Ok(bench) => bench,
        Err(why) => return names().map(|name| Test::fail(name, why.clone())).collect(),
    };
    let mut bench = bench;
    let numbered = TARGETS.iter().enumerate();
    numbered.map(|(at, target)| judged(target.name, bench.flips(target, at as u64))).collect()
}

/// The directory as it was left, twice, and what is in it.
struct Bench<'a> {
    scene: &'a Scene<'a>,
    broker: Broker,
    /// After SIGTERM, after kill -9.
    left: [PathBuf; 2],
    account: Account,
    times: Vec<Value>,
}

const FIRST: i64 = wire::FIRST_MS as i64;

const PLACES: [(&str, i32); 2] = [("bits", 0), ("bits", 1)];

impl<'a> Bench<'a> {
    fn make(scene: &'a Scene<'a>) -> Result<Bench<'a>, String> {
        let mut settings = scene.folder.settings()?;
        let every = "replica.high.watermark.checkpoint.interval.ms";
        settings.properties.insert(every.into(), "200".into());
        let broker = Broker::start(Kind::Ottla, scene.places, "faults-bits", &settings)?;
        let left = ["clean", "killed"].map(|name| broker.room.join(name));
        let (account, times) = (Account::default(), Vec::new());
        let mut bench = Bench { scene, broker, left, account, times };
        let mut client = bench.client()?;
        wire::must_create(&mut client, "bits", 2, &[("segment.bytes", "1048576")])?;
        for round in 0..80 {
            for place in PLACES {
                // Batches of many sizes: indexes have an entry for some of them.
                let code = bench.account.put(&mut client, place, 1 + round % 9, 4_000)?;
                if code != 0 {
                    return Err(format!("{place:?} answers {code}"));
                }
            }
        }
        bench.times = times_of(&mut client)?;
        let data = bench.broker.data();
        bench.broker.stop(Stop::Term)?;
        copy(&data, &bench.left[0])?;
        bench.broker.start_again()?;
        // Until the checkpoints are those of the new start.
        let mut client = bench.client()?;
        for place in PLACES {
            bench.account.put(&mut client, place, 3, 4_000)?;
        }
        std::thread::sleep(std::time::Duration::from_millis(600));
        bench.broker.stop(Stop::Kill)?;
        copy(&data, &bench.left[1])?;
        Ok(bench)
    }

    fn client(&self) -> Result<Client, String> {
        wire::open(self.scene.places, &self.broker.bootstrap())
    }

    fn flips(&mut self, target: &Target, salt: u64) -> Result<Counts, String> {
        let mut random = self.scene.random(100 + salt);
        let rounds = if self.scene.is_long() { 200 } else { 8 };
        let (mut flipped, mut named) = (0, 0);
        for round in 0..rounds {
            let left = self.left[round % 2].clone();
            let data = self.broker.data();
            let _ = std::fs::remove_dir_all(&data);
            copy(&left, &data)?;
            let Some(path) = find(&data, target)? else { continue };
            let mut bytes = std::fs::read(&path).map_err(|e| format!("{path:?}: {e}"))?;
            if bytes.is_empty() {
                continue;
            }
            // The fronts of files have what is looked at first.
            let near = if round % 4 < 2 { bytes.len().min(80) } else { bytes.len() };
            let (at, bit) = (random(near as u64) as usize, random(8));
            // The very first byte is looked at in every file.
            let at = if round < 2 { 0 } else { at };
            bytes[at] ^= 1 << bit;
            std::fs::write(&path, &bytes).map_err(|e| format!("{path:?}: {e}"))?;
            flipped += 1;
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_clean = round % 2 == 0;
            let told = self.trial(target, &file, is_clean);
            let told = told.map_err(|why| {
                format!(
                    "bit {bit} of byte {at} of {file} ({}): {why}",
                    if is_clean { "clean" } else { "killed" }
                )
            })?;
            named += usize::from(told);
        }
        let mut counts = vec![("bits flipped", flipped)];
        // Not every entry of an index is looked at.
        if !target.file.ends_with("index") || named > 0 {
            counts.push(("starts that named the file", named));
        }
        Ok(counts)
    }

    /// Whether the broker named the file.
    fn trial(&mut self, target: &Target, file: &str, is_clean: bool) -> Result<bool, String> {
        let seen = self.broker.log().len();
        if let Err(why) = self.broker.start_again() {
            if target.may != May::Refuse || !why.contains(file) {
                return Err(format!("it does not start: {why}"));
            }
            return Ok(true);
        }
        let served = self.served(target, is_clean);
        let log = self.broker.log();
        let named = log.get(seen..).unwrap_or_default().lines().any(|line| line.contains(file));
        self.broker.stop(Stop::Kill)?;
        let whole = served?;
        if !whole && !named {
            return Err("records are missing, and the log does not name the file".into());
        }
        // What was found at one start does not stop the next.
        self.broker.start_again().map_err(|why| format!("the second start: {why}"))?;
        self.broker.stop(Stop::Term)?;
        Ok(named)
    }

    /// Whether all is there; an error: what is there is wrong.
    fn served(&mut self, target: &Target, is_clean: bool) -> Result<bool, String> {
        let mut client = self.client()?;
        let mut whole = true;
        for (topic, partition) in PLACES {
            let place: Place = (topic.into(), partition);
            let found = wire::read(&mut client, &place, true)?;
            if ![0, CORRUPT].contains(&found.code) {
                return Err(format!("{place:?} answers {}", found.code));
            }
            self.account.check(&place, &found, false)?;
            // The last batches were written after the clean stop.
            let all = self.account.check(&place, &found, true).is_ok();
            let end = found.values.keys().next_back().map_or(0, |last| last + 1);
            let until = self.account.end(&place) - if is_clean { 3 } else { 0 };
            let complete = all || (found.code == 0 && end >= until);
            whole &= complete;
            if !complete && target.may != May::Lose {
                return Err(format!("{place:?} ends at {end} with code {}", found.code));
            }
        }
        let mut times = times_of(&mut client)?;
        if !is_clean || target.may == May::Lose {
            times.clear();
        }
        for (now, before) in times.iter().zip(&self.times) {
            if now != before {
                return Err(format!("by time {now}, before {before}"));
            }
        }
        Ok(whole)
    }
}

/// Where timestamps are found: the largest, and the first at or above some.
fn times_of(client: &mut Client) -> Result<Vec<Value>, String> {
    let mut found = Vec::new();
    for timestamp in [-3, 1_600_000_000_000, FIRST + 200, FIRST + 500, FIRST + 700] {
        let parts: Vec<Value> = (0..2)
            .map(|partition| json!({ "partitionIndex": partition, "currentLeaderEpoch": -1, "timestamp": timestamp }))
            .collect();
        let topics = json!([{ "name": "bits", "partitions": parts }]);
        let asked = json!({ "replicaId": -1, "isolationLevel": 0, "topics": topics });
        let answer = client.ask("ListOffsets", 7, asked)?;
        let rows = answer["topics"][0]["partitions"].as_array().cloned().unwrap_or_default();
        for row in rows {
            found.push(json!([
                timestamp,
                row["partitionIndex"],
                row["errorCode"],
                row["timestamp"],
                row["offset"]
            ]));
        }
    }
    Ok(found)
}

fn find(data: &Path, target: &Target) -> Result<Option<PathBuf>, String> {
    let Some((folder, suffix)) = target.file.split_once("/*") else {
        let path = data.join(target.file);
        return Ok(path.exists().then_some(path));
    };
    let entries = std::fs::read_dir(data.join(folder)).map_err(|e| format!("{folder}: {e}"))?;
    let named = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_suffix(suffix).is_some_and(|stem| stem.bytes().all(|b| b.is_ascii_digit()))
    };
    let mut found: Vec<PathBuf> = entries.flatten().map(|e| e.path()).filter(named).collect();
    found.sort();
    Ok(if target.last { found.pop() } else { found.into_iter().next() })
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let words = ["-a", "--reflink=auto", &from.display().to_string(), &to.display().to_string()];
    output(super::disk::command("cp", &words)).map(|_| ())
}
