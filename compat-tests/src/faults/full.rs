//! Full disks: nothing is acknowledged that is not stored, no directory goes offline for it, the log says
//! so, and service returns by itself when space does.

use super::disk::Disk;
use super::wire::{self, Account, STORAGE};
use super::{Counts, Scene, judged};
use crate::broker::{Broker, Kind, Stop};
use crate::restart::state::Client;
use crate::verdict::Test;
use std::time::{Duration, Instant};

const RESERVE: &str = "full disk: below the reserve produce is refused, the rest goes on";
const FULL: &str = "full disk: without a reserve, to the last block";
pub const NAMES: [&str; 2] = [RESERVE, FULL];

const MIB: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(20);
/// The broker's words for it.
const SAID: &str = "log directory is full";
const TOPICS: [(&str, &str); 2] = [("eager", "1"), ("lazy", "9223372036854775807")];

pub fn run(scene: &Scene) -> Vec<Test> {
    vec![judged(RESERVE, reserve(scene)), judged(FULL, to_the_last_block(scene))]
}

struct Small<'a> {
    scene: &'a Scene<'a>,
    broker: Broker,
    disk: Disk,
    account: Account,
}

impl<'a> Small<'a> {
    fn start(scene: &'a Scene, name: &str, reserve: u64) -> Result<Small<'a>, String> {
        let data = scene.places.room(&format!("{name}-ottla"))?.join("data");
        let disk = Disk::make(data, 96, "commit=5")?;
        let mut settings = scene.folder.settings()?;
        let mut set = |key: &str, value: String| settings.properties.insert(key.into(), value);
        set("ottla.disk.reserve.bytes", reserve.to_string());
        set("replica.high.watermark.checkpoint.interval.ms", "500".into());
        let broker = Broker::start(Kind::Ottla, scene.places, name, &settings)?;
        let small = Small { scene, broker, disk, account: Account::default() };
        let mut client = small.client()?;
        for (topic, flush) in TOPICS {
            let configs = [("flush.messages", flush), ("segment.bytes", "1048576")];
            wire::must_create(&mut client, topic, 2, &configs)?;
        }
        Ok(small)
    }

    fn client(&self) -> Result<Client, String> {
        wire::open(self.scene.places, &self.broker.bootstrap())
    }

    /// One batch to each partition; the codes.
    fn round(&mut self, client: &mut Client) -> Result<Vec<i64>, String> {
        let mut codes = Vec::new();
        for (topic, _) in TOPICS {
            for partition in 0..2 {
                codes.push(self.account.put(client, (topic, partition), 8, 4_000)?);
            }
        }
        Ok(codes)
    }

    /// Writes until everything is refused; the only refusal is that of a disk.
    fn write_until_full(&mut self, client: &mut Client) -> Result<usize, String> {
        let deadline = Instant::now() + PATIENCE * 3;
        let mut rounds = 0;
        while Instant::now() < deadline {
            rounds += 1;
            let codes = self.round(client)?;
            if let Some(code) = codes.iter().find(|code| ![0, STORAGE, 7].contains(code)) {
                return Err(format!("refused with {code}"));
            }
            if codes.iter().all(|code| *code != 0) {
                return Ok(rounds);
            }
        }
        Err(format!("not full after {rounds} rounds"))
    }

    fn write_until_well(&mut self, client: &mut Client) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let codes = self.round(client)?;
            if codes.iter().all(|code| *code == 0) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("still refused with space again: {codes:?}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn check(&self, client: &mut Client) -> Result<(), String> {
        for place in self.account.places() {
            let found = wire::read(client, &place, true)?;
            if found.code != 0 {
                return Err(format!("{place:?} answers {}", found.code));
            }
            self.account.check(&place, &found, true)?;
        }
        Ok(())
    }

    fn log_says(&self, words: &str, wanted: bool) -> Result<(), String> {
        match self.broker.log().contains(words) == wanted {
            true => Ok(()),
            false => Err(format!("`{words}` in the log: {}", !wanted)),
        }
    }

    fn refused(&self) -> usize {
        self.account.refused.values().sum::<u64>() as usize
    }
}

fn reserve(scene: &Scene) -> Result<Counts, String> {
    let mut small = Small::start(scene, "faults-reserve", 16 * MIB)?;
    let mut client = small.client()?;
    commit(&mut client)?;
    small.disk.fill(24 * MIB)?;
    small.write_until_full(&mut client)?;
    small.log_says(SAID, true)?;
    // Nothing else is refused: reading, topics, offsets of groups.
    small.check(&mut client)?;
    wire::must_create(&mut client, "made-when-short", 2, &[])?;
    commit(&mut client)?;
    let refused = small.refused();
    small.disk.empty()?;
    small.write_until_well(&mut client)?;
    small.log_says("has room again", true)?;
    small.log_says("log directory offline", false)?;
    small.check(&mut client)?;
    small.broker.restart(Stop::Kill)?;
    small.check(&mut small.client()?)?;
    Ok(vec![("records acknowledged", small.account.count()), ("batches refused", refused)])
}

fn commit(client: &mut Client) -> Result<(), String> {
    let found = |answer: &serde_json::Value| answer["errorCode"] == 0;
    let asked = serde_json::json!({ "key": "full", "keyType": 0 });
    client.until("FindCoordinator", 3, asked, found)?;
    let offset = serde_json::json!({ "partitionIndex": 0, "committedOffset": 1 });
    let topics = serde_json::json!([{ "name": "lazy", "partitions": [offset] }]);
    let asked = serde_json::json!({ "groupId": "full", "topics": topics });
    let taken = |answer: &serde_json::Value| answer["topics"][0]["partitions"][0]["errorCode"] == 0;
    client.until("OffsetCommit", 8, asked, taken).map(|_| ())
}

fn to_the_last_block(scene: &Scene) -> Result<Counts, String> {
    let mut small = Small::start(scene, "faults-full", 0)?;
    let mut client = small.client()?;
    small.disk.fill(8 * MIB)?;
    small.write_until_full(&mut client)?;
    small.disk.fill(0)?;
    small.write_until_full(&mut client)?;
    small.log_says(SAID, true)?;
    // A topic is made or refused; if it is made, it is there and served once space is back.
    let mut made = Vec::new();
    for number in 0..4 {
        let name = format!("at-the-end-{number}");
        if let Ok(0) = wire::create(&mut small.client()?, &name, 3, &[]) {
            made.push(name);
        }
    }
    small.check(&mut client)?;
    let refused = small.refused();
    // A kill while the disk is full: the next start may refuse, but with a sentence.
    small.broker.stop(Stop::Kill)?;
    let again = small.broker.start_again();
    if let Err(why) = &again
        && !why.contains("No space left")
    {
        return Err(format!("start on a full disk: {why}"));
    }
    small.disk.empty()?;
    if again.is_err() {
        small.broker.start_again()?;
    }
    let mut client = small.client()?;
    small.write_until_well(&mut client)?;
    let missing = wire::missing(&mut client, &made)?;
    if !missing.is_empty() {
        return Err(format!("acknowledged topics are lost: {missing:?}"));
    }
    for name in &made {
        let deadline = Instant::now() + PATIENCE;
        while small.account.put(&mut client, (name, 2), 1, 100)? != 0 {
            if Instant::now() > deadline {
                return Err(format!("{name} is not served with space again"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    small.log_says("log directory offline", false)?;
    small.check(&mut client)?;
    Ok(vec![("records acknowledged", small.account.count()), ("batches refused", refused)])
}
