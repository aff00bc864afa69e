//! Produce: batches checked and appended where the caller stands, acknowledgements awaited after.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::acks::{Acks, AcksWait};
use super::error::{NotNow, Refusal, ReplicaError};
use super::flusher::Until;
use super::partition::{Partition, State, disk_failed, flushes_each};
use super::replicas::Replicas;
use super::topics::Topic;
use super::waiters::{Wakes, Wants};
use crate::common::{NO_OFFSET, NO_TIMESTAMP, Offset, Proof};
use crate::config::{CompressionType, TimestampType, TopicConfig};
use crate::protocol::batch::{
    self, BatchError, BatchHeader, CheckedBatch, Codec, Compression, Invalid, Rules, check,
    is_heavy, shape,
};

/// A Produce request.
pub struct ProduceAsk {
    /// As sent: -1 all in-sync replicas, 1 the leader, 0 nobody answers.
    pub acks: i16,
    pub timeout: Duration,
    pub version: i16,
    /// The client may write to internal topics.
    pub internal_allowed: bool,
    pub parts: Vec<ToProduce>,
}

/// One partition of it.
pub struct ToProduce {
    /// `Err`: answered as it is.
    pub topic: Result<Arc<Topic>, ReplicaError>,
    pub partition: i32,
    /// As sent; empty for null.
    pub records: Bytes,
    /// Of a transactional batch.
    pub proof: Proof,
}

/// What one partition is answered.
#[derive(Debug)]
pub struct Outcome {
    pub result: Result<(), ReplicaError>,
    /// -1 where nothing was appended.
    pub base_offset: Offset,
    /// The broker's time, where the topic has LogAppendTime; of a retry the batch's time.
    pub log_append_time_ms: i64,
    /// -1 where Kafka does not tell it.
    pub log_start_offset: Offset,
}

impl Outcome {
    pub(super) fn refused(error: impl Into<ReplicaError>, log_start_offset: Offset) -> Self {
        Self {
            result: Err(error.into()),
            base_offset: NO_OFFSET,
            log_append_time_ms: NO_TIMESTAMP,
            log_start_offset,
        }
    }
}

/// A Produce whose appends are done.
pub enum Produced {
    /// One outcome per asked partition, in order.
    Done(Vec<Outcome>),
    /// Some partitions are not acknowledged yet; the next request may start.
    Waiting(AcksWait),
}

enum Prepared {
    /// To be checked where it is appended.
    Shaped(Bytes),
    Checked(Result<CheckedBatch, BatchError>),
}

impl Replicas {
    /// Appends to all partitions that take it. Resolves at its first poll, unless a compressed
    /// batch of more than 1 MiB has to be checked on the blocking pool.
    pub async fn produce(&self, ask: ProduceAsk) -> Produced {
        let unreadable = |part: &ToProduce| match shape(&part.records, ask.version) {
            Err(error @ BatchError::Unreadable(_)) => Some(error),
            _ => None,
        };
        if let Some(error) = ask.parts.iter().find_map(unreadable) {
            let refused = |_: &ToProduce| Outcome::refused(error.clone(), NO_OFFSET);
            return Produced::Done(ask.parts.iter().map(refused).collect());
        }
        let deadline = self.env().clock.deadline_in(ask.timeout);
        let mut heavy = Vec::new();
        for (at, part) in ask.parts.iter().enumerate() {
            heavy.extend(self.check_if_heavy(&ask, part).await.map(|checked| (at, checked)));
        }
        let now_ms = self.env().clock.wall_ms();
        let mut run = Run { replicas: self, ask: &ask, now_ms, acks: Acks::default() };
        let mut outcomes = Vec::with_capacity(ask.parts.len());
        let mut heavy = heavy.into_iter().peekable();
        for (at, part) in ask.parts.iter().enumerate() {
            let checked = heavy.next_if(|(of, _)| *of == at).map(|(_, checked)| checked);
            outcomes.push(run.one(at, part, checked));
        }
        match run.acks.wait(self, outcomes, deadline) {
            Ok(wait) => Produced::Waiting(wait),
            Err(outcomes) => Produced::Done(outcomes),
        }
    }

    async fn check_if_heavy(
        &self,
        ask: &ProduceAsk,
        part: &ToProduce,
    ) -> Option<Result<CheckedBatch, BatchError>> {
        if part.records.len() <= batch::HEAVY_BYTES {
            return None;
        }
        let topic = part.topic.as_ref().ok()?;
        let bytes = shape(&part.records, ask.version).ok()?;
        let header = BatchHeader::parse(&bytes).ok()?;
        let rules = rules(&topic.config.load(), self.env().clock.wall_ms());
        if !is_heavy(&bytes, &header, &rules) {
            return None;
        }
        let work = self.env().tasks.spawn_blocking(move || check(&bytes, &rules));
        let panicked = |error| Err(BatchError::Undecodable(format!("{error}")));
        Some(work.await.unwrap_or_else(panicked))
    }
}

/// One request on its way through its partitions.
struct Run<'a> {
    replicas: &'a Replicas,
    ask: &'a ProduceAsk,
    now_ms: i64,
    acks: Acks,
}

/// Where one batch goes.
struct Target<'a> {
    /// Which partition of the request.
    at: usize,
    partition: &'a Arc<Partition>,
    config: &'a TopicConfig,
    proof: Proof,
}

impl Run<'_> {
    fn one(
        &mut self,
        at: usize,
        part: &ToProduce,
        checked: Option<Result<CheckedBatch, BatchError>>,
    ) -> Outcome {
        let topic = match &part.topic {
            Ok(topic) => topic,
            Err(ReplicaError::Client(refusal)) => {
                return Outcome::refused(refusal.clone(), NO_OFFSET);
            }
            Err(ReplicaError::NotNow(not_now)) => return Outcome::refused(*not_now, NO_OFFSET),
            Err(ReplicaError::Offline | ReplicaError::Damaged) => {
                return Outcome::refused(ReplicaError::Offline, NO_OFFSET);
            }
        };
        topic.counters.produce_requests.inc();
        self.known(at, topic, part, checked)
    }

    /// Kafka's order: existence, shape, acks, internal topics, leadership, then the batch.
    fn known(
        &mut self,
        at: usize,
        topic: &Arc<Topic>,
        part: &ToProduce,
        checked: Option<Result<CheckedBatch, BatchError>>,
    ) -> Outcome {
        let partition = topic.partition(part.partition);
        if matches!(partition, Err(ReplicaError::NotNow(NotNow::UnknownPartition))) {
            return Outcome::refused(NotNow::UnknownPartition, NO_OFFSET);
        }
        let prepared = match (checked, shape(&part.records, self.ask.version)) {
            (Some(checked), _) => Prepared::Checked(checked),
            (None, Ok(bytes)) => Prepared::Shaped(bytes),
            (None, Err(error)) => return Outcome::refused(error, NO_OFFSET),
        };
        if !(-1..=1).contains(&self.ask.acks) {
            return Outcome::refused(Refusal::Acks(self.ask.acks), NO_OFFSET);
        }
        if topic.is_internal && !self.ask.internal_allowed {
            return Outcome::refused(Refusal::InternalTopic, NO_OFFSET);
        }
        let partition = match partition {
            Ok(partition) => partition,
            Err(error) => return Outcome::refused(error, NO_OFFSET),
        };
        let config = topic.config.load();
        let checked = match prepared {
            Prepared::Checked(checked) => checked,
            Prepared::Shaped(bytes) => check(&bytes, &rules(&config, self.now_ms)),
        };
        let (outcome, flush, failure) = partition.locked(|state, wakes| {
            let (config, proof) = (&config, part.proof);
            let target = Target { at, partition: &partition, config, proof };
            let (outcome, failure) = self.append(target, state, wakes, &checked);
            (outcome, state.flush_due(config), failure)
        });
        self.replicas.after_append(&partition, flush, failure);
        self.count(topic, &checked, &outcome);
        outcome
    }

    fn count(&self, topic: &Topic, checked: &Result<CheckedBatch, BatchError>, outcome: &Outcome) {
        match checked {
            Ok(batch) if outcome.result.is_ok() => {
                topic.counters.messages_in.inc_by(batch.header.records_count as u64);
                topic.counters.bytes_in.inc_by(batch.bytes.len() as u64);
            }
            Ok(_) => {}
            Err(error) => self.count_refused(error),
        }
    }

    fn count_refused(&self, error: &BatchError) {
        let metrics = self.replicas.metrics();
        match error {
            BatchError::TooLarge { size_bytes, .. } => {
                metrics.bytes_rejected.inc_by(*size_bytes as u64);
            }
            BatchError::Corrupt { .. } => metrics.invalid_crc.inc(),
            BatchError::Records(faults) => {
                let keyless = faults.iter().filter(|fault| !fault.is_timestamp()).count();
                metrics.no_key_compacted.inc_by(keyless as u64);
            }
            BatchError::Invalid(Invalid::Magic(_)) | BatchError::Unreadable(_) => {
                metrics.invalid_magic.inc();
            }
            BatchError::Invalid(_) => metrics.invalid_sequence.inc(),
            BatchError::ZstdTooEarly { .. }
            | BatchError::Undecodable(_)
            | BatchError::UnknownCodec(_) => {}
        }
    }

    /// Under the partition's lock. The second value: how the directory has failed.
    fn append(
        &mut self,
        Target { at, partition, config, proof }: Target<'_>,
        state: &mut State,
        wakes: &mut Wakes,
        checked: &Result<CheckedBatch, BatchError>,
    ) -> (Outcome, Option<String>) {
        let (in_sync, needed) = (state.role.isr.len(), state.in_sync_needed(config));
        let epoch = state.role.epoch;
        let log = match state.leader_log() {
            Ok(log) => log,
            Err(error) => return (Outcome::refused(error, NO_OFFSET), None),
        };
        let log_start_offset = log.start_offset();
        let all = self.ask.acks == -1;
        if all && in_sync < needed {
            let few = NotNow::TooFewReplicas { in_sync, needed };
            return (Outcome::refused(few, log_start_offset), None);
        }
        let batch = match checked {
            Ok(batch) => batch,
            Err(error) => return (refused_batch(error, log_start_offset), None),
        };
        let append_time = append_time(config, self.now_ms);
        let appended = match log.append(batch, proof, epoch, self.now_ms, append_time) {
            Ok(appended) => appended,
            Err(error) => {
                let failure = disk_failed(&error);
                let known = matches!(
                    &error,
                    crate::storage::StorageError::Client(fault) if !over_segment(fault)
                );
                let told = if known { log_start_offset } else { NO_OFFSET };
                return (Outcome::refused(ReplicaError::of_storage(error), told), failure);
            }
        };
        let records = i64::from(batch.header.records_count);
        state.appended(records, appended.rolled);
        partition.advance(state, wakes);
        let above = appended.last_offset;
        let wants = match self.ask.acks {
            0 => None,
            1 => flushes_each(config).then_some(Wants::Durable { above }),
            _ => Some(Wants::HighWatermark { above }),
        };
        if let Some(wants) = wants {
            self.acks.expect(at, partition, state, wants, config);
        }
        let outcome = Outcome {
            result: Ok(()),
            base_offset: appended.base_offset,
            log_append_time_ms: appended.log_append_time,
            log_start_offset,
        };
        (outcome, None)
    }
}

impl State {
    pub(super) fn appended(&mut self, records: i64, rolled: bool) {
        self.unflushed_records = self.unflushed_records.saturating_add(records);
        self.rolled |= rolled;
    }

    /// What is to be flushed now: all, when as many records wait for the disk as `flush.messages`
    /// allows; else a segment that was just sealed.
    pub(super) fn flush_due(&mut self, config: &TopicConfig) -> Option<Until> {
        let rolled = std::mem::take(&mut self.rolled);
        if self.unflushed_records >= config.flush_messages.max(1) {
            self.unflushed_records = 0;
            return Some(Until::End);
        }
        rolled.then_some(Until::Rolled)
    }
}

fn over_segment(fault: &crate::storage::ClientFault) -> bool {
    matches!(fault, crate::storage::ClientFault::OverSegment { .. })
}

/// Kafka tells the log start of some refusals only.
fn refused_batch(error: &BatchError, log_start_offset: Offset) -> Outcome {
    let told = match error {
        BatchError::TooLarge { .. } | BatchError::Corrupt { .. } => NO_OFFSET,
        _ => log_start_offset,
    };
    Outcome::refused(error.clone(), told)
}

/// What the topic asks of a batch.
fn rules(config: &TopicConfig, now_ms: i64) -> Rules {
    Rules {
        max_bytes: usize::try_from(config.max_message_bytes).unwrap_or(0),
        max_record_bytes: config.max_decompressed_message_bytes,
        compacted: config.cleanup_policy.compact,
        timestamp_type: match config.message_timestamp_type {
            TimestampType::CreateTime => batch::TimestampType::CreateTime,
            TimestampType::LogAppendTime => batch::TimestampType::LogAppendTime,
        },
        before_max_ms: config.message_timestamp_before_max_ms,
        after_max_ms: config.message_timestamp_after_max_ms,
        now_ms,
        codec: codec(config),
    }
}

fn append_time(config: &TopicConfig, now_ms: i64) -> Option<i64> {
    (config.message_timestamp_type == TimestampType::LogAppendTime).then_some(now_ms)
}

fn codec(config: &TopicConfig) -> Option<Codec> {
    let (compression, level) = match config.compression_type {
        CompressionType::Producer => return None,
        CompressionType::Uncompressed => (Compression::None, 0),
        CompressionType::Gzip => (Compression::Gzip, config.compression_gzip_level),
        CompressionType::Snappy => (Compression::Snappy, 0),
        CompressionType::Lz4 => (Compression::Lz4, config.compression_lz4_level),
        CompressionType::Zstd => (Compression::Zstd, config.compression_zstd_level),
    };
    Some(Codec { compression, level })
}

#[cfg(test)]
#[path = "produce_tests.rs"]
mod tests;
