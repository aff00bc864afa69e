//! Where things are: this folder, the pins of `versions`, the cache of downloads, a room for each run.

use crate::suite::Set;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Clone)]
pub struct Places {
    /// The folder `compat-tests`.
    pub home: PathBuf,
    /// Downloads and builds of foreign things, kept between runs (`OTTLA_CACHE`).
    pub cache: PathBuf,
    /// Brokers' directories and clients' logs of this run.
    pub work: PathBuf,
    /// What is run; a suite that is in all sets may do more in the bigger ones.
    pub set: Set,
    pins: BTreeMap<String, String>,
}

impl Places {
    pub fn find() -> Result<Places, String> {
        let home = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let set = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let cache = set("OTTLA_CACHE").or_else(|| Some(set("HOME")?.join(".cache/ottla-compat")));
        let cache = cache.ok_or("neither OTTLA_CACHE nor HOME is set")?;
        let work = std::env::temp_dir().join(format!("ottla-compat-{}", std::process::id()));
        let pins = read_pins(&home.join("versions"))?;
        Ok(Places { home, cache, work, set: Set::Ci, pins })
    }

    pub fn pin(&self, name: &str) -> Result<&str, String> {
        let pin = self.pins.get(name).map(String::as_str);
        pin.ok_or_else(|| format!("compat-tests/versions has no {name}"))
    }

    /// A hash-stable form of all pins, for records of what a foreign suite did.
    pub fn pins(&self) -> &BTreeMap<String, String> {
        &self.pins
    }

    /// Kafka's jars and schemas, laid down by `setup`.
    fn kafka(&self) -> PathBuf {
        self.cache.join(format!("kafka-{}", self.pins.get("KAFKA").map_or("", String::as_str)))
    }

    pub fn kafka_jars(&self) -> PathBuf {
        self.kafka().join("libs")
    }

    pub fn schemas(&self) -> PathBuf {
        self.kafka().join("schemas")
    }

    /// The release build of Ottla, or what `OTTLA_BINARY` names.
    pub fn ottla(&self) -> PathBuf {
        let built = || self.home.join("../target/release/ottla");
        std::env::var_os("OTTLA_BINARY").map_or_else(built, PathBuf::from)
    }

    /// A fresh directory of this run.
    pub fn room(&self, name: &str) -> Result<PathBuf, String> {
        let room = self.work.join(name);
        std::fs::create_dir_all(&room).map_err(|e| format!("{room:?}: {e}"))?;
        Ok(room)
    }
}

fn read_pins(path: &Path) -> Result<BTreeMap<String, String>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{path:?}: {e}"))?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once('='));
    Ok(pairs.map(|(k, v)| (k.trim().to_string(), v.trim().to_string())).collect())
}
