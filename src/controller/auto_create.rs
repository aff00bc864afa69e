//! Topics that are made because somebody asked for them.

use super::request::NewTopic;
use crate::common::TopicName;
use crate::config::BrokerConfig;

/// Where groups and their offsets are kept.
const CONSUMER_OFFSETS: &str = "__consumer_offsets";

impl NewTopic {
    /// The topic `name` as the broker makes it by itself: one of Kafka's own with its settings,
    /// any other with the broker's defaults. Whoever comes second gets
    /// [`Refusal::TopicExists`](super::Refusal::TopicExists), which then means success.
    pub fn auto(name: impl Into<TopicName>, config: &BrokerConfig) -> Self {
        let name = name.into();
        if *name != *CONSUMER_OFFSETS {
            return Self::named(name);
        }
        let group = &config.group;
        let own = |key: &str, value: &str| (key.to_owned(), Some(value.to_owned()));
        Self {
            partitions: group.offsets_topic_num_partitions,
            replication_factor: group.offsets_topic_replication_factor,
            configs: vec![
                own("compression.type", "producer"),
                own("cleanup.policy", "compact"),
                own("segment.bytes", &group.offsets_topic_segment_bytes.to_string()),
            ],
            ..Self::named(name)
        }
    }
}
