//! Which broker keys may be changed while the node runs, and by whom.

use super::error::ConfigError;
use super::key::Dynamic;
use super::known;

/// Checks one dynamic value as IncrementalAlterConfigs does.
/// - `level`: `PerBroker` for the values of one broker, `ClusterWide` for the default of all.
///
/// # Errors
/// [`ConfigError`] with Kafka's text.
pub fn check(level: Dynamic, name: &str, value: &str) -> Result<(), ConfigError> {
    let key = known::broker_key(name)
        .ok_or_else(|| ConfigError::UnknownName { resource: "broker", name: name.to_owned() })?;
    if key.dynamic == Dynamic::ReadOnly {
        let reason = format!("Cannot update these configs dynamically: {name}");
        return Err(ConfigError::rule(reason));
    }
    if level == Dynamic::ClusterWide && key.dynamic == Dynamic::PerBroker {
        let reason = format!("Cannot update these configs at default cluster level: {name}");
        return Err(ConfigError::rule(reason));
    }
    key.parse(value).map(|_| ())
}
