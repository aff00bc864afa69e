//! All groups of this broker: finds the partition of `__consumer_offsets` that keeps a group and
//! asks its machine. Follows the metadata: partitions that come and go, deleted topics.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;

use super::consumer::{self, ConsumerHeartbeat, DescribedConsumerGroup, HeartbeatAnswer};
use super::describe::ListFilter;
use super::error::{ClientFault, GroupError, NotNow};
use super::machine::{GroupAnswer, GroupConfig, GroupEffect, GroupRequest, GroupWorld, Progress};
use super::state::Groups;
use super::types::{
    Description, GroupId, Heartbeat, JoinGroup, JoinRefused, Joined, LeaveGroup, LeftMember,
    ListGroups, ListedGroup, SyncGroup, Synced,
};
use crate::common::{BrokerId, TopicName};
use crate::coordinator::hash::partition_for;
use crate::coordinator::mismatched;
use crate::coordinator::shards::{ByPartition, Journals, Shards};
use crate::env::Env;
use crate::machine::{AskError, Journal, NotReady, Runtime};
use crate::metadata::{Delta, Image, Subscriber};

/// Where all groups and their offsets are kept.
pub const GROUP_TOPIC: &str = "__consumer_offsets";

/// Told what has happened in groups, after it is committed.
pub type OnGroupEffect = Arc<dyn Fn(GroupEffect) + Send + Sync>;

/// The group coordinator of one broker. Cloning shares it.
#[derive(Clone)]
pub struct GroupCoordinator {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    env: Env,
    config: Arc<ArcSwap<GroupConfig>>,
    world: Arc<ArcSwap<GroupWorld>>,
    on_effect: OnGroupEffect,
    shards: Shards<Groups>,
}

impl GroupCoordinator {
    /// - `config`: looked at afresh by each decision, so that it can be swapped.
    pub fn new(
        env: Env,
        broker_id: BrokerId,
        config: Arc<ArcSwap<GroupConfig>>,
        journals: Journals,
        on_effect: OnGroupEffect,
    ) -> Self {
        let world = Arc::new(ArcSwap::from_pointee(GroupWorld::new(config.clone())));
        let shards = Shards::new(GROUP_TOPIC, broker_id, journals);
        let shared = Shared { env, config, world, on_effect, shards };
        Self { shared: Arc::new(shared) }
    }

    pub(super) fn image(&self) -> Arc<Image> {
        self.shared.world.load().image.load_full()
    }

    /// The partition of `__consumer_offsets` that keeps `group_id`, whether or not the topic is
    /// there yet.
    pub fn coordinator_partition(&self, group_id: &str) -> i32 {
        let image = self.image();
        let partitions = image.topic(GROUP_TOPIC).map(|topic| topic.partition_count());
        let planned = self.shared.config.load().offsets_topic_num_partitions;
        partition_for(group_id, partitions.unwrap_or(planned))
    }

    /// The machine that keeps `group_id`, if this broker has it.
    pub(super) fn shard(&self, group_id: &str) -> Result<Arc<Runtime<Groups>>, GroupError> {
        let partition = self.coordinator_partition(group_id);
        let shard = self.shared.shards.get(partition);
        shard.ok_or_else(|| NotNow::NotCoordinator.into())
    }

    /// Decides before this returns; the future is the answer. Dropping it gives a parked join or
    /// sync up.
    pub(super) fn ask(
        &self,
        group_id: &str,
        request: GroupRequest,
    ) -> impl Future<Output = Result<GroupAnswer, GroupError>> + Send + use<> {
        let asked = self.shard(group_id).map(|shard| shard.ask(request));
        async move {
            match asked?.await {
                Ok((answer, _)) => Ok(answer),
                Err(error) => Err(unanswered(&error)),
            }
        }
    }

    /// JoinGroup: waits until the group has a new generation, or for the refusal.
    pub async fn join_group(&self, ask: JoinGroup) -> Result<Joined, JoinRefused> {
        let (group_id, member_id) = (ask.group_id.clone(), ask.member_id.clone());
        let refused = |error| JoinRefused { member_id: member_id.clone(), error };
        self.check_join(&ask).map_err(|fault| refused(fault.into()))?;
        match self.ask(&group_id, GroupRequest::Join(ask)).await {
            Ok(GroupAnswer::Join(outcome)) => outcome,
            Ok(other) => mismatched(&other),
            // Kafka leaves the member id out where the coordinator itself did not answer.
            Err(error) => Err(JoinRefused { member_id: "".into(), error }),
        }
    }

    fn check_join(&self, ask: &JoinGroup) -> Result<(), ClientFault> {
        check_group_id(&ask.group_id)?;
        let (config, sent_ms) = (self.shared.config.load(), ask.session_timeout_ms);
        let (min_ms, max_ms) = (config.min_session_timeout_ms, config.max_session_timeout_ms);
        if (min_ms..=max_ms).contains(&sent_ms) {
            Ok(())
        } else {
            Err(ClientFault::InvalidSessionTimeout { sent_ms, min_ms, max_ms })
        }
    }

    /// SyncGroup: a follower waits for its leader's assignment.
    pub async fn sync_group(&self, ask: SyncGroup) -> Result<Synced, GroupError> {
        check_group_id(&ask.group_id)?;
        match self.ask(&ask.group_id.clone(), GroupRequest::Sync(ask)).await? {
            GroupAnswer::Sync(outcome) => outcome,
            other => mismatched(&other),
        }
    }

    /// Heartbeat. While the groups are being loaded it is well: nobody has missed anything yet.
    pub async fn heartbeat(&self, ask: Heartbeat) -> Result<(), GroupError> {
        check_group_id(&ask.group_id)?;
        match self.ask(&ask.group_id.clone(), GroupRequest::Heartbeat(ask)).await {
            Ok(GroupAnswer::Heartbeat(outcome)) => outcome,
            Ok(other) => mismatched(&other),
            Err(GroupError::NotNow(NotNow::Loading)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// ConsumerGroupHeartbeat (KIP-848).
    ///
    /// # Errors
    /// Kafka's codes and sentences; a member that is fenced or unknown joins anew with epoch 0.
    pub async fn consumer_heartbeat(
        &self,
        ask: ConsumerHeartbeat,
    ) -> Result<HeartbeatAnswer, GroupError> {
        consumer::check(&ask, &self.shared.config.load())?;
        match self.ask(&ask.group_id.clone(), GroupRequest::ConsumerHeartbeat(ask)).await? {
            GroupAnswer::ConsumerHeartbeat(outcome) => outcome,
            other => mismatched(&other),
        }
    }

    /// ConsumerGroupDescribe: in the order asked for.
    pub async fn describe_consumer_groups(
        &self,
        ids: Vec<GroupId>,
    ) -> Vec<(GroupId, Result<DescribedConsumerGroup, GroupError>)> {
        let mut described = Vec::with_capacity(ids.len());
        for id in ids {
            let outcome = match check_group_id(&id) {
                Err(fault) => Err(fault.into()),
                Ok(()) => match self.ask(&id, GroupRequest::DescribeConsumer(id.clone())).await {
                    Ok(GroupAnswer::DescribeConsumer(outcome)) => outcome,
                    Ok(other) => mismatched(&other),
                    Err(error) => Err(error),
                },
            };
            described.push((id, outcome));
        }
        described
    }

    /// LeaveGroup: an outcome for each member, in the order asked for.
    pub async fn leave_group(&self, ask: LeaveGroup) -> Result<Vec<LeftMember>, GroupError> {
        check_group_id(&ask.group_id)?;
        match self.ask(&ask.group_id.clone(), GroupRequest::Leave(ask)).await? {
            GroupAnswer::Leave(left) => Ok(left),
            other => mismatched(&other),
        }
    }

    /// DescribeGroups: in the order asked for. An unknown group is [`ClientFault::GroupNotFound`],
    /// which versions before 6 show as a group in state [`GroupState::DEAD`](super::GroupState).
    pub async fn describe_groups(
        &self,
        ids: Vec<GroupId>,
    ) -> Vec<(GroupId, Result<Description, GroupError>)> {
        let ask = |id: GroupId| (self.ask(&id, GroupRequest::Describe(id.clone())), id);
        let asked: Vec<_> = ids.into_iter().map(ask).collect();
        let mut described = Vec::with_capacity(asked.len());
        for (answer, id) in asked {
            match answer.await {
                Ok(GroupAnswer::Describe(outcome)) => described.push((id, outcome)),
                Ok(other) => mismatched(&other),
                Err(error) => described.push((id, Err(error))),
            }
        }
        described
    }

    /// ListGroups: the groups that this broker coordinates.
    pub async fn list_groups(&self, ask: &ListGroups) -> Result<Vec<ListedGroup>, GroupError> {
        let filter = ListFilter::from(ask);
        let asked: Vec<_> = {
            let shards = self.shared.shards.all();
            shards.values().map(|shard| shard.ask(GroupRequest::List(filter.clone()))).collect()
        };
        let mut listed = Vec::new();
        for answer in asked {
            match answer.await {
                Ok((GroupAnswer::List(groups), _)) => listed.extend(groups),
                Ok((other, _)) => mismatched(&other),
                Err(error) => match unanswered(&error) {
                    GroupError::NotNow(NotNow::NotCoordinator) => {}
                    error => return Err(error),
                },
            }
        }
        Ok(listed)
    }

    /// DeleteGroups: an outcome for each group, in the order asked for.
    pub async fn delete_groups(&self, ids: Vec<GroupId>) -> Vec<(GroupId, Result<(), GroupError>)> {
        let mut deleted = Vec::with_capacity(ids.len());
        for id in ids {
            let outcome = loop {
                match self.ask(&id, GroupRequest::Delete(id.clone())).await {
                    Ok(GroupAnswer::Delete(Ok(Progress::More))) => {}
                    Ok(GroupAnswer::Delete(outcome)) => break outcome.map(|_| ()),
                    Ok(other) => mismatched(&other),
                    Err(error) => break Err(error),
                }
            };
            deleted.push((id, outcome));
        }
        deleted
    }

    /// Groups and committed offsets of the partitions that are led here: (groups, offsets).
    pub async fn counts(&self) -> (usize, usize) {
        let shards = self.shared.shards.all();
        let mut sum = (0, 0);
        for shard in shards.values() {
            let counted = shard.read(|groups| (groups.groups_count(), groups.offsets_count()));
            if let Ok((groups, offsets)) = counted.await {
                sum = (sum.0 + groups, sum.1 + offsets);
            }
        }
        sum
    }

    /// No decision after this.
    pub fn stop(&self) {
        self.shared.shards.stop();
    }
}

impl Subscriber for GroupCoordinator {
    fn publish(&self, delta: &Delta) {
        let world = self.shared.world.load();
        world.image.store(delta.after.clone());
        if delta.created().next().is_some() {
            world.topics_made_at.store(delta.after.end_offset, Ordering::Relaxed);
        }
        self.shared.shards.follow(delta, |journal| self.shared.start(journal));
        let is_other = |name: &TopicName| **name != *GROUP_TOPIC;
        let deleted: Vec<TopicName> =
            delta.deleted().map(|topic| topic.name.clone()).filter(is_other).collect();
        if !deleted.is_empty() {
            let shards = self.shared.shards.all();
            self.shared.env.tasks.spawn_data(forget_topics(shards, deleted));
        }
    }
}

impl Shared {
    fn start(self: &Arc<Self>, journal: Arc<dyn Journal>) -> Runtime<Groups> {
        let (env, world, tell) = (self.env.clone(), self.world.clone(), self.on_effect.clone());
        let shared = Arc::downgrade(self);
        let on_effect = Box::new(move |effect, _epoch| match effect {
            GroupEffect::ResolveRegexes { group_id, regexes } => {
                resolve_regexes(&shared, group_id, regexes);
            }
            effect => tell(effect),
        });
        let runtime = Runtime::new(Groups::default(), journal, env, world, on_effect);
        self.env.tasks.spawn_data(runtime.run());
        runtime
    }
}

/// Looks the topics of a group's regular expressions up, and tells the group.
fn resolve_regexes(shared: &Weak<Shared>, group_id: GroupId, regexes: Vec<Arc<str>>) {
    let Some(shared) = shared.upgrade() else { return };
    let env = shared.env.clone();
    env.tasks.clone().spawn_data(async move {
        let coordinator = GroupCoordinator { shared };
        let (image, now_ms) = (coordinator.image(), env.clock.wall_ms());
        let resolve = move || consumer::resolve(&regexes, &image, now_ms);
        let Ok(resolved) = env.tasks.spawn_blocking(resolve).await else { return };
        let resolved = GroupRequest::RegexesResolved(group_id.clone(), resolved);
        // Nobody waits: a coordinator that is gone takes the question with it.
        drop(coordinator.ask(&group_id, resolved));
    });
}

/// Writes tombstones for the offsets of topics that are gone. What a partition misses (it is not
/// led here, or fails) its next leader keeps until it expires, as in Kafka.
async fn forget_topics(shards: Arc<ByPartition<Groups>>, topics: Vec<TopicName>) {
    for shard in shards.values() {
        let request = || GroupRequest::TopicsDeleted(topics.clone());
        while let Ok((GroupAnswer::TopicsDeleted(Progress::More), _)) = shard.ask(request()).await {
        }
    }
}

pub(super) fn check_group_id(group_id: &str) -> Result<(), ClientFault> {
    if group_id.is_empty() { Err(ClientFault::InvalidGroupId) } else { Ok(()) }
}

/// What it means that a machine gave no answer. Kafka sends the client to another broker where
/// this one's storage failed or its leadership ended.
pub(super) fn unanswered(error: &AskError) -> GroupError {
    let not_now = match error {
        AskError::NotReady(NotReady::TooFewReplicas) => NotNow::NotAvailable,
        AskError::NotReady(NotReady::NotLeader | NotReady::Storage) | AskError::Lost => {
            NotNow::NotCoordinator
        }
        AskError::Loading => NotNow::Loading,
        AskError::Refused(fault) => return (*fault).into(),
    };
    not_now.into()
}
