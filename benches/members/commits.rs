//! OffsetCommit: many in flight, and groups that are there for one offset only.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::{GroupId, OffsetCommitRequest, TopicName};
use kafka_protocol::protocol::StrBytes;
use tokio::task::JoinSet;

use super::client::{Client, Outcome, comes_later, frame, pause};
use super::{TOPIC, Window, run_for};

const VERSION: i16 = 9;
/// Partitions in each request, and of the topic.
const PARTITIONS: i32 = 10;
/// Before what is counted.
const WARM_UP: Duration = Duration::from_secs(2);

/// `offset` for each of `partitions`, of no member.
pub fn request(group: GroupId, partitions: i32, offset: i64) -> OffsetCommitRequest {
    let partitions = (0..partitions).map(|at| {
        OffsetCommitRequestPartition::default()
            .with_partition_index(at)
            .with_committed_offset(offset)
    });
    let topic = OffsetCommitRequestTopic::default()
        .with_name(TopicName(StrBytes::from_static_str(TOPIC)))
        .with_partitions(partitions.collect());
    OffsetCommitRequest::default().with_group_id(group).with_topics(vec![topic])
}

pub async fn commit(client: &mut Client, request: &OffsetCommitRequest) -> Outcome<()> {
    loop {
        let answer = client.ask(VERSION, request).await?;
        let mut codes =
            answer.topics.iter().flat_map(|topic| &topic.partitions).map(|found| found.error_code);
        match codes.find(|code| *code != 0) {
            None => return Ok(()),
            Some(code) if comes_later(code) => pause().await,
            Some(code) => return Err(format!("OffsetCommit: error {code}")),
        }
    }
}

/// Each connection commits for a group of its own. Counts offsets.
pub async fn run(port: u16, connections: usize, depth: usize, time: Duration) -> Outcome<()> {
    let committed = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for at in 0..connections {
        let mut client = Client::connect(port).await?;
        let request = request(GroupId(format!("commits-{at}").into()), PARTITIONS, 1);
        commit(&mut client, &request).await?;
        tasks.spawn(pipeline(client, frame(VERSION, &request)?, depth, committed.clone()));
    }
    run_for(&mut tasks, WARM_UP).await?;
    let (window, before) = (Window::begin()?, committed.load(Ordering::Relaxed));
    run_for(&mut tasks, time).await?;
    window.end(committed.load(Ordering::Relaxed) - before)
}

/// The same request again for each answer; all answers are like the first.
async fn pipeline(
    mut client: Client,
    frame: Bytes,
    depth: usize,
    committed: Arc<AtomicU64>,
) -> Outcome<()> {
    client.send(&frame).await?;
    let expected = client.receive().await?;
    client.send(&frame.repeat(depth)).await?;
    loop {
        if client.receive().await? != expected {
            return Err("an OffsetCommit was refused".to_owned());
        }
        committed.fetch_add(PARTITIONS as u64, Ordering::Relaxed);
        client.send(&frame).await?;
    }
}

/// Groups with one offset that have never had a member.
pub async fn empty_groups(port: u16, groups: usize) -> Outcome<()> {
    let mut client = Client::connect(port).await?;
    let window = Window::begin()?;
    for at in 0..groups {
        let id = GroupId(format!("empty-{at}").into());
        commit(&mut client, &request(id, 1, 1)).await?;
    }
    window.end(groups as u64)
}
