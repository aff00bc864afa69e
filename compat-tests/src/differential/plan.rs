//! What is played, in order: generated frames first, while the brokers are still empty, then the tables.

use super::play::{Note, Player, Served};
use super::sample;
use super::scenario::Case;
use crate::wire::codec::encode;
use crate::wire::connection::Connection;
use crate::wire::schema::{Message, Schemas};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

pub enum Item<'a> {
    /// A body as it is, on a connection of its own.
    Body { api: String, version: i16, name: String, bytes: Vec<u8> },
    /// A case of a table; the short name goes into the names of its topics.
    Case { case: &'a Case, version: Option<i16>, short: String },
}

impl Item<'_> {
    /// What the names of the item's own topics and groups begin with.
    pub fn own_names(&self) -> &str {
        match self {
            Item::Body { .. } => "sample/",
            Item::Case { short, .. } => short,
        }
    }

    pub fn name(&self) -> String {
        match self {
            Item::Body { api, version, name, .. } => format!("{api} v{version} {name}"),
            Item::Case { case, version: Some(version), .. } => format!("{} v{version}", case.title),
            Item::Case { case, .. } => case.title.clone(),
        }
    }
}

pub fn make<'a>(
    schemas: &Schemas,
    cases: &'a [Case],
    served: &Served,
) -> Result<Vec<Item<'a>>, String> {
    let mut items = Vec::new();
    for (api, range) in served {
        generated(schemas, api, *range, &mut items)?;
    }
    for (index, case) in cases.iter().enumerate() {
        // What only Kafka serves is not compared; an API that the broker should serve is missed by
        // the table of advertised versions.
        if !case.apis().all(|api| served.contains_key(api)) {
            continue;
        }
        let Some(subject) = case.subject() else {
            items.push(Item::Case { case, version: None, short: format!("case{index}") });
            continue;
        };
        let (min, max) = usable(schemas.request(subject)?, served[subject]);
        let (first, last) = case.only.unwrap_or((min, max));
        for version in min.max(first)..=max.min(last) {
            let short = format!("case{index}-v{version}");
            items.push(Item::Case { case, version: Some(version), short });
        }
    }
    Ok(items)
}

/// The advertised versions that a schema has: Produce is advertised from 0 for the sake of old clients.
fn usable(message: &Message, (min, max): (i16, i16)) -> (i16, i16) {
    (min.max(message.valid.min), max.min(message.valid.max))
}

fn generated(
    schemas: &Schemas,
    api: &str,
    advertised: (i16, i16),
    items: &mut Vec<Item<'_>>,
) -> Result<(), String> {
    let message = schemas.request(api)?;
    let (min, max) = usable(message, advertised);
    let mut add = |version: i16, name: &str, bytes: Vec<u8>| {
        items.push(Item::Body { api: api.into(), version, name: name.into(), bytes });
    };
    for version in min..=max {
        // A name that no topic may have: old versions of Metadata would create what they ask for.
        let own = format!("sample/{}/{version}", api.to_lowercase());
        let body = sample::body(message, version, &own);
        let encoded = encode(message, version, &body)?;
        add(version, "sample", encoded.bytes.clone());
        add(version, "defaults", encode(message, version, &sample::empty_body(message))?.bytes);
        if [min, max, message.flexible.min].contains(&version) {
            let spoiled = sample::spoiled(&encoded).into_iter();
            for (name, bytes) in
                spoiled.filter(|(name, _)| !is_lenient(name) && !is_hasty(api, name))
            {
                add(version, &name, bytes);
            }
        }
    }
    let newest = encode(message, max, &json!({}))?.bytes;
    for version in BTreeSet::from([-1, i16::MIN, advertised.0 - 1, max + 1, i16::MAX]) {
        if version < advertised.0 || version > max {
            add(version, "is not served", newest.clone());
        }
    }
    Ok(())
}

/// Where Kafka is lenient and Ottla closes the connection, with bytes that no client sends (the hostile
/// suite has them): any negative length counts as null there, here only -1; and a tagged field may be
/// longer than its value, as Fetch's `clusterId` is when its length is spoiled.
fn is_lenient(name: &str) -> bool {
    let ends = [" -2 long", " -2^31 long", " 2^32-1 long"];
    ends.iter().any(|end| name.ends_with(end)) || name == "clusterId null"
}

/// The rest of a null array would be read as the time that CreatePartitions has: a millisecond, after
/// which the answer depends on who is faster.
fn is_hasty(api: &str, name: &str) -> bool {
    api == "CreatePartitions" && name.ends_with("assignments null")
}

/// Longer than any generated request may take; all ask for no wait.
const PATIENCE: Duration = Duration::from_secs(15);

pub fn play(player: &Player<'_>, item: &Item<'_>) -> Result<Vec<Note>, String> {
    match item {
        Item::Case { case, version, short } => player.play(case, version.unwrap_or(0), short),
        Item::Body { api, version, bytes, .. } => {
            let mut connection = Connection::open(&player.address, PATIENCE)?;
            connection.send_body(player.schemas, api, *version, bytes)?;
            let answer = connection.receive(player.schemas)?.to_value();
            let answer = own_port(answer, &player.address);
            Ok(vec![Note { step: 0, api: api.clone(), version: *version, answer }])
        }
    }
}

/// Puts a word in place of the broker's own port, so that a right one compares as equal.
pub fn own_port(value: Value, address: &str) -> Value {
    let port = address.rsplit(':').next().and_then(|p| p.parse::<u16>().ok());
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(key, value)| {
                    let own = key == "port" && value.as_u64() == port.map(u64::from);
                    let value = if own { json!("own port") } else { own_port(value, address) };
                    (key, value)
                })
                .collect(),
        ),
        Value::Array(all) => Value::Array(all.into_iter().map(|v| own_port(v, address)).collect()),
        other => other,
    }
}
