//! Acknowledgements that are awaited after an append.

use std::sync::Arc;

use tokio::sync::Notify;

use super::error::{NotNow, ReplicaError};
use super::partition::{Partition, State, Waiting};
use super::produce::Outcome;
use super::replicas::{Counted, Replicas};
use super::waiters::Wants;
use crate::config::TopicConfig;
use crate::env::Instant;

/// What the appends of one request wait for.
#[derive(Default)]
pub(super) struct Acks {
    notify: Option<Arc<Notify>>,
    pending: Vec<Pending>,
}

/// A partition that is not acknowledged yet.
struct Pending {
    /// Which one of the request.
    at: usize,
    partition: Arc<Partition>,
    wants: Wants,
    _place: Waiting,
}

impl Acks {
    /// Waits for `wants` of the partition, unless that is so already. To be called under the lock
    /// that `state` is under.
    pub fn expect(
        &mut self,
        at: usize,
        partition: &Arc<Partition>,
        state: &mut State,
        wants: Wants,
        config: &TopicConfig,
    ) {
        if state.is_met(wants, config) {
            return;
        }
        let notify = self.notify.get_or_insert_default().clone();
        let place = Waiting::register(partition, state, wants, notify);
        let partition = partition.clone();
        self.pending.push(Pending { at, partition, wants, _place: place });
    }

    /// `Err`: there is nothing to wait for.
    pub fn wait(
        self,
        replicas: &Replicas,
        outcomes: Vec<Outcome>,
        deadline: Instant,
    ) -> Result<AcksWait, Vec<Outcome>> {
        let Self { notify: Some(notify), pending } = self else { return Err(outcomes) };
        let clock = replicas.env().clock.clone();
        let _counted = Counted::one(&replicas.waiting.produce);
        Ok(AcksWait { outcomes, pending, notify, deadline, clock, _counted })
    }
}

/// Appended, not yet acknowledged. Dropping it gives the waiting up; the appends stand.
pub struct AcksWait {
    outcomes: Vec<Outcome>,
    pending: Vec<Pending>,
    notify: Arc<Notify>,
    deadline: Instant,
    clock: crate::env::Clock,
    _counted: Counted,
}

impl AcksWait {
    /// One outcome per asked partition, when all are acknowledged, refused, or out of time.
    pub async fn done(mut self) -> Vec<Outcome> {
        loop {
            let outcomes = &mut self.outcomes;
            self.pending.retain(|pending| match pending.settled() {
                None => true,
                Some(result) => {
                    outcomes[pending.at].result = result;
                    false
                }
            });
            if self.pending.is_empty() {
                return self.outcomes;
            }
            if self.clock.until(self.deadline, self.notify.notified()).await.is_none() {
                break;
            }
        }
        for pending in &self.pending {
            let result = pending.settled().unwrap_or_else(|| Err(NotNow::TimedOut.into()));
            self.outcomes[pending.at].result = result;
        }
        self.outcomes
    }
}

impl Pending {
    /// `None`: still waiting.
    fn settled(&self) -> Option<Result<(), ReplicaError>> {
        let config = self.partition.config.load();
        self.partition.locked(|state, _| {
            if let Err(error) = state.leader_log() {
                return Some(Err(error));
            }
            if !state.is_met(self.wants, &config) {
                return None;
            }
            let (in_sync, needed) = (state.role.isr.len(), state.in_sync_needed(&config));
            let all = matches!(self.wants, Wants::HighWatermark { .. });
            Some(match all && in_sync < needed {
                true => Err(NotNow::TooFewReplicasAfter { in_sync, needed }.into()),
                false => Ok(()),
            })
        })
    }
}

impl State {
    fn is_met(&self, wants: Wants, config: &TopicConfig) -> bool {
        match wants {
            Wants::HighWatermark { above } | Wants::LastStable { above } => {
                self.high_watermark > above
            }
            Wants::Durable { above } => self.durable_end(config) > above,
        }
    }
}
