//! A plain writer that keeps account of what was acknowledged, and a reader that looks at every batch: its
//! CRC, its offsets, its records.

use crate::places::Places;
use crate::restart::state::Client;
use crate::wire::batch;
use crate::wire::codec::{from_hex, to_hex};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Kafka's KAFKA_STORAGE_ERROR and CORRUPT_MESSAGE.
pub const STORAGE: i64 = 56;
pub const CORRUPT: i64 = 2;
pub const TOPIC_EXISTS: i64 = 36;
/// OFFSET_NOT_AVAILABLE.
const NOT_AVAILABLE: i64 = 78;

/// Each batch has a time of its own.
pub const FIRST_MS: u64 = 1_700_000_000_000;

/// Bytes of one Fetch answer.
const FETCH_BYTES: i64 = 4 << 20;

pub type Place = (String, i32);

/// What was acknowledged: the value at each offset.
#[derive(Default)]
pub struct Account {
    acked: BTreeMap<Place, BTreeMap<i64, String>>,
    sent: u64,
    pub refused: BTreeMap<i64, u64>,
}

/// What a partition holds.
pub struct Found {
    pub values: BTreeMap<i64, String>,
    /// Code that ended the reading before the high watermark; 0: none.
    pub code: i64,
}

pub fn open(places: &Places, bootstrap: &str) -> Result<Client, String> {
    Client::open(places, bootstrap)
}

/// Creates a topic; the code that was answered.
pub fn create(
    client: &mut Client,
    name: &str,
    partitions: i32,
    configs: &[(&str, &str)],
) -> Result<i64, String> {
    let configs: Vec<Value> =
        configs.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let topic = json!({ "name": name, "numPartitions": partitions, "replicationFactor": 1, "configs": configs });
    let asked = json!({ "topics": [topic], "timeoutMs": 5000 });
    let answer = client.ask("CreateTopics", 5, asked)?;
    answer["topics"][0]["errorCode"].as_i64().ok_or_else(|| format!("no code in {answer}"))
}

/// Creates a topic that must be there afterwards.
pub fn must_create(
    client: &mut Client,
    name: &str,
    partitions: i32,
    configs: &[(&str, &str)],
) -> Result<(), String> {
    match create(client, name, partitions, configs)? {
        0 | TOPIC_EXISTS => Ok(()),
        code => Err(format!("topic {name} is refused with {code}")),
    }
}

/// Those of `names` that the broker does not know.
pub fn missing(client: &mut Client, names: &[String]) -> Result<Vec<String>, String> {
    let topics: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
    let asked = json!({ "topics": topics, "allowAutoTopicCreation": false });
    let answer = client.ask("Metadata", 9, asked)?;
    let rows = answer["topics"].as_array().ok_or("no topics")?;
    let known = |row: &&Value| row["errorCode"] != 0;
    Ok(rows.iter().filter(known).map(|row| row["name"].to_string()).collect())
}

impl Account {
    /// Writes one batch of `count` records of `size` bytes and waits for its answer; the code. An error: the
    /// broker did not answer, so nobody knows.
    pub fn put(
        &mut self,
        client: &mut Client,
        (topic, partition): (&str, i32),
        count: usize,
        size: usize,
    ) -> Result<i64, String> {
        let values: Vec<String> = (0..count)
            .map(|_| {
                self.sent += 1;
                let front = format!("{topic}/{partition}/{}/", self.sent);
                format!("{front}{}", "x".repeat(size.saturating_sub(front.len())))
            })
            .collect();
        let records: Vec<Value> = values.iter().map(|value| json!({ "value": value })).collect();
        let bytes = to_hex(&batch::build(
            &json!({ "records": records, "baseTimestamp": FIRST_MS + self.sent }),
        )?);
        let data =
            json!({ "name": topic, "partitionData": [{ "index": partition, "records": bytes }] });
        let asked = json!({ "acks": -1, "timeoutMs": 3000, "topicData": [data] });
        let answer = client.ask("Produce", 9, asked)?;
        let answered = &answer["responses"][0]["partitionResponses"][0];
        let (code, base) = (answered["errorCode"].as_i64(), answered["baseOffset"].as_i64());
        let (Some(code), Some(base)) = (code, base) else { return Err(format!("{answer}")) };
        if code == 0 {
            let acked = self.acked.entry((topic.to_string(), partition)).or_default();
            acked.extend((base..).zip(values));
        } else {
            *self.refused.entry(code).or_default() += 1;
        }
        Ok(code)
    }

    pub fn places(&self) -> Vec<Place> {
        self.acked.keys().cloned().collect()
    }

    /// How many records were acknowledged.
    pub fn count(&self) -> usize {
        self.acked.values().map(BTreeMap::len).sum()
    }

    /// The offset after the last that was acknowledged.
    pub fn end(&self, place: &Place) -> i64 {
        let acked = self.acked.get(place);
        acked.and_then(|acked| acked.keys().next_back()).map_or(0, |last| last + 1)
    }

    /// Forgets what is not in `found`: a later write may stand there.
    pub fn cut(&mut self, place: &Place, found: &Found) {
        let end = found.values.keys().next_back().map_or(0, |last| last + 1);
        self.acked.entry(place.clone()).or_default().retain(|offset, _| *offset < end);
    }

    /// What is there is what was written; with `all` nothing acknowledged is missing.
    pub fn check(&self, place: &Place, found: &Found, all: bool) -> Result<(), String> {
        let (topic, partition) = place;
        let front = format!("{topic}/{partition}/");
        let strange = found.values.iter().find(|(_, value)| !value.starts_with(&front));
        if let Some((offset, value)) = strange {
            return Err(format!("{front}{offset} holds {:.40}", value));
        }
        let none = BTreeMap::new();
        for (offset, value) in self.acked.get(place).unwrap_or(&none) {
            match found.values.get(offset) {
                Some(there) if there == value => {}
                Some(there) => {
                    return Err(format!("{front}{offset}: {there:.40}, not {value:.40}"));
                }
                None if all => {
                    let (lost, last) = (self.lost(place, found), found.values.keys().next_back());
                    return Err(format!(
                        "{front}{offset} and {lost} in all are lost, the last is {last:?}"
                    ));
                }
                None => {}
            }
        }
        Ok(())
    }

    fn lost(&self, place: &Place, found: &Found) -> usize {
        let acked = self.acked.get(place).into_iter().flatten();
        acked.filter(|(offset, _)| !found.values.contains_key(offset)).count()
    }
}

/// Reads a partition from offset 0 on, see [`read_from`].
///
/// # Errors
/// A batch whose CRC is wrong, offsets that run back or leave a hole.
pub fn read(client: &mut Client, place: &Place, dense: bool) -> Result<Found, String> {
    // A leader that has just started tells so while it does not know yet what is committed.
    let (topic, partition) = place;
    let row = json!({ "partitionIndex": partition, "timestamp": -1 });
    let topics = json!([{ "name": topic, "partitions": [row] }]);
    let knows = |answer: &Value| answer["topics"][0]["partitions"][0]["errorCode"] != NOT_AVAILABLE;
    client.until("ListOffsets", 6, json!({ "replicaId": -1, "topics": topics }), knows)?;
    read_from(client, place, 0, dense)
}

/// Reads a partition to its high watermark. With `dense` its offsets have no hole.
///
/// # Errors
/// A batch whose CRC is wrong, offsets that run back or leave a hole.
pub fn read_from(
    client: &mut Client,
    place: &Place,
    from: i64,
    dense: bool,
) -> Result<Found, String> {
    let (topic, partition) = place;
    let (mut found, mut next) = (BTreeMap::new(), from);
    loop {
        let asked = json!({ "partition": partition, "fetchOffset": next, "partitionMaxBytes": FETCH_BYTES });
        let asked = json!({ "replicaId": -1, "maxWaitMs": 0, "minBytes": 0, "maxBytes": FETCH_BYTES,
            "topics": [{ "topic": topic, "partitions": [asked] }] });
        let answer = client.ask("Fetch", 11, asked)?;
        let part = &answer["responses"][0]["partitions"][0];
        let code = part["errorCode"].as_i64().ok_or_else(|| format!("{answer}"))?;
        let end = part["highWatermark"].as_i64().unwrap_or(-1);
        let bytes =
            from_hex(part["records"].as_str().unwrap_or("")).ok_or("records are not hex")?;
        let before = next;
        if code == 0 {
            next = take(&bytes, next, dense, &mut found)
                .map_err(|why| format!("{topic}/{partition} from {next} on: {why}"))?;
        }
        if code != 0 || next >= end {
            return Ok(Found { values: found, code });
        }
        if next == before {
            return Err(format!(
                "{topic}/{partition}: nothing at {next}, the high watermark is {end}"
            ));
        }
    }
}

/// Takes in whole batches; the offset after the last.
fn take(
    bytes: &[u8],
    from: i64,
    dense: bool,
    found: &mut BTreeMap<i64, String>,
) -> Result<i64, String> {
    let mut next = from;
    for batch in batch::describe(bytes).as_array().into_iter().flatten() {
        let Some(base) = batch["baseOffset"].as_i64() else { break };
        let last = base + batch["lastOffsetDelta"].as_i64().unwrap_or(0);
        if batch["crcIsRight"] != true {
            return Err(format!("the batch at {base} has a wrong CRC"));
        }
        if last < next || (dense && base > next) {
            return Err(format!("the batch of {base} to {last} stands where {next} is expected"));
        }
        let body = from_hex(batch["body"].as_str().unwrap_or("")).ok_or("no body")?;
        let mut rest = &body[..];
        for _ in 0..batch["count"].as_i64().unwrap_or(0) {
            let (delta, value) =
                record(&mut rest).ok_or_else(|| format!("a record after {base} is cut"))?;
            if base + delta >= from {
                found.insert(base + delta, value);
            }
        }
        next = last + 1;
    }
    Ok(next)
}

/// Offset delta and value of an uncompressed record.
fn record(rest: &mut &[u8]) -> Option<(i64, String)> {
    let size = usize::try_from(varint(rest)?).ok()?;
    let (mut body, after) = rest.split_at_checked(size)?;
    *rest = after;
    body = body.get(1..)?;
    varint(&mut body)?;
    let delta = varint(&mut body)?;
    let key = varint(&mut body)?;
    body = body.get(usize::try_from(key).unwrap_or(0)..)?;
    let size = usize::try_from(varint(&mut body)?).unwrap_or(0);
    Some((delta, String::from_utf8_lossy(body.get(..size)?).into_owned()))
}

fn varint(rest: &mut &[u8]) -> Option<i64> {
    let (mut value, mut shift) = (0u64, 0);
    loop {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
}
