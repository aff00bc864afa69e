//! One row of a config table, and Kafka's rules for the text of a value.
//! Messages are Kafka's (`ConfigDef`): clients and tests look at them.

use super::error::ConfigError;

/// Kafka's type of a config value; `code` is what DescribeConfigs says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Boolean,
    String,
    Int,
    Short,
    Long,
    Double,
    List,
    Class,
    Password,
}

impl Kind {
    /// `config_type` of DescribeConfigs v3; 0 is "unknown". Source: `DescribeConfigsResponse`.
    pub fn code(self) -> i8 {
        match self {
            Self::Boolean => 1,
            Self::String => 2,
            Self::Int => 3,
            Self::Short => 4,
            Self::Long => 5,
            Self::Double => 6,
            Self::List => 7,
            Self::Class => 8,
            Self::Password => 9,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Boolean => "BOOLEAN",
            Self::String => "STRING",
            Self::Int => "INT",
            Self::Short => "SHORT",
            Self::Long => "LONG",
            Self::Double => "DOUBLE",
            Self::List => "LIST",
            Self::Class => "CLASS",
            Self::Password => "PASSWORD",
        }
    }
}

/// What stands when nothing is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// Must be set.
    Required,
    /// Null: "not set" has a meaning of its own.
    Null,
    Is(&'static str),
}

/// Which values of the right type are allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Valid {
    Any,
    AtLeast(i64),
    Between(i64, i64),
    BetweenDoubles(f64, f64),
    /// Level 1 to 9, or -1 for the library's own.
    GzipLevel,
    OneOf(&'static [&'static str]),
    OneOfAnyCase(&'static [&'static str]),
    /// A list of these, each at most once; may be empty.
    ListOf(&'static [&'static str]),
    /// A list of these, each at most once; may not be empty.
    SomeOf(&'static [&'static str]),
    NotEmpty,
    NoDuplicates,
    /// A list, each at most once; may not be empty.
    SomeDistinct,
    /// `partition:broker,…` or `*`.
    ThrottledReplicas,
}

/// Who may change a broker key while the node runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dynamic {
    ReadOnly,
    /// For one broker only.
    PerBroker,
    /// For one broker, or for all as the default.
    ClusterWide,
}

/// What this Ottla does with a key of Kafka's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Honour {
    Yes,
    /// There is nothing here that it could tune.
    NoEffect,
    NotYet,
    /// Set to anything but its default it stops the start: going on would be unsafe.
    Refused(&'static str),
}

/// One key of a config table.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    pub name: &'static str,
    pub kind: Kind,
    pub fallback: Fallback,
    pub valid: Valid,
    pub dynamic: Dynamic,
    pub honour: Honour,
    /// Known, but not shown by DescribeConfigs.
    pub internal: bool,
    /// For a topic key: the broker key whose value stands when the topic sets none.
    pub broker: Option<&'static str>,
    pub doc: &'static str,
}

/// A value that is right for its key.
#[derive(Debug, Clone, PartialEq)]
pub enum Parsed {
    Null,
    Boolean(bool),
    Int(i64),
    Double(f64),
    Text(String),
    List(Vec<String>),
}

impl Key {
    pub fn is_sensitive(&self) -> bool {
        self.kind == Kind::Password
    }

    /// The default as text; `None` where it is null or the key must be set.
    pub fn default_text(&self) -> Option<&'static str> {
        match self.fallback {
            Fallback::Required | Fallback::Null => None,
            Fallback::Is(text) => Some(text),
        }
    }

    /// Reads `text` as a value of this key.
    ///
    /// # Errors
    /// [`ConfigError::Value`] with Kafka's message.
    pub fn parse(&self, text: &str) -> Result<Parsed, ConfigError> {
        let refuse = |reason: String| {
            let shown = if self.is_sensitive() { "[hidden]" } else { text };
            ConfigError::value(self.name, shown, reason)
        };
        let parsed = self.typed(text.trim()).map_err(refuse)?;
        self.valid.check(&parsed).map_err(|(shown, reason)| match shown {
            Some(shown) => ConfigError::value(self.name, &shown, reason),
            None => refuse(reason),
        })?;
        Ok(parsed)
    }

    fn typed(&self, text: &str) -> Result<Parsed, String> {
        let number = |lowest: i64, highest: i64| match text.parse::<i64>() {
            Ok(value) if (lowest..=highest).contains(&value) => Ok(Parsed::Int(value)),
            _ => Err(format!("Not a number of type {}", self.kind.name())),
        };
        match self.kind {
            Kind::Boolean if text.eq_ignore_ascii_case("true") => Ok(Parsed::Boolean(true)),
            Kind::Boolean if text.eq_ignore_ascii_case("false") => Ok(Parsed::Boolean(false)),
            Kind::Boolean => Err("Expected value to be either true or false".to_owned()),
            Kind::Short => number(i16::MIN.into(), i16::MAX.into()),
            Kind::Int => number(i32::MIN.into(), i32::MAX.into()),
            Kind::Long => number(i64::MIN, i64::MAX),
            Kind::Double => match text.parse() {
                Ok(value) => Ok(Parsed::Double(value)),
                Err(_) => Err("Not a number of type DOUBLE".to_owned()),
            },
            Kind::String | Kind::Class | Kind::Password => Ok(Parsed::Text(text.to_owned())),
            Kind::List if text.is_empty() => Ok(Parsed::List(Vec::new())),
            Kind::List => Ok(Parsed::List(text.split(',').map(|s| s.trim().to_owned()).collect())),
        }
    }
}

/// The value to show where it differs from the whole text, and the reason.
type Refusal = (Option<String>, String);

impl Valid {
    fn check(&self, parsed: &Parsed) -> Result<(), Refusal> {
        match (*self, parsed) {
            (Self::AtLeast(lowest), Parsed::Int(value)) if *value < lowest => {
                refuse(format!("Value must be at least {lowest}"))
            }
            (Self::Between(lowest, _), Parsed::Int(value)) if *value < lowest => {
                refuse(format!("Value must be at least {lowest}"))
            }
            (Self::Between(_, highest), Parsed::Int(value)) if *value > highest => {
                refuse(format!("Value must be no more than {highest}"))
            }
            (Self::BetweenDoubles(lowest, _), Parsed::Double(value)) if *value < lowest => {
                refuse(format!("Value must be at least {lowest}"))
            }
            (Self::BetweenDoubles(_, highest), Parsed::Double(value)) if *value > highest => {
                refuse(format!("Value must be no more than {highest}"))
            }
            (Self::GzipLevel, Parsed::Int(value)) if !matches!(value, -1 | 1..=9) => {
                refuse("Value must be between 1 and 9 or equal to -1".to_owned())
            }
            (Self::OneOf(words), Parsed::Text(text)) if !words.contains(&text.as_str()) => {
                refuse(format!("String must be one of: {}", words.join(", ")))
            }
            (Self::OneOfAnyCase(words), Parsed::Text(text))
                if !words.iter().any(|word| word.eq_ignore_ascii_case(text)) =>
            {
                let words = words.join(", ");
                refuse(format!("String must be one of (case insensitive): {words}"))
            }
            (Self::NotEmpty, Parsed::Text(text)) if text.is_empty() => {
                refuse("String must be non-empty".to_owned())
            }
            (_, Parsed::List(items)) => self.check_list(items),
            _ => Ok(()),
        }
    }

    fn check_list(&self, items: &[String]) -> Result<(), Refusal> {
        let words = match *self {
            Self::ListOf(words) | Self::SomeOf(words) => Some(words),
            Self::NoDuplicates | Self::SomeDistinct => None,
            Self::ThrottledReplicas => return check_throttled(items),
            _ => return Ok(()),
        };
        if items.is_empty() && matches!(self, Self::SomeOf(_) | Self::SomeDistinct) {
            return refuse(
                "Configuration must not be empty. Valid values include: any non-empty value"
                    .to_owned(),
            );
        }
        if let Some(item) = items.iter().enumerate().find(|(at, item)| items[..*at].contains(item))
        {
            let _ = item;
            return refuse("Duplicate entries are not allowed".to_owned());
        }
        let Some(words) = words else { return Ok(()) };
        match items.iter().find(|item| !words.contains(&item.as_str())) {
            Some(item) => {
                Err((Some(item.clone()), format!("String must be one of: {}", words.join(", "))))
            }
            None => Ok(()),
        }
    }
}

fn refuse(reason: String) -> Result<(), Refusal> {
    Err((None, reason))
}

fn check_throttled(items: &[String]) -> Result<(), Refusal> {
    let is_pair = |item: &String| {
        item.split_once(':').is_some_and(|(partition, broker)| {
            let is_number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
            is_number(partition) && is_number(broker)
        })
    };
    if items.iter().all(is_pair) || matches!(items, [only] if only == "*") {
        return Ok(());
    }
    let form = "[partitionId]:[brokerId],[partitionId]:[brokerId],...";
    refuse(format!("must be the literal '*' or a list of replicas in the following format: {form}"))
}
