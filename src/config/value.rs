//! From a checked value to the Rust type of its field.

use super::key::{Kind, Parsed};

/// A Rust type that a config field may have.
pub trait Value: Sized {
    const KIND: Kind;
    /// `None` only where the key's row allows values that the type has not: a mistake in a table,
    /// found by the test that reads every default.
    fn from_parsed(parsed: Parsed) -> Option<Self>;
}

macro_rules! numbers {
    ($($type:ty = $kind:ident)+) => {$(
        impl Value for $type {
            const KIND: Kind = Kind::$kind;
            fn from_parsed(parsed: Parsed) -> Option<Self> {
                match parsed {
                    Parsed::Int(value) => value.try_into().ok(),
                    _ => None,
                }
            }
        }
    )+};
}

numbers! { i16 = Short i32 = Int i64 = Long }

impl Value for f64 {
    const KIND: Kind = Kind::Double;
    fn from_parsed(parsed: Parsed) -> Option<Self> {
        match parsed {
            Parsed::Double(value) => Some(value),
            _ => None,
        }
    }
}

impl Value for bool {
    const KIND: Kind = Kind::Boolean;
    fn from_parsed(parsed: Parsed) -> Option<Self> {
        match parsed {
            Parsed::Boolean(value) => Some(value),
            _ => None,
        }
    }
}

impl Value for String {
    const KIND: Kind = Kind::String;
    fn from_parsed(parsed: Parsed) -> Option<Self> {
        match parsed {
            Parsed::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Value for Vec<String> {
    const KIND: Kind = Kind::List;
    fn from_parsed(parsed: Parsed) -> Option<Self> {
        match parsed {
            Parsed::List(items) => Some(items),
            _ => None,
        }
    }
}

impl<T: Value> Value for Option<T> {
    const KIND: Kind = T::KIND;
    fn from_parsed(parsed: Parsed) -> Option<Self> {
        match parsed {
            Parsed::Null => Some(None),
            parsed => T::from_parsed(parsed).map(Some),
        }
    }
}

macro_rules! words {
    ($($(#[doc = $doc:literal])+ $name:ident { $($variant:ident = $word:literal,)+ })+) => {$(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($variant,)+ }

        impl $name {
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl Value for $name {
            const KIND: Kind = Kind::String;
            fn from_parsed(parsed: Parsed) -> Option<Self> {
                match parsed {
                    Parsed::Text(text) => match text.as_str() {
                        $($word => Some(Self::$variant),)+
                        _ => None,
                    },
                    _ => None,
                }
            }
        }
    )+};
}

words! {
    /// `compression.type`: what a batch is stored with. In the order that Kafka names them.
    CompressionType {
        Uncompressed = "uncompressed",
        Zstd = "zstd",
        Lz4 = "lz4",
        Snappy = "snappy",
        Gzip = "gzip",
        Producer = "producer",
    }
    /// `message.timestamp.type`: whose clock stamps a record.
    TimestampType {
        CreateTime = "CreateTime",
        LogAppendTime = "LogAppendTime",
    }
}

/// `cleanup.policy`; neither: keep for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanupPolicy {
    pub delete: bool,
    pub compact: bool,
}

impl CleanupPolicy {
    pub const WORDS: &'static [&'static str] = &["compact", "delete"];
}

impl Value for CleanupPolicy {
    const KIND: Kind = Kind::List;
    fn from_parsed(parsed: Parsed) -> Option<Self> {
        let items = Vec::from_parsed(parsed)?;
        let has = |word: &str| items.iter().any(|item| item == word);
        Some(Self { delete: has("delete"), compact: has("compact") })
    }
}

/// `group.consumer.migration.policy`: what a group may turn into while members come and go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MigrationPolicy {
    Disabled,
    /// From consumer to classic, with the last member that speaks the consumer protocol.
    Downgrade,
    /// From classic to consumer, with the first member that speaks the consumer protocol.
    Upgrade,
    Bidirectional,
}

impl MigrationPolicy {
    /// Written in any case; in the order that Kafka names them.
    pub const WORDS: &'static [&'static str] =
        &["DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"];
}

impl Value for MigrationPolicy {
    const KIND: Kind = Kind::String;
    fn from_parsed(parsed: Parsed) -> Option<Self> {
        let text = String::from_parsed(parsed)?;
        let at = Self::WORDS.iter().position(|word| word.eq_ignore_ascii_case(&text))?;
        [Self::Disabled, Self::Downgrade, Self::Upgrade, Self::Bidirectional].get(at).copied()
    }
}
