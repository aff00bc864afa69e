//! Which leader wrote what (KIP-101, KIP-320): for each epoch the first offset written in it.
//! `leader-epoch-checkpoint` holds it as text: version 0, count, then `epoch start_offset` lines.
//! Invariant: epochs and start offsets both ascend.

use super::checkpoint::{self, Malformed};
use crate::common::{LeaderEpoch, NO_OFFSET, Offset};

/// The epochs of one log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaderEpochs {
    entries: Vec<(LeaderEpoch, Offset)>,
}

impl LeaderEpochs {
    pub fn entries(&self) -> &[(LeaderEpoch, Offset)] {
        &self.entries
    }

    /// The newest epoch.
    pub fn latest(&self) -> Option<LeaderEpoch> {
        self.entries.last().map(|entry| entry.0)
    }

    /// From `start_offset` on `epoch` writes. What contradicts it (as high an epoch, as high an
    /// offset) is dropped. Returns whether anything changed.
    pub(super) fn assign(&mut self, epoch: LeaderEpoch, start_offset: Offset) -> bool {
        if epoch.0 < 0 || self.latest() == Some(epoch) && start_offset >= self.last_start() {
            return false;
        }
        self.entries.retain(|(e, start)| *e < epoch && *start < start_offset);
        self.entries.push((epoch, start_offset));
        true
    }

    fn last_start(&self) -> Offset {
        self.entries.last().map_or(NO_OFFSET, |entry| entry.1)
    }

    /// The epoch that wrote `offset`.
    pub fn of(&self, offset: Offset) -> Option<LeaderEpoch> {
        let after = self.entries.partition_point(|(_, start)| *start <= offset);
        after.checked_sub(1).map(|at| self.entries[at].0)
    }

    /// Where `epoch` ends: the largest epoch ≤ it that is known, and the first offset after it
    /// (C098). `None` where Kafka answers -1, -1: for a newer epoch, or none.
    pub fn end_of(
        &self,
        epoch: LeaderEpoch,
        log_end_offset: Offset,
    ) -> Option<(LeaderEpoch, Offset)> {
        let latest = self.latest()?;
        if epoch.0 < 0 || epoch > latest {
            return None;
        }
        if epoch == latest {
            return Some((epoch, log_end_offset));
        }
        let after = self.entries.partition_point(|(e, _)| *e <= epoch);
        let end_offset = self.entries[after].1;
        // Older than all that is known: the client is told its own epoch ended where we begin.
        let known = after.checked_sub(1).map_or(epoch, |at| self.entries[at].0);
        Some((known, end_offset))
    }

    /// The log now ends at `end_offset`.
    pub(super) fn truncate_from_end(&mut self, end_offset: Offset) {
        self.entries.retain(|(_, start)| *start < end_offset);
    }

    /// The log now starts at `start_offset`, in the epoch it has there.
    pub(super) fn truncate_from_start(&mut self, start_offset: Offset) {
        let below = self.entries.partition_point(|(_, start)| *start <= start_offset);
        if let Some(first) = below.checked_sub(1) {
            self.entries.drain(..first);
            self.entries[0].1 = start_offset;
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        checkpoint::encode(self.entries.iter().map(|(epoch, start)| format!("{epoch} {start}")))
    }

    /// Reads what [`LeaderEpochs::encode`] writes.
    ///
    /// # Errors
    /// [`Malformed`]; the epochs are then found again in the batches.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut epochs = Self::default();
        for (number, line) in checkpoint::decode(bytes)? {
            let wrong = || Malformed { line: number, what: format!("`{line}` is no epoch entry") };
            let (epoch, start) = line.split_once(' ').ok_or_else(wrong)?;
            let epoch = LeaderEpoch(epoch.parse().map_err(|_| wrong())?);
            let start = start.parse().map_err(|_| wrong())?;
            epochs.assign(epoch, start);
        }
        Ok(epochs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn epochs(entries: &[(i32, Offset)]) -> LeaderEpochs {
        let mut epochs = LeaderEpochs::default();
        entries.iter().for_each(|(epoch, start)| {
            epochs.assign(LeaderEpoch(*epoch), *start);
        });
        epochs
    }

    #[test]
    fn an_epoch_ends_where_the_next_begins() {
        let epochs = epochs(&[(2, 10), (4, 20), (7, 30)]);
        #[rustfmt::skip]
        let table = [
            (7, Some((7, 45))), // the current one: the log end
            (4, Some((4, 30))),
            (5, Some((4, 30))), // unknown: the one before it
            (2, Some((2, 20))),
            (1, Some((1, 10))), // older than all
            (8, None),
            (-1, None),
        ];
        for (asked, want) in table {
            let got = epochs.end_of(LeaderEpoch(asked), 45).map(|(epoch, end)| (epoch.0, end));
            assert_eq!(got, want, "epoch {asked}");
        }
        assert_eq!(LeaderEpochs::default().end_of(LeaderEpoch(0), 45), None);
    }

    #[test]
    fn c024_each_offset_has_the_epoch_of_its_record() {
        let epochs = epochs(&[(2, 10), (4, 20)]);
        let of = |offset| epochs.of(offset).map(|epoch| epoch.0);
        assert_eq!(
            [of(9), of(10), of(19), of(20), of(99)],
            [None, Some(2), Some(2), Some(4), Some(4)]
        );
    }

    #[test]
    fn entries_that_contradict_a_new_one_go() {
        #[rustfmt::skip]
        let table: [(&[_], _, &[_]); 5] = [
            (&[(1, 10)],          (1, 12), &[(1, 10)]), // the same epoch goes on
            (&[(1, 10)],          (1, 5),  &[(1, 5)]),
            (&[(1, 10), (2, 20)], (3, 20), &[(1, 10), (3, 20)]), // epoch 2 wrote nothing
            (&[(1, 10), (5, 20)], (3, 30), &[(1, 10), (3, 30)]),
            (&[(1, 10), (2, 20)], (3, 5),  &[(3, 5)]),
        ];
        for (before, (epoch, start), after) in table {
            let mut entries = epochs(before);
            entries.assign(LeaderEpoch(epoch), start);
            assert_eq!(entries, epochs(after), "{before:?} and ({epoch}, {start})");
        }
    }

    #[test]
    fn truncation_at_both_ends_keeps_the_epoch_of_what_is_left() {
        let mut entries = epochs(&[(1, 10), (2, 20), (3, 30)]);
        entries.truncate_from_end(30);
        assert_eq!(entries, epochs(&[(1, 10), (2, 20)]));
        entries.truncate_from_start(15);
        assert_eq!(entries, epochs(&[(1, 15), (2, 20)]));
        entries.truncate_from_start(25);
        assert_eq!(entries, epochs(&[(2, 25)]));
        entries.truncate_from_start(20);
        assert_eq!(entries, epochs(&[(2, 25)]));
    }

    #[test]
    fn text_is_kafkas() {
        assert_eq!(epochs(&[(0, 0), (3, 170)]).encode(), b"0\n2\n0 0\n3 170\n");
        assert!(LeaderEpochs::decode(b"0\n1\nx 0\n").is_err());
        assert!(LeaderEpochs::decode(b"").is_err());
    }

    proptest! {
        #[test]
        fn entries_ascend_and_are_read_back(assigned in proptest::collection::vec((0i32..10, 0i64..50), 0..20)) {
            let entries = epochs(&assigned);
            let ascend = |pair: &[(LeaderEpoch, Offset)]| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1;
            prop_assert!(entries.entries().windows(2).all(ascend));
            prop_assert_eq!(LeaderEpochs::decode(&entries.encode()), Ok(entries));
        }
    }
}
