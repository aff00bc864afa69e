//! Ottla as its users start it: a properties file, port 0, the ready line on stdout.

use super::settings::Settings;
use serde_json::Value;
use std::path::Path;

/// Writes the settings; returns port 0, which lets Ottla choose.
pub fn prepare(room: &Path, settings: &Settings) -> Result<u16, String> {
    let path = room.join("server.properties");
    std::fs::write(&path, settings.text()).map_err(|e| format!("{path:?}: {e}"))?;
    Ok(0)
}

pub fn command(binary: &Path, room: &Path, port: u16) -> Vec<String> {
    let text = |path: &Path| path.display().to_string();
    let config = text(&room.join("server.properties"));
    let data = text(&room.join("data"));
    // Named by address, as the oracle is, so that both are told to clients alike.
    let listeners = format!("listeners=PLAINTEXT://127.0.0.1:{port}");
    let words = ["--config", &config, "--data-dir", &data, "--set", &listeners, "--http-port", "0"];
    std::iter::once(text(binary)).chain(words.map(String::from)).collect()
}

/// The port of `ottla ready {"bootstrap":"host:port",…}`, once that line is whole.
pub fn ready(log: &str) -> Option<u16> {
    let line = log.lines().find_map(|line| line.strip_prefix("ottla ready "))?;
    let ready: Value = serde_json::from_str(line).ok()?;
    ready["bootstrap"].as_str()?.rsplit(':').next()?.parse().ok()
}
