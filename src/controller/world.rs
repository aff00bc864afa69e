//! What decisions depend on beside the metadata: this controller's own configuration.

use std::sync::Arc;
use std::time::Duration;

use super::error::Refusal;
use super::rules::KafkaRules;
use crate::common::BrokerId;
use crate::config::{BrokerConfig, ConfigRow};
use crate::metadata::{ConfigKind, ConfigResource, Configs, Image};

/// The controller's configuration as its decisions see it.
pub struct World {
    /// Of this node.
    pub node_id: BrokerId,
    /// `num.partitions`.
    pub num_partitions: i32,
    /// `default.replication.factor`.
    pub default_replication_factor: i32,
    /// `delete.topic.enable`.
    pub is_deletion_enabled: bool,
    /// `broker.session.timeout.ms`; `None`: the only broker lives in this process, so that
    /// its silence means nothing and it sends no heartbeats.
    pub session_timeout: Option<Duration>,
    pub rules: Arc<dyn ConfigRules>,
}

impl World {
    /// - `config`: as read at the start, without dynamic values, which come from the image.
    /// - `is_alone`: this node is the whole cluster, so that nobody sends heartbeats.
    pub fn new(config: &BrokerConfig, is_alone: bool) -> Self {
        let timeout = Duration::from_millis(config.node.broker_session_timeout_ms.max(0) as u64);
        Self {
            node_id: BrokerId(config.node.node_id),
            num_partitions: config.topics.num_partitions,
            default_replication_factor: config.topics.default_replication_factor,
            is_deletion_enabled: config.topics.delete_topic_enable,
            session_timeout: (!is_alone).then_some(timeout),
            rules: Arc::new(KafkaRules::new(config.clone())),
        }
    }
}

/// Which config keys and values are right, and what holds where nothing is set.
pub trait ConfigRules: Send + Sync + 'static {
    /// For a key of type LIST: the value that holds where the resource sets none (dynamic
    /// values of brokers aside, as Kafka does it); `None` when the key has another type or is
    /// unknown.
    fn list_default(&self, kind: ConfigKind, key: &str) -> Option<String>;

    /// Judges the settings that `resource` would have.
    ///
    /// # Errors
    /// The first rule broken, with Kafka's message and under Kafka's code: for a topic or a group
    /// [`ConfigFault::Value`](super::ConfigFault::Value), for a broker
    /// [`RequestFault::BrokerConfig`](super::RequestFault::BrokerConfig).
    fn check(&self, resource: &ConfigResource, proposed: &Proposed<'_>) -> Result<(), Refusal>;

    /// All configs of a topic with the settings `own`, ordered by name.
    fn describe_topic(&self, image: &Image, own: &Configs) -> Vec<ConfigRow>;

    /// What `min.insync.replicas` is for a topic with the settings `own`.
    fn min_insync_replicas(&self, image: &Image, own: Option<&Configs>) -> usize;

    /// What `unclean.leader.election.enable` is for a topic with the settings `own`.
    fn is_unclean_election_enabled(&self, image: &Image, own: Option<&Configs>) -> bool;
}

/// The settings that a resource would have after a change.
#[derive(Debug, Clone, Copy)]
pub struct Proposed<'a> {
    pub settings: &'a Configs,
    /// Keys that the request sets, in its order, deletions not counted.
    pub set: &'a [String],
    /// Keys that the request deletes, in its order.
    pub deleted: &'a [String],
    pub image: &'a Image,
}
