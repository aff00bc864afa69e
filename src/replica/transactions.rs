//! What transactions ask of a partition: that a batch is verified before it begins one here
//! (KIP-890), and that markers end it.

use std::sync::Arc;
use std::time::Duration;

use super::acks::Acks;
use super::error::{NotNow, ReplicaError};
use super::partition::{Partition, State, disk_failed};
use super::produce::Outcome;
use super::replicas::Replicas;
use super::waiters::{Wakes, Wants};
use crate::common::{NO_OFFSET, NO_TIMESTAMP, ProducerEpoch, ProducerId, Proof};
use crate::config::TopicConfig;
use crate::protocol::batch::{BatchBuilder, EndTxnMarker};
use crate::storage::Verification;

/// A transactional batch that is about to be appended.
#[derive(Debug, Clone, Copy)]
pub struct Verifying {
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub base_sequence: i32,
    /// The client bumps its epoch with each transaction (transaction version 2).
    pub bumps_epoch: bool,
}

/// The end of a producer's transaction in a partition.
#[derive(Debug, Clone, Copy)]
pub struct Ending {
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub marker: EndTxnMarker,
    /// Level of `transaction.version`.
    pub transaction_version: i16,
}

/// Where one marker goes.
struct Target<'a> {
    /// Which one of the request.
    at: usize,
    partition: &'a Arc<Partition>,
    config: &'a TopicConfig,
}

impl Replicas {
    /// What the batch must be appended with. [`Proof::Guard`] of `None`: its transaction is open
    /// here, nobody needs to be asked.
    ///
    /// # Errors
    /// The leader's refusals.
    pub fn begin_verification(
        &self,
        partition: &Partition,
        batch: Verifying,
    ) -> Result<Proof, ReplicaError> {
        let new = Verification {
            guard: self.env().random.next_u64(),
            epoch: batch.producer_epoch,
            lowest_sequence: batch.base_sequence,
            started_ms: self.env().clock.wall_ms(),
            bumps_epoch: batch.bumps_epoch,
        };
        let id = batch.producer_id;
        partition.locked(|state, _| {
            let producers = state.leader_log()?.producers_mut();
            let is_open = producers.has_transaction(id, batch.producer_epoch);
            Ok(Proof::Guard((!is_open).then(|| producers.verify(id, new))))
        })
    }

    /// Appends markers, and waits until they are committed: an outcome for each, in order.
    /// - An error in the place of a partition is answered as it is.
    pub async fn write_markers(
        &self,
        markers: Vec<(Result<Arc<Partition>, ReplicaError>, Ending)>,
        timeout: Duration,
    ) -> Vec<Outcome> {
        let deadline = self.env().clock.deadline_in(timeout);
        let mut acks = Acks::default();
        let markers = markers.into_iter().enumerate();
        let outcomes = markers.map(|(at, (partition, ending))| match partition {
            Ok(partition) => self.write_marker(at, &partition, ending, &mut acks),
            Err(error) => Outcome::refused(error, NO_OFFSET),
        });
        let outcomes = outcomes.collect();
        match acks.wait(self, outcomes, deadline) {
            Ok(wait) => wait.done().await,
            Err(outcomes) => outcomes,
        }
    }

    fn write_marker(
        &self,
        at: usize,
        partition: &Arc<Partition>,
        ending: Ending,
        acks: &mut Acks,
    ) -> Outcome {
        let config = partition.config.load();
        let (outcome, flush, failure) = partition.locked(|state, wakes| {
            let target = Target { at, partition, config: &config };
            let (outcome, failure) = self.append_marker(target, ending, (state, wakes), acks);
            (outcome, state.flush_due(&config), failure)
        });
        self.after_append(partition, flush, failure);
        outcome
    }

    /// Under the partition's lock. The second value: how the directory has failed.
    fn append_marker(
        &self,
        Target { at, partition, config }: Target<'_>,
        ending: Ending,
        (state, wakes): (&mut State, &mut Wakes),
        acks: &mut Acks,
    ) -> (Outcome, Option<String>) {
        let (in_sync, needed) = (state.role.isr.len(), state.in_sync_needed(config));
        let epoch = state.role.epoch;
        let log = match state.leader_log() {
            Ok(_) if in_sync < needed => {
                let few = NotNow::TooFewReplicas { in_sync, needed };
                return (Outcome::refused(few, NO_OFFSET), None);
            }
            Ok(log) => log,
            Err(error) => return (Outcome::refused(error, NO_OFFSET), None),
        };
        let now_ms = self.env().clock.wall_ms();
        let (id, marker) = (ending.producer_id, ending.marker);
        let batch =
            BatchBuilder::marker(log.end_offset(), id, ending.producer_epoch, marker, now_ms);
        let batch = batch.build_checked();
        let version = ending.transaction_version;
        let appended = match log.append_marker(&batch, None, version, epoch, now_ms) {
            Ok(appended) => appended,
            Err(error) => {
                let failure = disk_failed(&error);
                let refused = Outcome::refused(ReplicaError::of_storage(error), NO_OFFSET);
                return (refused, failure);
            }
        };
        let log_start_offset = log.start_offset();
        state.appended(1, appended.rolled);
        partition.advance(state, wakes);
        let wants = Wants::HighWatermark { above: appended.last_offset };
        acks.expect(at, partition, state, wants, config);
        let outcome = Outcome {
            result: Ok(()),
            base_offset: appended.base_offset,
            log_append_time_ms: NO_TIMESTAMP,
            log_start_offset,
        };
        (outcome, None)
    }
}
