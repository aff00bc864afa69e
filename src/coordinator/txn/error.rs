//! Why the transaction coordinator said no, by who has to act.

/// The answer to a request that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TxnRefusal {
    #[error(transparent)]
    Txn(#[from] TxnError),
    /// Nobody did wrong; the same request can succeed later, or elsewhere.
    #[error(transparent)]
    NotNow(#[from] NotNow),
}

/// What to wait for, or where to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotNow {
    #[error("the coordinator is reading its partition, or waits for producer ids")]
    Loading,
    #[error("another broker coordinates this transactional id")]
    NotCoordinator,
    #[error("the coordinator cannot write to its partition now")]
    NotAvailable,
}

/// Named after Kafka's error codes, which tell the client what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TxnError {
    #[error("the transactional id must not be empty")]
    InvalidRequest,
    #[error("the transaction's timeout is not above 0, or above transaction.max.timeout.ms")]
    InvalidTransactionTimeout,
    #[error("the producer id does not belong to the transactional id")]
    InvalidProducerIdMapping,
    /// Another incarnation of the producer has the transactional id now.
    #[error("the producer epoch is not the current one")]
    ProducerFenced,
    #[error("the transaction before is not complete yet")]
    ConcurrentTransactions,
    #[error("the transaction is in no state for that")]
    InvalidTxnState,
    #[error("the partition is in no transaction of this producer")]
    TransactionAbortable,
    #[error("no such transactional id")]
    TransactionalIdNotFound,
    /// The partitions of the transaction fit no record.
    #[error("{bytes} bytes of a record do not fit a batch of __transaction_state ({bytes_max})")]
    TooLarge { bytes: usize, bytes_max: usize },
}
