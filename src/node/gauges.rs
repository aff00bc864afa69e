//! Gauges of the cluster, read from the image when somebody scrapes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::metadata::Publisher;
use crate::net::RequestMemory;
use crate::telemetry::Metrics;

/// Kafka's numbers for a broker that serves and for one that stops.
const RUNNING: i64 = 3;
const STOPPING: i64 = 7;

/// Fills what the metadata and the network side know at each scrape.
pub fn register(
    metrics: &Metrics,
    publisher: Arc<Publisher>,
    frames: RequestMemory,
    draining: Arc<AtomicBool>,
) {
    metrics.active_controller.set(1);
    metrics.on_scrape(move |metrics| {
        let image = publisher.image();
        let (alive, all) = (image.alive_brokers().count(), image.brokers().count());
        metrics.active_brokers.set(alive as i64);
        metrics.fenced_brokers.set((all - alive) as i64);
        metrics.topics.set(image.topics().len() as i64);
        let partitions = || image.topics().iter().flat_map(|topic| topic.partitions.values());
        metrics.cluster_partitions.set(partitions().count() as i64);
        let offline = partitions().filter(|partition| partition.leader.is_none());
        metrics.offline_partitions.set(offline.count() as i64);
        metrics.metadata_applied_offset.set(image.end_offset - 1);
        metrics.request_bytes_in_memory.set(frames.used_bytes() as i64);
        let stops = draining.load(Ordering::Relaxed);
        metrics.broker_state.set(if stops { STOPPING } else { RUNNING });
    });
}
