//! Offsets: committing, fetching, deleting, expiring; groups as tools see them.

use super::super::*;
use super::bench::*;
use crate::common::{ProducerEpoch, ProducerId, TopicId};
use crate::machine::EntryKind;

const DAY_MS: u64 = 86_400_000;

fn topic(name: &str, partitions: &[i32]) -> FetchTopic {
    FetchTopic { id: TopicId::NONE, name: name.into(), partitions: partitions.to_vec() }
}

/// (partition, offset, metadata, outcome is ok) of each topic.
fn fetched(topics: &[FetchedTopic]) -> Vec<(String, i32, i64, String, bool)> {
    let one = |topic: &FetchedTopic| {
        let name = topic.name.to_string();
        let all = topic.partitions.iter();
        all.map(|p| {
            (name.clone(), p.partition, p.offset, p.metadata.to_string(), p.outcome.is_ok())
        })
        .collect::<Vec<_>>()
    };
    topics.iter().flat_map(one).collect()
}

/// C051: offsets may go back, be negative, and come without a group.
#[test]
fn a_commit_keeps_what_it_is_told() {
    let mut bench = Bench::new();
    for offset in [5, 2, -1, 7] {
        assert_eq!(bench.commit(commit_as("", -1, offset)), "ok");
        assert_eq!(bench.offsets(), [format!("t-0={offset}")]);
    }
    assert_eq!(bench.state(), "Empty");
    assert_eq!(bench.describe("g").map(|group| group.protocol_type), Ok("".into()));
}

#[test]
fn long_metadata_is_refused_for_its_partition_only() {
    let mut bench = Bench::new();
    // (characters, how many, outcome); a pair of UTF-16 units counts as two.
    #[rustfmt::skip]
    let table = [("x", 4_096, "ok"), ("x", 4_097, "metadata"), ("é", 4_096, "ok"), ("😀", 2_048, "ok"), ("😀", 2_049, "metadata")];
    for (text, times, outcome) in table {
        let mut ask = commit_as("", -1, 1);
        let mut long = ask.topics[0].partitions[0].clone();
        (long.partition, long.metadata) = (1, Some(text.repeat(times).into()));
        ask.topics[0].partitions.push(long);
        assert_eq!(bench.commit(ask), format!("ok {outcome}"), "{text} {times}");
    }
}

/// C048: an entry for each partition asked for.
#[test]
fn a_fetch_answers_for_every_partition_asked() {
    let mut bench = Bench::new();
    bench.commit(commit_as("", -1, 3));
    let asked = [topic("t", &[0, 1]), topic("ghost", &[7])];
    let missing = |name: &str, partition| (name.to_owned(), partition, -1, String::new(), true);
    let committed = ("t".to_owned(), 0, 3, "m".to_owned(), true);
    let got = bench.groups.fetch(&"g".into(), Some(&asked), true);
    assert_eq!(fetched(&got), [committed.clone(), missing("t", 1), missing("ghost", 7)]);
    assert_eq!(fetched(&bench.groups.fetch(&"g".into(), None, false)), [committed]);
    let got = bench.groups.fetch(&"h".into(), Some(&asked[..1]), false);
    assert_eq!(fetched(&got), [missing("t", 0), missing("t", 1)]);
    assert_eq!(bench.groups.fetch(&"h".into(), None, false), []);
}

#[test]
fn an_offset_of_another_topic_of_the_same_name_is_not_given() {
    let (old, new) = (TopicId(uuid::Uuid::from_u128(1)), TopicId(uuid::Uuid::from_u128(2)));
    #[rustfmt::skip]
    let table = [
        // committed for, asked for,     offset
        (old,             old,           1),
        (old,             new,           -1),
        (old,             TopicId::NONE, 1),
        (TopicId::NONE,   new,           1),
    ];
    for (committed, asked, offset) in table {
        let mut bench = Bench::new();
        let mut ask = commit_as("", -1, 1);
        ask.topics[0].id = committed;
        bench.commit(ask);
        let topics = [FetchTopic { id: asked, ..topic("t", &[0]) }];
        let got = bench.groups.fetch(&"g".into(), Some(&topics), false);
        assert_eq!(got[0].partitions[0].offset, offset, "{committed} {asked}");
    }
}

/// C053: an open transaction is only told to those who ask for stable offsets.
#[test]
fn offsets_of_a_transaction_count_from_its_commit_on() {
    for commits in [true, false] {
        let mut bench = Bench::new();
        bench.commit(commit_as("", -1, 1));
        let (producer_id, producer_epoch) = (ProducerId(9), ProducerEpoch(0));
        let Some(GroupRecord::Offset { key, value: Some(value) }) = bench.log.last().cloned()
        else {
            panic!("an offset was written");
        };
        let value = CommittedOffset { offset: 2, ..value };
        let kind = EntryKind::Transactional { producer_id, producer_epoch };
        bench.replay(kind, Some(GroupRecord::Offset { key, value: Some(value) }));
        let asked = [topic("t", &[0, 1])];
        let stable = bench.groups.fetch(&"g".into(), Some(&asked), true);
        let outcomes: Vec<_> = stable[0].partitions.iter().map(|p| p.outcome.clone()).collect();
        assert_eq!(outcomes, [Err(NotNow::UnstableOffset.into()), Ok(())]);
        assert!(bench.groups.fetch(&"g".into(), None, true)[0].partitions[0].outcome.is_err());
        assert_eq!(bench.offsets(), ["t-0=1"]);
        let marker = EntryKind::Marker { producer_id, producer_epoch, commit: commits };
        bench.replay(marker, None);
        assert_eq!(bench.offsets(), [if commits { "t-0=2" } else { "t-0=1" }]);
        assert!(bench.groups.fetch(&"g".into(), None, true)[0].partitions[0].outcome.is_ok());
    }
}

#[test]
fn a_plain_commit_after_a_transactional_one_stays() {
    let mut bench = Bench::new();
    bench.commit(commit_as("", -1, 1));
    let Some(record) = bench.log.last().cloned() else { panic!("an offset was written") };
    let (producer_id, producer_epoch) = (ProducerId(9), ProducerEpoch(0));
    bench.replay(EntryKind::Transactional { producer_id, producer_epoch }, Some(record));
    bench.commit(commit_as("", -1, 3));
    bench.replay(EntryKind::Marker { producer_id, producer_epoch, commit: true }, None);
    assert_eq!(bench.offsets(), ["t-0=3"]);
}

/// A tombstone takes what a transaction has under way with it.
#[test]
fn deleting_an_offset_drops_its_transactional_commits() {
    let mut bench = Bench::new();
    bench.commit(commit_as("", -1, 1));
    let Some(record) = bench.log.last().cloned() else { panic!("an offset was written") };
    let (producer_id, producer_epoch) = (ProducerId(9), ProducerEpoch(0));
    bench.replay(EntryKind::Transactional { producer_id, producer_epoch }, Some(record));
    assert_eq!(short(&bench.now(GroupRequest::Delete("g".into()))), "ok");
    bench.replay(EntryKind::Marker { producer_id, producer_epoch, commit: true }, None);
    assert_eq!((bench.offsets(), bench.state()), (vec![], "Dead"));
}

#[test]
fn retention_counts_from_what_the_group_was_last_used_for() {
    // Offsets are committed on day 0 for t (subscribed) and u (not); members leave on day 3.
    let commit_both = |bench: &mut Bench, member_id: &str, generation_id| {
        let mut ask = commit_as(member_id, generation_id, 1);
        let other = CommitTopic { name: "u".into(), ..ask.topics[0].clone() };
        ask.topics.push(other);
        assert_eq!(bench.commit(ask), "ok ok");
    };
    // A group without members ever: from the commit.
    let mut bench = Bench::new();
    commit_both(&mut bench, "", -1);
    bench.pass_ms(7 * DAY_MS - 1_000);
    assert_eq!(bench.offsets().len(), 2);
    bench.pass_ms(601_000);
    assert_eq!((bench.offsets().len(), bench.state()), (0, "Dead"));
    assert!(bench.effects.contains(&GroupEffect::OffsetsExpired { count: 2 }));
    // A stable group of consumers: what it does not subscribe to, from the commit.
    let mut bench = Bench::new();
    let member = bench.stable(1).remove(0);
    commit_both(&mut bench, &member.member_id, 1);
    for _ in 0..8 * 2_160 {
        bench.pass_ms(40_000);
        bench.heartbeat(&member.member_id, 1);
    }
    assert_eq!((bench.offsets(), bench.state()), (vec!["t-0=1".to_owned()], "Stable"));
    // Then without its member: from when it left.
    bench.pass_ms(7 * DAY_MS);
    assert_eq!((bench.offsets().len(), bench.state()), (1, "Empty"));
    bench.pass_ms(650_000);
    assert_eq!((bench.offsets().len(), bench.state()), (0, "Dead"));
}

#[test]
fn groups_of_other_protocols_keep_all_offsets_while_they_have_members() {
    let mut bench = Bench::new();
    let connect = JoinGroup {
        protocol_type: "connect".into(),
        session_timeout_ms: 1_800_000,
        ..consumer("")
    };
    let ticket = bench.join_with_id(connect).1;
    bench.pass_ms(10_000);
    let member = bench.joined(ticket);
    let ticket = bench.sync(&member, &[]);
    bench.synced(ticket);
    bench.commit(commit_as(&member.member_id, 1, 1));
    for _ in 0..8 * 96 {
        bench.pass_ms(900_000);
        bench.heartbeat(&member.member_id, 1);
    }
    assert_eq!(bench.offsets(), ["t-0=1"]);
    let delete = OffsetDelete { group_id: "g".into(), topics: vec![("t".into(), vec![0])] };
    assert_eq!(short(&bench.now(GroupRequest::DeleteOffsets(delete))), "not empty");
}

#[test]
fn a_retention_of_the_client_s_own_goes_before_the_broker_s() {
    let mut bench = Bench::new();
    let ask = OffsetCommit { retention_ms: Some(60_000), ..commit_as("", -1, 1) };
    bench.commit(ask);
    bench.pass_ms(599_000);
    assert_eq!(bench.offsets().len(), 1, "looked for every ten minutes");
    bench.pass_ms(1_000);
    assert_eq!((bench.offsets().len(), bench.state()), (0, "Dead"));
}

#[test]
fn expiry_goes_on_in_bounded_steps_until_all_is_seen() {
    let config = GroupConfig { offsets_retention_minutes: 1, ..config() };
    let mut bench = Bench::with(config);
    for group in 0..2_500 {
        let group_id = format!("g{group}").into();
        bench.commit(OffsetCommit { group_id, ..commit_as("", -1, 1) });
    }
    bench.batch_bytes_max = 10_000;
    bench.pass_ms(600_000);
    assert_eq!((bench.groups.groups_count(), bench.groups.offsets_count()), (0, 0));
}

#[test]
fn a_pending_id_does_not_keep_an_empty_group() {
    let mut bench = Bench::new();
    let ask = JoinGroup { session_timeout_ms: 1_800_000, ..consumer("") };
    let ticket = bench.join(ask);
    let member_id = bench.join_refused(ticket).member_id;
    bench.pass_ms(600_000);
    assert_eq!(bench.state(), "Dead");
    let ticket = bench.join(consumer(&member_id));
    assert_eq!(bench.join_refused(ticket).error, ClientFault::UnknownMember.into());
}

#[test]
fn a_group_with_more_offsets_than_fit_a_batch_is_deleted_in_steps() {
    let mut bench = Bench::new();
    let mut ask = commit_as("", -1, 1);
    let one = ask.topics[0].partitions[0].clone();
    ask.topics[0].partitions =
        (0..100).map(|partition| CommitPartition { partition, ..one.clone() }).collect();
    bench.commit(ask.clone());
    bench.batch_bytes_max = 2_000;
    assert_eq!(bench.commit(ask), "too large");
    let mut steps = 1;
    while bench.now(GroupRequest::Delete("g".into())) == GroupAnswer::Delete(Ok(Progress::More)) {
        steps += 1;
    }
    assert!(steps > 1);
    assert_eq!((bench.offsets().len(), bench.state()), (0, "Dead"));
}

#[test]
fn offsets_of_a_deleted_topic_go_and_the_others_stay() {
    let mut bench = Bench::new();
    for (group, name) in [("g", "t"), ("g", "u"), ("h", "t")] {
        let mut ask = OffsetCommit { group_id: group.into(), ..commit_as("", -1, 1) };
        ask.topics[0].name = name.into();
        bench.commit(ask);
    }
    let answer = bench.now(GroupRequest::TopicsDeleted(vec!["t".into()]));
    assert_eq!(answer, GroupAnswer::TopicsDeleted(Progress::Done));
    assert_eq!(bench.offsets(), ["u-0=1"]);
    assert_eq!(bench.groups.offsets_count(), 1);
}

/// C045: what tools see.
#[test]
fn groups_are_listed_by_state_and_type() {
    let mut bench = Bench::new();
    bench.stable(1);
    bench.commit(OffsetCommit { group_id: "simple".into(), ..commit_as("", -1, 1) });
    #[rustfmt::skip]
    let table: [(&[&str], &[&str], &[&str]); 8] = [
        (&[],                  &[],                     &["g consumer Stable", "simple  Empty"]),
        (&["Stable"],          &[],                     &["g consumer Stable"]),
        (&["sTaBlE", " empty "], &["CLASSIC"],          &["g consumer Stable", "simple  Empty"]),
        (&["Empty"],           &["classic", "nope"],    &["simple  Empty"]),
        (&["nope"],            &[],                     &[]),
        (&["Dead"],            &[],                     &[]),
        (&[],                  &["consumer"],           &[]),
        (&[],                  &["nope"],               &[]),
    ];
    for (states, types, expected) in table {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let ask = ListGroups { states: own(states), types: own(types) };
        let GroupAnswer::List(listed) = bench.now(GroupRequest::List((&ask).into())) else {
            panic!("a list is expected");
        };
        let shown: Vec<String> = listed
            .iter()
            .map(|g| format!("{} {} {}", g.group_id, g.protocol_type, g.state))
            .collect();
        assert_eq!(shown, expected, "{states:?} {types:?}");
    }
}

#[test]
fn metadata_is_described_while_the_group_is_stable_and_assignments_as_long_as_they_hold() {
    let mut bench = Bench::new();
    let ticket = bench.join_with_id(consumer("")).1;
    bench.pass_ms(10_000);
    let member = bench.joined(ticket);
    let show = |bench: &mut Bench| {
        let group = bench.describe("g").expect("a group");
        let m = group.members[0].clone();
        let sizes = (m.metadata.len(), m.assignment.len());
        (group.state.name(), group.protocol_data.to_string(), sizes)
    };
    assert_eq!(show(&mut bench), ("CompletingRebalance", String::new(), (0, 0)));
    let ticket = bench.sync(&member, &[(&member.member_id, b"abc")]);
    bench.synced(ticket);
    assert_eq!(show(&mut bench), ("Stable", "range".to_owned(), (17, 3)));
    bench.join_with_id(consumer(""));
    assert_eq!(show(&mut bench).2.0, 0);
    assert_eq!(bench.describe("g").map(|g| g.state), Ok(GroupState::PreparingRebalance));
    assert_eq!(bench.describe("h"), Err(ClientFault::GroupNotFound("h".to_owned()).into()));
}

/// C054: other programs read these records.
#[test]
fn records_are_those_that_kafka_writes() {
    let mut bench = Bench::new();
    let member = bench.stable(1).remove(0);
    bench.commit(commit_as(&member.member_id, 1, 5));
    let [
        GroupRecord::Group { value: Some(first), .. },
        GroupRecord::Group { value: Some(second), .. },
        GroupRecord::Offset { .. },
    ] = &bench.log[..]
    else {
        panic!("{:?}", bench.log);
    };
    let empty = GroupMetadata { state_timestamp_ms: Some(START_MS), ..GroupMetadata::default() };
    assert_eq!(**first, empty, "a group is known from its first join on");
    assert_eq!((second.generation_id, second.leader.clone()), (1, Some(member.member_id)));
    assert_eq!(second.state_timestamp_ms, Some(START_MS + 3_000), "when the generation began");
    assert_eq!(second.members[0].subscription, protocol("range").metadata);
}
