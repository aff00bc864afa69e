//! What a client sees of a fixture's topics, by name.

use super::make;
use crate::restart::state::Client;
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub type Seen = BTreeMap<String, Value>;

/// The row that holds the id of the idempotent producer.
pub const PRODUCER: &str = "producer";
const DYNAMIC_TOPIC_CONFIG: i64 = 1;
const DYNAMIC_DEFAULT_BROKER_CONFIG: i64 = 3;
/// Earliest, latest, and by time.
const TIMES: [i64; 4] = [-2, -1, 0, make::SECOND_MS];

pub fn look(client: &mut Client) -> Result<Seen, String> {
    let mut seen = Seen::new();
    for topic in make::TOPICS {
        let partitions = topic_row(client, topic, &mut seen)?;
        for partition in 0..partitions {
            for time in TIMES {
                let found = offset(client, topic, partition, time)?;
                seen.insert(format!("{topic}-{partition}, offset by {time}"), found);
            }
            let start = &seen[&format!("{topic}-{partition}, offset by -2")]["offset"];
            let batches = batches(client, topic, partition, start.as_i64().unwrap_or(0))?;
            seen.insert(format!("{topic}-{partition}, batches"), batches);
        }
        let configs = configs(client, 2, topic, DYNAMIC_TOPIC_CONFIG)?;
        seen.insert(format!("{topic}, configs"), configs);
    }
    let configs = configs(client, 4, "", DYNAMIC_DEFAULT_BROKER_CONFIG)?;
    seen.insert("broker configs".into(), configs);
    let asked = json!({ "topics": [{ "name": make::DELETED }], "allowAutoTopicCreation": false });
    let deleted = client.ask("Metadata", 12, asked)?;
    seen.insert("code of a deleted topic".into(), deleted["topics"][0]["errorCode"].clone());
    let topics = json!([{ "name": make::COMMITTED, "partitionIndexes": [0, 1] }]);
    let asked = json!({ "groupId": make::GROUP, "topics": topics });
    let committed = client.until("OffsetFetch", 7, asked, |answer| answer["errorCode"] == 0)?;
    seen.insert("commits".into(), committed["topics"].clone());
    Ok(seen)
}

/// Notes a topic's id and the cluster's; how many partitions it has, once all are led.
fn topic_row(client: &mut Client, topic: &str, seen: &mut Seen) -> Result<i64, String> {
    let asked = json!({ "topics": [{ "name": topic }], "allowAutoTopicCreation": false });
    let led = |answer: &Value| {
        let partitions = answer["topics"][0]["partitions"].as_array();
        partitions.is_some_and(|all| !all.is_empty() && all.iter().all(|p| p["leaderId"] == 1))
    };
    let metadata = client.until("Metadata", 12, asked, led)?;
    seen.insert("cluster id".into(), metadata["clusterId"].clone());
    seen.insert(format!("{topic}, id"), metadata["topics"][0]["topicId"].clone());
    let partitions = metadata["topics"][0]["partitions"].as_array().map_or(0, Vec::len);
    seen.insert(format!("{topic}, partitions"), json!(partitions));
    Ok(partitions as i64)
}

fn offset(client: &mut Client, topic: &str, partition: i64, time: i64) -> Result<Value, String> {
    let partition = json!({ "partitionIndex": partition, "timestamp": time });
    let topics = json!([{ "name": topic, "partitions": [partition] }]);
    let there = |answer: &Value| answer["topics"][0]["partitions"][0]["errorCode"] == 0;
    let asked = json!({ "replicaId": -1, "topics": topics });
    let answer = client.until("ListOffsets", 6, asked, there)?;
    let row = &answer["topics"][0]["partitions"][0];
    Ok(json!({ "offset": row["offset"], "timestamp": row["timestamp"] }))
}

/// All batches byte for byte, with keys, values, timestamps, headers and codecs in them.
fn batches(client: &mut Client, topic: &str, partition: i64, from: i64) -> Result<Value, String> {
    let (mut found, mut next) = (Vec::new(), from);
    loop {
        let asked =
            json!({ "partition": partition, "fetchOffset": next, "partitionMaxBytes": 1_000_000 });
        let topics = json!([{ "topic": topic, "partitions": [asked] }]);
        let asked =
            json!({ "replicaId": -1, "maxWaitMs": 0, "maxBytes": 10_000_000, "topics": topics });
        let answer = client.ask("Fetch", 11, asked)?;
        let row = &answer["responses"][0]["partitions"][0];
        if row["errorCode"] != 0 {
            return Err(format!("{topic}-{partition} at {next}: {answer}"));
        }
        let bytes = crate::wire::codec::from_hex(row["records"].as_str().unwrap_or(""));
        let described = crate::wire::batch::describe(&bytes.ok_or("records are not hex")?);
        let rows = described.as_array().cloned().unwrap_or_default();
        let last = rows.iter().rev().find_map(|row| {
            Some(row["baseOffset"].as_i64()? + row["lastOffsetDelta"].as_i64()? + 1)
        });
        found.extend(rows);
        match last {
            Some(after) if after > next => next = after,
            _ => return Ok(Value::Array(found)),
        }
    }
}

/// What is set on a resource itself.
fn configs(client: &mut Client, kind: i8, name: &str, source: i64) -> Result<Value, String> {
    let resource = json!({ "resourceType": kind, "resourceName": name, "configurationKeys": null });
    let answer = client.ask("DescribeConfigs", 4, json!({ "resources": [resource] }))?;
    let result = &answer["results"][0];
    if result["errorCode"] != 0 {
        return Err(format!("configs of `{name}`: {answer}"));
    }
    let rows = result["configs"].as_array().cloned().unwrap_or_default();
    let own = rows.iter().filter(|row| row["configSource"] == source);
    let pair = |row: &Value| (row["name"].as_str().unwrap_or("").to_string(), row["value"].clone());
    Ok(Value::Object(own.map(pair).collect()))
}
