//! The metadata side of a node: quorum, controller, publication, registration.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use uuid::Uuid;

use super::error::NodeError;
use super::import::Imported;
use crate::common::{BrokerId, Offset};
use crate::config::BrokerConfig;
use crate::controller::{
    self, Controller, FEATURES, Feature, Handle, RegisterBroker, World, batch_of, bootstrap,
    fresh_levels,
};
use crate::env::Env;
use crate::machine::Runtime;
use crate::metadata::{Broker, Endpoint, Publisher};
use crate::quorum::{Quorum, QuorumConfig, QuorumError, Writes, end_process};

/// Directory of the quorum's log, below the metadata directory.
pub const DIR_NAME: &str = "__ottla_metadata";

/// Records of one batch at most, of those that a log begins with.
const FIRST_RECORDS: usize = 500;

/// The running metadata side.
pub struct MetadataSide {
    pub quorum: Arc<Quorum>,
    pub controller: Arc<Runtime<Controller>>,
    pub handle: Handle,
    pub publisher: Arc<Publisher>,
    /// Whether this start made the cluster.
    pub is_fresh: bool,
}

/// Opens the quorum, or makes one, and starts the controller on it.
///
/// # Errors
/// [`NodeError`]; a record that this version cannot read is one, since what the node does not
/// understand it cannot serve.
pub async fn start(
    config: &BrokerConfig,
    env: &Env,
    dir: PathBuf,
    registration: &RegisterBroker,
    imported: Option<Imported>,
) -> Result<MetadataSide, NodeError> {
    let publisher = Arc::new(Publisher::new());
    let min_isr = config.topic_defaults.min_insync_replicas;
    let records = match imported {
        Some(Imported::Cluster(records)) => records,
        Some(Imported::Formatted(levels)) => bootstrap(registration, min_isr, &levels),
        None => bootstrap(registration, min_isr, &fresh_levels()),
    };
    let now_ms = env.clock.wall_ms();
    let fresh_end = records.len() as Offset;
    let tasks = env.tasks.clone();
    let quorum = QuorumConfig {
        dir,
        node_id: registration.id,
        directory_id: registration.log_dirs.first().copied().unwrap_or_default(),
        address: address(config),
        first: records.chunks(FIRST_RECORDS).map(|part| batch_of(part, now_ms)).collect(),
        writes: if env.tasks.has_threads() { Writes::OnThread } else { Writes::Inline },
        on_fatal: Arc::new(move |error: &QuorumError| end_process(error, &tasks)),
    };
    let quorum = Quorum::open(quorum, env.clone(), publisher.clone()).await?;
    if let Some(error) = publisher.failure().borrow().clone() {
        return Err(error.into());
    }
    let image = publisher.image();
    let is_this_start = |node: &Arc<Broker>| node.incarnation == registration.incarnation;
    let is_fresh =
        image.end_offset == fresh_end && image.broker(registration.id).is_some_and(is_this_start);
    let world = Arc::new(ArcSwap::from_pointee(World::new(config, true)));
    let runtime = controller::runtime(quorum.clone(), publisher.clone(), env.clone(), world);
    let controller = Arc::new(runtime);
    env.tasks.spawn_control(controller.run());
    env.tasks.spawn_control(stop_when_unreadable(publisher.clone()));
    controller.until_leading().await?;
    let handle = Handle::new(controller.clone(), publisher.clone());
    Ok(MetadataSide { quorum, controller, handle, publisher, is_fresh })
}

/// A later record that cannot be read ends the process by name.
async fn stop_when_unreadable(publisher: Arc<Publisher>) {
    let mut failure = publisher.failure();
    drop(publisher);
    if let Ok(error) = failure.wait_for(Option::is_some).await {
        let error = error.as_ref().map(ToString::to_string).unwrap_or_default();
        crate::common::broken_invariant("node", "metadata can be read", &error);
    }
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
        features: FEATURES.iter().map(Feature::range).collect(),
        rack: config.node.rack.clone(),
        log_dirs,
        previous_broker_epoch: -1,
        is_caught_up: true,
    }
}
