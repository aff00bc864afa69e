//! Keys of what Ottla does not do yet: two-phase commit, the newer groups, quotas, tiered storage,
//! several nodes.

use super::other_keys;

other_keys! {
    /// Two-phase commit, newer groups, quotas, telemetry.
    LATER, NotYet;

    "alter.log.dirs.replication.quota.window.num": Int = "11", AtLeast(1), ReadOnly;
    "alter.log.dirs.replication.quota.window.size.seconds": Int = "1", AtLeast(1), ReadOnly;
    "client.quota.callback.class": Class =
        null, Any, ReadOnly, refused "Ottla loads no Java classes";
    "controller.quota.window.num": Int = "11", AtLeast(1), ReadOnly;
    "controller.quota.window.size.seconds": Int = "1", AtLeast(1), ReadOnly;
    "errors.deadletterqueue.auto.create.topics.enable": Boolean = "false", Any, ClusterWide;
    "errors.deadletterqueue.topic.name.prefix": String = "dlq.", Any, ClusterWide;
    "group.consumer.assignor.offload.enable": Boolean = "true", Any, ClusterWide, internal;
    "group.share.assignment.interval.ms": Int = "1000", AtLeast(0), ClusterWide;
    "group.share.assignor.offload.enable": Boolean = "true", Any, ClusterWide, internal;
    "group.share.assignors": List = "simple", Any, ReadOnly;
    "group.share.delivery.count.limit": Int = "5", Between(2, 10), ReadOnly;
    "group.share.dlq.manager.class.name": String =
        "org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager", Any, ReadOnly, internal;
    "group.share.heartbeat.interval.ms": Int = "5000", AtLeast(1), ReadOnly;
    "group.share.initialize.retry.interval.ms": Int = "30000", AtLeast(1), ReadOnly, internal;
    "group.share.max.assignment.interval.ms": Int = "15000", AtLeast(0), ReadOnly;
    "group.share.max.delivery.count.limit": Int = "10", Between(5, 25), ReadOnly;
    "group.share.max.heartbeat.interval.ms": Int = "15000", AtLeast(1), ReadOnly;
    "group.share.max.partition.max.record.locks": Int = "4000", Between(2000, 10000), ReadOnly;
    "group.share.max.record.lock.duration.ms": Int = "60000", Between(30000, 3600000), ReadOnly;
    "group.share.max.session.timeout.ms": Int = "60000", AtLeast(1), ReadOnly;
    "group.share.max.share.sessions": Int = "2000", AtLeast(1), ReadOnly;
    "group.share.max.size": Int = "200", Between(1, 1000), ReadOnly;
    "group.share.min.assignment.interval.ms": Int = "0", AtLeast(0), ReadOnly;
    "group.share.min.delivery.count.limit": Int = "2", Between(2, 5), ReadOnly;
    "group.share.min.heartbeat.interval.ms": Int = "5000", AtLeast(1), ReadOnly;
    "group.share.min.partition.max.record.locks": Int = "100", Between(100, 2000), ReadOnly;
    "group.share.min.record.lock.duration.ms": Int = "15000", Between(1000, 30000), ReadOnly;
    "group.share.min.session.timeout.ms": Int = "45000", AtLeast(1), ReadOnly;
    "group.share.partition.max.record.locks": Int = "2000", Between(100, 10000), ReadOnly;
    "group.share.persister.class.name": String =
        "org.apache.kafka.server.share.persister.DefaultStatePersister", Any, ReadOnly, internal;
    "group.share.record.lock.duration.ms": Int = "30000", Between(1000, 3600000), ReadOnly;
    "group.share.session.timeout.ms": Int = "45000", AtLeast(1), ReadOnly;
    "group.streams.acceptable.recovery.lag": Long = "10000", AtLeast(0), ReadOnly, internal;
    "group.streams.assignment.interval.ms": Int = "1000", AtLeast(0), ClusterWide;
    "group.streams.assignor.offload.enable": Boolean = "true", Any, ClusterWide, internal;
    "group.streams.assignors": List = "sticky", Any, ReadOnly;
    "group.streams.heartbeat.interval.ms": Int = "5000", AtLeast(1), ReadOnly;
    "group.streams.initial.rebalance.delay.ms": Int = "3000", AtLeast(0), ReadOnly;
    "group.streams.max.assignment.interval.ms": Int = "15000", AtLeast(0), ReadOnly;
    "group.streams.max.heartbeat.interval.ms": Int = "15000", AtLeast(1), ReadOnly;
    "group.streams.max.session.timeout.ms": Int = "60000", AtLeast(1), ReadOnly;
    "group.streams.max.size": Int = "2147483647", AtLeast(1), ReadOnly;
    "group.streams.max.standby.replicas": Int = "2", AtLeast(0), ReadOnly;
    "group.streams.max.warmup.replicas": Int = "20", AtLeast(0), ReadOnly, internal;
    "group.streams.min.assignment.interval.ms": Int = "0", AtLeast(0), ReadOnly;
    "group.streams.min.heartbeat.interval.ms": Int = "5000", AtLeast(1), ReadOnly;
    "group.streams.min.session.timeout.ms": Int = "45000", AtLeast(1), ReadOnly;
    "group.streams.min.task.offset.interval.ms": Int = "15000", AtLeast(1), ReadOnly, internal;
    "group.streams.num.standby.replicas": Int = "0", AtLeast(0), ReadOnly;
    "group.streams.num.warmup.replicas": Int = "2", AtLeast(0), ReadOnly, internal;
    "group.streams.rack.aware.assignment.tags": List = "", Any, ReadOnly;
    "group.streams.session.timeout.ms": Int = "45000", AtLeast(1), ReadOnly;
    "group.streams.task.offset.interval.ms": Int = "60000", AtLeast(1), ReadOnly, internal;
    "group.streams.topology.description.plugin.class": Class = null, Any, ReadOnly;
    "quota.window.num": Int = "11", AtLeast(1), ReadOnly;
    "quota.window.size.seconds": Int = "1", AtLeast(1), ReadOnly;
    "replication.quota.window.num": Int = "11", AtLeast(1), ReadOnly;
    "replication.quota.window.size.seconds": Int = "1", AtLeast(1), ReadOnly;
    "share.coordinator.append.linger.ms": Int = "-1", AtLeast(-1), ReadOnly;
    "share.coordinator.cached.buffer.max.bytes": Int = "1048588", AtLeast(524288), ClusterWide;
    "share.coordinator.cold.partition.snapshot.interval.ms": Int =
        "300000", AtLeast(1), ReadOnly, internal;
    "share.coordinator.load.buffer.size": Int = "5242880", AtLeast(1), ReadOnly;
    "share.coordinator.snapshot.update.records.per.snapshot": Int =
        "500", Between(0, 500), ReadOnly;
    "share.coordinator.state.topic.compression.codec": Int = "0", Any, ReadOnly;
    "share.coordinator.state.topic.min.isr": Short = "2", AtLeast(1), ReadOnly;
    "share.coordinator.state.topic.num.partitions": Int = "50", AtLeast(1), ReadOnly;
    "share.coordinator.state.topic.prune.interval.ms": Int =
        "300000", AtLeast(1), ReadOnly, internal;
    "share.coordinator.state.topic.replication.factor": Short = "3", AtLeast(1), ReadOnly;
    "share.coordinator.state.topic.segment.bytes": Int = "104857600", AtLeast(1), ReadOnly;
    "share.coordinator.threads": Int = "1", AtLeast(1), ReadOnly;
    "share.coordinator.write.timeout.ms": Int = "5000", AtLeast(1), ReadOnly;
    "telemetry.max.bytes": Int = "1048576", AtLeast(1), ReadOnly;
    "transaction.state.log.load.buffer.size": Int = "5242880", AtLeast(1), ReadOnly;
    "transaction.two.phase.commit.enable": Boolean = "false", Any, ReadOnly;
}

other_keys! {
    /// Tiered storage.
    REMOTE, NotYet;

    "follower.fetch.last.tiered.offset.enable": Boolean = "false", Any, ClusterWide;
    "remote.fetch.max.wait.ms": Int = "500", AtLeast(1), ClusterWide;
    "remote.list.offsets.request.timeout.ms": Long = "30000", AtLeast(1), ClusterWide;
    "remote.log.index.file.cache.total.size.bytes": Long = "1073741824", AtLeast(1), ClusterWide;
    "remote.log.index.file.cache.ttl.ms": Long = "900000", AtLeast(-1), ReadOnly, internal;
    "remote.log.manager.copier.thread.pool.size": Int = "10", AtLeast(1), ClusterWide;
    "remote.log.manager.copy.max.bytes.per.second": Long =
        "9223372036854775807", AtLeast(1), ClusterWide;
    "remote.log.manager.copy.quota.window.num": Int = "11", AtLeast(1), ReadOnly;
    "remote.log.manager.copy.quota.window.size.seconds": Int = "1", AtLeast(1), ReadOnly;
    "remote.log.manager.expiration.thread.pool.size": Int = "10", AtLeast(1), ClusterWide;
    "remote.log.manager.fetch.max.bytes.per.second": Long =
        "9223372036854775807", AtLeast(1), ClusterWide;
    "remote.log.manager.fetch.quota.window.num": Int = "11", AtLeast(1), ReadOnly;
    "remote.log.manager.fetch.quota.window.size.seconds": Int = "1", AtLeast(1), ReadOnly;
    "remote.log.manager.follower.thread.pool.size": Int = "2", AtLeast(1), ClusterWide;
    "remote.log.manager.task.interval.ms": Long = "30000", AtLeast(1), ReadOnly;
    "remote.log.manager.task.retry.backoff.max.ms": Long = "30000", AtLeast(1), ReadOnly, internal;
    "remote.log.manager.task.retry.backoff.ms": Long = "500", AtLeast(1), ReadOnly, internal;
    "remote.log.manager.task.retry.jitter": Double =
        "0.2", BetweenDoubles(0.0, 0.5), ReadOnly, internal;
    "remote.log.manager.thread.pool.size": Int = "2", AtLeast(1), ReadOnly;
    "remote.log.metadata.custom.metadata.max.bytes": Int = "128", AtLeast(0), ReadOnly;
    "remote.log.metadata.manager.class.name": String =
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager", NotEmpty, ReadOnly;
    "remote.log.metadata.manager.class.path": String = null, Any, ReadOnly;
    "remote.log.metadata.manager.impl.prefix": String = "rlmm.config.", NotEmpty, ReadOnly;
    "remote.log.metadata.manager.listener.name": String = null, NotEmpty, ReadOnly;
    "remote.log.reader.max.pending.tasks": Int = "100", AtLeast(1), ReadOnly;
    "remote.log.reader.threads": Int = "10", AtLeast(1), ClusterWide;
    "remote.log.storage.manager.class.name": String = null, NotEmpty, ReadOnly;
    "remote.log.storage.manager.class.path": String = null, Any, ReadOnly;
    "remote.log.storage.manager.impl.prefix": String = "rsm.config.", NotEmpty, ReadOnly;
    "remote.log.storage.system.enable": Boolean = "false", Any, ReadOnly;
}

other_keys! {
    /// Several nodes, and what is left.
    OTHER, NotYet;

    "alter.config.policy.class.name": Class =
        null, Any, ReadOnly, refused "Ottla loads no Java classes, and configs would be changed against the policy";
    "auto.leader.rebalance.enable": Boolean = "true", Any, ReadOnly;
    "broker.heartbeat.interval.ms": Int = "2000", Any, ReadOnly;
    "config.providers": List = "", Any, ClusterWide;
    "controlled.shutdown.enable": Boolean = "true", Any, ReadOnly;
    "controller.quorum.auto.join.enable": Boolean = "false", Any, ReadOnly;
    "controller.quorum.bootstrap.servers": List = "", Any, ReadOnly;
    "controller.quorum.election.backoff.max.ms": Int = "1000", AtLeast(0), ReadOnly;
    "controller.quorum.election.timeout.ms": Int = "1000", AtLeast(0), ReadOnly;
    "controller.quorum.fetch.max.bytes": Int = "1048576", AtLeast(1), ReadOnly;
    "controller.quorum.fetch.snapshot.max.bytes": Int = "1048576", AtLeast(1), ReadOnly;
    "controller.quorum.fetch.timeout.ms": Int = "2000", AtLeast(0), ReadOnly;
    "controller.quorum.request.timeout.ms": Int = "2000", AtLeast(0), ReadOnly;
    "controller.quorum.retry.backoff.ms": Int = "20", AtLeast(0), ReadOnly;
    "controller.socket.timeout.ms": Int = "30000", Any, ReadOnly;
    "cordoned.log.dirs": List = "", Any, PerBroker;
    "create.topic.policy.class.name": Class =
        null, Any, ReadOnly, refused "Ottla loads no Java classes, and topics would be created against the policy";
    "initial.broker.registration.timeout.ms": Int = "60000", Any, ReadOnly;
    "leader.imbalance.check.interval.seconds": Long = "300", AtLeast(1), ReadOnly;
    "log.dir.failure.timeout.ms": Long = "30000", AtLeast(1), ReadOnly;
    "max.connection.creation.rate": Int = "2147483647", AtLeast(0), ClusterWide;
    "metadata.log.max.record.bytes.between.snapshots": Long = "20971520", AtLeast(1), ReadOnly;
    "metadata.log.max.snapshot.interval.ms": Long = "3600000", AtLeast(0), ReadOnly;
    "num.replica.alter.log.dirs.threads": Int = null, Any, ReadOnly;
    "num.replica.fetchers": Int = "1", AtLeast(1), ClusterWide;
    "offsets.commit.timeout.ms": Int = "5000", AtLeast(1), ReadOnly;
    "replica.fetch.backoff.ms": Int = "1000", AtLeast(0), ReadOnly;
    "replica.fetch.max.bytes": Int = "1048576", AtLeast(0), ReadOnly;
    "replica.fetch.min.bytes": Int = "1", Any, ReadOnly;
    "replica.fetch.response.max.bytes": Int = "10485760", AtLeast(0), ReadOnly;
    "replica.fetch.wait.max.ms": Int = "500", Any, ReadOnly;
    "replica.lag.time.max.ms": Long = "30000", Any, ReadOnly;
    "replica.selector.class": String = null, Any, ReadOnly;
    "replica.socket.receive.buffer.bytes": Int = "65536", Any, ReadOnly;
    "replica.socket.timeout.ms": Int = "30000", Any, ReadOnly;
    "socket.connection.setup.timeout.max.ms": Long = "30000", Any, ReadOnly;
    "socket.connection.setup.timeout.ms": Long = "10000", Any, ReadOnly;
    "socket.receive.buffer.bytes": Int = "102400", Any, ReadOnly;
    "socket.send.buffer.bytes": Int = "102400", Any, ReadOnly;
    "unclean.leader.election.interval.ms": Long = "300000", AtLeast(1), ReadOnly, internal;
}
