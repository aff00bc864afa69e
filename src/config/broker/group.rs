//! Groups and their committed offsets.

use crate::config::table::config_keys;
use crate::config::value::MigrationPolicy;

config_keys! {
    /// The classic and the consumer group protocol (KIP-848), and `__consumer_offsets`.
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
    /// Least time between two assignments of a consumer group, in milliseconds.
    consumer_assignment_interval_ms: i32 = "1000", AtLeast(0);
        key "group.consumer.assignment.interval.ms", dynamic ClusterWide;
    /// Protocols that are on, besides the features of the cluster.
    rebalance_protocols: Vec<String> =
        "classic,consumer,streams", SomeOf(&["consumer", "classic", "share", "streams"]);
        key "group.coordinator.rebalance.protocols", dynamic ReadOnly;
    /// Assignors that members may ask for, by name; the first is taken where none is asked for.
    consumer_assignors: Vec<String> = "uniform,range", Any;
        key "group.consumer.assignors", dynamic ReadOnly;
    /// How often members of a consumer group are told to send a heartbeat, in milliseconds.
    consumer_heartbeat_interval_ms: i32 = "5000", AtLeast(1);
        key "group.consumer.heartbeat.interval.ms", dynamic ReadOnly;
    /// Longest assignment interval that a group may set, in milliseconds.
    consumer_max_assignment_interval_ms: i32 = "15000", AtLeast(0);
        key "group.consumer.max.assignment.interval.ms", dynamic ReadOnly;
    /// Longest heartbeat interval that a group may set, in milliseconds.
    consumer_max_heartbeat_interval_ms: i32 = "15000", AtLeast(1);
        key "group.consumer.max.heartbeat.interval.ms", dynamic ReadOnly;
    /// Longest session timeout that a group may set, in milliseconds.
    consumer_max_session_timeout_ms: i32 = "60000", AtLeast(1);
        key "group.consumer.max.session.timeout.ms", dynamic ReadOnly;
    /// Most members of a consumer group.
    consumer_max_size: i32 = "2147483647", AtLeast(1);
        key "group.consumer.max.size", dynamic ReadOnly;
    /// Which groups change their protocol with their members: a classic one to consumer
    /// (`upgrade`), a consumer one to classic (`downgrade`), either or neither.
    consumer_migration_policy: MigrationPolicy =
        "bidirectional", OneOfAnyCase(MigrationPolicy::WORDS);
        key "group.consumer.migration.policy", dynamic ReadOnly;
    /// Shortest assignment interval that a group may set, in milliseconds.
    consumer_min_assignment_interval_ms: i32 = "0", AtLeast(0);
        key "group.consumer.min.assignment.interval.ms", dynamic ReadOnly;
    /// Shortest heartbeat interval that a group may set, in milliseconds.
    consumer_min_heartbeat_interval_ms: i32 = "5000", AtLeast(1);
        key "group.consumer.min.heartbeat.interval.ms", dynamic ReadOnly;
    /// Shortest session timeout that a group may set, in milliseconds.
    consumer_min_session_timeout_ms: i32 = "45000", AtLeast(1);
        key "group.consumer.min.session.timeout.ms", dynamic ReadOnly;
    /// How often subscribed patterns are matched with the topics again, in milliseconds.
    consumer_regex_refresh_interval_ms: i32 = "600000", AtLeast(10_000);
        key "group.consumer.regex.refresh.interval.ms", dynamic ReadOnly, internal;
    /// How long a member of a consumer group may be silent, in milliseconds.
    consumer_session_timeout_ms: i32 = "45000", AtLeast(1);
        key "group.consumer.session.timeout.ms", dynamic ReadOnly;
}
