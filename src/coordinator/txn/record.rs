//! Records of `__transaction_state`, between the state's types and those of the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::OrdSet;

use super::state::Txn;
use super::types::{ClientVersion, Owner, TxnState};
use crate::common::{ProducerId, TopicName, TopicPartition, TransactionalId};
use crate::coordinator::decided;
use crate::machine::{JournalRecord, Record};
use crate::protocol::records::txn as stored;

/// One change of the state; `None` removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TxnRecord {
    pub transactional_id: TransactionalId,
    pub value: Option<Arc<Txn>>,
}

impl TxnRecord {
    /// An upper bound of its size in a batch, found without encoding it.
    pub fn bytes_at_most(&self) -> usize {
        /// What the batch puts around a record, fields of fixed size, tags.
        const AROUND: usize = 128;
        /// A topic's lengths and tags, and a partition's number.
        const AROUND_PARTITION: usize = 16;
        let partitions = self.value.as_ref().map(|txn| {
            txn.partitions.iter().map(|one| one.topic.len() + AROUND_PARTITION).sum::<usize>()
        });
        AROUND + self.transactional_id.len() + partitions.unwrap_or(0)
    }
}

impl Record for TxnRecord {
    fn encode(&self) -> JournalRecord {
        let key = stored::TransactionLogKey { transactional_id: self.transactional_id.clone() };
        let value = self.value.as_deref().map(Into::into);
        decided(stored::TransactionRecord::Transaction(key, value).encode())
    }

    fn decode(record: &JournalRecord) -> Result<Option<Self>, String> {
        let Some(key) = &record.key else { return Err("a record without a key".to_owned()) };
        let found = stored::TransactionRecord::decode(key, record.value.as_deref());
        match found.map_err(|error| error.to_string())? {
            stored::TransactionRecord::Transaction(key, value) => {
                let value = value.map(Txn::try_from).transpose()?.map(Arc::new);
                Ok(Some(Self { transactional_id: key.transactional_id, value }))
            }
            stored::TransactionRecord::Unknown { .. } => Ok(None),
        }
    }
}

impl From<&Txn> for stored::TransactionLogValue {
    fn from(txn: &Txn) -> Self {
        let mut topics: BTreeMap<&TopicName, Vec<i32>> = BTreeMap::new();
        for one in &txn.partitions {
            topics.entry(&one.topic).or_default().push(one.partition);
        }
        let topics = topics.into_iter().map(|(topic, partition_ids)| stored::PartitionsSchema {
            topic: topic.clone(),
            partition_ids,
        });
        // Kafka has no list where no transaction can have partitions.
        let has_list = txn.state != TxnState::Empty;
        Self {
            producer_id: txn.owner.id.0,
            previous_producer_id: txn.previous_producer_id.0,
            next_producer_id: txn.next_producer_id.0,
            producer_epoch: txn.owner.epoch.0,
            transaction_timeout_ms: txn.timeout_ms,
            transaction_status: txn.state as i8,
            transaction_partitions: has_list.then(|| topics.collect()),
            transaction_last_update_timestamp_ms: txn.last_update_ms,
            transaction_start_timestamp_ms: txn.start_ms,
            client_transaction_version: txn.client.0,
            ..Self::default()
        }
    }
}

impl TryFrom<stored::TransactionLogValue> for Txn {
    type Error = String;

    fn try_from(value: stored::TransactionLogValue) -> Result<Self, String> {
        let number = value.transaction_status;
        let state = TxnState::from_number(number);
        let mut partitions = OrdSet::new();
        for topic in value.transaction_partitions.unwrap_or_default() {
            let name = &topic.topic;
            let all = topic.partition_ids.into_iter();
            partitions.extend(all.map(|index| TopicPartition::new(name.clone(), index)));
        }
        Ok(Self {
            owner: Owner::new(value.producer_id, value.producer_epoch),
            previous_producer_id: ProducerId(value.previous_producer_id),
            next_producer_id: ProducerId(value.next_producer_id),
            timeout_ms: value.transaction_timeout_ms,
            state: state.ok_or_else(|| format!("there is no state {number} of transactions"))?,
            partitions,
            start_ms: value.transaction_start_timestamp_ms,
            last_update_ms: value.transaction_last_update_timestamp_ms,
            client: ClientVersion(value.client_transaction_version),
        })
    }
}
