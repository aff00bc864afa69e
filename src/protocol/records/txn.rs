//! Records of `__transaction_state` in Kafka 4.4's format. A key starts with the record type, a value
//! with its version, two bytes each.

use bytes::Bytes;

use super::group::{with_prefix, without_prefix};
use crate::protocol::dsl::messages;
use crate::protocol::schema::{DescribedMessage, Message};
use crate::protocol::wire::{DecodeError, EncodeError};

/// The key type.
const TRANSACTION: i16 = 0;
/// The first that can say which client wrote, and which producer id comes next (KIP-890).
const VALUE_VERSION: i16 = 1;

/// One record of `__transaction_state`; `None` as value is a tombstone.
#[derive(Debug, Clone, PartialEq)]
pub enum TransactionRecord {
    Transaction(TransactionLogKey, Option<TransactionLogValue>),
    /// Of a kind that Kafka 4.4 does not know; who replays skips it.
    Unknown {
        kind: i16,
    },
}

impl TransactionRecord {
    /// Key and value of the log record. An [`TransactionRecord::Unknown`] has none to write.
    ///
    /// # Errors
    /// [`EncodeError`]: a field is too long, or the kind is unknown.
    pub fn encode(&self) -> Result<(Bytes, Option<Bytes>), EncodeError> {
        match self {
            Self::Transaction(key, value) => {
                let key = with_prefix(TRANSACTION, |out| key.encode(out, 0))?;
                let encode = |value: &TransactionLogValue| {
                    with_prefix(VALUE_VERSION, |out| value.encode(out, VALUE_VERSION))
                };
                Ok((key, value.as_ref().map(encode).transpose()?))
            }
            Self::Unknown { kind } => {
                Err(EncodeError::Version { message: "TransactionRecord", version: *kind })
            }
        }
    }

    /// Reads what [`TransactionRecord::encode`] or Kafka wrote, in any version.
    ///
    /// # Errors
    /// [`DecodeError`]: the record is damaged, or its value has a version above Kafka 4.4's.
    pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Self, DecodeError> {
        let (mut key, kind) = without_prefix(key)?;
        if kind != TRANSACTION {
            return Ok(Self::Unknown { kind });
        }
        let key = TransactionLogKey::decode(&mut key, 0)?;
        let value = value.map(without_prefix).transpose()?;
        let read = |(mut bytes, version)| TransactionLogValue::decode(&mut bytes, version);
        Ok(Self::Transaction(key, value.map(read).transpose()?))
    }
}

/// The schemas of the records above.
pub(crate) const MESSAGES: &[&Message] =
    &[&TransactionLogKey::MESSAGE, &TransactionLogValue::MESSAGE];

messages! {
    /// Key type 0: whose transactions.
    struct TransactionLogKey "0" flexible "none" {
        transactional_id: text, "0";
    }

    /// The newest transaction of a transactional id.
    struct TransactionLogValue "0-1" flexible "1+" {
        producer_id: int64, "0+";
        previous_producer_id: int64, "1+", tag 0 = -1;
        next_producer_id: int64, "1+", tag 1 = -1;
        producer_epoch: int16, "0+";
        next_producer_epoch: int16, "1+", tag 3 = -1;
        transaction_timeout_ms: int32, "0+";
        transaction_status: int8, "0+";
        transaction_partitions: [PartitionsSchema], "0+", null "0+";
        transaction_last_update_timestamp_ms: int64, "0+";
        transaction_start_timestamp_ms: int64, "0+";
        client_transaction_version: int16, "1+", tag 2 = 0;
    }

    /// Partitions of a topic that the transaction writes to.
    struct PartitionsSchema {
        topic: text, "0+";
        partition_ids: [int32], "0+";
    }
}
