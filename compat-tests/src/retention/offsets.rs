//! How committed offsets and their groups end by age. A commit that brings its own retention stands for
//! one that is older than the broker's, which is counted in minutes.

use crate::broker::Broker;
use crate::places::Places;
use crate::restart::state::Client;
use crate::wire::codec::to_hex;
use serde_json::{Value, json};
use std::thread;
use std::time::Duration;

type Outcome = Result<(), String>;
type Case = fn(&mut Client) -> Outcome;

/// What is of age at once; -1 stands for the broker's retention.
const SHORT_MS: i64 = 1;
/// What is of age once its group has members.
const LATER_MS: u64 = 1500;
const USED: &str = "used";
const UNUSED: &str = "unused";

const CASES: &[(&str, Case)] = &[
    ("offsets without a group expire one by one", one_by_one),
    ("a group goes with its last offset", last_offset),
    ("a classic group keeps what its members subscribe to", classic),
    ("a consumer group keeps what its members subscribe to", consumer),
];

pub fn play(places: &Places, broker: &Broker) -> Vec<(String, Outcome)> {
    let prepared = || {
        let mut client = Client::open(places, &broker.bootstrap())?;
        for name in [USED, UNUSED] {
            crate::restart::state::create_topic(places, &broker.bootstrap(), name, 1)?;
        }
        coordinated(&mut client).map(|()| client)
    };
    let mut client = match prepared() {
        Ok(client) => client,
        Err(why) => return vec![("groups".into(), Err(why))],
    };
    CASES.iter().map(|(name, case)| (name.to_string(), case(&mut client))).collect()
}

/// Until the coordinators of all the groups here are there.
fn coordinated(client: &mut Client) -> Outcome {
    for group in ["one-by-one", "last", "classic", "consumer"] {
        client.ask("FindCoordinator", 3, json!({ "key": group, "keyType": 0 }))?;
        let asked = json!({ "groupId": group, "memberId": "nobody", "generationId": 0 });
        client.until("Heartbeat", 3, asked, |answer| answer["errorCode"] == 25)?;
    }
    Ok(())
}

fn one_by_one(client: &mut Client) -> Outcome {
    commit(client, "one-by-one", UNUSED, SHORT_MS)?;
    commit(client, "one-by-one", USED, -1)?;
    expires(client, "one-by-one", UNUSED)?;
    stays(client, "one-by-one", USED)
}

fn last_offset(client: &mut Client) -> Outcome {
    commit(client, "last", USED, SHORT_MS)?;
    ends(client, "last")
}

fn classic(client: &mut Client) -> Outcome {
    commit(client, "classic", UNUSED, SHORT_MS)?;
    commit(client, "classic", USED, LATER_MS as i64)?;
    let name = [&(USED.len() as i16).to_be_bytes(), USED.as_bytes()].concat();
    let subscription = [&[0, 0, 0, 0, 0, 1][..], &name, &(-1i32).to_be_bytes()].concat();
    let protocol = json!({ "name": "range", "metadata": to_hex(&subscription) });
    let joined = client.ask(
        "JoinGroup",
        3,
        json!({
            "groupId": "classic", "sessionTimeoutMs": 60_000, "rebalanceTimeoutMs": 60_000,
            "memberId": "", "protocolType": "consumer", "protocols": [protocol],
        }),
    )?;
    let member = json!({ "groupId": "classic", "memberId": joined["memberId"] });
    let mut sync = member.clone();
    sync["generationId"] = joined["generationId"].clone();
    ok(&client.ask("SyncGroup", 3, sync)?)?;
    expires(client, "classic", UNUSED)?;
    thread::sleep(Duration::from_millis(LATER_MS + 800));
    stays(client, "classic", USED)?;
    ok(&client.ask("LeaveGroup", 2, member)?)?;
    ends(client, "classic")
}

fn consumer(client: &mut Client) -> Outcome {
    commit(client, "consumer", UNUSED, SHORT_MS)?;
    commit(client, "consumer", USED, LATER_MS as i64)?;
    let mut heartbeat = json!({
        "groupId": "consumer", "memberId": "one", "memberEpoch": 0, "rebalanceTimeoutMs": 60_000,
        "subscribedTopicNames": [USED], "topicPartitions": [],
    });
    ok(&client.ask("ConsumerGroupHeartbeat", 0, heartbeat.clone())?)?;
    expires(client, "consumer", UNUSED)?;
    thread::sleep(Duration::from_millis(LATER_MS + 800));
    stays(client, "consumer", USED)?;
    heartbeat["memberEpoch"] = json!(-1);
    ok(&client.ask("ConsumerGroupHeartbeat", 0, heartbeat)?)?;
    ends(client, "consumer")
}

fn commit(client: &mut Client, group: &str, topic: &str, retention_ms: i64) -> Outcome {
    let partition = json!({ "partitionIndex": 0, "committedOffset": 7, "committedMetadata": "" });
    let asked = json!({
        "groupId": group, "generationIdOrMemberEpoch": -1, "memberId": "",
        "retentionTimeMs": retention_ms, "topics": [{ "name": topic, "partitions": [partition] }],
    });
    let answer = client.ask("OffsetCommit", 4, asked)?;
    ok(&answer["topics"][0]["partitions"][0])
}

fn question(group: &str, topic: &str) -> Value {
    json!({ "groupId": group, "topics": [{ "name": topic, "partitionIndexes": [0] }] })
}

fn offset(answer: &Value) -> &Value {
    &answer["topics"][0]["partitions"][0]["committedOffset"]
}

fn expires(client: &mut Client, group: &str, topic: &str) -> Outcome {
    let gone = |answer: &Value| offset(answer) == -1;
    client.until("OffsetFetch", 5, question(group, topic), gone).map(drop)
}

fn stays(client: &mut Client, group: &str, topic: &str) -> Outcome {
    let answer = client.ask("OffsetFetch", 5, question(group, topic))?;
    if offset(&answer) == 7 { Ok(()) } else { Err(format!("{group}, {topic}: {answer}")) }
}

/// Until the group is not listed any more.
fn ends(client: &mut Client, group: &str) -> Outcome {
    let is_gone = |answer: &Value| {
        let listed = answer["groups"].as_array();
        listed.is_some_and(|groups| groups.iter().all(|one| one["groupId"] != group))
    };
    client.until("ListGroups", 4, json!({}), is_gone).map(drop)
}

fn ok(answer: &Value) -> Outcome {
    if answer["errorCode"] == 0 { Ok(()) } else { Err(format!("{answer}")) }
}
