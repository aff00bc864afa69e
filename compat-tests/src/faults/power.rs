//! Power loss: the broker's data is on a disk that stops taking writes, journal included; then the broker is
//! killed and the disk mounted again. Three kinds of promise are looked at: a topic that flushes each
//! record, one that does not, and topics themselves.

use super::disk::Disk;
use super::wire::{self, Account, Place};
use super::{Counts, Scene, judged};
use crate::broker::{Broker, Kind, Stop};
use crate::restart::load::Load;
use crate::verdict::Test;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const FLUSHED: &str = "power loss: flush.messages=1 loses nothing acknowledged";
const PLAIN: &str = "power loss: an unflushed log comes back as a valid prefix";
const TOPICS: &str = "power loss: no acknowledged topic is lost";
pub const NAMES: [&str; 3] = [FLUSHED, PLAIN, TOPICS];

/// The second lets file sizes reach the disk before their data.
const MOUNTS: [&str; 2] = ["commit=1", "commit=1,data=writeback,nodelalloc"];
const PARTITIONS: i32 = 3;

/// What is written beside the load.
#[derive(Default)]
struct Beside {
    plain: Account,
    /// Acknowledged.
    topics: Vec<String>,
    asked: usize,
}

struct Outages {
    disk: Disk,
    losses: usize,
    /// Records of the unflushed topic that the losses took, and those that they left.
    lost: usize,
    kept: usize,
    plain: Result<(), String>,
    topics: Result<(), String>,
}

pub fn run(scene: &Scene) -> Vec<Test> {
    let mut outages = None;
    let beside = Arc::new(Mutex::new(Beside::default()));
    let flushed = with_load(scene, &mut outages, &beside);
    let Some(outages) = outages else {
        let why = flushed.err().unwrap_or_default();
        return NAMES.iter().map(|name| Test::fail(*name, why.clone())).collect();
    };
    let topics = beside.lock().map_or(0, |beside| beside.topics.len());
    let (losses, lost, kept) = (outages.losses, outages.lost, outages.kept);
    let of_plain =
        |()| vec![("power losses", losses), ("records kept", kept), ("records lost", lost)];
    let of_topics = |()| vec![("power losses", losses), ("topics acknowledged", topics)];
    vec![
        judged(FLUSHED, flushed),
        judged(PLAIN, outages.plain.map(of_plain)),
        judged(TOPICS, outages.topics.map(of_topics)),
    ]
}

fn with_load(
    scene: &Scene,
    outages: &mut Option<Outages>,
    beside: &Arc<Mutex<Beside>>,
) -> Result<Counts, String> {
    let data = scene.places.room("faults-power-ottla")?.join("data");
    let disk = Disk::make(data, 512, MOUNTS[0])?;
    let mut broker =
        Broker::start(Kind::Ottla, scene.places, "faults-power", &scene.folder.settings()?)?;
    let mut client = wire::open(scene.places, &broker.bootstrap())?;
    let small = ("segment.bytes", "1048576");
    wire::must_create(&mut client, "flushed", 4, &[("flush.messages", "1"), small])?;
    wire::must_create(&mut client, "plain", PARTITIONS, &[small])?;
    let (plain, topics) = (Ok(()), Ok(()));
    let outages = outages.insert(Outages { disk, losses: 0, lost: 0, kept: 0, plain, topics });
    let (rounds, records) = if scene.is_long() { (200, 2_000) } else { (10, 300) };
    let load = Load { name: "flushed", outages: rounds, records, per_second: 4000 };
    let script = scene.folder.path.join("power_off.py");
    let mut random = scene.random(1);
    let mut writer = Writer::start(scene, &broker, beside)?;
    let acked = load.run(scene.places, &mut broker, |broker, round| {
        std::thread::sleep(Duration::from_millis(random(1_200)));
        // Some of the unflushed topic reaches the disk, as the system writes back when it likes:
        // what was written first goes first, and so the topic's id with the data.
        for partition in (0..PARTITIONS).filter(|_| random(3) > 0) {
            write_back(&broker.data().join(format!("plain-{partition}")))?;
        }
        std::thread::sleep(Duration::from_millis(random(100)));
        outages.lose_power(broker, &script, &mut writer, MOUNTS[(round + 1) % 2])?;
        outages.look(scene, broker, beside)?;
        writer = Writer::start(scene, broker, beside)?;
        Ok(())
    });
    writer.stop();
    // The disk goes after its broker.
    drop(broker);
    Ok(vec![("power losses", outages.losses), ("records acknowledged", acked?)])
}

fn write_back(partition: &Path) -> Result<(), String> {
    let logs = std::fs::read_dir(partition).map_err(|e| format!("{partition:?}: {e}"))?;
    for path in logs.flatten().map(|entry| entry.path()) {
        let is_id = path.file_name().is_some_and(|name| name == "partition.metadata");
        if is_id || path.extension().is_some_and(|extension| extension == "log") {
            let synced = std::fs::File::open(&path).and_then(|file| file.sync_data());
            synced.map_err(|e| format!("{path:?}: {e}"))?;
        }
    }
    Ok(())
}

impl Outages {
    fn lose_power(
        &mut self,
        broker: &mut Broker,
        script: &Path,
        writer: &mut Writer,
        mount: &str,
    ) -> Result<(), String> {
        // ext4's shutdown lets an fsync that it meets half-way say yes for what never reaches the disk.
        broker.freeze()?;
        self.disk.lose_power(script)?;
        broker.stop(Stop::Kill)?;
        writer.stop();
        self.disk.unmount()?;
        self.disk.mount(mount)?;
        self.losses += 1;
        broker.start_again().map_err(|why| format!("after power loss {}: {why}", self.losses))
    }

    fn look(
        &mut self,
        scene: &Scene,
        broker: &Broker,
        beside: &Mutex<Beside>,
    ) -> Result<(), String> {
        let mut client = wire::open(scene.places, &broker.bootstrap())?;
        let mut beside = beside.lock().map_err(|_| "the writer panicked")?;
        let missing = wire::missing(&mut client, &beside.topics)?;
        if !missing.is_empty() && self.topics.is_ok() {
            self.topics = Err(format!("after power loss {}: {missing:?}", self.losses));
        }
        for partition in 0..PARTITIONS {
            let place: Place = ("plain".into(), partition);
            let before = beside.plain.count();
            let outcome = wire::read(&mut client, &place, true).and_then(|found| {
                if found.code != 0 {
                    return Err(format!("{place:?} answers {}", found.code));
                }
                beside.plain.check(&place, &found, false)?;
                beside.plain.cut(&place, &found);
                self.kept += found.values.len();
                Ok(())
            });
            self.lost += before - beside.plain.count();
            if let (Err(why), Ok(())) = (outcome, &self.plain) {
                self.plain = Err(format!("after power loss {}: {why}", self.losses));
            }
        }
        Ok(())
    }
}

/// Writes to the unflushed topic and creates topics, until the broker goes away.
struct Writer {
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Writer {
    fn start(
        scene: &Scene,
        broker: &Broker,
        beside: &Arc<Mutex<Beside>>,
    ) -> Result<Writer, String> {
        let over = Arc::new(AtomicBool::new(false));
        let mut client = wire::open(scene.places, &broker.bootstrap())?;
        let (flag, beside) = (over.clone(), beside.clone());
        let thread = std::thread::spawn(move || {
            let mut round = 0;
            while !flag.load(Ordering::Relaxed) {
                let Ok(mut beside) = beside.lock() else { return };
                if beside.one_more(&mut client, round).is_err() {
                    return;
                }
                round += 1;
            }
        });
        Ok(Writer { over, thread: Some(thread) })
    }

    fn stop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Beside {
    fn one_more(
        &mut self,
        client: &mut crate::restart::state::Client,
        round: usize,
    ) -> Result<(), String> {
        self.plain.put(client, ("plain", round as i32 % PARTITIONS), 5, 300)?;
        if round.is_multiple_of(40) {
            self.asked += 1;
            let name = format!("topic-{}", self.asked);
            if wire::create(client, &name, 1, &[])? == 0 {
                self.topics.push(name);
            }
        }
        std::thread::sleep(Duration::from_millis(2));
        Ok(())
    }
}
