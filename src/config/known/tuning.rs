//! Keys that tune what Ottla does not have: thread pools, Java metrics, purgatories, the
//! segments of Kafka's own metadata log.

use super::other_keys;

other_keys! {
    /// Accepted, without effect.
    TUNING, NoEffect;

    "background.threads": Int = "10", AtLeast(1), ClusterWide;
    "controller.performance.always.log.threshold.ms": Long = "2000", AtLeast(0), ReadOnly, internal;
    "controller.performance.sample.period.ms": Long = "60000", AtLeast(100), ReadOnly, internal;
    "controller.quorum.append.linger.ms": Int = "25", AtLeast(0), ReadOnly;
    "delete.records.purgatory.purge.interval.requests": Int = "1", Any, ReadOnly;
    "early.start.listeners": List = null, Any, ReadOnly;
    "fetch.purgatory.purge.interval.requests": Int = "1000", Any, ReadOnly;
    "group.coordinator.append.linger.ms": Int = "-1", AtLeast(-1), ReadOnly;
    "group.coordinator.background.threads": Int = "2", AtLeast(1), ReadOnly;
    "group.coordinator.cached.buffer.max.bytes": Int = "1048588", AtLeast(524288), ClusterWide;
    "group.coordinator.threads": Int = "4", AtLeast(1), ReadOnly;
    "internal.metadata.delete.delay.millis": Long = "60000", Any, ReadOnly, internal;
    "internal.metadata.log.segment.bytes": Int = null, Any, ReadOnly, internal;
    "internal.metadata.max.batch.size.in.bytes": Int = "8388608", Any, ReadOnly, internal;
    "kafka.metrics.polling.interval.secs": Int = "10", AtLeast(1), ReadOnly;
    "kafka.metrics.reporters": List = "", Any, ReadOnly;
    "metadata.log.segment.bytes": Int = "1073741824", AtLeast(8388608), ReadOnly;
    "metadata.log.segment.ms": Long = "604800000", Any, ReadOnly;
    "metadata.max.idle.interval.ms": Int = "500", AtLeast(0), ReadOnly;
    "metadata.max.retention.bytes": Long = "104857600", Any, ReadOnly;
    "metadata.max.retention.ms": Long = "604800000", Any, ReadOnly;
    "metric.reporters": List = "org.apache.kafka.common.metrics.JmxReporter", Any, ClusterWide;
    "metrics.num.samples": Int = "2", AtLeast(1), ReadOnly;
    "metrics.recording.level": String = "INFO", Any, ReadOnly;
    "metrics.sample.window.ms": Long = "30000", AtLeast(1), ReadOnly;
    "num.io.threads": Int = "8", AtLeast(1), ClusterWide;
    "num.network.threads": Int = "3", AtLeast(1), ClusterWide;
    "offsets.load.buffer.size": Int = "5242880", AtLeast(1), ReadOnly;
    "producer.purgatory.purge.interval.requests": Int = "1000", Any, ReadOnly;
    "queued.max.requests": Int = "500", AtLeast(1), ReadOnly;
    "security.providers": String = null, Any, ReadOnly;
    "server.max.startup.time.ms": Long = "9223372036854775807", AtLeast(0), ReadOnly, internal;
    "share.fetch.purgatory.purge.interval.requests": Int = "1000", Any, ReadOnly;
    "unstable.api.versions.enable": Boolean = "false", Any, ReadOnly, internal;
    "unstable.feature.versions.enable": Boolean = "false", Any, ReadOnly, internal;
}
