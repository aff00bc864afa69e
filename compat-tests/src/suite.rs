//! The suites there are and how each is run against one kind of broker.

use crate::broker::control::Control;
use crate::broker::{Broker, Kind};
use crate::folder::Folder;
use crate::folder::script::Script;
use crate::places::Places;
use crate::verdict::Test;
use crate::{
    alone, compaction, differential, faults, formats, from_kafka, hostile, jbod, kafka_tests,
    restart, retention, tables,
};
use std::path::Path;
use std::time::Duration;

/// Which run a suite belongs to; a bigger one includes the smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Set {
    Ci,
    All,
    Long,
}

/// What a suite consists of.
#[derive(Debug, Clone, Copy)]
pub enum Body {
    /// Needs no broker; what it compares with, or the rules it has, are right.
    Alone(AloneRun),
    /// Kafka and Ottla side by side.
    Differential,
    /// Written here, Kafka and Ottla side by side.
    Beside(BesideRun),
    /// Written here, run against one broker after the other.
    Own(OwnRun),
    /// By its script, against Kafka and then Ottla, both live.
    Probes,
    /// A foreign client, by its script.
    Client,
}

type BesideRun = fn(&Places, &mut Broker, &mut Broker) -> Result<Vec<Test>, String>;
type AloneRun = fn(&Places) -> Result<Vec<Test>, String>;
type OwnRun = fn(&Places, &Folder, Kind) -> Result<Vec<Test>, String>;

pub struct Suite {
    pub folder: Folder,
    pub set: Set,
    pub body: Body,
}

/// A client folder's script may take this long; `limit` in the folder replaces it (seconds).
const LIMIT: Duration = Duration::from_secs(600);

pub fn all(places: &Places) -> Result<Vec<Suite>, String> {
    let own = |name: &str, body: Body| Suite {
        folder: Folder::built_in(places, name),
        set: Set::Ci,
        body,
    };
    let mut suites = vec![
        own("tables", Body::Alone(tables::run)),
        own("differential", Body::Differential),
        own("probes", Body::Probes),
        own("retention", Body::Beside(retention::run)),
        own("hostile", Body::Own(hostile::run)),
        own("restart", Body::Own(restart::run)),
        own("compaction", Body::Own(compaction::run)),
        own("faults", Body::Own(faults::run)),
        own("jbod", Body::Own(jbod::run)),
        own("from-kafka", Body::Own(from_kafka::run)),
    ];
    let alone = |name: &str, set: Set, run: AloneRun| Suite { set, ..own(name, Body::Alone(run)) };
    suites.extend([
        own("kafka-tests", Body::Own(kafka_tests::run)),
        Suite { set: Set::All, ..own("kafka-tests-more", Body::Own(kafka_tests::run)) },
        alone("formats", Set::Ci, formats::run),
        alone("fuzz", Set::All, alone::fuzz),
        alone("fuzz-long", Set::Long, alone::fuzz_long),
        alone("simulation", Set::Long, alone::simulation),
    ]);
    let clients = places.home.join("clients");
    let entries = std::fs::read_dir(&clients).map_err(|e| format!("{clients:?}: {e}"))?;
    let mut names: Vec<String> =
        entries.flatten().map(|e| e.file_name().to_string_lossy().to_string()).collect();
    names.sort();
    for name in names {
        let folder = Folder::client(places, &name);
        let set = match first_line(&folder.path.join("set")).as_deref() {
            None | Some("ci") => Set::Ci,
            Some("all") => Set::All,
            Some("long") => Set::Long,
            Some(other) => return Err(format!("{name}/set: `{other}` is not ci, all or long")),
        };
        suites.push(Suite { folder, set, body: Body::Client });
    }
    Ok(suites)
}

fn first_line(path: &Path) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.lines().next()?.trim().to_string())
}

impl Suite {
    /// Runs against one broker; the differential suite compares it with a Kafka of its own.
    pub fn run(&self, places: &Places, kind: Kind) -> Result<Vec<Test>, String> {
        match self.body {
            Body::Alone(run) => run(places),
            Body::Own(run) => run(places, &self.folder, kind),
            Body::Differential => {
                let settings = differential::settings(&self.folder.path)?;
                let kafka = Broker::start(Kind::Kafka, places, "differential-oracle", &settings)?;
                let other = Broker::start(kind, places, "differential", &settings)?;
                differential::run(places, &kafka, &other)
            }
            Body::Beside(run) => {
                let (settings, name) = (self.folder.settings()?, &self.folder.name);
                let oracle = format!("{name}-oracle");
                let mut kafka = Broker::start(Kind::Kafka, places, &oracle, &settings)?;
                let mut other = Broker::start(kind, places, name, &settings)?;
                run(places, &mut kafka, &mut other)
            }
            Body::Client | Body::Probes => self.script(places, kind, Vec::new()),
        }
    }

    /// Runs the folder's script against a broker of its own.
    pub fn script(
        &self,
        places: &Places,
        kind: Kind,
        more: Vec<String>,
    ) -> Result<Vec<Test>, String> {
        let settings = self.folder.settings()?;
        let broker = Broker::start(kind, places, &self.folder.name, &settings)?;
        let bootstrap = broker.bootstrap();
        let control = Control::serve(places, broker, settings)?;
        let script = Script {
            places,
            folder: &self.folder,
            bootstrap,
            more,
            broker_ctl: control.command()?,
            label: format!("{kind}-client").to_lowercase(),
            limit: self.limit()?,
        };
        script.run(|_| false)
    }

    fn limit(&self) -> Result<Duration, String> {
        match first_line(&self.folder.path.join("limit")) {
            None => Ok(LIMIT),
            Some(text) => {
                let seconds = text.parse().map_err(|_| format!("limit: `{text}` is no number"))?;
                Ok(Duration::from_secs(seconds))
            }
        }
    }
}
