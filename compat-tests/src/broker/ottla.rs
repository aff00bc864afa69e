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

/// - `port`: 0 for any; none where the settings have listeners of their own.
pub fn command(binary: &Path, room: &Path, port: Option<u16>) -> Vec<String> {
    let text = |path: &Path| path.display().to_string();
    let config = text(&room.join("server.properties"));
    let data = text(&room.join("data"));
    let words = [&text(binary), "--config", &config, "--data-dir", &data, "--http-port", "0"];
    let mut words = words.map(String::from).to_vec();
    if let Some(port) = port {
        // Named by address, as the oracle is, so that both are told to clients alike.
        words.extend(["--set".into(), format!("listeners=PLAINTEXT://127.0.0.1:{port}")]);
    }
    words
}

/// The port of `ottla ready {"bootstrap":"host:port",…}`, once that line is whole.
pub fn ready(log: &str) -> Option<u16> {
    let line = log.lines().find_map(|line| line.strip_prefix("ottla ready "))?;
    let ready: Value = serde_json::from_str(line).ok()?;
    ready["bootstrap"].as_str()?.rsplit(':').next()?.parse().ok()
}
