//! Brokers as processes: Apache Kafka (the oracle) and Ottla, started with the same settings on free
//! ports in fresh directories, restarted and killed. May not live here: what is tested.

pub mod control;
pub mod data;
mod kafka;
mod ottla;
pub mod ports;
pub mod settings;

use crate::places::Places;
use settings::Settings;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Kafka,
    Ottla,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Kind::Kafka => "Kafka",
            Kind::Ottla => "Ottla",
        })
    }
}

/// How a broker is made to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// SIGTERM: everything is flushed.
    Term,
    /// kill -9.
    Kill,
}

/// How long a broker may take to start or to stop on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Broker {
    pub kind: Kind,
    pub port: u16,
    /// Holds `data`, the settings as a file and the log.
    pub room: PathBuf,
    /// What stands before the broker's command, as in `strace -f …`.
    wrapper: Vec<String>,
    places: Paths,
    child: Child,
}

/// What a start needs of `Places`.
struct Paths {
    jars: PathBuf,
    ottla: PathBuf,
}

impl Broker {
    /// Starts a broker in a fresh room; returns once it serves.
    pub fn start(
        kind: Kind,
        places: &Places,
        name: &str,
        settings: &Settings,
    ) -> Result<Broker, String> {
        Broker::start_wrapped(kind, places, name, settings, Vec::new())
    }

    pub fn start_wrapped(
        kind: Kind,
        places: &Places,
        name: &str,
        settings: &Settings,
        wrapper: Vec<String>,
    ) -> Result<Broker, String> {
        let room = places.room(&format!("{name}-{}", kind.to_string().to_lowercase()))?;
        let paths = Paths { jars: places.kafka_jars(), ottla: places.ottla() };
        let settings = settings.with_listeners()?;
        match kind {
            Kind::Kafka => kafka::prepare(&paths.jars, &room, &settings)?,
            Kind::Ottla => ottla::prepare(&room, &settings)?,
        }
        let port = settings.port()?;
        let child = launch(kind, &paths, &room, &wrapper)?;
        Ok(Broker { kind, port, room, wrapper, places: paths, child })
    }

    pub fn bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The process id of the broker itself, also under a wrapper.
    pub fn pid(&self) -> u32 {
        let own = self.child.id();
        if self.wrapper.is_empty() {
            return own;
        }
        let children = format!("/proc/{own}/task/{own}/children");
        let listed = std::fs::read_to_string(children).unwrap_or_default();
        listed.split_whitespace().next().and_then(|pid| pid.parse().ok()).unwrap_or(own)
    }

    pub fn data(&self) -> PathBuf {
        self.room.join("data")
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.room.join("log")).unwrap_or_default()
    }

    /// Stops every thread where it is, as a machine does that loses its power: nothing is answered
    /// from then on. Returns once none of them runs any more.
    pub fn freeze(&self) -> Result<(), String> {
        self.signal("-STOP")?;
        let pid = self.pid();
        let stands = |stat: &str| {
            let state = stat.rsplit(") ").next().unwrap_or_default();
            // One that waits for the disk stops before it sees what came of it.
            state.starts_with(['T', 'D'])
        };
        for _ in 0..1_000 {
            let tasks =
                std::fs::read_dir(format!("/proc/{pid}/task")).map_err(|e| e.to_string())?;
            let stats =
                tasks.flatten().map(|task| std::fs::read_to_string(task.path().join("stat")));
            if stats.flatten().all(|stat| stands(&stat)) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(format!("the threads of {pid} do not stop"))
    }

    fn signal(&self, signal: &str) -> Result<(), String> {
        let sent = Command::new("kill").args([signal, &self.pid().to_string()]).status();
        sent.map(drop).map_err(|e| format!("kill: {e}"))
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Stops the broker and waits for its end; returns its exit code, none after a kill.
    pub fn stop(&mut self, how: Stop) -> Result<Option<i32>, String> {
        if self.is_running() {
            self.signal(if how == Stop::Term { "-TERM" } else { "-KILL" })?;
        }
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().map_err(|e| e.to_string())? {
                return Ok(status.code());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(format!("{} did not stop within {PATIENCE:?}", self.kind))
    }

    /// Waits for a broker that ends by itself; its exit code, or `signal N`.
    pub fn ended(&mut self, within: Duration) -> Result<String, String> {
        let deadline = Instant::now() + within;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().map_err(|e| e.to_string())? {
                let signal = std::os::unix::process::ExitStatusExt::signal(&status);
                let code = status.code().map(|code| code.to_string());
                return Ok(code.unwrap_or(format!("signal {}", signal.unwrap_or(0))));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(format!("{} goes on", self.kind))
    }

    /// Starts the stopped broker again on the same port and data.
    pub fn start_again(&mut self) -> Result<(), String> {
        self.child = launch(self.kind, &self.places, &self.room, &self.wrapper)?;
        Ok(())
    }

    /// Starts the stopped broker's directory with the other kind of broker, or again with its own.
    pub fn start_as(&mut self, kind: Kind, settings: &Settings) -> Result<(), String> {
        if kind != self.kind {
            let settings = settings.with_listeners()?;
            ottla::prepare(&self.room, &settings)?;
            (self.kind, self.port) = (kind, settings.port()?);
        }
        self.start_again()
    }

    pub fn restart(&mut self, how: Stop) -> Result<(), String> {
        self.stop(how)?;
        self.start_again()
    }

    /// `VmRSS` or `VmHWM` of the broker's process, in KiB.
    pub fn memory_kib(&self, row: &str) -> Result<u64, String> {
        let path = format!("/proc/{}/status", self.pid());
        let status = std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
        let line = status.lines().find_map(|line| line.strip_prefix(&format!("{row}:")));
        let number = line.and_then(|l| l.split_whitespace().next()).and_then(|n| n.parse().ok());
        number.ok_or_else(|| format!("{path} has no {row}"))
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.stop(Stop::Kill);
    }
}

fn launch(kind: Kind, paths: &Paths, room: &Path, wrapper: &[String]) -> Result<Child, String> {
    let mut words: Vec<String> = wrapper.to_vec();
    words.extend(match kind {
        Kind::Kafka => kafka::command(&paths.jars, room),
        Kind::Ottla => ottla::command(&paths.ottla, room),
    });
    let log = room.join("log");
    let open = || File::options().create(true).append(true).open(&log);
    let seen = std::fs::metadata(&log).map_or(0, |m| m.len()) as usize;
    let out = open().map_err(|e| format!("{log:?}: {e}"))?;
    let err = open().map_err(|e| format!("{log:?}: {e}"))?;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(out).stderr(err);
    let mut child = command.spawn().map_err(|e| format!("{}: {e}", words[0]))?;
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        // Looked at first, so that the log has what it said last.
        let has_ended = !matches!(child.try_wait(), Ok(None));
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let fresh = text.get(seen..).unwrap_or_default();
        let ready = match kind {
            Kind::Kafka => kafka::ready(fresh),
            Kind::Ottla => ottla::ready(fresh),
        };
        if ready {
            return Ok(child);
        }
        if has_ended {
            return Err(format!("{kind} ended while starting: {}", last_lines(fresh)));
        }
        std::thread::sleep(Duration::from_millis(if kind == Kind::Kafka { 50 } else { 2 }));
    }
    let _ = child.kill();
    Err(format!("{kind} was not ready within {PATIENCE:?}; log: {log:?}"))
}

fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(6)..].join(" | ")
}
