//! The disk of one directory loses its power: its partitions are refused and led by nobody, the others go on,
//! also after a restart without it; once it is back all that was acknowledged is there.

use super::Scene;
use crate::broker::{Broker, Stop};
use crate::faults::disk::Disk;
use crate::faults::wire::{self, Account, STORAGE};
use crate::folder::Folder;
use crate::restart::state::{self, Client};
use crate::verdict::Test;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const NAMES: [&str; 5] = [
    "only the failed directory's partitions are refused",
    "the tool names the directory that failed",
    "nobody leads its partitions",
    "a start without the directory serves the others",
    "with the directory back all is there",
];
const TOPICS: usize = 6;
const PATIENCE: Duration = Duration::from_secs(30);
const LEADER_NOT_AVAILABLE: i64 = 5;

pub fn run(
    scene: &Scene,
    folder: &Folder,
    broker: &mut Broker,
    disk: &mut Disk,
) -> Result<Vec<Test>, String> {
    let mut client = wire::open(scene.places, &broker.bootstrap())?;
    let topics: Vec<String> = (0..TOPICS).map(|number| format!("topic{number}")).collect();
    let mut account = Account::default();
    for topic in &topics {
        state::create_topic(scene.places, &broker.bootstrap(), topic, 1)?;
        put(&mut client, &mut account, topic, 0)?;
    }
    let mut split: [Vec<&str>; 2] = Default::default();
    for topic in &topics {
        let on_disk = scene.dir_of(&format!("{topic}-0"))? == 1;
        split[usize::from(on_disk)].push(topic);
    }
    let [sound, hit] = split;
    if sound.is_empty() || hit.is_empty() {
        return Err(format!("{sound:?} beside {hit:?}: nothing to tell apart"));
    }
    disk.lose_power(&folder.path.join("../faults/power_off.py"))?;
    let mut tests = Vec::new();
    let mut refused = || {
        refused_at_last(&mut client, &mut account, hit[0])?;
        for topic in hit.iter().chain(&sound) {
            let wanted = if hit.contains(topic) { STORAGE } else { 0 };
            put(&mut client, &mut account, topic, wanted)?;
        }
        Ok(())
    };
    tests.push(Test::of(NAMES[0], refused()));
    tests.push(Test::of(NAMES[1], told(scene, broker)));
    tests.push(Test::of(NAMES[2], unled(&mut client, &sound, &hit)));
    broker.stop(Stop::Kill)?;
    disk.unmount()?;
    let away = &scene.dirs[1];
    std::fs::write(away, "no directory").map_err(|e| format!("{away:?}: {e}"))?;
    broker.start_again()?;
    let without = without(scene, broker, &mut account, (&sound, &hit));
    tests.push(Test::of(NAMES[3], without));
    broker.stop(Stop::Term)?;
    std::fs::remove_file(away).map_err(|e| format!("{away:?}: {e}"))?;
    disk.mount("")?;
    broker.start_again()?;
    tests.push(Test::of(NAMES[4], all_there(scene, broker, &mut account)));
    Ok(tests)
}

fn put(client: &mut Client, account: &mut Account, topic: &str, wanted: i64) -> Result<(), String> {
    let code = account.put(client, (topic, 0), 5, 200)?;
    if code == wanted { Ok(()) } else { Err(format!("{topic} is answered with {code}")) }
}

/// Never an ok. Kafka may answer the first appends with UNKNOWN_SERVER_ERROR, before it gives the directory up.
fn refused_at_last(client: &mut Client, account: &mut Account, topic: &str) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match account.put(client, (topic, 0), 5, 200)? {
            STORAGE => return Ok(()),
            0 => return Err(format!("{topic}: an append is acknowledged")),
            code if Instant::now() > deadline => {
                return Err(format!("{topic} is still answered with {code}"));
            }
            _ => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

fn told(scene: &Scene, broker: &Broker) -> Result<(), String> {
    let rows = scene.describe(broker)?;
    let is_right = |row: &&Value| {
        let failed = row["logDir"] == scene.dirs[1].display().to_string();
        row["error"].as_str().is_some_and(|error| error.contains("KafkaStorageException")) == failed
    };
    let wrong = rows.iter().find(|row| !is_right(row));
    wrong.map_or(Ok(()), |row| Err(row.to_string()))
}

/// Metadata has no leader for what was in the failed directory, and names its replica offline.
fn unled(client: &mut Client, sound: &[&str], hit: &[&str]) -> Result<(), String> {
    for (topics, leader, code, offline) in
        [(hit, -1, LEADER_NOT_AVAILABLE, json!([1])), (sound, 1, 0, json!([]))]
    {
        for topic in topics {
            let asked = json!({ "topics": [{ "name": topic }], "allowAutoTopicCreation": false });
            let is_so = |answer: &Value| {
                let row = &answer["topics"][0]["partitions"][0];
                row["leaderId"] == leader
                    && row["errorCode"] == code
                    && row["offlineReplicas"] == offline
            };
            client.until("Metadata", 12, asked, is_so)?;
        }
    }
    Ok(())
}

fn without(
    scene: &Scene,
    broker: &Broker,
    account: &mut Account,
    (sound, hit): (&[&str], &[&str]),
) -> Result<(), String> {
    let mut client = wire::open(scene.places, &broker.bootstrap())?;
    unled(&mut client, sound, hit)?;
    for topic in sound {
        let place = (topic.to_string(), 0);
        let found = wire::read(&mut client, &place, true)?;
        account.check(&place, &found, true)?;
        put(&mut client, account, topic, 0)?;
    }
    told(scene, broker)
}

fn all_there(scene: &Scene, broker: &Broker, account: &mut Account) -> Result<(), String> {
    let mut client = wire::open(scene.places, &broker.bootstrap())?;
    for place in account.places() {
        let asked = json!({ "topics": [{ "name": place.0 }], "allowAutoTopicCreation": false });
        let led = |answer: &Value| answer["topics"][0]["partitions"][0]["leaderId"] == 1;
        client.until("Metadata", 12, asked, led)?;
        let found = wire::read(&mut client, &place, true)?;
        account.check(&place, &found, true)?;
        put(&mut client, account, &place.0, 0)?;
    }
    Ok(())
}
