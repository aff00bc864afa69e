//! Members of classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    ConsumerProtocolAssignment, ConsumerProtocolSubscription, GroupId, HeartbeatRequest,
    JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, SyncGroupRequest, TopicName,
    consumer_protocol_assignment::TopicPartition,
};
use kafka_protocol::protocol::{Encodable, StrBytes};
use ottla::env::Clock;
use ottla::protocol::error::ErrorCode;
use tokio::task::JoinSet;

use super::client::{Client, Outcome, comes_later, pause, said};
use super::{TOPIC, Window, commits, run_for, with_each};

/// The Java consumer's default.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(3);
/// Longer than it takes until all groups are there, since nobody sends heartbeats before.
const SESSION_TIMEOUT_MS: i32 = 300_000;
const REBALANCE_TIMEOUT_MS: i32 = 300_000;
const CONSUMER: StrBytes = StrBytes::from_static_str("consumer");
const ASSIGNOR: StrBytes = StrBytes::from_static_str("range");
/// Groups that are made at the same time.
const AT_ONCE: usize = 64;

struct Group {
    id: GroupId,
    size: usize,
    /// Members of the generation that its leader has last seen.
    joined: AtomicUsize,
}

struct Member {
    client: Client,
    group: Arc<Group>,
    id: StrBytes,
    generation: i32,
    leads: bool,
}

impl Group {
    fn new(id: String, size: usize) -> Arc<Self> {
        Arc::new(Self { id: GroupId(id.into()), size, joined: AtomicUsize::new(0) })
    }
}

impl Member {
    fn new(client: Client, group: Arc<Group>) -> Self {
        Self { client, group, id: StrBytes::default(), generation: -1, leads: false }
    }

    /// Joins again and again until all of the group are in one generation.
    async fn settle(mut self) -> Outcome<Self> {
        loop {
            if !self.rejoin().await? {
                continue;
            }
            while self.group.joined.load(Ordering::Relaxed) != self.group.size {
                pause().await;
                if !self.heartbeat().await? {
                    break;
                }
            }
            if self.group.joined.load(Ordering::Relaxed) == self.group.size {
                return Ok(self);
            }
        }
    }

    /// JoinGroup and SyncGroup; false if the next rebalance began meanwhile.
    async fn rejoin(&mut self) -> Outcome<bool> {
        let protocol =
            JoinGroupRequestProtocol::default().with_name(ASSIGNOR).with_metadata(subscription()?);
        let joined = loop {
            let request = JoinGroupRequest::default()
                .with_group_id(self.group.id.clone())
                .with_member_id(self.id.clone())
                .with_session_timeout_ms(SESSION_TIMEOUT_MS)
                .with_rebalance_timeout_ms(REBALANCE_TIMEOUT_MS)
                .with_protocol_type(CONSUMER)
                .with_protocols(vec![protocol.clone()]);
            let joined = self.client.ask(9, &request).await?;
            match joined.error_code {
                0 => break joined,
                code if code == ErrorCode::MemberIdRequired as i16 => self.id = joined.member_id,
                code if comes_later(code) => pause().await,
                code if code == ErrorCode::RebalanceInProgress as i16 => {}
                code => return Err(format!("JoinGroup: error {code}")),
            }
        };
        self.generation = joined.generation_id;
        self.leads = joined.leader == self.id;
        let request = SyncGroupRequest::default()
            .with_group_id(self.group.id.clone())
            .with_member_id(self.id.clone())
            .with_generation_id(self.generation)
            .with_protocol_type(joined.protocol_type.clone())
            .with_protocol_name(joined.protocol_name.clone())
            .with_assignments(self.assign(&joined)?);
        let synced = self.client.ask(5, &request).await?;
        stands("SyncGroup", synced.error_code)
    }

    /// What the leader sends: a partition for each.
    fn assign(&self, joined: &JoinGroupResponse) -> Outcome<Vec<SyncGroupRequestAssignment>> {
        if !self.leads {
            return Ok(Vec::new());
        }
        self.group.joined.store(joined.members.len(), Ordering::Relaxed);
        let assign = |(partition, member): (i32, _)| {
            let topic = TopicName(StrBytes::from_static_str(TOPIC));
            let topic =
                TopicPartition::default().with_topic(topic).with_partitions(vec![partition]);
            let assignment =
                ConsumerProtocolAssignment::default().with_assigned_partitions(vec![topic]);
            Ok(SyncGroupRequestAssignment::default()
                .with_member_id(member)
                .with_assignment(versioned(1, &assignment)?))
        };
        let members = joined.members.iter().map(|member| member.member_id.clone());
        (0..).zip(members).map(assign).collect()
    }

    /// Whether the generation stands.
    async fn heartbeat(&mut self) -> Outcome<bool> {
        let request = HeartbeatRequest::default()
            .with_group_id(self.group.id.clone())
            .with_member_id(self.id.clone())
            .with_generation_id(self.generation);
        stands("Heartbeat", self.client.ask(4, &request).await?.error_code)
    }

    /// Sends heartbeats from `after` on; counts those that were answered.
    async fn beat(mut self, after: Duration, answered: Arc<AtomicU64>) -> Outcome<()> {
        let clock = Clock::real();
        let mut next = clock.deadline_in(after);
        loop {
            clock.sleep_until(next).await;
            next = next + HEARTBEAT_INTERVAL;
            if !self.heartbeat().await? {
                return Err("a group that had settled began to rebalance".to_owned());
            }
            answered.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The leader joins again; the others do once a heartbeat tells them to.
    async fn rebalance(mut self) -> Outcome<Self> {
        while !self.leads && self.heartbeat().await? {
            Clock::real().sleep(Duration::from_millis(5)).await;
        }
        match self.rejoin().await? {
            true => Ok(self),
            false => Err("a second rebalance began".to_owned()),
        }
    }
}

/// Whether the generation stands; it does not once a rebalance has begun.
fn stands(api: &str, code: i16) -> Outcome<bool> {
    match code {
        0 => Ok(true),
        code if code == ErrorCode::RebalanceInProgress as i16 => Ok(false),
        code if code == ErrorCode::IllegalGeneration as i16 => Ok(false),
        code => Err(format!("{api}: error {code}")),
    }
}

fn subscription() -> Outcome<Bytes> {
    let topics = vec![StrBytes::from_static_str(TOPIC)];
    versioned(1, &ConsumerProtocolSubscription::default().with_topics(topics))
}

fn versioned(version: i16, message: &impl Encodable) -> Outcome<Bytes> {
    let mut out = BytesMut::new();
    out.put_i16(version);
    message.encode(&mut out, version).map_err(said)?;
    Ok(out.freeze())
}

/// Groups whose members have all joined.
async fn settled(port: u16, groups: usize, size: usize) -> Outcome<Vec<Member>> {
    let (ids, mut members) = ((0..groups).collect::<Vec<_>>(), Vec::with_capacity(groups * size));
    for some in ids.chunks(AT_ONCE) {
        let mut fresh = Vec::new();
        for group in some.iter().map(|at| Group::new(format!("classic-{size}-{at}"), size)) {
            for _ in 0..size {
                fresh.push(Member::new(Client::connect(port).await?, group.clone()));
            }
        }
        members.extend(with_each(fresh, Member::settle).await?);
    }
    Ok(members)
}

pub async fn heartbeats(port: u16, groups: usize, size: usize, time: Duration) -> Outcome<()> {
    let members = settled(port, groups, size).await?;
    let leaving = leave_all(&members);
    let (answered, count) = (Arc::new(AtomicU64::new(0)), members.len() as u32);
    let mut tasks = JoinSet::new();
    for (at, member) in (0..).zip(members) {
        tasks.spawn(member.beat(HEARTBEAT_INTERVAL * at / count, answered.clone()));
    }
    run_for(&mut tasks, HEARTBEAT_INTERVAL).await?;
    let (window, before) = (Window::begin()?, answered.load(Ordering::Relaxed));
    run_for(&mut tasks, time).await?;
    window.end(answered.load(Ordering::Relaxed) - before)?;
    tasks.shutdown().await;
    leave(port, leaving).await
}

/// From the leader's JoinGroup to the last answered SyncGroup. Nobody waits for its next heartbeat:
/// members send one at once, so that the time is the broker's and the members', not the interval's.
pub async fn rebalance(port: u16, size: usize, times: usize) -> Outcome<()> {
    let mut members = settled(port, 1, size).await?;
    for _ in 0..times {
        let window = Window::begin()?;
        members = with_each(members, Member::rebalance).await?;
        window.end(members.len() as u64)?;
    }
    leave(port, leave_all(&members)).await
}

/// Groups of one member that commits one offset and leaves.
pub async fn left_groups(port: u16, groups: usize) -> Outcome<()> {
    let window = Window::begin()?;
    let mut client = Client::connect(port).await?;
    for at in 0..groups {
        let member = Member::new(client, Group::new(format!("left-{at}"), 1)).settle().await?;
        let leaving = leave_all(std::slice::from_ref(&member));
        let commit = commits::request(member.group.id.clone(), 1, 1)
            .with_member_id(member.id)
            .with_generation_id_or_member_epoch(member.generation);
        client = member.client;
        commits::commit(&mut client, &commit).await?;
        for request in leaving {
            client.ask(5, &request).await?;
        }
    }
    window.end(groups as u64)
}

/// A request for each group, in which all its members leave.
fn leave_all(members: &[Member]) -> Vec<LeaveGroupRequest> {
    let mut requests: Vec<LeaveGroupRequest> = Vec::new();
    let mut places = std::collections::BTreeMap::new();
    for member in members {
        let at = *places.entry(member.group.id.0.clone()).or_insert_with(|| {
            requests.push(LeaveGroupRequest::default().with_group_id(member.group.id.clone()));
            requests.len() - 1
        });
        requests[at].members.push(MemberIdentity::default().with_member_id(member.id.clone()));
    }
    requests
}

async fn leave(port: u16, requests: Vec<LeaveGroupRequest>) -> Outcome<()> {
    let mut client = Client::connect(port).await?;
    for request in requests {
        client.ask(5, &request).await?;
    }
    Ok(())
}
