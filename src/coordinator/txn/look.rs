//! DescribeTransactions and ListTransactions.

use super::error::TxnError;
use super::machine::Turn;
use super::state::Txn;
use super::types::{DescribedTxn, ListedTxn, TxnFilter};
use crate::common::TransactionalId;

impl Turn<'_> {
    pub fn describe(&self, id: &TransactionalId) -> Result<DescribedTxn, TxnError> {
        let txn = self.state.get(id).ok_or(TxnError::TransactionalIdNotFound)?;
        Ok(DescribedTxn {
            owner: txn.owner,
            state: txn.state,
            timeout_ms: txn.timeout_ms,
            start_ms: txn.start_ms,
            partitions: txn.partitions.clone(),
        })
    }

    pub fn list(&self, filter: &TxnFilter) -> Vec<ListedTxn> {
        let wanted = self.state.iter().filter(|(id, (txn, _))| self.is_wanted(id, txn, filter));
        let listed = wanted.map(|(id, (txn, _))| ListedTxn {
            transactional_id: id.clone(),
            producer_id: txn.owner.id,
            state: txn.state,
        });
        listed.collect()
    }

    fn is_wanted(&self, id: &str, txn: &Txn, filter: &TxnFilter) -> bool {
        let TxnFilter { states, producer_ids, longer_than_ms, pattern } = filter;
        let is_long = *longer_than_ms < 0 || self.cx.now_ms - txn.start_ms > *longer_than_ms;
        let has_state = states.is_empty() || states.contains(&txn.state);
        let has_name = pattern.as_ref().is_none_or(|pattern| pattern.is_match(id));
        is_long
            && has_name
            && has_state
            && (producer_ids.is_empty() || producer_ids.contains(&txn.owner.id))
    }
}
