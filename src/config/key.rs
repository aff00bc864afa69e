//! One row of a config table, and Kafka's rules for the text of a value.
//! Messages are Kafka's (`ConfigDef`): clients and tests look at them.

use super::duration;
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
    /// A list of these; may be empty.
    ListOf(&'static [&'static str]),
    /// A list of these; may not be empty.
    SomeOf(&'static [&'static str]),
    /// A list that may not be empty.
    NotEmptyList,
    NotEmpty,
    /// `partition:broker,…` or `*`.
    ThrottledReplicas,
    /// `earliest`, `latest` or `by_duration:` and an ISO 8601 duration that is not negative.
    ShareOffsetReset,
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
    /// For a topic or group key: the broker key whose value stands when none is set.
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
    pub fn is_dynamic(&self) -> bool {
        self.dynamic != Dynamic::ReadOnly
    }

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
    /// [`ConfigError`] with Kafka's message.
    pub fn parse(&self, text: &str) -> Result<Parsed, ConfigError> {
        let refuse = |shown: &str, reason: String| {
            let shown = if self.is_sensitive() { "[hidden]" } else { shown };
            ConfigError::value(self.name, shown, reason)
        };
        let parsed = self.typed(text.trim()).map_err(|reason| refuse(text, reason))?;
        match &parsed {
            Parsed::List(items) => self.check_list(items)?,
            Parsed::Text(text) if self.valid == Valid::ShareOffsetReset => {
                self.check_offset_reset(text)?;
            }
            one => self.valid.check(one).map_err(|reason| refuse(&one.render(), reason))?,
        }
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

    fn check_list(&self, items: &[String]) -> Result<(), ConfigError> {
        let name = self.name;
        let words: &[&str] = match self.valid {
            Valid::ListOf(words) | Valid::SomeOf(words) => words,
            Valid::ThrottledReplicas => return self.check_throttled(items),
            _ => &[],
        };
        if items.is_empty() && matches!(self.valid, Valid::SomeOf(_) | Valid::NotEmptyList) {
            let those = match words {
                [] => "any non-empty value".to_owned(),
                words => format!("[{}]", words.join(", ")),
            };
            return Err(ConfigError::rule(format!(
                "Configuration '{name}' must not be empty. Valid values include: {those}"
            )));
        }
        if items.iter().any(String::is_empty) {
            let reason = format!("Configuration '{name}' values must not be empty.");
            return Err(ConfigError::rule(reason));
        }
        match items.iter().find(|item| !words.is_empty() && !words.contains(&item.as_str())) {
            Some(item) => {
                let reason = format!("String must be one of: {}", words.join(", "));
                Err(ConfigError::value(name, item, reason))
            }
            None => Ok(()),
        }
    }

    fn check_offset_reset(&self, text: &str) -> Result<(), ConfigError> {
        let is_span = |span: &str| duration::parse(span).is_some_and(|nanos| nanos >= 0);
        if matches!(text, "earliest" | "latest")
            || text.strip_prefix("by_duration:").is_some_and(is_span)
        {
            return Ok(());
        }
        let name = self.name;
        let reason = format!(
            "Invalid value `{text}` for configuration {name}. The value must be either \
             'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
        );
        Err(ConfigError::value(name, text, reason))
    }

    fn check_throttled(&self, items: &[String]) -> Result<(), ConfigError> {
        let is_number = |s: &str| !s.is_empty() && s.bytes().all(|byte| byte.is_ascii_digit());
        let is_pair = |item: &String| {
            item.split_once(':').is_some_and(|(left, right)| is_number(left) && is_number(right))
        };
        if items.iter().all(is_pair) || matches!(items, [only] if only == "*") {
            return Ok(());
        }
        let name = self.name;
        let reason = format!(
            "{name} must be the literal '*' or a list of replicas in the following format: \
             [partitionId]:[brokerId],[partitionId]:[brokerId],..."
        );
        Err(ConfigError::value(name, &format!("[{}]", items.join(", ")), reason))
    }
}

impl Valid {
    fn check(&self, parsed: &Parsed) -> Result<(), String> {
        let at_least = |lowest: &dyn std::fmt::Display| format!("Value must be at least {lowest}");
        let at_most =
            |highest: &dyn std::fmt::Display| format!("Value must be no more than {highest}");
        let reason = match (*self, parsed) {
            (Self::AtLeast(lowest) | Self::Between(lowest, _), Parsed::Int(value))
                if *value < lowest =>
            {
                at_least(&lowest)
            }
            (Self::Between(_, highest), Parsed::Int(value)) if *value > highest => {
                at_most(&highest)
            }
            (Self::BetweenDoubles(lowest, _), Parsed::Double(value)) if *value < lowest => {
                at_least(&lowest)
            }
            // NaN is no more in the range than it is below it.
            (Self::BetweenDoubles(_, highest), Parsed::Double(value))
                if *value > highest || value.is_nan() =>
            {
                at_most(&highest)
            }
            (Self::GzipLevel, Parsed::Int(value)) if !matches!(value, -1 | 1..=9) => {
                "Value must be between 1 and 9 or equal to -1".to_owned()
            }
            (Self::OneOf(words), Parsed::Text(text)) if !words.contains(&text.as_str()) => {
                format!("String must be one of: {}", words.join(", "))
            }
            (Self::OneOfAnyCase(words), Parsed::Text(text))
                if !words.iter().any(|word| word.eq_ignore_ascii_case(text)) =>
            {
                format!("String must be one of (case insensitive): {}", words.join(", "))
            }
            (Self::NotEmpty, Parsed::Text(text)) if text.is_empty() => {
                "String must be non-empty".to_owned()
            }
            _ => return Ok(()),
        };
        Err(reason)
    }
}

impl Parsed {
    /// The value as DescribeConfigs shows it; empty for null, which callers know by itself.
    pub fn render(&self) -> String {
        match self {
            Self::Null => String::new(),
            Self::Boolean(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::Double(value) => java_double(*value),
            Self::Text(text) => text.clone(),
            Self::List(items) => items.join(","),
        }
    }
}

/// A double as Java prints it: plain from 0.001 up to 10 000 000, with an exponent elsewhere, and
/// at least one digit after the point.
fn java_double(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{value:?}");
    }
    if !value.is_finite() {
        return format!("{value}").replace("inf", "Infinity");
    }
    let text = format!("{value:E}");
    match text.split_once('E') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        _ => text,
    }
}
