//! What a log knows of the producers that wrote to it (KIP-98): the last five batches of each,
//! its epoch, its open transaction. It is decided on before a byte is written and changed after.
//! Invariant: offsets only grow; a producer's epoch never goes back but by a client's fault in a
//! log that came from elsewhere.

use std::collections::BTreeMap;

use super::error::ClientFault;
use crate::common::{NO_TIMESTAMP, Offset, ProducerEpoch, ProducerId, Proof};
use crate::protocol::batch::{BatchHeader, EndTxnMarker};

/// Batches per producer that a retry is recognized by (KIP-98: five requests may be in flight).
pub(super) const BATCHES_KEPT: usize = 5;
const NO_SEQUENCE: i32 = -1;
/// Kafka's "no coordinator epoch".
pub(super) const NO_COORDINATOR: i32 = -1;

/// One batch of a producer, as its retry is recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BatchSeen {
    pub last_sequence: i32,
    pub last_offset: Offset,
    /// Last offset minus first.
    pub offset_delta: i32,
    /// Largest timestamp of the batch, in milliseconds since the Unix epoch.
    pub timestamp: i64,
}

impl BatchSeen {
    fn of(header: &BatchHeader) -> Self {
        Self {
            last_sequence: header.last_sequence(),
            last_offset: header.last_offset(),
            offset_delta: header.last_offset_delta,
            timestamp: header.max_timestamp,
        }
    }

    pub fn base_offset(&self) -> Offset {
        self.last_offset - i64::from(self.offset_delta)
    }

    /// Sequences wrap from 2³¹−1 to 0.
    fn base_sequence(&self) -> i32 {
        match self.last_sequence.checked_sub(self.offset_delta) {
            Some(base) if base >= 0 => base,
            _ => (i64::from(self.last_sequence) - i64::from(self.offset_delta) + (1 << 31)) as i32,
        }
    }
}

/// One producer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Producer {
    pub epoch: ProducerEpoch,
    seen: [BatchSeen; BATCHES_KEPT],
    seen_count: u8,
    /// Epoch of the coordinator that wrote the last marker; -1 before the first.
    pub coordinator_epoch: i32,
    /// Of its last batch or marker.
    pub last_timestamp: i64,
    /// Where its open transaction begins in this log.
    pub txn_first_offset: Option<Offset>,
}

impl Producer {
    pub(super) fn new(epoch: ProducerEpoch) -> Self {
        Self {
            epoch,
            seen: Default::default(),
            seen_count: 0,
            coordinator_epoch: NO_COORDINATOR,
            last_timestamp: NO_TIMESTAMP,
            txn_first_offset: None,
        }
    }

    /// The remembered batches, oldest first.
    pub fn seen(&self) -> &[BatchSeen] {
        &self.seen[..usize::from(self.seen_count)]
    }

    /// Sequence of its last record; -1 when none is known.
    pub fn last_sequence(&self) -> i32 {
        self.seen().last().map_or(NO_SEQUENCE, |batch| batch.last_sequence)
    }

    pub(super) fn remember(&mut self, batch: BatchSeen) {
        if usize::from(self.seen_count) == BATCHES_KEPT {
            self.seen.rotate_left(1);
            self.seen_count -= 1;
        }
        self.seen[usize::from(self.seen_count)] = batch;
        self.seen_count += 1;
    }

    fn enter(&mut self, epoch: ProducerEpoch) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.seen_count = 0;
        }
    }

    fn is_expired(&self, now_ms: i64, expiration_ms: i64) -> bool {
        self.txn_first_offset.is_none() && now_ms - self.last_timestamp >= expiration_ms
    }
}

/// A transaction that is over in this log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedTxn {
    pub producer_id: ProducerId,
    pub first_offset: Offset,
    /// Of the marker.
    pub last_offset: Offset,
    pub committed: bool,
}

/// Who wrote the batch that is about to be appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A producer: sequences must follow.
    Client,
    /// A coordinator on behalf of a producer: it has no sequences.
    Coordinator,
}

/// Proof that a transactional append was verified with its coordinator (KIP-890).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verification {
    /// Distinguishes this verification from an earlier one of the same producer.
    pub guard: u64,
    pub epoch: ProducerEpoch,
    /// No batch with a higher first sequence may come before this one.
    pub lowest_sequence: i32,
    pub started_ms: i64,
    /// The client bumps its epoch with each transaction (transaction version 2).
    pub bumps_epoch: bool,
}

/// The producers of one log.
#[derive(Debug, Default)]
pub struct Producers {
    pub(super) by_id: BTreeMap<ProducerId, Producer>,
    /// First offset → producer, of open transactions.
    ongoing: BTreeMap<Offset, ProducerId>,
    /// First offset → transaction, of ended ones whose marker no high watermark has passed.
    unreplicated: BTreeMap<Offset, EndedTxn>,
    pub(super) verifying: BTreeMap<ProducerId, Verification>,
    /// The offset after the last batch that is counted in.
    pub(super) end_offset: Offset,
    /// Of the newest snapshot file.
    pub(super) snapshot_offset: Offset,
}

impl Producers {
    pub(super) fn at(end_offset: Offset) -> Self {
        Self { end_offset, snapshot_offset: end_offset, ..Self::default() }
    }

    pub fn get(&self, id: ProducerId) -> Option<&Producer> {
        self.by_id.get(&id)
    }

    /// By producer id.
    pub fn iter(&self) -> impl Iterator<Item = (ProducerId, &Producer)> {
        self.by_id.iter().map(|(id, producer)| (*id, producer))
    }

    /// The batch that `header` is a retry of, if it is one of the last five (C001).
    pub(super) fn retry_of(&self, header: &BatchHeader) -> Option<BatchSeen> {
        let producer = self.by_id.get(&header.producer_id)?;
        let same = |batch: &&BatchSeen| {
            batch.base_sequence() == header.base_sequence
                && batch.last_sequence == header.last_sequence()
        };
        let current = header.producer_epoch == producer.epoch;
        current.then(|| producer.seen().iter().find(same).copied()).flatten()
    }

    /// Judges a data batch before it is written; Kafka's order.
    ///
    /// # Errors
    /// [`ClientFault::NoTransaction`], [`ClientFault::StaleEpoch`],
    /// [`ClientFault::OutOfOrderSequence`], [`ClientFault::InsideTransaction`].
    pub(super) fn check(
        &self,
        header: &BatchHeader,
        origin: Origin,
        proof: Proof,
    ) -> Result<(), ClientFault> {
        let (producer_id, sent_epoch) = (header.producer_id, header.producer_epoch);
        let known = self.by_id.get(&producer_id);
        if header.is_transactional() && !self.is_proven(producer_id, sent_epoch, proof) {
            return Err(ClientFault::NoTransaction { producer_id });
        }
        if let Some(current) = known.map(|producer| producer.epoch).filter(|e| sent_epoch < *e) {
            return Err(ClientFault::StaleEpoch { producer_id, sent: sent_epoch, current });
        }
        if origin == Origin::Client {
            self.check_sequence(header, known)?;
        }
        let inside = known.is_some_and(|producer| producer.txn_first_offset.is_some());
        if inside && !header.is_transactional() {
            return Err(ClientFault::InsideTransaction { producer_id });
        }
        Ok(())
    }

    /// Whether the producer has a transaction open in this log, in this epoch.
    pub fn has_transaction(&self, id: ProducerId, epoch: ProducerEpoch) -> bool {
        let producer = self.by_id.get(&id);
        producer.is_some_and(|known| known.epoch == epoch && known.txn_first_offset.is_some())
    }

    /// Whether a transactional batch belongs to an open transaction: one that has begun here, or
    /// one that was verified, which no marker has ended since.
    fn is_proven(&self, id: ProducerId, epoch: ProducerEpoch, proof: Proof) -> bool {
        match proof {
            Proof::Unneeded => true,
            Proof::Guard(_) if self.has_transaction(id, epoch) => true,
            Proof::Guard(guard) => {
                guard.is_some() && guard == self.verifying.get(&id).map(|held| held.guard)
            }
        }
    }

    fn check_sequence(
        &self,
        header: &BatchHeader,
        known: Option<&Producer>,
    ) -> Result<(), ClientFault> {
        let (producer_id, epoch) = (header.producer_id, header.producer_epoch);
        let sent = header.base_sequence;
        let refuse = |last| Err(ClientFault::OutOfOrderSequence { producer_id, epoch, sent, last });
        let verifying = self.verifying.get(&producer_id).filter(|v| v.epoch == epoch);
        if let Some(verifying) = verifying {
            let too_early = sent > verifying.lowest_sequence;
            let not_first = verifying.bumps_epoch && known.is_none() && sent != 0;
            if too_early || not_first {
                return refuse(NO_SEQUENCE);
            }
        }
        // Without a state any sequence may come: it expired, or its records were deleted (C003).
        let Some(producer) = known.filter(|producer| producer.epoch.0 >= 0) else { return Ok(()) };
        let last = match producer.epoch == epoch {
            true => producer.last_sequence(),
            false => NO_SEQUENCE,
        };
        let next = if last == i32::MAX { 0 } else { last + 1 };
        if sent == next { Ok(()) } else { refuse(last) }
    }

    /// Judges a transaction marker before it is written. From version 2 of transactions on the
    /// epoch goes up with each of them, so that a late marker is told from the next transaction's;
    /// one that is written again, with nothing open, does no harm (KIP-890).
    ///
    /// # Errors
    /// [`ClientFault::StaleEpoch`], [`ClientFault::StaleCoordinator`].
    pub(super) fn check_marker(
        &self,
        header: &BatchHeader,
        marker: EndTxnMarker,
        transaction_version: i16,
    ) -> Result<(), ClientFault> {
        let (producer_id, sent_epoch) = (header.producer_id, header.producer_epoch);
        let Some(known) = self.by_id.get(&producer_id) else { return Ok(()) };
        let is_open = known.txn_first_offset.is_some();
        let is_late = transaction_version >= 2 && sent_epoch == known.epoch && is_open;
        if sent_epoch < known.epoch || is_late {
            let (sent, current) = (sent_epoch, known.epoch);
            return Err(ClientFault::StaleEpoch { producer_id, sent, current });
        }
        let (sent, current) = (marker.coordinator_epoch, known.coordinator_epoch);
        if sent < current {
            return Err(ClientFault::StaleCoordinator { producer_id, sent, current });
        }
        Ok(())
    }

    /// Counts in a batch that is in the log; `marker` for a control batch that is one. Returns the
    /// transaction that the marker ended, and the last stable offset that follows.
    pub(super) fn apply(
        &mut self,
        header: &BatchHeader,
        marker: Option<EndTxnMarker>,
    ) -> Option<(EndedTxn, Offset)> {
        self.end_offset = header.next_offset();
        if !header.has_producer_id() {
            return None;
        }
        let producer_id = header.producer_id;
        let epoch = header.producer_epoch;
        let producer = self.by_id.entry(producer_id).or_insert_with(|| Producer::new(epoch));
        if let Some(marker) = marker {
            producer.enter(header.producer_epoch);
            self.verifying.remove(&producer_id);
            producer.coordinator_epoch = marker.coordinator_epoch;
            producer.last_timestamp = header.max_timestamp;
            let first_offset = producer.txn_first_offset.take()?;
            let (last_offset, committed) = (header.last_offset(), marker.commit);
            return Some(self.end(EndedTxn { producer_id, first_offset, last_offset, committed }));
        }
        if header.is_control() {
            return None;
        }
        producer.enter(header.producer_epoch);
        producer.remember(BatchSeen::of(header));
        producer.last_timestamp = header.max_timestamp;
        if header.is_transactional() && producer.txn_first_offset.is_none() {
            producer.txn_first_offset = Some(header.base_offset);
            self.ongoing.insert(header.base_offset, producer_id);
            self.verifying.remove(&producer_id);
        }
        None
    }

    fn end(&mut self, ended: EndedTxn) -> (EndedTxn, Offset) {
        self.ongoing.remove(&ended.first_offset);
        self.unreplicated.insert(ended.first_offset, ended);
        let after = ended.last_offset + 1;
        (ended, self.ongoing.keys().next().copied().unwrap_or(after))
    }

    /// The first offset whose transaction is open, or ended by a marker at or above
    /// `high_watermark`; what the high watermark has passed is forgotten.
    pub(super) fn first_unstable_offset(&mut self, high_watermark: Offset) -> Option<Offset> {
        self.unreplicated.retain(|_, ended| ended.last_offset >= high_watermark);
        let first = |offsets: Option<&Offset>| offsets.copied();
        let ongoing = first(self.ongoing.keys().next());
        let unreplicated = first(self.unreplicated.keys().next());
        ongoing.into_iter().chain(unreplicated).min()
    }

    /// Notes that a transactional append of this producer is being verified (KIP-890); a second
    /// one shares the guard.
    pub fn verify(&mut self, id: ProducerId, new: Verification) -> u64 {
        let held = self.verifying.entry(id).or_insert(new);
        if held.epoch != new.epoch {
            *held = new;
        }
        held.lowest_sequence = held.lowest_sequence.min(new.lowest_sequence);
        held.guard
    }

    /// Puts in what a snapshot holds.
    pub(super) fn restore(&mut self, id: ProducerId, producer: Producer) {
        if let Some(first_offset) = producer.txn_first_offset {
            self.ongoing.insert(first_offset, id);
        }
        self.by_id.insert(id, producer);
    }

    /// Takes over the batches of each producer whose last one `tail` knows too.
    pub(super) fn recall(&mut self, tail: &Self) {
        for (id, producer) in &mut self.by_id {
            let Some(read) = tail.by_id.get(id) else { continue };
            if read.epoch == producer.epoch && read.seen().last() == producer.seen().last() {
                (producer.seen, producer.seen_count) = (read.seen, read.seen_count);
            }
        }
    }

    /// Forgets producers without an open transaction that wrote nothing for `expiration_ms`
    /// (`producer.id.expiration.ms`), and verifications that began as long ago.
    pub(super) fn expire(&mut self, now_ms: i64, expiration_ms: i64) {
        self.by_id.retain(|_, producer| !producer.is_expired(now_ms, expiration_ms));
        self.verifying.retain(|_, v| now_ms - v.started_ms < expiration_ms);
    }

    /// The log start moved: ended transactions below it no longer matter.
    pub(super) fn forget_below(&mut self, log_start_offset: Offset) {
        self.unreplicated.retain(|_, ended| ended.last_offset >= log_start_offset);
    }
}

#[cfg(test)]
#[path = "producer_state_tests.rs"]
mod tests;
