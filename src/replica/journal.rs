//! A partition as the journal of a coordinator's machine.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::watch;

use super::Replicas;
use super::error::ReplicaError;
use super::partition::{Partition, disk_failed};
use crate::common::{LeaderEpoch, Offset, Proof, TopicPartition};
use crate::machine::{
    Batch, EntryKind, Journal, JournalError, JournalRecord, Leadership, NotReady, Position,
    ProducerFault, ReadEntry, Write,
};
use crate::protocol::batch::{
    BatchBuilder, BatchError, BatchHeader, CheckedBatch, EndTxnMarker, Producer, Record, batches,
    records,
};
use crate::storage::{Appended, ClientFault, Log, StorageError};

/// The journal of the machine that lives on one partition; its runtime is the only writer.
pub struct PartitionJournal {
    replicas: Arc<Replicas>,
    partition: Arc<Partition>,
}

impl PartitionJournal {
    pub fn new(replicas: Arc<Replicas>, partition: Arc<Partition>) -> Self {
        Self { replicas, partition }
    }

    pub fn name(&self) -> TopicPartition {
        self.partition.name()
    }
}

impl Journal for PartitionJournal {
    fn leadership(&self) -> watch::Receiver<Leadership> {
        self.partition.followed().leadership.subscribe()
    }

    fn ready(&self) -> Result<(), NotReady> {
        let config = self.partition.config.load();
        self.partition.locked(|state, _| {
            match state.leader_log() {
                Ok(_) => {}
                Err(ReplicaError::Offline) => return Err(NotReady::Storage),
                Err(_) => return Err(NotReady::NotLeader),
            }
            match state.role.isr.len() < state.in_sync_needed(&config) {
                true => Err(NotReady::TooFewReplicas),
                false => Ok(()),
            }
        })
    }

    fn append(
        &self,
        epoch: i32,
        expected_base: Offset,
        batch: Batch,
    ) -> Result<Offset, JournalError> {
        let now_ms = self.replicas.env().clock.wall_ms();
        let (batch, write) = (encode(expected_base, &batch), batch.write);
        let config = self.partition.config.load();
        let (result, flush, failure) = self.partition.locked(|state, wakes| {
            if !state.role.leads || state.role.epoch != LeaderEpoch(epoch) {
                return (Err(JournalError::NotLeader { asked: epoch }), None, None);
            }
            let Ok(log) = state.log() else {
                return (Err(JournalError::Storage("offline".to_owned())), None, None);
            };
            let epoch = LeaderEpoch(epoch);
            match append(log, &batch, (write, expected_base), epoch, now_ms) {
                Ok(appended) => {
                    let records = i64::from(batch.header.records_count);
                    state.appended(records, appended.rolled);
                    self.partition.advance(state, wakes);
                    (Ok(appended.last_offset + 1), state.flush_due(&config), None)
                }
                Err(StorageError::Moved { expected, found }) => {
                    (Err(JournalError::Moved { expected, found }), None, None)
                }
                Err(error) => match producer_fault(&error) {
                    Some(fault) => (Err(fault.into()), None, None),
                    None => {
                        let failure = disk_failed(&error);
                        (Err(JournalError::Storage(error.to_string())), None, failure)
                    }
                },
            }
        });
        self.replicas.after_append(&self.partition, flush, failure);
        result
    }

    fn committed(&self) -> watch::Receiver<Offset> {
        self.partition.followed().committed.subscribe()
    }

    fn end_offset(&self) -> Offset {
        self.partition.look(|log| log.end_offset()).unwrap_or(0)
    }

    fn start_offset(&self) -> Offset {
        self.partition.look(|log| log.start_offset()).unwrap_or(0)
    }

    fn batch_bytes_max(&self) -> usize {
        let config = self.partition.config.load();
        usize::try_from(config.max_message_bytes).unwrap_or(0)
    }

    fn read(&self, from: Offset, bytes_max: usize) -> Result<Vec<ReadEntry>, JournalError> {
        let mut from = from;
        loop {
            let (found, next) = self.read_from(from, bytes_max)?;
            // A stretch without entries (compacted, or control records only) is not the end.
            if !found.is_empty() || next == from {
                return Ok(found);
            }
            from = next;
        }
    }
}

impl PartitionJournal {
    /// Entries from `from` on, and where the next ones start: at `from` itself at the end.
    fn read_from(
        &self,
        from: Offset,
        bytes_max: usize,
    ) -> Result<(Vec<ReadEntry>, Offset), JournalError> {
        let storage = |error: StorageError| JournalError::Storage(error.to_string());
        let plan = self.partition.locked(|state, _| {
            let offline = |_| JournalError::Storage("offline".to_owned());
            let log = state.log().map_err(offline)?;
            let (from, end) = (from.max(log.start_offset()), log.end_offset());
            if from >= end {
                return Ok(None);
            }
            log.plan_read(from, end).map(Some).map_err(storage)
        })?;
        let Some(plan) = plan else { return Ok((Vec::new(), from)) };
        let slices = plan.locate(bytes_max, true).map_err(|error| storage(error.into()))?;
        let bytes = slices.read().map_err(|error| storage(error.into()))?;
        entries(&bytes, from)
            .map_err(|error| JournalError::Storage(format!("{}: {error}", self.name())))
    }
}

fn append(
    log: &mut Log,
    batch: &CheckedBatch,
    (write, base): (Write, Offset),
    epoch: LeaderEpoch,
    now_ms: i64,
) -> Result<Appended, StorageError> {
    match write {
        Write::Plain => log.append_journal(batch, base, Proof::Unneeded, epoch, now_ms),
        Write::Transactional { proof, .. } => log.append_journal(batch, base, proof, epoch, now_ms),
        Write::Marker { transaction_version, .. } => {
            log.append_marker(batch, Some(base), transaction_version, epoch, now_ms)
        }
    }
}

fn producer_fault(error: &StorageError) -> Option<ProducerFault> {
    let StorageError::Client(fault) = error else { return None };
    match fault {
        ClientFault::StaleEpoch { .. } => Some(ProducerFault::StaleEpoch),
        ClientFault::StaleCoordinator { .. } => Some(ProducerFault::StaleCoordinator),
        ClientFault::NoTransaction { .. } | ClientFault::InsideTransaction { .. } => {
            Some(ProducerFault::NoTransaction)
        }
        ClientFault::OutOfRange { .. }
        | ClientFault::OverSegment { .. }
        | ClientFault::OutOfOrderSequence { .. } => None,
    }
}

fn encode(base_offset: Offset, batch: &Batch) -> CheckedBatch {
    let mut builder = BatchBuilder::new(base_offset);
    let timestamp = batch.timestamp_ms;
    match batch.write {
        Write::Plain => {}
        Write::Transactional { producer_id: id, producer_epoch: epoch, .. } => {
            let producer = Producer { id, epoch, base_sequence: -1, transactional: true };
            builder = builder.producer(producer);
        }
        Write::Marker { producer_id, producer_epoch, commit, coordinator_epoch, .. } => {
            let marker = EndTxnMarker { commit, coordinator_epoch };
            builder =
                BatchBuilder::marker(base_offset, producer_id, producer_epoch, marker, timestamp);
        }
    }
    for record in &batch.records {
        builder.push(timestamp, record.key.as_deref(), record.value.as_deref(), &[]);
    }
    builder.build_checked()
}

/// The records of whole batches in `bytes` from offset `from` on, and the offset after the last
/// batch; one cut short is left out.
fn entries(bytes: &Bytes, from: Offset) -> Result<(Vec<ReadEntry>, Offset), BatchError> {
    let (mut entries, mut next) = (Vec::new(), from);
    for batch in batches(bytes) {
        let (header, batch) = batch?;
        next = header.next_offset();
        for record in records(&batch) {
            let Record { offset, key, value, .. } = record?;
            let Some(kind) = kind_of(&header, &key, &value).filter(|_| offset >= from) else {
                continue;
            };
            let record = (!header.is_control()).then_some(JournalRecord { key, value });
            entries.push(ReadEntry { position: Position(offset), kind, record });
        }
    }
    Ok((entries, next))
}

/// `None`: a control record that ends no transaction.
fn kind_of(header: &BatchHeader, key: &Option<Bytes>, value: &Option<Bytes>) -> Option<EntryKind> {
    let (producer_id, producer_epoch) = (header.producer_id, header.producer_epoch);
    if header.is_control() {
        let marker = EndTxnMarker::parse(key.as_deref()?, value.as_deref()?)?;
        return Some(EntryKind::Marker { producer_id, producer_epoch, commit: marker.commit });
    }
    Some(match header.is_transactional() {
        true => EntryKind::Transactional { producer_id, producer_epoch },
        false => EntryKind::Plain,
    })
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
