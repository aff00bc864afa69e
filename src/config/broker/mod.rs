//! The configuration of the node: one family of keys per file, read together into
//! [`BrokerConfig`].

mod cleaner;
mod group;
mod log;
mod network;
mod node;
mod ottla;
mod topics;
mod txn;

use std::sync::Arc;

pub use cleaner::CleanerKeys;
pub use group::GroupKeys;
pub use log::LogKeys;
pub use network::NetworkKeys;
pub use node::NodeKeys;
pub use ottla::OttlaKeys;
pub use topics::TopicKeys;
pub use txn::TxnKeys;

use super::Values;
use super::dynamic::{self, Level};
use super::error::ConfigError;
use super::key::Key;
use super::listeners::Listeners;
use super::rules;
use super::source::Statics;
use super::table::Texts;
use super::topic::{self, TopicConfig};

/// Every value that this node runs by, dynamic ones included. Immutable: a change makes a new one.
#[derive(Debug, Clone, PartialEq)]
pub struct BrokerConfig {
    pub node: NodeKeys,
    pub network: NetworkKeys,
    pub log: LogKeys,
    pub cleaner: CleanerKeys,
    pub topics: TopicKeys,
    pub group: GroupKeys,
    pub txn: TxnKeys,
    pub ottla: OttlaKeys,
    /// What a topic without values of its own gets.
    pub topic_defaults: TopicConfig,
    /// The listeners, parsed and checked.
    pub listeners: Listeners,
    pub(in crate::config) layers: Layers,
}

/// The values of one broker by source, strongest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::config) struct Layers {
    pub own: Arc<Values>,
    pub cluster: Arc<Values>,
    pub statics: Arc<Statics>,
}

impl Texts for Layers {
    fn text(&self, name: &str) -> Option<&str> {
        let dynamic = self.own.get(name).or_else(|| self.cluster.get(name));
        dynamic.map(String::as_str).or_else(|| self.statics.text(name))
    }
}

impl Layers {
    fn is_written(&self, name: &str) -> bool {
        self.own.contains_key(name)
            || self.cluster.contains_key(name)
            || self.statics.is_written(name)
    }
}

/// Every honoured broker key.
pub fn honoured_keys() -> impl Iterator<Item = &'static Key> {
    let families = [
        NodeKeys::KEYS,
        NetworkKeys::KEYS,
        LogKeys::KEYS,
        CleanerKeys::KEYS,
        TopicKeys::KEYS,
        GroupKeys::KEYS,
        TxnKeys::KEYS,
        OttlaKeys::KEYS,
    ];
    families.into_iter().flatten().chain(topic::broker_keys())
}

impl BrokerConfig {
    /// Reads and checks static values; those that only Ottla has a default for must be in them
    /// (`load` sees to it).
    ///
    /// # Errors
    /// [`ConfigError`] for the first value that is wrong.
    pub fn from_statics(statics: Statics) -> Result<Self, ConfigError> {
        Self::from_layers(Layers { statics: Arc::new(statics), ..Layers::default() })
    }

    fn from_layers(layers: Layers) -> Result<Self, ConfigError> {
        let node = NodeKeys::read(&layers)?;
        let mut log = LogKeys::read(&layers)?;
        log.drop_repeated();
        let config = Self {
            listeners: Listeners::of(&node, layers.is_written("listener.security.protocol.map"))?,
            node,
            network: NetworkKeys::read(&layers)?,
            cleaner: CleanerKeys::read(&layers)?,
            topics: TopicKeys::read(&layers)?,
            group: GroupKeys::read(&layers)?,
            txn: TxnKeys::read(&layers)?,
            ottla: OttlaKeys::read(&layers)?,
            topic_defaults: TopicConfig::of_broker(&layers, &log)?,
            log,
            layers,
        };
        rules::check(&config, &|name| config.layers.is_written(name))?;
        Ok(config)
    }

    /// This configuration with dynamic values: `cluster` for all brokers, `own` for this one. A
    /// value that is wrong, or whose key may not change at run time, is left out and returned:
    /// it may come from a newer or an older version.
    pub fn with_dynamic(&self, cluster: &Values, own: &Values) -> (Self, Vec<ConfigError>) {
        let mut refused = Vec::new();
        let layers = Layers {
            statics: self.layers.statics.clone(),
            cluster: Arc::new(usable(cluster, Level::Cluster, &mut refused)),
            own: Arc::new(usable(own, Level::Broker, &mut refused)),
        };
        match Self::from_layers(layers) {
            Ok(config) => (config, refused),
            Err(error) => {
                // Each value is right alone, but not together with the others: what stood stays.
                refused.push(error);
                (self.clone(), refused)
            }
        }
    }

    /// What is set for a broker key.
    pub(in crate::config) fn text_of(&self, name: &str) -> Option<&str> {
        self.layers.text(name)
    }

    /// Whether someone, not Ottla, has set `name`.
    pub fn is_written(&self, name: &str) -> bool {
        self.layers.is_written(name)
    }

    /// Checks what AlterConfigs and IncrementalAlterConfigs would make of one level: `values` are
    /// all of that level after the change, those of the other level stay.
    ///
    /// # Errors
    /// [`ConfigError`] with Kafka's text; Kafka answers INVALID_REQUEST.
    pub fn check_dynamic(&self, level: Level, values: &Values) -> Result<(), ConfigError> {
        dynamic::check(level, values)?;
        let mut layers = self.layers.clone();
        match level {
            Level::Cluster => layers.cluster = Arc::new(values.clone()),
            Level::Broker => layers.own = Arc::new(values.clone()),
        }
        let after = Self::from_layers(layers).map_err(dynamic::requirement)?;
        rules::check_change(self, &after)
    }
}

impl Default for BrokerConfig {
    /// What Ottla is without any setting.
    fn default() -> Self {
        let mut statics = Statics::default();
        statics.fill_from_house();
        match Self::from_statics(statics) {
            Ok(config) => config,
            Err(error) => crate::common::broken_invariant(
                concat!(file!(), ":", line!()),
                "the defaults are a configuration",
                &error.to_string(),
            ),
        }
    }
}

/// The values that may be set at this level.
fn usable(values: &Values, level: Level, refused: &mut Vec<ConfigError>) -> Values {
    let mut usable = Values::new();
    for (name, value) in values {
        let one = Values::from([(name.clone(), value.clone())]);
        match dynamic::check(level, &one) {
            Ok(()) => usable.extend(one),
            Err(error) => refused.push(error),
        }
    }
    usable
}
