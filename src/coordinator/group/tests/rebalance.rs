//! Rebalances: who is waited for, how long, and what each member is told at the end.

use bytes::Bytes;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::super::*;
use super::bench::*;
use crate::machine::Ticket;

/// Refreshes every member's session.
fn beat(bench: &mut Bench, members: &[Joined]) {
    for member in members {
        bench.heartbeat(&member.member_id, member.generation_id);
    }
}

#[test]
fn the_first_rebalance_waits_for_latecomers_up_to_the_rebalance_timeout() {
    // (comes at ms, …), the generation starts at ms
    #[rustfmt::skip]
    let table: [(&[u64], u64); 5] = [
        (&[0],                            3_000),
        (&[0, 2_999],                     6_000),
        (&[0, 1_000, 2_000],              6_000),
        (&[0, 2_000, 5_000, 8_000],       10_000), // the rebalance timeout is 10 s
        (&[0, 2_000, 7_000],              6_000),  // too late for this generation
    ];
    for (times, starts) in table {
        let mut bench = Bench::new();
        let (mut now, mut tickets) = (0, Vec::new());
        for time in times.iter().filter(|time| **time < starts) {
            bench.pass_ms(time - now);
            now = *time;
            let ask = JoinGroup { rebalance_timeout_ms: Some(10_000), ..consumer("") };
            tickets.push(bench.join_with_id(ask).1);
        }
        bench.pass_ms(starts - 1 - now);
        assert!(tickets.iter().all(|ticket| bench.take(*ticket).is_none()), "{times:?}");
        bench.pass_ms(1);
        for ticket in tickets {
            assert_eq!(bench.joined(ticket).generation_id, 1, "{times:?}");
        }
    }
}

#[test]
fn without_an_initial_delay_the_first_member_starts_at_once() {
    let config = GroupConfig { initial_rebalance_delay_ms: 0, ..config() };
    let mut bench = Bench::with(config);
    let ticket = bench.join_with_id(consumer("")).1;
    bench.pass_ms(0);
    assert_eq!(bench.joined(ticket).generation_id, 1);
}

/// C039: version 0 has one timeout, and does not send a member back for its id.
#[test]
fn join_v0_uses_its_session_timeout_for_the_rebalance_too() {
    let mut bench = Bench::new();
    let v0 = |member_id: &str| JoinGroup {
        session_timeout_ms: 6_000,
        rebalance_timeout_ms: None,
        requires_member_id: false,
        can_skip_assignment: false,
        ..consumer(member_id)
    };
    let first = bench.join(v0(""));
    bench.pass_ms(3_000);
    let first = bench.joined(first);
    let ticket = bench.sync(&first, &[]);
    bench.synced(ticket);
    let second = bench.join(v0(""));
    bench.pass_ms(3_000);
    let again = bench.join(v0(&first.member_id));
    let (first, second) = (bench.joined(again), bench.joined(second));
    assert_eq!((first.generation_id, second.generation_id), (2, 2));
    let ticket = bench.sync(&first, &[]);
    bench.synced(ticket);
    // The first one is silent: after 6 s it is out, and the second alone.
    for _ in 0..7 {
        bench.pass_ms(1_000);
        bench.heartbeat(&second.member_id, 2);
    }
    let ticket = bench.join(v0(&second.member_id));
    let alone = bench.joined(ticket);
    assert_eq!((alone.generation_id, alone.members.len()), (3, 1));
    assert_eq!(bench.last_group().members[0].rebalance_timeout_ms, 6_000);
}

/// C040: opaque bytes, each to its member; nothing is empty, not null.
#[test]
fn assignments_reach_their_members_byte_for_byte() {
    static LARGE: [u8; 70_000] = [7; 70_000];
    let mut bench = Bench::new();
    let tickets: Vec<Ticket> = (0..3).map(|_| bench.join_with_id(consumer("")).1).collect();
    bench.pass_ms(10_000);
    let joined: Vec<Joined> = tickets.into_iter().map(|ticket| bench.joined(ticket)).collect();
    let (leaders, followers): (Vec<_>, Vec<_>) =
        joined.iter().partition(|member| member.member_id == member.leader);
    let leader = leaders[0];
    assert_eq!(leader.members.len(), 3);
    assert!(followers.iter().all(|member| member.members.is_empty()));
    let early = bench.sync(followers[0], &[(&leader.member_id, b"not the leader's")]);
    assert_eq!(bench.take(early), None, "a follower waits");
    let stranger = MemberId::from("stranger");
    let assignments: [(&MemberId, &[u8]); 3] =
        [(&followers[0].member_id, &LARGE), (&leader.member_id, b"\0"), (&stranger, b"x")];
    let own = bench.sync(leader, &assignments);
    assert_eq!(bench.synced(early), Bytes::from_static(&LARGE));
    assert_eq!(bench.synced(own), Bytes::from_static(b"\0"));
    let late = bench.sync(followers[1], &[]);
    assert_eq!(bench.synced(late), Bytes::new(), "omitted by the leader");
    let again = bench.sync(followers[0], &[(&leader.member_id, b"ignored")]);
    assert_eq!(bench.synced(again), Bytes::from_static(&LARGE));
    assert_eq!(bench.effects, [GroupEffect::RebalanceCompleted]);
}

#[test]
fn who_does_not_rejoin_in_time_is_out_and_another_leads() {
    let mut bench = Bench::new();
    let members = bench.stable(2);
    let newcomer = bench.join_with_id(consumer("")).1;
    bench.pass_ms(30_000);
    beat(&mut bench, &members);
    let follower = bench.join(consumer(&members[1].member_id));
    bench.pass_ms(29_999);
    assert_eq!(bench.state(), "PreparingRebalance");
    bench.pass_ms(1);
    let (newcomer, follower) = (bench.joined(newcomer), bench.joined(follower));
    assert_eq!(newcomer.generation_id, 2);
    assert!([&newcomer, &follower].iter().any(|m| m.member_id == m.leader));
    assert_ne!(follower.leader, members[0].member_id);
    assert_eq!(bench.heartbeat(&members[0].member_id, 1), "unknown member");
}

#[test]
fn who_has_joined_but_does_not_sync_is_out_after_the_rebalance_timeout() {
    let mut bench = Bench::new();
    let tickets: Vec<Ticket> = (0..2).map(|_| bench.join_with_id(consumer("")).1).collect();
    bench.pass_ms(10_000);
    let members: Vec<Joined> = tickets.into_iter().map(|ticket| bench.joined(ticket)).collect();
    let leader = members.iter().find(|m| m.member_id == m.leader).expect("a leader").clone();
    let ticket = bench.sync(&leader, &[]);
    bench.synced(ticket);
    for _ in 0..10 {
        assert_eq!(bench.state(), "Stable");
        bench.pass_ms(5_999);
        beat(&mut bench, &members);
    }
    bench.pass_ms(60_000 - 59_990);
    assert_eq!(bench.state(), "PreparingRebalance");
    assert_eq!(bench.describe("g").map(|group| group.members.len()), Ok(1));
    let ticket = bench.join(consumer(&leader.member_id));
    assert_eq!(bench.joined(ticket).generation_id, 2);
}

#[test]
fn a_silent_member_expires_and_the_others_rebalance() {
    let mut bench = Bench::new();
    let members = bench.stable(2);
    beat(&mut bench, &members);
    bench.pass_ms(30_000);
    beat(&mut bench, &members[..1]);
    bench.pass_ms(14_999);
    assert_eq!(bench.state(), "Stable");
    bench.pass_ms(1);
    assert_eq!(bench.heartbeat(&members[0].member_id, 1), "rebalance");
    let ticket = bench.join(consumer(&members[0].member_id));
    assert_eq!(bench.joined(ticket).members.len(), 1);
}

#[test]
fn the_last_member_s_end_empties_the_group_and_writes_it() {
    for leaves in [true, false] {
        let mut bench = Bench::new();
        let member = bench.stable(1).remove(0);
        if leaves {
            bench.now(leave(vec![leaving(&member.member_id, None)]));
        } else {
            bench.pass_ms(45_000);
        }
        assert_eq!(bench.state(), "Empty", "leaves: {leaves}");
        let written = bench.last_group();
        assert_eq!((written.generation_id, written.members.len()), (2, 0));
        assert_eq!(written.protocol_type.as_deref(), Some("consumer"));
        assert_eq!((&written.protocol_name, &written.leader), (&None, &None));
    }
}

#[test]
fn an_id_that_never_comes_back_is_forgotten_and_holds_nobody_up() {
    let mut bench = Bench::new();
    let member = bench.stable(1).remove(0);
    let pending = bench.join(JoinGroup { session_timeout_ms: 10_000, ..consumer("") });
    let pending = bench.join_refused(pending).member_id;
    let ticket = bench.join(consumer(&member.member_id));
    assert_eq!(bench.take(ticket), None, "the pending one is waited for");
    bench.pass_ms(10_000);
    assert_eq!(bench.joined(ticket).generation_id, 2);
    let late = bench.join(consumer(&pending));
    assert_eq!(bench.join_refused(late).error, ClientFault::UnknownMember.into());
}

#[test]
fn a_new_member_that_waits_forever_is_dropped_after_five_minutes() {
    let mut bench = Bench::new();
    let long = |member_id: &str| JoinGroup {
        session_timeout_ms: 1_800_000,
        rebalance_timeout_ms: Some(1_800_000),
        ..consumer(member_id)
    };
    let first = bench.join_with_id(long("")).1;
    bench.pass_ms(10_000);
    let first = bench.joined(first);
    let ticket = bench.sync(&first, &[]);
    bench.synced(ticket);
    let waiting = bench.join_with_id(long("")).1;
    bench.pass_ms(299_999);
    assert_eq!(bench.take(waiting), None);
    bench.pass_ms(1);
    assert_eq!(bench.join_refused(waiting).error, ClientFault::UnknownMember.into());
}

#[test]
fn rejoining_only_disturbs_the_group_if_something_changed_or_the_leader_asks() {
    let other = || JoinGroup { protocols: vec![protocol("range"), protocol("x")], ..consumer("") };
    #[rustfmt::skip]
    let table = [
        // who,  what,       state after
        (0,      consumer(""), "CompletingRebalance"), // alone it is complete at once
        (1,      consumer(""), "Stable"),
        (1,      other(),      "PreparingRebalance"),
    ];
    for (who, ask, state) in table {
        let mut bench = Bench::new();
        let members = if who == 0 { bench.stable(1) } else { bench.stable(2) };
        let member_id = members[who].member_id.clone();
        let ticket = bench.join(JoinGroup { member_id, ..ask });
        assert_eq!(bench.state(), state);
        if state == "Stable" {
            let joined = bench.joined(ticket);
            assert_eq!((joined.generation_id, joined.members.len()), (1, 0));
        }
    }
}

#[test]
fn a_join_repeated_while_completing_is_answered_with_the_same_generation() {
    let mut bench = Bench::new();
    let ticket = bench.join_with_id(consumer("")).1;
    bench.pass_ms(10_000);
    let joined = bench.joined(ticket);
    let ticket = bench.join(consumer(&joined.member_id));
    assert_eq!(bench.joined(ticket), joined);
}

#[test]
fn a_second_join_of_one_member_sends_the_first_away() {
    let mut bench = Bench::new();
    let (member_id, first) = bench.join_with_id(consumer(""));
    let second = bench.join(consumer(&member_id));
    assert_eq!(bench.join_refused(first).error, NotNow::RebalanceInProgress.into());
    bench.pass_ms(10_000);
    assert_eq!(bench.joined(second).generation_id, 1);
}

#[test]
fn members_vote_for_a_protocol_that_all_have() {
    #[rustfmt::skip]
    let table: [(&[&[&str]], &str); 5] = [
        (&[&["a", "b"], &["b", "a"], &["b", "a"]], "b"),
        (&[&["a", "b"], &["b"]],                   "b"),
        (&[&["x", "a", "b"], &["b", "a"], &["a", "b"]], "a"), // x is not common
        // Equal votes: in the order of Java's HashMap.
        (&[&["range", "sticky"], &["sticky", "range"]],         "sticky"),
        (&[&["range", "roundrobin"], &["roundrobin", "range"]], "range"),
    ];
    for (members, chosen) in table {
        let mut bench = Bench::new();
        let mut tickets = Vec::new();
        for names in members {
            let protocols = names.iter().map(|name| protocol(name)).collect();
            tickets.push(bench.join_with_id(JoinGroup { protocols, ..consumer("") }).1);
        }
        bench.pass_ms(10_000);
        for ticket in tickets {
            assert_eq!(bench.joined(ticket).protocol_name.as_deref(), Some(chosen), "{members:?}");
        }
    }
}

#[test]
fn a_full_group_takes_nobody_else_and_those_who_wait_first_stay() {
    let full = ClientFault::GroupFull { size_max: 2 };
    let config = GroupConfig { max_size: 2, ..config() };
    let mut bench = Bench::with(config);
    let (_, first) = bench.join_with_id(consumer(""));
    let (second_id, second) = bench.join_with_id(consumer(""));
    let third = bench.join(consumer(""));
    assert_eq!(bench.join_refused(third).error, full.clone().into());
    let again = bench.join(consumer(&second_id));
    assert!(bench.take(again).is_none(), "who waits may ask again");
    bench.join_refused(second);
    bench.pass_ms(10_000);
    bench.joined(first);
    let second = bench.joined(again);
    let third = bench.join(consumer(""));
    assert_eq!(bench.join_refused(third).error, full.into(), "in CompletingRebalance");
    let again = bench.join(consumer(&second.member_id));
    bench.joined(again);
}

#[test]
fn a_group_above_a_lowered_limit_rebalances_when_it_is_loaded() {
    let mut bench = Bench::new();
    let members = bench.stable(3);
    bench.config.max_size = 2;
    bench.fail_over();
    assert_eq!(bench.state(), "PreparingRebalance");
    let tickets: Vec<Ticket> =
        members.iter().map(|member| bench.join(consumer(&member.member_id))).collect();
    let error = bench.join_refused(tickets[2]).error;
    assert_eq!(error, ClientFault::GroupFull { size_max: 2 }.into());
    bench.pass_ms(60_000);
    assert_eq!(bench.joined(tickets[0]).generation_id, 2);
    bench.joined(tickets[1]);
}

/// C099: what a new coordinator finds.
#[test]
fn a_stable_group_survives_its_coordinator_with_a_whole_session_timeout() {
    let mut bench = Bench::new();
    let members = bench.stable(2);
    bench.pass_ms(40_000);
    bench.fail_over();
    assert_eq!(bench.state(), "Stable");
    bench.pass_ms(44_999);
    assert_eq!(bench.heartbeat(&members[0].member_id, 1), "ok");
    bench.pass_ms(1);
    assert_eq!(bench.state(), "PreparingRebalance", "the silent one expired");
}

#[test]
fn a_rebalance_under_way_is_lost_with_its_coordinator() {
    let mut bench = Bench::new();
    let members = bench.stable(1);
    let (newcomer, ticket) = bench.join_with_id(consumer(""));
    bench.fail_over();
    assert_eq!(bench.state(), "Stable");
    assert_eq!(bench.take(ticket), None, "the runtime tells who waited");
    assert_eq!(bench.heartbeat(&members[0].member_id, 1), "ok");
    let again = bench.join(consumer(&newcomer));
    assert_eq!(bench.join_refused(again).error, ClientFault::UnknownMember.into());
    // A first rebalance leaves an empty group behind.
    let mut bench = Bench::new();
    bench.join_with_id(consumer(""));
    bench.fail_over();
    assert_eq!(bench.state(), "Empty");
}

#[test]
fn an_assignment_that_fits_no_batch_fails_the_sync_and_the_group_goes_on() {
    static LARGE: [u8; 4_000] = [0; 4_000];
    let mut bench = Bench::new();
    bench.batch_bytes_max = 2_000;
    let ticket = bench.join_with_id(consumer("")).1;
    bench.pass_ms(10_000);
    let member = bench.joined(ticket);
    let ticket = bench.sync(&member, &[(&member.member_id, &LARGE)]);
    assert_eq!(short(&bench.take(ticket).expect("an answer")), "too large");
    assert_eq!(bench.state(), "PreparingRebalance");
    let ticket = bench.join(consumer(&member.member_id));
    let member = bench.joined(ticket);
    let ticket = bench.sync(&member, &[(&member.member_id, b"small")]);
    assert_eq!(bench.synced(ticket), Bytes::from_static(b"small"));
}

#[test]
fn names_that_no_record_holds_are_refused() {
    let long: std::sync::Arc<str> = "x".repeat(32_768).into();
    let asks = [
        JoinGroup { group_id: long.clone(), ..consumer("") },
        JoinGroup { client_id: long.clone(), ..consumer("") },
        JoinGroup { protocol_type: long.clone(), ..consumer("") },
        JoinGroup { protocols: vec![protocol(&long)], ..consumer("") },
        instance("", &long),
    ];
    let mut bench = Bench::new();
    for ask in asks {
        assert_eq!(short(&bench.now(GroupRequest::Join(ask))), "name");
    }
    let commit = OffsetCommit { group_id: long, ..commit_as("", -1, 1) };
    assert_eq!(bench.commit(commit), "name");
    assert!(bench.log.is_empty());
}

/// One step of a member or of time.
#[derive(Debug, Clone, Copy)]
enum Step {
    Join(usize),
    JoinStatic(usize),
    Sync(usize),
    Heartbeat(usize),
    Leave(usize),
    Pass(u64),
    FailOver,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4usize).prop_map(Step::Join),
        2 => (0..2usize).prop_map(Step::JoinStatic),
        4 => (0..6usize).prop_map(Step::Sync),
        2 => (0..6usize).prop_map(Step::Heartbeat),
        1 => (0..6usize).prop_map(Step::Leave),
        4 => prop_oneof![Just(0), Just(100), Just(3_000), Just(20_000), Just(60_000)]
            .prop_map(Step::Pass),
        1 => Just(Step::FailOver),
    ]
}

/// A client's view: its id, its generation, what it waits for.
#[derive(Default, Clone)]
struct Client {
    member_id: MemberId,
    generation_id: i32,
    leads: bool,
    waits: Option<Ticket>,
}

impl Client {
    fn hear(&mut self, bench: &mut Bench) {
        let Some(answer) = self.waits.and_then(|ticket| bench.take(ticket)) else { return };
        self.waits = None;
        match answer {
            GroupAnswer::Join(Ok(joined)) => {
                self.leads = joined.leader == joined.member_id;
                assert_eq!(joined.members.is_empty(), !self.leads, "only a leader sees all");
                (self.member_id, self.generation_id) = (joined.member_id, joined.generation_id);
            }
            GroupAnswer::Join(Err(refused)) => match refused.error {
                GroupError::NotNow(NotNow::MemberIdRequired) => self.member_id = refused.member_id,
                GroupError::Client(_) => *self = Self::default(),
                _ => {}
            },
            GroupAnswer::Sync(Err(GroupError::Client(ClientFault::UnknownMember))) => {
                *self = Self::default();
            }
            _ => {}
        }
    }
}

fn run(steps: &[Step]) -> Bench {
    let mut bench = Bench::new();
    let mut clients = vec![Client::default(); 6];
    let mut generation_id = 0;
    for step in steps {
        match *step {
            Step::Join(at) if clients[at].waits.is_none() => {
                let ask = consumer(&clients[at].member_id.clone());
                clients[at].waits = Some(bench.join(ask));
            }
            Step::JoinStatic(at) => {
                let name = ["i", "j"][at];
                clients[at + 4] =
                    Client { waits: Some(bench.join(instance("", name))), ..Client::default() };
            }
            Step::Sync(at) if clients[at].waits.is_none() => {
                let client = &clients[at];
                let ask = sync_as(&client.member_id, client.generation_id);
                clients[at].waits = Some(bench.ask(GroupRequest::Sync(ask)));
            }
            Step::Heartbeat(at) => {
                bench.heartbeat(&clients[at].member_id.clone(), clients[at].generation_id);
            }
            Step::Leave(at) => {
                bench.now(leave(vec![leaving(&clients[at].member_id.clone(), None)]));
            }
            Step::Pass(ms) => bench.pass_ms(ms),
            Step::FailOver => {
                bench.fail_over();
                generation_id = bench.groups.classic("g").map_or(0, |group| group.generation_id);
                clients.iter_mut().for_each(|client| client.waits = None);
            }
            Step::Join(_) | Step::Sync(_) => {}
        }
        clients.iter_mut().for_each(|client| client.hear(&mut bench));
        if let Some(live) = bench.soft.groups.get("g") {
            assert!(live.generation_id >= generation_id, "the generation goes back");
            generation_id = live.generation_id;
            let waiting = live.members.values().filter(|m| m.awaiting_join.is_some()).count();
            assert_eq!(live.awaiting_join(), waiting, "the count of those that wait");
            assert_eq!(live.members.is_empty(), live.leader.is_none(), "a group has one leader");
            assert!(live.leader.iter().all(|leader| live.members.contains_key(leader)));
        }
    }
    bench
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::with_cases(256) })]
    /// Whatever members do, the group's counts hold, its generation never goes back, who asks
    /// is answered once, and in the end, left alone, it is empty or gone.
    #[test]
    fn a_group_is_consistent_and_comes_to_rest(steps in prop::collection::vec(any_step(), 0..60)) {
        let mut bench = run(&steps);
        bench.pass_ms(2 * 1_800_000);
        prop_assert!(["Empty", "Dead"].contains(&bench.state()));
        prop_assert!(bench.soft.groups.is_empty(), "nothing lingers in memory");
    }

    /// The same steps from the same seeds write the same log.
    #[test]
    fn the_same_steps_write_the_same_log(steps in prop::collection::vec(any_step(), 0..40)) {
        prop_assert_eq!(run(&steps).log, run(&steps).log);
    }
}
