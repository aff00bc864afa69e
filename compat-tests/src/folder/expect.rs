//! `expect.toml`: differences from Kafka that are allowed for now. An entry says what it waits for; it
//! fails the run itself once that is advertised, once its test passes, or when no test has its name.
//!
//! ```toml
//! [[allow]]
//! test = "txn"
//! reason = "transactions are not served yet"
//! waits_for = "EndTxn"        # an API key, or a feature of ApiVersions
//! ```

use serde::Deserialize;
use std::path::Path;

#[derive(Debug, Clone, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Allowed {
    /// A test's name; one `*` at its end stands for any rest.
    pub test: String,
    pub reason: String,
    /// The API key or feature whose arrival ends the excuse.
    pub waits_for: Option<String>,
    /// The issue that will end it, where no API key does.
    pub issue: Option<u32>,
}

impl Allowed {
    pub fn covers(&self, test: &str) -> bool {
        match self.test.strip_suffix('*') {
            Some(start) => test.starts_with(start),
            None => test == self.test,
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    allow: Vec<Allowed>,
}

/// No excuses: what a broker does sometimes, it does wrong.
const NO_REASONS: &[&str] = &["flaky", "slow", "sometimes"];

/// The entries of a folder; none without the file.
pub fn load(folder: &Path) -> Result<Vec<Allowed>, String> {
    let path = folder.join("expect.toml");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{path:?}: {e}"))?;
    parse(&text).map_err(|e| format!("{path:?}: {e}"))
}

fn parse(text: &str) -> Result<Vec<Allowed>, String> {
    let file: File = toml::from_str(text).map_err(|e| e.to_string())?;
    for entry in &file.allow {
        let reason = entry.reason.to_lowercase();
        if reason.trim().is_empty() || NO_REASONS.iter().any(|no| reason.contains(no)) {
            return Err(format!("`{}`: \"{}\" is no reason", entry.test, entry.reason));
        }
        if entry.waits_for.is_none() && entry.issue.is_none() {
            return Err(format!("`{}` waits for nothing: name an API key or an issue", entry.test));
        }
    }
    Ok(file.allow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_needs_a_reason_and_an_end() {
        #[rustfmt::skip] // columns
        let table = [
            ("reason = \"not served\"\nwaits_for = \"EndTxn\"", true),
            ("reason = \"not served\"\nissue = 5",              true),
            ("reason = \"not served\"",                         false),
            ("reason = \"flaky\"\nissue = 5",                   false),
            ("reason = \"\"\nissue = 5",                        false),
            ("reason = \"x\"\nissue = 5\nother = 1",            false),
        ];
        for (rest, good) in table {
            let parsed = parse(&format!("[[allow]]\ntest = \"t\"\n{rest}"));
            assert_eq!(parsed.is_ok(), good, "{rest}: {parsed:?}");
        }
    }
}
