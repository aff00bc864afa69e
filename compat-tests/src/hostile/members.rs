//! Members that break the rules of their groups, all at once, each in a group of its own; a neighbour's
//! group lives beside them. Codes are Kafka's.

use super::member::{
    ILLEGAL_GENERATION, MEMBER_ID_REQUIRED, Member, NONE, OFFSET_METADATA_TOO_LARGE, Place,
    REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID, UNKNOWN_SERVER_ERROR, code, expect,
};
use super::{Siege, consumers, only_ottla};
use crate::broker::{Broker, Kind};
use crate::folder::Folder;
use crate::places::Places;
use crate::verdict::Test;
use crate::wire::schema::Schemas;
use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

type Case = fn(Place<'_>) -> Result<(), String>;

const CASES: &[(&str, Case)] = &[
    ("members that vanish between join and sync", vanish_before_sync),
    ("members that vanish before they use their id", vanish_before_join),
    ("wrong generations, ids and notes", wrong_claims),
    ("a megabyte of metadata each", much_metadata),
    ("a member that rejoins in a loop", rejoin_in_a_loop),
    ("a rebalance held to its limit", hold_the_rebalance),
    ("thousands of joins without an id", joins_without_id),
    ("hundreds of members that nobody waits for", joins_that_vanish),
    ("epochs that were never given", consumers::wrong_epochs),
    ("subscriptions as long as they can be", consumers::long_subscriptions),
    ("regular expressions that are none, or huge", consumers::wild_patterns),
    ("a thousand members that vanish", consumers::many_that_vanish),
];

const NEIGHBOUR: &str = "neighbour";
/// No answer to the neighbour may take longer, on a machine that is busy with all of the above.
const LONGEST: Duration = Duration::from_secs(5);
/// How far the resident peak may rise above idle: what the members send comes to 20 MiB.
const PEAK_KIB: u64 = 64 * 1024;

pub fn run(
    places: &Places,
    folder: &Folder,
    kind: Kind,
    schemas: &Schemas,
) -> Result<Vec<Test>, String> {
    let broker = Broker::start(kind, places, "hostile-members", &folder.settings()?)?;
    let address = broker.bootstrap();
    let mut siege = Siege::begin(schemas, broker)?;
    let place = |group| Place { schemas, address: &address, group };
    let groups = CASES.iter().map(|(name, _)| *name);
    let mut groups = groups.chain([NEIGHBOUR]);
    groups.try_for_each(|group| place(group).coordinate())?;
    let (mut tests, neighbour) = thread::scope(|scope| {
        let case = |(name, case): &(&'static str, Case)| Test::of(*name, case(place(name)));
        let cases: Vec<_> = CASES.iter().map(|one| scope.spawn(move || case(one))).collect();
        let neighbour =
            served_while(&mut siege, place(NEIGHBOUR), || !cases.iter().all(|c| c.is_finished()));
        let broken = |_| Test::fail("a case", "it panicked");
        let ended = cases.into_iter().map(|c| c.join().unwrap_or_else(broken));
        (ended.collect::<Vec<_>>(), neighbour)
    });
    tests.push(Test::of("a neighbour's group beside them", neighbour));
    tests.push(only_ottla(kind, "resident peak of members", || siege.peak_is_within(PEAK_KIB)));
    Ok(tests)
}

/// A proper member's heartbeats and commits, until `others` are done.
fn served_while(
    siege: &mut Siege<'_>,
    place: Place<'_>,
    others: impl Fn() -> bool,
) -> Result<(), String> {
    let mut member = Member::joined(place)?;
    expect("the neighbour's sync", member.sync(&[])?, NONE)?;
    let mut longest = Duration::ZERO;
    while others() {
        let begin = Instant::now();
        expect("the neighbour's heartbeat", member.heartbeat()?, NONE)?;
        expect("the neighbour's commit", member.commit("")?, NONE)?;
        siege.neighbour_is_served()?;
        longest = longest.max(begin.elapsed());
        thread::sleep(Duration::from_millis(20));
    }
    if longest < LONGEST { Ok(()) } else { Err(format!("it once waited for {longest:?}")) }
}

/// Two members of one generation, which the first leads; neither has asked for its assignment.
fn pair<'a>(place: Place<'a>) -> Result<[Member<'a>; 2], String> {
    let mut leader = Member::joined(place)?;
    expect("a sync alone", leader.sync(&[])?, NONE)?;
    let mut other = Member::named(place)?;
    other.send_join()?;
    while leader.heartbeat()? != REBALANCE_IN_PROGRESS {}
    leader.join()?;
    other.take_join()?;
    Ok([leader, other])
}

/// The one left gets no assignment, is told to join again, and leads.
fn vanish_before_sync(place: Place<'_>) -> Result<(), String> {
    let [leader, mut left] = pair(place)?;
    left.send_sync(&[])?;
    drop(leader);
    expect("the sync without a leader", code(&left.receive()?), REBALANCE_IN_PROGRESS)?;
    let members = left.join()?;
    expect("members that are left", members.len() as i64, 1)?;
    expect("the sync after that", left.sync(&[])?, NONE)
}

fn vanish_before_join(place: Place<'_>) -> Result<(), String> {
    for _ in 0..200 {
        Member::named(place)?;
    }
    let mut member = Member::named(place)?;
    expect("members that are there", member.join()?.len() as i64, 1)?;
    expect("the sync", member.sync(&[])?, NONE)
}

/// Each is refused by its own code and changes nothing for the member that it speaks of.
fn wrong_claims(place: Place<'_>) -> Result<(), String> {
    let mut member = Member::joined(place)?;
    let (id, generation) = (member.id.clone(), member.generation);
    type Ask = fn(&mut Member<'_>) -> Result<i64, String>;
    let asks: [(&str, Ask); 3] = [
        ("sync", |member| member.sync(&[])),
        ("heartbeat", |member| member.heartbeat()),
        ("commit", |member| member.commit("")),
    ];
    for (what, ask) in asks {
        for wrong in [generation + 1, generation - 1, i32::MAX.into(), i32::MIN.into()] {
            let got = member.claiming(&id, wrong, ask)?;
            expect(&format!("{what} of generation {wrong}"), got, ILLEGAL_GENERATION)?;
        }
        for stranger in ["nobody", &"x".repeat(i16::MAX as usize)] {
            let got = member.claiming(stranger, generation, ask)?;
            expect(&format!("{what} of a stranger"), got, UNKNOWN_MEMBER_ID)?;
        }
    }
    expect("the member's own sync", member.sync(&[])?, NONE)?;
    expect("a long note", member.commit(&"n".repeat(4097))?, OFFSET_METADATA_TOO_LARGE)?;
    expect("a note within the limit", member.commit(&"n".repeat(4096))?, NONE)
}

/// A journal's record cannot hold it: Kafka says so by its error for all that has no other.
fn much_metadata(place: Place<'_>) -> Result<(), String> {
    let mut members = pair(place)?;
    for member in &mut members {
        member.metadata = vec![7; 1 << 20];
        member.send_join()?;
    }
    let [leader, other] = &mut members;
    let told = leader.take_join()?;
    let bytes: usize = told.iter().filter_map(|m| m["metadata"].as_str()).map(str::len).sum();
    expect("hex digits told to the leader", bytes as i64, 4 << 20)?;
    other.take_join()?;
    let (mine, others) = (leader.id.clone(), other.id.clone());
    leader.send_sync(&[(&mine, vec![1; 1 << 20]), (&others, vec![2; 1 << 20])])?;
    other.send_sync(&[])?;
    expect("the sync of the leader", code(&leader.receive()?), UNKNOWN_SERVER_ERROR)?;
    // The other was either waiting for the leader's or came after it, into the next rebalance.
    let got = code(&other.receive()?);
    let wanted = if got == UNKNOWN_SERVER_ERROR { got } else { REBALANCE_IN_PROGRESS };
    expect("the sync of the other", got, wanted)
}

fn rejoin_in_a_loop(place: Place<'_>) -> Result<(), String> {
    let mut member = Member::joined(place)?;
    for round in 0u16..500 {
        let before = member.generation;
        member.metadata = round.to_be_bytes().to_vec();
        member.join()?;
        expect("the generation after a join", member.generation, before + 1)?;
    }
    expect("the sync after all", member.sync(&[])?, NONE)
}

/// The one that only says it is alive is put out at the limit, not before it and not much later.
fn hold_the_rebalance(place: Place<'_>) -> Result<(), String> {
    let limit = Duration::from_millis(3000);
    let [mut held, mut holding] = pair(place)?;
    for member in [&mut held, &mut holding] {
        member.rebalance_timeout = limit.as_millis() as i64;
        member.metadata = b"changed".to_vec();
        member.send_join()?;
    }
    held.take_join()?;
    holding.take_join()?;
    let begin = Instant::now();
    held.metadata = b"again".to_vec();
    held.send_join()?;
    while holding.heartbeat()? == NONE {}
    while holding.heartbeat()? == REBALANCE_IN_PROGRESS {
        thread::sleep(Duration::from_millis(50));
    }
    let took = begin.elapsed();
    expect("members after the limit", held.take_join()?.len() as i64, 1)?;
    expect("the heartbeat after the limit", holding.heartbeat()?, UNKNOWN_MEMBER_ID)?;
    let in_time = took > limit / 2 && took < 2 * limit;
    if in_time { Ok(()) } else { Err(format!("put out after {took:?} of {limit:?}")) }
}

/// Each gets an id of its own, on one connection; a proper member joins after them.
fn joins_without_id(place: Place<'_>) -> Result<(), String> {
    let mut stranger = Member::new(place)?;
    let mut ids = HashSet::new();
    for _ in 0..30 {
        for _ in 0..100 {
            stranger.send_join()?;
        }
        for _ in 0..100 {
            let answer = stranger.receive()?;
            expect("a join without an id", code(&answer), MEMBER_ID_REQUIRED)?;
            ids.insert(answer["memberId"].to_string());
        }
    }
    expect("ids given", ids.len() as i64, 3000)?;
    let mut member = Member::joined(place)?;
    expect("the sync after them", member.sync(&[])?, NONE)
}

/// Of a version that gives no id first: they are members at once, and gone before they are answered.
fn joins_that_vanish(place: Place<'_>) -> Result<(), String> {
    for _ in 0..300 {
        let mut member = Member::new(place)?;
        member.rebalance_timeout = 1000;
        member.join_version = 3;
        member.send_join()?;
    }
    let mut member = Member::named(place)?;
    let members = member.join()?;
    // Those before it may be in its first generation: none of them asks for an assignment.
    if members.len() > 301 { Err(format!("{} members", members.len())) } else { Ok(()) }
}
