//! What each request is answered in each state of a group.

use super::super::*;
use super::bench::*;

/// The states a request can meet, `g` having one member but for the first three.
const STATES: [&str; 6] =
    ["Dead", "Empty", "Pending", "PreparingRebalance", "CompletingRebalance", "Stable"];

/// A bench with group `g` in `state`, and the id and generation of its member.
fn group_in(state: &str) -> (Bench, MemberId, i32) {
    let mut bench = Bench::new();
    let nobody = MemberId::from("nobody");
    match state {
        "Dead" => (bench, nobody, 0),
        "Empty" => {
            let member = bench.stable(1).remove(0);
            bench.now(leave(vec![leaving(&member.member_id, None)]));
            (bench, nobody, 2)
        }
        "Pending" => {
            let ticket = bench.join(consumer(""));
            let member_id = bench.join_refused(ticket).member_id;
            (bench, member_id, 0)
        }
        "PreparingRebalance" => {
            let member = bench.stable(1).remove(0);
            bench.join_with_id(consumer(""));
            (bench, member.member_id, 1)
        }
        "CompletingRebalance" => {
            let ticket = bench.join_with_id(consumer("")).1;
            bench.pass_ms(10_000);
            let member = bench.joined(ticket);
            (bench, member.member_id, 1)
        }
        _ => {
            let member = bench.stable(1).remove(0);
            (bench, member.member_id, 1)
        }
    }
}

#[test]
fn every_state_answers_as_kafka_does() {
    type Ask = fn(&str, i32) -> GroupRequest;
    fn other(_: &str, generation_id: i32) -> GroupRequest {
        GroupRequest::Heartbeat(beat("other", generation_id))
    }
    fn beat(member_id: &str, generation_id: i32) -> Heartbeat {
        let (group_id, member_id) = ("g".into(), member_id.into());
        Heartbeat { group_id, generation_id, member_id, group_instance_id: None }
    }
    fn old_clients_commit(member_id: &str, generation_id: i32) -> GroupRequest {
        let ask = commit_as(member_id, generation_id, 1);
        GroupRequest::Commit(OffsetCommit { knows_group_not_found: false, ..ask })
    }
    fn delete_offset(topic: &str) -> GroupRequest {
        let topics = vec![(topic.into(), vec![0])];
        GroupRequest::DeleteOffsets(OffsetDelete { group_id: "g".into(), topics })
    }
    #[rustfmt::skip] // columns
    let table: [(&str, Ask, [&str; 6]); 19] = [
        //                                                                                  Dead              Empty             Pending           Preparing         Completing        Stable
        ("heartbeat",           |m, g| GroupRequest::Heartbeat(beat(m, g)),                 ["unknown member", "unknown member", "unknown member", "rebalance",      "ok",             "ok"]),
        ("old heartbeat",       |m, g| GroupRequest::Heartbeat(beat(m, g - 1)),             ["unknown member", "unknown member", "unknown member", "generation",     "generation",     "generation"]),
        ("other's heartbeat",   other,                                                      ["unknown member", "unknown member", "unknown member", "unknown member", "unknown member", "unknown member"]),
        ("sync",                |m, g| GroupRequest::Sync(sync_as(m, g)),                   ["unknown member", "unknown member", "unknown member", "rebalance",      "ok",             "ok"]),
        ("old sync",            |m, g| GroupRequest::Sync(sync_as(m, g - 1)),               ["unknown member", "unknown member", "unknown member", "generation",     "generation",     "generation"]),
        ("commit",              |m, g| GroupRequest::Commit(commit_as(m, g, 1)),            ["no group",       "unknown member", "unknown member", "ok",             "rebalance",      "ok"]),
        ("old client's commit", old_clients_commit,                                         ["generation",     "unknown member", "unknown member", "ok",             "rebalance",      "ok"]),
        ("old commit",          |m, g| GroupRequest::Commit(commit_as(m, g - 1, 1)),        ["ok",             "unknown member", "ok",             "generation",     "generation",     "generation"]),
        ("simple commit",       |_, _| GroupRequest::Commit(commit_as("", -1, 1)),          ["ok",             "ok",             "ok",             "unknown member", "unknown member", "unknown member"]),
        ("odd commit",          |m, _| GroupRequest::Commit(commit_as(m, -1, 1)),           ["ok",             "ok",             "ok",             "generation",     "generation",     "generation"]),
        ("leave",               |m, _| leave(vec![leaving(m, None)]),                       ["unknown member", "unknown member", "ok",             "ok",             "ok",             "ok"]),
        ("leave nobody",        |_, _| leave(vec![leaving("", None)]),                      ["unknown member", "unknown member", "unknown member", "unknown member", "unknown member", "unknown member"]),
        ("leave instance",      |_, _| leave(vec![leaving("", Some("i"))]),                 ["unknown member", "unknown member", "unknown member", "unknown member", "unknown member", "unknown member"]),
        ("delete",              |_, _| GroupRequest::Delete("g".into()),                    ["no group",       "ok",             "ok",             "not empty",      "not empty",      "not empty"]),
        ("delete offset of t",  |_, _| delete_offset("t"),                                  ["no group",       "ok",             "ok",             "subscribed",     "subscribed",     "subscribed"]),
        ("delete offset of u",  |_, _| delete_offset("u"),                                  ["no group",       "ok",             "ok",             "ok",             "ok",             "ok"]),
        ("unknown id joins",    |_, _| GroupRequest::Join(consumer("other")),               ["unknown member", "unknown member", "unknown member", "unknown member", "unknown member", "unknown member"]),
        ("instance unknown",    |m, _| GroupRequest::Join(instance(m, "i")),                ["unknown member", "unknown member", "pending with instance", "unknown member", "unknown member", "unknown member"]),
        ("a new one joins",     |_, _| GroupRequest::Join(consumer("")),                    ["id required",    "id required",    "id required",    "id required",    "id required",    "id required"]),
    ];
    for (name, ask, answers) in table {
        for (state, expected) in STATES.iter().zip(answers) {
            let (mut bench, member_id, generation_id) = group_in(state);
            let shown = if *state == "Pending" { "Empty" } else { state };
            assert_eq!(bench.state(), shown);
            let answer = bench.now(ask(&member_id, generation_id));
            assert_eq!(short(&answer), expected, "{name} in {state}");
        }
    }
}

#[test]
fn another_protocol_type_or_none_in_common_is_refused_wherever_there_are_members() {
    let other_type = || JoinGroup { protocol_type: "connect".into(), ..consumer("") };
    let other_name = || JoinGroup { protocols: vec![protocol("sticky")], ..consumer("") };
    let no_type = || JoinGroup { protocol_type: "".into(), ..consumer("") };
    let no_protocol = || JoinGroup { protocols: Vec::new(), ..consumer("") };
    for state in STATES {
        let is_empty = ["Dead", "Empty", "Pending"].contains(&state);
        let expected = if is_empty { "id required" } else { "protocol" };
        for (ask, expected) in [
            (other_type(), expected),
            (other_name(), expected),
            (no_type(), "protocol"),
            (no_protocol(), "protocol"),
        ] {
            let mut bench = group_in(state).0;
            assert_eq!(short(&bench.now(GroupRequest::Join(ask))), expected, "in {state}");
        }
    }
}

#[test]
fn refusals_write_nothing_but_the_record_of_a_group_first_heard_of() {
    for state in STATES {
        let (mut bench, member_id, generation_id) = group_in(state);
        let before = bench.log.len();
        bench.heartbeat("other", generation_id);
        bench.now(GroupRequest::Sync(sync_as(&member_id, generation_id + 1)));
        bench.now(GroupRequest::Join(consumer("other")));
        bench.now(leave(vec![leaving("other", None)]));
        assert_eq!(bench.log.len(), before, "{state}");
        let nothing = JoinGroup { protocols: Vec::new(), ..consumer("") };
        bench.now(GroupRequest::Join(nothing));
        let is_first = usize::from(state == "Dead");
        assert_eq!(bench.log.len(), before + is_first, "{state}");
    }
}

#[test]
fn sync_may_name_the_protocol_and_then_it_must_be_the_group_s() {
    #[rustfmt::skip]
    let table = [
        (None,             None,          "ok"),
        (Some("consumer"), Some("range"), "ok"),
        (Some("connect"),  Some("range"), "protocol"),
        (Some("consumer"), Some("other"), "protocol"),
    ];
    for (protocol_type, name, expected) in table {
        let (mut bench, member_id, generation_id) = group_in("Stable");
        let answer = bench.now(GroupRequest::Sync(SyncGroup {
            protocol_type: protocol_type.map(Into::into),
            protocol_name: name.map(Into::into),
            ..sync_as(&member_id, generation_id)
        }));
        assert_eq!(short(&answer), expected, "{protocol_type:?} {name:?}");
    }
}
