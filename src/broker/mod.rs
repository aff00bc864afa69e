//! Requests to answers: dispatch, one handler per API key, and the border where the errors of the
//! rooms become Kafka's codes.
//! Lives here: which handler serves a key, decoding and encoding around it, the mapping of errors.
//! May not live here: state (a handler reads a request, asks one lower room, shapes the answer),
//! and rules that a lower room could keep itself.

mod auto_create;
mod border;
mod counters;
mod dispatch;
mod handlers;
mod shape;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use crate::common::BrokerId;
use crate::config::BrokerConfig;
use crate::controller::{Ask, GROUP_FEATURE, Handle as ControllerHandle, ProducerIds};
use crate::coordinator::group::GroupCoordinator;
use crate::env::Env;
use crate::machine::AskError;
use crate::metadata::{Endpoint, Image, Publisher};
use crate::replica::Replicas;
use crate::security::Authorizer;
use crate::telemetry::Metrics;

pub use counters::RequestCounters;
pub use dispatch::Dispatch;

/// Why the controller's answer is missing; the change may have happened.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    #[error(transparent)]
    Controller(#[from] AskError),
    #[error("the controller did not answer in time")]
    TimedOut,
}

/// The rooms that handlers ask. One per node.
pub struct Broker {
    pub id: BrokerId,
    pub cluster_id: Arc<str>,
    pub env: Env,
    pub metrics: Arc<Metrics>,
    pub config: Arc<ArcSwap<BrokerConfig>>,
    pub publisher: Arc<Publisher>,
    pub replicas: Arc<Replicas>,
    pub groups: Arc<GroupCoordinator>,
    pub controller: ControllerHandle,
    /// Where this node is asked as a controller.
    pub controller_endpoints: Vec<Endpoint>,
    pub producer_ids: Arc<ProducerIds>,
    pub authorizer: Authorizer,
    pub requests: RequestCounters,
}

impl Broker {
    /// Asks the active controller; `Err` with a code for the whole request when it cannot say.
    ///
    /// # Errors
    /// [`Unanswered`]: by the deadline, or for lack of a controller.
    pub async fn ask_controller<Q: Ask>(
        &self,
        ask: Q,
        timeout_ms: i32,
    ) -> Result<Q::Answer, Unanswered> {
        let wait = Duration::from_millis(timeout_ms.max(0) as u64);
        let deadline = self.env.clock.deadline_in(wait);
        match self.env.clock.until(deadline, self.controller.ask(ask)).await {
            Some(answer) => Ok(answer?),
            None => Err(Unanswered::TimedOut),
        }
    }

    /// `request.timeout.ms`: how long a request without a timeout of its own may take.
    pub fn request_timeout_ms(&self) -> i32 {
        self.config.load().network.request_timeout_ms
    }

    /// Whether consumer groups (KIP-848) are on: by the cluster's `group.version`, and here.
    pub fn has_consumer_groups(&self) -> bool {
        let config = self.config.load();
        let here = config.group.rebalance_protocols.iter().any(|name| name == "consumer");
        here && self.image().feature(GROUP_FEATURE) > 0
    }

    /// A broker that is up: clients send it what is for the controller, it passes that on.
    pub fn some_broker(&self, image: &Image) -> i32 {
        let alive = image.alive_brokers().count() as u64;
        if alive == 0 {
            return -1;
        }
        let nth = self.env.random.below(alive) as usize;
        image.alive_brokers().nth(nth).map_or(-1, |node| node.id.0)
    }

    /// The cluster as this broker knows it.
    pub fn image(&self) -> Arc<Image> {
        self.publisher.image()
    }
}
