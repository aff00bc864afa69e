//! Groups and their committed offsets.

use crate::config::table::config_keys;

config_keys! {
    /// The classic group protocol and `__consumer_offsets`.
    GroupKeys;

    /// How long the first member of an empty group waits for others, in milliseconds.
    initial_rebalance_delay_ms: i32 = "3000", Any;
        key "group.initial.rebalance.delay.ms", dynamic ReadOnly;
    /// Shortest session timeout a member may ask for, in milliseconds.
    min_session_timeout_ms: i32 = "6000", Any;
        key "group.min.session.timeout.ms", dynamic ReadOnly;
    /// Longest session timeout a member may ask for, in milliseconds.
    max_session_timeout_ms: i32 = "1800000", Any;
        key "group.max.session.timeout.ms", dynamic ReadOnly;
    /// Most members of a group.
    max_size: i32 = "2147483647", AtLeast(1);
        key "group.max.size", dynamic ReadOnly;
    /// Largest metadata string of a committed offset, in bytes.
    offset_metadata_max_bytes: i32 = "4096", Any;
        key "offset.metadata.max.bytes", dynamic ReadOnly;
    /// How often expired offsets are looked for, in milliseconds.
    offsets_retention_check_interval_ms: i64 = "600000", AtLeast(1);
        key "offsets.retention.check.interval.ms", dynamic ReadOnly;
    /// How long offsets are kept after their group is empty or no longer reads the topic, in
    /// minutes.
    offsets_retention_minutes: i32 = "10080", AtLeast(1);
        key "offsets.retention.minutes", dynamic ReadOnly;
    /// Partitions of the offsets topic; not to be changed once it exists.
    offsets_topic_num_partitions: i32 = "50", AtLeast(1);
        key "offsets.topic.num.partitions", dynamic ReadOnly;
    /// Replicas of the offsets topic.
    offsets_topic_replication_factor: i16 = "3", AtLeast(1);
        key "offsets.topic.replication.factor", dynamic ReadOnly;
    /// Segment size of the offsets topic in bytes.
    offsets_topic_segment_bytes: i32 = "104857600", AtLeast(1);
        key "offsets.topic.segment.bytes", dynamic ReadOnly;
    /// Compression of the offsets topic's batches: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
    offsets_topic_compression_codec: i32 = "0", Any;
        key "offsets.topic.compression.codec", dynamic ReadOnly;
}
