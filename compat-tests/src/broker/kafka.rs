//! Apache Kafka from its jars: one combined node, formatted and started as its scripts do.

use super::ports;
use super::settings::Settings;
use std::path::Path;
use std::process::Command;

/// Any valid id will do; the same one keeps answers comparable between runs.
const CLUSTER_ID: &str = "MkU3OEVBNTcwNTJENDM2Qk";
const HEAP: &str = "-Xmx512m";

const LOG4J: &str = "rootLogger.level=WARN
rootLogger.appenderRef.stdout.ref=STDOUT
appender.stdout.type=Console
appender.stdout.name=STDOUT
appender.stdout.layout.type=PatternLayout
appender.stdout.layout.pattern=%d %p %m (%c)%n
logger.server.name=kafka.server.KafkaRaftServer
logger.server.level=INFO
";

/// Writes the settings and formats the directory.
pub fn prepare(jars: &Path, room: &Path, settings: &Settings) -> Result<(), String> {
    let controller = ports::free()?;
    let id = settings.get("node.id");
    let dirs = match settings.get("log.dirs") {
        "" => room.join("data").display().to_string(),
        own => own.to_string(),
    };
    let text = format!(
        "{}process.roles=broker,controller\n\
         controller.quorum.voters={id}@127.0.0.1:{controller}\n\
         listeners={},CONTROLLER://127.0.0.1:{controller}\n\
         controller.listener.names=CONTROLLER\nlog.dirs={dirs}\n",
        settings.text(),
        settings.get("listeners"),
    );
    let write = |name: &str, text: &str| {
        std::fs::write(room.join(name), text).map_err(|e| format!("{room:?}/{name}: {e}"))
    };
    write("server.properties", &text)?;
    write("log4j2.properties", LOG4J)?;
    let mut format = Command::new("java");
    format.args(java(jars, room)).args([
        "kafka.tools.StorageTool",
        "format",
        "-t",
        CLUSTER_ID,
        "-c",
    ]);
    format.arg(room.join("server.properties"));
    for feature in &settings.features {
        format.args(["--feature", feature]);
    }
    let done = format.output().map_err(|e| format!("java: {e}"))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
        return Err(format!("Kafka's directory could not be formatted: {said}"));
    }
    Ok(())
}

/// The JVM options that the broker and its tools share.
pub fn java(jars: &Path, room: &Path) -> Vec<String> {
    let log4j = format!("-Dlog4j2.configurationFile={}", room.join("log4j2.properties").display());
    let jars = format!("{}/*", jars.display());
    ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", &log4j, "-cp", &jars].map(String::from).to_vec()
}

pub fn command(jars: &Path, room: &Path) -> Vec<String> {
    let mut words = vec!["java".to_string(), HEAP.to_string()];
    words.extend(java(jars, room));
    words.push("kafka.Kafka".into());
    words.push(room.join("server.properties").display().to_string());
    words
}

pub fn ready(log: &str) -> bool {
    log.contains("Kafka Server started")
}
