//! What a client does with groups: commits of its own, and a classic group that all join.

use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopics,
};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    FindCoordinatorRequest, GroupId, HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest,
    OffsetCommitRequest, OffsetFetchRequest, SyncGroupRequest,
};
use kafka_protocol::protocol::StrBytes;

use super::client::{Client, topic_name};
use super::model::{Commits, Kept, Known};
use super::wire::Wire;
use super::{Lab, NAMES};
use crate::common::Offset;

const SHARED: &str = "shared";
/// Codes that say: later, or anew with a newer generation.
const LATER: [i16; 3] = [14, 15, 16];
const ANEW: [i16; 4] = [22, 25, 27, 79];
/// Tries until a coordinator is loaded.
const TRIES: usize = 40;

fn group_id(name: &str) -> GroupId {
    GroupId(StrBytes::from_string(name.to_owned()))
}

pub fn own_group(client: &Client) -> String {
    format!("group {}", client.id)
}

async fn find(lab: &Lab, wire: &mut Wire, group: &str) -> Option<bool> {
    for _ in 0..TRIES {
        let request = FindCoordinatorRequest::default()
            .with_coordinator_keys(vec![StrBytes::from_string(group.to_owned())]);
        let response = wire.ask(&request, 4).await?;
        match response.coordinators[0].error_code {
            0 => return Some(true),
            15 => lab.env().clock.sleep(Duration::from_millis(100)).await,
            code => {
                lab.allows("find a coordinator", code);
                return Some(false);
            }
        }
    }
    lab.allows("find a coordinator in time", 15);
    Some(false)
}

/// Commits for the first topic, from no group member, and now and then reads it back.
pub async fn commit(client: &mut Client, lab: &Lab, wire: &mut Wire) -> Option<()> {
    let group = own_group(client);
    if lab.model().topic(NAMES[0]).exists != Known::Is(true) || !find(lab, wire, &group).await? {
        return Some(());
    }
    if client.chance(3) {
        return read_back(lab, wire, &group, 0).await;
    }
    let offset = client.next_commit;
    client.next_commit += 1;
    commit_to(lab, wire, &group, offset).await
}

async fn commit_to(lab: &Lab, wire: &mut Wire, group: &str, offset: Offset) -> Option<()> {
    let flushes = lab.model().flushes_by_default;
    let key = (group.to_owned(), 0);
    lab.model().commits.entry(key.clone()).or_default().asked.push(offset);
    let part = OffsetCommitRequestPartition::default()
        .with_partition_index(0)
        .with_committed_offset(offset);
    let topic = OffsetCommitRequestTopic::default()
        .with_name(topic_name(NAMES[0]))
        .with_partitions(vec![part]);
    let request = OffsetCommitRequest::default()
        .with_group_id(group_id(group))
        .with_generation_id_or_member_epoch(-1)
        .with_topics(vec![topic]);
    for _ in 0..TRIES {
        let response = wire.ask(&request, 8).await?;
        match response.topics[0].partitions[0].error_code {
            0 => {
                let mut model = lab.model();
                let commits: &mut Commits = model.commits.entry(key).or_default();
                commits.acknowledged = Some(offset);
                if flushes {
                    commits.durable = Some(offset);
                }
                return Some(());
            }
            14 | 15 => lab.env().clock.sleep(Duration::from_millis(100)).await,
            code => {
                lab.allows("commit", code);
                return Some(());
            }
        }
    }
    lab.allows("commit in time", 14);
    Some(())
}

/// What is committed must be what the model says.
pub async fn read_back(lab: &Lab, wire: &mut Wire, group: &str, part: i32) -> Option<()> {
    let topic = OffsetFetchRequestTopics::default()
        .with_name(topic_name(NAMES[0]))
        .with_partition_indexes(vec![part]);
    let asked = OffsetFetchRequestGroup::default()
        .with_group_id(group_id(group))
        .with_topics(Some(vec![topic]));
    let request = OffsetFetchRequest::default().with_groups(vec![asked]);
    for _ in 0..TRIES {
        let response = wire.ask(&request, 8).await?;
        let found = &response.groups[0];
        match found.error_code {
            0 => {
                let offset = found.topics[0].partitions[0].committed_offset;
                let mut model = lab.model();
                let kept = model.restarted.unwrap_or(Kept::Written);
                let commits = model.commits.entry((group.to_owned(), part)).or_default();
                commits.found((offset >= 0).then_some(offset), kept);
                return Some(());
            }
            code if LATER.contains(&code) => {
                lab.env().clock.sleep(Duration::from_millis(100)).await;
            }
            code => {
                lab.allows("read commits", code);
                return Some(());
            }
        }
    }
    lab.allows("read commits in time", 14);
    Some(())
}

/// Joins the shared group, takes its assignment, stays for a while, and leaves or vanishes.
pub async fn join(client: &mut Client, lab: &Lab, wire: &mut Wire) -> Option<()> {
    if !find(lab, wire, SHARED).await? {
        return Some(());
    }
    let (mut member, mut joined) = (StrBytes::default(), None);
    for _ in 0..TRIES {
        let response = wire.ask(&join_request(&member), 9).await?;
        member = response.member_id.clone();
        match response.error_code {
            0 => {
                joined = Some(response);
                break;
            }
            code if ANEW.contains(&code) || LATER.contains(&code) => {
                lab.env().clock.sleep(Duration::from_millis(50)).await;
            }
            code => {
                lab.allows("join", code);
                return Some(());
            }
        }
    }
    let Some(joined) = joined else { return Some(()) };
    let assignments = joined.members.iter().map(|one| {
        SyncGroupRequestAssignment::default()
            .with_member_id(one.member_id.clone())
            .with_assignment(Bytes::from(one.member_id.to_string()))
    });
    let request = SyncGroupRequest::default()
        .with_group_id(group_id(SHARED))
        .with_generation_id(joined.generation_id)
        .with_member_id(member.clone())
        .with_protocol_type(Some(StrBytes::from_static_str("consumer")))
        .with_protocol_name(joined.protocol_name.clone())
        .with_assignments(assignments.collect());
    let response = wire.ask(&request, 5).await?;
    match response.error_code {
        0 => assert_eq!(response.assignment, member.as_bytes(), "another's assignment"),
        code if ANEW.contains(&code) || LATER.contains(&code) => return Some(()),
        code => lab.allows("sync", code),
    }
    stay(client, lab, wire, joined.generation_id, &member).await
}

fn join_request(member: &StrBytes) -> JoinGroupRequest {
    let protocol = JoinGroupRequestProtocol::default()
        .with_name(StrBytes::from_static_str("range"))
        .with_metadata(Bytes::from_static(&[0; 12]));
    JoinGroupRequest::default()
        .with_group_id(group_id(SHARED))
        .with_session_timeout_ms(10_000)
        .with_rebalance_timeout_ms(5_000)
        .with_member_id(member.clone())
        .with_protocol_type(StrBytes::from_static_str("consumer"))
        .with_protocols(vec![protocol])
}

async fn stay(
    client: &Client,
    lab: &Lab,
    wire: &mut Wire,
    generation: i32,
    member: &StrBytes,
) -> Option<()> {
    for _ in 0..client.random.below(3) {
        lab.env().clock.sleep(Duration::from_millis(client.random.below(2_000))).await;
        let request = HeartbeatRequest::default()
            .with_group_id(group_id(SHARED))
            .with_generation_id(generation)
            .with_member_id(member.clone());
        match wire.ask(&request, 4).await?.error_code {
            0 => {}
            code if ANEW.contains(&code) || LATER.contains(&code) => return Some(()),
            code => lab.allows("heartbeat", code),
        }
    }
    if client.chance(3) {
        return Some(()); // its session ends by itself
    }
    let one = MemberIdentity::default().with_member_id(member.clone());
    let request =
        LeaveGroupRequest::default().with_group_id(group_id(SHARED)).with_members(vec![one]);
    match wire.ask(&request, 5).await?.error_code {
        0 => {}
        code if ANEW.contains(&code) || LATER.contains(&code) => {}
        code => lab.allows("leave", code),
    }
    Some(())
}
