//! Ottla's tables against Kafka's own: messages and records with their fields at every version, and error
//! codes. Reads Ottla's from its library, Kafka's from its jars.

use crate::places::Places;
use crate::verdict::Test;
use crate::wire::codec::default_of;
use crate::wire::schema::{Field, Kind, Message, Schemas};
use ottla::protocol::error::ErrorCode;
use std::collections::BTreeSet;
use std::process::Command;

pub fn run(places: &Places) -> Result<Vec<Test>, String> {
    let kafka = Schemas::load(&places.schemas())?;
    let ours = Schemas::parse(&ottla::protocol::schema::to_json())?;
    let mut tests: Vec<Test> = ours
        .all()
        .map(|message| Test::of(format!("schema {}", message.name), same(&kafka, message)))
        .collect();
    tests.push(Test::of("error codes", error_codes(places)));
    Ok(tests)
}

fn same(kafka: &Schemas, ours: &Message) -> Result<(), String> {
    let theirs = kafka.get(&ours.name).ok_or("Kafka has no such message")?;
    if ![theirs.valid, theirs.declared].contains(&ours.valid) {
        return Err(format!("Kafka's versions are {:?}, ours {:?}", theirs.valid, ours.valid));
    }
    for version in ours.valid.min..=ours.valid.max {
        let flexible = |message: &Message| message.flexible.contains(version);
        if flexible(theirs) != flexible(ours) {
            return Err(format!("v{version}: flexible with Kafka: {}", flexible(theirs)));
        }
        let (mut left, mut right) = (Vec::new(), Vec::new());
        lines(&theirs.fields, version, "", &mut left);
        lines(&ours.fields, version, "", &mut right);
        let at = left.iter().zip(&right).position(|(l, r)| l != r);
        if let Some(at) = at.or((left.len() != right.len()).then_some(left.len().min(right.len())))
        {
            let (left, right) = (left.get(at), right.get(at));
            return Err(format!("v{version}: Kafka {left:?}, ours {right:?}"));
        }
    }
    Ok(())
}

/// A line per field of a version: those in order first, then the tagged ones by tag.
fn lines(fields: &[Field], version: i16, path: &str, out: &mut Vec<String>) {
    let present = fields.iter().filter(|f| f.versions.contains(version));
    let tag = |f: &Field| f.tagged.filter(|(_, v)| v.contains(version)).map(|(tag, _)| tag);
    let mut present: Vec<&Field> = present.collect();
    present.sort_by_key(|f| tag(f).map_or(-1, i64::from));
    for field in present {
        // Kafka writes camelCase, we write snake_case.
        let name = field.name.replace('_', "").to_lowercase();
        let nullable = field.nullable.contains(version);
        let default = match field.kind {
            Kind::Struct(_) | Kind::Array(_) | Kind::Records => String::new(),
            _ => default_of(field, version).to_string(),
        };
        let kind = kind(&field.kind);
        out.push(format!(
            "{path}{name} {kind} null:{nullable} tag:{:?} default:{default}",
            tag(field)
        ));
        if let Some(inner) = fields_of(&field.kind) {
            lines(inner, version, &format!("{path}{name}."), out);
        }
    }
}

fn kind(kind: &Kind) -> String {
    match kind {
        Kind::Struct(_) => "struct".into(),
        Kind::Array(element) => format!("array of {}", self::kind(element)),
        other => format!("{other:?}").to_lowercase(),
    }
}

fn fields_of(kind: &Kind) -> Option<&[Field]> {
    match kind {
        Kind::Struct(fields) => Some(fields),
        Kind::Array(element) => fields_of(element),
        _ => None,
    }
}

fn error_codes(places: &Places) -> Result<(), String> {
    let mut java = Command::new("java");
    java.arg("-cp").arg(format!("{}/*", places.kafka_jars().display()));
    java.arg(places.home.join("tables/Errors.java"));
    let printed = java.output().map_err(|e| format!("java: {e}"))?;
    let printed = String::from_utf8_lossy(&printed.stdout).to_string();
    let kafka: BTreeSet<String> = printed.lines().map(String::from).collect();
    let line =
        |code: &ErrorCode| format!("{} {} {}", *code as i16, code.name(), code.is_retriable());
    let ours: BTreeSet<String> = ErrorCode::ALL.iter().map(line).collect();
    match kafka.symmetric_difference(&ours).next() {
        None if !kafka.is_empty() => Ok(()),
        difference => Err(format!("only one side has {difference:?}")),
    }
}
