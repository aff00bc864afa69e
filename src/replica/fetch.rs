//! Fetch: one planner, which says what to answer now and what to wait for. A plan holds slices of
//! segment files, to be read into a buffer or sent from the file. KIP-74 bounds it: the first
//! batch of the first partition that has any is always whole, then the limits hold.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::error::{NotNow, Refusal, ReplicaError};
use super::partition::{Partition, State, Waiting, disk_failed, last_stable};
use super::replicas::{Counted, Replicas};
use super::topics::TopicRef;
use super::waiters::Wants;
use crate::common::{LeaderEpoch, Offset};
use crate::env::Instant;
use crate::storage::{AbortedTxn, DiskError, LogSlices, ReadPlan};

/// What a consumer may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Up to the high watermark.
    ReadUncommitted,
    /// Up to the last stable offset, with the aborted transactions named.
    ReadCommitted,
}

impl Isolation {
    /// By the number of requests; `None`: Kafka knows no other either.
    pub fn from_number(number: i8) -> Option<Self> {
        match number {
            0 => Some(Self::ReadUncommitted),
            1 => Some(Self::ReadCommitted),
            _ => None,
        }
    }
}

/// A Fetch, with the partitions of its session.
pub struct FetchAsk {
    pub isolation: Isolation,
    pub max_wait: Duration,
    pub min_bytes: i32,
    pub max_bytes: i32,
    /// Topics are named by id (v13 and later).
    pub by_topic_id: bool,
    pub parts: Vec<Asked>,
}

/// One partition of it.
#[derive(Debug, Clone)]
pub struct Asked {
    pub topic: TopicRef,
    pub partition: i32,
    pub fetch_offset: Offset,
    pub bytes_max: i32,
    /// `None`: the client does not know.
    pub current_leader_epoch: Option<LeaderEpoch>,
    /// Of the record before `fetch_offset` (KIP-595); `None`: the client does not know.
    pub last_fetched_epoch: Option<LeaderEpoch>,
}

impl Asked {
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.partition == other.partition && self.topic.is_same(&other.topic)
    }
}

/// What to answer: one entry per asked partition, in order.
pub struct FetchAnswer {
    pub parts: Vec<PartFetched>,
}

/// The answer of one partition.
pub struct PartFetched {
    pub topic: TopicRef,
    pub partition: i32,
    pub outcome: Result<PartRead, ReplicaError>,
}

/// What there is to read; nothing of it is in memory yet.
#[derive(Debug)]
pub struct PartRead {
    pub high_watermark: Offset,
    pub last_stable_offset: Offset,
    pub log_start_offset: Offset,
    /// For [`Isolation::ReadCommitted`] only.
    pub aborted: Option<Vec<AbortedTxn>>,
    /// The client's log left the leader's before `fetch_offset`: the largest epoch both have, and
    /// its end (KIP-320). No records then.
    pub diverging: Option<(LeaderEpoch, Offset)>,
    /// `None`: no records. Whole batches from the one that holds `fetch_offset` on; the last one
    /// may be cut short.
    pub slices: Option<LogSlices>,
    /// Further from the end than what was written lately: reading may wait for the disk.
    pub is_cold: bool,
}

impl PartRead {
    pub fn size_bytes(&self) -> usize {
        self.slices.as_ref().map_or(0, LogSlices::size_bytes)
    }
}

impl FetchAnswer {
    /// Bytes of records in it.
    pub fn size_bytes(&self) -> usize {
        let size = |part: &PartFetched| part.outcome.as_ref().map_or(0, PartRead::size_bytes);
        self.parts.iter().map(size).sum()
    }
}

/// Bytes from a log's end that are taken to be in the page cache.
const WARM_BYTES: u64 = 8 << 20;

/// Looks of a reader, when what it found is deleted each time before it is read.
const LOOKS_MAX: usize = 4;

/// One look at all partitions.
struct Plan {
    answer: FetchAnswer,
    bytes: usize,
    /// A partition that exists says no, or the client's log left ours: it is told at once.
    tell_now: bool,
    /// Partitions that are there to wait for.
    known: usize,
    ahead: Ahead,
}

/// What partitions have, whatever the limits of the answer let through of it: a fetch that waits
/// is judged by this, as in Kafka.
#[derive(Clone, Copy, Default)]
struct Ahead {
    /// At most the partition's own limit of each.
    bytes: usize,
    /// One is read from a segment that is no longer the newest.
    is_behind: bool,
}

/// What may be read of a partition.
#[derive(Clone, Copy)]
struct Limit {
    bytes: i32,
    /// The first batch comes whole, whatever its size.
    at_least_one: bool,
}

/// Who is told when a partition moves on; registered with each until dropped.
struct Waiter {
    notify: Arc<Notify>,
    places: Vec<Waiting>,
}

impl Replicas {
    /// Answers when `min_bytes` are there, when a partition says no, or after `max_wait`. Dropping
    /// the future gives the waiting up.
    pub async fn fetch(&self, mut ask: FetchAsk) -> FetchAnswer {
        for part in &mut ask.parts {
            self.resolve(&mut part.topic, ask.by_topic_id);
            if let TopicRef::Known(topic) = &part.topic {
                topic.counters.fetch_requests.inc();
            }
        }
        ask.max_bytes = ask.max_bytes.min(self.fetch_bytes_max());
        ask.min_bytes = ask.min_bytes.min(ask.max_bytes);
        let deadline = self.env().clock.deadline_in(ask.max_wait);
        let plan = self.plan(&ask, None);
        let answer = match ask.max_wait.is_zero() || plan.is_enough(&ask) {
            true => plan.answer,
            false => {
                drop(plan);
                self.wait(&ask, deadline).await
            }
        };
        self.count_fetched(&answer);
        answer
    }

    async fn wait(&self, ask: &FetchAsk, deadline: Instant) -> FetchAnswer {
        let _counted = Counted::one(&self.waiting.fetch);
        let mut waiter = Waiter { notify: Arc::default(), places: Vec::new() };
        let mut plan = self.plan(ask, Some(&mut waiter));
        let known = plan.known;
        while !plan.is_enough_for_waiter(ask, known) {
            // Not kept while waiting: it holds segment files.
            drop(plan);
            let woken = self.env().clock.until(deadline, waiter.notify.notified()).await;
            plan = self.plan(ask, None);
            if woken.is_none() {
                break;
            }
        }
        plan.answer
    }

    fn plan(&self, ask: &FetchAsk, mut waiter: Option<&mut Waiter>) -> Plan {
        let mut plan = Plan {
            answer: FetchAnswer { parts: Vec::with_capacity(ask.parts.len()) },
            bytes: 0,
            tell_now: false,
            known: 0,
            ahead: Ahead::default(),
        };
        let mut left = ask.max_bytes;
        for part in &ask.parts {
            let found = match &part.topic {
                TopicRef::Known(topic) if !topic.is_gone() => topic.partition(part.partition),
                // The session goes on asking for the topic that had this name before.
                TopicRef::Known(gone) if ask.by_topic_id && self.topic(&gone.name).is_some() => {
                    Err(Refusal::InconsistentTopicId.into())
                }
                TopicRef::Known(_) | TopicRef::Name(_) => Err(ReplicaError::unknown()),
                TopicRef::Id(_) => Err(Refusal::UnknownTopicId.into()),
            };
            let limit = Limit { bytes: part.bytes_max.min(left), at_least_one: plan.bytes == 0 };
            let outcome = match found {
                Ok(partition) => {
                    plan.known += 1;
                    let waiter = waiter.as_deref_mut();
                    self.read(&partition, ask, part, limit, waiter).map(|(read, ahead)| {
                        plan.ahead.bytes += ahead.bytes;
                        plan.ahead.is_behind |= ahead.is_behind;
                        read
                    })
                }
                Err(error) => Err(error),
            };
            match &outcome {
                Ok(read) => {
                    plan.bytes += read.size_bytes();
                    left = left.saturating_sub_unsigned(read.size_bytes() as u32);
                    plan.tell_now |= read.diverging.is_some();
                }
                // Kafka waits on beside a topic it does not know.
                Err(ReplicaError::NotNow(NotNow::UnknownPartition))
                | Err(ReplicaError::Client(Refusal::UnknownTopicId)) => {}
                Err(_) => plan.tell_now = true,
            }
            left = left.max(0);
            let (topic, partition) = (part.topic.clone(), part.partition);
            plan.answer.parts.push(PartFetched { topic, partition, outcome });
        }
        plan
    }

    fn read(
        &self,
        partition: &Arc<Partition>,
        ask: &FetchAsk,
        part: &Asked,
        limit: Limit,
        mut waiter: Option<&mut Waiter>,
    ) -> Result<(PartRead, Ahead), ReplicaError> {
        look_again(|| self.read_once(partition, ask, part, limit, waiter.take()))
    }

    fn read_once(
        &self,
        partition: &Arc<Partition>,
        ask: &FetchAsk,
        part: &Asked,
        limit: Limit,
        waiter: Option<&mut Waiter>,
    ) -> Result<(PartRead, Ahead), ReplicaError> {
        let (mut read, plan) = partition.locked(|state, _| {
            let looked = look(state, ask.isolation, part)?;
            if let Some(waiter) = waiter {
                let above = |end: Offset| end.max(part.fetch_offset);
                let wants = match ask.isolation {
                    Isolation::ReadUncommitted => {
                        Wants::HighWatermark { above: above(looked.0.high_watermark) }
                    }
                    Isolation::ReadCommitted => {
                        Wants::LastStable { above: above(looked.0.last_stable_offset) }
                    }
                };
                let notify = waiter.notify.clone();
                waiter.places.push(Waiting::register(partition, state, wants, notify));
            }
            Ok::<_, ReplicaError>(looked)
        })?;
        let Some(plan) = plan else { return Ok((read, Ahead::default())) };
        let bytes = usize::try_from(limit.bytes).map_err(|_| Refusal::Size(limit.bytes))?;
        let located = plan.locate(bytes, limit.at_least_one);
        let slices = located.map_err(|error| self.read_failed(partition, error))?;
        let own_limit = usize::try_from(part.bytes_max).unwrap_or(0);
        let ahead =
            Ahead { bytes: slices.available_bytes().min(own_limit), is_behind: plan.is_behind() };
        if !slices.is_empty() {
            read.is_cold = slices.bytes_to_end() > WARM_BYTES;
            read.slices = Some(slices);
        }
        Ok((read, ahead))
    }

    /// The records that a plan found could not be read.
    pub fn failed_to_read(&self, part: &PartFetched, error: DiskError) -> ReplicaError {
        match self.partition(&part.topic.name(), part.partition) {
            Some(partition) => self.read_failed(&partition, error),
            None => ReplicaError::of_read(&error),
        }
    }

    pub(super) fn read_failed(&self, partition: &Partition, error: DiskError) -> ReplicaError {
        let told = ReplicaError::of_read(&error);
        if let Some(failure) = disk_failed(&error.into()) {
            self.directory_failed(partition, &failure);
        }
        told
    }

    fn count_fetched(&self, answer: &FetchAnswer) {
        for part in &answer.parts {
            match (&part.outcome, &part.topic) {
                (Ok(read), TopicRef::Known(topic)) => {
                    topic.counters.bytes_out.inc_by(read.size_bytes() as u64);
                }
                (Ok(_), _) => {}
                (Err(_), _) => self.metrics().failed_fetch_requests.inc(),
            }
        }
    }
}

/// Looks anew where the files that were found have been deleted before they were opened. The next
/// look says whether the records are gone, or are in other files by now, which the cleaner or a
/// move has written.
pub(super) fn look_again<T>(
    mut look: impl FnMut() -> Result<T, ReplicaError>,
) -> Result<T, ReplicaError> {
    let mut found = look();
    for _ in 1..LOOKS_MAX {
        if !matches!(found, Err(ReplicaError::Client(Refusal::Deleted))) {
            break;
        }
        found = look();
    }
    found
}

impl Plan {
    fn is_enough(&self, ask: &FetchAsk) -> bool {
        let wanted = usize::try_from(ask.min_bytes).unwrap_or(0);
        self.tell_now || self.known == 0 || self.bytes >= wanted
    }

    /// - `known`: partitions that were there when the wait began.
    fn is_enough_for_waiter(&self, ask: &FetchAsk, known: usize) -> bool {
        let wanted = usize::try_from(ask.min_bytes).unwrap_or(0);
        let Ahead { bytes, is_behind } = self.ahead;
        self.is_enough(ask) || self.known < known || is_behind || bytes >= wanted
    }
}

/// What one partition has for the client, under its lock: the answer without records, and where
/// to look for them.
fn look(
    state: &mut State,
    isolation: Isolation,
    part: &Asked,
) -> Result<(PartRead, Option<ReadPlan>), ReplicaError> {
    let (high_watermark, from) = (state.high_watermark, part.fetch_offset);
    let log = state.fenced_log(part.current_leader_epoch)?;
    let (start, end) = (log.start_offset(), log.end_offset());
    let last_stable_offset = last_stable(log, high_watermark);
    let mut read = PartRead {
        high_watermark,
        last_stable_offset,
        log_start_offset: start,
        aborted: (isolation == Isolation::ReadCommitted).then(Vec::new),
        diverging: None,
        slices: None,
        is_cold: false,
    };
    let outside = || Refusal::OutOfRange { offset: from, start, end };
    if let Some(asked) = part.last_fetched_epoch {
        let (epoch, epoch_end) = log.epoch_end(asked).ok_or_else(outside)?;
        if from < start {
            return Err(outside().into());
        }
        if epoch < asked || epoch_end < from {
            read.diverging = Some((epoch, epoch_end));
            return Ok((read, None));
        }
    }
    if from < start || from > end {
        return Err(outside().into());
    }
    let until = match isolation {
        Isolation::ReadUncommitted => high_watermark,
        Isolation::ReadCommitted => last_stable_offset,
    };
    if from >= until {
        return Ok((read, None));
    }
    let failed = ReplicaError::of_storage;
    if let Some(aborted) = &mut read.aborted {
        *aborted = log.aborted_transactions(from, until).map_err(|error| failed(error.into()))?;
    }
    let plan = log.plan_read(from, until).map_err(failed)?;
    Ok((read, Some(plan)))
}

#[cfg(test)]
#[path = "fetch_tests.rs"]
mod tests;
