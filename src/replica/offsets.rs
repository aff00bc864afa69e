//! Questions about offsets of a partition, and DeleteRecords.

use super::error::{NotNow, Refusal, ReplicaError};
use super::fetch::{Isolation, look_again};
use super::partition::{Partition, last_stable};
use crate::common::{LeaderEpoch, NO_OFFSET, NO_TIMESTAMP, Offset, ProducerId};
use crate::storage::{Producer, TimePlan, TimedOffset};

/// What ListOffsets asks for, by the number on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// -1
    Latest,
    /// -2
    Earliest,
    /// -3: the first record with the largest timestamp (KIP-734).
    MaxTimestamp,
    /// -4: the first on local disk (KIP-405).
    EarliestLocal,
    /// -5: the last in remote storage (KIP-1005).
    LatestTiered,
    /// -6: the first not yet in remote storage (KIP-1023).
    EarliestPendingUpload,
    /// ≥ 0: the first record with at least this timestamp, in milliseconds.
    AtOrAfter(i64),
}

impl Lookup {
    /// # Errors
    /// [`Refusal::Lookup`] for another number; which version knows which is not looked at.
    pub fn from_number(number: i64) -> Result<Self, ReplicaError> {
        Ok(match number {
            -1 => Self::Latest,
            -2 => Self::Earliest,
            -3 => Self::MaxTimestamp,
            -4 => Self::EarliestLocal,
            -5 => Self::LatestTiered,
            -6 => Self::EarliestPendingUpload,
            0.. => Self::AtOrAfter(number),
            _ => return Err(Refusal::Lookup(number).into()),
        })
    }
}

/// Where a lookup led; -1 everywhere when nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    pub offset: Offset,
    /// Of the record, for lookups by time.
    pub timestamp: i64,
    /// The epoch that wrote the record; the current one for [`Lookup::Latest`].
    pub leader_epoch: LeaderEpoch,
}

impl Found {
    pub const NOTHING: Self =
        Self { offset: NO_OFFSET, timestamp: NO_TIMESTAMP, leader_epoch: LeaderEpoch::NONE };
}

/// What a look under the lock gave: the answer, or a search to be done without it.
enum Looked {
    Here(Found),
    /// Plan, the first offset that may not be told, whether the high watermark lags.
    Search(TimePlan, Offset, bool),
}

impl Partition {
    /// Answers ListOffsets of a consumer; by time it reads at most an index interval and a batch.
    ///
    /// # Errors
    /// The leader's refusals; [`NotNow::OffsetNotAvailable`] while a new leader does not know yet
    /// what is committed.
    pub fn list_offset(
        &self,
        lookup: Lookup,
        isolation: Isolation,
        current_leader_epoch: Option<LeaderEpoch>,
    ) -> Result<Found, ReplicaError> {
        look_again(|| self.look_up(lookup, isolation, current_leader_epoch))
    }

    fn look_up(
        &self,
        lookup: Lookup,
        isolation: Isolation,
        current_leader_epoch: Option<LeaderEpoch>,
    ) -> Result<Found, ReplicaError> {
        let looked = self.locked(|state, _| -> Result<Looked, ReplicaError> {
            let (high_watermark, epoch) = (state.high_watermark, state.role.epoch);
            let lagging = state.epoch_start > high_watermark;
            let log = state.fenced_log(current_leader_epoch)?;
            let until = match isolation {
                Isolation::ReadUncommitted => high_watermark,
                Isolation::ReadCommitted => last_stable(log, high_watermark),
            };
            let plain =
                |offset, leader_epoch| Found { offset, timestamp: NO_TIMESTAMP, leader_epoch };
            Ok(Looked::Here(match lookup {
                Lookup::Latest if lagging => return Err(NotNow::OffsetNotAvailable.into()),
                Lookup::Latest => plain(until, epoch),
                Lookup::Earliest | Lookup::EarliestLocal => {
                    let offset = log.start_offset();
                    plain(offset, log.epoch_of(offset).unwrap_or(LeaderEpoch::NONE))
                }
                Lookup::LatestTiered | Lookup::EarliestPendingUpload => Found::NOTHING,
                Lookup::MaxTimestamp => {
                    return Ok(Looked::Search(log.plan_max_timestamp(), until, lagging));
                }
                Lookup::AtOrAfter(timestamp) => {
                    return Ok(Looked::Search(log.plan_time(timestamp), until, lagging));
                }
            }))
        })?;
        let (plan, until, lagging) = match looked {
            Looked::Here(found) => return Ok(found),
            Looked::Search(plan, until, lagging) => (plan, until, lagging),
        };
        let found = match lookup {
            Lookup::MaxTimestamp => plan.max(),
            _ => plan.first_at_or_after(),
        };
        match found.map_err(|error| ReplicaError::of_read(&error))? {
            Some(TimedOffset { offset, timestamp, leader_epoch }) if offset < until => {
                Ok(Found { offset, timestamp, leader_epoch })
            }
            _ if lagging => Err(NotNow::OffsetNotAvailable.into()),
            _ => Ok(Found::NOTHING),
        }
    }

    /// Moves the log start to `before` (-1: the high watermark); returns the low watermark. The
    /// segments below it go later.
    ///
    /// # Errors
    /// [`Refusal::NotDeletable`], [`Refusal::OutOfRange`], the leader's refusals.
    pub fn delete_records(&self, before: Offset) -> Result<Offset, ReplicaError> {
        let config = self.config.load();
        self.locked(|state, _| {
            let high_watermark = state.high_watermark;
            let log = state.leader_log()?;
            if config.cleanup_policy.compact && !config.cleanup_policy.delete {
                return Err(Refusal::NotDeletable.into());
            }
            let before = if before == NO_OFFSET { high_watermark } else { before };
            if before < 0 || before > high_watermark {
                let (start, end) = (log.start_offset(), high_watermark);
                return Err(Refusal::OutOfRange { offset: before, start, end }.into());
            }
            log.advance_start(before).map_err(ReplicaError::of_storage)?;
            Ok(log.start_offset())
        })
    }

    /// Where `epoch` ends here (KIP-320): the largest epoch ≤ it that is known, and the first
    /// offset after it. `None`: no such epoch.
    ///
    /// # Errors
    /// The leader's refusals.
    pub fn offset_for_leader_epoch(
        &self,
        epoch: LeaderEpoch,
        current_leader_epoch: Option<LeaderEpoch>,
    ) -> Result<Option<(LeaderEpoch, Offset)>, ReplicaError> {
        self.locked(|state, _| Ok(state.fenced_log(current_leader_epoch)?.epoch_end(epoch)))
    }

    /// The producers that are known here, by id.
    ///
    /// # Errors
    /// The leader's refusals.
    pub fn active_producers(&self) -> Result<Vec<(ProducerId, Producer)>, ReplicaError> {
        self.locked(|state, _| {
            let all = state.leader_log()?.producers().iter();
            Ok(all.map(|(id, producer)| (id, producer.clone())).collect())
        })
    }
}

#[cfg(test)]
#[path = "offsets_tests.rs"]
mod tests;
