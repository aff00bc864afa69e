//! Several log directories with real clients: Kafka's tool describes them, its admin client moves replicas
//! under load, one directory fails alone. One of the three is a disk of its own, which loses its power.

mod failure;

use crate::broker::{Broker, Kind, Stop};
use crate::faults::disk::Disk;
use crate::folder::Folder;
use crate::places::Places;
use crate::restart::load::{Load, script};
use crate::restart::{history, output, state, tools};
use crate::verdict::Test;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const TOPIC: &str = "moved";
/// Of the disk that holds the second directory.
const DISK_MIB: u64 = 64;
const MOVES: usize = 3;

pub fn run(places: &Places, folder: &Folder, kind: Kind) -> Result<Vec<Test>, String> {
    let room = places.room(&format!("jbod-{}", kind.to_string().to_lowercase()))?;
    let mut disk = Disk::make(room.join("disk"), DISK_MIB, "")?;
    let dirs = [room.join("first"), disk.at.join("logs"), room.join("third")];
    let mut settings = folder.settings()?;
    let list: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
    settings.properties.insert("log.dirs".into(), list.join(","));
    let metadata = room.join("metadata").display().to_string();
    settings.properties.insert("metadata.log.dir".into(), metadata);
    let mut broker = Broker::start(kind, places, "jbod", &settings)?;
    let scene = Scene { places, dirs };
    state::create_topic(places, &broker.bootstrap(), TOPIC, 4)?;
    let mut tests = vec![
        Test::of("the tool describes three directories", scene.described(&broker)),
        Test::of("replicas move under load", scene.moves(&mut broker)),
    ];
    broker.restart(Stop::Term)?;
    tests.push(Test::of("all is there after a restart", scene.still_there(&broker)));
    tests.extend(failure::run(&scene, folder, &mut broker, &mut disk)?);
    Ok(tests)
}

pub struct Scene<'a> {
    pub places: &'a Places,
    /// The second one is on the disk.
    pub dirs: [PathBuf; 3],
}

impl Scene<'_> {
    /// What Kafka's tool says of the directories: path, error, and partitions.
    pub fn describe(&self, broker: &Broker) -> Result<Vec<Value>, String> {
        let mut tool = tools::tool(self.places, "org.apache.kafka.tools.LogDirsCommand")?;
        tool.args(["--describe", "--bootstrap-server", &broker.bootstrap()]);
        let printed = output(tool)?;
        let line = printed.lines().find(|line| line.starts_with('{'));
        let told: Value = line
            .and_then(|line| serde_json::from_str(line).ok())
            .ok_or_else(|| format!("no JSON in {printed}"))?;
        let rows = told["brokers"][0]["logDirs"].as_array().cloned();
        let rows = rows.ok_or_else(|| format!("no directories in {told}"))?;
        let known = |row: &Value| self.dirs.iter().any(|dir| row["logDir"] == *path(dir));
        match rows.len() == self.dirs.len() && rows.iter().all(known) {
            true => Ok(rows),
            false => Err(format!("other directories: {rows:?}")),
        }
    }

    /// Each partition is in one directory, the one it stands in on the disk.
    fn described(&self, broker: &Broker) -> Result<(), String> {
        let rows = self.describe(broker)?;
        if let Some(row) = rows.iter().find(|row| !row["error"].is_null()) {
            return Err(format!("an error: {row}"));
        }
        for partition in 0..4 {
            let name = format!("{TOPIC}-{partition}");
            let has = |row: &&Value| {
                let all = row["partitions"].as_array().into_iter().flatten();
                all.filter(|one| one["partition"] == *name && one["isFuture"] == false).count() == 1
            };
            let told: Vec<&Value> = rows.iter().filter(has).map(|row| &row["logDir"]).collect();
            let stands = self.dir_of(&name)?;
            if told != [&Value::from(path(&self.dirs[stands]))] {
                return Err(format!("{name} is said to be in {told:?}, not {stands}"));
            }
        }
        Ok(())
    }

    /// The only directory that has this partition's.
    pub fn dir_of(&self, partition: &str) -> Result<usize, String> {
        let has = |at: &usize| self.dirs[*at].join(partition).is_dir();
        let found: Vec<usize> = (0..self.dirs.len()).filter(has).collect();
        match found[..] {
            [only] => Ok(only),
            _ => Err(format!("{partition} is in {found:?}")),
        }
    }

    /// A producer writes, a consumer reads, replicas go from one directory to the next.
    fn moves(&self, broker: &mut Broker) -> Result<(), String> {
        let mut reader =
            tools::tool(self.places, "org.apache.kafka.tools.consumer.ConsoleConsumer")?;
        reader.args(["--bootstrap-server", &broker.bootstrap(), "--topic", TOPIC]);
        reader.args(["--from-beginning", "--timeout-ms", "15000"]);
        for shown in ["print.partition=true", "print.offset=true"] {
            reader.args(["--formatter-property", shown]);
        }
        let read = self.places.room("jbod-load")?.join("read");
        let file = std::fs::File::create(&read).map_err(|e| e.to_string())?;
        reader.stdin(Stdio::null()).stdout(file).stderr(Stdio::null());
        let mut reader = reader.spawn().map_err(|e| e.to_string())?;
        let load = Load { name: TOPIC, outages: MOVES, records: 400, per_second: 2000 };
        let loaded = load.run(self.places, broker, |broker, round| {
            let (partition, name) = (round % 2, format!("{TOPIC}-{}", round % 2));
            let to = &self.dirs[(self.dir_of(&name)? + 1) % self.dirs.len()];
            self.move_to(broker, partition, to)
        });
        let _ = reader.wait();
        loaded?;
        let text = std::fs::read_to_string(&read).map_err(|e| e.to_string())?;
        let plain = |line: &str| {
            let mut words = line.split('\t');
            let mut number = |front: &str| words.next()?.strip_prefix(front);
            let (partition, offset) = (number("Partition:")?, number("Offset:")?);
            Some(format!("{partition} {offset} {}\n", words.next()?))
        };
        let lines: String = text.lines().filter_map(plain).collect();
        history::check(&self.acked()?, &history::parse(&lines)?)
            .map_err(|why| format!("the consumer: {why}"))
    }

    fn acked(&self) -> Result<Vec<history::Line>, String> {
        let acked = self.places.room(&format!("{TOPIC}-load"))?.join("acked");
        let text = std::fs::read_to_string(&acked).map_err(|e| format!("{acked:?}: {e}"))?;
        history::parse(&text)
    }

    fn move_to(&self, broker: &Broker, partition: usize, to: &PathBuf) -> Result<(), String> {
        let mut java = Command::new("java");
        java.args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"]);
        java.arg(format!("{}/*", self.places.kafka_jars().display()));
        java.arg(self.places.home.join("jbod/Move.java"));
        java.args([&broker.bootstrap(), TOPIC, &partition.to_string()]).arg(to);
        output(java)?;
        let stands = &self.dirs[self.dir_of(&format!("{TOPIC}-{partition}"))?];
        if stands == to { Ok(()) } else { Err(format!("it is in {stands:?}, not {to:?}")) }
    }

    fn still_there(&self, broker: &Broker) -> Result<(), String> {
        let found = self.places.room("jbod-load")?.join("found").display().to_string();
        output(script(self.places, "read_all.py", &[&broker.bootstrap(), TOPIC, &found])?)?;
        let text = std::fs::read_to_string(&found).map_err(|e| format!("{found}: {e}"))?;
        history::check(&self.acked()?, &history::parse(&text)?)
    }
}

fn path(dir: &std::path::Path) -> String {
    dir.display().to_string()
}
