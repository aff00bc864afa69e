//! The differential suite: the same frames to Kafka and to another broker, live side by side, answers
//! compared field by field. Encoded and decoded by Kafka's own schemas, so it knows nothing of Ottla's.
//! Every version of every advertised API is asked with a sample and an empty body, spoiled bodies at the
//! corner versions, and the scenario tables on top. May not live here: what a right answer is.

mod masks;
mod plan;
pub mod play;
pub mod sample;
mod scenario;

use crate::broker::settings::Settings;
use crate::broker::{Broker, Kind};
use crate::places::Places;
use crate::verdict::Test;
use crate::wire::connection::{Answer, Connection};
use crate::wire::schema::Schemas;
use masks::Masks;
use play::{Note, Player, Served};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Levels at 0 on Kafka too: what they switch on is not served here yet.
pub fn settings(folder: &std::path::Path) -> Result<Settings, String> {
    let off = ["transaction.version", "share.version", "streams.version"];
    let settings = Settings::of_folder(folder)?;
    Ok(off.iter().fold(settings, |settings, name| settings.feature(name, 0)))
}

/// Runs everything against two running brokers; each version of each case is a test.
pub fn run(places: &Places, kafka: &Broker, other: &Broker) -> Result<Vec<Test>, String> {
    let folder = places.home.join("differential");
    let schemas = Schemas::load(&places.schemas())?;
    let masks = Masks::load(&folder.join("masks"))?;
    let cases = scenario::load(&folder.join("cases"))?;
    let left = versions(&schemas, &kafka.bootstrap())?;
    let mut right = versions(&schemas, &other.bootstrap())?;
    if other.kind == Kind::Kafka {
        // Kafka against itself proves masks and determinism.
        right.retain(|api, _| cases.iter().any(|case| case.subject() == Some(api)));
    }
    let (served, mut tests) = common(&left, &right);
    let items = plan::make(&schemas, &cases, &served)?;
    let play = |broker: &Broker| {
        warm_up(&schemas, &broker.bootstrap());
        let player = Player { schemas: &schemas, address: broker.bootstrap(), served: &served };
        items.iter().map(|item| plan::play(&player, item)).collect::<Vec<_>>()
    };
    let (kafka_notes, other_notes) = std::thread::scope(|scope| {
        let there = scope.spawn(|| play(other));
        (play(kafka), there.join())
    });
    let other_notes = other_notes.map_err(|_| "the player of the other broker panicked")?;
    for ((item, kafka), other) in items.iter().zip(&kafka_notes).zip(&other_notes) {
        tests.push(Test::of(item.name(), compare(&masks, item.own_names(), kafka, other)));
    }
    tests.extend(coverage(&cases, &served));
    Ok(tests)
}

/// The versions that a broker serves, of the APIs that the tables are about: Kafka serves more.
pub fn tabled(places: &Places, schemas: &Schemas, address: &str) -> Result<Served, String> {
    let cases = scenario::load(&places.home.join("differential/cases"))?;
    let mut served = versions(schemas, address)?;
    served.retain(|api, _| cases.iter().any(|case| case.subject() == Some(api)));
    Ok(served)
}

/// Asks a broker which versions it serves.
pub fn versions(schemas: &Schemas, address: &str) -> Result<Served, String> {
    let mut connection = Connection::open(address, Duration::from_secs(15))?;
    let asked = json!({ "clientSoftwareName": "compat", "clientSoftwareVersion": "1" });
    let Answer::Body(answer) = connection.ask(schemas, "ApiVersions", 3, &asked)? else {
        return Err(format!("{address} does not answer ApiVersions"));
    };
    let none = Vec::new();
    let rows = answer["apiKeys"].as_array().unwrap_or(&none);
    let number = |value: &Value| value.as_i64().unwrap_or(-1) as i16;
    let named = rows.iter().filter_map(|row| {
        let api = schemas.api(number(&row["apiKey"]))?;
        Some((api.to_string(), (number(&row["minVersion"]), number(&row["maxVersion"]))))
    });
    Ok(named.collect())
}

/// Until every partition of the offsets topic has its coordinator, so that answers do not depend on
/// how fast that topic comes up. What stays wrong shows in the cases.
fn warm_up(schemas: &Schemas, address: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let ask = |api: &str, version: i16, body: Value| -> Option<Value> {
        let mut connection = Connection::open(address, Duration::from_secs(15)).ok()?;
        match connection.ask(schemas, api, version, &body).ok()? {
            Answer::Body(answer) => Some(answer),
            _ => None,
        }
    };
    // Until the broker has its first block of producer ids.
    while Instant::now() < deadline {
        let answer = ask("InitProducerId", 0, json!({ "transactionalId": null }));
        if answer.is_some_and(|answer| answer["errorCode"] == json!(0)) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    for group in 0..GROUPS_FOR_ALL_PARTITIONS {
        let name = format!("warm-up-{group}");
        while Instant::now() < deadline {
            ask("FindCoordinator", 3, json!({ "key": name }));
            let answer = ask("OffsetFetch", 7, json!({ "groupId": name, "topics": [] }));
            if answer.is_some_and(|answer| answer["errorCode"] == json!(0)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// So many names fall on all partitions of the offsets topic.
const GROUPS_FOR_ALL_PARTITIONS: usize = 40;

/// The APIs that both serve, and a test for each of the other broker's: Kafka serves the same versions.
fn common(kafka: &Served, other: &Served) -> (Served, Vec<Test>) {
    let mut tests = Vec::new();
    let mut served = BTreeMap::new();
    for (api, range) in other {
        let name = format!("advertised {api}");
        match kafka.get(api) {
            Some(known) if known == range => {
                served.insert(api.clone(), *range);
                tests.push(Test::pass(name));
            }
            known => tests.push(Test::fail(name, format!("Kafka {known:?}, here {range:?}"))),
        }
    }
    (served, tests)
}

fn coverage(cases: &[scenario::Case], served: &Served) -> Vec<Test> {
    let has_case = |api: &str| cases.iter().any(|case| case.subject() == Some(api));
    let test = |api: &String| {
        let outcome = if has_case(api) { Ok(()) } else { Err("no table has a case for it".into()) };
        Test::of(format!("table for {api}"), outcome)
    };
    served.keys().map(test).collect()
}

/// For the self-check: a change of any single field of any sample answer is found, or the table masks it
/// and the change keeps the field's shape.
pub fn notices(places: &Places) -> Result<(), String> {
    let schemas = Schemas::load(&places.schemas())?;
    let masks = Masks::load(&places.home.join("differential/masks"))?;
    let cases = scenario::load(&places.home.join("differential/cases"))?;
    let mut missed = Vec::new();
    for api in cases.iter().filter_map(|case| case.subject()) {
        let response = schemas.response(api)?;
        let right = sample::body(response, response.valid.max, "sample");
        for wrong in crate::self_check::changed(&right) {
            if masks.differences(api, &right, &wrong).is_empty()
                && !masks.cover(api, &right, &wrong)
            {
                missed.push(format!("{api}: {right} and {wrong}"));
            }
        }
    }
    missed.first().map_or(Ok(()), |first| Err(format!("{} missed, as {first}", missed.len())))
}

type Played = Result<Vec<Note>, String>;

fn compare(masks: &Masks, own: &str, kafka: &Played, other: &Played) -> Result<(), String> {
    let kafka = kafka.as_ref().map_err(|e| format!("on Kafka: {e}"))?;
    let other = other.as_ref().map_err(Clone::clone)?;
    let mut found = Vec::new();
    for (left, right) in kafka.iter().zip(other) {
        let kept = |note: &Note| masks.own(&note.api, own, &note.answer);
        let differences = masks.differences(&left.api, &kept(left), &kept(right));
        let place = format!("step {}, {} v{}", left.step + 1, left.api, left.version);
        found.extend(differences.into_iter().map(|d| format!("{place}: {d}")));
    }
    if kafka.len() != other.len() {
        found.push(format!("{} answers on Kafka, {} here", kafka.len(), other.len()));
    }
    if found.is_empty() { Ok(()) } else { Err(found.join("\n")) }
}
