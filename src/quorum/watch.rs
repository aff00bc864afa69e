//! Who leads, and when that counts: the barrier after an election, the lease, the election
//! timer, and when a snapshot is due.

use std::sync::Arc;
use std::time::Duration;

use openraft::ServerState;
use openraft::error::{Fatal, RaftError};

use super::error::QuorumError;
use super::gate::Gate;
use super::log_store::Log;
use super::node::OnFatal;
use super::state::State;
use super::types::{MemberId, Raft};
use crate::env::{Env, Instant};

/// A leader that no quorum has answered for so long is none. Longer than any fsync should take.
pub(super) const LEASE: Duration = Duration::from_millis(1_000);
/// Shortest wait before standing for election where there are others who could.
pub(super) const ELECTION_TIMEOUT_MIN: Duration = Duration::from_millis(500);

/// A snapshot is made when the entries behind the last one take this much…
const SNAPSHOT_EVERY_BYTES: usize = 4 << 20;
/// …or are this many: a start reads and applies all of them.
const SNAPSHOT_EVERY_ENTRIES: u64 = 10_000;

pub(super) struct Watch {
    pub member: MemberId,
    pub raft: Raft,
    pub gate: Arc<Gate>,
    pub state: Arc<State>,
    pub log: Log,
    pub env: Env,
    pub on_fatal: OnFatal,
    /// When the vote of the last campaign was asked for.
    pub campaign: Option<Instant>,
    /// Index of the last entry, and bytes logged, when the last snapshot was asked for.
    pub snapshot_asked: (u64, usize),
}

/// The engine has ended by itself; why.
#[derive(Debug)]
pub(super) struct Ended(String);

impl From<Fatal<MemberId>> for Ended {
    fn from(fatal: Fatal<MemberId>) -> Self {
        Self(fatal.to_string())
    }
}

/// What the engine says of itself.
struct Standing {
    epoch: i32,
    is_leader: bool,
    is_voter: bool,
    voters: usize,
    last_index: u64,
    snapshot_index: u64,
}

impl Watch {
    /// Until stopped, or until the engine ends by itself.
    pub async fn run(mut self) {
        let mut metrics = self.raft.metrics();
        loop {
            metrics.borrow_and_update();
            let wait = match self.look().await {
                Ok(wait) => wait,
                Err(_) if self.gate.is_stopped() => return,
                Err(Ended(reason)) => {
                    self.gate.close(self.gate.epoch());
                    return (self.on_fatal)(&QuorumError::Engine(reason));
                }
            };
            if self.gate.is_stopped() {
                return;
            }
            let timer = async {
                match wait {
                    Some(wait) => self.env.clock.sleep(wait).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                changed = metrics.changed() => if changed.is_err() { return },
                () = self.gate.doubt.notified() => {}
                () = timer => {}
            }
        }
    }

    /// Opens or closes the gate, stands for election, asks for a snapshot; returns when to look
    /// again without a change.
    ///
    /// # Errors
    /// [`Ended`].
    pub async fn look(&mut self) -> Result<Option<Duration>, Ended> {
        let standing = self.standing()?;
        if !standing.is_leader {
            self.gate.close(standing.epoch);
            return self.stand_for_election(&standing).await;
        }
        self.campaign = None;
        // Past its end only a doubtful proposal of before can have been committed.
        let is_overtaken = *self.state.committed().borrow() > self.gate.end();
        if is_overtaken || !self.gate.is_open_in(standing.epoch) {
            match self.raft.ensure_linearizable().await {
                // All that earlier leaders committed is applied, and the sink knows it.
                Ok(_) => self.gate.open(standing.epoch, *self.state.committed().borrow()),
                Err(RaftError::Fatal(fatal)) => return Err(fatal.into()),
                Err(RaftError::APIError(error)) => {
                    tracing::info!(%error, "leadership of the metadata quorum is not confirmed");
                    return Ok(Some(ELECTION_TIMEOUT_MIN));
                }
            }
        }
        self.ask_for_snapshot(&standing).await?;
        // A leader of many looks whether it still has them; one voter has itself.
        Ok((standing.voters > 1).then_some(LEASE / 4))
    }

    fn standing(&self) -> Result<Standing, Ended> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        metrics.running_state.clone()?;
        let membership = metrics.membership_config.membership();
        let voters = membership.voter_ids().count();
        let acknowledged = metrics.millis_since_quorum_ack.map(Duration::from_millis);
        let has_lease = voters == 1 || acknowledged.is_some_and(|since| since < LEASE);
        Ok(Standing {
            epoch: i32::try_from(metrics.current_term).unwrap_or(i32::MAX),
            is_leader: metrics.state == ServerState::Leader && has_lease,
            is_voter: membership.voter_ids().any(|voter| voter == self.member),
            voters,
            last_index: metrics.last_applied.map_or(0, |id| id.index),
            snapshot_index: metrics.snapshot.map_or(0, |id| id.index),
        })
    }

    /// A single voter elects itself at once. With others, who would have to be asked first
    /// whether they miss a leader too (pre-vote), a campaign waits for the way to reach them:
    /// the network of this version knows none.
    async fn stand_for_election(&mut self, standing: &Standing) -> Result<Option<Duration>, Ended> {
        if !standing.is_voter || standing.voters > 1 {
            return Ok(None);
        }
        let now = self.env.clock.now();
        let again = self.campaign.map(|asked| asked + ELECTION_TIMEOUT_MIN);
        if again.is_none_or(|again| again <= now) {
            self.campaign = Some(now);
            self.raft.trigger().elect().await?;
        }
        Ok(Some(ELECTION_TIMEOUT_MIN))
    }

    async fn ask_for_snapshot(&mut self, standing: &Standing) -> Result<(), Ended> {
        let (asked_index, asked_bytes) = self.snapshot_asked;
        let logged_bytes = self.log.lock().logged_bytes;
        let entries = standing.last_index.saturating_sub(asked_index.max(standing.snapshot_index));
        if entries >= SNAPSHOT_EVERY_ENTRIES || logged_bytes - asked_bytes >= SNAPSHOT_EVERY_BYTES {
            self.snapshot_asked = (standing.last_index, logged_bytes);
            self.raft.trigger().snapshot().await?;
        }
        Ok(())
    }
}
