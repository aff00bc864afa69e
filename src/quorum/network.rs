//! The way to other members. In this version the quorum has one voter, so there is nobody to
//! reach, and saying so is the whole truth.

use openraft::error::{InstallSnapshotError, RPCError, RaftError, Unreachable};
use openraft::network::RPCOption;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use openraft::{BasicNode, RaftNetwork, RaftNetworkFactory};

use super::types::{MemberId, Types};

/// Why a message to another member does not leave.
#[derive(Debug, thiserror::Error)]
#[error("{0} is not reachable: in this version of Ottla the quorum has one voter, itself")]
struct NoOtherMembers(MemberId);

pub(super) struct Network;

pub(super) struct Peer(MemberId);

impl Peer {
    fn unreachable<E: std::error::Error>(&self) -> RPCError<MemberId, BasicNode, E> {
        RPCError::Unreachable(Unreachable::new(&NoOtherMembers(self.0)))
    }
}

impl RaftNetworkFactory<Types> for Network {
    type Network = Peer;

    async fn new_client(&mut self, target: MemberId, _: &BasicNode) -> Peer {
        Peer(target)
    }
}

impl RaftNetwork<Types> for Peer {
    async fn append_entries(
        &mut self,
        _: AppendEntriesRequest<Types>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<MemberId>, RPCError<MemberId, BasicNode, RaftError<MemberId>>>
    {
        Err(self.unreachable())
    }

    async fn install_snapshot(
        &mut self,
        _: InstallSnapshotRequest<Types>,
        _: RPCOption,
    ) -> Result<
        InstallSnapshotResponse<MemberId>,
        RPCError<MemberId, BasicNode, RaftError<MemberId, InstallSnapshotError>>,
    > {
        Err(self.unreachable())
    }

    async fn vote(
        &mut self,
        _: VoteRequest<MemberId>,
        _: RPCOption,
    ) -> Result<VoteResponse<MemberId>, RPCError<MemberId, BasicNode, RaftError<MemberId>>> {
        Err(self.unreachable())
    }
}
