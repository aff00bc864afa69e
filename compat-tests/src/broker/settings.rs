//! Broker settings: what every test broker gets, and a folder's `broker.properties` on top.

use super::ports;
use std::collections::BTreeMap;
use std::path::Path;

/// One node with one replica of everything, few partitions in internal topics, no delay before a
/// group's first rebalance.
const BASE: &[(&str, &str)] = &[
    ("node.id", "1"),
    ("num.partitions", "4"),
    ("default.replication.factor", "1"),
    ("offsets.topic.replication.factor", "1"),
    ("offsets.topic.num.partitions", "5"),
    ("transaction.state.log.replication.factor", "1"),
    ("transaction.state.log.min.isr", "1"),
    ("transaction.state.log.num.partitions", "5"),
    ("share.coordinator.state.topic.replication.factor", "1"),
    ("share.coordinator.state.topic.min.isr", "1"),
    ("share.coordinator.state.topic.num.partitions", "5"),
    ("group.initial.rebalance.delay.ms", "0"),
];

#[derive(Debug, Clone)]
pub struct Settings {
    pub properties: BTreeMap<String, String>,
    /// Levels that Kafka's directory is formatted with, as in `group.version=0`; Ottla has none yet.
    pub features: Vec<String>,
}

impl Settings {
    pub fn base() -> Settings {
        let pairs = BASE.iter().map(|(k, v)| (k.to_string(), v.to_string()));
        Settings { properties: pairs.collect(), features: Vec::new() }
    }

    /// The base with a folder's `broker.properties`, if it has one.
    pub fn of_folder(folder: &Path) -> Result<Settings, String> {
        let mut settings = Settings::base();
        let path = folder.join("broker.properties");
        if path.exists() {
            settings.add_file(&path)?;
        }
        Ok(settings)
    }

    /// Puts the settings of a properties file on top.
    pub fn add_file(&mut self, path: &Path) -> Result<(), String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{path:?}: {e}"))?;
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        for (key, value) in lines.filter_map(|line| line.split_once('=')) {
            self.properties.insert(key.trim().into(), value.trim().into());
        }
        Ok(())
    }

    /// With a listener on a free port, told to clients by its address, unless there are some.
    pub fn with_listeners(&self) -> Result<Settings, String> {
        let mut settings = self.clone();
        if self.get("listeners").is_empty() {
            let listener = format!("PLAINTEXT://127.0.0.1:{}", ports::free()?);
            for key in ["listeners", "advertised.listeners"] {
                settings.properties.insert(key.into(), listener.clone());
            }
        }
        Ok(settings)
    }

    /// Of the first listener.
    pub fn port(&self) -> Result<u16, String> {
        let listeners = self.get("listeners");
        let first =
            listeners.split(',').next().and_then(|one| one.rsplit(':').next()?.parse().ok());
        first.ok_or_else(|| format!("`{listeners}`: no port"))
    }

    pub fn feature(mut self, name: &str, level: u32) -> Settings {
        self.features.push(format!("{name}={level}"));
        self
    }

    pub fn get(&self, key: &str) -> &str {
        self.properties.get(key).map_or("", String::as_str)
    }

    /// As a properties file.
    pub fn text(&self) -> String {
        self.properties.iter().map(|(key, value)| format!("{key}={value}\n")).collect()
    }
}
