//! `config_keys!`: one row gives the typed field, its key, bounds, default, dynamic mode and doc.

use super::error::ConfigError;
use super::key::{Fallback, Key, Parsed};
use super::value::Value;

/// Where the text of a key comes from; `None`: not set.
pub(crate) trait Texts {
    fn text(&self, name: &str) -> Option<&str>;
}

/// The typed value of `key`: what is set, or its default.
///
/// # Errors
/// [`ConfigError`] when the text is wrong, or the key must be set and is not.
pub(crate) fn typed<T: Value>(key: &Key, texts: &dyn Texts) -> Result<T, ConfigError> {
    let parsed = match (texts.text(key.name), key.fallback) {
        (Some(text), _) | (None, Fallback::Is(text)) => key.parse(text)?,
        (None, Fallback::Null) => Parsed::Null,
        (None, Fallback::Required) => {
            let name = key.name;
            return Err(ConfigError::rule(format!(
                "Missing required configuration \"{name}\" which has no default value."
            )));
        }
    };
    let shown = texts.text(key.name).unwrap_or_default();
    T::from_parsed(parsed).ok_or_else(|| ConfigError::value(key.name, shown, "Not allowed here"))
}

/// Declares a family of broker keys: a struct with a typed field per row, its `KEYS`, and `read`.
macro_rules! config_keys {
    (
        $(#[doc = $head:literal])+ $family:ident;
        $(
            $(#[doc = $doc:literal])+
            $field:ident: $type:ty = $default:tt, $valid:expr;
                key $name:literal, dynamic $dynamic:ident $(, $internal:ident)?;
        )+
    ) => {
        $(#[doc = $head])+
        #[derive(Debug, Clone, PartialEq)]
        pub struct $family {
            $($(#[doc = $doc])+ pub $field: $type,)+
        }

        impl $family {
            pub const KEYS: &'static [$crate::config::Key] = &[
                $($crate::config::table::row!(
                    $type, $name, $default, $valid, $dynamic, None, [$($internal)?], $($doc),+
                ),)+
            ];

            pub(in $crate::config) fn read(
                texts: &dyn $crate::config::table::Texts,
            ) -> Result<Self, $crate::config::ConfigError> {
                Ok(Self {
                    $($field: {
                        const KEY: $crate::config::Key = $crate::config::table::row!(
                            $type, $name, $default, $valid, $dynamic, None, [], $($doc),+
                        );
                        $crate::config::table::typed(&KEY, texts)?
                    },)+
                })
            }
        }
    };
}

/// One [`Key`] of an honoured row.
macro_rules! row {
    (
        $type:ty, $name:expr, $default:tt, $valid:expr, $dynamic:ident, $broker:expr,
        [$($internal:ident)?], $($doc:expr),+
    ) => {
        $crate::config::Key {
            name: $name,
            kind: <$type as $crate::config::value::Value>::KIND,
            fallback: $crate::config::table::fallback!($default),
            valid: { use $crate::config::key::Valid::*; $valid },
            dynamic: $crate::config::key::Dynamic::$dynamic,
            honour: $crate::config::key::Honour::Yes,
            internal: $crate::config::table::is_internal!($($internal)?),
            broker: $broker,
            doc: concat!($($doc),+),
        }
    };
}

macro_rules! fallback {
    (null) => {
        $crate::config::key::Fallback::Null
    };
    (required) => {
        $crate::config::key::Fallback::Required
    };
    ($text:literal) => {
        $crate::config::key::Fallback::Is($text)
    };
}

/// `internal` or nothing; any other flag of a row is none of this macro's business.
macro_rules! is_internal {
    (internal) => {
        true
    };
    ($($other:ident)?) => {
        false
    };
}

pub(crate) use {config_keys, fallback, is_internal, row};
