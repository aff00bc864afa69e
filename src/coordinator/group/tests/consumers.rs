//! Consumer groups (KIP-848): joining, the steps between two assignments, leaving, static and
//! classic members, conversion, what a new coordinator knows.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::consumer::*;
use super::super::*;
use super::bench::*;
use super::cluster::topic_records;
use crate::common::TopicId;
use crate::machine::Position;
use crate::metadata::Image;

const FIRST_TOPIC: u128 = 1;

fn topic_id(n: u128) -> TopicId {
    TopicId(uuid::Uuid::from_u128(n))
}

/// Topics `t1`, `t2`, … with so many partitions.
fn image(partitions: &[i32]) -> Arc<Image> {
    let mut image = Image::default();
    for (n, count) in (FIRST_TOPIC..).zip(partitions) {
        for record in topic_records(&format!("t{n}"), n, &vec![1; *count as usize]) {
            let at = Position(image.end_offset);
            image.apply(&record, at);
        }
    }
    Arc::new(image)
}

fn bench(partitions: &[i32]) -> Bench {
    let mut bench = Bench::with(GroupConfig { consumer_assignment_interval_ms: 0, ..config() });
    bench.image = image(partitions);
    bench
}

/// The first heartbeat of a member that reads `topics`.
fn joining(id: &str, topics: &[&str]) -> ConsumerHeartbeat {
    ConsumerHeartbeat {
        group_id: "g".into(),
        member_id: id.into(),
        member_epoch: 0,
        instance_id: None,
        rack_id: None,
        rebalance_timeout_ms: 60_000,
        topics: Some(topics.iter().map(|name| (*name).into()).collect()),
        regex: None,
        assignor: None,
        owned: Some(Assignment::new()),
        client_id: "c".into(),
        client_host: "/127.0.0.1".into(),
        brings_member_id: true,
    }
}

/// A heartbeat that says nothing new.
fn beating(id: &str, epoch: i32) -> ConsumerHeartbeat {
    ConsumerHeartbeat {
        member_epoch: epoch,
        rebalance_timeout_ms: -1,
        topics: None,
        owned: None,
        ..joining(id, &[])
    }
}

fn owning(id: &str, epoch: i32, owned: &[(u128, &[i32])]) -> ConsumerHeartbeat {
    let topic = |(n, partitions): &(u128, &[i32])| {
        (topic_id(*n), partitions.iter().copied().collect::<BTreeSet<i32>>())
    };
    ConsumerHeartbeat { owned: Some(owned.iter().map(topic).collect()), ..beating(id, epoch) }
}

fn shown(assignment: &Assignment) -> String {
    let topic = |(id, partitions): (&TopicId, &BTreeSet<i32>)| {
        let partitions: Vec<String> = partitions.iter().map(ToString::to_string).collect();
        format!("t{}:{}", id.0.as_u128(), partitions.join(","))
    };
    assignment.iter().map(topic).collect::<Vec<_>>().join(" ")
}

/// Epoch and assignment in a word, or the refusal.
fn beat(bench: &mut Bench, ask: ConsumerHeartbeat) -> String {
    match bench.now(GroupRequest::ConsumerHeartbeat(ask)) {
        GroupAnswer::ConsumerHeartbeat(Ok(told)) => match &told.assignment {
            Some(assignment) => format!("{} [{}]", told.member_epoch, shown(assignment)),
            None => told.member_epoch.to_string(),
        },
        other => short(&other),
    }
}

fn describe(bench: &mut Bench) -> DescribedConsumerGroup {
    match bench.now(GroupRequest::DescribeConsumer("g".into())) {
        GroupAnswer::DescribeConsumer(Ok(group)) => group,
        other => panic!("{other:?}"),
    }
}

#[test]
fn partitions_go_from_one_member_to_another_only_when_they_were_given_back() {
    let mut bench = bench(&[4]);
    assert_eq!(beat(&mut bench, joining("a", &["t1"])), "2 [t1:0,1,2,3]");
    assert_eq!(beat(&mut bench, joining("b", &["t1"])), "3 []", "a still has all");
    assert_eq!(describe(&mut bench).state, "Reconciling");
    assert_eq!(beat(&mut bench, beating("a", 2)), "2 [t1:0,1]", "it is to give 2 and 3 back");
    assert_eq!(beat(&mut bench, beating("b", 3)), "3", "a has not given them back");
    assert_eq!(beat(&mut bench, owning("a", 2, &[(1, &[0, 1])])), "3");
    assert_eq!(beat(&mut bench, beating("b", 3)), "3 [t1:2,3]");
    assert_eq!(describe(&mut bench).state, "Stable");
    let before = bench.log.len();
    assert_eq!(beat(&mut bench, beating("a", 3)), "3");
    assert_eq!(bench.log.len(), before, "a quiet group writes nothing");
}

#[test]
fn a_member_that_does_not_give_back_in_time_or_is_silent_is_fenced() {
    let mut bench = bench(&[2]);
    beat(&mut bench, joining("a", &["t1"]));
    beat(&mut bench, joining("b", &["t1"]));
    assert_eq!(beat(&mut bench, beating("a", 2)), "2 [t1:0]");
    for _ in 0..3 {
        bench.pass_ms(19_000);
        assert_eq!(beat(&mut bench, beating("a", 2)), "2", "still alive, still has both");
        beat(&mut bench, beating("b", 3));
    }
    bench.pass_ms(4_000);
    assert_eq!(beat(&mut bench, beating("a", 2)), "unknown member", "after 60 s");
    assert_eq!(beat(&mut bench, beating("b", 3)), "4 [t1:0,1]");
    bench.pass_ms(45_000);
    assert_eq!(beat(&mut bench, beating("b", 4)), "unknown member", "after 45 s of silence");
    assert_eq!(describe(&mut bench).state, "Empty");
}

#[test]
fn epochs_that_are_not_the_member_s_are_fenced() {
    let mut bench = bench(&[2]);
    beat(&mut bench, joining("a", &["t1"]));
    beat(&mut bench, joining("b", &["t1"]));
    beat(&mut bench, beating("a", 2));
    assert_eq!(beat(&mut bench, owning("a", 2, &[(1, &[0])])), "3");
    #[rustfmt::skip]
    let table = [
        (beating("a", 4),                  "fenced epoch"),
        (beating("a", 2),                  "fenced epoch"),
        (owning("a", 2, &[(1, &[0, 1])]),  "fenced epoch"),
        (owning("a", 2, &[(1, &[0])]),     "3"), // the answer was lost
        (beating("nobody", 3),             "unknown member"),
        (beating("a", -1),                 "-1"),
        (beating("a", 3),                  "unknown member"),
    ];
    for (ask, expected) in table {
        let shown = format!("{ask:?}");
        assert_eq!(beat(&mut bench, ask), expected, "{shown}");
    }
    let other = ConsumerHeartbeat { group_id: "h".into(), ..beating("a", 1) };
    assert_eq!(beat(&mut bench, other), "no group");
}

#[test]
fn new_partitions_and_deleted_topics_are_assigned_at_the_next_heartbeat() {
    let mut bench = bench(&[1, 1]);
    assert_eq!(beat(&mut bench, joining("a", &["t1", "t2", "t3"])), "2 [t1:0 t2:0]");
    bench.image = image(&[2, 1, 1]);
    assert_eq!(beat(&mut bench, beating("a", 2)), "3 [t1:0,1 t2:0 t3:0]");
    bench.image = image(&[2]);
    assert_eq!(beat(&mut bench, beating("a", 3)), "3 [t1:0,1]", "to be given back first");
    assert_eq!(beat(&mut bench, owning("a", 3, &[(1, &[0, 1])])), "4");
}

#[test]
fn a_change_of_topics_takes_what_is_no_longer_wanted_at_once() {
    let mut bench = bench(&[2, 2]);
    beat(&mut bench, joining("a", &["t1", "t2"]));
    let fewer = ConsumerHeartbeat { topics: Some(vec!["t1".into()]), ..beating("a", 2) };
    assert_eq!(beat(&mut bench, fewer), "2 [t1:0,1]");
    assert_eq!(beat(&mut bench, owning("a", 2, &[(1, &[0, 1])])), "3");
}

#[test]
fn assignments_come_at_most_once_in_an_interval() {
    let mut bench = bench(&[2]);
    bench.config.consumer_assignment_interval_ms = 1_000;
    assert_eq!(beat(&mut bench, joining("a", &["t1"])), "2 [t1:0,1]");
    assert_eq!(beat(&mut bench, joining("b", &["t1"])), "2 []", "too early for another one");
    assert_eq!(describe(&mut bench).state, "Assigning");
    assert_eq!(beat(&mut bench, beating("a", 2)), "2");
    bench.pass_ms(1_000);
    assert_eq!(beat(&mut bench, beating("a", 2)), "2 [t1:0]");
    assert_eq!(beat(&mut bench, beating("b", 2)), "3");
}

#[test]
fn the_assignor_that_most_members_ask_for_is_taken() {
    let mut bench = bench(&[2, 2]);
    let asks = |id: &str, assignor: &str| ConsumerHeartbeat {
        assignor: Some(assignor.into()),
        ..joining(id, &["t1", "t2"])
    };
    beat(&mut bench, asks("a", "range"));
    assert_eq!(&*describe(&mut bench).assignor, "range");
    beat(&mut bench, beating("a", 2));
    beat(&mut bench, joining("b", &["t1", "t2"]));
    let targets: Vec<String> =
        bench.groups.consumer("g").unwrap().targets.values().map(|t| shown(t)).collect();
    assert_eq!(targets, ["t1:0 t2:0", "t1:1 t2:1"]);
    let checked =
        |ask: &ConsumerHeartbeat| check(ask, &config()).map_err(|fault| fault.to_string());
    assert_eq!(
        checked(&asks("a", "sticky")).unwrap_err(),
        "ServerAssignor sticky is not supported. Supported assignors: uniform, range."
    );
}

#[test]
fn requests_that_can_never_be_right_are_refused_with_kafka_s_words() {
    let join = || joining("a", &["t1"]);
    #[rustfmt::skip]
    let table = [
        (ConsumerHeartbeat { member_id: "".into(), ..join() },                 "MemberId can't be empty."),
        (ConsumerHeartbeat { group_id: " ".into(), ..join() },                 "GroupId can't be empty."),
        (ConsumerHeartbeat { instance_id: Some("".into()), ..join() },         "InstanceId can't be empty."),
        (ConsumerHeartbeat { rack_id: Some("".into()), ..join() },             "RackId can't be empty."),
        (ConsumerHeartbeat { rebalance_timeout_ms: -1, ..join() },             "RebalanceTimeoutMs must be provided in first request."),
        (ConsumerHeartbeat { owned: None, ..join() },                          "TopicPartitions must be empty when (re-)joining."),
        (ConsumerHeartbeat { topics: None, ..join() },                         "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."),
        (ConsumerHeartbeat { member_epoch: -2, ..join() },                     "InstanceId can't be null."),
        (ConsumerHeartbeat { member_epoch: -3, ..join() },                     "MemberEpoch is invalid."),
    ];
    for (ask, expected) in table {
        assert_eq!(check(&ask, &config()).unwrap_err().to_string(), expected);
    }
    let old = ConsumerHeartbeat { member_id: "".into(), brings_member_id: false, ..join() };
    assert_eq!(check(&old, &config()), Ok(()), "version 0 is given an id");
}

#[test]
fn a_static_member_that_comes_back_takes_its_place_and_its_partitions() {
    let mut bench = bench(&[2]);
    let instance = |ask| ConsumerHeartbeat { instance_id: Some("i".into()), ..ask };
    assert_eq!(beat(&mut bench, instance(joining("a", &["t1"]))), "2 [t1:0,1]");
    assert_eq!(beat(&mut bench, instance(joining("b", &["t1"]))), "unreleased");
    assert_eq!(beat(&mut bench, instance(beating("b", 2))), "fenced");
    assert_eq!(beat(&mut bench, instance(beating("a", -2))), "-2");
    assert_eq!(beat(&mut bench, instance(joining("b", &["t1"]))), "2 [t1:0,1]", "no rebalance");
    assert_eq!(beat(&mut bench, instance(beating("a", 2))), "fenced");
    let stranger = ConsumerHeartbeat { instance_id: Some("j".into()), ..beating("a", 2) };
    assert_eq!(beat(&mut bench, stranger), "unknown member");
    assert_eq!(describe(&mut bench).members.len(), 1);
}

#[test]
fn a_regular_expression_is_resolved_aside_and_again_when_topics_come() {
    let mut bench = bench(&[1, 1]);
    // The first assignment does not wait for it.
    bench.config.consumer_assignment_interval_ms = 1_000;
    let by =
        |regex: &str, ask| ConsumerHeartbeat { regex: Some(regex.into()), topics: None, ..ask };
    assert_eq!(beat(&mut bench, by("t[", joining("a", &[]))), "regex");
    assert_eq!(beat(&mut bench, by("t.*", joining("a", &[]))), "1 []");
    let asked = bench.effects.pop();
    let Some(GroupEffect::ResolveRegexes { group_id, regexes }) = asked else {
        panic!("{asked:?}")
    };
    let resolved = resolve(&regexes, &bench.image, bench.now_ms());
    bench.ask(GroupRequest::RegexesResolved(group_id, resolved));
    assert_eq!(beat(&mut bench, beating("a", 1)), "2 [t1:0 t2:0]");
    bench.pass_ms(1_000);
    let none =
        ConsumerHeartbeat { regex: Some("".into()), topics: Some(vec![]), ..beating("a", 2) };
    assert_eq!(beat(&mut bench, none), "2 []");
    assert!(bench.groups.consumer("g").unwrap().regexes.is_empty());
}

#[test]
fn offsets_are_committed_and_read_with_the_member_s_epoch() {
    let mut bench = bench(&[2]);
    beat(&mut bench, joining("a", &["t1"]));
    let commit = |member: &str, epoch: i32| {
        let mut ask = commit_as(member, epoch, 5);
        ask.topics[0].id = topic_id(1);
        ask.topics[0].name = "t1".into();
        ask
    };
    #[rustfmt::skip]
    let table = [
        ("a", 2, "ok"), ("a", 3, "stale epoch"), ("a", 1, "stale epoch"), ("b", 2, "unknown member"),
        ("", -1, "unknown member"),
    ];
    for (member, epoch, expected) in table {
        assert_eq!(bench.commit(commit(member, epoch)), expected, "{member} {epoch}");
    }
    let old = OffsetCommit { knows_group_not_found: false, ..commit("a", 2) };
    assert_eq!(bench.commit(old), "too old", "before version 9");
    beat(&mut bench, joining("b", &["t1"]));
    beat(&mut bench, beating("a", 2));
    beat(&mut bench, owning("a", 2, &[(1, &[0])]));
    assert_eq!(bench.commit(commit("a", 2)), "ok", "an older epoch, but it has had 0 since then");
    let group = bench.groups.consumer("g").unwrap();
    let id = "g".into();
    assert!(group.check_fetch(&id, Some(&"a".into()), 3).is_ok());
    assert!(group.check_fetch(&id, Some(&"a".into()), 2).is_err());
    assert!(group.check_fetch(&id, None, -1).is_ok(), "an administrator");
    beat(&mut bench, beating("a", -1));
    beat(&mut bench, beating("b", -1));
    assert_eq!(bench.commit(commit("", -1)), "ok", "nobody is left");
}

#[test]
fn a_member_that_meets_a_group_in_its_first_rebalance_is_not_told_the_epoch_of_joining() {
    let mut bench = bench(&[2]);
    let (_, waits) = bench.join_with_id(classic(""));
    let by_regex = ConsumerHeartbeat { regex: Some("t.*".into()), ..joining("new", &[]) };
    assert_eq!(beat(&mut bench, by_regex), "1 []");
    assert!(bench.take(waits).is_some(), "the classic member joins anew");
}

/// A classic consumer of topic `t1`.
fn classic(id: &str) -> JoinGroup {
    let metadata = b"\0\x01\0\0\0\x01\0\x02t1\xff\xff\xff\xff\0\0\0\0";
    let metadata = bytes::Bytes::from_static(metadata);
    JoinGroup { protocols: vec![Protocol { name: "range".into(), metadata }], ..consumer(id) }
}

#[test]
fn a_classic_group_is_converted_when_a_consumer_joins_and_back_when_it_leaves() {
    let mut bench = bench(&[2]);
    bench.image = image(&[2]);
    let (member, ticket) = bench.join_with_id(classic(""));
    bench.pass_ms(10_000);
    let joined = bench.joined(ticket);
    let all = b"\0\x01\0\0\0\x01\0\x02t1\0\0\0\x02\0\0\0\0\0\0\0\x01\xff\xff\xff\xff";
    let ticket = bench.sync(&joined, &[(&member, all)]);
    bench.synced(ticket);
    bench.config.consumer_migration_policy = crate::config::MigrationPolicy::Disabled;
    assert_eq!(beat(&mut bench, joining("new", &["t1"])), "no group", "not with this policy");
    bench.config.consumer_migration_policy = crate::config::MigrationPolicy::Bidirectional;
    assert_eq!(beat(&mut bench, joining("new", &["t1"])), "2 []");
    assert_eq!(bench.heartbeat(&member, 1), "rebalance");
    // It joins with what it has, then without what it is to give back.
    let rejoin = |owned: &'static [u8]| JoinGroup {
        protocols: vec![Protocol {
            name: "range".into(),
            metadata: bytes::Bytes::from_static(owned),
        }],
        ..consumer(&member)
    };
    let both =
        b"\0\x01\0\0\0\x01\0\x02t1\xff\xff\xff\xff\0\0\0\x01\0\x02t1\0\0\0\x02\0\0\0\0\0\0\0\x01";
    let ticket = bench.join(rejoin(both));
    let joined = bench.joined(ticket);
    assert_eq!((joined.generation_id, &*joined.leader), (1, ""));
    let ticket = bench.sync(&joined, &[]);
    let one = b"\0\x01\0\0\0\x01\0\x02t1\0\0\0\x01\0\0\0\0\xff\xff\xff\xff";
    assert_eq!(&bench.synced(ticket)[..], one);
    let first = b"\0\x01\0\0\0\x01\0\x02t1\xff\xff\xff\xff\0\0\0\x01\0\x02t1\0\0\0\x01\0\0\0\0";
    let ticket = bench.join(rejoin(first));
    assert_eq!(bench.joined(ticket).generation_id, 2);
    assert_eq!(beat(&mut bench, beating("new", 2)), "2 [t1:1]");
    assert_eq!(bench.describe("g").unwrap_err().to_string(), "Group g is not a classic group.");
    assert_eq!(beat(&mut bench, beating("new", -1)), "-1");
    assert_eq!(bench.state(), "PreparingRebalance", "only the classic member is left");
    assert_eq!(bench.heartbeat(&member, 2), "rebalance");
}

#[test]
fn a_classic_member_that_does_not_fit_is_refused_without_an_id() {
    let mut bench = bench(&[1]);
    beat(&mut bench, joining("a", &["t1"]));
    let stranger = JoinGroup { protocol_type: "connect".into(), ..consumer("m") };
    let ticket = bench.join(stranger);
    let refused = bench.join_refused(ticket);
    assert_eq!(
        (&*refused.member_id, refused.error),
        ("", ClientFault::InconsistentProtocol.into())
    );
}

#[test]
fn a_new_coordinator_knows_all_and_gives_everybody_a_session() {
    let mut bench = bench(&[4]);
    beat(&mut bench, joining("a", &["t1"]));
    beat(&mut bench, joining("b", &["t1"]));
    beat(&mut bench, beating("a", 2));
    bench.pass_ms(30_000);
    bench.fail_over();
    bench.pass_ms(30_000);
    assert_eq!(beat(&mut bench, beating("b", 3)), "3");
    assert_eq!(beat(&mut bench, owning("a", 2, &[(1, &[0, 1])])), "3");
    assert_eq!(beat(&mut bench, beating("b", 3)), "3 [t1:2,3]");
    bench.pass_ms(45_000);
    assert_eq!(describe(&mut bench).state, "Empty");
    let deleted = short(&bench.now(GroupRequest::Delete("g".into())));
    assert_eq!(deleted, "ok");
    assert!(bench.soft.watches.is_empty(), "nothing is remembered of it");
    assert!(!bench.groups.has_group("g"));
}

#[test]
fn an_empty_group_changes_its_kind_and_keeps_its_offsets() {
    let mut bench = bench(&[1]);
    assert_eq!(bench.commit(commit_as("", -1, 7)), "ok");
    assert_eq!(beat(&mut bench, joining("a", &["t1"])), "2 [t1:0]");
    assert_eq!(bench.offsets(), ["t-0=7"]);
    assert_eq!(beat(&mut bench, beating("a", -1)), "-1");
    let ticket = bench.join_with_id(consumer("")).1;
    bench.pass_ms(10_000);
    bench.joined(ticket);
    assert_eq!(bench.state(), "CompletingRebalance");
    assert_eq!(bench.offsets(), ["t-0=7"]);
}
