//! Which broker keys may be changed while the node runs, and at which level.

use super::Values;
use super::error::ConfigError;
use super::key::{Dynamic, Key};
use super::known;
use super::rules::NO_CLEANER_THREAD;

/// Whom dynamic broker values are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// All brokers: the resource with the empty name.
    Cluster,
    /// One broker.
    Broker,
}

/// Checks all dynamic values of one level, in Kafka's order of rules. A name that nobody knows is
/// accepted, as by Kafka: a plug-in may read it.
///
/// # Errors
/// [`ConfigError`] with Kafka's text.
pub(super) fn check(level: Level, values: &Values) -> Result<(), ConfigError> {
    let known = || {
        let row = |name: &'_ String| known::broker_key(name);
        values.iter().filter_map(move |(name, value)| Some((name, value, row(name)?)))
    };
    let refuse = |because: &str, is_wrong: &dyn Fn(&str, &Key) -> bool| {
        let wrong: Vec<_> = known()
            .filter(|(name, _, key)| is_wrong(name, key))
            .map(|(name, _, _)| name.as_str())
            .collect();
        match wrong.as_slice() {
            [] => Ok(()),
            names => Err(ConfigError::rule(format!("{because}: [{}]", names.join(", ")))),
        }
    };
    refuse("Cannot update these configs dynamically", &|_, key| key.dynamic == Dynamic::ReadOnly)?;
    refuse(
        "These security configs can be dynamically updated only per-listener using the listener \
         prefix",
        &|name, _| name.starts_with("ssl."),
    )?;
    for (_, value, key) in known() {
        key.parse(value)?;
    }
    if level == Level::Broker {
        return Ok(());
    }
    refuse(
        "Cannot update these configs at default cluster level, broker id must be specified",
        &|name, key| key.dynamic == Dynamic::PerBroker || name != key.name,
    )
}

/// A rule between keys as a dynamic change is told of it.
pub(super) fn requirement(error: ConfigError) -> ConfigError {
    match error {
        ConfigError::Rule { reason, hint } if reason == NO_CLEANER_THREAD => {
            ConfigError::Rule { reason: "/ by zero".to_owned(), hint }
        }
        // Kafka's rules for groups have no such words before them.
        ConfigError::Rule { reason, hint } if !reason.starts_with("group.") => {
            ConfigError::Rule { reason: format!("requirement failed: {reason}"), hint }
        }
        other => other,
    }
}
