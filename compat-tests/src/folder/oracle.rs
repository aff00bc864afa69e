//! `oracle.json`: what Apache Kafka did with a folder, recorded by `run --oracle`; nobody edits it.

use super::Folder;
use crate::places::Places;
use crate::verdict::{Test, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Oracle {
    /// The release of Kafka.
    pub kafka: String,
    /// The pins that the folder uses.
    pub versions: BTreeMap<String, String>,
    /// Of the folder's scripts, settings and pins.
    pub hash: String,
    pub tests: BTreeMap<String, Verdict>,
}

impl Oracle {
    pub fn of(places: &Places, folder: &Folder, tests: &[Test]) -> Result<Oracle, String> {
        Ok(Oracle {
            kafka: places.pin("KAFKA")?.into(),
            versions: folder.pins(places)?,
            hash: folder.hash(places)?,
            tests: tests.iter().map(|t| (t.name.clone(), t.verdict)).collect(),
        })
    }

    pub fn load(folder: &Folder) -> Result<Option<Oracle>, String> {
        let path = folder.path.join("oracle.json");
        if !path.exists() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{path:?}: {e}"))?;
        serde_json::from_str(&text).map(Some).map_err(|e| format!("{path:?}: {e}"))
    }

    /// The record, if it is there and fits what would be run.
    pub fn usable(places: &Places, folder: &Folder) -> Result<Oracle, String> {
        let oracle = Oracle::load(folder)?;
        let oracle = oracle.ok_or("oracle.json is missing: run with --oracle first")?;
        oracle.stale(places, folder)?.map_or(Ok(oracle), Err)
    }

    /// Why the record may not be used, if so.
    pub fn stale(&self, places: &Places, folder: &Folder) -> Result<Option<String>, String> {
        let kafka = places.pin("KAFKA")?;
        if self.kafka != kafka {
            return Ok(Some(format!("oracle.json is of Kafka {}, not {kafka}", self.kafka)));
        }
        let stale = self.hash != folder.hash(places)?;
        Ok(stale
            .then(|| "oracle.json is stale: run `compat-tests/run --oracle --only NAME`".into()))
    }

    /// Records Kafka's results, or checks that the record still holds; lines that say why not.
    pub fn record(places: &Places, folder: &Folder, tests: &[Test]) -> Result<Vec<String>, String> {
        let now = Oracle::of(places, folder, tests)?;
        if tests.is_empty() {
            return Ok(vec!["no test ran".into()]);
        }
        // What the script itself did wrong is no result.
        if let Some(broken) = tests.iter().find(|test| test.is_broken_script()) {
            return Ok(vec![format!("{}: {}", broken.name, broken.detail)]);
        }
        match Oracle::load(folder)? {
            Some(before) if before.stale(places, folder)?.is_none() => {
                let changed = before.tests.iter().filter(|(n, was)| now.tests.get(*n) != Some(was));
                let told = |(n, was): (&String, &Verdict)| {
                    format!("{n}: recorded {was:?}, now {:?}", now.tests.get(n))
                };
                let problems: Vec<String> = changed.map(told).collect();
                // More tests than before are no contradiction.
                if problems.is_empty() && now.tests.len() > before.tests.len() {
                    now.write(folder)?;
                }
                Ok(problems)
            }
            _ => now.write(folder).map(|()| Vec::new()),
        }
    }

    fn write(&self, folder: &Folder) -> Result<(), String> {
        let path = folder.path.join("oracle.json");
        let text = serde_json::to_string_pretty(self).map_err(|e| e.to_string())? + "\n";
        std::fs::write(&path, text).map_err(|e| format!("{path:?}: {e}"))
    }
}
