//! Behaviours of a log directory: whose it is, what a start and a stop cost, what each kind of
//! stop leaves.

use std::path::Path;
use std::sync::Arc;

use super::testing::{
    Disk, EPOCH, NOW, append, batch, by_producer, contents, fill, partition, row, small, topic_id,
};
use super::{
    CheckpointRow, Identity, LogConfig, LogDir, LogDirOptions, OperatorFault, StorageError,
};
use crate::common::{BrokerId, Proof, TopicPartition};
use crate::env::{FaultOn, Random};

fn refusal(disk: &Disk, cluster: &str, node: i32) -> OperatorFault {
    let cluster_id = Some(cluster.to_owned());
    let identity = Identity { cluster_id, node_id: BrokerId(node) };
    let options = LogDirOptions::default();
    match LogDir::open(&disk.files, &Random::seeded(1), &disk.path, &identity, &options) {
        Err(StorageError::Operator(fault)) => fault,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("opened"),
    }
}

#[test]
fn a_directory_of_another_or_in_use_is_refused_with_a_sentence() {
    let disk = Disk::new(small());
    let dir = disk.open().unwrap();
    assert_eq!(
        refusal(&disk, "cluster", 1).to_string(),
        "log directory `/data` is used by another process"
    );
    drop(dir);
    assert_eq!(
        refusal(&disk, "other", 1).to_string(),
        "log directory `/data` belongs to cluster `cluster`, not `other`"
    );
    assert_eq!(
        refusal(&disk, "cluster", 2).to_string(),
        "log directory `/data` belongs to node 1, not 2"
    );
    disk.files.write(&disk.path.join("meta.properties"), b"node.id=x\n").unwrap();
    assert_eq!(
        refusal(&disk, "cluster", 1).to_string(),
        "`/data/meta.properties`, line 1: the node id is not a number"
    );
}

#[test]
fn a_directory_with_foreign_files_is_not_taken() {
    let disk = Disk::new(small());
    disk.files.write(&disk.path.join("thesis.tex"), b"years of work").unwrap();
    let fault = refusal(&disk, "cluster", 1);
    assert_eq!(
        fault,
        OperatorFault::NotALogDirectory { dir: disk.path.clone(), found: "thesis.tex".into() }
    );
    disk.files.remove_file(&disk.path.join("thesis.tex")).unwrap();
    disk.files.create_dir_all(&disk.path.join("lost+found")).unwrap();
    disk.open().unwrap();
}

#[test]
fn identity_survives_restarts() {
    let disk = Disk::new(small());
    let fresh = Identity { cluster_id: None, node_id: BrokerId(1) };
    let open = || {
        let random = Random::seeded(5);
        LogDir::open(&disk.files, &random, &disk.path, &fresh, &LogDirOptions::default()).unwrap()
    };
    let dir = open();
    let (cluster, directory) = (dir.cluster_id().to_owned(), dir.directory_id());
    assert_eq!(cluster.len(), 22);
    drop(dir);
    disk.sim.crash(3);
    let dir = open();
    assert_eq!((dir.cluster_id(), dir.directory_id()), (&*cluster, directory));
}

#[test]
fn a_fresh_start_costs_two_fsyncs_and_a_warm_one_none() {
    let disk = Disk::new(LogConfig::default());
    let before = disk.sim.counts().syncs;
    let dir = disk.open().unwrap();
    disk.load(&dir, None);
    assert_eq!(disk.sim.counts().syncs - before, 2, "meta.properties, atomically");
    for number in 0..50 {
        let name = TopicPartition::new("t", number);
        dir.create_log(&name, topic_id(), disk.config.clone(), NOW).unwrap();
    }
    dir.sync_created().unwrap();
    dir.sync_created().unwrap();
    assert_eq!(disk.sim.counts().syncs - before, 3, "one for all partitions");
    let mut logs = disk.load(&dir, None).logs;
    for found in &mut logs[..10] {
        fill(&mut found.log, 100);
    }
    let stop = |dir: LogDir, logs: &mut Vec<super::LoadedLog>| {
        let plans: Vec<_> = logs.iter_mut().map(|found| found.log.close().unwrap()).collect();
        logs.iter_mut().zip(&plans).for_each(|(found, plan)| found.log.flushed(plan));
        let rows: Vec<_> =
            logs.iter().map(|found| found.log.checkpoint_row(found.partition.clone(), 0)).collect();
        dir.close_clean(&plans, &rows, 7).unwrap();
    };
    stop(dir, &mut logs);
    let before = disk.sim.counts().syncs;
    let dir = disk.open().unwrap();
    let mut loaded = disk.load(&dir, Some(7));
    assert!(loaded.clean);
    assert_eq!(disk.sim.counts().syncs, before, "a warm start");
    stop(dir, &mut loaded.logs);
    assert_eq!(disk.sim.counts().syncs - before, 2, "a stop with nothing to save");
}

#[test]
fn only_a_clean_mark_of_the_last_epoch_is_trusted() {
    #[rustfmt::skip]
    let table = [
        // last registered epoch  trusted
        (Some(7),                 true),
        (Some(8),                 false), // the mark's removal was lost in a crash
        (None,                    false),
    ];
    for (last, trusted) in table {
        let disk = Disk::new(small());
        let dir = disk.open().unwrap();
        let mut log = disk.create(&dir);
        fill(&mut log, 20);
        disk.stop(dir, log);
        let dir = disk.open().unwrap();
        let loaded = disk.load(&dir, last);
        assert_eq!((loaded.clean, loaded.logs[0].log.end_offset()), (trusted, 20), "{last:?}");
        assert_eq!(loaded.logs[0].high_watermark, 20);
        drop(dir);
        let again = disk.open().unwrap();
        assert!(!disk.load(&again, Some(7)).clean, "the mark serves once");
    }
}

#[test]
fn a_clean_start_reads_the_tail_only_and_scans_nothing() {
    let disk = Disk::new(LogConfig { segment_bytes: 100_000, ..LogConfig::default() });
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    for at in 0..2_000 {
        append(&mut log, &by_producer(1, 0, at, 1, false)).unwrap();
    }
    assert!(log.segment_count() > 1);
    let damaged = disk.path.join("orders-0/00000000000000000000.log");
    disk.stop(dir, log);
    let file = disk.files.open(&damaged, crate::env::OpenMode::ReadWrite).unwrap();
    file.write_all_at(&[&[0xff; 100]], 1_000).unwrap();
    let (_dir, mut log) = disk.reopen(Some(7));
    assert_eq!((log.end_offset(), log.durable_until()), (2_000, 2_000));
    // The producer came from the snapshot at the end.
    let retry =
        log.append(&by_producer(1, 0, 1_999, 1, false), Proof::Unneeded, EPOCH, NOW, None).unwrap();
    assert!(retry.duplicate && retry.base_offset == 1_999);
}

#[test]
fn a_retry_of_any_of_the_last_five_batches_is_known_after_a_restart() {
    for (how, rolls) in [("clean", 0), ("crash", 1), ("crash", 4)] {
        let disk = Disk::new(small());
        let dir = disk.open().unwrap();
        let mut log = disk.create(&dir);
        for at in 0..40 {
            if at >= 40 - rolls {
                log.roll(NOW).unwrap(); // those before it stand behind a snapshot
            }
            append(&mut log, &by_producer(1, 0, at, 1, false)).unwrap();
        }
        let (_dir, mut log) = end(&disk, how, dir, log);
        for at in 35..40 {
            let retry = log
                .append(&by_producer(1, 0, at, 1, false), Proof::Unneeded, EPOCH, NOW, None)
                .unwrap();
            assert!(retry.duplicate && retry.base_offset == i64::from(at), "{how}: {at}");
        }
    }
}

/// Ends the log by a clean stop, a kill, or a crash after a flush, and opens it again.
fn end(disk: &Disk, how: &str, dir: LogDir, mut log: super::Log) -> (LogDir, super::Log) {
    let last = match how {
        "clean" => {
            disk.stop(dir, log);
            Some(7)
        }
        "kill" => {
            drop((dir, log));
            disk.sim.kill();
            None
        }
        _ => {
            log.flush().unwrap();
            dir.write_checkpoints([row(&log)]).unwrap();
            drop((dir, log));
            disk.sim.crash(11);
            None
        }
    };
    disk.reopen(last)
}

#[test]
fn the_same_log_comes_back_after_a_clean_stop_a_kill_and_a_crash_after_a_flush() {
    for how in ["clean", "kill", "crash"] {
        let disk = Disk::new(small());
        let dir = disk.open().unwrap();
        let mut log = disk.create(&dir);
        for at in 0..40 {
            append(&mut log, &by_producer(1, 0, at, 1, false)).unwrap();
        }
        let (want, size_bytes) = (contents(&log, 0), log.size_bytes());
        let (epochs, times) = (log.epochs().clone(), log.max_timestamp().unwrap());
        let (_dir, mut log) = end(&disk, how, dir, log);
        assert_eq!((contents(&log, 0), log.size_bytes()), (want, size_bytes), "{how}");
        assert_eq!((log.epochs(), log.max_timestamp().unwrap()), (&epochs, times), "{how}");
        assert_eq!(append(&mut log, &by_producer(1, 0, 40, 1, false)).unwrap(), 40, "{how}");
    }
}

#[test]
fn indexes_come_back_equal_from_a_scan() {
    let disk = Disk::new(small());
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    fill(&mut log, 60);
    disk.stop(dir, log);
    let files = |disk: &Disk| {
        let dir = disk.path.join("orders-0");
        let names = disk.files.list(&dir).unwrap().into_iter().map(|entry| entry.name);
        let read = |name: String| (disk.files.read(&dir.join(&name)).unwrap(), name);
        names.map(read).collect::<Vec<_>>()
    };
    let want = files(&disk);
    for (_, name) in want.iter().filter(|(_, name)| name.ends_with("index")) {
        disk.files.write(&disk.path.join("orders-0").join(name), b"damaged").unwrap();
    }
    disk.files.remove_file(&disk.path.join("recovery-point-offset-checkpoint")).unwrap();
    let (dir, log) = disk.reopen(None);
    disk.stop(dir, log);
    assert_eq!(files(&disk), want);
}

#[test]
fn missing_or_damaged_small_files_are_made_anew() {
    for name in [
        "00000000000000000000.index",
        "00000000000000000000.timeindex",
        "leader-epoch-checkpoint",
        "00000000000000000030.snapshot",
    ] {
        for content in [None, Some(&b""[..]), Some(b"nonsense")] {
            let disk = Disk::new(small());
            let dir = disk.open().unwrap();
            let mut log = disk.create(&dir);
            for at in 0..30 {
                append(&mut log, &by_producer(1, 0, at, 1, false)).unwrap();
            }
            let want = contents(&log, 0);
            disk.stop(dir, log);
            let path = disk.path.join("orders-0").join(name);
            match content {
                Some(content) => disk.files.write(&path, content).unwrap(),
                None => disk.files.remove_file(&path).unwrap(),
            }
            let (_dir, log) = disk.reopen(Some(7));
            assert_eq!(contents(&log, 0), want, "{name}: {content:?}");
            assert_eq!(log.epoch_of(29), Some(EPOCH), "{name}: {content:?}");
            let producer = log.producers().iter().next().map(|(_, p)| p.last_sequence());
            assert_eq!(producer, Some(29), "{name}: {content:?}");
        }
    }
}

#[test]
fn what_is_no_partition_is_left_alone_and_deleted_logs_are_told() {
    let disk = Disk::new(small());
    let dir = disk.open().unwrap();
    for name in ["__ottla_metadata", "__cluster_metadata-0", "lost+found", "a-0.x-stray"] {
        disk.files.create_dir_all(&disk.path.join(name)).unwrap();
    }
    let log = disk.create(&dir);
    dir.delete_log(&partition(), &log).unwrap();
    drop(log);
    let loaded = disk.load(&dir, None);
    assert_eq!((loaded.logs.len(), loaded.deleted.len()), (0, 1));
    dir.remove(&loaded.deleted[0]).unwrap();
    assert_eq!(disk.load(&dir, None).deleted, []);
    let again = disk.create(&dir);
    assert_eq!(again.end_offset(), 0, "a topic made anew begins at 0");
}

#[test]
fn a_log_whose_topic_id_a_crash_took_is_removed_only_if_it_was_never_flushed() {
    #[rustfmt::skip]
    let table = [
        // flushed  partition.metadata         kept
        (false,     &b""[..],                  false),
        (false,     b"version: 0\ntopic_id: T", false),
        (false,     &[0; 43],                  false),
        (false,     &[b'?'; 43],               true), // not torn but damaged
        (true,      b"",                       true),
    ];
    for (flushed, metadata, kept) in table {
        let disk = Disk::new(small());
        let dir = disk.open().unwrap();
        let mut log = disk.create(&dir);
        fill(&mut log, 3);
        if flushed {
            log.flush().unwrap();
            dir.write_checkpoints([row(&log)]).unwrap();
        }
        disk.files.write(&disk.path.join("orders-0/partition.metadata"), metadata).unwrap();
        drop(log);
        let mut loaded = disk.load(&dir, None);
        let found = (loaded.logs.len(), loaded.deleted.len());
        assert_eq!(found, if kept { (1, 0) } else { (0, 1) }, "{flushed} {metadata:?}");
        if kept {
            assert_eq!(loaded.logs[0].topic_id, None);
            dir.set_topic_id(&mut loaded.logs[0].log, topic_id()).unwrap();
            assert_eq!(disk.load(&dir, None).logs[0].topic_id, Some(topic_id()));
        }
    }
}

#[test]
fn a_log_that_was_empty_at_a_clean_stop_keeps_its_name_from_its_first_flush_on() {
    let disk = Disk::new(small());
    let dir = disk.open().unwrap();
    let log = dir.create_log(&partition(), topic_id(), disk.config.clone(), NOW).unwrap();
    disk.stop(dir, log);
    let (dir, mut log) = disk.reopen(Some(7));
    fill(&mut log, 3);
    log.flush().unwrap();
    drop((dir, log));
    disk.sim.crash(0);
    let (_dir, log) = disk.reopen(Some(7));
    assert_eq!(log.end_offset(), 3);
}

#[test]
fn the_names_that_a_killed_start_left_are_durable_after_the_next() {
    let mut calls = 0;
    loop {
        let disk = Disk::new(small());
        disk.sim.lose_power(calls);
        let first = disk.open();
        if first.is_ok() {
            break;
        }
        disk.sim.kill();
        let id = disk.open().unwrap().directory_id();
        disk.sim.crash(calls);
        assert_eq!(disk.open().unwrap().directory_id(), id, "killed at call {calls}");
        calls += 1;
    }
    assert!(calls > 4, "{calls}");
}

/// Whoever makes a log syncs the directory that holds it later and elsewhere.
#[test]
fn the_first_flush_of_a_log_makes_its_name_durable() {
    let disk = Disk::new(small());
    let dir = disk.open().unwrap();
    let mut log = dir.create_log(&partition(), topic_id(), disk.config.clone(), NOW).unwrap();
    fill(&mut log, 3);
    log.flush().unwrap();
    drop((dir, log));
    disk.sim.crash(0);
    let (_dir, log) = disk.reopen(None);
    assert_eq!(log.end_offset(), 3);
}

/// The housekeeping, the cleaner and moves between directories write them when they come to it, and
/// so does who makes a log anew whose name is in them.
#[test]
fn checkpoints_may_be_written_by_several_at_once() {
    let disk = Disk::new(small());
    let dir = disk.open().unwrap();
    let log = disk.create(&dir);
    let together = std::sync::Barrier::new(3);
    let write = |from: i64| {
        together.wait();
        for at in from..from + 3_000 {
            let row = CheckpointRow { recovery_point: at, high_watermark: at, ..row(&log) };
            dir.write_checkpoints([row]).unwrap();
        }
    };
    let make_anew = || {
        together.wait();
        for _ in 0..3_000 {
            dir.delete_log(&partition(), &disk.create(&dir)).unwrap();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| write(0));
        scope.spawn(|| write(10_000));
        scope.spawn(make_anew);
    });
}

#[test]
fn a_log_does_not_inherit_the_checkpoints_of_a_deleted_one_of_its_name() {
    let disk = Disk::new(small());
    let dir = disk.open().unwrap();
    let mut old = disk.create(&dir);
    fill(&mut old, 30);
    old.flush().unwrap();
    old.advance_start(20).unwrap();
    dir.write_checkpoints([row(&old)]).unwrap();
    dir.delete_log(&partition(), &old).unwrap();
    let mut new = disk.create(&dir);
    fill(&mut new, 2);
    new.flush().unwrap();
    drop((dir, old, new));
    disk.sim.crash(0);
    let (_dir, log) = disk.reopen(None);
    assert_eq!((log.start_offset(), log.end_offset()), (0, 2));
}

#[test]
fn an_interrupted_cleaning_is_finished_or_undone() {
    let disk = Disk::new(LogConfig { compacted: true, ..small() });
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    fill(&mut log, 30);
    let bases: Vec<i64> = log.segments().iter().map(|segment| segment.base_offset).collect();
    disk.stop(dir, log);
    let at = |base: i64, suffix: &str| disk.path.join(format!("orders-0/{base:020}{suffix}"));
    // The first two segments were made into one that holds the first one's batches.
    let content = disk.files.read(&at(bases[0], ".log")).unwrap();
    let second = disk.files.read(&at(bases[1], ".log")).unwrap();
    let merged = [&content[..], &second[second.len() / 7..]].concat();
    disk.files.write(&at(bases[0], ".log.swap"), &merged).unwrap();
    disk.files.write(&at(bases[2], ".log.cleaned"), b"half of the next").unwrap();
    disk.files.write(&at(bases[2], ".index.deleted"), b"").unwrap();
    let (_dir, log) = disk.reopen(Some(7));
    let read: Vec<i64> = contents(&log, 0).into_iter().map(|(offset, _)| offset).collect();
    let want: Vec<i64> = (0..30).filter(|offset| *offset != bases[1]).collect();
    assert_eq!(read, want);
    for name in disk.files.list(Path::new("/data/orders-0")).unwrap() {
        assert!(!name.name.ends_with("swap") && !name.name.ends_with("cleaned"), "{}", name.name);
    }
}

#[test]
fn a_swap_that_had_not_begun_for_all_its_files_is_undone() {
    let disk = Disk::new(LogConfig { compacted: true, ..small() });
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    fill(&mut log, 30);
    let base = log.segments()[1].base_offset;
    disk.stop(dir, log);
    let at = |suffix: &str| disk.path.join(format!("orders-0/{base:020}{suffix}"));
    let content = disk.files.read(&at(".log")).unwrap();
    disk.files.write(&at(".log.swap"), &content[..content.len() / 7]).unwrap();
    disk.files.write(&at(".index.cleaned"), b"").unwrap();
    let (_dir, log) = disk.reopen(Some(7));
    let read: Vec<i64> = contents(&log, 0).into_iter().map(|(offset, _)| offset).collect();
    assert_eq!(read, (0..30).collect::<Vec<_>>());
    assert!(!disk.files.exists(&at(".log.swap")) && !disk.files.exists(&at(".index.cleaned")));
}

#[test]
fn a_segment_that_rolled_at_the_recovery_point_is_not_trusted_before_its_files_are_durable() {
    for seed in 0..64 {
        let disk = Disk::new(small());
        let dir = disk.open().unwrap();
        let mut log = disk.create(&dir);
        append(&mut log, &by_producer(1, 0, 0, 1, false)).unwrap();
        log.flush().unwrap();
        dir.write_checkpoints([row(&log)]).unwrap();
        log.roll(NOW).unwrap(); // exactly at what is durable: index and snapshot are not
        append(&mut log, &batch(&[(NOW, "x")])).unwrap();
        drop((dir, log));
        disk.sim.kill();
        let (dir, mut log) = disk.reopen(None);
        log.flush().unwrap();
        dir.write_checkpoints([row(&log)]).unwrap();
        log.advance_start(1).unwrap();
        assert!(!log.delete_segments_below(1).unwrap().is_empty());
        drop((dir, log));
        disk.sim.crash(seed);
        let (_dir, mut log) = disk.reopen(None);
        assert_eq!((log.end_offset(), contents(&log, 1).len()), (2, 1), "seed {seed}");
        let next = append(&mut log, &by_producer(1, 0, 1, 1, false)).unwrap();
        assert_eq!((next, log.producers().iter().count()), (2, 1), "seed {seed}");
    }
}

#[test]
fn a_log_that_lost_all_above_its_start_gives_no_offset_twice() {
    for seed in 0..64 {
        let disk = Disk::new(small());
        let dir = disk.open().unwrap();
        let mut log = disk.create(&dir);
        append(&mut log, &batch(&[(NOW, "durable")])).unwrap();
        log.flush().unwrap();
        fill(&mut log, 10);
        log.advance_start(11).unwrap();
        dir.write_checkpoints([row(&log)]).unwrap();
        drop((dir, log));
        disk.sim.crash(seed);
        let (_dir, mut log) = disk.reopen(None);
        assert_eq!((log.start_offset(), log.end_offset()), (11, 11), "seed {seed}");
        log.roll(NOW).unwrap();
        log.advance_start(11).unwrap();
        log.delete_segments_below(11).unwrap();
        assert_eq!(append(&mut log, &batch(&[(NOW, "next")])).unwrap(), 11);
    }
}

#[test]
fn a_changed_config_reaches_running_logs() {
    let disk = Disk::new(LogConfig::default());
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    fill(&mut log, 20);
    assert_eq!(log.segment_count(), 1);
    disk.config.store(Arc::new(small()));
    append(&mut log, &batch(&[(NOW, "x")])).unwrap();
    assert_eq!(log.segment_count(), 2);
}

/// The end of a sealed segment did not reach the disk, the next segment did. Before anything was
/// ever compacted that is no hole of compaction.
#[test]
fn a_hole_before_the_first_checkpoint_cuts_the_log_unless_a_cleaner_was_at_work() {
    for (cleaned, end) in [(false, 4), (true, 9)] {
        let disk = Disk::new(small());
        let dir = disk.open().unwrap();
        let mut log = disk.create(&dir);
        fill(&mut log, 5);
        let first = disk.path.join("orders-0/00000000000000000000.log");
        let size_bytes = disk.files.size_of(&first).unwrap();
        log.roll(NOW).unwrap();
        fill(&mut log, 4);
        if cleaned {
            dir.write_clean_offsets(&[(partition(), 2)].into()).unwrap();
        }
        drop((dir, log));
        disk.sim.kill();
        let bytes = disk.files.read(&first).unwrap();
        disk.files.write(&first, &bytes[..bytes.len() - size_bytes as usize / 5]).unwrap();
        let (_dir, log) = disk.reopen(None);
        assert_eq!(log.end_offset(), end, "a cleaner was at work: {cleaned}");
    }
}

/// The kernel takes pages that it could not write for written.
#[test]
fn what_a_failed_fsync_left_in_the_page_cache_is_on_the_disk_after_the_next_start() {
    let disk = Disk::new(small());
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    fill(&mut log, 20);
    disk.sim.fail(FaultOn::Data, 2, 5);
    log.flush().unwrap_err();
    dir.note_failure();
    drop((dir, log));
    disk.sim.kill();
    let (dir, mut log) = disk.reopen(None);
    assert_eq!(log.end_offset(), 20);
    fill(&mut log, 20);
    log.flush().unwrap();
    drop((dir, log));
    disk.sim.crash(1);
    assert_eq!(disk.reopen(None).1.end_offset(), 40);
}
