//! The configuration: every key of Kafka 4.4 and Ottla's own, declared once in tables.
//! Lives here: the tables ([`TopicConfig`], the families of [`BrokerConfig`]), the sources of
//! static values, Kafka's rules and messages for values, what DescribeConfigs says.
//! May not live here: I/O (a file's text comes as an argument), defaults or bounds said a second
//! time, what a value does.

use std::collections::BTreeMap;

mod broker;
mod describe;
mod duration;
mod dynamic;
mod error;
mod group;
mod key;
mod known;
mod listeners;
mod load;
mod properties;
mod rules;
mod source;
mod table;
#[cfg(test)]
mod tests;
pub mod topic;
mod value;

pub use broker::{
    BrokerConfig, CleanerKeys, GroupKeys, LogKeys, NetworkKeys, NodeKeys, OttlaKeys, TopicKeys,
    TxnKeys, honoured_keys,
};
pub use describe::{ConfigRow, ConfigSource, ConfigSynonym, describe_cluster_default};
pub use dynamic::Level;
pub use error::ConfigError;
pub use group::GroupSettings;
pub use key::{Dynamic, Fallback, Honour, Key, Kind, Parsed, Valid};
pub use known::{broker_key, broker_keys, nearest_broker_key};
pub use listeners::{EndPoint, Listeners, SecurityProtocol};
pub use load::{Notices, Sources, load, property_of_variable};
pub use source::{Origin, Statics};
pub use topic::TopicConfig;
pub use value::{CleanupPolicy, CompressionType, MigrationPolicy, TimestampType};

/// Config values by name, as the metadata image keeps them for one resource.
pub type Values = BTreeMap<String, String>;

/// Fuzz target: any text as the lines of `server.properties`.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn fuzz_properties(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let lines = text.lines().count().max(text.split('\r').count());
    assert!(properties::parse(&text).iter().all(|(line, _, _)| *line <= lines + 1));
}
