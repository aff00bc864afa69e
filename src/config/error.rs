//! What can be wrong with a configuration, and who has to act.

use super::source::Origin;

/// A configuration that the node, or a topic, cannot have.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum ConfigError {
    /// The value is not one of its key; the text is Kafka's.
    #[error("Invalid value {value} for configuration {name}: {reason}")]
    Value { name: String, value: String, reason: String },
    /// No such key for this kind of resource; the text is Kafka's.
    #[error("Unknown {resource} config name: {name}")]
    UnknownName { resource: &'static str, name: String },
    /// Values that are right alone but not together, or a key that must be set; Kafka's text
    /// where Kafka has the rule.
    #[error("{reason}")]
    Rule { reason: String, hint: Option<String> },
    /// An error of the start-up configuration with the place that it comes from.
    #[error("{error}")]
    At { error: Box<ConfigError>, origin: Origin },
}

impl ConfigError {
    pub(crate) fn value(name: &str, value: &str, reason: impl Into<String>) -> Self {
        Self::Value { name: name.to_owned(), value: value.to_owned(), reason: reason.into() }
    }

    pub(crate) fn rule(reason: impl Into<String>) -> Self {
        Self::Rule { reason: reason.into(), hint: None }
    }

    pub fn rule_with_hint(reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Rule { reason: reason.into(), hint: Some(hint.into()) }
    }

    pub fn at(self, origin: &Origin) -> Self {
        match self {
            Self::At { .. } => self,
            error => Self::At { error: Box::new(error), origin: origin.clone() },
        }
    }
}
