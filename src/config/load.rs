//! From the sources of a start to a [`BrokerConfig`]: file, environment, arguments, each over the
//! one before, and what has to be said about them.

use super::broker::BrokerConfig;
use super::error::ConfigError;
use super::key::Honour;
use super::known;
use super::properties;
use super::source::{Origin, Statics};

/// What a node is started with. Reading files and the environment is the caller's.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Path as given, and text, of `server.properties`.
    pub file: Option<(String, String)>,
    /// The environment; variables that are none of Ottla's are passed over.
    pub variables: Vec<(String, String)>,
    /// Arguments in their order: as written (`--port 9093`), key, value.
    pub arguments: Vec<(String, String, String)>,
}

/// What the operator should know about a configuration that works.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notices {
    /// Keys of Kafka that are not honoured yet.
    pub not_honoured: Vec<String>,
    /// Keys of Kafka that have nothing to tune here.
    pub without_effect: Vec<String>,
    /// Keys that nobody knows, with the nearest known name.
    pub unknown: Vec<(String, Option<&'static str>)>,
}

/// Variables of the image's scripts that are no properties of the broker.
const NOT_PROPERTIES: &[&str] = &[
    "KAFKA_HEAP_OPTS",
    "KAFKA_OPTS",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_JMX_OPTS",
    "KAFKA_JMX_PORT",
    "KAFKA_JMX_HOSTNAME",
    "KAFKA_DEBUG",
    "KAFKA_HOME",
    "KAFKA_VERSION",
    "KAFKA_CLUSTER_ID",
];

/// The property that an environment variable sets, by the image's rules: `KAFKA_` taken off, lower
/// case, `___` is `-`, `__` is `_`, `_` is `.`.
pub fn property_of_variable(name: &str) -> Option<String> {
    if NOT_PROPERTIES.contains(&name) || name.starts_with("KAFKA_LOG4J_") {
        return None;
    }
    let rest = name.strip_prefix("KAFKA_")?.to_lowercase();
    // From the longest run to the shortest, as the wrapper does, through signs no name has.
    let plain = rest.replace("___", "\u{1}").replace("__", "\u{2}").replace('_', ".");
    Some(plain.replace('\u{1}', "-").replace('\u{2}', "_"))
}

impl Sources {
    fn statics(&self) -> Statics {
        let mut statics = Statics::default();
        if let Some((path, text)) = &self.file {
            for (line, key, value) in properties::parse(text) {
                statics.set(key, value, Origin::File { path: path.clone(), line });
            }
        }
        for (name, value) in &self.variables {
            let key = match name.as_str() {
                "CLUSTER_ID" => Some("ottla.cluster.id".to_owned()),
                name => property_of_variable(name),
            };
            if let Some(key) = key {
                statics.set(key, value, Origin::Variable(name.clone()));
            }
        }
        for (argument, key, value) in &self.arguments {
            statics.set(key, value, Origin::Argument(argument.clone()));
        }
        statics
    }
}

/// Reads, checks and judges all sources.
///
/// # Errors
/// The first thing that is wrong, with its place: [`ConfigError::At`].
pub fn load(sources: &Sources) -> Result<(BrokerConfig, Notices), ConfigError> {
    let mut statics = sources.statics();
    let notices = judge(&statics)?;
    statics.fill_from_house();
    let config = BrokerConfig::from_statics(statics.clone()).map_err(|error| {
        let culprit = culprit(&error, &statics);
        match culprit.and_then(|name| statics.origin(&name)) {
            Some(origin) => error.at(origin),
            None => error,
        }
    })?;
    Ok((config, notices))
}

/// The key that an error speaks of, where that is one which was set.
fn culprit(error: &ConfigError, statics: &Statics) -> Option<String> {
    let reason = match error {
        ConfigError::Value { name, .. } => return Some(name.clone()),
        ConfigError::Rule { reason, .. } => reason,
        _ => return None,
    };
    if reason.starts_with("Error creating broker listeners") {
        let advertised = statics.iter().find(|(name, value, _)| {
            *name == "advertised.listeners" && reason.contains(&format!("'[{value}]'"))
        });
        return Some(advertised.map_or("listeners", |(name, _, _)| name).to_owned());
    }
    let named = statics
        .iter()
        .filter(|(name, _, origin)| **origin != Origin::House && reason.contains(name));
    named.max_by_key(|(name, _, _)| name.len()).map(|(name, _, _)| name.to_owned())
}

fn judge(statics: &Statics) -> Result<Notices, ConfigError> {
    let mut notices = Notices::default();
    for (name, value, origin) in statics.iter() {
        let Some(key) = known::broker_key(name) else {
            if !known::is_of_a_plugin(name) {
                notices.unknown.push((name.to_owned(), known::nearest_broker_key(name)));
                continue;
            }
            notices.not_honoured.push(name.to_owned());
            continue;
        };
        match key.honour {
            Honour::Yes if name == key.name => {}
            Honour::Yes | Honour::NotYet => notices.not_honoured.push(name.to_owned()),
            Honour::NoEffect => notices.without_effect.push(name.to_owned()),
            Honour::Refused(_) if value.is_empty() || Some(value) == key.default_text() => {}
            Honour::Refused(reason) => {
                let reason = format!("`{name}` cannot be honoured: {reason}");
                let hint = format!("take `{name}` out");
                return Err(ConfigError::rule_with_hint(reason, hint).at(origin));
            }
        }
        if key.honour != Honour::Yes {
            key.parse(value).map_err(|error| error.at(origin))?;
        }
    }
    Ok(notices)
}
