//! Where a static value comes from, and the layers of static values.

use std::collections::BTreeMap;
use std::fmt;

use super::table::Texts;

/// The place of a start-up value, as it is shown to who has to correct it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Ottla's own choice where nothing is set.
    House,
    File {
        path: String,
        line: usize,
    },
    Variable(String),
    /// A command-line argument, as written: `--set num.partitions=0`.
    Argument(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::House => f.write_str("Ottla's defaults"),
            Self::File { path, line } => write!(f, "{path}, line {line}"),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Argument(argument) => write!(f, "command line, {argument}"),
        }
    }
}

/// See [`Statics::fill_from_house`]. The replicas of the coordinators' topics are what one node can
/// hold.
const HOUSE: &[(&str, &str)] = &[
    ("node.id", "1"),
    ("process.roles", "broker,controller"),
    ("controller.listener.names", "CONTROLLER"),
    ("listeners", "PLAINTEXT://localhost:9092"),
    ("offsets.topic.replication.factor", "1"),
    ("transaction.state.log.replication.factor", "1"),
    ("transaction.state.log.min.isr", "1"),
];

/// Static values by key; a later layer's value stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statics {
    values: BTreeMap<String, (String, Origin)>,
}

impl Statics {
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>, origin: Origin) {
        self.values.insert(name.into(), (value.into(), origin));
    }

    pub fn set_if_absent(&mut self, name: &str, value: &str, origin: Origin) {
        if !self.has(name) {
            self.set(name, value, origin);
        }
    }

    /// What Ottla chooses where nothing is set: with these alone it is a broker on
    /// `localhost:9092`. They are shown as static values, as the image's own file is of Kafka.
    pub fn fill_from_house(&mut self) {
        self.share("node.id", "broker.id");
        for (name, value) in HOUSE {
            self.set_if_absent(name, value, Origin::House);
        }
        if !self.has("log.dirs") && !self.has("log.dir") {
            self.set("log.dirs", "data", Origin::House);
        }
        self.share("node.id", "broker.id");
    }

    /// Either of two names for the same thing stands for both.
    fn share(&mut self, one: &str, other: &str) {
        for (from, to) in [(one, other), (other, one)] {
            if let (Some(found), false) = (self.values.get(from).cloned(), self.has(to)) {
                self.values.insert(to.to_owned(), found);
            }
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Whether someone, not Ottla, has set `name`.
    pub fn is_written(&self, name: &str) -> bool {
        self.origin(name).is_some_and(|origin| *origin != Origin::House)
    }

    pub fn origin(&self, name: &str) -> Option<&Origin> {
        self.values.get(name).map(|(_, origin)| origin)
    }

    /// Name, value and origin, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &Origin)> {
        self.values.iter().map(|(name, (value, origin))| (name.as_str(), value.as_str(), origin))
    }
}

impl Texts for Statics {
    fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(|(value, _)| value.as_str())
    }
}
