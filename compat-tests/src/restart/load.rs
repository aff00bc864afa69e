//! An idempotent producer (`load.py`) that writes through outages of its broker; then every acknowledged
//! record is looked for.

use super::{history, output, python};
use crate::broker::Broker;
use crate::places::Places;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// What is written and how often the broker goes away meanwhile.
pub struct Load<'a> {
    /// Of the room for its files, and of the topic, which is there.
    pub name: &'a str,
    pub outages: usize,
    /// Acknowledged between two outages, at least.
    pub records: usize,
    /// Of the producer; 0: as fast as it can.
    pub per_second: usize,
}

/// How long the producer may take for some hundred records, outage included.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);

impl Load<'_> {
    /// Runs it; `outage` stops the broker in its way and starts it again. Returns how many records were
    /// acknowledged, and are there.
    ///
    /// # Errors
    /// What was lost, moved, doubled or out of order; a producer that gave up.
    pub fn run(
        &self,
        places: &Places,
        broker: &mut Broker,
        outage: impl FnMut(&mut Broker, usize) -> Result<(), String>,
    ) -> Result<usize, String> {
        let room = places.room(&format!("{}-load", self.name))?;
        let path = |name: &str| room.join(name).display().to_string();
        let (acked, found) = (path("acked"), path("found"));
        let bootstrap = broker.bootstrap();
        let log = File::create(room.join("load.log")).map_err(|e| e.to_string())?;
        let rate = self.per_second.to_string();
        let mut load = script(places, "load.py", &[&bootstrap, self.name, &acked, &rate])?;
        let mut load = load.stderr(log).spawn().map_err(|e| e.to_string())?;
        let outcome = self.outages(broker, &mut load, acked.as_ref(), outage);
        let _ = Command::new("kill").arg(load.id().to_string()).status();
        let ended = load.wait().map_err(|e| e.to_string())?;
        let outcome = outcome.and_then(|()| match ended.success() {
            true => Ok(()),
            false => Err(format!("the producer gave up records; {room:?}")),
        });
        // What was acknowledged has to be there however the producer ended.
        let found = output(script(places, "read_all.py", &[&bootstrap, self.name, &found])?)
            .and_then(|_| compare(&acked, &found));
        match (outcome, found) {
            (Err(why), Err(lost)) => Err(format!("{why}; {lost}")),
            (Err(why), Ok(_)) => Err(format!("{why}; nothing acknowledged is missing")),
            (Ok(()), found) => found,
        }
    }

    fn outages(
        &self,
        broker: &mut Broker,
        load: &mut Child,
        acked: &Path,
        mut outage: impl FnMut(&mut Broker, usize) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut seen = None;
        for round in 0..=self.outages {
            self.progress(load, acked, &mut seen)?;
            if round < self.outages {
                outage(broker, round)?;
            }
        }
        Ok(())
    }

    /// Waits until enough records more are acknowledged; an outage in between hits full swing.
    /// `lines` is the file of acknowledgements, read as far as they were counted.
    fn progress(
        &self,
        load: &mut Child,
        acked: &Path,
        lines: &mut Option<File>,
    ) -> Result<(), String> {
        let (mut count, mut new) = (0, Vec::new());
        for _ in 0..PATIENCE.as_millis() / LOOK_EVERY.as_millis() {
            std::thread::sleep(LOOK_EVERY);
            if lines.is_none() {
                *lines = File::open(acked).ok();
            }
            if let Some(lines) = lines {
                new.clear();
                lines.read_to_end(&mut new).map_err(|e| format!("{acked:?}: {e}"))?;
                count += new.iter().filter(|byte| **byte == b'\n').count();
            }
            if count > self.records {
                return Ok(());
            }
            if !matches!(load.try_wait(), Ok(None)) {
                return Err("the producer ended by itself".into());
            }
        }
        Err(format!("only {count} records were acknowledged in {PATIENCE:?}"))
    }
}

/// Returns how many records were acknowledged.
fn compare(acked: &str, found: &str) -> Result<usize, String> {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"));
    let acked = history::parse(&read(acked)?)?;
    history::check(&acked, &history::parse(&read(found)?)?)?;
    Ok(acked.len())
}

/// A script of the restart suite with its arguments.
pub fn script(places: &Places, name: &str, arguments: &[&str]) -> Result<Command, String> {
    let mut command = Command::new(python(places)?);
    let path: PathBuf = places.home.join("restart").join(name);
    command.arg(path).args(arguments).stdin(Stdio::null());
    Ok(command)
}
