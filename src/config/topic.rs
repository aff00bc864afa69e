//! The configuration of a topic: every topic key of Kafka 4.4, said once together with the broker
//! key that is its default.

use super::Values;
use super::broker::LogKeys;
use super::error::ConfigError;
use super::key::Key;
use super::table::{Texts, row, typed};
use super::value::{CleanupPolicy, CompressionType, TimestampType};

/// `same "k"`: the broker key `k` has the type, bounds, default and doc of the topic key.
/// `broker "k" by f`: `k` is declared in [`LogKeys`] with a unit or default of its own, and `f`
/// makes the topic's default of it and of its kin.
macro_rules! topic_keys {
    ($(
        $(#[doc = $doc:literal])+
        $field:ident: $type:ty = $default:tt, $valid:expr;
            key $name:literal
                $(, same $same:literal)? $(, broker $first:literal by $by:expr)?
                $(, flag $internal:ident)?;
    )+) => {
        /// What a topic is kept by: its own values, else the broker's, else Kafka's defaults.
        #[derive(Debug, Clone, PartialEq)]
        pub struct TopicConfig {
            $($(#[doc = $doc])+ pub $field: $type,)+
        }

        impl TopicConfig {
            /// Every topic key of Kafka 4.4.
            pub const KEYS: &'static [Key] = &[
                $(row!(
                    $type, $name, $default, $valid, ReadOnly,
                    topic_keys!(@first $($same)? $($first)?), [$($internal)?], $($doc),+
                ),)+
            ];

            /// The broker keys that are defaults of topic keys.
            pub const BROKER_KEYS: &'static [&'static [Key]] = &[
                $(topic_keys!(@broker [$type, $default, $valid, $($doc),+] $($same)?),)+
            ];

            /// What a topic without values of its own gets on a broker with these keys.
            pub(super) fn of_broker(texts: &dyn Texts, log: &LogKeys) -> Result<Self, ConfigError> {
                Ok(Self {
                    $($field: topic_keys!(
                        @default texts, log,
                        [$type, topic_keys!(@name $name $($same)?), $default, $valid]
                        $($by)?
                    ),)+
                })
            }

            /// The value of a key that is made of broker keys with other units.
            pub(super) fn derived(&self, name: &str) -> Option<i64> {
                $($(
                    if name == $name {
                        let _: fn(&LogKeys) -> i64 = $by;
                        return Some(self.$field);
                    }
                )?)+
                None
            }

            /// Sets one value; the topic key must be known.
            fn set(&mut self, name: &str, one: &dyn Texts) -> Result<(), ConfigError> {
                match name {
                    $($name => {
                        const KEY: Key = row!(
                            $type, $name, $default, $valid, ReadOnly, None, [], $($doc),+
                        );
                        self.$field = typed(&KEY, one)?;
                    })+
                    _ => return Err(unknown(name)),
                }
                Ok(())
            }
        }
    };
    (@broker [$($row:tt)+]) => { &[] };
    (@broker [$type:ty, $default:tt, $valid:expr, $($doc:literal),+] $same:literal) => {
        &[row!($type, $same, $default, $valid, ClusterWide, None, [], $($doc),+)]
    };
    (@first) => { None };
    (@first $name:literal) => { Some($name) };
    (@name $name:literal) => { $name };
    (@name $name:literal $same:literal) => { $same };
    (@default $texts:ident, $log:ident, [$type:ty, $name:expr, $default:tt, $valid:expr]) => {{
        const KEY: Key = row!($type, $name, $default, $valid, ReadOnly, None, [], "");
        typed(&KEY, $texts)?
    }};
    (@default $texts:ident, $log:ident, [$($row:tt)+] $by:expr) => { $by($log) };
}

topic_keys! {
    /// What happens to old segments: `delete` drops them by age and size, `compact` keeps the
    /// newest record of each key, both do both, an empty list keeps everything.
    cleanup_policy: CleanupPolicy = "delete", ListOf(CleanupPolicy::WORDS);
        key "cleanup.policy", same "log.cleanup.policy";
    /// Level of gzip where `compression.type` is gzip; -1 leaves it to the library.
    compression_gzip_level: i32 = "-1", GzipLevel;
        key "compression.gzip.level", same "compression.gzip.level";
    /// Level of LZ4 where `compression.type` is lz4.
    compression_lz4_level: i32 = "9", Between(1, 17);
        key "compression.lz4.level", same "compression.lz4.level";
    /// What batches are stored with; `producer` keeps what the producer chose.
    compression_type: CompressionType = "producer", OneOf(CompressionType::WORDS);
        key "compression.type", same "compression.type";
    /// Level of zstd where `compression.type` is zstd.
    compression_zstd_level: i32 = "3", Between(-131_072, 22);
        key "compression.zstd.level", same "compression.zstd.level";
    /// How long a compacted topic keeps the marker of a deleted key, in milliseconds: the time a
    /// reader from the beginning has to finish.
    delete_retention_ms: i64 = "86400000", AtLeast(0);
        key "delete.retention.ms", same "log.cleaner.delete.retention.ms";
    /// Whether share groups may write records to this topic that they could not deliver.
    errors_deadletterqueue_group_enable: bool = "false", Any;
        key "errors.deadletterqueue.group.enable";
    /// How long a deleted segment's files stay on disk, in milliseconds.
    file_delete_delay_ms: i64 = "60000", AtLeast(0);
        key "file.delete.delay.ms", same "log.segment.delete.delay.ms";
    /// The log is synced to disk after this many records; 1: before each acknowledgement.
    flush_messages: i64 = "9223372036854775807", AtLeast(1);
        key "flush.messages", same "log.flush.interval.messages";
    /// The log is synced to disk when its oldest unsynced record is this old, in milliseconds.
    flush_ms: i64 = "9223372036854775807", AtLeast(0);
        key "flush.ms", broker "log.flush.interval.ms" by LogKeys::topic_flush_ms;
    /// Replicas whose followers copy under the replication quota: `partition:broker,…`, or `*`.
    follower_replication_throttled_replicas: Vec<String> = "", ThrottledReplicas;
        key "follower.replication.throttled.replicas";
    /// An index entry is written at most every so many bytes of log.
    index_interval_bytes: i32 = "4096", AtLeast(0);
        key "index.interval.bytes", same "log.index.interval.bytes";
    /// Segment size below the least that `segment.bytes` allows, for tests.
    internal_segment_bytes: Option<i32> = null, Any;
        key "internal.segment.bytes", flag internal;
    /// Replicas whose leaders send under the replication quota: `partition:broker,…`, or `*`.
    leader_replication_throttled_replicas: Vec<String> = "", ThrottledReplicas;
        key "leader.replication.throttled.replicas";
    /// Bytes of a partition kept on local disk when older segments are in remote storage; -2: as
    /// `retention.bytes`.
    local_retention_bytes: i64 = "-2", AtLeast(-2);
        key "local.retention.bytes", same "log.local.retention.bytes";
    /// Milliseconds that segments stay on local disk when they are in remote storage; -2: as
    /// `retention.ms`.
    local_retention_ms: i64 = "-2", AtLeast(-2);
        key "local.retention.ms", same "log.local.retention.ms";
    /// A record of a compacted topic is compacted at the latest after so many milliseconds.
    max_compaction_lag_ms: i64 = "9223372036854775807", AtLeast(1);
        key "max.compaction.lag.ms", same "log.cleaner.max.compaction.lag.ms";
    /// Largest single record after decompression that is accepted, in bytes.
    max_decompressed_message_bytes: i32 = "2147483639", Between(1, 2_147_483_639);
        key "max.decompressed.message.bytes", same "max.decompressed.message.bytes";
    /// Largest record batch a producer may send, in bytes after compression.
    max_message_bytes: i32 = "1048588", AtLeast(0);
        key "max.message.bytes", same "message.max.bytes";
    /// How far a record's timestamp may lie after the broker's clock, in milliseconds.
    message_timestamp_after_max_ms: i64 = "3600000", AtLeast(0);
        key "message.timestamp.after.max.ms", same "log.message.timestamp.after.max.ms";
    /// How far a record's timestamp may lie before the broker's clock, in milliseconds.
    message_timestamp_before_max_ms: i64 = "9223372036854775807", AtLeast(0);
        key "message.timestamp.before.max.ms", same "log.message.timestamp.before.max.ms";
    /// Whose clock stamps a record: the producer's or, at the append, the broker's.
    message_timestamp_type: TimestampType = "CreateTime", OneOf(TimestampType::WORDS);
        key "message.timestamp.type", same "log.message.timestamp.type";
    /// Compaction starts when this part of a log is not compacted yet.
    min_cleanable_dirty_ratio: f64 = "0.5", BetweenDoubles(0.0, 1.0);
        key "min.cleanable.dirty.ratio", same "log.cleaner.min.cleanable.ratio";
    /// A record of a compacted topic stays as it is at least so many milliseconds.
    min_compaction_lag_ms: i64 = "0", AtLeast(0);
        key "min.compaction.lag.ms", same "log.cleaner.min.compaction.lag.ms";
    /// With `acks=all` a write needs at least so many in-sync replicas, the leader included.
    min_insync_replicas: i32 = "1", AtLeast(1);
        key "min.insync.replicas", same "min.insync.replicas";
    /// Whether a new segment's file gets its full size at once.
    preallocate: bool = "false", Any;
        key "preallocate", same "log.preallocate";
    /// Bytes of newer local data after which a segment may be copied to remote storage; 0: at
    /// once, -1: derived from the local retention.
    remote_copy_lag_bytes: i64 = "-1", AtLeast(-1);
        key "remote.copy.lag.bytes", same "log.remote.copy.lag.bytes";
    /// Age in milliseconds after which a segment may be copied to remote storage; 0: at once, -1:
    /// derived from the local retention.
    remote_copy_lag_ms: i64 = "0", AtLeast(-1);
        key "remote.copy.lag.ms", same "log.remote.copy.lag.ms";
    /// Whether copying to remote storage is stopped.
    remote_log_copy_disable: bool = "false", Any;
        key "remote.log.copy.disable";
    /// Whether remote data is deleted when remote storage is switched off for the topic.
    remote_log_delete_on_disable: bool = "false", Any;
        key "remote.log.delete.on.disable";
    /// Whether old segments go to remote storage.
    remote_storage_enable: bool = "false", Any;
        key "remote.storage.enable";
    /// Old segments are deleted when a partition is larger than so many bytes; -1: never.
    retention_bytes: i64 = "-1", Any;
        key "retention.bytes", same "log.retention.bytes";
    /// Segments are deleted when their newest record is so many milliseconds old; -1: never.
    retention_ms: i64 = "604800000", AtLeast(-1);
        key "retention.ms", broker "log.retention.ms" by LogKeys::topic_retention_ms;
    /// A segment is rolled when it would grow beyond so many bytes.
    segment_bytes: i32 = "1073741824", AtLeast(1 << 20);
        key "segment.bytes", same "log.segment.bytes";
    /// Largest size of a segment's index files, in bytes.
    segment_index_bytes: i32 = "10485760", AtLeast(4);
        key "segment.index.bytes", same "log.index.size.max.bytes";
    /// Random part by which `segment.ms` is shortened, so that segments do not all roll at once.
    segment_jitter_ms: i64 = "0", AtLeast(0);
        key "segment.jitter.ms", broker "log.roll.jitter.ms" by LogKeys::topic_segment_jitter_ms;
    /// A segment is rolled when its first record is so many milliseconds old.
    segment_ms: i64 = "604800000", AtLeast(1);
        key "segment.ms", broker "log.roll.ms" by LogKeys::topic_segment_ms;
    /// Whether a replica that is not in sync may lead when no other is left, losing records.
    unclean_leader_election_enable: bool = "false", Any;
        key "unclean.leader.election.enable", same "unclean.leader.election.enable";
}

/// The row of a topic key.
pub fn key(name: &str) -> Option<&'static Key> {
    TopicConfig::KEYS.iter().find(|key| key.name == name)
}

/// Checks one value as CreateTopics and AlterConfigs do.
///
/// # Errors
/// [`ConfigError`] with Kafka's text.
pub fn validate(name: &str, value: &str) -> Result<(), ConfigError> {
    key(name).ok_or_else(|| unknown(name))?.parse(value).map(|_| ())
}

fn unknown(name: &str) -> ConfigError {
    ConfigError::UnknownName { resource: "topic", name: name.to_owned() }
}

impl Default for TopicConfig {
    /// Kafka's defaults.
    fn default() -> Self {
        super::BrokerConfig::default().topic_defaults
    }
}

struct One<'a>(&'a str);

impl Texts for One<'_> {
    fn text(&self, _: &str) -> Option<&str> {
        Some(self.0)
    }
}

impl TopicConfig {
    /// This broker default with a topic's own values over it.
    ///
    /// # Errors
    /// [`ConfigError`] for an unknown name, a wrong value, or values that exclude each other.
    pub fn with<'a>(
        &self,
        overrides: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ConfigError> {
        let mut config = self.clone();
        for (name, text) in overrides {
            config.set(name, &One(text))?;
        }
        config.check()?;
        Ok(config)
    }

    /// [`TopicConfig::with`] for a stored map.
    ///
    /// # Errors
    /// See there.
    pub fn resolve(broker_default: &Self, overrides: &Values) -> Result<Self, ConfigError> {
        broker_default.with(overrides.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }

    /// The size at which a segment rolls.
    pub fn segment_size_bytes(&self) -> i32 {
        self.internal_segment_bytes.unwrap_or(self.segment_bytes)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let (least, most) = (self.min_compaction_lag_ms, self.max_compaction_lag_ms);
        if least > most {
            return Err(ConfigError::rule(format!(
                "conflict topic config setting min.compaction.lag.ms ({least}) > \
                 max.compaction.lag.ms ({most})"
            )));
        }
        if self.remote_storage_enable {
            return Err(ConfigError::rule(
                "Tiered Storage functionality is disabled in the broker. Topic cannot be \
                 configured with remote log storage.",
            ));
        }
        Ok(())
    }
}

/// Broker keys that come from topic keys, in the table's order.
pub(super) fn broker_keys() -> impl Iterator<Item = &'static Key> {
    TopicConfig::BROKER_KEYS.iter().flat_map(|keys| keys.iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_the_table_s_and_overrides_stand_over_them() {
        let default = TopicConfig::default();
        assert_eq!((default.retention_ms, default.segment_ms), (604_800_000, 604_800_000));
        assert_eq!((default.flush_ms, default.segment_jitter_ms), (i64::MAX, 0));
        let own = default.with([("retention.ms", "-1"), ("cleanup.policy", "compact")]).unwrap();
        assert_eq!(own.retention_ms, -1);
        assert_eq!(own.cleanup_policy, CleanupPolicy { delete: false, compact: true });
        assert_eq!(own.segment_bytes, default.segment_bytes);
    }
}
