//! Behaviours of a log: appending, rolling, reading, searching by time, trimming.

use std::path::Path;

use super::testing::{
    Disk, EPOCH, NOW, append, batch, by_producer, contents, fill, marker, partition, row, small,
    whole,
};
use super::{ClientFault, Log, LogConfig, LogDir, StorageError};
use crate::common::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Proof};
use crate::env::FaultOn;
use crate::protocol::batch::BatchHeader;

#[test]
fn what_is_appended_is_read_back_over_many_segments() {
    let disk = Disk::new(small());
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    let mut want = Vec::new();
    for at in 0..50 {
        let value = format!("value {at}");
        assert_eq!(append(&mut log, &batch(&[(NOW, &value), (NOW, "x")])).unwrap(), 2 * at);
        want.extend([(2 * at, value), (2 * at + 1, "x".to_owned())]);
    }
    assert!(log.segment_count() > 5, "{}", log.segment_count());
    assert_eq!(contents(&log, 0), want);
    for from in 0..100 {
        assert_eq!(contents(&log, from), want[from as usize..], "from {from}");
    }
    assert_eq!(log.size_bytes() % 2, 0);
}

#[test]
fn a_read_is_bounded_as_kip_74_says() {
    let disk = Disk::new(LogConfig::default());
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    fill(&mut log, 5);
    let size = log.size_bytes() as usize / 5;
    #[rustfmt::skip]
    let table = [
        // from until max_bytes  min_one  read
        (0, 5, 10 * size,     false, 5 * size),
        (0, 5, 2 * size,      false, 2 * size),
        (0, 5, 2 * size + 7,  false, 2 * size + 7), // the last may be cut, as Kafka does
        (0, 5, size - 1,      false, 0),
        (0, 5, size - 1,      true,  size), // the first comes whole
        (0, 5, 0,             true,  size),
        (0, 3, 10 * size,     true,  3 * size), // not above the high watermark
        (3, 3, 10 * size,     true,  0),
        (4, 3, 10 * size,     true,  0),
        (5, 5, 10 * size,     true,  0),
    ];
    for (from, until, max_bytes, min_one, read) in table {
        let slices = log.read(from, until, max_bytes, min_one).unwrap();
        let row = (from, until, max_bytes, min_one);
        assert_eq!(slices.size_bytes(), read, "{row:?}");
        assert_eq!(slices.read().unwrap().len(), read, "{row:?}");
    }
    for asked in [-1, 6] {
        let fault = ClientFault::OutOfRange { asked, start: 0, end: 5 };
        assert!(matches!(log.read(asked, 5, 1, true), Err(StorageError::Client(f)) if f == fault));
    }
}

#[test]
fn the_header_is_patched_and_the_crc_stays_right() {
    let disk = Disk::new(LogConfig::default());
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    append(&mut log, &batch(&[(NOW, "a"), (NOW, "b")])).unwrap();
    let sent = batch(&[(5, "c")]);
    let appended = log.append(&sent, Proof::Unneeded, LeaderEpoch(4), NOW, Some(NOW + 9)).unwrap();
    assert_eq!((appended.base_offset, appended.log_append_time), (2, NOW + 9));
    let bytes = log.read(2, 3, 1, true).unwrap().read().unwrap();
    let header = BatchHeader::parse(&bytes).unwrap();
    assert_eq!((header.base_offset, header.leader_epoch), (2, LeaderEpoch(4)));
    assert_eq!((header.max_timestamp, header.attributes), (NOW + 9, 8));
    assert_eq!(header.crc, crate::protocol::batch::crc_of(&bytes));
    assert_eq!(log.epoch_of(1), Some(EPOCH));
    assert_eq!(log.epoch_of(2), Some(LeaderEpoch(4)));
    assert_eq!(log.epoch_end(EPOCH), Some((EPOCH, 2)));
}

#[test]
fn a_log_rolls_by_size_time_index_and_not_when_empty() {
    let wide = LogConfig { index_interval_bytes: 0, ..LogConfig::default() };
    let one = batch(&[(NOW, "x")]);
    let size = one.bytes.len() as u32;
    #[rustfmt::skip]
    let table = [
        // config, second batch at, segments after two and three batches
        (LogConfig { segment_bytes: 2 * size, ..wide.clone() },     NOW,     (1, 2)),
        (LogConfig { segment_bytes: 2 * size - 1, ..wide.clone() }, NOW,     (2, 3)),
        (LogConfig { segment_ms: 10, ..wide.clone() },              NOW + 10, (1, 1)),
        (LogConfig { segment_ms: 9, ..wide.clone() },               NOW + 10, (2, 2)),
        (LogConfig { segment_index_bytes: 8, ..wide.clone() },      NOW,     (2, 3)),
        (LogConfig { segment_ms: 0, ..wide },                       NOW - 5, (1, 1)),
    ];
    for (at, (config, second, want)) in table.into_iter().enumerate() {
        let disk = Disk::new(config);
        let dir = disk.open().unwrap();
        let mut log = disk.create(&dir);
        append(&mut log, &one).unwrap();
        append(&mut log, &batch(&[(second, "y")])).unwrap();
        let two = log.segment_count();
        append(&mut log, &batch(&[(second, "z")])).unwrap();
        assert_eq!((two, log.segment_count()), want, "row {at}");
        assert_eq!(contents(&log, 0).len(), 3, "row {at}");
    }
}

#[test]
fn a_log_rolls_where_offsets_no_longer_fit_the_index() {
    let disk = Disk::new(LogConfig::default());
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    append(&mut log, &batch(&[(NOW, "x")])).unwrap();
    // As a compacted log of a leader would be copied: few records, far apart.
    let mut far = batch(&[(NOW, "y")]);
    far.header.last_offset_delta = i32::MAX - 1;
    append(&mut log, &far).unwrap();
    assert_eq!((log.segment_count(), log.end_offset()), (1, 1 << 31), "the last that fits");
    append(&mut log, &batch(&[(NOW, "z")])).unwrap();
    assert_eq!((log.segment_count(), log.active_base_offset()), (2, 1 << 31));
}

#[test]
fn jitter_shortens_the_age_at_which_segments_roll_each_by_its_own() {
    let hour_ms = 3_600_000;
    let (segment_ms, segment_jitter_ms) = (2 * hour_ms, hour_ms);
    let disk = Disk::new(LogConfig { segment_ms, segment_jitter_ms, ..LogConfig::default() });
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    let mut ages = Vec::new();
    let mut first = 0;
    for minute in 0..2000 {
        let segments = log.segment_count();
        append(&mut log, &batch(&[(NOW + minute * 60_000, "x")])).unwrap();
        if log.segment_count() > segments {
            ages.push(minute - first);
            first = minute;
        }
    }
    assert!(ages.iter().all(|age| (60..=121).contains(age)), "minutes: {ages:?}");
    assert!(ages.iter().any(|age| *age < 80) && ages.iter().any(|age| *age > 100), "{ages:?}");
}

#[test]
fn a_batch_over_the_segment_size_is_refused() {
    let disk = Disk::new(LogConfig { segment_bytes: 70, ..LogConfig::default() });
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    let error = append(&mut log, &batch(&[(NOW, "too long a value")])).unwrap_err();
    assert!(matches!(error, StorageError::Client(ClientFault::OverSegment { .. })), "{error}");
    assert_eq!(log.end_offset(), 0);
}

#[test]
fn a_record_is_found_by_its_own_time() {
    let disk = Disk::new(LogConfig { segment_bytes: 250, index_interval_bytes: 0, ..small() });
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    // Times go back and forth, within batches too.
    for records in [
        [(100, "a"), (300, "b")],
        [(200, "c"), (250, "d")],
        [(500, "e"), (400, "f")],
        [(600, "g"), (600, "h")],
        [(550, "i"), (50, "j")],
    ] {
        append(&mut log, &batch(&records)).unwrap();
    }
    assert!(log.segment_count() > 1);
    #[rustfmt::skip]
    let table = [
        (0,   Some((100, 0))),
        (100, Some((100, 0))),
        (101, Some((300, 1))),
        (300, Some((300, 1))),
        (301, Some((500, 4))),
        (501, Some((600, 6))),
        (600, Some((600, 6))),
        (601, None),
    ];
    for (asked, want) in table {
        let found = log.offset_for_timestamp(asked, 10).unwrap();
        assert_eq!(found.map(|f| (f.timestamp, f.offset)), want, "at {asked}");
    }
    assert_eq!(log.offset_for_timestamp(501, 6).unwrap(), None, "not committed yet");
    assert_eq!(log.max_timestamp().unwrap().map(|f| (f.timestamp, f.offset)), Some((600, 6)));
    log.advance_start(7).unwrap();
    let found = log.offset_for_timestamp(100, 10).unwrap();
    assert_eq!(found.map(|f| (f.timestamp, f.offset)), Some((600, 7)), "not below the log start");
    let max = log.max_timestamp().unwrap().map(|f| (f.timestamp, f.offset));
    assert_eq!(max, Some((600, 6)), "the segment still has it");
}

#[test]
fn an_empty_log_has_no_record_at_any_time() {
    let disk = Disk::new(small());
    let dir = disk.open().unwrap();
    let log = disk.create(&dir);
    assert_eq!(log.offset_for_timestamp(0, 0).unwrap(), None);
    assert_eq!(log.max_timestamp().unwrap(), None);
    assert!(log.read(0, 0, 100, true).unwrap().is_empty());
}

#[test]
fn c024_the_log_start_moves_and_survives_a_restart() {
    let disk = Disk::new(small());
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    for at in 0..30 {
        log.append(
            &batch(&[(NOW, "0123456789")]),
            Proof::Unneeded,
            LeaderEpoch(at / 10),
            NOW,
            None,
        )
        .unwrap();
    }
    assert!(log.advance_start(16).unwrap());
    assert!(!log.advance_start(9).unwrap(), "it never goes back");
    assert!(matches!(log.advance_start(31), Err(StorageError::Client(_))));
    assert!(matches!(log.read(15, 30, 1, true), Err(StorageError::Client(_))));
    assert_eq!(contents(&log, 16).len(), 14);
    assert_eq!(log.epoch_of(16), Some(LeaderEpoch(1)), "that of the record");
    let before = log.segment_count();
    let deleted = log.delete_segments_below(16).unwrap();
    assert!(!deleted.is_empty() && log.segment_count() < before);
    assert_eq!((log.start_offset(), contents(&log, 16).len()), (16, 14));
    assert!(log.local_start_offset() == 16);
    disk.stop(dir, log);
    let (_dir, log) = disk.reopen(Some(7));
    assert_eq!((log.start_offset(), log.end_offset()), (16, 30));
    assert_eq!(log.epoch_of(16), Some(LeaderEpoch(1)));
}

#[test]
fn c001_a_retry_of_the_last_five_batches_gets_its_first_offset() {
    let disk = Disk::new(small());
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    for sequence in 0..6 {
        append(&mut log, &by_producer(9, 0, sequence, 1, false)).unwrap();
    }
    for sequence in [5, 3, 1] {
        let retry = by_producer(9, 0, sequence, 1, false);
        let appended = log.append(&retry, Proof::Unneeded, EPOCH, NOW, None).unwrap();
        assert!(appended.duplicate);
        assert_eq!((appended.base_offset, log.end_offset()), (i64::from(sequence), 6));
    }
    for (sequence, count) in [(0, 1), (4, 2), (7, 1)] {
        let error = append(&mut log, &by_producer(9, 0, sequence, count, false)).unwrap_err();
        let refused = matches!(error, StorageError::Client(ClientFault::OutOfOrderSequence { .. }));
        assert!(refused, "{sequence} × {count}: {error}");
    }
    assert_eq!(log.end_offset(), 6);
}

#[test]
fn an_aborted_transaction_is_listed_until_a_reader_is_past_it() {
    let disk = Disk::new(small());
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    append(&mut log, &by_producer(1, 0, 0, 2, true)).unwrap(); // 0, 1
    append(&mut log, &by_producer(2, 0, 0, 1, true)).unwrap(); // 2
    assert_eq!(log.first_unstable_offset(3), Some(0));
    log.append_marker(&marker(1, 0, false, 5), Some(3), 0, EPOCH, NOW).unwrap(); // 3
    assert_eq!(log.first_unstable_offset(3), Some(0), "the marker is not committed");
    assert_eq!(log.first_unstable_offset(4), Some(2));
    log.append_marker(&marker(2, 0, true, 5), Some(4), 0, EPOCH, NOW).unwrap(); // 4
    assert_eq!(log.first_unstable_offset(5), None);
    fill(&mut log, 20);
    let check = |log: &super::Log| {
        let ends = |from, until| -> Vec<Offset> {
            let found = log.aborted_transactions(from, until).unwrap();
            found.iter().map(|txn| txn.last_offset).collect()
        };
        assert_eq!(ends(0, 25), [3]);
        assert_eq!(ends(3, 25), [3]);
        assert_eq!(ends(4, 25), [0; 0]);
        assert_eq!(log.producers().get(ProducerId(1)).unwrap().coordinator_epoch, 5);
    };
    check(&log);
    drop((dir, log));
    disk.sim.kill();
    let (dir, log) = disk.reopen(None);
    check(&log);
    disk.stop(dir, log);
    check(&disk.reopen(Some(7)).1);
}

#[test]
fn a_journal_append_fits_the_end_or_is_refused() {
    let disk = Disk::new(small());
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    log.append_journal(&batch(&[(NOW, "a")]), 0, Proof::Unneeded, EPOCH, NOW).unwrap();
    let error =
        log.append_journal(&batch(&[(NOW, "b")]), 0, Proof::Unneeded, EPOCH, NOW).unwrap_err();
    assert!(matches!(error, StorageError::Moved { expected: 0, found: 1 }), "{error}");
    append(&mut log, &by_producer(1, 3, 0, 1, true)).unwrap();
    let fenced = log.append_marker(&marker(1, 2, true, 0), Some(2), 0, EPOCH, NOW).unwrap_err();
    let want = ClientFault::StaleEpoch {
        producer_id: ProducerId(1),
        sent: ProducerEpoch(2),
        current: ProducerEpoch(3),
    };
    assert!(matches!(fenced, StorageError::Client(fault) if fault == want), "{fenced}");
    // A coordinator writes for a producer without sequences.
    log.append_journal(&by_producer(1, 3, -1, 1, true), 2, Proof::Unneeded, EPOCH, NOW).unwrap();
}

#[test]
fn a_failed_write_leaves_nothing_and_the_next_one_succeeds() {
    let disk = Disk::new(small());
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    append(&mut log, &by_producer(1, 0, 0, 1, false)).unwrap();
    for (errno, full) in [(28, true), (5, false)] {
        disk.sim.fail(FaultOn::Write, 0, errno);
        match append(&mut log, &by_producer(1, 0, 1, 1, false)) {
            Err(StorageError::Disk(error)) => assert_eq!(error.is_full(), full, "{error}"),
            other => panic!("{other:?}"),
        }
        assert_eq!((log.end_offset(), contents(&log, 0).len()), (1, 1));
    }
    assert_eq!(append(&mut log, &by_producer(1, 0, 1, 1, false)).unwrap(), 1);
    drop((dir, log));
    disk.sim.kill();
    assert_eq!(contents(&disk.reopen(None).1, 0).len(), 2);
}

#[test]
fn a_failed_roll_leaves_the_log_as_it_was() {
    // Each file operation of a roll fails once.
    for (on, spare) in [
        (FaultOn::Write, 0),
        (FaultOn::Write, 1),
        (FaultOn::Write, 2),
        (FaultOn::Write, 3),
        (FaultOn::Name, 0),
        (FaultOn::Name, 1),
        (FaultOn::Name, 2),
        (FaultOn::Name, 3),
    ] {
        let disk = Disk::new(small());
        let dir = disk.open().unwrap();
        let mut log = disk.create(&dir);
        fill(&mut log, 4);
        disk.sim.fail(on, spare, 28);
        let failed = log.roll(NOW).is_err();
        assert!(failed, "{on:?} {spare} is not part of a roll");
        assert_eq!((log.segment_count(), log.end_offset()), (1, 4));
        log.roll(NOW).unwrap();
        append(&mut log, &batch(&[(NOW, "next")])).unwrap();
        assert_eq!(contents(&log, 0).len(), 5);
        disk.stop(dir, log);
        assert_eq!(contents(&disk.reopen(Some(7)).1, 0).len(), 5);
    }
}

#[test]
fn truncation_takes_batches_producers_and_epochs_back() {
    for to in 0..30 {
        let disk = Disk::new(small());
        let dir = disk.open().unwrap();
        let mut log = disk.create(&dir);
        for at in 0..30 {
            let sent = by_producer(1, 0, at, 1, false);
            log.append(&sent, Proof::Unneeded, LeaderEpoch(at / 10), NOW + i64::from(at), None)
                .unwrap();
        }
        assert!(log.truncate_to(to, NOW).unwrap());
        assert!(!log.truncate_to(to, NOW).unwrap());
        assert_eq!((log.end_offset(), contents(&log, 0).len() as i64), (to, to));
        let latest = log.epochs().latest();
        let want = (to > 0).then(|| LeaderEpoch((to as i32 - 1) / 10));
        assert_eq!(latest, want, "to {to}");
        let next = log.append(
            &by_producer(1, 0, to as i32, 1, false),
            Proof::Unneeded,
            LeaderEpoch(9),
            NOW,
            None,
        );
        assert_eq!(next.unwrap().base_offset, to);
        disk.stop(dir, log);
        assert_eq!(contents(&disk.reopen(Some(7)).1, 0).len() as i64, to + 1);
    }
}

#[test]
fn a_batch_that_straddles_the_cut_goes_whole() {
    let disk = Disk::new(small());
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    append(&mut log, &batch(&[(NOW, "a"), (NOW, "b")])).unwrap();
    append(&mut log, &batch(&[(NOW, "c"), (NOW, "d"), (NOW, "e")])).unwrap();
    log.truncate_to(3, NOW).unwrap();
    assert_eq!(log.end_offset(), 2);
    log.truncate_fully(100, NOW).unwrap();
    assert_eq!((log.start_offset(), log.end_offset()), (100, 100));
    assert_eq!(append(&mut log, &batch(&[(NOW, "f")])).unwrap(), 100);
}

#[test]
fn readers_go_on_while_the_log_rolls_deletes_and_is_renamed() {
    let disk = Disk::new(small());
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    fill(&mut log, 10);
    let plan = log.plan_read(0, 10).unwrap();
    let slices = plan.locate(200, true).unwrap();
    let held = slices.in_file().unwrap();
    fill(&mut log, 10);
    assert_eq!(whole(&slices.read().unwrap()).len(), 2);
    let deleted = dir.delete_log(&super::testing::partition(), &log).unwrap();
    assert_eq!(whole(&plan.locate(200, true).unwrap().read().unwrap()).len(), 2);
    dir.remove(&deleted).unwrap();
    let mut byte = [0];
    held.file.read_exact_at(&mut byte, held.position).unwrap();
    drop(log);
    assert!(disk.load(&dir, None).logs.is_empty());
}

#[test]
fn a_reader_of_a_log_that_is_gone_hears_that_it_was_deleted() {
    let disk = Disk::new(small());
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    fill(&mut log, 30);
    let (early, late) = (log.plan_read(0, 30).unwrap(), log.plan_read(0, 30).unwrap());
    let held = early.locate(200, true).unwrap();
    log.sealed.iter().for_each(|segment| segment.file.close());
    let deleted = dir.delete_log(&super::testing::partition(), &log).unwrap();
    dir.remove(&deleted).unwrap();
    let told = late.locate(200, true).unwrap_err();
    assert!(told.is_deleted(), "{told}");
    assert_eq!(whole(&held.read().unwrap()).len(), 2, "what is open can be read");
}

#[test]
fn a_reader_of_what_was_cut_off_hears_that_it_was_deleted() {
    let disk = Disk::new(small());
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    fill(&mut log, 30);
    let plans = [log.plan_read(0, 30).unwrap(), log.plan_read(20, 30).unwrap()];
    let held = plans[1].locate(200, true).unwrap();
    log.sealed.iter().for_each(|segment| segment.file.close());
    log.truncate_to(10, NOW).unwrap();
    assert!(plans[1].locate(200, true).unwrap_err().is_deleted());
    assert!(!whole(&held.read().unwrap()).is_empty(), "what is open can be read");
    log.sealed.iter().for_each(|segment| segment.file.close());
    log.truncate_fully(100, NOW).unwrap();
    assert!(plans[0].locate(200, true).unwrap_err().is_deleted());
    let left = disk.files.list(Path::new("/data/orders-0")).unwrap();
    assert!(left.iter().all(|entry| !entry.name.ends_with(".deleted")), "{left:?}");
}

#[test]
fn deleted_segments_wait_under_other_names_and_are_read_until_they_go() {
    let disk = Disk::new(small());
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    fill(&mut log, 30);
    let names = |end: &str| {
        let all = disk.files.list(Path::new("/data/orders-0")).unwrap();
        all.into_iter().filter(|entry| entry.name.ends_with(end)).count()
    };
    let (early, late) = (log.plan_read(0, 30).unwrap(), log.plan_read(0, 30).unwrap());
    let (segments, files) = (log.segment_count(), names(".log"));
    let deleted = log.delete_segments_below(log.active_base_offset()).unwrap();
    assert_eq!((log.segment_count(), names(".log")), (1, 1));
    assert_eq!((names(".log.deleted"), segments), (files - 1, files));
    assert_eq!(names(".index.deleted"), files - 1);
    assert!(!whole(&early.locate(200, true).unwrap().read().unwrap()).is_empty());
    // The cache closes what is not used; its files can then no longer be opened.
    fill(&mut log, 60);
    (0..60).for_each(|at| drop(log.read(log.start_offset() + at, 200, 1, true)));
    deleted.remove().unwrap();
    assert_eq!(names(".deleted"), 0);
    assert!(late.locate(200, true).is_err_and(|error| error.is_deleted()));
    deleted.remove().unwrap();
    disk.stop(dir, log);
    let (_dir, log) = disk.reopen(Some(7));
    assert!(log.start_offset() > 0);
}

#[test]
fn the_recovery_point_moves_only_by_a_flush() {
    let disk = Disk::new(small());
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    fill(&mut log, 10);
    assert_eq!((log.durable_until(), log.recovery_point()), (0, 0));
    let rolled = log.plan_flush(log.active_base_offset()).unwrap();
    rolled.run(&disk.files).unwrap();
    log.flushed(&rolled);
    assert_eq!(log.durable_until(), log.active_base_offset());
    log.flush().unwrap();
    assert_eq!((log.durable_until(), log.recovery_point()), (10, 9));
    let syncs = disk.sim.counts().syncs;
    log.flush().unwrap();
    assert_eq!(disk.sim.counts().syncs, syncs, "nothing new, no fsync");
    append(&mut log, &batch(&[(NOW, "x")])).unwrap();
    log.flush().unwrap();
    assert_eq!(disk.sim.counts().syncs, syncs + 1, "one fsync for the data alone");
    dir.write_checkpoints([row(&log)]).unwrap();
}

#[test]
fn a_failed_fsync_is_told_with_its_file_and_moves_nothing() {
    for spare in 0..5 {
        let disk = Disk::new(small());
        let dir = disk.open().unwrap();
        let mut log = disk.create(&dir);
        fill(&mut log, 20);
        disk.sim.fail(FaultOn::Sync, spare, 5);
        let error = log.flush().unwrap_err();
        assert!(error.path.starts_with("/data/orders-0") && !error.is_full(), "{error}");
        assert_eq!((log.durable_until(), log.recovery_point()), (0, 0));
        assert_eq!(log.end_offset(), 20);
    }
}

/// What happens to a log between a plan and its run.
type Meanwhile = (&'static str, fn(&LogDir, &mut Log));

#[test]
fn a_flush_goes_on_past_what_is_gone_when_it_runs() {
    let table: [Meanwhile; 4] = [
        ("nothing", |_, _| {}),
        ("retention", |_, log| {
            let gone = log.delete_segments_below(log.end_offset()).unwrap();
            gone.remove().unwrap();
        }),
        ("the log is deleted", |dir, log| drop(dir.delete_log(&partition(), log).unwrap())),
        ("and its files are removed", |dir, log| {
            dir.remove(&dir.delete_log(&partition(), log).unwrap()).unwrap();
        }),
    ];
    for (what, meanwhile) in table {
        let disk = Disk::new(small());
        let dir = disk.open().unwrap();
        let mut log = disk.create(&dir);
        for at in 0..30 {
            append(&mut log, &by_producer(1, 0, at, 1, false)).unwrap();
        }
        assert!(log.segment_count() > 3);
        let plan = log.plan_flush(log.end_offset()).unwrap();
        meanwhile(&dir, &mut log);
        plan.run(&disk.files).unwrap_or_else(|error| panic!("{what}: {error}"));
        log.flushed(&plan);
    }
}
