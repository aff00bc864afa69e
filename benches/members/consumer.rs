//! Members of one consumer group (KIP-848): ConsumerGroupHeartbeat, as the Java consumer sends it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kafka_protocol::messages::consumer_group_heartbeat_request::TopicPartitions;
use kafka_protocol::messages::consumer_group_heartbeat_response::Assignment;
use kafka_protocol::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse,
    GroupId, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use ottla::env::Clock;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::client::{Client, Outcome, comes_later, pause, said};
use super::{TOPIC, Window, run_for};

const VERSION: i16 = 1;
const GROUP: StrBytes = StrBytes::from_static_str("consumers");
const REBALANCE_TIMEOUT_MS: i32 = 300_000;
/// A group that is not stable by then will not be.
const PATIENCE: Duration = Duration::from_secs(120);
const LEAVES: i32 = -1;

/// What all members have by now.
struct Group {
    partitions: usize,
    /// Of each member its epoch and its partitions.
    members: Mutex<Vec<(i32, BTreeSet<i32>)>>,
    stable: Notify,
    answered: AtomicU64,
}

impl Group {
    /// Stable: all have the same epoch, and each partition is one member's. The first target gives all of
    /// them to the member that joined first, so that they must be even, too.
    fn has(&self, member: usize, epoch: i32, partitions: Option<BTreeSet<i32>>) {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        members[member].0 = epoch;
        if let Some(partitions) = partitions {
            members[member].1 = partitions;
        }
        let share = self.partitions.div_ceil(members.len());
        if members.iter().any(|(other, has)| *other != epoch || has.len() > share) {
            return;
        }
        let assigned: usize = members.iter().map(|(_, has)| has.len()).sum();
        let distinct: BTreeSet<&i32> = members.iter().flat_map(|(_, has)| has).collect();
        if assigned == self.partitions && distinct.len() == self.partitions {
            self.stable.notify_one();
        }
    }
}

struct Member {
    client: Client,
    group: Arc<Group>,
    at: usize,
    id: StrBytes,
    epoch: i32,
}

impl Member {
    async fn live(mut self) -> Outcome<()> {
        let joins = self
            .request()
            .with_rebalance_timeout_ms(REBALANCE_TIMEOUT_MS)
            .with_subscribed_topic_names(Some(vec![TopicName(StrBytes::from_static_str(TOPIC))]))
            .with_topic_partitions(Some(Vec::new()));
        let mut answer = self.ask(joins).await?;
        let clock = Clock::real();
        loop {
            let owned = answer.assignment.take();
            if owned.is_none() {
                let interval = u64::try_from(answer.heartbeat_interval_ms).map_err(said)?;
                clock.sleep(Duration::from_millis(interval)).await;
            }
            // A new assignment is taken up and told at once.
            let request = self.request().with_topic_partitions(owned.map(told));
            answer = self.ask(request).await?;
        }
    }

    fn request(&self) -> ConsumerGroupHeartbeatRequest {
        ConsumerGroupHeartbeatRequest::default()
            .with_group_id(GroupId(GROUP))
            .with_member_id(self.id.clone())
            .with_member_epoch(self.epoch)
            .with_rebalance_timeout_ms(-1)
            .with_subscribed_topic_names(None)
            .with_topic_partitions(None)
    }

    async fn ask(
        &mut self,
        request: ConsumerGroupHeartbeatRequest,
    ) -> Outcome<ConsumerGroupHeartbeatResponse> {
        let answer = loop {
            let answer = self.client.ask(VERSION, &request).await?;
            match answer.error_code {
                0 => break answer,
                code if comes_later(code) => pause().await,
                code => {
                    let why = answer.error_message.unwrap_or_default();
                    return Err(format!("ConsumerGroupHeartbeat: error {code}: {why}"));
                }
            }
        };
        self.epoch = answer.member_epoch;
        let assigned = answer.assignment.as_ref().map(|assignment| {
            let topics = assignment.topic_partitions.iter();
            topics.flat_map(|topic| topic.partitions.iter().copied()).collect()
        });
        self.group.has(self.at, self.epoch, assigned);
        self.group.answered.fetch_add(1, Ordering::Relaxed);
        Ok(answer)
    }
}

fn told(assignment: Assignment) -> Vec<TopicPartitions> {
    let topics = assignment.topic_partitions.into_iter().map(|topic| {
        TopicPartitions::default().with_topic_id(topic.topic_id).with_partitions(topic.partitions)
    });
    topics.collect()
}

/// Two windows: from the first join until the group is stable, and its heartbeats from then on.
pub async fn run(port: u16, members: usize, partitions: usize, time: Duration) -> Outcome<()> {
    let group = Arc::new(Group {
        partitions,
        members: Mutex::new(vec![(-1, BTreeSet::new()); members]),
        stable: Notify::new(),
        answered: AtomicU64::new(0),
    });
    let mut clients = Vec::with_capacity(members);
    for _ in 0..members {
        clients.push(Client::connect(port).await?);
    }
    let (mut tasks, window) = (JoinSet::new(), Window::begin()?);
    for (at, client) in clients.into_iter().enumerate() {
        let (group, id) = (group.clone(), format!("member-{at}").into());
        tasks.spawn(Member { client, group, at, id, epoch: 0 }.live());
    }
    tokio::select! {
        failed = run_for(&mut tasks, PATIENCE) => {
            failed?;
            return Err("the group does not become stable".to_owned());
        }
        () = group.stable.notified() => {}
    }
    window.end(group.answered.load(Ordering::Relaxed))?;
    check_epoch(port, &group).await?;
    let (window, before) = (Window::begin()?, group.answered.load(Ordering::Relaxed));
    run_for(&mut tasks, time).await?;
    window.end(group.answered.load(Ordering::Relaxed) - before)?;
    tasks.shutdown().await;
    leave(port, members).await
}

/// The epoch that all members have is the group's, by its own word.
async fn check_epoch(port: u16, group: &Group) -> Outcome<()> {
    let request = ConsumerGroupDescribeRequest::default().with_group_ids(vec![GroupId(GROUP)]);
    let answer = Client::connect(port).await?.ask(VERSION, &request).await?;
    let told = answer.groups.first().map(|group| group.group_epoch);
    let has = group.members.lock().unwrap_or_else(PoisonError::into_inner)[0].0;
    if told == Some(has) { Ok(()) } else { Err(format!("epoch {told:?}, members have {has}")) }
}

async fn leave(port: u16, members: usize) -> Outcome<()> {
    let mut client = Client::connect(port).await?;
    for at in 0..members {
        let request = ConsumerGroupHeartbeatRequest::default()
            .with_group_id(GroupId(GROUP))
            .with_member_id(format!("member-{at}").into())
            .with_member_epoch(LEAVES);
        client.ask(VERSION, &request).await?;
    }
    Ok(())
}
