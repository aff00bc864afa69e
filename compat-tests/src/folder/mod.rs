//! A folder per suite: what it may differ in (`expect.toml`), what Kafka did (`oracle.json`), how it is
//! run. Lives here: the rules that keep results honest. May not live here: the tests themselves.

pub mod expect;
pub mod judge;
pub mod oracle;
pub mod script;

use crate::broker::settings::Settings;
use crate::places::Places;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub struct Folder {
    pub name: String,
    pub path: PathBuf,
}

/// Files that a recorded result does not depend on.
const NOT_HASHED: &[&str] = &["oracle.json", "expect.toml", "FINDINGS.md"];

impl Folder {
    pub fn client(places: &Places, name: &str) -> Folder {
        Folder { name: name.into(), path: places.home.join("clients").join(name) }
    }

    pub fn built_in(places: &Places, name: &str) -> Folder {
        Folder { name: name.into(), path: places.home.join(name) }
    }

    pub fn settings(&self) -> Result<Settings, String> {
        Settings::of_folder(&self.path)
    }

    /// All files that decide what a run does, in a fixed order.
    fn sources(&self) -> Result<Vec<PathBuf>, String> {
        let mut found = Vec::new();
        collect(&self.path, &mut found)?;
        // Two folders may share one source: `uses` names it.
        if let Ok(shared) = std::fs::read_to_string(self.path.join("uses")) {
            collect(&self.path.join(shared.trim()), &mut found)?;
        }
        found.retain(|path| !NOT_HASHED.iter().any(|name| path.ends_with(name)));
        found.sort();
        Ok(found)
    }

    /// The pins that the folder's files name: another version of a client is another suite.
    pub fn pins(&self, places: &Places) -> Result<BTreeMap<String, String>, String> {
        let mut text = String::new();
        for path in self.sources()? {
            text.push_str(&read(&path)?);
        }
        let named = |name: &str| {
            text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == name)
        };
        let pins = places.pins().iter().filter(|(name, _)| named(name));
        Ok(pins.map(|(k, v)| (k.clone(), v.clone())).collect())
    }

    /// Of scripts, settings and pins: a record made under another hash says nothing.
    pub fn hash(&self, places: &Places) -> Result<String, String> {
        let mut hash = Sha256::new();
        for path in self.sources()? {
            let name = path.strip_prefix(&self.path).unwrap_or(&path);
            hash.update(format!("{}\n{}\n", name.display(), read(&path)?));
        }
        hash.update(self.settings()?.text());
        for (name, version) in self.pins(places)? {
            hash.update(format!("{name}={version}\n"));
        }
        Ok(crate::wire::codec::to_hex(&hash.finalize())[..16].to_string())
    }
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    for entry in std::fs::read_dir(folder).map_err(|e| format!("{folder:?}: {e}"))?.flatten() {
        let path = entry.path();
        if path.is_dir() { collect(&path, found)? } else { found.push(path) }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|e| format!("{path:?}: {e}"))?;
    Ok(String::from_utf8_lossy(&bytes).to_string())
}
