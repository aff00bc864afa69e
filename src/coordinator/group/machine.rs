//! The machine: which request goes where, and what a decision works with.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;

use super::consumer::{
    ConsumerHeartbeat, DescribedConsumerGroup, HeartbeatAnswer, ResolvedRegex, Watches,
};
use super::describe::ListFilter;
use super::error::{ClientFault, GroupError};
use super::live::Live;
use super::record::GroupRecord;
use super::state::{Groups, Kept};
use super::timers::{Timer, Timers};
use super::types::{
    Description, GroupId, Heartbeat, JoinGroup, JoinRefused, Joined, LeaveGroup, LeftMember,
    ListedGroup, OffsetCommit, OffsetDelete, SyncGroup, Synced, TopicOutcome,
};
use crate::common::{Offset, TopicName};
use crate::env::Instant;
use crate::machine::{Batch, Context, Decision, Entry, Machine, Position};
use crate::metadata::Image;

/// Due timers that one look handles; the rest follow at once.
const DUE_MAX: usize = 256;

/// The broker's settings for groups.
pub use crate::config::GroupKeys as GroupConfig;

/// What decisions look at beside the groups; swapped while they are made.
#[derive(Debug)]
pub struct GroupWorld {
    pub config: Arc<ArcSwap<GroupConfig>>,
    pub image: ArcSwap<Image>,
    /// End offset of the last image that brought new topics.
    pub topics_made_at: AtomicI64,
}

impl GroupWorld {
    pub fn new(config: Arc<ArcSwap<GroupConfig>>) -> Self {
        let (image, topics_made_at) = (ArcSwap::default(), AtomicI64::new(0));
        Self { config, image, topics_made_at }
    }
}

/// What one partition's machine is asked.
#[derive(Debug, Clone)]
pub enum GroupRequest {
    Join(JoinGroup),
    Sync(SyncGroup),
    Heartbeat(Heartbeat),
    ConsumerHeartbeat(ConsumerHeartbeat),
    /// What [`GroupEffect::ResolveRegexes`] came to; nobody waits for an answer.
    RegexesResolved(GroupId, Vec<(Arc<str>, Arc<ResolvedRegex>)>),
    Leave(LeaveGroup),
    Commit(OffsetCommit),
    DeleteOffsets(OffsetDelete),
    /// To be asked again until it is answered with [`Progress::Done`].
    Delete(GroupId),
    /// Topics that are gone; to be asked again until it is answered with [`Progress::Done`].
    TopicsDeleted(Vec<TopicName>),
    Describe(GroupId),
    DescribeConsumer(GroupId),
    List(ListFilter),
    /// A deadline passed; nobody waits for an answer.
    Passed(Timer, Instant),
}

/// How far a request has come whose records may not fit one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    More,
    Done,
}

/// What one partition's machine answers, variant by variant as it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupAnswer {
    Join(Result<Joined, JoinRefused>),
    Sync(Result<Synced, GroupError>),
    Heartbeat(Result<(), GroupError>),
    ConsumerHeartbeat(Result<HeartbeatAnswer, GroupError>),
    Leave(Vec<LeftMember>),
    Commit(Result<Vec<TopicOutcome>, GroupError>),
    DeleteOffsets(Result<Vec<TopicOutcome>, GroupError>),
    Delete(Result<Progress, GroupError>),
    TopicsDeleted(Progress),
    Describe(Result<Description, GroupError>),
    DescribeConsumer(Result<DescribedConsumerGroup, GroupError>),
    List(Vec<ListedGroup>),
}

/// What has happened, for those who count it, and what is to be done aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupEffect {
    RebalanceCompleted,
    /// A consumer group's epoch went up.
    ConsumerRebalance,
    OffsetsExpired {
        count: usize,
    },
    /// To be answered with [`GroupRequest::RegexesResolved`].
    ResolveRegexes {
        group_id: GroupId,
        regexes: Vec<Arc<str>>,
    },
}

/// What a failover loses: members of a rebalance under way, who waits for it, and all deadlines.
#[derive(Debug, Default)]
pub struct Soft {
    pub(super) groups: BTreeMap<GroupId, Box<Live>>,
    pub(super) timers: Timers,
    pub(super) watches: Watches,
    /// Where the running search for expired offsets goes on.
    pub(super) expiry_from: Option<GroupId>,
}

pub(super) type Cx<'a> = Context<'a, GroupWorld>;

impl Machine for Groups {
    type World = GroupWorld;
    type Request = GroupRequest;
    type Answer = GroupAnswer;
    type Record = GroupRecord;
    type Effect = GroupEffect;
    type Soft = Soft;

    /// Members of the last finished generations get a whole session timeout to be heard of.
    fn elected(&self, cx: &Cx<'_>) -> (Soft, Decision<Self>) {
        let mut soft = Soft::default();
        let mut turn = Turn::new(self, &mut soft.timers, &mut soft.watches, cx);
        turn.arm_expiry();
        for (id, kept) in self.groups_from(GroupId::default()) {
            let metadata = match kept {
                Kept::Classic(metadata) => metadata,
                Kept::Consumer(group) => {
                    turn.arm_consumer(id, group);
                    continue;
                }
            };
            if metadata.members.is_empty() {
                continue;
            }
            let mut group = Box::new(Live::loaded(id.clone(), metadata));
            turn.arm_sessions(&group);
            if group.members.len() > turn.size_max() {
                // The limit was lowered: whoever rejoins first stays.
                turn.prepare_rebalance(&mut group);
            }
            soft.groups.insert(id.clone(), group);
        }
        let decision = turn.decision;
        (soft, decision)
    }

    fn decide(&self, soft: &mut Soft, request: GroupRequest, cx: &Cx<'_>) -> Decision<Self> {
        let Soft { groups, timers, watches, expiry_from } = soft;
        let mut turn = Turn::new(self, timers, watches, cx);
        match request {
            GroupRequest::Join(ask) => turn.decide_join(groups, ask),
            GroupRequest::Sync(ask) => turn.decide_sync(groups, ask),
            GroupRequest::Heartbeat(ask) => turn.decide_heartbeat(groups, &ask),
            GroupRequest::ConsumerHeartbeat(ask) => turn.decide_consumer_heartbeat(groups, &ask),
            GroupRequest::RegexesResolved(id, resolved) => {
                turn.decide_resolved(groups, &id, resolved);
            }
            GroupRequest::DescribeConsumer(id) => turn.decide_describe_consumer(&id),
            GroupRequest::Leave(ask) => turn.decide_leave(groups, ask),
            GroupRequest::Commit(ask) => turn.decide_commit(groups, ask),
            GroupRequest::DeleteOffsets(ask) => turn.decide_delete_offsets(groups, ask),
            GroupRequest::Delete(group_id) => turn.decide_delete(groups, &group_id),
            GroupRequest::TopicsDeleted(topics) => turn.decide_topics_deleted(topics),
            GroupRequest::Describe(id) => turn.decide_describe(groups, &id),
            GroupRequest::List(filter) => turn.decide_list(groups, &filter),
            GroupRequest::Passed(timer, at) => {
                if turn.timers.fire(&timer, at) {
                    if timer == Timer::Expiry {
                        turn.expire_offsets(groups, expiry_from);
                    } else {
                        turn.decide_passed(groups, timer);
                    }
                }
            }
        }
        turn.decision
    }

    fn replay(&mut self, entry: Entry<&GroupRecord>, at: Position) {
        self.apply(entry, at);
    }

    fn due(&self, soft: &mut Soft, cx: &Cx<'_>) -> Vec<GroupRequest> {
        let passed = soft.timers.passed(cx.now, DUE_MAX).into_iter();
        passed.map(|(timer, at)| GroupRequest::Passed(timer, at)).collect()
    }

    fn next_due(&self, soft: &Soft) -> Option<Instant> {
        soft.timers.next()
    }
}

/// The live groups of a partition.
pub(super) type LiveGroups = BTreeMap<GroupId, Box<Live>>;

/// One decision in the making.
pub(super) struct Turn<'a> {
    pub state: &'a Groups,
    pub timers: &'a mut Timers,
    pub watches: &'a mut Watches,
    pub config: Arc<GroupConfig>,
    pub image: Arc<Image>,
    pub topics_made_at: Offset,
    pub cx: &'a Cx<'a>,
    pub decision: Decision<Groups>,
    /// Upper bound of the batch that the decision's records make.
    batch_bytes: usize,
}

impl<'a> Turn<'a> {
    fn new(
        state: &'a Groups,
        timers: &'a mut Timers,
        watches: &'a mut Watches,
        cx: &'a Cx<'a>,
    ) -> Self {
        Self {
            state,
            timers,
            watches,
            config: cx.world.config.load_full(),
            image: cx.world.image.load_full(),
            topics_made_at: cx.world.topics_made_at.load(Ordering::Relaxed),
            cx,
            decision: Decision::default(),
            batch_bytes: Batch::HEADER_BYTES,
        }
    }

    /// `group.max.size`.
    pub fn size_max(&self) -> usize {
        usize::try_from(self.config.max_size).unwrap_or(0)
    }

    /// The next search for expired offsets.
    pub fn arm_expiry(&mut self) {
        let interval_ms = self.config.offsets_retention_check_interval_ms;
        let interval = Duration::from_millis(u64::try_from(interval_ms).unwrap_or(0));
        self.timers.arm(Timer::Expiry, self.cx.now + interval);
    }

    /// The group in memory, brought there from its record if it has one.
    pub fn live<'g>(&self, groups: &'g mut LiveGroups, id: &GroupId) -> Option<&'g mut Live> {
        if !groups.contains_key(id) {
            let metadata = self.state.classic(id)?;
            groups.insert(id.clone(), Box::new(Live::loaded(id.clone(), metadata)));
        }
        groups.get_mut(id).map(|group| &mut **group)
    }

    /// Forgets the group if its record says all there is to know.
    pub fn settle(&self, groups: &mut LiveGroups, id: &GroupId) {
        if groups.get(id).is_some_and(|group| group.is_idle()) {
            groups.remove(id);
        }
    }

    /// Answers the one who asks.
    pub fn answer(&mut self, answer: GroupAnswer) {
        self.decision.answers.push((self.cx.ticket, answer));
    }

    /// Adds a small record that always fits.
    pub fn push(&mut self, record: GroupRecord) {
        self.batch_bytes += record.bytes_at_most();
        self.decision.records.push(record);
    }

    /// Adds records if they still fit this decision's batch.
    ///
    /// # Errors
    /// [`GroupError::TooLarge`]: nothing was added.
    pub fn write(&mut self, records: Vec<GroupRecord>) -> Result<(), GroupError> {
        let bytes_max = self.cx.batch_bytes_max;
        let added: usize = records.iter().map(GroupRecord::bytes_at_most).sum();
        let bytes = self.batch_bytes + added;
        let count = self.decision.records.len() + records.len();
        if bytes > bytes_max || count > Decision::<Groups>::RECORDS_MAX {
            return Err(GroupError::TooLarge { bytes, bytes_max });
        }
        records.into_iter().for_each(|record| self.push(record));
        Ok(())
    }

    /// As many of `records` as still fit this decision's batch; says whether some are left.
    ///
    /// # Errors
    /// [`GroupError::TooLarge`]: there is one that fits no batch at all.
    pub fn write_some(
        &mut self,
        records: impl IntoIterator<Item = GroupRecord>,
    ) -> Result<Progress, GroupError> {
        for record in records {
            let bytes_max = self.cx.batch_bytes_max;
            let bytes = self.batch_bytes + record.bytes_at_most();
            let count = self.decision.records.len() + 1;
            if bytes > bytes_max || count > Decision::<Groups>::RECORDS_MAX {
                let has_some = !self.decision.records.is_empty();
                let too_large = GroupError::TooLarge { bytes, bytes_max };
                return if has_some { Ok(Progress::More) } else { Err(too_large) };
            }
            self.push(record);
        }
        Ok(Progress::Done)
    }
}

pub(super) fn not_found(group_id: &GroupId) -> GroupError {
    ClientFault::GroupNotFound(group_id.to_string()).into()
}
