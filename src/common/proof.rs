/// Why a batch may be part of a transaction (KIP-890).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Nobody asks: the batch is not transactional, or verification is off.
    Unneeded,
    /// What was given out when the verification of the batch began; `None`: the log had the
    /// producer's transaction open then, and must still have it.
    Guard(Option<u64>),
}
