//! openraft's type parameters, filled in.

use std::fmt;
use std::future::Future;
use std::io::Cursor;
use std::time::Duration;

use bytes::Bytes;
use openraft::{AsyncRuntime, BasicNode, OptionalSend, TokioRuntime};
use uuid::Uuid;

use crate::common::Offset;
use crate::env::Random;

/// A member of the quorum: a node with a certain disk, so that a wiped disk is a new member.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct MemberId {
    pub node_id: i32,
    pub directory_id: Uuid,
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} with directory id ", self.node_id)?;
        f.write_str(&crate::common::format_uuid(self.directory_id))
    }
}

/// What one Raft entry carries: whole Kafka record batches, undecoded. Base offset and leader
/// epoch in each header say what it was decided on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Payload(pub Bytes);

/// What applying an entry came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Applied {
    /// Every batch of the entry fitted.
    pub fitted: bool,
    /// The first offset not applied.
    pub end: Offset,
}

openraft::declare_raft_types!(
    pub(super) Types:
        D = Payload,
        R = Applied,
        NodeId = MemberId,
        Node = BasicNode,
        Entry = openraft::Entry<Types>,
        SnapshotData = Cursor<Vec<u8>>,
        Responder = openraft::impls::OneshotResponder<Types>,
        AsyncRuntime = Engine,
);

pub(super) type Raft = openraft::Raft<Types>;
pub(super) type RaftEntry = openraft::Entry<Types>;
pub(super) type LogId = openraft::LogId<MemberId>;
pub(super) type Vote = openraft::Vote<MemberId>;
pub(super) type Membership = openraft::Membership<MemberId, BasicNode>;
pub(super) type StoredMembership = openraft::StoredMembership<MemberId, BasicNode>;
pub(super) type SnapshotMeta = openraft::SnapshotMeta<MemberId, BasicNode>;
pub(super) type StorageError = openraft::StorageError<MemberId>;

pub(super) fn log_id(term: u64, index: u64) -> LogId {
    LogId::new(openraft::CommittedLeaderId::new(term, MemberId::default()), index)
}

/// Tokio, whose clock a test may pause, without its random numbers: those that openraft draws
/// feed election timeouts that are never used (the timer is ours), so a fixed sequence will do.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Engine;

pub(super) struct EngineRandom(Random);

impl rand::RngCore for EngineRandom {
    fn next_u32(&mut self) -> u32 {
        self.0.next_u64() as u32
    }

    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn fill_bytes(&mut self, out: &mut [u8]) {
        rand_core_fill(self, out);
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), rand::Error> {
        rand_core_fill(self, out);
        Ok(())
    }
}

fn rand_core_fill(random: &mut EngineRandom, out: &mut [u8]) {
    for chunk in out.chunks_mut(8) {
        chunk.copy_from_slice(&random.0.next_u64().to_le_bytes()[..chunk.len()]);
    }
}

type Tokio = TokioRuntime;

impl AsyncRuntime for Engine {
    type JoinError = <Tokio as AsyncRuntime>::JoinError;
    type JoinHandle<T: OptionalSend + 'static> = <Tokio as AsyncRuntime>::JoinHandle<T>;
    type Sleep = <Tokio as AsyncRuntime>::Sleep;
    type Instant = <Tokio as AsyncRuntime>::Instant;
    type TimeoutError = <Tokio as AsyncRuntime>::TimeoutError;
    type Timeout<R, T: Future<Output = R> + OptionalSend> = <Tokio as AsyncRuntime>::Timeout<R, T>;
    type ThreadLocalRng = EngineRandom;
    type OneshotSender<T: OptionalSend> = <Tokio as AsyncRuntime>::OneshotSender<T>;
    type OneshotReceiver<T: OptionalSend> = <Tokio as AsyncRuntime>::OneshotReceiver<T>;
    type OneshotReceiverError = <Tokio as AsyncRuntime>::OneshotReceiverError;

    fn spawn<T>(future: T) -> Self::JoinHandle<T::Output>
    where
        T: Future + OptionalSend + 'static,
        T::Output: OptionalSend + 'static,
    {
        Tokio::spawn(future)
    }

    fn sleep(wait: Duration) -> Self::Sleep {
        Tokio::sleep(wait)
    }

    fn sleep_until(deadline: Self::Instant) -> Self::Sleep {
        Tokio::sleep_until(deadline)
    }

    fn timeout<R, F: Future<Output = R> + OptionalSend>(
        wait: Duration,
        future: F,
    ) -> Self::Timeout<R, F> {
        Tokio::timeout(wait, future)
    }

    fn timeout_at<R, F: Future<Output = R> + OptionalSend>(
        deadline: Self::Instant,
        future: F,
    ) -> Self::Timeout<R, F> {
        Tokio::timeout_at(deadline, future)
    }

    fn is_panic(error: &Self::JoinError) -> bool {
        Tokio::is_panic(error)
    }

    fn thread_rng() -> Self::ThreadLocalRng {
        EngineRandom(Random::seeded(0))
    }

    fn oneshot<T: OptionalSend>() -> (Self::OneshotSender<T>, Self::OneshotReceiver<T>) {
        Tokio::oneshot()
    }
}
