//! Members of consumer groups (KIP-848) that break the rules.

use super::TOPIC;
use super::member::{NONE, Place, UNKNOWN_MEMBER_ID, body, code, expect};
use crate::wire::connection::Connection;
use serde_json::{Value, json};

const INVALID_REQUEST: i64 = 42;
const FENCED_MEMBER_EPOCH: i64 = 110;
const INVALID_REGULAR_EXPRESSION: i64 = 128;

fn joining(place: Place<'_>, member: &str) -> Value {
    json!({
        "groupId": place.group, "memberId": member, "memberEpoch": 0, "rebalanceTimeoutMs": 10_000,
        "subscribedTopicNames": [TOPIC], "topicPartitions": [],
    })
}

fn with(mut request: Value, field: &str, value: Value) -> Value {
    request[field] = value;
    request
}

fn heartbeat(place: Place<'_>, on: &mut Connection, request: &Value) -> Result<Value, String> {
    body(on.ask(place.schemas, "ConsumerGroupHeartbeat", 1, request)?)
}

pub fn wrong_epochs(place: Place<'_>) -> Result<(), String> {
    let mut on = place.connect()?;
    let request = joining(place, "first");
    let answer = heartbeat(place, &mut on, &request)?;
    expect("joining", code(&answer), NONE)?;
    let epoch = answer["memberEpoch"].as_i64().ok_or("no member epoch")?;
    let going_on = |member: &str, epoch: i64| json!({ "groupId": place.group, "memberId": member, "memberEpoch": epoch });
    for (member, epoch, wanted) in [
        ("first", epoch + 1, FENCED_MEMBER_EPOCH),
        ("first", i32::MAX.into(), FENCED_MEMBER_EPOCH),
        ("first", -3, INVALID_REQUEST),
        ("first", i32::MIN.into(), INVALID_REQUEST),
        ("stranger", epoch, UNKNOWN_MEMBER_ID),
        ("", epoch, INVALID_REQUEST),
        ("first", epoch, NONE),
    ] {
        let got = code(&heartbeat(place, &mut on, &going_on(member, epoch))?);
        expect(&format!("{member:?} at epoch {epoch}"), got, wanted)?;
    }
    Ok(())
}

pub fn long_subscriptions(place: Place<'_>) -> Result<(), String> {
    let mut on = place.connect()?;
    let names: Vec<String> = (0..4000).map(|i| format!("{i:0>249}")).collect();
    for member in ["one", "two"] {
        let request = with(joining(place, member), "subscribedTopicNames", json!(names));
        let answer = heartbeat(place, &mut on, &request)?;
        expect("a megabyte of topics", code(&answer), NONE)?;
    }
    Ok(())
}

/// Those that Kafka takes are taken, at once.
pub fn wild_patterns(place: Place<'_>) -> Result<(), String> {
    let mut on = place.connect()?;
    let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    for (name, pattern, wanted) in [
        ("one that is not closed", "(".to_owned(), INVALID_REGULAR_EXPRESSION),
        ("a backreference", r"(a)\1".to_owned(), INVALID_REGULAR_EXPRESSION),
        ("a look ahead", "(?=a)".to_owned(), INVALID_REGULAR_EXPRESSION),
        ("as long as a string can be", "a".repeat(i16::MAX as usize), NONE),
        ("a thousand groups in each other", nested(1000), NONE),
        ("a hundred thousand states", "[a-z]{1000}".repeat(100), NONE),
    ] {
        let request = with(joining(place, name), "subscribedTopicNames", Value::Null);
        let request = with(request, "subscribedTopicRegex", json!(pattern));
        expect(name, code(&heartbeat(place, &mut on, &request)?), wanted)?;
    }
    Ok(())
}

/// All of them on one connection that ends; one that is proper has them for neighbours until they expire.
pub fn many_that_vanish(place: Place<'_>) -> Result<(), String> {
    let mut on = place.connect()?;
    for round in 0..10 {
        for member in 0..100 {
            let request = joining(place, &format!("{round}-{member}"));
            on.send(place.schemas, "ConsumerGroupHeartbeat", 1, &request)?;
        }
        for _ in 0..100 {
            expect("joining", code(&body(on.receive(place.schemas)?)?), NONE)?;
        }
    }
    drop(on);
    let mut on = place.connect()?;
    let answer = heartbeat(place, &mut on, &joining(place, "proper"))?;
    expect("joining after them", code(&answer), NONE)
}
