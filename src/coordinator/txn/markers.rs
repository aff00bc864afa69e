//! Markers on their way: what is owed at one time goes out together, what could not be written is
//! tried again for as long as this broker leads the partition that owes it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use imbl::OrdSet;
use tokio::sync::Notify;

use super::coordinator::{Shared, TxnCoordinator};
use super::machine::TxnRequest;
use super::types::Markers;
use crate::common::TopicPartition;
use crate::machine::RuntimeState;

/// The pause before another try.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// What is left of each of the markers that were to be written.
pub type MarkersLeft = Vec<OrdSet<TopicPartition>>;

/// Writes markers into partitions, wherever they are led.
pub trait MarkerWriter: Send + Sync + 'static {
    /// The partitions of each that are to be tried again, in order. A partition that is gone, or
    /// whose producer has gone on, is done.
    fn write(&self, markers: Arc<[Markers]>) -> Pin<Box<dyn Future<Output = MarkersLeft> + Send>>;
}

/// Markers that nobody has taken up yet.
#[derive(Default)]
pub struct Owed {
    markers: Mutex<Vec<Markers>>,
    wake: Notify,
}

impl Owed {
    pub fn push(&self, markers: Markers) {
        self.markers.lock().unwrap_or_else(PoisonError::into_inner).push(markers);
        self.wake.notify_one();
    }

    fn take(&self) -> Vec<Markers> {
        std::mem::take(&mut *self.markers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sends what is owed until the coordinator is gone. A slow partition delays only what it is
    /// sent together with.
    pub(super) async fn send(self: Arc<Self>, to: Weak<Shared>, writer: Arc<dyn MarkerWriter>) {
        loop {
            self.wake.notified().await;
            let Some(shared) = to.upgrade() else { return };
            let markers = self.take();
            if !markers.is_empty() {
                let tasks = shared.env.tasks.clone();
                tasks.spawn_data(send(TxnCoordinator { shared }, markers, writer.clone()));
            }
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.owed.wake.notify_one();
    }
}

async fn send(
    coordinator: TxnCoordinator,
    mut markers: Vec<Markers>,
    writer: Arc<dyn MarkerWriter>,
) {
    loop {
        let batch: Arc<[Markers]> = markers.into();
        let left = writer.write(batch.clone()).await;
        markers = Vec::new();
        for (sent, left) in batch.iter().zip(left) {
            let is_written = left.is_empty() && coordinator.is_written(sent).await;
            if !is_written && coordinator.still_owes(sent) {
                markers.push(Markers { partitions: left, ..sent.clone() });
            }
        }
        if markers.is_empty() {
            return;
        }
        coordinator.shared.env.clock.sleep(RETRY_AFTER).await;
    }
}

impl TxnCoordinator {
    /// Completes the transaction; says whether that could be written.
    async fn is_written(&self, markers: &Markers) -> bool {
        let id = &markers.transactional_id;
        let Some(shard) = self.shard(id) else { return false };
        shard.ask(TxnRequest::Written(id.clone(), markers.at)).await.is_ok()
    }

    /// Whether the leader that owed the markers is still the leader: another one sends its own.
    fn still_owes(&self, markers: &Markers) -> bool {
        let Some(shard) = self.shard(&markers.transactional_id) else { return false };
        *shard.state().borrow() == RuntimeState::Leading { epoch: markers.coordinator_epoch }
    }
}
