//! Transactions and their coordinator.

use crate::config::table::config_keys;

config_keys! {
    /// Transactions (KIP-98, KIP-890) and `__transaction_state`.
    TxnKeys;

    /// Longest time that a transaction may ask for, in milliseconds.
    max_timeout_ms: i32 = "900000", AtLeast(1);
        key "transaction.max.timeout.ms", dynamic ReadOnly;
    /// How often transactions past their time are looked for, in milliseconds.
    abort_interval_ms: i32 = "10000", AtLeast(1);
        key "transaction.abort.timed.out.transaction.cleanup.interval.ms", dynamic ReadOnly;
    /// How often unused transactional ids are looked for, in milliseconds.
    expire_interval_ms: i32 = "3600000", AtLeast(1);
        key "transaction.remove.expired.transaction.cleanup.interval.ms", dynamic ReadOnly;
    /// How long a transactional id is kept after its last transaction, in milliseconds.
    id_expiration_ms: i32 = "604800000", AtLeast(1);
        key "transactional.id.expiration.ms", dynamic ReadOnly;
    /// Partitions of the transactions' topic; not to be changed once it exists.
    state_log_num_partitions: i32 = "50", AtLeast(1);
        key "transaction.state.log.num.partitions", dynamic ReadOnly;
    /// Replicas of the transactions' topic.
    state_log_replication_factor: i16 = "3", AtLeast(1);
        key "transaction.state.log.replication.factor", dynamic ReadOnly;
    /// `min.insync.replicas` of the transactions' topic.
    state_log_min_isr: i32 = "2", AtLeast(1);
        key "transaction.state.log.min.isr", dynamic ReadOnly;
    /// Segment size of the transactions' topic in bytes.
    state_log_segment_bytes: i32 = "104857600", AtLeast(1);
        key "transaction.state.log.segment.bytes", dynamic ReadOnly;
    /// Whether a partition asks the coordinator before a transaction begins in it.
    partition_verification_enable: bool = "true", Any;
        key "transaction.partition.verification.enable", dynamic ClusterWide;
    /// How long to wait before a partition is added again to a transaction whose predecessor is not
    /// complete, in milliseconds.
    add_retry_backoff_ms: i32 = "20", AtLeast(1);
        key "add.partitions.to.txn.retry.backoff.ms", dynamic ReadOnly;
    /// How long that is tried in all, in milliseconds.
    add_retry_backoff_max_ms: i32 = "100", AtLeast(0);
        key "add.partitions.to.txn.retry.backoff.max.ms", dynamic ReadOnly;
}
