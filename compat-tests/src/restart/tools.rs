//! Kafka's own tools on what the broker wrote: the log dumper on its files, the console consumer with the
//! offsets formatter on the offsets topic.

use super::output;
use crate::broker::Broker;
use crate::places::Places;
use crate::verdict::Test;
use std::path::{Path, PathBuf};
use std::process::Command;

const LOG4J: &str = "rootLogger.level=OFF\n";

/// A tool of Kafka's jars, to be given its arguments.
pub fn tool(places: &Places, class: &str) -> Result<Command, String> {
    let log4j = places.room("tools")?.join("log4j2.properties");
    std::fs::write(&log4j, LOG4J).map_err(|e| e.to_string())?;
    let mut java = Command::new("java");
    java.args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m"]);
    java.arg(format!("-Dlog4j2.configurationFile={}", log4j.display()));
    java.arg("-cp").arg(format!("{}/*", places.kafka_jars().display()));
    java.arg(class);
    Ok(java)
}

/// Both formatters on `__consumer_offsets`, after groups have committed and gone.
pub fn console_consumer(places: &Places, broker: &Broker) -> Vec<Test> {
    let read = |formatter: &str, wanted: &[&str]| {
        let mut tool = tool(places, "org.apache.kafka.tools.consumer.ConsoleConsumer")?;
        tool.args(["--bootstrap-server", &broker.bootstrap(), "--topic", "__consumer_offsets"]);
        tool.args(["--from-beginning", "--timeout-ms", "8000"]);
        tool.args(["--formatter", &format!("org.apache.kafka.tools.consumer.{formatter}")]);
        let printed = output(tool)?;
        let missing = wanted.iter().find(|part| !printed.lines().any(|line| line.contains(**part)));
        missing.map_or(Ok(()), |part| Err(format!("no line with {part} in {printed}")))
    };
    let offsets =
        read("OffsetsMessageFormatter", &["\"group\":\"g-group-SIGTERM\"", "\"offset\":2"]);
    let groups = read(
        "GroupMetadataMessageFormatter",
        &["\"group\":\"g-group-SIGTERM\"", "\"generation\":1"],
    );
    vec![
        Test::of("console consumer reads offsets", offsets),
        Test::of("console consumer reads groups", groups),
    ]
}

/// What the dumper says of a file that is not as it should be.
const COMPLAINTS: &[&str] = &[
    "Mismatches in",
    "Non-consecutive offsets",
    "Index timestamp",
    "Found timestamp mismatch",
    "Found out of order timestamp",
    "Found log start offset",
    "isvalid: false",
    "CORRUPT",
    "Could not",
    "Exception",
];

/// Every file that the dumper knows, kind by kind.
pub fn dump_log(places: &Places, broker: &Broker) -> Vec<Test> {
    let test = |extension: &str, at_least: usize| {
        let mut files = Vec::new();
        find(&broker.data(), extension, &mut files);
        if files.len() < at_least {
            return Err(format!("{} files *.{extension}, wanted {at_least}", files.len()));
        }
        let mut tool = tool(places, "org.apache.kafka.tools.DumpLogSegments")?;
        let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
        tool.args(["--deep-iteration", "--files", &names.join(",")]);
        let printed = output(tool)?.to_string();
        let bad = printed.lines().find(|line| COMPLAINTS.iter().any(|c| line.contains(c)));
        bad.map_or(Ok(()), |line| Err(line.to_string()))
    };
    [("log", 4), ("index", 4), ("timeindex", 4), ("snapshot", 1)]
        .map(|(extension, at_least)| {
            Test::of(format!("the log dumper reads .{extension}"), test(extension, at_least))
        })
        .into()
}

/// Files of partitions; Kafka's metadata log and Ottla's own are not a partition of a topic.
fn find(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().to_string();
        if path.is_dir() {
            if !name.contains("metadata") {
                find(&path, extension, found);
            }
        } else if name.ends_with(&format!(".{extension}")) {
            found.push(path);
        }
    }
}
