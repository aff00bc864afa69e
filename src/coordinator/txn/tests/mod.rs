//! The machine as statements of behaviour; what Kafka answers in each case is in KIP-98, 360 and 890.

mod bench;
mod random;

use std::time::Duration;

use super::*;
use crate::common::{ProducerId, TopicPartition, TransactionalId};
use TxnError::{
    ConcurrentTransactions, InvalidProducerIdMapping, InvalidTransactionTimeout, InvalidTxnState,
    ProducerFenced,
};
use TxnState::{CompleteAbort, CompleteCommit, Empty, Ongoing, PrepareAbort, PrepareCommit};
use bench::{Bench, ID};

const LAST_EPOCH: i16 = i16::MAX - 1;

fn owner(id: i64, epoch: i16) -> Owner {
    Owner::new(id, epoch)
}

#[test]
fn a_transaction_goes_from_init_to_commit_and_to_the_next() {
    for client in [0, 1] {
        let mut bench = Bench::new(client);
        let me = bench.init().unwrap();
        assert_eq!((me, bench.state()), (owner(1001, 0), Empty));
        bench.add(me, client, 0).unwrap();
        bench.add(me, client, 1).unwrap();
        assert_eq!(bench.state(), Ongoing);
        assert_eq!(bench.end(me, client, true), Ok(None), "the client stays who it is");
        assert_eq!(bench.state(), PrepareCommit);
        assert_eq!(bench.add(me, client, 2), Err(ConcurrentTransactions));
        assert_eq!(bench.end(me, client, true), Err(ConcurrentTransactions), "asked again");
        let markers = bench.write_markers();
        assert_eq!((markers.owner, markers.commit, markers.coordinator_epoch), (me, true, 1));
        let partitions = [TopicPartition::new("t", 0), TopicPartition::new("t", 1)];
        assert_eq!(markers.partitions, partitions.into_iter().collect());
        assert_eq!(bench.state(), CompleteCommit);
        assert_eq!(bench.end(me, client, true), Ok(None), "asked again, late");
        bench.add(me, client, 5).unwrap();
        bench.end(me, client, false).unwrap();
        let markers = bench.write_markers();
        assert_eq!((markers.commit, markers.partitions.len()), (false, 1));
        assert_eq!(bench.state(), CompleteAbort);
    }
}

#[test]
fn each_end_gives_a_client_of_version_2_a_new_epoch_that_its_markers_carry() {
    let mut bench = Bench::new(2);
    let me = bench.init().unwrap();
    bench.add(me, 2, 0).unwrap();
    let next = bench.end(me, 2, true).unwrap().unwrap();
    assert_eq!(next, owner(me.id.0, 1));
    assert_eq!(bench.end(me, 2, true), Err(ConcurrentTransactions), "asked again");
    assert_eq!(bench.write_markers().owner, next);
    assert_eq!(bench.end(me, 2, true), Ok(Some(next)), "asked again, late");
    assert_eq!(bench.end(me, 2, false), Err(InvalidTxnState), "it was committed");
    assert_eq!(bench.add(me, 2, 1), Err(ProducerFenced), "the epoch of the transaction before");
    bench.add(next, 2, 1).unwrap();
    assert_eq!(bench.end(me, 2, false), Err(ProducerFenced), "a late end cannot hit the next one");
    assert_eq!(bench.state(), Ongoing);
}

#[test]
fn a_client_of_version_2_may_abort_what_has_not_begun() {
    let mut bench = Bench::new(2);
    let me = bench.init().unwrap();
    assert_eq!(bench.end(me, 2, true), Err(InvalidTxnState));
    let next = bench.end(me, 2, false).unwrap().unwrap();
    assert_eq!(bench.write_markers().partitions.len(), 0);
    assert_eq!((next, bench.state()), (owner(me.id.0, 1), CompleteAbort));
    let again = bench.end(next, 2, false).unwrap().unwrap();
    assert_eq!(again, owner(me.id.0, 2), "not a retry, but the next one");
    bench.write_markers();
    let mut bench = Bench::new(0);
    let me = bench.init().unwrap();
    assert_eq!(bench.end(me, 0, false), Err(InvalidTxnState), "older clients may not");
}

/// State, who asks, what, and what is answered; `me` is (1001, 5).
#[test]
fn an_end_is_answered_by_state_and_epoch() {
    type Begin = fn(&mut Bench, Owner);
    let begin: [(&str, Begin); 4] = [
        ("empty", |_, _| {}),
        ("ongoing", |bench, me| bench.add(me, 0, 0).unwrap()),
        ("prepared to commit", |bench, me| {
            bench.add(me, 0, 0).unwrap();
            bench.end(me, 0, true).unwrap();
        }),
        ("aborted", |bench, me| {
            bench.add(me, 0, 0).unwrap();
            bench.end(me, 0, false).unwrap();
            bench.write_markers();
        }),
    ];
    let mapping = Err(InvalidProducerIdMapping);
    let (fenced, state) = (Err(ProducerFenced), Err(InvalidTxnState));
    let (later, done) = (Err(ConcurrentTransactions), Ok(None));
    #[rustfmt::skip]
    let table = [
        // state, id, epoch, commit, answer
        (0, 1001, 5, true,  state), (0, 1001, 5, false, state), (0, 1001, 4, true, fenced),
        (0, 1001, 6, true,  fenced), (0, 1002, 5, true, mapping),
        (1, 1001, 5, true,  done),  (1, 1001, 5, false, done), (1, 1001, 4, true, fenced),
        (1, 1001, 6, false, fenced), (1, 7, 5, false, mapping),
        (2, 1001, 5, true,  later), (2, 1001, 5, false, state), (2, 1001, 4, true, fenced),
        (3, 1001, 5, true,  state), (3, 1001, 5, false, done),  (3, 1001, 6, false, fenced),
    ];
    for (at, id, epoch, commit, answer) in table {
        let mut bench = Bench::new(0);
        bench.init().unwrap();
        let me = bench.age_to(5);
        begin[at].1(&mut bench, me);
        let got = bench.end(owner(id, epoch), 0, commit);
        assert_eq!(got, answer, "{}, ({id}, {epoch}), commit: {commit}", begin[at].0);
    }
}

#[test]
fn who_takes_an_id_over_fences_the_other_and_its_open_transaction() {
    for (version, after) in [(0, 2), (2, 3)] {
        let mut bench = Bench::new(version);
        let old = bench.init().unwrap();
        bench.add(old, version, 0).unwrap();
        assert_eq!(bench.init(), Err(ConcurrentTransactions), "it is aborted first");
        assert_eq!(bench.state(), PrepareAbort);
        assert_eq!(bench.init(), Err(ConcurrentTransactions), "until its markers are written");
        assert_eq!(bench.end(old, version, true), Err(ProducerFenced));
        let markers = bench.write_markers();
        assert_eq!((markers.commit, markers.owner.epoch.0), (false, after - 1));
        let new = bench.init().unwrap();
        assert_eq!(new, owner(old.id.0, after));
        assert_eq!(bench.add(old, version, 0), Err(ProducerFenced));
        bench.add(new, version, 0).unwrap();
    }
}

#[test]
fn a_client_goes_on_after_an_error_under_the_epoch_that_it_names() {
    let mut bench = Bench::new(0);
    let me = bench.init_as(Some(owner(55, 3)), 60_000).unwrap();
    assert_eq!(me, owner(1001, 0), "an id that nobody knows any more");
    let next = bench.init_as(Some(me), 60_000).unwrap();
    assert_eq!(next, owner(1001, 1));
    assert_eq!(bench.init_as(Some(me), 60_000), Ok(next), "asked again, the answer was lost");
    bench.init().unwrap();
    assert_eq!(bench.init_as(Some(next), 60_000), Err(ProducerFenced), "another took it over");
    assert_eq!(bench.init_as(Some(owner(7, 0)), 60_000), Err(ProducerFenced));
}

#[test]
fn an_epoch_that_is_used_up_is_followed_by_another_producer_id() {
    let mut bench = Bench::new(0);
    bench.init().unwrap();
    let last = bench.age_to(LAST_EPOCH);
    let new = bench.init_as(Some(last), 60_000).unwrap();
    assert_eq!(new, owner(1002, 0));
    assert_eq!(bench.add(last, 0, 0), Err(InvalidProducerIdMapping));
    assert_eq!(bench.init_as(Some(last), 60_000), Ok(new), "asked again, the answer was lost");

    let mut bench = Bench::new(2);
    bench.init().unwrap();
    let last = bench.age_to(LAST_EPOCH);
    bench.add(last, 2, 0).unwrap();
    let next = bench.end(last, 2, true).unwrap().unwrap();
    assert_eq!(next, owner(1002, 0));
    assert_eq!(bench.write_markers().owner, owner(1001, i16::MAX), "the markers are the old one's");
    assert_eq!(bench.end(last, 2, true), Ok(Some(next)), "asked again, late");
    bench.add(next, 2, 0).unwrap();
}

#[test]
fn an_open_transaction_of_the_last_epoch_can_be_fenced() {
    for version in [0, 2] {
        let mut bench = Bench::new(version);
        bench.init().unwrap();
        let last = bench.age_to(LAST_EPOCH);
        bench.add(last, version, 0).unwrap();
        assert_eq!(bench.init(), Err(ConcurrentTransactions));
        assert_eq!(bench.write_markers().owner, owner(1001, i16::MAX));
        assert_eq!(bench.init(), Ok(owner(1002, 0)));
    }
}

#[test]
fn a_transaction_that_is_open_for_too_long_is_aborted() {
    let mut bench = Bench::new(2);
    let me = bench.init_as(None, 15_000).unwrap();
    bench.advance(Duration::from_secs(3600));
    assert_eq!(bench.state(), Empty, "none is open");
    bench.add(me, 2, 0).unwrap();
    bench.advance(Duration::from_secs(10));
    bench.add(me, 2, 1).unwrap();
    bench.advance(Duration::from_secs(5));
    assert_eq!(bench.state(), Ongoing);
    bench.advance(Duration::from_secs(11));
    assert_eq!(bench.state(), PrepareAbort, "counted from its begin");
    assert_eq!(bench.write_markers().partitions.len(), 2);
    assert_eq!(bench.end(me, 2, true), Err(ProducerFenced));
}

#[test]
fn an_id_that_nobody_uses_is_forgotten() {
    let week = Duration::from_secs(7 * 86_400);
    let mut bench = Bench::new(0);
    let me = bench.init().unwrap();
    bench.add(me, 0, 0).unwrap();
    bench.end(me, 0, true).unwrap();
    bench.advance(2 * week);
    assert_eq!(bench.state(), PrepareCommit, "markers are owed however long it takes");
    bench.write_markers();
    bench.advance(week - Duration::from_secs(1));
    assert_eq!(bench.txns.count(), 1);
    bench.advance(Duration::from_secs(3601));
    assert_eq!(bench.txns.count(), 0);
    assert_eq!(bench.add(me, 0, 0), Err(InvalidProducerIdMapping));
    assert_eq!(bench.init(), Ok(owner(1002, 0)));
}

/// Every state, a new leader in each: nothing that was prepared ends otherwise, or twice.
#[test]
fn a_new_leader_owes_the_markers_of_all_that_is_prepared() {
    for client in [0, 2] {
        let mut bench = Bench::new(client);
        bench.fail_over();
        let me = bench.init().unwrap();
        bench.fail_over();
        bench.add(me, client, 0).unwrap();
        bench.fail_over();
        assert_eq!((bench.state(), bench.owed.len()), (Ongoing, 0));
        bench.end(me, client, true).unwrap();
        let before = bench.owed.clone();
        bench.fail_over();
        let again: Vec<Markers> =
            before.into_iter().map(|owed| Markers { coordinator_epoch: 5, ..owed }).collect();
        assert_eq!(bench.owed, again);
        let written = bench.write_markers();
        bench.fail_over();
        assert_eq!((bench.state(), bench.owed.len()), (CompleteCommit, 0));
        bench.ask(TxnRequest::Written(ID.into(), written.at));
        assert_eq!(bench.log.len(), 4, "said twice it changes nothing");
    }
}

#[test]
fn brokers_are_told_whether_a_partition_is_in_the_open_transaction() {
    let mut bench = Bench::new(2);
    let me = bench.init().unwrap();
    let verify = |bench: &mut Bench, owner| {
        let partitions = vec![TopicPartition::new("t", 0), TopicPartition::new("t", 9)];
        let ask = VerifyPartitions { transactional_id: ID.into(), owner, partitions };
        match bench.ask(TxnRequest::Verify(ask)) {
            Some(TxnAnswer::Verify(found)) => {
                found.map(|found| found.into_iter().map(|(_, is_in)| is_in).collect::<Vec<_>>())
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(verify(&mut bench, me), Ok(vec![false, false]));
    bench.add(me, 2, 0).unwrap();
    assert_eq!(verify(&mut bench, me), Ok(vec![true, false]));
    assert_eq!(verify(&mut bench, me.bumped()), Err(ProducerFenced));
    assert_eq!(verify(&mut bench, owner(7, 0)), Err(InvalidProducerIdMapping));
    let next = bench.end(me, 2, true).unwrap().unwrap();
    assert_eq!(verify(&mut bench, next), Err(ConcurrentTransactions));
}

#[test]
fn transactions_are_listed_by_state_producer_and_age() {
    let mut bench = Bench::new(0);
    let me = bench.init().unwrap();
    bench.add(me, 0, 3).unwrap();
    bench.advance(Duration::from_secs(1));
    let listed = |bench: &mut Bench, states: &[TxnState], ids: &[i64], longer_than_ms| {
        let producer_ids = ids.iter().copied().map(ProducerId).collect();
        let filter =
            TxnFilter { states: states.to_vec(), producer_ids, longer_than_ms, pattern: None };
        match bench.ask(TxnRequest::List(filter)) {
            Some(TxnAnswer::List(listed)) => listed.len(),
            other => panic!("{other:?}"),
        }
    };
    #[rustfmt::skip]
    let table: [(&[TxnState], &[i64], i64, usize); 7] = [
        (&[],        &[],     -1,   1),
        (&[Ongoing], &[1001], -1,   1),
        (&[Empty],   &[],     -1,   0),
        (&[],        &[7],    -1,   0),
        (&[],        &[],     0,    1),
        (&[],        &[],     999,  1),
        (&[],        &[],     1000, 0),
    ];
    for (states, ids, longer_than_ms, count) in table {
        let got = listed(&mut bench, states, ids, longer_than_ms);
        assert_eq!(got, count, "{states:?} {ids:?} {longer_than_ms}");
    }
    let ask = |bench: &mut Bench, id: &str| match bench.ask(TxnRequest::Describe(id.into())) {
        Some(TxnAnswer::Describe(outcome)) => outcome,
        other => panic!("{other:?}"),
    };
    let described = ask(&mut bench, ID).unwrap();
    assert_eq!((described.owner, described.state, described.timeout_ms), (me, Ongoing, 60_000));
    assert_eq!((described.start_ms, described.partitions.len()), (bench::START_MS, 1));
    assert_eq!(ask(&mut bench, "other"), Err(TxnError::TransactionalIdNotFound));
}

#[test]
fn some_requests_are_wrong_whoever_is_asked() {
    let config = bench::config();
    let init = |id: &str, timeout_ms| {
        let (transactional_id, expected, fresh) = (id.into(), None, None);
        TxnRequest::Init(InitProducer { transactional_id, timeout_ms, expected, fresh })
    };
    for (timeout_ms, outcome) in [
        (0, Err(InvalidTransactionTimeout)),
        (1, Ok(())),
        (900_000, Ok(())),
        (900_001, Err(InvalidTransactionTimeout)),
    ] {
        assert_eq!(init(ID, timeout_ms).check(&config), outcome, "{timeout_ms}");
    }
    assert_eq!(init("", 0).check(&config), Err(TxnError::InvalidRequest));
    assert_eq!(TxnRequest::Describe("".into()).check(&config), Err(TxnError::InvalidRequest));
}

#[test]
fn what_fits_no_record_is_refused_and_changes_nothing() {
    let mut bench = Bench::new(2);
    let me = bench.init().unwrap();
    bench.add(me, 2, 0).unwrap();
    let id: TransactionalId = ID.into();
    let partitions = (0..100_000).map(|index| TopicPartition::new("t", index)).collect();
    let client = ClientVersion(2);
    let ask = AddPartitions { transactional_id: id, owner: me, partitions, client };
    let answer = bench.ask(TxnRequest::Add(ask));
    assert!(matches!(answer, Some(TxnAnswer::Add(Err(TxnError::TooLarge { .. })))), "{answer:?}");
    bench.end(me, 2, true).unwrap();
    assert_eq!(bench.write_markers().partitions.len(), 1);
}
