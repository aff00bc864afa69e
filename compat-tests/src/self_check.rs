//! Checks the checks: against a dead port no test of a folder may pass, behind a proxy that spoils answers
//! some test must fail. A folder that does not notice fails the run.

use crate::broker::settings::Settings;
use crate::broker::{Broker, Kind, ports};
use crate::folder::judge::Judgement;
use crate::folder::script::Script;
use crate::places::Places;
use crate::proxy::Proxy;
use crate::report::Row;
use crate::suite::{Body, Suite};
use crate::verdict::{Test, Verdict};
use crate::wire::connection::{Answer, Connection};
use crate::wire::schema::Schemas;
use crate::{compaction, differential, formats, restart, retention};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// A folder behind the proxy that shows no failure within this has not noticed.
const SPOILED: Duration = Duration::from_secs(180);
/// A folder at a dead port is not waited for to the end: what it passed until then is too much.
const DEAD: Duration = Duration::from_secs(20);

/// The names of API keys and finalized features that Ottla serves; what `expect.toml` may wait for.
pub fn served(places: &Places) -> Result<Vec<String>, String> {
    let schemas = Schemas::load(&places.schemas())?;
    let broker = Broker::start(Kind::Ottla, places, "served", &Settings::base())?;
    let address = broker.bootstrap();
    let mut names: Vec<String> = differential::versions(&schemas, &address)?.into_keys().collect();
    let mut connection = Connection::open(&address, Duration::from_secs(15))?;
    let asked = json!({ "clientSoftwareName": "compat", "clientSoftwareVersion": "1" });
    if let Answer::Body(answer) = connection.ask(&schemas, "ApiVersions", 3, &asked)? {
        let features = answer["finalizedFeatures"].as_array().cloned().unwrap_or_default();
        let on = features.iter().filter(|f| f["maxVersionLevel"].as_i64() > Some(0));
        names.extend(on.filter_map(|f| f["name"].as_str().map(String::from)));
    }
    Ok(names)
}

pub fn run(places: &Places, suite: &Suite, kind: Kind) -> Result<Row, String> {
    let tests = match suite.body {
        Body::Client => client(places, suite, kind)?,
        // They spoil answers by themselves, each in the way that it has to notice.
        Body::Probes => suite.script(places, kind, vec!["--self-check".into()])?,
        Body::Differential => {
            vec![Test::of("differences are found", differential::notices(places))]
        }
        Body::Beside(_) => vec![Test::of("other states are told apart", retention::notices())],
        // Given the address of a broker, they run on it.
        Body::Own(_) if suite.folder.name.starts_with("kafka-tests") => {
            client(places, suite, kind)?
        }
        Body::Own(_) if suite.folder.name == "restart" => {
            vec![Test::of("planted anomalies are named", restart::notices())]
        }
        Body::Own(_) if suite.folder.name == "compaction" => {
            vec![Test::of("planted anomalies are named", compaction::notices())]
        }
        Body::Alone(_) if suite.folder.name == "formats" => {
            vec![Test::of("what is not as it was is told", formats::notices(places))]
        }
        Body::Own(_) | Body::Alone(_) => Vec::new(),
    };
    let failed = tests.iter().filter(|t| t.verdict == Verdict::Fail);
    let problems: Vec<String> = failed.map(|t| format!("{}: {}", t.name, t.detail)).collect();
    let judgement = Judgement { passed: tests.len() - problems.len(), problems, allowed: 0 };
    Ok(Row { suite: String::new(), kafka: None, ottla: None, judgement, took: Default::default() })
}

fn client(places: &Places, suite: &Suite, kind: Kind) -> Result<Vec<Test>, String> {
    let script = |bootstrap: String, label: &str, limit: Duration| Script {
        places,
        folder: &suite.folder,
        bootstrap,
        more: Vec::new(),
        broker_ctl: "false".into(),
        label: label.into(),
        limit,
    };
    let dead = script(format!("127.0.0.1:{}", ports::free()?), "dead", DEAD).run(passes)?;
    let spoiled = {
        let schemas = Arc::new(Schemas::load(&places.schemas())?);
        let settings = suite.folder.settings()?;
        let broker =
            Broker::start(kind, places, &format!("{}-spoiled", suite.folder.name), &settings)?;
        let proxy = Proxy::serve(schemas, broker.port)?;
        script(format!("127.0.0.1:{}", proxy.port), "spoiled", SPOILED).run(fails)?
    };
    let noticed = |name: &str, bad: Option<String>| Test::of(name, bad.map_or(Ok(()), Err));
    let passed = dead.iter().find(|t| passes(t)).map(|t| format!("`{}` passes", t.name));
    let unnoticed = (!spoiled.iter().any(|t| fails(t) && t.name != "run.sh"))
        .then(|| "no test fails".to_string());
    Ok(vec![noticed("a dead port", passed), noticed("spoiled answers", unnoticed)])
}

fn passes(test: &Test) -> bool {
    test.verdict == Verdict::Pass
}

fn fails(test: &Test) -> bool {
    test.verdict == Verdict::Fail
}

/// A value changed in one place, for checks of comparisons.
pub fn changed(value: &Value) -> Vec<Value> {
    match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, inner)| {
                changed(inner).into_iter().map(move |inner| {
                    let mut fields = fields.clone();
                    fields.insert(name.clone(), inner);
                    Value::Object(fields)
                })
            })
            .collect(),
        Value::Array(elements) => {
            let mut all = vec![Value::Array([elements.as_slice(), &[Value::Null]].concat())];
            if let Some(first) = elements.first() {
                let rest = &elements[1..];
                all.extend(changed(first).into_iter().map(|c| Value::Array([&[c], rest].concat())));
            }
            all
        }
        Value::Null => vec![json!("not null")],
        Value::Bool(flag) => vec![json!(!flag), Value::Null],
        Value::Number(_) => vec![json!(987_654), Value::Null],
        Value::String(_) => vec![json!("changed"), Value::Null],
    }
}
