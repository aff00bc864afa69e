//! Topics and their replicas, as far as it is not a topic's own config.

use crate::config::table::config_keys;

config_keys! {
    /// How topics are made, and replicas kept.
    TopicKeys;

    /// Partitions of a topic that is created without a number.
    num_partitions: i32 = "1", AtLeast(1);
        key "num.partitions", dynamic ReadOnly;
    /// Replicas of a topic that is created without a number.
    default_replication_factor: i32 = "1", Any;
        key "default.replication.factor", dynamic ReadOnly;
    /// Whether asking for the metadata of a topic creates it.
    auto_create_topics_enable: bool = "true", Any;
        key "auto.create.topics.enable", dynamic ReadOnly;
    /// Whether topics can be deleted.
    delete_topic_enable: bool = "true", Any;
        key "delete.topic.enable", dynamic ReadOnly;
    /// How often high watermarks are written to disk, in milliseconds.
    replica_high_watermark_checkpoint_interval_ms: i64 = "5000", Any;
        key "replica.high.watermark.checkpoint.interval.ms", dynamic ReadOnly;
}
