//! From the sources of a start to a [`BrokerConfig`]: file, environment, arguments, each over the
//! one before, and what has to be said about them.

use super::broker::{BrokerConfig, NodeKeys};
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
    /// `--port`: stands over the port of the only client listener, whoever wrote it.
    pub port: Option<u16>,
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
                "CLUSTER_ID" | "KAFKA_CLUSTER_ID" => Some("ottla.cluster.id".to_owned()),
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
    if let Some(port) = sources.port {
        set_port(&mut statics, port)?;
    }
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

/// Gives the only client listener another port, and its advertised address too, where that had the
/// listener's port. Several brokers on one machine then also need several HTTP ports.
fn set_port(statics: &mut Statics, port: u16) -> Result<(), ConfigError> {
    let origin = Origin::Argument(format!("--port {port}"));
    statics.set_if_absent("ottla.http.port", "0", Origin::House);
    let mut written = statics.clone();
    written.fill_from_house();
    let node = NodeKeys::read(&written)?;
    let is_client = |text: &str| {
        let name = text.split("://").next().unwrap_or(text);
        !node.controller_listener_names.iter().any(|one| one.eq_ignore_ascii_case(name))
    };
    let clients: Vec<_> = node.listeners.iter().filter(|text| is_client(text)).collect();
    let [client] = clients.as_slice() else {
        return Err(ConfigError::rule_with_hint(
            format!(
                "`--port` needs exactly one client listener, `listeners` has {}",
                clients.len()
            ),
            "set the ports in `listeners`",
        )
        .at(&origin));
    };
    let (_, old) = client.rsplit_once(':').unwrap_or(("", ""));
    let moved = |text: &String| match text.rsplit_once(':') {
        Some((address, at)) if at == old && is_client(text) => format!("{address}:{port}"),
        _ => text.clone(),
    };
    let list = |texts: &[String]| texts.iter().map(moved).collect::<Vec<_>>().join(",");
    statics.set("listeners", list(&node.listeners), origin.clone());
    if let Some(advertised) = &node.advertised_listeners {
        statics.set("advertised.listeners", list(advertised), origin);
    }
    Ok(())
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

/// A key that somebody typed for this start, or that only Ottla can know, is a mistake; one in a
/// file or the environment may be meant for something else.
fn unknown(name: &str) -> ConfigError {
    let hint = match known::nearest_broker_key(name) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "neither Kafka 4.4 nor Ottla has a key of that name".to_owned(),
    };
    ConfigError::rule_with_hint(format!("unknown key `{name}`"), hint)
}

fn judge(statics: &Statics) -> Result<Notices, ConfigError> {
    let mut notices = Notices::default();
    for (name, value, origin) in statics.iter() {
        let Some(key) = known::broker_key(name) else {
            match (known::is_of_a_plugin(name), origin) {
                (true, _) => notices.not_honoured.push(name.to_owned()),
                (false, Origin::Argument(_)) => return Err(unknown(name).at(origin)),
                (false, _) if name.starts_with("ottla.") => return Err(unknown(name).at(origin)),
                (false, _) => {
                    notices.unknown.push((name.to_owned(), known::nearest_broker_key(name)));
                }
            }
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

impl Notices {
    /// Says each kind in one line of the log, or nothing.
    pub fn tell(&self) {
        if !self.not_honoured.is_empty() || !self.without_effect.is_empty() {
            tracing::warn!(
                not_honoured_yet = self.not_honoured.join(","),
                without_effect = self.without_effect.join(","),
                "some settings of Kafka change nothing here"
            );
        }
        if !self.unknown.is_empty() {
            let names = self.unknown.iter().map(|(name, near)| match near {
                Some(near) => format!("{name} (did you mean {near}?)"),
                None => name.clone(),
            });
            let names = names.collect::<Vec<_>>().join(", ");
            tracing::warn!(names, "unknown settings");
        }
    }
}
