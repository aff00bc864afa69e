//! How an end with an error is told: what is wrong, where, the way out.

use std::fmt;

use crate::config::{ConfigError, broker_key};

/// An end of the program with an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// 2 for wrong use, 1 for a failure.
    pub exit_code: u8,
    message: String,
    at: Option<String>,
    hint: Option<String>,
}

impl Failure {
    /// The program was told something that it cannot do: exit code 2.
    pub fn wrong_use(message: impl fmt::Display) -> Self {
        Self { exit_code: 2, message: message.to_string(), at: None, hint: None }
    }

    /// The program could not do what it was told: exit code 1.
    pub fn failed(message: impl fmt::Display) -> Self {
        Self { exit_code: 1, ..Self::wrong_use(message) }
    }

    /// Where: a file and line, an argument, an address.
    #[must_use]
    pub fn at(self, place: impl fmt::Display) -> Self {
        Self { at: Some(place.to_string()), ..self }
    }

    /// The way out.
    #[must_use]
    pub fn hint(self, hint: impl fmt::Display) -> Self {
        Self { hint: Some(hint.to_string()), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        if let Some(at) = &self.at {
            write!(f, "\n   at: {at}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n hint: {hint}")?;
        }
        Ok(())
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::At { error, origin } => Self::from(*error).at(origin),
            ConfigError::Rule { reason, hint } => Self { hint, ..Self::wrong_use(reason) },
            ConfigError::Value { .. } => {
                let hint = value_hint(&error);
                Self { hint, ..Self::wrong_use(error) }
            }
            other => Self::wrong_use(other),
        }
    }
}

/// What the key is for, and what it is when nobody sets it.
fn value_hint(error: &ConfigError) -> Option<String> {
    let ConfigError::Value { name, .. } = error else { return None };
    let key = broker_key(name)?;
    let doc = key.doc.trim().trim_end_matches('.').replace("\n ", " ");
    Some(match key.default_text().filter(|text| !text.is_empty()) {
        Some(default) => format!("`{name}`: {doc}; the default is {default}"),
        None => format!("`{name}`: {doc}"),
    })
}
