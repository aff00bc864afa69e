//! Who may commit and read offsets of a consumer group: members with their epoch.

use super::heartbeat::unknown;
use super::state::{ConsumerGroup, ConsumerMember};
use super::types::ConsumerFault;
use crate::common::TopicId;
use crate::coordinator::group::error::{ClientFault, GroupError};
use crate::coordinator::group::types::{GroupId, MemberId, OffsetCommit};

/// The member that commits with an older epoch than its current one: partition by partition it
/// must have had them since then.
pub type Committer<'g> = Option<&'g ConsumerMember>;

impl ConsumerGroup {
    /// Who commits; `None`: somebody who may commit for every partition.
    ///
    /// # Errors
    /// Not a member, or not with this epoch.
    pub fn committer(&self, ask: &OffsetCommit) -> Result<Committer<'_>, GroupError> {
        let epoch = ask.generation_id;
        if epoch < 0 && self.members.is_empty() {
            return Ok(None);
        }
        let found = self.members.get(&ask.member_id);
        let member = found.ok_or_else(|| unknown(&ask.member_id, &ask.group_id))?;
        if member.about.classic.is_none() && !ask.knows_group_not_found {
            return Err(ConsumerFault::CommitTooOld.into());
        }
        let current = member.current.epoch;
        if epoch > current {
            return Err(member.stale(epoch));
        }
        Ok(Some(member).filter(|_| epoch < current))
    }

    /// Whether a member may read offsets: with its current epoch, and an administrator without.
    ///
    /// # Errors
    /// Not a member, or not with this epoch.
    pub fn check_fetch(
        &self,
        group_id: &GroupId,
        member_id: Option<&MemberId>,
        epoch: i32,
    ) -> Result<(), GroupError> {
        let nobody = MemberId::default();
        let id = match member_id {
            None if epoch < 0 => return Ok(()),
            id => id.unwrap_or(&nobody),
        };
        let member = self.members.get(id).ok_or_else(|| unknown(id, group_id))?;
        if member.current.epoch == epoch { Ok(()) } else { Err(member.stale(epoch)) }
    }
}

impl ConsumerMember {
    /// # Errors
    /// The member did not have the partition in `epoch`.
    pub fn check_commit(
        &self,
        epoch: i32,
        topic: TopicId,
        partition: i32,
    ) -> Result<(), GroupError> {
        let of = [&self.current.assigned, &self.current.revoking];
        let since = of.into_iter().find_map(|owned| owned.get(&topic)?.get(&partition));
        if since.is_some_and(|since| epoch >= *since) { Ok(()) } else { Err(self.stale(epoch)) }
    }

    fn stale(&self, sent: i32) -> GroupError {
        let current = self.current.epoch;
        match self.about.classic {
            Some(_) => ClientFault::IllegalGeneration { sent, current }.into(),
            None => ConsumerFault::StaleEpoch(sent).into(),
        }
    }
}
