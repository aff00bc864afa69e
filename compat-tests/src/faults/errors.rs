//! Disks that fail: single system calls of a running broker come back with EIO (strace injects it). What is
//! hit goes offline, or the process ends when it cannot do without; never an ok, never a second try, always a
//! line; and after a restart all that was acknowledged is there.

use super::wire::{self, Account, STORAGE};
use super::{Counts, Scene, judged};
use crate::broker::{Broker, Kind};
use crate::restart::state::Client;
use crate::verdict::Test;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);
const TOPIC: &str = "eio";

/// What fails, where, and what the broker says of it.
struct Case {
    name: &'static str,
    /// System calls.
    calls: &'static str,
    /// Below the data directory.
    file: &'static str,
    /// `flush.messages` of the topic.
    flush: &'static str,
    deed: Deed,
    says: &'static str,
}

/// What is done while it fails.
#[derive(Clone, Copy)]
enum Deed {
    Produce,
    /// Enough for several segments; nobody waits for the disk.
    ProduceMuch,
    Fetch,
    CreateTopics,
}

const LOG: &str = "eio-0/00000000000000000000.log";
const QUORUM: &str = "__ottla_metadata/quorum.log";
const LAZY: &str = "9223372036854775807";
const OFFLINE: &str = "log directory offline";
const STOPS: &str = "metadata quorum failed";

#[rustfmt::skip] // columns
const CASES: [Case; 7] = [
    Case { name: "EIO of an append", calls: "pwritev,pwrite64", file: LOG, flush: LAZY, deed: Deed::Produce, says: OFFLINE },
    Case { name: "EIO of a flushed append", calls: "pwritev,pwrite64", file: LOG, flush: "1", deed: Deed::Produce, says: OFFLINE },
    Case { name: "a failed fsync before an acknowledgement", calls: "fdatasync,fsync", file: LOG, flush: "1", deed: Deed::Produce, says: OFFLINE },
    Case { name: "a failed fsync in the background", calls: "fdatasync,fsync", file: LOG, flush: LAZY, deed: Deed::ProduceMuch, says: OFFLINE },
    Case { name: "EIO of a read", calls: "pread64,preadv,sendfile", file: LOG, flush: LAZY, deed: Deed::Fetch, says: OFFLINE },
    Case { name: "EIO of a metadata write", calls: "pwritev,pwrite64", file: QUORUM, flush: LAZY, deed: Deed::CreateTopics, says: STOPS },
    Case { name: "a failed fsync of metadata", calls: "fdatasync,fsync", file: QUORUM, flush: LAZY, deed: Deed::CreateTopics, says: STOPS },
];
const ONE_OF_TWO: &str = "EIO in one of two directories";

pub fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|case| case.name).chain([ONE_OF_TWO])
}

pub fn run(scene: &Scene) -> Vec<Test> {
    let mut tests: Vec<Test> =
        CASES.iter().map(|case| judged(case.name, only_directory(scene, case))).collect();
    tests.push(judged(ONE_OF_TWO, one_of_two(scene)));
    tests
}

/// The only directory, or that of the metadata, fails: the process ends, and says why.
fn only_directory(scene: &Scene, case: &Case) -> Result<Counts, String> {
    let name = format!("faults-{}", case.name.replace(' ', "-"));
    let mut broker = Broker::start(Kind::Ottla, scene.places, &name, &scene.folder.settings()?)?;
    let mut client = wire::open(scene.places, &broker.bootstrap())?;
    let configs = [("flush.messages", case.flush), ("segment.bytes", "1048576")];
    wire::must_create(&mut client, TOPIC, 1, &configs)?;
    let mut account = Account::default();
    // Few enough to be read and not sent from the file.
    for _ in 0..10 {
        must_be(account.put(&mut client, (TOPIC, 0), 5, 200)?, 0)?;
    }
    let injection = Injection::start(&broker, case.calls, &broker.data().join(case.file))?;
    let mut topics = Vec::new();
    deed(scene, case, &mut client, &mut account, &mut topics)?;
    let code = broker.ended(PATIENCE)?;
    let injected = injection.count()?;
    if code == "0" {
        return Err("the process ended as if all were well".into());
    }
    if !broker.log().contains(case.says) || !broker.log().contains("Input/output error") {
        return Err(format!("the log does not say `{}` and why", case.says));
    }
    broker.start_again()?;
    let mut client = wire::open(scene.places, &broker.bootstrap())?;
    let place = (TOPIC.to_string(), 0);
    let found = wire::read(&mut client, &place, true)?;
    must_be(found.code, 0)?;
    account.check(&place, &found, true)?;
    let missing = wire::missing(&mut client, &topics)?;
    if !missing.is_empty() {
        return Err(format!("acknowledged topics are lost: {missing:?}"));
    }
    must_be(account.put(&mut client, (TOPIC, 0), 5, 200)?, 0)?;
    Ok(vec![("faults injected", injected), ("records acknowledged", account.count())])
}

/// # Errors
/// An ok for what cannot have happened.
fn deed(
    scene: &Scene,
    case: &Case,
    client: &mut Client,
    account: &mut Account,
    topics: &mut Vec<String>,
) -> Result<(), String> {
    match case.deed {
        Deed::Produce => match account.put(client, (TOPIC, 0), 5, 200) {
            Ok(STORAGE) | Err(_) => Ok(()),
            Ok(code) => Err(format!("the append is answered with {code}")),
        },
        Deed::ProduceMuch => {
            for _ in 0..2_000 {
                match account.put(client, (TOPIC, 0), 10, 400) {
                    Ok(0) => {}
                    Ok(STORAGE) | Err(_) => return Ok(()),
                    Ok(code) => return Err(format!("an append is answered with {code}")),
                }
            }
            Err("nothing was flushed".into())
        }
        Deed::Fetch => match wire::read(client, &(TOPIC.to_string(), 0), true) {
            Ok(found) if found.code == 0 => Err("the read is answered".into()),
            Ok(_) | Err(_) => Ok(()),
        },
        Deed::CreateTopics => {
            for number in 0..3 {
                let name = format!("created-{number}-{}", scene.seed);
                match wire::create(client, &name, 1, &[]) {
                    Ok(0) => topics.push(name),
                    Ok(_) | Err(_) => return Ok(()),
                }
            }
            Err(format!("all of {topics:?} are acknowledged"))
        }
    }
}

fn must_be(code: i64, wanted: i64) -> Result<(), String> {
    if code == wanted { Ok(()) } else { Err(format!("{code} is answered, not {wanted}")) }
}

/// One of two directories fails: its partitions are refused, the others served, until a restart.
fn one_of_two(scene: &Scene) -> Result<Counts, String> {
    let room = scene.places.room("faults-two-ottla")?;
    let dirs = ["a", "b"].map(|name| room.join(name));
    let mut settings = scene.folder.settings()?;
    let list = dirs.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(",");
    settings.properties.insert("log.dirs".into(), list);
    let metadata = room.join("metadata").display().to_string();
    settings.properties.insert("metadata.log.dir".into(), metadata);
    let mut broker = Broker::start(Kind::Ottla, scene.places, "faults-two", &settings)?;
    let mut client = wire::open(scene.places, &broker.bootstrap())?;
    let topics: Vec<String> = (0..4).map(|number| format!("{TOPIC}{number}")).collect();
    let mut account = Account::default();
    for topic in &topics {
        wire::must_create(&mut client, topic, 1, &[("flush.messages", "1")])?;
        must_be(account.put(&mut client, (topic, 0), 5, 200)?, 0)?;
    }
    let is_in_a = |topic: &&String| dirs[0].join(format!("{topic}-0")).exists();
    let hit = topics.iter().find(is_in_a).ok_or("no partition is in a")?;
    let file = dirs[0].join(format!("{hit}-0/00000000000000000000.log"));
    let injection = Injection::start(&broker, "fdatasync,fsync", &file)?;
    match account.put(&mut client, (hit, 0), 5, 200) {
        Ok(STORAGE) => {}
        other => return Err(format!("the append in the failing directory: {other:?}")),
    }
    let (mut served, mut refused) = (0, 1);
    for topic in &topics {
        let wanted = if is_in_a(&topic) { STORAGE } else { 0 };
        must_be(account.put(&mut client, (topic, 0), 5, 200)?, wanted)?;
        if wanted == 0 { served += 1 } else { refused += 1 }
    }
    if !broker.is_running() || !broker.log().contains(OFFLINE) {
        return Err(format!("running: {}, and it has to say `{OFFLINE}`", broker.is_running()));
    }
    let injected = injection.count()?;
    drop(injection);
    broker.restart(crate::broker::Stop::Kill)?;
    let mut client = wire::open(scene.places, &broker.bootstrap())?;
    for place in account.places() {
        let found = wire::read(&mut client, &place, true)?;
        account.check(&place, &found, true)?;
        must_be(account.put(&mut client, (&place.0, 0), 5, 200)?, 0)?;
    }
    Ok(vec![
        ("faults injected", injected),
        ("appends served", served),
        ("appends refused", refused),
    ])
}

/// strace, which gives EIO to some calls on one file.
struct Injection {
    strace: Child,
    trace: PathBuf,
}

impl Injection {
    fn start(broker: &Broker, calls: &str, file: &Path) -> Result<Injection, String> {
        let trace = broker.room.join("injected");
        let (pid, path) = (broker.pid().to_string(), file.display().to_string());
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-p", &pid, "-P", &path, "-o"]).arg(&trace);
        strace.args(["-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:error=EIO")]);
        strace.stdin(Stdio::null()).stderr(Stdio::null());
        let strace = strace.spawn().map_err(|e| format!("strace: {e}"))?;
        let injection = Injection { strace, trace };
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if is_traced(&pid) {
                return Ok(injection);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err("strace did not attach".into())
    }

    /// Calls that came back with the error.
    fn count(&self) -> Result<usize, String> {
        let text = std::fs::read_to_string(&self.trace).map_err(|e| format!("{e}"))?;
        Ok(text.lines().filter(|line| line.contains("INJECTED")).count())
    }
}

impl Drop for Injection {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.strace.id().to_string()).status();
        let _ = self.strace.wait();
    }
}

/// Whether every thread of the process is traced.
fn is_traced(pid: &str) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let threads: Vec<PathBuf> = tasks.into_iter().flatten().flatten().map(|e| e.path()).collect();
    let traced = |thread: &PathBuf| {
        let status = std::fs::read_to_string(thread.join("status")).unwrap_or_default();
        !status.contains("TracerPid:\t0\n")
    };
    !threads.is_empty() && threads.iter().all(traced)
}
