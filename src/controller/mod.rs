//! The controller: one `Machine` over the metadata log, which decides every change of topics,
//! configs, brokers, producer ids and feature levels.
//! Lives here: Kafka's rules for those changes with Kafka's messages, replica placement, the
//! records that carry a change, what a fresh cluster starts with, the in-process [`Handle`].
//! May not live here: request and response types of the wire, Kafka error codes (`broker::border`
//! maps [`Refusal`]), which config values are right (`config`, through [`ConfigRules`]), sockets,
//! the clock.
//! Invariant: each item of a request is judged alone; a refused item leaves no record behind.

mod alter_configs;
mod assign_directories;
mod auto_create;
mod bootstrap;
mod brokers;
mod create_partitions;
mod create_topics;
mod delete_topics;
mod election;
mod error;
mod fail_directories;
mod handle;
mod machine;
mod names;
mod placement;
mod producer_ids;
mod request;
mod rules;
#[cfg(test)]
mod tests;
mod update_features;
mod world;

pub use bootstrap::{
    FEATURES, Feature, GROUP_FEATURE, Levels, METADATA_FEATURE, batch_of, bootstrap, fresh_levels,
};
pub use error::{
    AssignmentFault, BrokerFault, ConfigFault, FeatureFault, LevelFault, NameFault,
    PartitionsFault, PlacementFault, Refusal, RequestFault, TooLarge,
};
pub use handle::{Ask, Handle, runtime};
pub use machine::{Controller, Soft};
pub use names::check as check_topic_name;
pub use producer_ids::{ProducerIds, ProducerIdsError};
pub use request::*;
pub use rules::KafkaRules;
pub use world::{ConfigRules, Proposed, World};
