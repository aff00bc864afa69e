//! Behaviours of compaction over one log: what stays, under which headers, and what a crash at any
//! step of a swap leaves.

use std::collections::BTreeMap;

use super::*;
use crate::common::{ProducerEpoch, ProducerId, Proof};
use crate::env::FaultOn;
use crate::protocol::batch::{
    BatchBuilder, BatchHeader, CheckedBatch, Codec, Compression, Producer, Record, batches,
};
use crate::storage::testing::{Disk, EPOCH, NOW, append, contents, marker, row};
use crate::storage::{DeletedSegments, Log, LogConfig, LogDir};

pub(super) const DAY_MS: i64 = 24 * 3_600_000;

/// Segments of some batches, compacted.
pub(super) fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 600,
        index_interval_bytes: 100,
        compacted: true,
        ..LogConfig::default()
    }
}

pub(super) struct Sent<'a> {
    pub records: &'a [(&'a str, Option<&'a str>)],
    pub producer: Option<Producer>,
    pub codec: Compression,
}

impl Sent<'_> {
    pub fn batch(&self) -> CheckedBatch {
        let mut builder = BatchBuilder::new(0).codec(Codec::of(self.codec));
        if let Some(producer) = self.producer {
            builder = builder.producer(producer);
        }
        for (at, (key, value)) in self.records.iter().enumerate() {
            let value = value.map(str::as_bytes);
            builder.push(NOW + at as i64, Some(key.as_bytes()), value, &[]);
        }
        builder.build_checked()
    }
}

pub(super) fn plain(records: &[(&str, Option<&str>)]) -> CheckedBatch {
    Sent { records, producer: None, codec: Compression::None }.batch()
}

fn by(
    id: i64,
    sequence: i32,
    transactional: bool,
    records: &[(&str, Option<&str>)],
) -> CheckedBatch {
    let (id, epoch) = (ProducerId(id), ProducerEpoch(0));
    let producer = Producer { id, epoch, base_sequence: sequence, transactional };
    Sent { records, producer: Some(producer), codec: Compression::None }.batch()
}

/// Lets every pass go on, and swaps in.
pub(super) struct Owns<'a> {
    pub log: &'a mut Log,
    pub old: Vec<DeletedSegments>,
    /// Calls of `goes_on` that still say yes.
    pub spare: u64,
}

impl CleanOwner for Owns<'_> {
    fn goes_on(&mut self, _: u64) -> bool {
        self.spare = self.spare.saturating_sub(1);
        self.spare > 0
    }

    fn swap_in(&mut self, cleaned: &Cleaned) -> Result<bool, DiskError> {
        let old = self.log.swap_in(cleaned)?;
        Ok(old.map(|old| self.old.push(old)).is_some())
    }
}

pub(super) fn limits(now_ms: i64) -> CleanLimits {
    CleanLimits {
        map_bytes: 1 << 20,
        load_factor: 0.9,
        io_bytes: 300,
        delete_retention_ms: DAY_MS,
        now_ms,
    }
}

pub(super) fn bounds(log: &mut Log, clean_until: Option<Offset>) -> CleanBounds {
    let end = log.end_offset();
    CleanBounds {
        clean_until,
        last_stable_offset: log.first_unstable_offset(end).unwrap_or(end),
        min_lag_ms: 0,
        max_lag_ms: i64::MAX,
        now_ms: NOW,
    }
}

/// One pass from `from` on, flushed before as the flusher does; what was set aside is removed.
pub(super) fn pass_with(
    log: &mut Log,
    from: Option<Offset>,
    limits: &CleanLimits,
) -> Result<CleanStats, CleanError> {
    log.flush()?;
    let bounds = bounds(log, from);
    let view = log.clean_view();
    let cleanable = view.measure(&bounds)?;
    let order = log.clean_order();
    let mut owner = Owns { log, old: Vec::new(), spare: u64::MAX };
    let stats = clean(&view, &order, &cleanable, limits, &mut owner)?;
    owner.old.iter().try_for_each(DeletedSegments::remove)?;
    Ok(stats)
}

pub(super) fn pass(log: &mut Log, from: Option<Offset>, now_ms: i64) -> CleanStats {
    pass_with(log, from, &limits(now_ms)).unwrap()
}

/// All batches of the log as a reader gets them.
pub(super) fn all_batches(log: &Log) -> Vec<(BatchHeader, Vec<Record>)> {
    let (mut found, mut next) = (Vec::new(), log.start_offset());
    while next < log.end_offset() {
        let bytes = log.read(next, log.end_offset(), 1 << 20, true).unwrap().read().unwrap();
        for batch in batches(&bytes) {
            let (header, batch) = batch.unwrap();
            assert_eq!(header.crc, crate::protocol::batch::crc_of(&batch));
            next = header.next_offset();
            found.push((header, records(&batch).map(Result::unwrap).collect()));
        }
        assert!(!bytes.is_empty(), "nothing at {next}");
    }
    found
}

/// Offset, key, value of each record.
pub(super) fn kept(log: &Log) -> Vec<(Offset, String, Option<String>)> {
    let text = |bytes: &bytes::Bytes| String::from_utf8_lossy(bytes).into_owned();
    let row = |record: Record| {
        (record.offset, text(&record.key.unwrap()), record.value.as_ref().map(text))
    };
    all_batches(log)
        .into_iter()
        .filter(|(header, _)| !header.is_control())
        .flat_map(|(_, records)| records)
        .map(row)
        .collect()
}

fn made() -> (Disk, LogDir, Log) {
    let disk = Disk::new(config());
    let dir = disk.open().unwrap();
    let log = disk.create(&dir);
    (disk, dir, log)
}

fn keys(log: &Log) -> Vec<(Offset, String)> {
    kept(log).into_iter().map(|(offset, key, _)| (offset, key)).collect()
}

/// `count` batches of one record, keys in turn `0..of`, and a fresh active segment.
fn fill(log: &mut Log, count: usize, of: usize) {
    for at in 0..count {
        let (key, value) = (format!("k{}", at % of), format!("value {at}"));
        append(log, &plain(&[(&key, Some(&value))])).unwrap();
    }
    log.roll(NOW).unwrap();
}

#[test]
fn the_last_value_of_each_key_stays_under_its_offset_and_the_active_segment_is_left_alone() {
    let (_disk, _dir, mut log) = made();
    fill(&mut log, 40, 4);
    append(&mut log, &plain(&[("k0", Some("active"))])).unwrap();
    let before = log.segment_count();
    let stats = pass(&mut log, None, NOW);
    assert_eq!(stats.clean_until, 40);
    let want: Vec<_> = (36..40).map(|at| (at, format!("k{}", at - 36))).collect();
    assert_eq!(keys(&log)[..4], want, "the last of each");
    assert_eq!(kept(&log)[4], (40, "k0".to_owned(), Some("active".to_owned())));
    assert_eq!(log.segment_count(), before, "by the sizes that they had");
    pass(&mut log, None, NOW);
    assert!(log.segment_count() < before, "merged");
    assert_eq!((log.start_offset(), log.end_offset()), (0, 41));
    // Every offset can be asked for, also one in a hole.
    for from in 0..41 {
        let first = contents(&log, from).first().unwrap().0;
        assert_eq!(first, from.max(36), "from {from}");
    }
}

#[test]
fn a_record_is_found_by_its_time_on_both_sides_of_a_hole() {
    let (_disk, _dir, mut log) = made();
    for at in 0..40 {
        let mut builder = BatchBuilder::new(0);
        let key = if at % 10 == 0 { format!("once {at}") } else { "again".to_owned() };
        builder.push(NOW + at * 10, Some(key.as_bytes()), Some(b"0123456789"), &[]);
        append(&mut log, &builder.build_checked()).unwrap();
    }
    log.roll(NOW).unwrap();
    pass(&mut log, None, NOW);
    let left: Vec<Offset> = keys(&log).iter().map(|(offset, _)| *offset).collect();
    assert_eq!(left, [0, 10, 20, 30, 39]);
    for asked in 0..40 {
        let found = log.offset_for_timestamp(NOW + asked * 10, log.end_offset()).unwrap().unwrap();
        let want = left.iter().copied().find(|offset| *offset >= asked).unwrap();
        assert_eq!((found.offset, found.timestamp), (want, NOW + want * 10), "at {asked}");
    }
    assert_eq!(log.max_timestamp().unwrap().map(|found| found.offset), Some(39));
}

#[test]
fn what_is_not_stable_flushed_or_old_enough_is_not_cleaned() {
    let (_disk, _dir, mut log) = made();
    fill(&mut log, 40, 4);
    let flushed = log.active_base_offset();
    let measure = |log: &Log, bounds: CleanBounds| log.clean_view().measure(&bounds).unwrap();
    let before = bounds(&mut log, None);
    let unflushed = measure(&log, before);
    assert_eq!((unflushed.until, unflushed.awaits_flush), (0, true));
    log.flush().unwrap();
    let base = bounds(&mut log, None);
    let segments: Vec<Offset> = log.segments().iter().map(|segment| segment.base_offset).collect();
    let third = segments[2];
    #[rustfmt::skip]
    let table = [
        ("all but the active",       base,                                                          flushed),
        ("inside the third segment", CleanBounds { last_stable_offset: third + 1, ..base },         third),
        ("at the third segment",     CleanBounds { last_stable_offset: third, ..base },             third),
        ("all younger than the lag", CleanBounds { min_lag_ms: 1_000, ..base },                     0),
        ("all older than the lag",   CleanBounds { min_lag_ms: 1_000, now_ms: NOW + 1_000, ..base }, flushed),
    ];
    for (name, bounds, until) in table {
        assert_eq!(measure(&log, bounds).until, until, "{name}");
    }
    let half = measure(&log, CleanBounds { clean_until: Some(third), ..base });
    assert_eq!(half.first_dirty, third);
    assert_eq!(half.clean_bytes + half.cleanable_bytes, log.size_bytes());
    assert!(half.dirty_ratio() < 1.0 && half.dirty_ratio() > 0.0);
    let lost = measure(&log, CleanBounds { clean_until: Some(99), ..base });
    assert_eq!((lost.first_dirty, lost.is_reset), (0, true), "beyond the end");
    let overdue = CleanBounds { max_lag_ms: 1_000, now_ms: NOW + 5_000, ..base };
    assert_eq!(measure(&log, overdue).overdue_ms, 4_000);
    assert_eq!(measure(&log, base).overdue_ms, 0);
}

#[test]
fn kip_534_a_tombstone_stays_until_its_horizon_that_the_first_pass_sets() {
    for codec in [Compression::None, Compression::Gzip, Compression::Zstd] {
        let (_disk, _dir, mut log) = made();
        let records = [("gone", Some("v")), ("stays", Some("v")), ("gone", None)];
        append(&mut log, &Sent { records: &records, producer: None, codec }.batch()).unwrap();
        append(&mut log, &plain(&[("last", Some("v"))])).unwrap();
        log.roll(NOW).unwrap();
        pass(&mut log, None, NOW);
        let (header, left) = all_batches(&log).remove(0);
        assert_eq!(header.delete_horizon(), Some(NOW + DAY_MS));
        assert_eq!((header.base_offset, header.last_offset()), (0, 2));
        let times: Vec<_> = left.iter().map(|r| (r.offset, r.timestamp)).collect();
        assert_eq!(times, [(1, NOW + 1), (2, NOW + 2)], "timestamps are kept");
        // Later passes leave the horizon as it is.
        pass(&mut log, None, NOW + DAY_MS - 1);
        let (again, left) = all_batches(&log).remove(0);
        assert_eq!((again.delete_horizon(), left.len()), (Some(NOW + DAY_MS), 2));
        pass(&mut log, None, NOW + DAY_MS);
        assert_eq!(keys(&log), [(1, "stays".to_owned()), (3, "last".to_owned())]);
        let (last, _) = all_batches(&log).remove(0);
        assert_eq!(last.max_timestamp, NOW + 1);
        assert_eq!(last.compression().unwrap(), codec);
    }
}

#[test]
fn markers_stay_while_their_records_do_and_then_until_their_horizon() {
    let (_disk, _dir, mut log) = made();
    append(&mut log, &by(7, 0, true, &[("a", Some("1"))])).unwrap();
    log.append_marker(&marker(7, 0, true, 0), Some(1), 0, EPOCH, NOW).unwrap();
    append(&mut log, &by(8, 0, true, &[("a", Some("aborted"))])).unwrap();
    log.append_marker(&marker(8, 0, false, 0), Some(3), 0, EPOCH, NOW).unwrap();
    append(&mut log, &by(7, 1, true, &[("b", Some("2"))])).unwrap();
    log.append_marker(&marker(7, 0, true, 0), Some(5), 0, EPOCH, NOW).unwrap();
    append(&mut log, &plain(&[("c", Some("3"))])).unwrap();
    log.roll(NOW).unwrap();
    let end = log.end_offset();
    pass(&mut log, None, NOW);
    let values = |log: &Log| kept(log).into_iter().map(|(at, _, v)| (at, v.unwrap())).collect();
    let text = |rows: &[(Offset, &str)]| -> Vec<(Offset, String)> {
        rows.iter().map(|(at, value)| (*at, (*value).to_owned())).collect()
    };
    // What was aborted is gone, though it is newer, and does not shadow what was committed.
    let left: Vec<(Offset, String)> = values(&log);
    assert_eq!(left, text(&[(0, "1"), (4, "2"), (6, "3")]));
    let offsets = |log: &Log| -> Vec<(Offset, usize, Option<i64>)> {
        let row = |(header, records): (BatchHeader, Vec<Record>)| {
            (header.base_offset, records.len(), header.delete_horizon())
        };
        all_batches(log).into_iter().map(row).collect()
    };
    // 2 is emptied, since it has the last sequence of producer 8; so its marker and its entry stay.
    let want = [(0, 1), (1, 1), (2, 0), (3, 1), (4, 1), (5, 1), (6, 1)];
    assert_eq!(offsets(&log), want.map(|(at, count)| (at, count, None)));
    assert_eq!(log.aborted_transactions(0, end).unwrap().len(), 1);
    // Producers that are silent for long are forgotten: nothing holds the batches any more.
    log.expire_producers(NOW + 30 * DAY_MS);
    append(&mut log, &plain(&[("a", Some("4")), ("b", Some("5"))])).unwrap();
    log.roll(NOW).unwrap();
    pass(&mut log, Some(end), NOW + 30 * DAY_MS);
    let left: Vec<(Offset, String)> = values(&log);
    assert_eq!(left, text(&[(6, "3"), (7, "4"), (8, "5")]));
    pass(&mut log, Some(end), NOW + 30 * DAY_MS);
    let horizon = Some(NOW + 31 * DAY_MS);
    let markers: Vec<_> = offsets(&log).into_iter().filter(|(at, ..)| *at < 6).collect();
    assert_eq!(markers, [(1, 1, horizon), (3, 1, horizon), (5, 1, horizon)]);
    assert_eq!(log.aborted_transactions(0, end).unwrap(), []);
    pass(&mut log, Some(end), NOW + 31 * DAY_MS);
    assert!(offsets(&log).iter().all(|(at, ..)| *at >= 6), "{:?}", offsets(&log));
}

#[test]
fn an_emptied_batch_keeps_the_last_sequence_so_that_a_retry_is_known_after_a_restart() {
    let (disk, dir, mut log) = made();
    for sequence in 0..3 {
        append(&mut log, &by(7, sequence, false, &[("k", Some("v"))])).unwrap();
    }
    append(&mut log, &plain(&[("k", Some("newer")), ("other", Some("v"))])).unwrap();
    log.roll(NOW).unwrap();
    pass(&mut log, None, NOW);
    assert_eq!(keys(&log), [(3, "k".to_owned()), (4, "other".to_owned())]);
    let empty: Vec<_> = all_batches(&log).into_iter().filter(|(_, r)| r.is_empty()).collect();
    assert_eq!(empty.len(), 1, "the last of the producer, without records");
    assert_eq!((empty[0].0.base_offset, empty[0].0.last_sequence()), (2, 2));
    // Snapshots gone too: all is read from the log.
    for base in 0..6 {
        let path = disk.path.join(format!("orders-0/{base:020}.snapshot"));
        drop(disk.files.remove_file(&path));
    }
    drop((dir, log));
    disk.sim.kill();
    let (_dir, mut log) = disk.reopen(None);
    let retried = log
        .append(&by(7, 2, false, &[("k", Some("v"))]), Proof::Unneeded, EPOCH, NOW, None)
        .unwrap();
    assert_eq!((retried.duplicate, retried.base_offset), (true, 2));
    assert!(append(&mut log, &by(7, 4, false, &[("k", Some("v"))])).is_err(), "3 is next");
    assert_eq!(append(&mut log, &by(7, 3, false, &[("k", Some("v"))])).unwrap(), 5);
}

#[test]
fn memory_that_is_full_ends_the_pass_early_and_the_next_goes_on_there() {
    let (_disk, _dir, mut log) = made();
    fill(&mut log, 60, 60);
    append(&mut log, &plain(&[("k0", Some("again"))])).unwrap();
    log.roll(NOW).unwrap();
    let small = CleanLimits { map_bytes: 24 * 12, ..limits(NOW) };
    let (mut from, mut passes) = (None, 0);
    while from != Some(61) {
        let stats = pass_with(&mut log, from, &small).unwrap();
        assert!(stats.clean_until > from.unwrap_or(0), "progress");
        from = Some(stats.clean_until);
        passes += 1;
    }
    assert!(passes > 3, "{passes}");
    let offsets: Vec<Offset> = keys(&log).iter().map(|(offset, _)| *offset).collect();
    assert_eq!(offsets, (1..61).collect::<Vec<_>>(), "0 is superseded by 60");
    let none = CleanLimits { map_bytes: 24, ..limits(NOW) };
    assert!(matches!(pass_with(&mut log, None, &none), Err(CleanError::NoMemory)));
}

#[test]
fn readers_go_on_with_the_old_segments_until_their_files_are_removed() {
    let (_disk, _dir, mut log) = made();
    fill(&mut log, 40, 4);
    log.flush().unwrap();
    let plan = log.plan_read(0, 40).unwrap();
    let want = plan.locate(10_000, true).unwrap().read().unwrap();
    let bounds = bounds(&mut log, None);
    let view = log.clean_view();
    let cleanable = view.measure(&bounds).unwrap();
    let order = log.clean_order();
    for _ in 0..2 {
        let view = log.clean_view();
        let mut owner = Owns { log: &mut log, old: Vec::new(), spare: u64::MAX };
        clean(&view, &order, &cleanable, &limits(NOW), &mut owner).unwrap();
        std::mem::forget(owner.old);
        // Three files at most are open: the old ones are opened again under their new names.
        assert_eq!(contents(&log, 0).len(), 4);
        assert_eq!(plan.locate(10_000, true).unwrap().read().unwrap(), want);
    }
}

#[test]
fn a_pass_that_is_called_off_or_overtaken_changes_nothing() {
    let (disk, _dir, mut log) = made();
    fill(&mut log, 40, 4);
    log.flush().unwrap();
    let before = kept(&log);
    let bounds = bounds(&mut log, None);
    let view = log.clean_view();
    let (cleanable, order) = (view.measure(&bounds).unwrap(), log.clean_order());
    let mut owner = Owns { log: &mut log, old: Vec::new(), spare: 3 };
    let called_off = clean(&view, &order, &cleanable, &limits(NOW), &mut owner);
    assert!(matches!(called_off, Err(CleanError::CalledOff)));
    assert_eq!(kept(&log), before);
    // Retention takes the first segment meanwhile.
    let first = log.segments()[0].next_base_offset;
    log.delete_segments_below(first).unwrap();
    let mut owner = Owns { log: &mut log, old: Vec::new(), spare: u64::MAX };
    let overtaken = clean(&view, &order, &cleanable, &limits(NOW), &mut owner);
    assert!(overtaken.is_err());
    assert_eq!(kept(&log), before[first as usize..]);
    let left = disk.files.list(&disk.path.join("orders-0")).unwrap();
    assert!(left.iter().all(|entry| !entry.name.contains(".cleaned")), "{left:?}");
}

#[test]
fn a_damaged_batch_ends_the_pass_and_is_named() {
    let (disk, _dir, mut log) = made();
    fill(&mut log, 40, 4);
    log.flush().unwrap();
    let before = log.size_bytes();
    let base = log.segments()[1].base_offset;
    let path = disk.path.join(format!("orders-0/{base:020}.log"));
    let mut bytes = disk.files.read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    disk.files.write(&path, &bytes).unwrap();
    match pass_with(&mut log, None, &limits(NOW)) {
        Err(CleanError::Disk(error)) => {
            assert!(error.is_damage());
            let text = error.to_string();
            assert!(text.contains(&format!("{base:020}.log")), "{text}");
            assert!(text.contains("byte ") && text.contains("checksum"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(log.size_bytes(), before);
}

/// What is in the log of these keys, by key.
fn newest(log: &Log) -> BTreeMap<String, (Offset, Option<String>)> {
    kept(log).into_iter().map(|(offset, key, value)| (key, (offset, value))).collect()
}

/// One swap is so many calls that make, rename or remove a name, with what comes around it.
const NAMES_OF_A_PASS: u64 = 60;

#[test]
fn a_crash_at_any_step_of_a_swap_leaves_the_old_or_the_new_segments() {
    let mut undone = 0;
    for spare in 0..NAMES_OF_A_PASS {
        for kind in [None, Some(spare)] {
            let (disk, dir, mut log) = made();
            fill(&mut log, 40, 4);
            append(&mut log, &plain(&[("active", Some("v"))])).unwrap();
            log.flush().unwrap();
            dir.write_checkpoints([row(&log)]).unwrap();
            let want = newest(&log);
            // The power goes, or the process is killed, when the call fails.
            disk.sim.fail(FaultOn::Name, spare, 5);
            let done = pass_with(&mut log, None, &limits(NOW));
            undone += u64::from(done.is_err());
            assert_eq!(newest(&log), want, "the log goes on, {spare}: {done:?}");
            drop((dir, log));
            match kind {
                None => disk.sim.kill(),
                Some(seed) => disk.sim.crash(seed),
            }
            let (_dir, mut log) = disk.reopen(None);
            assert_eq!(newest(&log), want, "{spare} {kind:?}");
            assert_eq!((log.start_offset(), log.end_offset()), (0, 41), "{spare} {kind:?}");
            pass(&mut log, None, NOW);
            assert_eq!(newest(&log), want);
            assert_eq!(kept(&log).len(), 5, "{spare} {kind:?}");
        }
    }
    assert!(undone > 40, "{undone} failed");
}

#[test]
fn a_crash_after_any_file_of_a_swap_is_finished_or_undone() {
    // The files as each rename leaves them, with everything before it durable.
    for steps in 0..30 {
        let (disk, dir, mut log) = made();
        fill(&mut log, 40, 4);
        log.flush().unwrap();
        dir.write_checkpoints([row(&log)]).unwrap();
        let want = newest(&log);
        let bounds = bounds(&mut log, None);
        let view = log.clean_view();
        let (cleanable, order) = (view.measure(&bounds).unwrap(), log.clean_order());
        let cut = Cut { log: &mut log, sim: disk.sim.clone(), steps };
        let mut owner = cut;
        let done = clean(&view, &order, &cleanable, &limits(NOW), &mut owner);
        drop((dir, log, view, done));
        disk.sim.kill();
        let (_dir, mut log) = disk.reopen(None);
        assert_eq!(newest(&log), want, "after {steps} renames");
        assert_eq!(log.end_offset(), 40);
        let left = disk.files.list(&disk.path.join("orders-0")).unwrap();
        let stray =
            |name: &str| [".cleaned", ".swap", ".deleted"].iter().any(|s| name.ends_with(s));
        assert!(left.iter().all(|entry| !stray(&entry.name)), "after {steps}: {left:?}");
        pass(&mut log, None, NOW);
        assert_eq!(kept(&log).len(), 4, "after {steps} renames");
    }
}

/// Dies in the first swap after so many renames: each later call fails, cleaning up included.
struct Cut<'a> {
    log: &'a mut Log,
    sim: crate::env::SimFiles,
    steps: u64,
}

impl CleanOwner for Cut<'_> {
    fn goes_on(&mut self, _: u64) -> bool {
        true
    }

    fn swap_in(&mut self, cleaned: &Cleaned) -> Result<bool, DiskError> {
        (0..100).for_each(|_| self.sim.fail(FaultOn::Name, self.steps, 5));
        self.log.swap_in(cleaned).map(|old| old.is_some())
    }
}

#[test]
fn segments_that_are_emptied_keep_the_log_s_start_and_are_no_tear() {
    let (disk, dir, mut log) = made();
    // Three segments that cannot be merged, the first two without anything of their own.
    for round in 0..3 {
        for at in 0..4 {
            let value = format!("{round} {at} {}", "x".repeat(60));
            append(&mut log, &plain(&[(&format!("k{at}"), Some(&value))])).unwrap();
        }
        log.roll(NOW).unwrap();
    }
    append(&mut log, &plain(&[("active", Some("v"))])).unwrap();
    pass(&mut log, None, NOW);
    let sizes: Vec<u64> = log.segments().iter().map(|s| s.size_bytes).collect();
    assert_eq!(sizes[..2], [0, 0], "{sizes:?}");
    let (want, end) = (kept(&log), log.end_offset());
    assert_eq!(log.offset_for_timestamp(NOW, end).unwrap().map(|found| found.offset), Some(8));
    drop((dir, log));
    disk.sim.kill();
    // No checkpoint was written: everything is scanned.
    let (dir, mut log) = disk.reopen(None);
    assert_eq!((kept(&log), log.start_offset(), log.end_offset()), (want.clone(), 0, end));
    pass(&mut log, None, NOW);
    assert_eq!(kept(&log), want);
    disk.stop(dir, log);
    let (_dir, log) = disk.reopen(Some(7));
    assert_eq!(kept(&log), want);
}
