//! Ottla as its users start it: a properties file, a data directory, the ready line on stdout.

use super::settings::Settings;
use serde_json::Value;
use std::path::Path;

/// Writes the settings.
pub fn prepare(room: &Path, settings: &Settings) -> Result<(), String> {
    let path = room.join("server.properties");
    std::fs::write(&path, settings.text()).map_err(|e| format!("{path:?}: {e}"))
}

pub fn command(binary: &Path, room: &Path) -> Vec<String> {
    let text = |path: &Path| path.display().to_string();
    let config = text(&room.join("server.properties"));
    let data = text(&room.join("data"));
    let mut words = vec![text(binary), "--config".into(), config, "--http-port".into(), "0".into()];
    if !names_directories(room) {
        words.extend(["--data-dir".into(), data]);
    }
    words
}

/// The settings may have directories of their own.
fn names_directories(room: &Path) -> bool {
    let text = std::fs::read_to_string(room.join("server.properties")).unwrap_or_default();
    text.lines().any(|line| line.starts_with("log.dirs="))
}

/// Whether the line `ottla ready {"bootstrap":"host:port",…}` is whole. The address in it is the one that
/// is advertised, which need not be one to connect to.
pub fn ready(log: &str) -> bool {
    let line = log.lines().find_map(|line| line.strip_prefix("ottla ready "));
    let ready = line.and_then(|line| serde_json::from_str::<Value>(line).ok());
    ready.is_some_and(|ready| ready["bootstrap"].is_string())
}
