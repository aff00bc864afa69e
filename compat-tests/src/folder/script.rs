//! Runs a client folder's `run.sh BOOTSTRAP` and reads its lines: `PASS name`, `FAIL name -- why`,
//! `SKIP name -- why`. The script gets the pins, the cache, a scratch folder and a command that restarts
//! its broker (`$BROKER_CTL term|kill`, see `broker::control`).

use super::Folder;
use crate::places::Places;
use crate::verdict::{Test, Verdict};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub struct Script<'a> {
    pub places: &'a Places,
    pub folder: &'a Folder,
    pub bootstrap: String,
    /// Arguments after the bootstrap address.
    pub more: Vec<String>,
    pub broker_ctl: String,
    /// Names the scratch folder.
    pub label: String,
    pub limit: Duration,
}

impl Script<'_> {
    /// Runs to the end or to the limit; `stop` may end it earlier by looking at a test's line.
    pub fn run(&self, mut stop: impl FnMut(&Test) -> bool) -> Result<Vec<Test>, String> {
        let name = &self.folder.name;
        let failed = self.places.cache.join("failed").join(name);
        if let Ok(why) = std::fs::read_to_string(&failed) {
            return Ok(vec![Test::fail("setup", format!("{name} could not be installed: {why}"))]);
        }
        let mut child = self.spawn()?;
        let lines = lines_of(&mut child);
        let deadline = Instant::now() + self.limit;
        let mut tests = Vec::new();
        loop {
            let cut_short =
                match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                    Ok(line) => {
                        let Some(test) = parse(&line) else { continue };
                        tests.push(test);
                        tests.last().is_some_and(&mut stop)
                    }
                    Err(mpsc::RecvTimeoutError::Disconnected) => break,
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        let why = format!("not over after {:?}", self.limit);
                        tests.push(Test::fail("run.sh", why));
                        true
                    }
                };
            if cut_short {
                end_group(&mut child);
                return Ok(tests);
            }
        }
        let status = child.wait().map_err(|e| e.to_string())?;
        if !status.success() && tests.iter().all(|t| t.verdict != Verdict::Fail) {
            tests.push(Test::fail("run.sh", format!("ended with {status}; {}", self.log_tail())));
        }
        Ok(tests)
    }

    fn scratch(&self) -> Result<std::path::PathBuf, String> {
        self.places.room(&format!("{}-{}", self.folder.name, self.label))
    }

    fn spawn(&self) -> Result<Child, String> {
        let scratch = self.scratch()?;
        let log = std::fs::File::create(scratch.join("stderr")).map_err(|e| e.to_string())?;
        let script = self.folder.path.join("run.sh");
        let mut command = Command::new(&script);
        command
            .arg(&self.bootstrap)
            .args(&self.more)
            .current_dir(&self.folder.path)
            .envs(self.places.pins())
            .env("OTTLA_CACHE", &self.places.cache)
            .env("KAFKA_LIBS", self.places.kafka_jars())
            .env("WORK", &scratch)
            .env("BROKER_CTL", &self.broker_ctl)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .process_group(0);
        command.spawn().map_err(|e| format!("{script:?}: {e}"))
    }

    fn log_tail(&self) -> String {
        let path = self.scratch().map(|s| s.join("stderr")).unwrap_or_default();
        let log = std::fs::read_to_string(path).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(5)..].join(" | ")
    }
}

/// Ends the script and what it started: all of its own process group.
fn end_group(child: &mut Child) {
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
    let _ = child.wait();
}

fn lines_of(child: &mut Child) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { break };
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
    }
    receiver
}

fn parse(line: &str) -> Option<Test> {
    let (word, rest) = line.split_once(' ')?;
    let verdict = match word {
        "PASS" => Verdict::Pass,
        "FAIL" => Verdict::Fail,
        "SKIP" => Verdict::Skip,
        _ => return None,
    };
    let (name, detail) = rest.split_once(" -- ").unwrap_or((rest, ""));
    Some(Test { name: name.trim().into(), verdict, detail: detail.trim().into() })
}
