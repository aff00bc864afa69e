//! KIP-227 as tables (C016).

use super::*;
use crate::replica::error::ReplicaError;
use crate::replica::fetch::PartRead;

fn sessions(slots: usize) -> Sessions {
    let evicted = crate::telemetry::Metrics::new().fetch_sessions_evicted;
    Sessions::new(slots, Random::seeded(7), evicted)
}

fn at(seconds: u64) -> Instant {
    Instant(Duration::from_secs(seconds))
}

fn asked(partition: i32, fetch_offset: Offset) -> Asked {
    Asked {
        topic: TopicRef::Name("t".into()),
        partition,
        fetch_offset,
        bytes_max: 1000,
        current_leader_epoch: None,
        last_fetched_epoch: None,
    }
}

fn ask(id: i32, epoch: i32, parts: &[i32]) -> SessionAsk {
    SessionAsk {
        id,
        epoch,
        by_topic_id: false,
        privileged: false,
        parts: parts.iter().map(|partition| asked(*partition, 0)).collect(),
        forgotten: Vec::new(),
    }
}

/// What a partition without data says.
fn idle(high_watermark: Offset, log_start_offset: Offset) -> Result<PartRead, ReplicaError> {
    Ok(PartRead {
        high_watermark,
        last_stable_offset: high_watermark,
        log_start_offset,
        aborted: None,
        diverging: None,
        slices: None,
        is_cold: false,
    })
}

/// What each partition says.
type Tell<'a> = dyn Fn(i32) -> Result<PartRead, ReplicaError> + 'a;
type Told = Result<(i32, Vec<i32>), SessionError>;

/// Answers a request, each partition as `tell` says; gives the session id and who was told.
fn answer(
    sessions: &Sessions,
    ask: SessionAsk,
    now: Instant,
    tell: impl Fn(i32) -> Result<PartRead, ReplicaError>,
) -> Told {
    let Fetching { parts, ticket } = sessions.open(ask, now)?;
    let fetched = |part: &Asked| PartFetched {
        topic: part.topic.clone(),
        partition: part.partition,
        outcome: tell(part.partition),
    };
    let mut answer = FetchAnswer { parts: parts.iter().map(fetched).collect() };
    let id = sessions.close(ticket, &mut answer, parts, now)?;
    Ok((id, answer.parts.iter().map(|part| part.partition).collect()))
}

#[test]
fn without_a_session_everything_is_told_and_nothing_kept() {
    let sessions = sessions(10);
    let told = answer(&sessions, ask(0, -1, &[0, 1]), at(0), |_| idle(5, 0));
    assert_eq!((told, sessions.count()), (Ok((NO_SESSION, vec![0, 1])), 0));
}

#[test]
fn a_session_tells_what_changed_and_refuses_wrong_epochs() {
    let sessions = sessions(10);
    let (id, first) = answer(&sessions, ask(0, 0, &[0, 1]), at(0), |_| idle(5, 0)).unwrap();
    assert!(id > 0);
    assert_eq!(first, [0, 1]);
    let unknown = || Err(ReplicaError::unknown());
    let moved = |partition: i32| idle(if partition == 1 { 6 } else { 5 }, 0);
    let failed = |partition: i32| if partition == 0 { unknown() } else { idle(6, 0) };
    let trimmed = |_| idle(6, 3);
    let wrong = |asked, expected| Err(SessionError::Epoch { id, asked, expected });
    #[rustfmt::skip]
    let table: [(&str, i32, &Tell<'_>, Told); 9] = [
        ("idle",                  1, &|_| idle(5, 0), Ok((id, vec![]))),
        ("epoch used before",     1, &|_| idle(5, 0), wrong(1, 2)),
        ("epoch not yet reached", 3, &|_| idle(5, 0), wrong(3, 2)),
        ("high watermark moved",  2, &moved,          Ok((id, vec![1]))),
        ("an error",              3, &failed,         Ok((id, vec![0]))),
        ("the error stays",       4, &failed,         Ok((id, vec![0]))),
        ("the error goes",        5, &moved,          Ok((id, vec![0]))),
        ("log start moved",       6, &trimmed,        Ok((id, vec![0, 1]))),
        ("nothing new",           7, &trimmed,        Ok((id, vec![]))),
    ];
    for (name, epoch, tell, told) in table {
        assert_eq!(answer(&sessions, ask(id, epoch, &[]), at(1), tell), told, "{name}");
    }
}

#[test]
fn partitions_join_change_and_leave_a_session() {
    let sessions = sessions(10);
    let tell = |_| idle(5, 0);
    let (id, _) = answer(&sessions, ask(0, 0, &[0]), at(0), tell).unwrap();
    assert_eq!(answer(&sessions, ask(id, 1, &[2]), at(0), tell), Ok((id, vec![2])));
    let mut forget = ask(id, 2, &[]);
    forget.forgotten = vec![(TopicRef::Name("t".into()), 0)];
    let fetching = sessions.open(forget, at(0)).unwrap();
    assert_eq!(fetching.parts.iter().map(|p| p.partition).collect::<Vec<_>>(), [2]);
    let mut all = ask(id, 3, &[5]);
    all.forgotten = vec![(TopicRef::Name("t".into()), 2), (TopicRef::Name("t".into()), 5)];
    assert_eq!(answer(&sessions, all, at(0), tell), Ok((NO_SESSION, vec![5])));
    let gone = Err(SessionError::NotFound { id });
    assert_eq!(answer(&sessions, ask(id, 4, &[]), at(0), tell), gone);
}

#[test]
fn a_session_is_closed_replaced_and_bound_to_its_way_of_naming() {
    let sessions = sessions(10);
    let tell = |_| idle(5, 0);
    let (id, _) = answer(&sessions, ask(0, 0, &[0]), at(0), tell).unwrap();
    let by_id = SessionAsk { by_topic_id: true, ..ask(id, 1, &[]) };
    assert_eq!(answer(&sessions, by_id, at(0), tell), Err(SessionError::TopicIds { id }));
    let (next, _) = answer(&sessions, ask(id, 0, &[0]), at(0), tell).unwrap();
    assert_ne!(next, id);
    let gone = Err(SessionError::NotFound { id });
    assert_eq!(answer(&sessions, ask(id, 1, &[]), at(0), tell), gone);
    let closed = answer(&sessions, ask(next, -1, &[0]), at(0), tell);
    assert_eq!((closed, sessions.count()), (Ok((NO_SESSION, vec![0])), 0));
    let never = Err(SessionError::NotFound { id: 0 });
    assert_eq!(answer(&sessions, ask(0, 5, &[]), at(0), tell), never);
}

#[test]
fn a_full_cache_gives_way_to_who_is_worth_more() {
    let tell = |_| idle(5, 0);
    #[rustfmt::skip]
    let table = [
        // newcomer at s  used last at s  privileged  size  gets a place
        (10,              0,              false,      9,    false), // all are young
        (119,             119,            false,      9,    false),
        (121,             0,              false,      1,    true),  // one is stale
        (121,             121,            false,      1,    false), // old, but as large
        (121,             121,            false,      9,    true),  // old and smaller
        (121,             119,            false,      9,    false), // was young when last used
        (10,              0,              true,       1,    true),  // followers go first
    ];
    for (now, used, privileged, size, place) in table {
        let sessions = sessions(1);
        let (id, _) = answer(&sessions, ask(0, 0, &[0, 1]), at(0), tell).unwrap();
        answer(&sessions, ask(id, 1, &[]), at(used), tell).unwrap();
        let parts: Vec<i32> = (0..size).collect();
        let newcomer = SessionAsk { privileged, ..ask(0, 0, &parts) };
        let (new, _) = answer(&sessions, newcomer, at(now), tell).unwrap();
        assert_eq!(new != NO_SESSION, place, "at {now}, used {used}, {privileged}, {size}");
        let old_is_there = sessions.open(ask(id, 2, &[]), at(now)).is_ok();
        assert_eq!(old_is_there, !place);
    }
}

#[test]
fn a_partition_named_twice_counts_once_as_asked_last() {
    let sessions = sessions(1);
    let mut twice = ask(0, -1, &[1, 2]);
    twice.parts.push(asked(1, 77));
    let parts = sessions.open(twice, at(0)).unwrap().parts;
    let named: Vec<_> = parts.iter().map(|p| (p.partition, p.fetch_offset)).collect();
    assert_eq!(named, [(1, 77), (2, 0)]);
}
