//! One machine on virtual time: every decision is written through the log's format and replayed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use bytes::Bytes;

use super::super::consumer::ConsumerFault;
use super::super::*;
use crate::config::BrokerConfig;
use crate::env::Instant;
use crate::machine::testing::through_the_log;
use crate::machine::{Context, Decision, Entry, EntryKind, Machine, Position, Ticket};
use crate::metadata::Image;

pub const START_MS: i64 = 1_700_000_000_000;

/// Asks, and remembers what was answered and written.
pub struct Bench {
    pub config: GroupConfig,
    pub image: Arc<Image>,
    pub groups: Groups,
    pub soft: Soft,
    pub log: Vec<GroupRecord>,
    pub effects: Vec<GroupEffect>,
    pub batch_bytes_max: usize,
    answers: BTreeMap<Ticket, GroupAnswer>,
    now: Duration,
    last_ticket: u64,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(config())
    }

    pub fn with(config: GroupConfig) -> Self {
        let mut bench = Self {
            config,
            image: Arc::default(),
            groups: Groups::default(),
            soft: Soft::default(),
            log: Vec::new(),
            effects: Vec::new(),
            batch_bytes_max: 1 << 20,
            answers: BTreeMap::new(),
            now: Duration::ZERO,
            last_ticket: 0,
        };
        bench.fail_over();
        bench
    }

    pub fn now_ms(&self) -> i64 {
        START_MS + self.now.as_millis() as i64
    }

    fn decide(
        &mut self,
        decide: impl FnOnce(&Groups, &mut Soft, &Context<'_, GroupWorld>) -> Decision<Groups>,
    ) -> Ticket {
        let world = GroupWorld::new(Arc::new(ArcSwap::from_pointee(self.config.clone())));
        world.image.store(self.image.clone());
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        let cx = Context {
            now_ms: self.now_ms(),
            now: Instant(self.now),
            epoch: 1,
            position: Position(self.log.len() as i64),
            ticket,
            seed: self.last_ticket,
            batch_bytes_max: self.batch_bytes_max,
            world: &world,
        };
        let decision = decide(&self.groups, &mut self.soft, &cx);
        assert!(decision.records.len() <= Decision::<Groups>::RECORDS_MAX);
        let mut bytes = 61;
        for record in decision.records {
            bytes += through_the_log(&record, record.bytes_at_most());
            self.replay(EntryKind::Plain, Some(record));
        }
        assert!(bytes <= self.batch_bytes_max, "{bytes} bytes in a batch");
        for (ticket, answer) in decision.answers {
            let before = self.answers.insert(ticket, answer);
            assert!(before.is_none(), "{ticket:?} is answered twice: {before:?}");
        }
        self.effects.extend(decision.effects);
        ticket
    }

    /// One entry of the log, as a coordinator meets it that loads or appends.
    pub fn replay(&mut self, kind: EntryKind, record: Option<GroupRecord>) {
        let at = Position(self.log.len() as i64);
        self.groups.replay(Entry { kind, record: record.as_ref() }, at);
        self.log.extend(record);
    }

    pub fn ask(&mut self, request: GroupRequest) -> Ticket {
        self.decide(|groups, soft, cx| groups.decide(soft, request, cx))
    }

    /// What was answered by now, once.
    pub fn take(&mut self, ticket: Ticket) -> Option<GroupAnswer> {
        self.answers.remove(&ticket)
    }

    pub fn now(&mut self, request: GroupRequest) -> GroupAnswer {
        let ticket = self.ask(request);
        self.take(ticket).expect("an answer at once")
    }

    /// Time passes; deadlines are met in their order.
    pub fn pass_ms(&mut self, ms: u64) {
        let until = self.now + Duration::from_millis(ms);
        while let Some(due) = self.groups.next_due(&self.soft).filter(|due| due.0 <= until) {
            self.now = self.now.max(due.0);
            let mut passed = Vec::new();
            self.decide(|groups, soft, cx| {
                passed = groups.due(soft, cx);
                Decision::default()
            });
            for request in passed {
                self.ask(request);
            }
        }
        self.now = until;
    }

    /// Another coordinator takes over, with what is in the log.
    pub fn fail_over(&mut self) {
        let mut soft = Soft::default();
        self.decide(|groups, _, cx| {
            let (elected, decision) = groups.elected(cx);
            soft = elected;
            decision
        });
        self.soft = soft;
    }

    pub fn join(&mut self, ask: JoinGroup) -> Ticket {
        self.ask(GroupRequest::Join(ask))
    }

    pub fn joined(&mut self, ticket: Ticket) -> Joined {
        match self.take(ticket) {
            Some(GroupAnswer::Join(Ok(joined))) => joined,
            other => panic!("not joined: {other:?}"),
        }
    }

    pub fn join_refused(&mut self, ticket: Ticket) -> JoinRefused {
        match self.take(ticket) {
            Some(GroupAnswer::Join(Err(refused))) => refused,
            other => panic!("not refused: {other:?}"),
        }
    }

    /// A member of version 4 and later: gets its id, then waits with it.
    pub fn join_with_id(&mut self, ask: JoinGroup) -> (MemberId, Ticket) {
        let ticket = self.join(ask.clone());
        let refused = self.join_refused(ticket);
        assert_eq!(refused.error, NotNow::MemberIdRequired.into());
        let member_id = refused.member_id;
        let ticket = self.join(JoinGroup { member_id: member_id.clone(), ..ask });
        (member_id, ticket)
    }

    pub fn sync(&mut self, joined: &Joined, assignments: &[(&MemberId, &'static [u8])]) -> Ticket {
        let own = |(id, bytes): &(&MemberId, &'static [u8])| {
            (MemberId::clone(id), Bytes::from_static(bytes))
        };
        self.ask(GroupRequest::Sync(SyncGroup {
            assignments: assignments.iter().map(own).collect(),
            ..sync_as(&joined.member_id, joined.generation_id)
        }))
    }

    pub fn synced(&mut self, ticket: Ticket) -> Bytes {
        match self.take(ticket) {
            Some(GroupAnswer::Sync(Ok(synced))) => synced.assignment,
            other => panic!("not synced: {other:?}"),
        }
    }

    /// `members` dynamic members of group `g`, stable; the leader first.
    pub fn stable(&mut self, members: usize) -> Vec<Joined> {
        let tickets: Vec<Ticket> =
            (0..members).map(|_| self.join_with_id(consumer("")).1).collect();
        self.pass_ms(10_000);
        let mut joined: Vec<Joined> = tickets.into_iter().map(|t| self.joined(t)).collect();
        joined.sort_by_key(|member| member.member_id != member.leader);
        let synced: Vec<Ticket> = joined.iter().map(|member| self.sync(member, &[])).collect();
        synced.into_iter().for_each(|ticket| drop(self.synced(ticket)));
        joined
    }

    pub fn heartbeat(&mut self, member_id: &str, generation_id: i32) -> String {
        let ask = Heartbeat {
            group_id: "g".into(),
            generation_id,
            member_id: member_id.into(),
            group_instance_id: None,
        };
        short(&self.now(GroupRequest::Heartbeat(ask)))
    }

    pub fn describe(&mut self, group_id: &str) -> Result<Description, GroupError> {
        match self.now(GroupRequest::Describe(group_id.into())) {
            GroupAnswer::Describe(outcome) => outcome,
            other => panic!("{other:?}"),
        }
    }

    pub fn state(&mut self) -> &'static str {
        self.describe("g").map_or(GroupState::DEAD, |group| group.state.name())
    }

    pub fn commit(&mut self, ask: OffsetCommit) -> String {
        short(&self.now(GroupRequest::Commit(ask)))
    }

    /// Committed offsets of `g`, as `topic-partition=offset`.
    pub fn offsets(&self) -> Vec<String> {
        let all = self.groups.fetch(&"g".into(), None, false);
        let one = |topic: &FetchedTopic| {
            let name = topic.name.clone();
            let all = topic.partitions.iter();
            all.map(|p| format!("{name}-{}={}", p.partition, p.offset)).collect::<Vec<_>>()
        };
        all.iter().flat_map(one).collect()
    }

    /// The last record written for `g`'s members.
    pub fn last_group(&self) -> &GroupMetadata {
        let last = self.log.iter().rev().find_map(|record| match record {
            GroupRecord::Group { value: Some(metadata), .. } => Some(&**metadata),
            _ => None,
        });
        last.expect("a group record")
    }
}

/// Kafka's defaults.
pub fn config() -> GroupConfig {
    BrokerConfig::default().group
}

/// A dynamic consumer of topic `t`, as JoinGroup 9 sends it.
pub fn consumer(member_id: &str) -> JoinGroup {
    JoinGroup {
        group_id: "g".into(),
        member_id: member_id.into(),
        group_instance_id: None,
        client_id: "c".into(),
        client_host: "/127.0.0.1".into(),
        session_timeout_ms: 45_000,
        rebalance_timeout_ms: Some(60_000),
        protocol_type: "consumer".into(),
        protocols: vec![protocol("range")],
        requires_member_id: true,
        can_skip_assignment: true,
    }
}

/// A static consumer.
pub fn instance(member_id: &str, instance: &str) -> JoinGroup {
    JoinGroup { group_instance_id: Some(instance.into()), ..consumer(member_id) }
}

pub fn sync_as(member_id: &str, generation_id: i32) -> SyncGroup {
    SyncGroup {
        group_id: "g".into(),
        generation_id,
        member_id: member_id.into(),
        group_instance_id: None,
        protocol_type: None,
        protocol_name: None,
        assignments: Vec::new(),
    }
}

/// Subscribed to topic `t`.
pub fn protocol(name: &str) -> Protocol {
    let metadata = b"\0\x01\0\0\0\x01\0\x01t\xff\xff\xff\xff\0\0\0\0";
    Protocol { name: name.into(), metadata: Bytes::from_static(metadata) }
}

/// Commits `offset` for `t-0`.
pub fn commit_as(member_id: &str, generation_id: i32, offset: i64) -> OffsetCommit {
    let partition =
        CommitPartition { partition: 0, offset, leader_epoch: -1, metadata: Some("m".into()) };
    OffsetCommit {
        group_id: "g".into(),
        generation_id,
        member_id: member_id.into(),
        group_instance_id: None,
        retention_ms: None,
        knows_group_not_found: true,
        by_topic_id: false,
        topics: vec![CommitTopic {
            id: crate::common::TopicId::NONE,
            name: "t".into(),
            partitions: vec![partition],
        }],
    }
}

pub fn leaving(member_id: &str, instance: Option<&str>) -> LeavingMember {
    LeavingMember { member_id: member_id.into(), group_instance_id: instance.map(Into::into) }
}

pub fn leave(members: Vec<LeavingMember>) -> GroupRequest {
    GroupRequest::Leave(LeaveGroup { group_id: "g".into(), members })
}

/// An answer in a word.
pub fn short(answer: &GroupAnswer) -> String {
    let all = |outcomes: &[TopicOutcome]| {
        let each = outcomes.iter().flat_map(|topic| &topic.partitions);
        each.map(|(_, outcome)| word(outcome)).collect::<Vec<_>>().join(" ")
    };
    match answer {
        GroupAnswer::Join(outcome) => {
            word(&outcome.as_ref().map(|_| ()).map_err(|refused| refused.error.clone()))
        }
        GroupAnswer::Sync(outcome) => word(&outcome.as_ref().map(|_| ()).map_err(Clone::clone)),
        GroupAnswer::Heartbeat(outcome) => word(outcome),
        GroupAnswer::Leave(left) => {
            left.iter().map(|member| word(&member.outcome)).collect::<Vec<_>>().join(" ")
        }
        GroupAnswer::Commit(outcome) | GroupAnswer::DeleteOffsets(outcome) => match outcome {
            Ok(outcomes) => all(outcomes),
            Err(error) => word(&Err(error.clone())),
        },
        GroupAnswer::Delete(outcome) => word(&outcome.as_ref().map(|_| ()).map_err(Clone::clone)),
        GroupAnswer::ConsumerHeartbeat(outcome) => {
            word(&outcome.as_ref().map(|_| ()).map_err(Clone::clone))
        }
        GroupAnswer::Describe(_)
        | GroupAnswer::DescribeConsumer(_)
        | GroupAnswer::List(_)
        | GroupAnswer::TopicsDeleted(_) => format!("{answer:?}"),
    }
}

fn word(outcome: &Result<(), GroupError>) -> String {
    let word = match outcome {
        Ok(()) => "ok",
        Err(GroupError::TooLarge { .. }) => "too large",
        Err(GroupError::Producer(_)) => "producer",
        Err(GroupError::NotNow(not_now)) => match not_now {
            NotNow::MemberIdRequired => "id required",
            NotNow::RebalanceInProgress => "rebalance",
            NotNow::UnstableOffset => "unstable",
            NotNow::Loading => "loading",
            NotNow::NotCoordinator => "not coordinator",
            NotNow::NotAvailable => "not available",
        },
        Err(GroupError::Consumer(fault)) => match fault {
            ConsumerFault::GroupNotFound(_) => "no group",
            ConsumerFault::UnknownMember { .. } | ConsumerFault::UnknownInstance(_) => {
                "unknown member"
            }
            ConsumerFault::Fenced { .. } | ConsumerFault::UnknownState => "fenced epoch",
            ConsumerFault::InstanceFenced { .. } => "fenced",
            ConsumerFault::InstanceUnreleased { .. } => "unreleased",
            ConsumerFault::StaleEpoch(_) => "stale epoch",
            ConsumerFault::CommitTooOld => "too old",
            ConsumerFault::GroupFull(_) => "full",
            ConsumerFault::InvalidRegex { .. } => "regex",
            ConsumerFault::InvalidRequest(_)
            | ConsumerFault::UnsupportedAssignor { .. }
            | ConsumerFault::Assignor(_) => "invalid",
        },
        Err(GroupError::Client(fault)) => match fault {
            ClientFault::NotClassic(_) => "not classic",
            ClientFault::UnknownMember => "unknown member",
            ClientFault::IllegalGeneration { .. } => "generation",
            ClientFault::FencedInstance => "fenced",
            ClientFault::InconsistentProtocol => "protocol",
            ClientFault::GroupFull { .. } => "full",
            ClientFault::GroupNotFound(_) => "no group",
            ClientFault::GroupNotEmpty => "not empty",
            ClientFault::SubscribedToTopic => "subscribed",
            ClientFault::MetadataTooLarge => "metadata",
            ClientFault::UnknownTopicOrPartition => "no topic",
            ClientFault::UnknownTopicId(_) => "no topic id",
            ClientFault::InvalidGroupId => "group id",
            ClientFault::InvalidSessionTimeout { .. } => "session timeout",
            ClientFault::PendingMemberWithInstance => "pending with instance",
            ClientFault::NameTooLong => "name",
        },
    };
    word.to_owned()
}
