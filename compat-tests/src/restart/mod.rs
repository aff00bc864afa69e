//! Restarts and kill -9: nothing acknowledged is lost, groups resume, the files on disk are Kafka's.
//! Real clients make the load (`restart/*.py`), Kafka's own tools read what is left.

mod history;
pub mod state;
mod sync_calls;
pub mod tools;

use crate::broker::{Broker, Kind, Stop};
use crate::folder::Folder;
use crate::places::Places;
use crate::verdict::Test;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// kill -9 under load, in one run of the suite.
const KILLS: usize = 5;

pub fn run(places: &Places, folder: &Folder, kind: Kind) -> Result<Vec<Test>, String> {
    let mut tests =
        vec![Test::of("the checker names planted anomalies", history::check_the_checker())];
    let scene = Scene { places, folder, python: python(places)? };
    let mut broker = Broker::start(kind, places, "restart", &folder.settings()?)?;
    tests.push(Test::of("idempotent load through kill -9", scene.load(&mut broker)));
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

fn python(places: &Places) -> Result<PathBuf, String> {
    let room = format!("confluent-kafka-{}", places.pin("CONFLUENT_KAFKA")?);
    let python = places.cache.join(room).join("bin/python");
    if python.exists() { Ok(python) } else { Err(format!("{python:?} is missing: run setup")) }
}

struct Scene<'a> {
    places: &'a Places,
    folder: &'a Folder,
    python: PathBuf,
}

impl Scene<'_> {
    fn script(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(self.folder.path.join(name)).args(arguments).stdin(Stdio::null());
        command
    }

    /// A producer writes through kills; then every acknowledged record is looked for.
    fn load(&self, broker: &mut Broker) -> Result<(), String> {
        let room = self.places.room("restart-load")?;
        let path = |name: &str| room.join(name).display().to_string();
        let (acked, found) = (path("acked"), path("found"));
        let bootstrap = broker.bootstrap();
        state::create_topic(self.places, &bootstrap, "load", 4)?;
        let log = std::fs::File::create(room.join("load.log")).map_err(|e| e.to_string())?;
        let mut load = self.script("load.py", &[&bootstrap, "load", &acked]);
        let mut load = load.stderr(log).spawn().map_err(|e| e.to_string())?;
        let outcome = self.kills(broker, &mut load, &acked);
        let _ = Command::new("kill").arg(load.id().to_string()).status();
        let ended = load.wait().map_err(|e| e.to_string())?;
        outcome?;
        if !ended.success() {
            return Err(format!("the producer gave up records; {room:?}"));
        }
        let read = self.script("read_all.py", &[&bootstrap, "load", &found]);
        output(read)?;
        let read = |path: &str| std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"));
        history::check(&history::parse(&read(&acked)?)?, &history::parse(&read(&found)?)?)
    }

    fn kills(&self, broker: &mut Broker, load: &mut Child, acked: &str) -> Result<(), String> {
        let mut seen = 0;
        for round in 0..=KILLS {
            seen = self.progress(load, acked, seen)?;
            if round < KILLS {
                broker.restart(Stop::Kill)?;
            }
        }
        Ok(())
    }

    /// Waits until some hundred records more are acknowledged; a kill in between hits full swing.
    fn progress(&self, load: &mut Child, acked: &str, seen: usize) -> Result<usize, String> {
        for _ in 0..600 {
            std::thread::sleep(Duration::from_millis(100));
            let lines =
                std::fs::read(acked).map_or(0, |b| b.iter().filter(|c| **c == b'\n').count());
            if lines > seen + 400 {
                return Ok(lines);
            }
            if !matches!(load.try_wait(), Ok(None)) {
                return Err("the producer ended by itself".into());
            }
        }
        Err(format!("no progress after {seen} acknowledged records"))
    }

    fn group(&self, broker: &mut Broker, how: Stop, name: &str) -> Result<(), String> {
        let topic = format!("group-{}", name.replace(' ', ""));
        let bootstrap = broker.bootstrap();
        state::create_topic(self.places, &bootstrap, &topic, 1)?;
        state::produce(self.places, &bootstrap, &topic, &["a", "b", "c"])?;
        let read = |count: &str| {
            output(self.script("group.py", &[&bootstrap, &topic, &format!("g-{topic}"), count]))
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
