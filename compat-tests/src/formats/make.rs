//! Makes a fixture with the present Ottla: `compat-tests keep-format NAME` once a format is about to change.

use super::seen::{self, PRODUCER};
use super::{ENDING, FOLDER, SEEN};
use crate::broker::{Broker, Kind, Stop, data};
use crate::folder::Folder;
use crate::from_kafka::{produce, sequenced};
use crate::places::Places;
use crate::restart::output;
use crate::restart::state::{Client, producer_id};
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};

const CODECS: [&str; 5] = ["none", "gzip", "xerial", "lz4", "zstd"];
pub const IDEMPOTENT: &str = "idempotent";
pub const COMPACTED: &str = "compacted";
const TRIMMED: &str = "trimmed";
/// In the middle of a batch.
const TRIMMED_TO: i64 = 5;
const CONFIGURED: &str = "configured";
pub const TOPICS: [&str; 9] = [
    "of-none",
    "of-gzip",
    "of-xerial",
    "of-lz4",
    "of-zstd",
    IDEMPOTENT,
    COMPACTED,
    TRIMMED,
    CONFIGURED,
];
pub const DELETED: &str = "deleted";
pub const GROUP: &str = "readers";
pub const COMMITTED: &str = "of-none";
/// The last sequence of the idempotent producer is the one before.
pub const SEQUENCES: i64 = 5;
const FIRST_MS: i64 = 1_700_000_000_000;
/// Of the second batch of a topic; each begins a segment.
pub const SECOND_MS: i64 = FIRST_MS + STEP_MS;
const STEP_MS: i64 = 10_000;
/// In the year 2100: what is known of a producer expires by the time of its last batch.
const FAR_MS: i64 = 4_102_444_800_000;
const PATIENCE: Duration = Duration::from_secs(30);

/// Makes `NAME-clean` and `NAME-killed`.
pub fn keep(places: &Places, name: &str) -> Result<(), String> {
    for (how, ending) in [(Stop::Term, "clean"), (Stop::Kill, "killed")] {
        let settings = Folder::built_in(places, FOLDER).settings()?;
        let room = format!("keep-{ending}");
        let mut broker = Broker::start(Kind::Ottla, places, &room, &settings)?;
        let mut client = Client::open(places, &broker.bootstrap())?;
        let producer = fill(&mut client, &broker)?;
        let mut seen = seen::look(&mut client)?;
        broker.stop(how)?;
        seen.insert(PRODUCER.into(), json!(producer));
        let text = serde_json::to_string_pretty(&seen).map_err(|e| e.to_string())?;
        std::fs::write(broker.room.join(SEEN), text).map_err(|e| format!("{SEEN}: {e}"))?;
        let archive = places.home.join(FOLDER).join(format!("{name}-{ending}{ENDING}"));
        let mut tar = Command::new("tar");
        tar.args(["--sparse", "--owner=0", "--group=0", "-czf"]).arg(&archive);
        tar.arg("-C").arg(&broker.room).args(["data", SEEN]);
        output(tar)?;
        println!("{} is made", archive.display());
    }
    Ok(())
}

/// Makes some of everything; the idempotent producer's id.
fn fill(client: &mut Client, broker: &Broker) -> Result<i64, String> {
    let rolls = ("segment.ms", "1000");
    for codec in CODECS {
        create(client, &format!("of-{codec}"), 2, &[rolls, ("index.interval.bytes", "1")])?;
    }
    create(client, IDEMPOTENT, 1, &[("message.timestamp.after.max.ms", "9223372036854775807")])?;
    let compacts = [("cleanup.policy", "compact"), ("min.cleanable.dirty.ratio", "0.001")];
    create(client, COMPACTED, 1, &[rolls, compacts[0], compacts[1]])?;
    create(client, TRIMMED, 1, &[rolls])?;
    let configs = [("retention.bytes", "123456789"), ("compression.type", "zstd")];
    create(client, CONFIGURED, 3, &configs)?;
    create(client, DELETED, 1, &[])?;
    client.ask("DeleteTopics", 5, json!({ "topicNames": [DELETED], "timeoutMs": 10000 }))?;
    let config = json!({ "name": "message.max.bytes", "configOperation": 0, "value": "2000000" });
    let resource = json!({ "resourceType": 4, "resourceName": "", "configs": [config] });
    client.ask("IncrementalAlterConfigs", 1, json!({ "resources": [resource] }))?;
    for topic in TOPICS.iter().filter(|topic| **topic != IDEMPOTENT && **topic != COMPACTED) {
        let codec = topic.strip_prefix("of-").unwrap_or("none");
        for round in 0..3 {
            for _ in 0..2 {
                produce(client, topic, &batch(codec, round))?;
            }
        }
    }
    compact(client, broker)?;
    let trimmed = json!({ "partitionIndex": 0, "offset": TRIMMED_TO });
    let topics = json!([{ "name": TRIMMED, "partitions": [trimmed] }]);
    client.ask("DeleteRecords", 2, json!({ "topics": topics, "timeoutMs": 10000 }))?;
    written_down(broker, "log-start-offset-checkpoint", TRIMMED, || Some(TRIMMED_TO))?;
    commit(client, 0, 4, "note")?;
    commit(client, 0, 5, "a later note")?;
    let id = producer_id(client)?;
    for sequence in 0..SEQUENCES {
        produce(client, IDEMPOTENT, &far(sequenced(id, sequence)))?;
    }
    Ok(id)
}

/// Two records, one with headers, one without a key.
fn batch(codec: &str, round: i64) -> Value {
    let at = FIRST_MS + round * STEP_MS;
    let headers = json!([["first", "1"], ["first", "again"], ["empty", ""], ["none", null]]);
    let long =
        json!({ "key": format!("key {round}"), "value": codec, "times": 50, "headers": headers });
    let records = json!([long, { "value": format!("second of {round}"), "timestamp": at + 1 }]);
    json!({ "codec": codec, "baseTimestamp": at, "records": records })
}

/// With a time that no expiry reaches.
pub fn far(mut spec: Value) -> Value {
    spec["baseTimestamp"] = json!(FAR_MS);
    spec
}

/// The same keys many times, a tombstone among them, and waits until only the last are left.
fn compact(client: &mut Client, broker: &Broker) -> Result<(), String> {
    for round in 0..5 {
        let record = |key: i64| match (key, round) {
            (3, 3) => json!({ "key": "key 3" }),
            _ => json!({ "key": format!("key {key}"), "value": format!("value {round}") }),
        };
        let keys = if round == 4 { 0..1 } else { 0..4 };
        let records: Vec<Value> = keys.map(record).collect();
        let at = FIRST_MS + round * STEP_MS;
        produce(client, COMPACTED, &json!({ "baseTimestamp": at, "records": records }))?;
    }
    written_down(broker, "cleaner-offset-checkpoint", COMPACTED, || {
        data::bases(&broker.data(), COMPACTED, ".log").pop()
    })
}

/// Waits until a checkpoint has this offset of a topic.
fn written_down(
    broker: &Broker,
    file: &str,
    topic: &str,
    wanted: impl Fn() -> Option<i64>,
) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (at, wanted) = (data::checkpoint(&broker.data(), file, topic), wanted());
        if at.is_some() && at == wanted {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("{file} has {at:?} of {topic}, not {wanted:?}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn create(
    client: &mut Client,
    name: &str,
    partitions: i32,
    configs: &[(&str, &str)],
) -> Result<(), String> {
    let configs: Vec<Value> =
        configs.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let topic = json!({ "name": name, "numPartitions": partitions, "replicationFactor": 1, "configs": configs });
    let answer = client.ask("CreateTopics", 5, json!({ "topics": [topic], "timeoutMs": 10000 }))?;
    if answer["topics"][0]["errorCode"] == 0 { Ok(()) } else { Err(format!("{answer}")) }
}

pub fn commit(client: &mut Client, partition: i32, offset: i64, note: &str) -> Result<(), String> {
    // Makes the topic of the offsets, where there is none yet.
    let asked = json!({ "key": GROUP, "keyType": 0 });
    client.until("FindCoordinator", 3, asked, |answer| answer["errorCode"] == 0)?;
    let row = json!({
        "partitionIndex": partition, "committedOffset": offset, "committedMetadata": note
    });
    let topics = json!([{ "name": COMMITTED, "partitions": [row] }]);
    let taken = |answer: &Value| answer["topics"][0]["partitions"][0]["errorCode"] == 0;
    client.until("OffsetCommit", 8, json!({ "groupId": GROUP, "topics": topics }), taken)?;
    Ok(())
}
