//! The keyed load, the same at each run: codecs in turn, keys that come back at different distances,
//! deletions. What it must leave is judged by the last record of each key.

use crate::restart::state::Client;
use crate::wire::batch;
use crate::wire::codec::to_hex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// Batches of so many records each: some megabytes, four segments of the least size.
const BATCHES: usize = 150;
const RECORDS: usize = 100;
const CODECS: [&str; 5] = ["none", "gzip", "xerial", "lz4", "zstd"];
/// Commits of so many partitions with the longest metadata: more than a segment.
const COMMITS: i64 = 12;
pub const PARTITIONS: i32 = 50;

pub struct Record {
    pub key: String,
    /// `None`: the key is deleted.
    pub value: Option<String>,
}

impl Record {
    /// As `read_all.py` prints it.
    fn digest(&self) -> String {
        let hash = |value: &String| to_hex(&Sha256::digest(value.as_bytes()));
        self.value.as_ref().map_or("-".into(), hash)
    }
}

/// In the order of their offsets.
pub fn records() -> Vec<Record> {
    let mut state = 1_u64;
    let mut next = move || {
        // Knuth's linear congruential generator.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut record = |at: usize| {
        let key = format!("key-{}", next() % 900);
        let words: Vec<String> = (0..60).map(|_| format!("{:08x}", next())).collect();
        let deleted = next() % 10 == 0;
        Record { key, value: (!deleted).then(|| format!("{at} {}", words.join(""))) }
    };
    (0..BATCHES * RECORDS).map(&mut record).collect()
}

pub fn send(client: &mut Client, topic: &str, records: &[Record]) -> Result<(), String> {
    let configs = [("cleanup.policy", "compact"), ("segment.bytes", "1048576")];
    let configs: Vec<Value> =
        configs.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let new =
        json!({ "name": topic, "numPartitions": 1, "replicationFactor": 1, "configs": configs });
    client.ask("CreateTopics", 5, json!({ "topics": [new], "timeoutMs": 10000 }))?;
    for (at, part) in records.chunks(RECORDS).enumerate() {
        let timestamp = 1_700_000_000_000_i64 + 1_000 * at as i64;
        let record = |(index, record): (usize, &Record)| json!({ "key": record.key, "value": record.value, "timestamp": timestamp + index as i64 });
        let lines: Vec<Value> = part.iter().enumerate().map(record).collect();
        let codec = CODECS[at % CODECS.len()];
        let spec = json!({ "records": lines, "codec": codec, "baseTimestamp": timestamp });
        let partition = json!({ "index": 0, "records": to_hex(&batch::build(&spec)?) });
        let data = json!([{ "name": topic, "partitionData": [partition] }]);
        let asked = json!({ "acks": -1, "timeoutMs": 10000, "topicData": data });
        let taken =
            |answer: &Value| answer["responses"][0]["partitionResponses"][0]["errorCode"] == 0;
        client.until("Produce", 9, asked, taken)?;
    }
    Ok(())
}

/// - `left`: lines of `read_all.py`.
/// - `active`: where the part begins that is not compacted.
///
/// # Errors
/// Names what is lost, of another value or offset than it was sent with, or not compacted.
pub fn judge(sent: &[Record], left: &[String], active: i64) -> Result<(), String> {
    let active = active as usize;
    let mut newest: BTreeMap<&str, usize> = BTreeMap::new();
    for (offset, record) in sent.iter().enumerate().take(active) {
        newest.insert(&record.key, offset);
    }
    let mut wanted: BTreeSet<usize> = newest.into_values().collect();
    wanted.extend(active..sent.len());
    let mut found = BTreeSet::new();
    for line in left {
        let words: Vec<&str> = line.split(' ').collect();
        let [offset, _, key, digest] = words[..] else { return Err(format!("`{line}` is cut")) };
        let offset: usize = offset.parse().map_err(|e| format!("`{line}`: {e}"))?;
        let record = sent.get(offset).ok_or_else(|| format!("`{line}` was never sent"))?;
        if record.key != key || record.digest() != digest {
            return Err(format!("`{line}` was sent with key {}", record.key));
        }
        found.insert(offset);
    }
    if let Some(lost) = wanted.difference(&found).next() {
        return Err(format!("record {lost} is lost"));
    }
    let more = found.difference(&wanted).next();
    more.map_or(Ok(()), |more| Err(format!("record {more} is superseded and still there")))
}

/// Shows the judge what it must name.
pub fn check_the_judge() -> Result<(), String> {
    let sent: Vec<Record> = (0..60)
        .map(|at| Record { key: format!("k{}", at % 3), value: Some(format!("v{at}")) })
        .collect();
    let line = |offset: usize| {
        let record = &sent[offset];
        format!("{offset} 1 {} {}", record.key, record.digest())
    };
    let lines = |offsets: &[usize]| offsets.iter().map(|at| line(*at)).collect::<Vec<_>>();
    let good = lines(&[51, 52, 53, 54, 55, 56, 57, 58, 59]);
    judge(&sent, &good, 54).map_err(|e| format!("a good history is refused: {e}"))?;
    let all: Vec<usize> = (0..60).collect();
    let spoiled = |from: &str, to: &str| -> Vec<String> {
        good.iter().map(|line| line.replace(from, to)).collect()
    };
    let planted: [(&str, Vec<String>); 5] = [
        ("record 51 is lost", good[1..].to_vec()),
        ("record 59 is lost", good[..8].to_vec()),
        ("was sent with key", spoiled("57 1 k0", "57 1 k1")),
        ("was sent with key", spoiled(&sent[57].digest(), "-")),
        ("record 0 is superseded", lines(&all)),
    ];
    for (name, left) in planted {
        match judge(&sent, &left, 54) {
            Err(said) if said.contains(name) => {}
            said => return Err(format!("`{name}` planted: {said:?}")),
        }
    }
    Ok(())
}

/// Commits offsets over and over; returns the last one.
pub fn commit_much(client: &mut Client, topic: &str) -> Result<i64, String> {
    let note = "n".repeat(4_000);
    for offset in 1..=COMMITS {
        let partitions: Vec<Value> = (0..PARTITIONS)
            .map(|p| json!({ "partitionIndex": p, "committedOffset": offset, "committedMetadata": note }))
            .collect();
        let asked =
            json!({ "groupId": "much", "topics": [{ "name": topic, "partitions": partitions }] });
        let taken = |answer: &Value| answer["topics"][0]["partitions"][0]["errorCode"] == 0;
        client.until("OffsetCommit", 8, asked, taken)?;
    }
    Ok(COMMITS)
}

/// What is committed for partition 0.
pub fn committed(client: &mut Client, topic: &str) -> Result<i64, String> {
    let topics = json!([{ "name": topic, "partitionIndexes": [0] }]);
    let asked = json!({ "groupId": "much", "topics": topics, "requireStable": false });
    let answer = client.until("OffsetFetch", 7, asked, |answer| answer["errorCode"] == 0)?;
    let offset = &answer["topics"][0]["partitions"][0]["committedOffset"];
    offset.as_i64().ok_or_else(|| format!("{answer}"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_judge_names_what_is_planted() {
        super::check_the_judge().unwrap();
    }
}
