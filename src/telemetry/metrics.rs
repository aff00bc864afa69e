//! The table of metrics. Names are those that the JMX exporter gives Kafka's MBeans
//! (`kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec` becomes
//! `kafka_server_brokertopicmetrics_bytesin_total`), so that dashboards made for Kafka work; a
//! name that Kafka does not have starts with `ottla_`.

use std::sync::{Mutex, PoisonError};

use prometheus::{
    Encoder, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};

type Refresh = Box<dyn Fn(&Metrics) + Send + Sync>;

/// Makes one handle per row: `counter` and `gauge` are plain atomics; `counters` and `gauges`
/// have labels, whose handles are to be taken once (`with_label_values`) and kept.
macro_rules! metrics {
    ($($(#[doc = $help:literal])+ $kind:ident $name:ident $([$($label:literal),+])?: $text:literal;)+) => {
        /// Every metric of one node, ready to count.
        pub struct Metrics {
            registry: Registry,
            refresh: Mutex<Vec<Refresh>>,
            $($(#[doc = $help])+ pub $name: metrics!(@type $kind),)+
        }

        impl Metrics {
            fn with_registry(registry: Registry) -> Result<Self, prometheus::Error> {
                $(
                    let options = Opts::new($text, concat!($($help),+).trim());
                    let $name = metrics!(@make $kind options $([$($label),+])?)?;
                    registry.register(Box::new($name.clone()))?;
                )+
                Ok(Self { registry, refresh: Mutex::default(), $($name),+ })
            }
        }
    };
    (@type counter) => { IntCounter };
    (@type gauge) => { IntGauge };
    (@type counters) => { IntCounterVec };
    (@type gauges) => { IntGaugeVec };
    (@make counter $options:ident) => { IntCounter::with_opts($options) };
    (@make gauge $options:ident) => { IntGauge::with_opts($options) };
    (@make counters $options:ident [$($label:literal),+]) => {
        IntCounterVec::new($options, &[$($label),+])
    };
    (@make gauges $options:ident [$($label:literal),+]) => {
        IntGaugeVec::new($options, &[$($label),+])
    };
}

metrics! {
    /// Records appended by producers.
    counters messages_in["topic"]: "kafka_server_brokertopicmetrics_messagesin_total";
    /// Bytes of record batches appended by producers.
    counters bytes_in["topic"]: "kafka_server_brokertopicmetrics_bytesin_total";
    /// Bytes of record batches sent to consumers.
    counters bytes_out["topic"]: "kafka_server_brokertopicmetrics_bytesout_total";
    /// Bytes of record batches refused because they are larger than max.message.bytes.
    counter bytes_rejected: "kafka_server_brokertopicmetrics_bytesrejected_total";
    /// Partitions asked for by Produce requests.
    counters produce_requests["topic"]: "kafka_server_brokertopicmetrics_totalproducerequests_total";
    /// Partitions asked for by Fetch requests.
    counters fetch_requests["topic"]: "kafka_server_brokertopicmetrics_totalfetchrequests_total";
    /// Partitions of Produce requests that got an error.
    counter failed_produce_requests: "kafka_server_brokertopicmetrics_failedproducerequests_total";
    /// Partitions of Fetch requests that got an error.
    counter failed_fetch_requests: "kafka_server_brokertopicmetrics_failedfetchrequests_total";
    /// Record batches refused for their checksum.
    counter invalid_crc: "kafka_server_brokertopicmetrics_invalidmessagecrcrecords_total";
    /// Record batches refused for their format version.
    counter invalid_magic: "kafka_server_brokertopicmetrics_invalidmagicnumberrecords_total";
    /// Record batches refused for offsets or sequences that do not follow each other.
    counter invalid_sequence: "kafka_server_brokertopicmetrics_invalidoffsetorsequencerecords_total";
    /// Records without a key refused by compacted topics.
    counter no_key_compacted: "kafka_server_brokertopicmetrics_nokeycompactedtopicrecords_total";

    /// Requests handled.
    counters requests["request", "version"]: "kafka_network_requestmetrics_requests_total";
    /// Frames refused before decoding, each closed its connection.
    counter frames_refused: "ottla_frames_refused_total";
    /// Request handlers that panicked, each closed its connection.
    counter handler_panics: "ottla_handler_panics_total";
    /// Bytes of requests in memory.
    gauge request_bytes_in_memory: "kafka_network_socketserver_memorypoolused";

    /// Connections open now.
    gauges connections["listener"]: "kafka_server_socketservermetrics_connection_count";
    /// Connections accepted.
    counters connections_accepted["listener"]: "kafka_server_socketservermetrics_connection_creation_total";
    /// Connections closed.
    counters connections_closed["listener"]: "kafka_server_socketservermetrics_connection_close_total";
    /// Connections refused for a limit (max.connections and its kin).
    counters connections_refused["listener"]: "ottla_connections_refused_total";
    /// Connections closed for being idle.
    counter connections_idle_closed: "kafka_network_socketserver_expiredconnectionskilled_total";

    /// State of the broker: 2 recovery, 3 running, 6 controlled shutdown, 7 shutting down.
    gauge broker_state: "kafka_server_kafkaserver_brokerstate";
    /// Partitions on this broker.
    gauge partitions: "kafka_server_replicamanager_partitioncount";
    /// Partitions led by this broker.
    gauge leaders: "kafka_server_replicamanager_leadercount";
    /// Led partitions with fewer in-sync replicas than replicas.
    gauge under_replicated: "kafka_server_replicamanager_underreplicatedpartitions";
    /// Led partitions with fewer in-sync replicas than min.insync.replicas.
    gauge under_min_isr: "kafka_server_replicamanager_underminisrpartitioncount";
    /// Partitions of offline log directories.
    gauge offline_replicas: "kafka_server_replicamanager_offlinereplicacount";
    /// Idempotent and transactional producers remembered.
    gauge producer_ids: "kafka_server_replicamanager_produceridcount";
    /// Fetch sessions in the cache.
    gauge fetch_sessions: "kafka_server_fetchsessioncache_numincrementalfetchsessions";
    /// Partitions in cached fetch sessions.
    gauge fetch_session_partitions: "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached";
    /// Fetch sessions that lost their place to others.
    counter fetch_sessions_evicted: "kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total";
    /// Requests that wait: Produce for acknowledgements, Fetch for data, Rebalance for members.
    gauges delayed["delayedOperation"]: "kafka_server_delayedoperationpurgatory_numdelayedoperations";

    /// Bytes of a partition's log.
    gauges log_size["topic", "partition"]: "kafka_log_log_size";
    /// Log start offset of a partition.
    gauges log_start_offset["topic", "partition"]: "kafka_log_log_logstartoffset";
    /// Log end offset of a partition.
    gauges log_end_offset["topic", "partition"]: "kafka_log_log_logendoffset";
    /// Segments of a partition's log.
    gauges log_segments["topic", "partition"]: "kafka_log_log_numlogsegments";
    /// Log directories taken offline by an I/O error.
    gauge log_dirs_offline: "kafka_log_logmanager_offlinelogdirectorycount";

    /// Largest part of the memory for keys that a cleaner used in its last pass, in percent.
    gauge cleaner_buffer_percent: "kafka_log_logcleaner_max_buffer_utilization_percent";
    /// Bytes that the last passes of all cleaners wrote, in percent of those read.
    gauge cleaner_recopy_percent: "kafka_log_logcleaner_cleaner_recopy_percent";
    /// Longest last pass of a cleaner, in seconds.
    gauge cleaner_max_secs: "kafka_log_logcleaner_max_clean_time_secs";
    /// Longest time that a log waits beyond max.compaction.lag.ms, in seconds.
    gauge cleaner_max_delay_secs: "kafka_log_logcleaner_max_compaction_delay_secs";
    /// Cleaners that should run and do not.
    gauge cleaner_dead_threads: "kafka_log_logcleaner_deadthreadcount";
    /// Part of the dirtiest log that is not compacted yet, in percent.
    gauge cleaner_max_dirty_percent: "kafka_log_logcleanermanager_max_dirty_percent";
    /// Milliseconds since a cleaner last looked for work.
    gauge cleaner_since_run_ms: "kafka_log_logcleanermanager_time_since_last_run_ms";
    /// Partitions that cannot be compacted because a pass failed on them.
    gauges uncleanable_partitions["logDirectory"]: "kafka_log_logcleanermanager_uncleanable_partitions_count";
    /// Bytes that wait in those partitions.
    gauges uncleanable_bytes["logDirectory"]: "kafka_log_logcleanermanager_uncleanable_bytes";

    /// 1 on the active controller.
    gauge active_controller: "kafka_controller_kafkacontroller_activecontrollercount";
    /// Brokers registered and not fenced.
    gauge active_brokers: "kafka_controller_kafkacontroller_activebrokercount";
    /// Brokers registered and fenced.
    gauge fenced_brokers: "kafka_controller_kafkacontroller_fencedbrokercount";
    /// Topics of the cluster.
    gauge topics: "kafka_controller_kafkacontroller_globaltopiccount";
    /// Partitions of the cluster.
    gauge cluster_partitions: "kafka_controller_kafkacontroller_globalpartitioncount";
    /// Partitions of the cluster without a leader.
    gauge offline_partitions: "kafka_controller_kafkacontroller_offlinepartitionscount";
    /// Offset of the newest metadata record applied by this broker.
    gauge metadata_applied_offset: "kafka_server_brokermetadatametrics_last_applied_record_offset";

    /// Groups on this broker by protocol.
    gauges groups["protocol"]: "kafka_server_groupcoordinatormetrics_group_count";
    /// Rebalances of classic groups completed.
    counter group_rebalances: "kafka_server_groupcoordinatormetrics_group_completed_rebalance_count";
    /// Consumer groups (KIP-848) whose epoch went up.
    counter consumer_group_rebalances: "kafka_server_groupcoordinatormetrics_consumer_group_rebalance_count";
    /// Offsets expired.
    counter offset_expirations: "kafka_server_groupcoordinatormetrics_offset_expiration_count";
}

impl Metrics {
    /// All handles of the table, at zero.
    pub fn new() -> Self {
        match Self::with_registry(Registry::new()) {
            Ok(metrics) => metrics,
            // A wrong or doubled name in the table above; every test that makes a `Metrics` sees it.
            Err(error) => crate::common::broken_invariant(
                concat!(file!(), ":", line!()),
                "the table of metrics is well formed",
                &error.to_string(),
            ),
        }
    }

    /// `refresh` runs before each [`Metrics::text`]: for gauges that are cheaper to ask for than
    /// to keep (sizes of logs, counts of groups).
    pub fn on_scrape(&self, refresh: impl Fn(&Self) + Send + Sync + 'static) {
        self.refreshers().push(Box::new(refresh));
    }

    /// Drops what was counted under a topic's name: it is deleted.
    pub fn forget_topic(&self, topic: &str) {
        let families = [&self.messages_in, &self.bytes_in, &self.bytes_out, &self.produce_requests];
        for family in families.into_iter().chain([&self.fetch_requests]) {
            // An error says that nothing was counted under that name.
            let _ = family.remove_label_values(&[topic]);
        }
    }

    /// The text form of Prometheus, version 0.0.4.
    ///
    /// # Errors
    /// When a family holds two kinds of metric: our own mistake, shown to the scraper.
    pub fn text(&self) -> Result<String, prometheus::Error> {
        for refresh in self.refreshers().iter() {
            refresh(self);
        }
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn refreshers(&self) -> std::sync::MutexGuard<'_, Vec<Refresh>> {
        self.refresh.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_in_the_text_until_its_topic_is_forgotten() {
        let metrics = Metrics::new();
        let handle = metrics.bytes_in.with_label_values(&["orders"]);
        handle.inc_by(7);
        let line = "kafka_server_brokertopicmetrics_bytesin_total{topic=\"orders\"} 7";
        assert!(metrics.text().unwrap().contains(line));
        metrics.forget_topic("orders");
        assert!(!metrics.text().unwrap().contains("orders"));
    }

    #[test]
    fn gauges_are_refreshed_before_each_scrape() {
        let metrics = Metrics::new();
        metrics.on_scrape(|metrics| metrics.partitions.inc());
        for count in 1..3 {
            let line = format!("kafka_server_replicamanager_partitioncount {count}\n");
            assert!(metrics.text().unwrap().contains(&line), "scrape {count}");
        }
    }
}
