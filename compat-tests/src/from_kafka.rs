//! A data directory that a real Kafka has written, opened in place: the same topics, records, offsets,
//! producers and commits; then Kafka's tools on what the broker wrote on top.

use crate::broker::{Broker, Kind, Stop};
use crate::folder::Folder;
use crate::places::Places;
use crate::restart::state::{Client, create_topic, producer_id};
use crate::restart::tools;
use crate::verdict::Test;
use crate::wire::batch;
use crate::wire::codec::to_hex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

const CODECS: [&str; 5] = ["none", "gzip", "xerial", "lz4", "zstd"];
const GROUP: &str = "readers";
/// Three batches of this many bytes need more than one segment of the smallest size.
const BIG: usize = 700_000;

pub fn run(places: &Places, folder: &Folder, kind: Kind) -> Result<Vec<Test>, String> {
    let settings = folder.settings()?;
    let mut broker = Broker::start(Kind::Kafka, places, "from-kafka", &settings)?;
    let mut client = Client::open(places, &broker.bootstrap())?;
    let producer = fill(places, &broker, &mut client)?;
    let before = seen(&mut client)?;
    broker.stop(Stop::Term)?;
    let kept = broker.data().join("__cluster_metadata-0");
    let metadata = contents(&kept)?;
    broker.start_as(kind, &settings)?;
    let mut client = Client::open(places, &broker.bootstrap())?;
    let mut tests = vec![Test::of("all is as Kafka left it", same(&before, &seen(&mut client)?))];
    tests.push(Test::of("a retried batch has its first offset", retried(&mut client, producer)));
    tests.push(Test::of("a new producer id is new", newer(&mut client, producer)));
    tests.push(Test::of("new records go on behind", written_on(places, &mut broker)));
    let left = match kind {
        Kind::Ottla if contents(&kept)? != metadata => Err("it was changed".to_string()),
        _ => Ok(()),
    };
    tests.push(Test::of("the metadata log of Kafka is left alone", left));
    broker.stop(Stop::Term)?;
    tests.extend(tools::dump_log(places, &broker));
    Ok(tests)
}

fn topics() -> Vec<String> {
    let codecs = CODECS.iter().map(|codec| format!("of-{codec}"));
    codecs.chain(["segments".to_string(), "idempotent".to_string()]).collect()
}

/// Makes the topics, their records and a commit; the idempotent producer's id.
fn fill(places: &Places, broker: &Broker, client: &mut Client) -> Result<i64, String> {
    for topic in topics() {
        create_topic(places, &broker.bootstrap(), &topic, 2)?;
    }
    let config = json!({ "name": "segment.bytes", "configOperation": 0, "value": "1048576" });
    let resource = json!({ "resourceType": 2, "resourceName": "segments", "configs": [config] });
    client.ask("IncrementalAlterConfigs", 1, json!({ "resources": [resource] }))?;
    for codec in CODECS {
        let records = json!([{ "key": "k", "value": codec, "times": 100 }, { "value": "second" }]);
        produce(client, &format!("of-{codec}"), &json!({ "codec": codec, "records": records }))?;
    }
    for _ in 0..3 {
        let records = json!([{ "value": "x", "times": BIG }]);
        produce(client, "segments", &json!({ "records": records }))?;
    }
    let id = producer_id(client)?;
    for sequence in 0..3 {
        produce(client, "idempotent", &sequenced(id, sequence))?;
    }
    let committed =
        json!({ "partitionIndex": 0, "committedOffset": 1, "committedMetadata": "note" });
    let topics = json!([{ "name": "of-none", "partitions": [committed] }]);
    // Makes the topic of the offsets.
    let asked = json!({ "key": GROUP, "keyType": 0 });
    client.until("FindCoordinator", 3, asked, |answer| answer["errorCode"] == 0)?;
    let taken = |answer: &Value| answer["topics"][0]["partitions"][0]["errorCode"] == 0;
    client.until("OffsetCommit", 8, json!({ "groupId": GROUP, "topics": topics }), taken)?;
    Ok(id)
}

pub fn sequenced(id: i64, sequence: i64) -> Value {
    let records = json!([{ "value": format!("of sequence {sequence}") }]);
    json!({ "producerId": id, "producerEpoch": 0, "baseSequence": sequence, "records": records })
}

/// Produces to partition 0; the base offset.
pub fn produce(client: &mut Client, topic: &str, spec: &Value) -> Result<i64, String> {
    let asked = produce_request(topic, spec)?;
    let answer = client.until("Produce", 9, asked, |answer| row(answer)["errorCode"] == 0)?;
    row(&answer)["baseOffset"].as_i64().ok_or_else(|| "no base offset".into())
}

/// One batch for partition 0, of now unless it has a time: retention and the expiry of producers go by it.
pub fn produce_request(topic: &str, spec: &Value) -> Result<Value, String> {
    let mut spec = spec.clone();
    if spec["baseTimestamp"].is_null() {
        spec["baseTimestamp"] = json!(now_ms()?);
    }
    let records = to_hex(&batch::build(&spec)?);
    let partition = json!({ "index": 0, "records": records });
    let topic = json!({ "name": topic, "partitionData": [partition] });
    Ok(json!({ "acks": -1, "timeoutMs": 10000, "topicData": [topic] }))
}

fn now_ms() -> Result<u64, String> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|e| e.to_string())?;
    Ok(since.as_millis() as u64)
}

fn row(answer: &Value) -> &Value {
    &answer["responses"][0]["partitionResponses"][0]
}

/// What a client sees of all that was made.
fn seen(client: &mut Client) -> Result<BTreeMap<String, Value>, String> {
    let mut seen = BTreeMap::new();
    for topic in topics() {
        let asked = json!({ "topics": [{ "name": topic }], "allowAutoTopicCreation": false });
        let led = |answer: &Value| {
            let partitions = answer["topics"][0]["partitions"].as_array();
            partitions.is_some_and(|all| all.len() == 2 && all.iter().all(|p| p["leaderId"] == 1))
        };
        let metadata = client.until("Metadata", 12, asked, led)?;
        seen.insert(format!("id of {topic}"), metadata["topics"][0]["topicId"].clone());
        for (name, timestamp) in [("start", -2), ("end", -1), ("by time", 1_700_000_000_000_i64)] {
            let partition = json!({ "partitionIndex": 0, "timestamp": timestamp });
            let topics = json!([{ "name": topic, "partitions": [partition] }]);
            let asked = json!({ "replicaId": -1, "topics": topics });
            let there = |answer: &Value| answer["topics"][0]["partitions"][0]["errorCode"] == 0;
            let found = client.until("ListOffsets", 6, asked, there)?;
            let offset = &found["topics"][0]["partitions"][0]["offset"];
            seen.insert(format!("{name} of {topic}"), offset.clone());
        }
        for offset in 0..3 {
            let found = fetch(client, &topic, offset)?;
            seen.insert(format!("{topic} from {offset}"), found);
        }
    }
    let asked = json!({ "resources": [{ "resourceType": 2, "resourceName": "segments", "configurationKeys": ["segment.bytes"] }] });
    let configs = client.ask("DescribeConfigs", 4, asked)?;
    seen.insert("configs".into(), configs["results"][0]["configs"][0]["value"].clone());
    let topics = json!([{ "name": "of-none", "partitionIndexes": [0, 1] }]);
    let asked = json!({ "groupId": GROUP, "topics": topics });
    let loaded = |answer: &Value| answer["errorCode"] == 0;
    let committed = client.until("OffsetFetch", 7, asked, loaded)?;
    seen.insert("commits".into(), committed["topics"].clone());
    Ok(seen)
}

fn fetch(client: &mut Client, topic: &str, offset: i64) -> Result<Value, String> {
    let partition =
        json!({ "partition": 0, "fetchOffset": offset, "partitionMaxBytes": 1_000_000 });
    let topics = json!([{ "topic": topic, "partitions": [partition] }]);
    let asked =
        json!({ "replicaId": -1, "maxWaitMs": 10, "maxBytes": 10_000_000, "topics": topics });
    let answer = client.ask("Fetch", 11, asked)?;
    let row = &answer["responses"][0]["partitions"][0];
    Ok(json!([row["errorCode"], row["highWatermark"], row["records"]]))
}

/// # Errors
/// The first difference.
pub fn same(
    before: &BTreeMap<String, Value>,
    after: &BTreeMap<String, Value>,
) -> Result<(), String> {
    let differs = before.iter().find(|(name, value)| after.get(*name) != Some(value));
    differs.map_or(Ok(()), |(name, value)| {
        let brief = |value: Option<&Value>| -> String {
            value.map(Value::to_string).unwrap_or_default().chars().take(300).collect()
        };
        Err(format!("{name}: before {}, now {}", brief(Some(value)), brief(after.get(name))))
    })
}

fn retried(client: &mut Client, producer: i64) -> Result<(), String> {
    let again = produce(client, "idempotent", &sequenced(producer, 2))?;
    let next = produce(client, "idempotent", &sequenced(producer, 3))?;
    if (again, next) == (2, 3) { Ok(()) } else { Err(format!("offsets {again} and {next}")) }
}

fn newer(client: &mut Client, producer: i64) -> Result<(), String> {
    let new = producer_id(client)?;
    if new > producer { Ok(()) } else { Err(format!("producer id {new} after {producer}")) }
}

/// Appends to every topic, stops hard, and looks for what was acknowledged.
fn written_on(places: &Places, broker: &mut Broker) -> Result<(), String> {
    let mut client = Client::open(places, &broker.bootstrap())?;
    for topic in topics() {
        let codec = topic.strip_prefix("of-").unwrap_or("none");
        let records = json!([{ "value": "x", "times": BIG }]);
        produce(&mut client, &topic, &json!({ "codec": codec, "records": records }))?;
    }
    let before = seen(&mut client)?;
    broker.restart(Stop::Kill)?;
    let mut client = Client::open(places, &broker.bootstrap())?;
    same(&before, &seen(&mut client)?)
}

/// Every file of a directory.
fn contents(dir: &Path) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).map_err(|e| format!("{dir:?}: {e}"))?.flatten() {
        let bytes = std::fs::read(entry.path()).map_err(|e| e.to_string())?;
        found.insert(entry.file_name().to_string_lossy().to_string(), bytes);
    }
    Ok(found)
}
