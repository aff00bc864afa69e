//! The metadata side of a node: quorum, controller, publication, registration.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use uuid::Uuid;

use super::error::NodeError;
use super::settings;
use crate::common::{BrokerId, Offset};
use crate::config::BrokerConfig;
use crate::controller::{Controller, FEATURES, Handle, RegisterBroker, bootstrap};
use crate::env::Env;
use crate::machine::{
    Batch, CommitSink, EntryKind, JournalRecord, ReadEntry, Record, Runtime,
};
use crate::metadata::{Endpoint, PublishError, Publisher};
use crate::quorum::{Quorum, QuorumConfig, QuorumError, Writes, end_process};

/// Directory of the quorum's log, below the metadata directory.
pub const DIR_NAME: &str = "__ottla_metadata";

/// The running metadata side.
pub struct MetadataSide {
    pub quorum: Arc<Quorum>,
    pub controller: Arc<Runtime<Controller>>,
    pub handle: Handle,
    pub publisher: Arc<Publisher>,
    /// Whether this start made the cluster.
    pub is_fresh: bool,
}

/// Passes what the quorum commits to the publisher. A record that this version cannot read stops
/// the node before it serves.
struct Sink(Arc<Publisher>);

impl Sink {
    fn checked(outcome: Result<(), PublishError>) {
        if let Err(error) = outcome {
            tracing::error!(%error, "metadata cannot be read by this version, stopping");
            std::process::abort();
        }
    }
}

impl CommitSink for Sink {
    fn committed(&self, entries: &[ReadEntry]) {
        Self::checked(self.0.publish(entries));
    }

    fn snapshot(&self) -> Vec<JournalRecord> {
        self.0.snapshot().1
    }

    fn install(&self, records: &[JournalRecord], end: Offset) {
        Self::checked(self.0.install(end, records));
    }
}

/// Opens the quorum, or makes one, and starts the controller on it.
pub async fn start(
    config: &BrokerConfig,
    env: &Env,
    dir: PathBuf,
    registration: &RegisterBroker,
) -> Result<MetadataSide, NodeError> {
    let publisher = Arc::new(Publisher::new());
    let directory_id = registration.log_dirs.first().copied().unwrap_or_default();
    let broker_id = registration.id;
    let min_isr = config.topic_defaults.min_insync_replicas;
    let records = bootstrap(registration, min_isr, 0);
    let first_end = records.len() as Offset;
    let first = Batch {
        kind: EntryKind::Plain,
        records: records.iter().map(Record::encode).collect(),
        timestamp_ms: env.clock.wall_ms(),
    };
    let quorum = QuorumConfig {
        dir,
        node_id: broker_id,
        directory_id,
        address: address(config),
        first: vec![first],
        writes: Writes::OnThread,
        on_fatal: Arc::new(|error: &QuorumError| end_process(error)),
    };
    let quorum = Quorum::open(quorum, env.clone(), Arc::new(Sink(publisher.clone()))).await?;
    let image = publisher.image();
    let is_ours = |node: &Arc<crate::metadata::Broker>| node.incarnation == registration.incarnation;
    let is_fresh = image.end_offset == first_end && image.broker(broker_id).is_some_and(is_ours);
    let world = Arc::new(ArcSwap::from_pointee(settings::controller(config)));
    let from = publisher.clone();
    let origin = move || {
        let image = from.image();
        let end = image.end_offset;
        (Controller::new((*image).clone()), end)
    };
    let on_effect = Box::new(|effect, _epoch| match effect {});
    let controller = Arc::new(Runtime::starting_from(
        Box::new(origin),
        quorum.clone(),
        env.clone(),
        world,
        on_effect,
    ));
    env.tasks.spawn_control(controller.run());
    controller.until_leading().await?;
    let handle = Handle::new(controller.clone(), publisher.clone());
    Ok(MetadataSide { quorum, controller, handle, publisher, is_fresh })
}

fn address(config: &BrokerConfig) -> String {
    let listener = config.listeners.controller.first().or(config.listeners.client.first());
    listener.map(|listener| format!("{}:{}", listener.host, listener.port)).unwrap_or_default()
}

/// What this broker says of itself when it starts.
pub fn registration(
    config: &BrokerConfig,
    endpoints: Vec<Endpoint>,
    log_dirs: Vec<Uuid>,
    incarnation: Uuid,
) -> RegisterBroker {
    RegisterBroker {
        id: BrokerId(config.node.node_id),
        incarnation,
        endpoints,
        features: FEATURES.iter().map(|feature| feature.range()).collect(),
        rack: config.node.rack.clone(),
        log_dirs,
        previous_broker_epoch: -1,
        is_caught_up: true,
    }
}
