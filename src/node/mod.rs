//! One node, wired: which room gets which, in which order they start and stop.
//! Lives here: the start and the end of a node. May not live here: protocol or storage logic.

mod dirs;
mod error;
mod gauges;
mod import;
mod listeners;
mod quorum;
mod settings;
#[cfg(test)]
mod sim;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;

use crate::broker::{Broker, Dispatch, RequestCounters};
use crate::cli::{Run, TopicSpec};
use crate::common::BrokerId;
use crate::config::{BrokerConfig, GroupKeys};
use crate::controller::{CreateTopics, NewTopic, ProducerIds, Refusal};
use crate::coordinator::group::{GROUP_TOPIC, GroupCoordinator, GroupEffect, OnGroupEffect};
use crate::env::Env;
use crate::http;
use crate::machine::Journal;
use crate::metadata::Delta;
use crate::net::{self, RequestMemory, Stop, WarnLimits};
use crate::replica::{Cleaner, Intervals, PartitionJournal, Replicas};
use crate::security::Authorizer;
use crate::storage::LogDir;
use crate::telemetry::Metrics;

pub use error::NodeError;

/// What decoded requests of all connections may take together.
const DECODED_BYTES_MAX: i64 = 128 << 20;
/// How long the HTTP server may finish answers at the end.
const HTTP_GRACE: Duration = Duration::from_millis(10);

/// A running node.
pub struct Node {
    env: Env,
    broker: Arc<Broker>,
    metadata: quorum::MetadataSide,
    stop: Stop,
    http: Option<http::Server>,
    draining: Arc<AtomicBool>,
    ready_line: String,
    /// To be removed at the end (`--ephemeral`).
    ephemeral: Option<PathBuf>,
}

impl Node {
    /// Starts a node; it serves when this returns.
    ///
    /// # Errors
    /// [`NodeError`]: nothing serves then.
    pub async fn start(run: Run, env: Env) -> Result<Self, NodeError> {
        let Run { config, topics, is_ephemeral, .. } = run;
        let metrics = Arc::new(Metrics::new());
        let taken = listeners::take(&config, &env)?;
        let http_taken = match config.ottla.http_port {
            -1 => None,
            port => Some(listeners::bind(&config.ottla.http_host, port as u16, &env)?),
        };
        let opened = dirs::open(&config, &env)?;
        let dirs::OpenedDirs { dirs, dead, metadata: metadata_dir, imported } = opened;
        let cluster_id: Arc<str> = dirs[0].cluster_id().into();
        let told = listeners::advertised(&config, &taken, &env);
        let ids = dirs.iter().map(LogDir::directory_id).collect();
        let mut registration =
            quorum::registration(&config, told.to_clients.clone(), ids, env.random.uuid());
        let metadata = quorum::start(&config, &env, metadata_dir, &registration, imported).await?;
        let id = BrokerId(config.node.node_id);
        let last_epoch = match metadata.is_fresh {
            true => None,
            false => metadata.publisher.image().broker(id).map(|node| node.epoch),
        };
        let current = Arc::new(ArcSwap::from_pointee(settings::with_dynamic(
            &config,
            &metadata.publisher.image(),
        )));
        let dirs = (dirs, dead);
        let image = metadata.publisher.image();
        let now = current.load();
        let replicas = dirs::replicas((&now, &image), &env, &metrics, dirs, last_epoch)?;
        drop((now, image));
        let groups = group_coordinator(&current.load(), id, &env, &metrics, &replicas);
        let cleaner = Cleaner::start(replicas.clone(), current.load().cleaner.clone());
        subscribe(&config, &current, &metadata, (&replicas, &cleaner), &groups);
        if !metadata.is_fresh {
            registration.previous_broker_epoch =
                last_epoch.filter(|_| replicas.was_clean()).unwrap_or(-1);
            let registered = metadata.handle.ask(registration).await?;
            registered.map_err(NodeError::Register)?;
        }
        create_topics(&metadata, &topics).await?;
        replicas.flush_what_a_crash_left().await;
        let broker = Arc::new(Broker {
            id,
            cluster_id,
            env: env.clone(),
            metrics: metrics.clone(),
            config: current,
            publisher: metadata.publisher.clone(),
            replicas: replicas.clone(),
            groups: groups.0,
            producer_ids: Arc::new(ProducerIds::new(metadata.handle.clone(), id)),
            controller: metadata.handle.clone(),
            controller_endpoints: told.of_controllers,
            authorizer: Authorizer::default(),
            requests: RequestCounters::new(&metrics),
        });
        env.tasks.spawn_data(replicas.clone().keep_house(intervals(&config)));
        env.tasks.spawn_data(dirs::keep(replicas, &metadata.handle, id));
        let draining = Arc::new(AtomicBool::new(false));
        let stop = Stop::default();
        let frames = RequestMemory::new(config.network.queued_max_request_bytes);
        let publisher = metadata.publisher.clone();
        gauges::register(&metrics, publisher, frames.clone(), draining.clone());
        open(taken, &broker, &config, &stop, frames)?;
        let http_address = http_taken.as_ref().map(|(_, address)| address.to_string());
        let http = open_http(http_taken, &env, &metrics, &draining)?;
        let ready_line = ready_line(&broker, &told.to_clients, http_address, &config);
        let ephemeral = is_ephemeral.then(|| PathBuf::from(&config.log.directories()[0]));
        Ok(Self { env, broker, metadata, stop, http, draining, ready_line, ephemeral })
    }

    /// `ottla ready {…}`: the one line on stdout, for whoever started the node.
    pub fn ready_line(&self) -> &str {
        &self.ready_line
    }

    /// What serves the listeners, for a caller in this process.
    pub fn dispatch(&self) -> Dispatch {
        Dispatch::new(self.broker.clone())
    }

    /// The line that says in the log that this broker serves, as Kafka's own does.
    pub fn tell_running(&self) {
        tracing::info!(
            "[BrokerLifecycleManager id={}] The broker has been unfenced. Transitioning from \
             RECOVERY to RUNNING.",
            self.broker.id
        );
    }

    /// Stops in order, every wait under one deadline, none longer than its reason lasts.
    ///
    /// # Errors
    /// What failed to be made durable; the next start then recovers as after a crash.
    pub async fn shut_down(self, grace: Duration) -> Result<(), NodeError> {
        let clock = &self.env.clock;
        let deadline = clock.deadline_in(grace);
        self.draining.store(true, Ordering::Relaxed);
        self.stop.begin();
        if clock.until(deadline, self.stop.drained()).await.is_none() {
            let connections = self.stop.connections();
            tracing::warn!(?grace, connections, "grace is over, stopping with work left");
        }
        if let Some(http) = self.http {
            http.close(HTTP_GRACE).await;
        }
        self.broker.groups.stop();
        self.metadata.controller.stop();
        let epoch = self.broker.image().broker(self.broker.id).map_or(-1, |node| node.epoch);
        let replicas = self.broker.replicas.clone();
        let closed = self.env.tasks.spawn_blocking(move || replicas.close(epoch)).await;
        self.metadata.quorum.shutdown().await?;
        if let Ok(closed) = closed {
            closed.map_err(|error| NodeError::Storage(error.into()))?;
        }
        if let Some(dir) = &self.ephemeral {
            let removed = self.env.files.remove_dir_all(dir);
            let dir = dir.display().to_string();
            removed.map_err(|source| NodeError::Directory { dir, source })?;
        }
        Ok(())
    }
}

/// The coordinator with the cell that its settings are changed through.
type Groups = (Arc<GroupCoordinator>, Arc<ArcSwap<GroupKeys>>);

fn group_coordinator(
    config: &BrokerConfig,
    id: BrokerId,
    env: &Env,
    metrics: &Arc<Metrics>,
    replicas: &Arc<Replicas>,
) -> Groups {
    let cell = Arc::new(ArcSwap::from_pointee(config.group.clone()));
    let of = replicas.clone();
    let journals = Box::new(move |index| {
        let partition = of.partition(GROUP_TOPIC, index)?;
        Some(Arc::new(PartitionJournal::new(of.clone(), partition)) as Arc<dyn Journal>)
    });
    let metrics = metrics.clone();
    let on_effect: OnGroupEffect = Arc::new(move |effect| match effect {
        GroupEffect::RebalanceCompleted => metrics.group_rebalances.inc(),
        GroupEffect::ConsumerRebalance => metrics.consumer_group_rebalances.inc(),
        // The coordinator's own.
        GroupEffect::ResolveRegexes { .. } => {}
        GroupEffect::OffsetsExpired { count } => metrics.offset_expirations.inc_by(count as u64),
    });
    let coordinator = GroupCoordinator::new(env.clone(), id, cell.clone(), journals, on_effect);
    (Arc::new(coordinator), cell)
}

/// Who lives by the metadata, in the fixed order: configs, replicas, coordinators.
fn subscribe(
    fixed: &BrokerConfig,
    current: &Arc<ArcSwap<BrokerConfig>>,
    metadata: &quorum::MetadataSide,
    (replicas, cleaner): (&Arc<Replicas>, &Arc<Cleaner>),
    groups: &Groups,
) {
    let (fixed, current, cell) = (fixed.clone(), current.clone(), groups.1.clone());
    let (configured, cleaner) = (replicas.clone(), cleaner.clone());
    metadata.publisher.subscribe(move |delta: &Delta| {
        if !settings::changes_brokers(delta) {
            return;
        }
        let config = settings::with_dynamic(&fixed, &delta.after);
        cell.store(Arc::new(config.group.clone()));
        cleaner.configure(config.cleaner.clone());
        configured.set_topic_defaults(config.topic_defaults.clone(), &delta.after);
        current.store(Arc::new(config));
    });
    let following = replicas.clone();
    metadata.publisher.subscribe(move |delta: &Delta| following.publish(delta));
    metadata.publisher.subscribe((*groups.0).clone());
}

async fn create_topics(
    metadata: &quorum::MetadataSide,
    topics: &[TopicSpec],
) -> Result<(), NodeError> {
    if topics.is_empty() {
        return Ok(());
    }
    let topics = topics.iter().map(|topic| NewTopic {
        partitions: topic.partitions.unwrap_or(-1),
        replication_factor: topic.replicas.unwrap_or(-1),
        ..NewTopic::named(topic.name.as_str())
    });
    let ask = CreateTopics { topics: topics.collect(), validate_only: false };
    for result in metadata.handle.ask(ask).await? {
        match result.outcome {
            Ok(_) | Err(Refusal::TopicExists(_)) => {}
            Err(refusal) => {
                return Err(NodeError::Topic { name: result.name.to_string(), refusal });
            }
        }
    }
    Ok(())
}

/// Kafka's cache has eight parts, which share the slots: what is over a multiple is not used.
fn session_slots(config: &BrokerConfig) -> usize {
    let slots = config.network.max_incremental_fetch_session_cache_slots;
    usize::try_from(slots).unwrap_or(0) / 8 * 8
}

fn intervals(config: &BrokerConfig) -> Intervals {
    let millis = |ms: i64| Duration::from_millis(ms.max(1) as u64);
    let flush = config.log.flush_scheduler_interval_ms;
    // All three checkpoints are written together.
    let checkpoints = config.topics.replica_high_watermark_checkpoint_interval_ms;
    let checkpoints = checkpoints
        .min(i64::from(config.log.flush_offset_checkpoint_interval_ms))
        .min(i64::from(config.log.flush_start_offset_checkpoint_interval_ms));
    Intervals {
        initial_delay: millis(config.log.initial_task_delay_ms),
        retention: millis(config.log.retention_check_interval_ms),
        checkpoints: millis(checkpoints),
        producers: millis(i64::from(config.log.producer_id_expiration_check_interval_ms)),
        flush: (flush < i64::MAX).then(|| millis(flush)),
    }
}

/// Opens the ports: from here on a client that connects is served.
fn open(
    taken: Vec<listeners::Taken>,
    broker: &Arc<Broker>,
    config: &BrokerConfig,
    stop: &Stop,
    frames: RequestMemory,
) -> Result<(), NodeError> {
    let shared = Arc::new(net::Shared {
        env: broker.env.clone(),
        limits: settings::connection(config),
        frames,
        decoded: RequestMemory::new(DECODED_BYTES_MAX),
        metrics: broker.metrics.clone(),
        warn_limits: WarnLimits::default(),
        stop: stop.clone(),
    });
    let limits = settings::connections(config, &broker.env.net);
    let dispatch = Arc::new(Dispatch::new(broker.clone()));
    for listener in taken {
        for bound in listener.bound {
            let address = listener.address.to_string();
            let open = bound.listen();
            let open = open.map_err(|source| NodeError::Bind { address, source })?;
            let (info, service) = (listener.info.clone(), dispatch.clone());
            let serving = net::serve(open, info, service, shared.clone(), limits.clone());
            broker.env.tasks.spawn_data(serving);
        }
    }
    Ok(())
}

fn open_http(
    taken: Option<(Vec<crate::env::Bound>, std::net::SocketAddr)>,
    env: &Env,
    metrics: &Arc<Metrics>,
    draining: &Arc<AtomicBool>,
) -> Result<Option<http::Server>, NodeError> {
    let Some((bound, address)) = taken else { return Ok(None) };
    let Some(first) = bound.into_iter().next() else { return Ok(None) };
    let listener = first.listen();
    let listener =
        listener.map_err(|source| NodeError::Bind { address: address.to_string(), source })?;
    let draining = draining.clone();
    let probe = Arc::new(move || match draining.load(Ordering::Relaxed) {
        false => http::Health { is_ready: true, phase: "running" },
        true => http::Health { is_ready: false, phase: "draining" },
    });
    Ok(Some(http::serve(listener, env, metrics.clone(), probe)))
}

fn ready_line(
    broker: &Broker,
    endpoints: &[crate::metadata::Endpoint],
    http: Option<String>,
    config: &BrokerConfig,
) -> String {
    let bootstrap = endpoints.first().map(|one| format!("{}:{}", one.host, one.port));
    let ready = serde_json::json!({
        "bootstrap": bootstrap,
        "http": http,
        "cluster_id": &*broker.cluster_id,
        "node_id": broker.id.0,
        "data_dir": config.log.directories()[0],
    });
    format!("ottla ready {ready}")
}
