//! What a broker must still know after a restart: topics with ids and configs, ends of logs, committed
//! offsets, and not to give out a producer id twice.

use crate::broker::{Broker, Stop};
use crate::places::Places;
use crate::wire::batch;
use crate::wire::codec::to_hex;
use crate::wire::connection::{Answer, Connection};
use crate::wire::schema::Schemas;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

pub struct Client {
    schemas: Schemas,
    connection: Connection,
}

impl Client {
    pub fn open(places: &Places, bootstrap: &str) -> Result<Client, String> {
        let schemas = Schemas::load(&places.schemas())?;
        let connection = Connection::open(bootstrap, PATIENCE)?;
        Ok(Client { schemas, connection })
    }

    pub fn ask(&mut self, api: &str, version: i16, body: Value) -> Result<Value, String> {
        match self.connection.ask(&self.schemas, api, version, &body)? {
            Answer::Body(answer) => Ok(answer),
            other => Err(format!("{api}: {other:?}")),
        }
    }

    /// Asks until an answer pleases.
    pub fn until(
        &mut self,
        api: &str,
        version: i16,
        body: Value,
        pleases: impl Fn(&Value) -> bool,
    ) -> Result<Value, String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.ask(api, version, body.clone())?;
            if pleases(&answer) {
                return Ok(answer);
            }
            if Instant::now() > deadline {
                return Err(format!("{api} still answers {answer}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

pub fn create_topic(
    places: &Places,
    bootstrap: &str,
    name: &str,
    partitions: i32,
) -> Result<(), String> {
    let mut client = Client::open(places, bootstrap)?;
    let topic = json!({ "name": name, "numPartitions": partitions, "replicationFactor": 1 });
    client.ask("CreateTopics", 5, json!({ "topics": [topic], "timeoutMs": 10000 }))?;
    let ends: Vec<Value> =
        (0..partitions).map(|p| json!({ "partitionIndex": p, "timestamp": -1 })).collect();
    let asked = json!({ "replicaId": -1, "topics": [{ "name": name, "partitions": ends }] });
    let served = |answer: &Value| {
        let partitions = answer["topics"][0]["partitions"].as_array();
        partitions.is_some_and(|all| all.iter().all(|p| p["errorCode"] == 0))
    };
    client.until("ListOffsets", 6, asked, served).map(|_| ())
}

/// One record per value, in partition 0.
pub fn produce(
    places: &Places,
    bootstrap: &str,
    topic: &str,
    values: &[&str],
) -> Result<(), String> {
    let records: Vec<Value> = values.iter().map(|v| json!({ "value": v })).collect();
    let bytes = to_hex(&batch::build(&json!({ "records": records }))?);
    let partition = json!({ "index": 0, "records": bytes });
    let topic = json!({ "name": topic, "partitionData": [partition] });
    let mut client = Client::open(places, bootstrap)?;
    let asked = json!({ "acks": -1, "timeoutMs": 10000, "topicData": [topic] });
    let taken = |answer: &Value| answer["responses"][0]["partitionResponses"][0]["errorCode"] == 0;
    client.until("Produce", 9, asked, taken).map(|_| ())
}

/// Makes some of everything, restarts, and compares.
pub fn survives(places: &Places, broker: &mut Broker, how: Stop) -> Result<(), String> {
    let name = format!("state-{how:?}").to_lowercase();
    let bootstrap = broker.bootstrap();
    create_topic(places, &bootstrap, &name, 3)?;
    produce(places, &bootstrap, &name, &["a", "b"])?;
    let mut client = Client::open(places, &bootstrap)?;
    let config = json!({ "name": "retention.ms", "configOperation": 0, "value": "123456789" });
    let resource = json!({ "resourceType": 2, "resourceName": name, "configs": [config] });
    client.ask("IncrementalAlterConfigs", 1, json!({ "resources": [resource] }))?;
    let committed =
        json!({ "partitionIndex": 0, "committedOffset": 1, "committedMetadata": "note" });
    let topics = json!([{ "name": name, "partitions": [committed] }]);
    let taken = |answer: &Value| answer["topics"][0]["partitions"][0]["errorCode"] == 0;
    client.until("OffsetCommit", 8, json!({ "groupId": name, "topics": topics }), taken)?;
    let before = snapshot(&mut client, &name)?;
    let old_id = producer_id(&mut client)?;
    broker.restart(how)?;
    let mut client = Client::open(places, &bootstrap)?;
    let after = snapshot(&mut client, &name)?;
    if before != after {
        return Err(format!("before {before}, after {after}"));
    }
    let new_id = producer_id(&mut client)?;
    if new_id > old_id { Ok(()) } else { Err(format!("producer id {new_id} after {old_id}")) }
}

pub fn producer_id(client: &mut Client) -> Result<i64, String> {
    let asked = json!({ "transactionalId": null, "transactionTimeoutMs": 60000 });
    let given = |answer: &Value| answer["errorCode"] == 0;
    let answer = client.until("InitProducerId", 4, asked, given)?;
    answer["producerId"].as_i64().ok_or_else(|| "no producer id".into())
}

fn snapshot(client: &mut Client, name: &str) -> Result<Value, String> {
    let asked = json!({ "topics": [{ "name": name }], "allowAutoTopicCreation": false });
    let led = |answer: &Value| {
        let partitions = answer["topics"][0]["partitions"].as_array();
        partitions.is_some_and(|all| all.len() == 3 && all.iter().all(|p| p["leaderId"] == 1))
    };
    let metadata = client.until("Metadata", 12, asked, led)?;
    let asked = json!({ "resources": [{ "resourceType": 2, "resourceName": name, "configurationKeys": ["retention.ms"] }] });
    let set = |answer: &Value| answer["results"][0]["configs"][0]["value"] == "123456789";
    let configs = client.until("DescribeConfigs", 4, asked, set)?;
    let ends =
        json!([{ "partitionIndex": 0, "timestamp": -1 }, { "partitionIndex": 1, "timestamp": -1 }]);
    let asked = json!({ "replicaId": -1, "topics": [{ "name": name, "partitions": ends }] });
    let read = |answer: &Value| answer["topics"][0]["partitions"][1]["errorCode"] == 0;
    let mut offsets = client.until("ListOffsets", 6, asked, read)?;
    let asked = json!({ "groupId": name, "topics": [{ "name": name, "partitionIndexes": [0] }] });
    let loaded = |answer: &Value| answer["errorCode"] == 0;
    let committed = client.until("OffsetFetch", 7, asked, loaded)?;
    // A leader's epoch may rise with a restart.
    let mut partitions = metadata["topics"][0]["partitions"].clone();
    for row in partitions.as_array_mut().into_iter().flatten() {
        row["leaderEpoch"] = Value::Null;
    }
    for row in offsets["topics"][0]["partitions"].as_array_mut().into_iter().flatten() {
        row["leaderEpoch"] = Value::Null;
    }
    let mut rows = partitions.as_array().cloned().unwrap_or_default();
    rows.sort_by_key(|row| row["partitionIndex"].as_i64());
    let id = &metadata["topics"][0]["topicId"];
    Ok(
        json!({ "id": id, "partitions": rows, "configs": configs["results"], "ends": offsets["topics"], "committed": committed["topics"] }),
    )
}
