//! A member between its lives, and what both protocols share.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::super::super::*;
use super::super::bench::commit_as;
use super::Lab;
use crate::common::{Offset, TopicId};
use crate::env::Random;

/// Longer than every deadline that a join or sync may be held for.
const PARKED_MS: u64 = 45_000;

/// Which protocols a group's members speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    Classic,
    Consumer,
    /// Each life anew, so that the group changes its kind.
    Mixed,
}

impl Plan {
    pub fn any(random: &Random) -> Self {
        [Self::Classic, Self::Consumer, Self::Mixed][random.below(3) as usize]
    }
}

pub struct Member {
    pub lab: Arc<Lab>,
    pub id: u64,
    pub group_id: GroupId,
    pub random: Random,
    pub plan: Plan,
    /// A static member, in all its lives.
    pub instance_id: Option<InstanceId>,
}

impl Member {
    pub fn new(lab: Arc<Lab>, id: u64, (group_id, plan): (GroupId, Plan), random: Random) -> Self {
        let is_static = random.below(3) == 0;
        let instance_id = is_static.then(|| format!("i{id}").into());
        Self { lab, id, group_id, random, plan, instance_id }
    }

    pub async fn run(self) {
        for _ in 0..=self.random.below(4) {
            let speaks_classic = match self.plan {
                Plan::Classic => true,
                Plan::Consumer => false,
                Plan::Mixed => self.chance(2),
            };
            if speaks_classic {
                self.live_classic().await;
            } else {
                self.live_consumer().await;
            }
            self.give_up();
            self.pause_below(8_000).await;
        }
    }

    pub fn chance(&self, of: u64) -> bool {
        self.random.below(of) == 0
    }

    pub async fn pause_below(&self, ms: u64) {
        self.lab.sleep_ms(self.random.below(ms)).await;
    }

    /// From here on others may read what this member read.
    pub fn give_up(&self) {
        self.lab.model().give_up(self.id);
    }

    pub fn note(&self, what: &str) {
        self.lab.note(&format!("{} of {}: {what}", self.id, self.group_id));
    }

    /// The answer, which must come in time; `None` where this member does not wait for it.
    pub async fn answer<T>(&self, what: &str, work: impl Future<Output = T>) -> Option<T> {
        let clock = &self.lab.env.clock;
        if self.chance(25) {
            let patience = Duration::from_millis(self.random.below(300));
            return clock.until(clock.deadline_in(patience), work).await;
        }
        let answer = clock.until(clock.deadline_in(Duration::from_millis(PARKED_MS)), work).await;
        assert!(answer.is_some(), "{what} of {} in {} is not answered", self.id, self.group_id);
        answer
    }

    /// Commits for one of `partitions` as a member of `epoch`, or looks what is committed.
    pub async fn commit_or_look(&self, member_id: &MemberId, epoch: i32, partitions: &[i32]) {
        let Some(partition) =
            partitions.get(self.random.below(partitions.len() as u64 + 1) as usize)
        else {
            return;
        };
        if self.chance(3) {
            self.look_at_committed(*partition).await;
            return;
        }
        let offset = self.lab.model().next_offset();
        let ask = self.commit(member_id, epoch, *partition, offset);
        let coordinator = self.lab.coordinator();
        let Some(outcomes) = self.answer("a commit", coordinator.commit_offsets(ask)).await else {
            return;
        };
        self.note(&format!("commit {outcomes:?}"));
        if outcomes[0].partitions[0].1.is_ok() {
            let mut model = self.lab.model();
            model.outcome.commits += 1;
            model.promise(&self.group_id, *partition, offset);
        }
    }

    fn commit(
        &self,
        member_id: &MemberId,
        epoch: i32,
        partition: i32,
        offset: Offset,
    ) -> OffsetCommit {
        let mut ask = commit_as(member_id, epoch, offset);
        ask.topics[0].partitions[0].partition = partition;
        OffsetCommit {
            group_id: self.group_id.clone(),
            group_instance_id: self.instance_id.clone(),
            ..ask
        }
    }

    async fn look_at_committed(&self, partition: i32) {
        let promised = self.lab.model().promised(&self.group_id, partition);
        let ask = OffsetFetch {
            group_id: self.group_id.clone(),
            topics: Some(vec![FetchTopic {
                id: TopicId::NONE,
                name: "t".into(),
                partitions: vec![partition],
            }]),
            member_id: None,
            member_epoch: -1,
            require_stable: true,
            by_topic_id: false,
        };
        let coordinator = self.lab.coordinator();
        let fetched = self.answer("a look", coordinator.fetch_offsets(ask)).await;
        let Some(Ok(topics)) = fetched else { return };
        let found = topics[0].partitions[0].offset;
        self.note(&format!("committed {found}"));
        let least = promised.unwrap_or(-1);
        assert!(found >= least, "{partition}: {found} is committed, {least} was promised");
        if found >= 0 {
            self.lab.model().promise(&self.group_id, partition, found);
        }
    }
}
