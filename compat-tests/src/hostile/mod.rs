//! The hostile suite: what no client sends, to the real process. After each attack the broker is up, its
//! resident peak stays near idle, and a neighbour that asks during the attack is answered before the
//! attack is over. May not live here: which code an attack gets (the differential suite compares that).

mod attacks;
mod batches;
mod consumers;
mod member;
mod members;

use crate::broker::{Broker, Kind};
use crate::differential;
use crate::folder::Folder;
use crate::places::Places;
use crate::verdict::{Test, Verdict};
use crate::wire::connection::{Answer, Connection};
use crate::wire::schema::Schemas;
use attacks::Attack;
use serde_json::json;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// How far the resident peak may rise above idle.
const PEAK_KIB: u64 = 32 * 1024;
const PATIENCE: Duration = Duration::from_secs(20);

pub fn run(places: &Places, folder: &Folder, kind: Kind) -> Result<Vec<Test>, String> {
    let schemas = Schemas::load(&places.schemas())?;
    let settings = folder.settings()?;
    let mut tests = Vec::new();
    let broker = Broker::start(kind, places, "hostile", &settings)?;
    let mut siege = Siege::begin(&schemas, broker)?;
    let served = differential::tabled(places, &schemas, &siege.broker.bootstrap())?;
    for (name, attacks) in attacks::all(&schemas, &served)? {
        let outcome = attacks.iter().try_for_each(|attack| siege.suffer(attack));
        tests.push(Test::of(name, outcome));
        siege.rebuild(places, folder)?;
    }
    tests.push(Test::of("record batches", batches::wrong(&mut siege)));
    for codec in ["gzip", "snappy", "xerial", "lz4", "zstd"] {
        tests.push(Test::of(format!("compression bomb {codec}"), batches::bomb(&mut siege, codec)));
        siege.rebuild(places, folder)?;
    }
    tests.push(only_ottla(kind, "half frames that never end", || siege.half_frames()));
    tests.push(only_ottla(kind, "resident peak", || siege.peak_is_within(PEAK_KIB)));
    drop(siege);
    tests.extend(members::run(places, folder, kind, &schemas)?);
    tests.push(only_ottla(kind, "one warning line says why", || {
        one_warning(places, folder, &schemas)
    }));
    Ok(tests)
}

/// A test of what is promised of Ottla alone.
fn only_ottla(kind: Kind, name: &str, test: impl FnOnce() -> Result<(), String>) -> Test {
    match kind {
        Kind::Ottla => Test::of(name, test()),
        Kind::Kafka => {
            let detail = "not asked of Kafka".into();
            Test { name: name.into(), verdict: Verdict::Skip, detail }
        }
    }
}

/// A broker under attack, with a neighbour that uses it properly.
pub struct Siege<'a> {
    pub schemas: &'a Schemas,
    pub broker: Broker,
    neighbour: Connection,
    idle_kib: u64,
    /// The highest peak of brokers that were replaced.
    worst_kib: u64,
}

impl<'a> Siege<'a> {
    fn begin(schemas: &'a Schemas, broker: Broker) -> Result<Siege<'a>, String> {
        let neighbour = Connection::open(&broker.bootstrap(), PATIENCE)?;
        let mut siege = Siege { schemas, broker, neighbour, idle_kib: 0, worst_kib: 0 };
        let topic =
            json!({ "topics": [{ "name": TOPIC, "numPartitions": 1, "replicationFactor": 1 }] });
        siege.neighbour.ask(schemas, "CreateTopics", 5, &topic)?;
        siege.neighbour_is_served()?;
        siege.idle_kib = siege.broker.memory_kib("VmRSS")?;
        Ok(siege)
    }

    /// Starts another broker if an attack has ended this one, so that later tests speak for themselves.
    fn rebuild(&mut self, places: &Places, folder: &Folder) -> Result<(), String> {
        if self.broker.is_running() {
            return Ok(());
        }
        let name = format!("hostile-after-{}", self.broker.port);
        let broker = Broker::start(self.broker.kind, places, &name, &folder.settings()?)?;
        *self = Siege { worst_kib: self.worst_kib, ..Siege::begin(self.schemas, broker)? };
        Ok(())
    }

    pub fn neighbour_is_served(&mut self) -> Result<(), String> {
        let asked = json!({ "topics": [{ "name": TOPIC }], "allowAutoTopicCreation": false });
        match self.neighbour.ask(self.schemas, "Metadata", 9, &asked)? {
            Answer::Body(_) => Ok(()),
            other => Err(format!("a neighbour got {other:?}")),
        }
    }

    /// Sends the attack in two parts; between them the neighbour must be answered.
    fn suffer(&mut self, attack: &Attack) -> Result<(), String> {
        let told = |why: String| format!("{}: {why}", attack.name);
        let mut stream =
            TcpStream::connect(self.broker.bootstrap()).map_err(|e| told(e.to_string()))?;
        let set = stream.set_read_timeout(Some(PATIENCE));
        set.map_err(|e| told(e.to_string()))?;
        let (first, second) = attack.bytes.split_at(attack.bytes.len() / 2);
        let _ = stream.write_all(first);
        self.neighbour_is_served().map_err(told)?;
        let _ = stream.write_all(second);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        // A reset is as good an end as a proper one.
        let end = stream.take(ANSWER_MAX).read_to_end(&mut answer);
        if end.is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock) {
            return Err(told(format!("the connection was still open after {PATIENCE:?}")));
        }
        self.neighbour_is_served().map_err(told)?;
        if self.broker.is_running() { Ok(()) } else { Err(told("the broker is gone".into())) }
    }

    /// Many connections that promise much, send little and never go on.
    fn half_frames(&mut self) -> Result<(), String> {
        let mut held = Vec::new();
        for _ in 0..HALF_FRAMES {
            let mut stream =
                TcpStream::connect(self.broker.bootstrap()).map_err(|e| e.to_string())?;
            let promised = 100_000_000i32.to_be_bytes();
            let _ =
                stream.write_all(&[&promised[..], &[0, 3, 0, 9, 0, 0, 0, 1], &[0; 1000]].concat());
            held.push(stream);
        }
        for _ in 0..20 {
            self.neighbour_is_served()?;
        }
        drop(held);
        self.neighbour_is_served()
    }

    fn peak_is_within(&self, above_idle_kib: u64) -> Result<(), String> {
        let peak = self.broker.memory_kib("VmHWM")?.max(self.worst_kib);
        if peak <= self.idle_kib + above_idle_kib {
            return Ok(());
        }
        Err(format!("{} MiB at idle, {} MiB at the peak", self.idle_kib / 1024, peak / 1024))
    }
}

/// Made before the first attack.
pub const TOPIC: &str = "neighbour";
const HALF_FRAMES: usize = 200;
/// No answer to an attack is longer.
const ANSWER_MAX: u64 = 4 << 20;

/// One attack on a fresh broker: exactly one warning, which tells who sent what and why it was refused.
fn one_warning(places: &Places, folder: &Folder, schemas: &Schemas) -> Result<(), String> {
    let broker = Broker::start(Kind::Ottla, places, "hostile-warning", &folder.settings()?)?;
    let before = broker.log().len();
    let mut connection = Connection::open(&broker.bootstrap(), PATIENCE)?;
    let address = connection.stream().local_addr().map_err(|e| e.to_string())?;
    connection.send_body(schemas, "Metadata", 1, &i32::MAX.to_be_bytes())?;
    if connection.receive(schemas)? != Answer::Closed {
        return Err("the 4-byte Metadata body did not close the connection".into());
    }
    std::thread::sleep(Duration::from_millis(200));
    let log = broker.log();
    let warnings: Vec<&str> = log[before..].lines().filter(|l| l.contains("WARN")).collect();
    // The API by its number or its name; the reason names the field.
    let tells = |line: &str| {
        let api = line.contains("api_key=3 ") || line.contains("Metadata");
        api && line.contains(&address.to_string()) && line.contains("topics")
    };
    match warnings.as_slice() {
        [line] if tells(line) => Ok(()),
        lines => {
            Err(format!("wanted one that names {address}, Metadata and topics, got {lines:?}"))
        }
    }
}
