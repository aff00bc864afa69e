//! What a broker says of a partition, and what stands in its directory.

use crate::broker::{Broker, data};
use crate::places::Places;
use crate::restart::state::Client;
use crate::wire::batch;
use crate::wire::codec::{from_hex, to_hex};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// Partition 0 of a topic, as seen from outside.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    pub earliest: i64,
    pub latest: i64,
    /// Error code of a Fetch below the earliest offset; 0 where that is 0.
    pub below: i64,
    /// Base offset of the first batch that a Fetch at the earliest offset brings; none: no batch.
    pub first: Option<i64>,
    /// Base offsets of the `.log` files.
    pub segments: Vec<i64>,
    /// What the log-start checkpoint has of it.
    pub checkpoint: Option<i64>,
}

pub struct Looker {
    client: Client,
    data: PathBuf,
}

/// Topics made by [`Looker::settle`], on any broker.
static SETTLED: AtomicU32 = AtomicU32::new(0);
const TIMESTAMP: i64 = 1_700_000_000_000;

impl Looker {
    pub fn new(places: &Places, broker: &Broker) -> Result<Looker, String> {
        let client = Client::open(places, &broker.bootstrap())?;
        Ok(Looker { client, data: broker.data() })
    }

    pub fn create(&mut self, name: &str, configs: &[(&str, &str)]) -> Result<(), String> {
        let configs: Vec<Value> =
            configs.iter().map(|(k, v)| json!({ "name": k, "value": v })).collect();
        let topic = json!({
            "name": name, "numPartitions": 1, "replicationFactor": 1, "configs": configs
        });
        let asked = json!({ "topics": [topic], "timeoutMs": 10000 });
        let answer = self.client.ask("CreateTopics", 5, asked)?;
        if answer["topics"][0]["errorCode"] != 0 {
            return Err(format!("CreateTopics: {answer}"));
        }
        super::until(|| {
            let answer = self.offset(name, -1)?;
            Ok(if answer >= 0 { Ok(()) } else { Err("not served".into()) })
        })
    }

    /// One batch; returns its base offset.
    /// - `timestamp`: of all records, none for one that is the same in every run.
    pub fn produce(
        &mut self,
        topic: &str,
        values: &[&str],
        timestamp: Option<i64>,
    ) -> Result<i64, String> {
        let at = timestamp.unwrap_or(TIMESTAMP);
        let record = |v: &&str| json!({ "value": v, "timestamp": at });
        let records: Vec<Value> = values.iter().map(record).collect();
        let built = json!({ "records": records, "baseTimestamp": at, "maxTimestamp": at });
        let bytes = to_hex(&batch::build(&built)?);
        let data = json!({ "name": topic, "partitionData": [{ "index": 0, "records": bytes }] });
        let asked = json!({ "acks": -1, "timeoutMs": 10000, "topicData": [data] });
        let answer = self.client.ask("Produce", 9, asked)?;
        let part = &answer["responses"][0]["partitionResponses"][0];
        match (part["errorCode"].as_i64(), part["baseOffset"].as_i64()) {
            (Some(0), Some(offset)) => Ok(offset),
            _ => Err(format!("Produce: {answer}")),
        }
    }

    /// - `kind`: 2 for a topic, 4 for the broker's defaults (an empty name).
    pub fn alter(&mut self, kind: i8, name: &str, key: &str, to: &str) -> Result<(), String> {
        let operation = if to == "-" { 1 } else { 0 };
        let value = if to == "-" { Value::Null } else { json!(to) };
        let config = json!({ "name": key, "configOperation": operation, "value": value });
        let resource = json!({ "resourceType": kind, "resourceName": name, "configs": [config] });
        let asked = json!({ "resources": [resource] });
        let answer = self.client.ask("IncrementalAlterConfigs", 1, asked)?;
        match answer["responses"][0]["errorCode"].as_i64() {
            Some(0) => self.settle(),
            _ => Err(format!("IncrementalAlterConfigs: {answer}")),
        }
    }

    /// Until the broker goes by all that was answered so far. Kafka takes metadata up in steps, within a step
    /// topics before configs: the second topic made here is of a later step than the change.
    fn settle(&mut self) -> Result<(), String> {
        for _ in 0..2 {
            let number = SETTLED.fetch_add(1, Ordering::Relaxed);
            self.create(&format!("settled-{number}"), &[])?;
        }
        Ok(())
    }

    pub fn delete_records(&mut self, topic: &str, offset: i64) -> Result<(), String> {
        let part = json!({ "partitionIndex": 0, "offset": offset });
        let asked =
            json!({ "topics": [{ "name": topic, "partitions": [part] }], "timeoutMs": 10000 });
        let answer = self.client.ask("DeleteRecords", 1, asked)?;
        match answer["topics"][0]["partitions"][0]["errorCode"].as_i64() {
            Some(0) => Ok(()),
            _ => Err(format!("DeleteRecords: {answer}")),
        }
    }

    /// By a time or a special one; -1 while it is not known.
    fn offset(&mut self, topic: &str, timestamp: i64) -> Result<i64, String> {
        let part = json!({ "partitionIndex": 0, "timestamp": timestamp });
        let asked = json!({ "replicaId": -1, "topics": [{ "name": topic, "partitions": [part] }] });
        let answer = self.client.ask("ListOffsets", 6, asked)?;
        let offset = answer["topics"][0]["partitions"][0]["offset"].as_i64();
        offset.ok_or_else(|| format!("ListOffsets: {answer}"))
    }

    fn fetch(&mut self, topic: &str, offset: i64) -> Result<(i64, Option<i64>), String> {
        let part = json!({ "partition": 0, "fetchOffset": offset, "partitionMaxBytes": 1 });
        let asked = json!({ "maxWaitMs": 0, "minBytes": 0, "topics": [
            { "topic": topic, "partitions": [part] }
        ] });
        let answer = self.client.ask("Fetch", 11, asked)?;
        let part = &answer["responses"][0]["partitions"][0];
        let code = part["errorCode"].as_i64().ok_or_else(|| format!("Fetch: {answer}"))?;
        let bytes = part["records"].as_str().and_then(from_hex).unwrap_or_default();
        Ok((code, batch::describe(&bytes)[0]["baseOffset"].as_i64()))
    }

    pub fn state(&mut self, topic: &str) -> Result<State, String> {
        let earliest = self.offset(topic, -2)?;
        let below = if earliest > 0 { self.fetch(topic, earliest - 1)?.0 } else { 0 };
        let (_, first) = self.fetch(topic, earliest)?;
        let latest = self.offset(topic, -1)?;
        let segments = self.files(topic, ".log");
        let checkpoint = data::checkpoint(&self.data, "log-start-offset-checkpoint", topic);
        Ok(State { earliest, latest, below, first, segments, checkpoint })
    }

    /// Base offsets of the files of partition 0 with this ending.
    pub fn files(&self, topic: &str, ending: &str) -> Vec<i64> {
        data::bases(&self.data, topic, ending)
    }
}
