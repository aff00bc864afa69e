//! The log cleaner, which compacts logs; how far and when is said by topic keys.

use crate::config::table::config_keys;

config_keys! {
    /// Memory, speed and threads of the log cleaner.
    CleanerKeys;

    /// Whether compacted topics are compacted at all.
    enable: bool = "true", Any;
        key "log.cleaner.enable", dynamic ReadOnly;
    /// How many logs are cleaned at once.
    threads: i32 = "1", AtLeast(0);
        key "log.cleaner.threads", dynamic ClusterWide;
    /// Memory of all cleaners for the keys of the part that is being cleaned, in bytes.
    dedupe_buffer_size: i64 = "134217728", Any;
        key "log.cleaner.dedupe.buffer.size", dynamic ClusterWide;
    /// How full the memory for keys may get, as a part of 1.
    io_buffer_load_factor: f64 = "0.9", Any;
        key "log.cleaner.io.buffer.load.factor", dynamic ClusterWide;
    /// Memory of all cleaners for what they read and write, in bytes.
    io_buffer_size: i32 = "524288", AtLeast(0);
        key "log.cleaner.io.buffer.size", dynamic ClusterWide;
    /// What all cleaners together may read and write, in bytes per second.
    io_max_bytes_per_second: f64 = "1.7976931348623157E308", Any;
        key "log.cleaner.io.max.bytes.per.second", dynamic ClusterWide;
    /// How long a cleaner pauses when no log needs cleaning, in milliseconds.
    backoff_ms: i64 = "15000", AtLeast(0);
        key "log.cleaner.backoff.ms", dynamic ClusterWide;
}
