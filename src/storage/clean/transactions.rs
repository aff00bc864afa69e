//! Which transactions a pass is inside of: whether a batch belongs to an aborted one, and whether
//! all of a transaction is gone, so that its marker may go too.

use std::collections::{HashMap, HashSet};

use crate::common::{Offset, ProducerId};
use crate::protocol::batch::{BatchHeader, EndTxnMarker};
use crate::storage::txn_index::AbortedTxn;

/// The state of one pass, from the first segment to the last.
pub(super) struct CleanedTxns {
    /// To come, the first one last.
    aborted: Vec<AbortedTxn>,
    /// Begun and not ended; whether a batch of it was seen.
    open_aborted: HashMap<ProducerId, (AbortedTxn, bool)>,
    open_committed: HashSet<ProducerId>,
}

/// What a marker leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Marker {
    /// Nothing of its transaction is left.
    pub can_go: bool,
    /// The transaction's entry for the index of the segment that the marker stays in.
    pub entry: Option<AbortedTxn>,
}

impl CleanedTxns {
    /// - `aborted`: those that overlap what the pass will see.
    pub(super) fn new(mut aborted: Vec<AbortedTxn>) -> Self {
        aborted.sort_by_key(|txn| std::cmp::Reverse(txn.first_offset));
        Self { aborted, open_aborted: HashMap::new(), open_committed: HashSet::new() }
    }

    /// Whether the data batch is of an aborted transaction.
    pub(super) fn saw_data(&mut self, header: &BatchHeader) -> bool {
        self.begin_up_to(header.last_offset());
        if !header.is_transactional() {
            return false;
        }
        if let Some((_, seen)) = self.open_aborted.get_mut(&header.producer_id) {
            *seen = true;
            return true;
        }
        self.open_committed.insert(header.producer_id);
        false
    }

    /// - `marker`: what the control batch says; `None` when it was emptied before.
    pub(super) fn saw_marker(
        &mut self,
        header: &BatchHeader,
        marker: Option<EndTxnMarker>,
    ) -> Marker {
        self.begin_up_to(header.last_offset());
        let Some(marker) = marker else { return Marker { can_go: true, entry: None } };
        if marker.commit {
            let can_go = !self.open_committed.remove(&header.producer_id);
            return Marker { can_go, entry: None };
        }
        match self.open_aborted.remove(&header.producer_id) {
            Some((txn, true)) => Marker { can_go: false, entry: Some(txn) },
            Some((_, false)) | None => Marker { can_go: true, entry: None },
        }
    }

    fn begin_up_to(&mut self, offset: Offset) {
        while let Some(txn) = self.aborted.pop_if(|txn| txn.first_offset <= offset) {
            self.open_aborted.entry(txn.producer_id).or_insert((txn, false));
        }
    }
}
