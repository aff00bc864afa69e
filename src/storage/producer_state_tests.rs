//! Behaviours of the producer state: KIP-98's rules as tables.

use super::*;
use crate::protocol::batch::{BatchBuilder, Producer as Writer};

const DAY_MS: i64 = 24 * 3_600_000;

/// A header as it stands in the log: `count` records from `base_offset` on.
fn header(
    base: Offset,
    (id, epoch): (i64, i16),
    sequence: i32,
    count: i32,
    txn: bool,
) -> BatchHeader {
    let writer = Writer {
        id: ProducerId(id),
        epoch: ProducerEpoch(epoch),
        base_sequence: sequence,
        transactional: txn,
    };
    let mut builder = BatchBuilder::new(base).producer(writer);
    (0..count).for_each(|_| builder.push(1_000 + base, None, Some(b"v"), &[]));
    builder.build_checked().header
}

fn ends(
    base: Offset,
    (id, epoch): (i64, i16),
    commit: bool,
) -> (BatchHeader, Option<EndTxnMarker>) {
    let marker = EndTxnMarker { commit, coordinator_epoch: 3 };
    let (id, epoch) = (ProducerId(id), ProducerEpoch(epoch));
    let built = BatchBuilder::marker(base, id, epoch, marker, 1_000 + base).build_checked();
    (built.header, Some(marker))
}

/// Producer 1, epoch 5, wrote sequences up to `last` in one batch.
fn known(last: i32) -> Producers {
    let mut producers = Producers::default();
    producers.apply(&header(0, (1, 5), last, 1, false), None);
    producers
}

fn said(outcome: Result<(), ClientFault>) -> &'static str {
    match outcome {
        Ok(()) => "ok",
        Err(ClientFault::OutOfOrderSequence { .. }) => "order",
        Err(ClientFault::StaleEpoch { .. }) => "epoch",
        Err(ClientFault::InsideTransaction { .. }) => "inside",
        Err(ClientFault::StaleCoordinator { .. }) => "coordinator",
        Err(_) => "other",
    }
}

#[test]
fn sequences_follow_and_epochs_begin_at_zero() {
    #[rustfmt::skip]
    let table = [
        // last known  producer, epoch  sequence   client     coordinator
        (9,            (1, 5),          10,        "ok",      "ok"),
        (9,            (1, 5),          11,        "order",   "ok"),
        (9,            (1, 5),          9,         "order",   "ok"), // a retry is found before
        (9,            (1, 5),          0,         "order",   "ok"),
        (i32::MAX,     (1, 5),          0,         "ok",      "ok"), // it wraps
        (i32::MAX,     (1, 5),          1,         "order",   "ok"),
        (9,            (1, 6),          0,         "ok",      "ok"),
        (9,            (1, 6),          1,         "order",   "ok"), // C003
        (9,            (1, 4),          10,        "epoch",   "epoch"),
        (9,            (2, 0),          7,         "ok",      "ok"), // C003: no state, any sequence
    ];
    for (last, who, sequence, client, coordinator) in table {
        let producers = known(last);
        let sent = header(1, who, sequence, 1, false);
        let row = (last, who, sequence);
        assert_eq!(
            said(producers.check(&sent, Origin::Client, Proof::Unneeded)),
            client,
            "{row:?}"
        );
        assert_eq!(
            said(producers.check(&sent, Origin::Coordinator, Proof::Unneeded)),
            coordinator,
            "{row:?}"
        );
    }
}

#[test]
fn a_retry_is_the_same_range_under_the_same_epoch() {
    let mut producers = Producers::default();
    // Batches of three: 0..=2, 3..=5, ... of which the last five are kept.
    for at in 0..7 {
        producers.apply(&header(i64::from(at) * 3, (1, 5), at * 3, 3, false), None);
    }
    #[rustfmt::skip]
    let table = [
        // epoch sequence count  first offset of the original
        (5,      18,      3,     Some(18)),
        (5,      6,       3,     Some(6)),
        (5,      3,       3,     None), // the sixth back
        (5,      18,      2,     None),
        (5,      19,      3,     None),
        (6,      18,      3,     None),
        (4,      18,      3,     None),
    ];
    for (epoch, sequence, count, want) in table {
        let sent = header(0, (1, epoch), sequence, count, false);
        let found = producers.retry_of(&sent).map(|batch| batch.base_offset());
        assert_eq!(found, want, "{epoch} {sequence} {count}");
    }
}

#[test]
fn a_retry_over_the_wrap_of_sequences_is_found() {
    let mut producers = Producers::default();
    let sent = header(0, (1, 0), i32::MAX - 1, 4, false); // MAX-1, MAX, 0, 1
    producers.apply(&sent, None);
    assert!(producers.retry_of(&sent).is_some());
    assert_eq!(
        said(producers.check(&header(4, (1, 0), 2, 1, false), Origin::Client, Proof::Unneeded)),
        "ok"
    );
}

#[test]
fn a_transaction_is_open_until_its_marker_is_committed() {
    let mut producers = Producers::default();
    producers.apply(&header(0, (1, 0), 0, 2, true), None);
    producers.apply(&header(2, (2, 0), 0, 1, true), None);
    producers.apply(&header(3, (1, 0), 2, 1, true), None);
    let plain = header(4, (1, 0), 3, 1, false);
    assert_eq!(said(producers.check(&plain, Origin::Client, Proof::Unneeded)), "inside");
    assert_eq!(producers.first_unstable_offset(4), Some(0));
    let (end, marker) = ends(4, (1, 0), false);
    let (ended, stable) = producers.apply(&end, marker).expect("one was open");
    assert_eq!((ended.first_offset, ended.last_offset, ended.committed), (0, 4, false));
    assert_eq!(stable, 2, "the other one is still open");
    assert_eq!(producers.first_unstable_offset(4), Some(0), "the marker is not committed");
    assert_eq!(producers.first_unstable_offset(5), Some(2));
    let (end, marker) = ends(5, (2, 0), true);
    assert_eq!(producers.apply(&end, marker).expect("one was open").1, 6);
    assert_eq!(producers.first_unstable_offset(6), None);
    let (end, marker) = ends(6, (2, 0), true);
    assert_eq!(producers.apply(&end, marker), None, "none was open");
}

#[test]
fn a_marker_with_a_newer_epoch_makes_sequences_begin_anew() {
    let mut producers = known(9);
    let (end, marker) = ends(1, (1, 6), true);
    producers.apply(&end, marker);
    let next = |sequence| header(2, (1, 6), sequence, 1, true);
    assert_eq!(said(producers.check(&next(0), Origin::Client, Proof::Unneeded)), "ok");
    assert_eq!(said(producers.check(&next(10), Origin::Client, Proof::Unneeded)), "order");
    let (old, marker) = ends(2, (1, 5), true);
    assert_eq!(said(producers.check_marker(&old, marker.expect("one"), 0)), "epoch");
    let late = EndTxnMarker { commit: true, coordinator_epoch: 2 };
    assert_eq!(said(producers.check_marker(&end, late, 0)), "coordinator");
}

#[test]
fn silent_producers_expire_unless_a_transaction_is_open() {
    let mut producers = Producers::default();
    producers.apply(&header(0, (1, 0), 0, 1, false), None); // at 1000
    producers.apply(&header(1, (2, 0), 0, 1, true), None); // at 1001
    producers.apply(&header(2, (3, 0), 0, 1, false), None); // at 1002
    producers.expire(1_001 + DAY_MS, DAY_MS);
    let left: Vec<i64> = producers.iter().map(|(id, _)| id.0).collect();
    assert_eq!(left, [2, 3]);
}

#[test]
fn a_verification_holds_until_the_transaction_begins() {
    let mut producers = Producers::default();
    let new = |guard, sequence| Verification {
        guard,
        epoch: ProducerEpoch(0),
        lowest_sequence: sequence,
        started_ms: 0,
        bumps_epoch: true,
    };
    assert_eq!(producers.verify(ProducerId(1), new(11, 5)), 11);
    assert_eq!(producers.verify(ProducerId(1), new(12, 0)), 11, "the first guard is shared");
    let first = header(0, (1, 0), 0, 1, true);
    assert_eq!(
        said(producers.check(&header(0, (1, 0), 1, 1, true), Origin::Client, Proof::Unneeded)),
        "order"
    );
    assert_eq!(said(producers.check(&first, Origin::Client, Proof::Unneeded)), "ok");
    producers.apply(&first, None);
    assert_eq!(producers.verifying.get(&ProducerId(1)), None);
}
