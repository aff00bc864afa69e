//! The configuration: every key of Kafka 4.4 and Ottla's own, declared once in tables.
//! Lives here: the tables ([`TopicConfig`], the families of [`BrokerConfig`]), the sources of
//! static values, Kafka's rules and messages for values, what DescribeConfigs says.
//! May not live here: I/O (a file's text comes as an argument), defaults or bounds said a second
//! time, what a value does.

mod broker;
pub mod dynamic;
mod error;
mod key;
mod known;
mod listeners;
mod source;
mod table;
pub mod topic;
mod value;

pub use broker::{
    BrokerConfig, GroupKeys, LogKeys, NetworkKeys, NodeKeys, OttlaKeys, TopicKeys, honoured_keys,
};
pub use error::ConfigError;
pub use key::{Dynamic, Fallback, Honour, Key, Kind, Parsed, Valid};
pub use known::broker_key;
pub use listeners::{EndPoint, Listeners, SecurityProtocol};
pub use source::{Origin, Statics};
pub use topic::TopicConfig;
pub use value::{CleanupPolicy, CompressionType, TimestampType};
