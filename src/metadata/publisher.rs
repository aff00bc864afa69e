//! The way of committed records into this broker: applied to the image, told to the
//! subscribers in order, then shown to readers.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, Guard};
use tokio::sync::watch;

use super::delta::Delta;
use super::image::Image;
use crate::common::Offset;
use crate::machine::{CommitSink, JournalRecord, ReadEntry, Record};
use crate::protocol::records::metadata::MetadataRecord;

/// Lives by the metadata; called under the publisher's lock, so it must not wait for long and
/// must not publish. What needs time it starts and leaves to a task of its own.
pub trait Subscriber: Send + Sync + 'static {
    /// One step. Readers of [`Publisher::image`] see `delta.after` when all subscribers have.
    fn publish(&self, delta: &Delta);
}

impl<F: Fn(&Delta) + Send + Sync + 'static> Subscriber for F {
    fn publish(&self, delta: &Delta) {
        self(delta);
    }
}

/// A record of the metadata log that this version cannot read. The node must stop: what it does
/// not understand it cannot serve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("metadata record at offset {offset}: {reason}")]
pub struct PublishError {
    pub offset: Offset,
    pub reason: String,
}

/// Holds this broker's image.
pub struct Publisher {
    image: ArcSwap<Image>,
    applied: watch::Sender<Offset>,
    failure: watch::Sender<Option<PublishError>>,
    subscribers: Mutex<Vec<Box<dyn Subscriber>>>,
}

impl Default for Publisher {
    fn default() -> Self {
        Self::new()
    }
}

impl Publisher {
    /// Empty, at offset 0, without subscribers.
    pub fn new() -> Self {
        Self {
            image: ArcSwap::default(),
            applied: watch::Sender::new(0),
            failure: watch::Sender::default(),
            subscribers: Mutex::default(),
        }
    }

    /// Adds `subscriber` behind the ones already there. It is called at once with the way from
    /// an empty image to the present one, so that nobody depends on when it came.
    pub fn subscribe(&self, subscriber: impl Subscriber) {
        let mut subscribers = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.image.load_full();
        if now.end_offset > 0 {
            subscriber.publish(&Delta::between(Arc::default(), now));
        }
        subscribers.push(Box::new(subscriber));
    }

    /// Applies committed entries, in order and without gaps; those already applied are skipped,
    /// so that a log read again after a snapshot does no harm.
    ///
    /// # Errors
    /// [`PublishError`]; nothing is published then.
    pub fn publish(&self, entries: &[ReadEntry]) -> Result<(), PublishError> {
        let subscribers = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.image.load_full();
        let mut after = (*before).clone();
        for entry in entries {
            if entry.position.0 < after.end_offset {
                continue;
            }
            crate::invariant!(
                entry.position.0 == after.end_offset,
                "gap: {:?} after {}",
                entry.position,
                after.end_offset
            );
            match entry.record.as_ref().map(|record| decoded(record, entry.position.0)) {
                Some(Ok(Some(record))) => after.apply(&record, entry.position),
                Some(Err(error)) => return Err(error),
                Some(Ok(None)) | None => after.end_offset = entry.position.0 + 1,
            }
        }
        self.show(&subscribers, before, after);
        Ok(())
    }

    /// Replaces the image by the snapshot's, whose records stand for everything before
    /// `end_offset`; subscribers see the difference to what they had.
    ///
    /// # Errors
    /// [`PublishError`]; nothing is published then.
    pub fn replace(
        &self,
        end_offset: Offset,
        records: &[JournalRecord],
    ) -> Result<(), PublishError> {
        let subscribers = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut after = Image::default();
        for record in records {
            if let Some(record) = decoded(record, end_offset)? {
                after.apply_unplaced(&record);
            }
        }
        after.end_offset = end_offset;
        self.show(&subscribers, self.image.load_full(), after);
        Ok(())
    }

    /// The image now, kept alive by the caller.
    pub fn image(&self) -> Arc<Image> {
        self.image.load_full()
    }

    /// The image now, for a short look without counting a reference.
    pub fn look(&self) -> Guard<Arc<Image>> {
        self.image.load()
    }

    /// The first offset not applied; it moves after image and subscribers did.
    pub fn applied(&self) -> watch::Receiver<Offset> {
        self.applied.subscribe()
    }

    /// Set once the metadata log held what this version cannot read. The image stays as it was
    /// before; the node must not begin, or go on, to serve.
    pub fn failure(&self) -> watch::Receiver<Option<PublishError>> {
        self.failure.subscribe()
    }

    fn unless_failed(&self, step: impl FnOnce() -> Result<(), PublishError>) {
        if self.failure.borrow().is_none()
            && let Err(error) = step()
        {
            tracing::error!(%error, "metadata cannot be read");
            self.failure.send_replace(Some(error));
        }
    }

    fn show(&self, subscribers: &[Box<dyn Subscriber>], before: Arc<Image>, after: Image) {
        if before.end_offset == after.end_offset {
            return;
        }
        let delta = Delta::between(before, Arc::new(after));
        subscribers.iter().for_each(|subscriber| subscriber.publish(&delta));
        let end_offset = delta.after.end_offset;
        self.image.store(delta.after);
        self.applied.send_replace(end_offset);
    }
}

impl CommitSink for Publisher {
    fn committed(&self, entries: &[ReadEntry]) {
        self.unless_failed(|| self.publish(entries));
    }

    fn snapshot(&self) -> Vec<JournalRecord> {
        self.look().to_records().map(|record| Record::encode(&record)).collect()
    }

    fn install(&self, records: &[JournalRecord], end: Offset) {
        self.unless_failed(|| self.replace(end, records));
    }
}

fn decoded(record: &JournalRecord, offset: Offset) -> Result<Option<MetadataRecord>, PublishError> {
    let decoded = <MetadataRecord as Record>::decode(record);
    decoded.map_err(|reason| PublishError { offset, reason })
}

/// For tests of what follows: an image of `records` at offsets from 0.
#[cfg(test)]
pub(crate) fn image_of(records: &[MetadataRecord]) -> Image {
    let mut image = Image::default();
    for (at, record) in records.iter().enumerate() {
        image.apply(record, crate::machine::Position(at as Offset));
    }
    image
}
