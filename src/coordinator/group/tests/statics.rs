//! Static members (KIP-345, KIP-814): they come back under their instance id.

use bytes::Bytes;

use super::super::*;
use super::bench::*;
use crate::machine::Ticket;

/// Static members `i` and `j`, stable, the leader first, with assignments of their own.
fn two_stable(bench: &mut Bench) -> Vec<(Joined, &'static str)> {
    let tickets = [bench.join(instance("", "i")), bench.join(instance("", "j"))];
    bench.pass_ms(10_000);
    let names = ["i", "j"].into_iter();
    let mut members: Vec<(Joined, &str)> =
        tickets.into_iter().map(|ticket| bench.joined(ticket)).zip(names).collect();
    members.sort_by_key(|(member, _)| member.member_id != member.leader);
    let ids = [&members[0].0.member_id, &members[1].0.member_id];
    let own = bench.sync(&members[0].0, &[(ids[0], b"first"), (ids[1], b"second")]);
    let other = bench.sync(&members[1].0, &[]);
    assert_eq!(bench.synced(own), Bytes::from_static(b"first"));
    assert_eq!(bench.synced(other), Bytes::from_static(b"second"));
    members
}

#[test]
fn a_static_member_gets_its_id_at_once_and_it_tells_the_instance() {
    let mut bench = Bench::new();
    let ticket = bench.join(instance("", "i"));
    bench.pass_ms(10_000);
    let joined = bench.joined(ticket);
    assert!(joined.member_id.starts_with("i-"), "{}", joined.member_id);
    assert_eq!(joined.member_id.len(), "i-".len() + 36);
    assert_eq!(joined.members[0].group_instance_id.as_deref(), Some("i"));
}

#[test]
fn a_returning_static_member_takes_its_assignment_over_without_a_rebalance() {
    #[rustfmt::skip]
    let table = [
        // leads, v9,    is told to skip, sees members
        (true,    true,  true,  2),
        (true,    false, false, 0),
        (false,   true,  false, 0),
        (false,   false, false, 0),
    ];
    for (leads, can_skip_assignment, skips, sees) in table {
        let mut bench = Bench::new();
        let members = two_stable(&mut bench);
        let (old, name) = &members[usize::from(!leads)];
        let ask = JoinGroup { can_skip_assignment, ..instance("", name) };
        let ticket = bench.join(ask);
        let joined = bench.joined(ticket);
        assert_eq!((joined.generation_id, bench.state()), (1, "Stable"));
        assert_ne!(joined.member_id, old.member_id);
        assert_eq!((joined.skip_assignment, joined.members.len()), (skips, sees));
        // Before version 9 the leader is told of its own old id, so that it does not assign.
        let leads_by_answer = joined.leader == joined.member_id;
        assert_eq!(leads_by_answer, leads && can_skip_assignment, "{leads} {can_skip_assignment}");
        let ticket = bench.sync(&joined, &[]);
        let expected: &[u8] = if leads { b"first" } else { b"second" };
        assert_eq!(bench.synced(ticket), expected);
        // The log knows the new id.
        let ids: Vec<_> = bench.last_group().members.iter().map(|m| m.member_id.clone()).collect();
        assert!(ids.contains(&joined.member_id) && !ids.contains(&old.member_id));
        // The old one learns by its instance id that it is replaced, else that it is unknown.
        let beat = Heartbeat {
            group_id: "g".into(),
            generation_id: 1,
            member_id: old.member_id.clone(),
            group_instance_id: Some((*name).into()),
        };
        assert_eq!(short(&bench.now(GroupRequest::Heartbeat(beat))), "fenced");
        assert_eq!(bench.heartbeat(&old.member_id, 1), "unknown member");
    }
}

#[test]
fn a_static_member_that_changes_the_chosen_protocol_starts_a_rebalance() {
    let mut bench = Bench::new();
    let both = |id: &str, name: &str| JoinGroup {
        protocols: vec![protocol("range"), protocol("sticky")],
        ..instance(id, name)
    };
    let tickets = [bench.join(both("", "i")), bench.join(both("", "j"))];
    bench.pass_ms(10_000);
    let members: Vec<Joined> = tickets.into_iter().map(|ticket| bench.joined(ticket)).collect();
    let leader = members.iter().find(|m| m.member_id == m.leader).expect("a leader").clone();
    let ticket = bench.sync(&leader, &[]);
    bench.synced(ticket);
    let ticket = bench.join(JoinGroup { protocols: vec![protocol("sticky")], ..instance("", "i") });
    assert_eq!((bench.take(ticket), bench.state()), (None, "PreparingRebalance"));
}

#[test]
fn a_member_replaced_while_it_waits_is_fenced() {
    let mut bench = Bench::new();
    let first = bench.join(instance("", "i"));
    let second = bench.join(instance("", "i"));
    let refused = bench.join_refused(first);
    assert_eq!(refused.error, ClientFault::FencedInstance.into());
    assert!(refused.member_id.starts_with("i-"));
    bench.pass_ms(10_000);
    assert_eq!(bench.joined(second).members.len(), 1);
}

#[test]
fn a_member_replaced_while_the_leader_assigns_starts_a_rebalance() {
    let mut bench = Bench::new();
    let tickets = [bench.join(instance("", "i")), bench.join(instance("", "j"))];
    bench.pass_ms(10_000);
    let members: Vec<Joined> = tickets.into_iter().map(|ticket| bench.joined(ticket)).collect();
    let at = usize::from(members[0].member_id == members[0].leader);
    let (follower, leader) = (&members[at], &members[1 - at]);
    let syncs = bench.ask(GroupRequest::Sync(SyncGroup {
        group_instance_id: Some(["i", "j"][at].into()),
        ..sync_as(&follower.member_id, 1)
    }));
    let ticket = bench.join(instance("", ["i", "j"][at]));
    assert_eq!(short(&bench.take(syncs).expect("an answer")), "fenced");
    assert_eq!((bench.take(ticket), bench.state()), (None, "PreparingRebalance"));
    assert_eq!(bench.heartbeat(&leader.member_id, 1), "rebalance");
}

#[test]
fn static_members_are_kept_through_a_rebalance_until_their_session_ends() {
    let mut bench = Bench::new();
    let members = two_stable(&mut bench);
    let (leader, name) = &members[0];
    let ticket = bench.join(JoinGroup {
        rebalance_timeout_ms: Some(20_000),
        ..instance(&leader.member_id, name)
    });
    bench.pass_ms(30_000);
    assert_eq!(bench.heartbeat(&members[1].0.member_id, 1), "rebalance");
    assert_eq!(bench.take(ticket), None, "the rebalance timeout is the longest of the members'");
    bench.pass_ms(30_000);
    let joined = bench.joined(ticket);
    assert_eq!((joined.generation_id, joined.members.len()), (2, 2), "the silent one counts");
}

#[test]
fn when_no_static_member_is_back_in_time_the_sessions_decide() {
    let mut bench = Bench::new();
    let ticket = bench.join(JoinGroup { session_timeout_ms: 200_000, ..instance("", "i") });
    let dynamic = bench.join_with_id(consumer("")).1;
    bench.pass_ms(10_000);
    let (fixed, dynamic) = (bench.joined(ticket), bench.joined(dynamic));
    let leader = if fixed.leader == fixed.member_id { &fixed } else { &dynamic };
    let ticket = bench.sync(leader, &[]);
    bench.synced(ticket);
    bench.now(leave(vec![leaving(&dynamic.member_id, None)]));
    bench.pass_ms(60_000);
    assert_eq!(bench.state(), "PreparingRebalance", "the generation waits for a member");
    bench.pass_ms(140_000);
    assert_eq!(bench.state(), "Empty");
}

#[test]
fn an_administrator_removes_by_instance_and_each_member_has_its_outcome() {
    let mut bench = Bench::new();
    let members = two_stable(&mut bench);
    let (leader, name) = &members[0];
    let other = members[1].1;
    let answer = bench.now(leave(vec![
        leaving("", Some(name)),
        leaving("wrong", Some(other)),
        leaving("", Some("k")),
        leaving(&leader.member_id, None),
    ]));
    assert_eq!(short(&answer), "ok fenced unknown member unknown member");
    assert_eq!(bench.state(), "PreparingRebalance");
    let ticket = bench.join(instance(&members[1].0.member_id, other));
    assert_eq!(bench.joined(ticket).members.len(), 1);
}

#[test]
fn an_instance_id_needs_its_own_member_id_everywhere() {
    let mut bench = Bench::new();
    let members = two_stable(&mut bench);
    let (first, name) = &members[0];
    let (wrong, unknown) = (members[1].1, "k");
    #[rustfmt::skip]
    let table = [(*name, "ok"), (wrong, "fenced"), (unknown, "unknown member")];
    for (name, expected) in table {
        let group_instance_id = Some(InstanceId::from(name));
        let beat = Heartbeat {
            group_id: "g".into(),
            generation_id: 1,
            member_id: first.member_id.clone(),
            group_instance_id: group_instance_id.clone(),
        };
        let sync = SyncGroup {
            group_instance_id: group_instance_id.clone(),
            ..sync_as(&first.member_id, 1)
        };
        let commit = OffsetCommit { group_instance_id, ..commit_as(&first.member_id, 1, 5) };
        assert_eq!(short(&bench.now(GroupRequest::Heartbeat(beat))), expected);
        assert_eq!(short(&bench.now(GroupRequest::Sync(sync))), expected);
        assert_eq!(bench.commit(commit), expected);
        if expected != "ok" {
            let ticket: Ticket = bench.join(instance(&first.member_id, name));
            assert_eq!(short(&bench.take(ticket).expect("an answer")), expected);
        }
    }
}
