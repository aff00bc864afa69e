//! Flipped bits: each byte of each file of a log directory in turn, after a clean stop and after a
//! kill. What is read is what was written; what cannot be read is said; what can be made anew is.

use std::path::PathBuf;

use super::testing::{
    Disk, EPOCH, NOW, append, batch, by_producer, marker, partition, row, small, whole,
};
use super::{Identity, Loading, Log, LogConfig, LogDir, OperatorFault, StorageError};
use crate::common::{BrokerId, LeaderEpoch, Offset, Proof, TopicPartition};

/// All files of the directory, as one start left them.
struct Left {
    files: Vec<(PathBuf, Vec<u8>)>,
    how: &'static str,
    /// The last registered epoch: of the clean mark, or none.
    last_epoch: Option<i64>,
    known: Known,
}

/// What a log says of itself.
#[derive(Debug, Clone, PartialEq)]
struct Known {
    records: Vec<(Offset, String)>,
    end_offset: Offset,
    max: (i64, Offset),
    by_time: Vec<Option<Offset>>,
    last_sequence: i32,
}

fn records(log: &Log) -> Result<Vec<(Offset, String)>, String> {
    let (mut found, mut next, mut refused) = (Vec::new(), log.start_offset(), false);
    if log.end_offset() > 100 {
        return Err(format!("the log ends at {}", log.end_offset()));
    }
    while next < log.end_offset() {
        let slices = log.read(next, log.end_offset(), 300, true);
        let read = match slices.and_then(|slices| Ok(slices.read()?)) {
            Ok(bytes) => whole(&bytes),
            // A reader may go on behind what it is refused.
            Err(StorageError::Disk(error)) if error.is_damage() => {
                next += 1;
                refused = true;
                continue;
            }
            Err(error) => return Err(format!("reading {next}: {error}")),
        };
        let read: Vec<_> = read.into_iter().filter(|(offset, _)| *offset >= next).collect();
        match read.first() {
            Some((first, _)) if *first == next => {}
            // The batch that was refused does not say any more how far it went.
            Some(_) if refused => {}
            other => return Err(format!("reading {next} silently finds {other:?}")),
        }
        (next, refused) = (read[read.len() - 1].0 + 1, false);
        found.extend(read);
    }
    Ok(found)
}

fn know(log: &Log) -> Result<Known, String> {
    let failed = |error: super::DiskError| format!("by time: {error}");
    let by_time = |at: i64| log.offset_for_timestamp(NOW + at, Offset::MAX);
    let max = log.max_timestamp().map_err(failed)?;
    log.aborted_transactions(0, log.end_offset()).map_err(failed)?;
    Ok(Known {
        records: records(log)?,
        end_offset: log.end_offset(),
        max: max.map_or((-1, -1), |found| (found.timestamp, found.offset)),
        by_time: [0, 7, 11, 15, 16, 17, 19]
            .into_iter()
            .map(|at| Ok(by_time(at).map_err(failed)?.map(|found| found.offset)))
            .collect::<Result<_, String>>()?,
        last_sequence: log.producers().iter().next().map_or(-1, |(_, p)| p.last_sequence()),
    })
}

fn config() -> LogConfig {
    LogConfig { segment_bytes: 700, ..small() }
}

/// A log with several segments, a producer, an aborted transaction, two epochs.
fn leave(clean: bool) -> Left {
    let disk = Disk::new(config());
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    for at in 0..18 {
        let value = format!("{at:>30}");
        append(&mut log, &batch(&[(NOW + at, &value)])).unwrap();
        if at == 9 {
            log.append(&by_producer(1, 0, 0, 2, true), Proof::Unneeded, EPOCH, NOW, None).unwrap();
            let end = log.end_offset();
            log.append_marker(&marker(1, 0, false, 0), Some(end), 0, EPOCH, NOW).unwrap();
            log.assign_epoch(LeaderEpoch(1));
        }
    }
    let known = know(&log).unwrap();
    log.flush().unwrap();
    dir.write_checkpoints([row(&log)]).unwrap();
    let (how, last_epoch) = match clean {
        true => {
            disk.stop(dir, log);
            ("after a clean stop", Some(7))
        }
        false => ("after a kill", None),
    };
    let mut files = Vec::new();
    for dir in [disk.path.clone(), disk.path.join("orders-0")] {
        for entry in disk.files.list(&dir).unwrap().into_iter().filter(|entry| !entry.is_dir) {
            let path = dir.join(&entry.name);
            files.push((path.clone(), disk.files.read(&path).unwrap()));
        }
    }
    Left { files, how, last_epoch, known }
}

impl Left {
    /// The directory with one bit of one file turned over.
    fn flipped(&self, file: usize, at: usize, bit: usize) -> Disk {
        let disk = Disk::new(config());
        disk.files.create_dir_all(&disk.path.join("orders-0")).unwrap();
        for (number, (path, bytes)) in self.files.iter().enumerate() {
            let mut bytes = bytes.clone();
            if number == file {
                bytes[at] ^= 1 << bit;
            }
            disk.files.write(path, &bytes).unwrap();
        }
        disk
    }

    /// - `harmless`: nothing may be missing.
    fn check(&self, disk: &Disk, last_epoch: Option<i64>, harmless: bool) -> Result<(), String> {
        let dir = match disk.open() {
            Ok(dir) => dir,
            Err(StorageError::Operator(OperatorFault::Unreadable { file, .. }))
                if file.ends_with("meta.properties") =>
            {
                return Ok(());
            }
            // A node id or a cluster id without a checksum before it is another one.
            Err(error) => return Err(format!("{error}")),
        };
        let config = |_: &TopicPartition| disk.config.clone();
        let loading =
            Loading { last_broker_epoch: last_epoch, now_ms: NOW, threads: 1, config: &config };
        let loaded = dir.load(&loading).map_err(|error| format!("load: {error}"))?;
        let found = loaded.logs.first().ok_or("no log")?;
        if found.partition != partition() {
            return Err("another partition".to_owned());
        }
        if harmless {
            let known = know(&found.log)?;
            return match known == self.known {
                true => Ok(()),
                false => Err(format!("{known:?} is not {:?}", self.known)),
            };
        }
        let (records, end_offset) = (records(&found.log)?, found.log.end_offset());
        let strange = records.iter().find(|record| !self.known.records.contains(record));
        match strange {
            Some(record) => Err(format!("{record:?} was never written")),
            None if end_offset > self.known.end_offset => {
                Err(format!("the log ends at {end_offset}"))
            }
            None => Ok(()),
        }
    }
}

#[test]
fn a_flipped_bit_is_never_served_and_never_stops_the_other_logs() {
    let (mut flips, mut problems) = (0, Vec::new());
    for left in [leave(true), leave(false)] {
        for (file, (path, bytes)) in left.files.iter().enumerate() {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            // Without a checksum an entry that can be passes for one; so does a row of text.
            let is_data = name.ends_with(".log");
            let unsure = name.ends_with(".txnindex") || name.contains("checkpoint");
            // Two bits of each byte: one in turn, and the one that makes a number negative.
            let bits = (0..bytes.len()).flat_map(|at| [(at, at * 5 % 8), (at, 7)]);
            for (at, bit) in bits {
                let disk = left.flipped(file, at, bit);
                let mut outcome = left.check(&disk, left.last_epoch, !is_data && !unsure);
                if outcome.is_ok() {
                    disk.sim.kill();
                    let again = left.check(&disk, None, !is_data && !unsure);
                    outcome = again.map_err(|why| format!("at the second start: {why}"));
                }
                flips += 1;
                if let Err(why) = outcome {
                    problems.push(format!("bit {bit} of byte {at} of {name} {}: {why}", left.how));
                }
            }
        }
    }
    assert!(flips > 8_000, "{flips} flips");
    let first: Vec<_> = problems.iter().take(20).collect();
    assert!(problems.is_empty(), "{} of {flips}: {first:#?}", problems.len());
}

#[test]
fn a_log_start_that_was_never_committed_deletes_nothing() {
    let disk = Disk::new(config());
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    for at in 0..10 {
        append(&mut log, &batch(&[(NOW + at, "v")])).unwrap();
    }
    log.advance_start(4).unwrap();
    disk.stop(dir, log);
    let path = disk.path.join("log-start-offset-checkpoint");
    assert_eq!(disk.files.read(&path).unwrap(), b"0\n1\norders 0 4\n");
    disk.files.write(&path, b"0\n1\norders 0 40\n").unwrap();
    let (_dir, log) = disk.reopen(Some(7));
    assert_eq!((log.start_offset(), log.end_offset()), (0, 10));
}

#[test]
fn below_the_reserve_only_clients_are_refused_and_not_for_longer_than_that() {
    let disk = Disk::new(LogConfig::default());
    let identity = Identity { cluster_id: None, node_id: BrokerId(1) };
    let options = super::LogDirOptions { reserve_bytes: 10_000, ..Default::default() };
    let random = crate::env::Random::seeded(1);
    let dir = LogDir::open(&disk.files, &random, &disk.path, &identity, &options).unwrap();
    let mut log = disk.create(&dir);
    let one = batch(&[(NOW, "0123456789")]);
    let size = one.bytes.len() as u64;
    #[rustfmt::skip]
    let table = [
        // free                taken
        (10_000 + size,        true),
        (10_000 + size - 1,    false),
        (0,                    false),
        (1 << 40,              true),
    ];
    for (free_bytes, taken) in table {
        disk.sim.set_free_bytes(free_bytes);
        let outcome = append(&mut log, &one);
        assert_eq!(outcome.is_ok(), taken, "{free_bytes} free: {outcome:?}");
        if let Err(error) = outcome {
            assert!(matches!(&error, StorageError::Disk(disk) if disk.is_full()), "{error}");
            let end = log.end_offset();
            log.append_journal(&one, end, Proof::Unneeded, EPOCH, NOW).unwrap();
        }
    }
    // What is free is asked again before half the reserve is written.
    let mut written = 0;
    disk.sim.set_free_bytes(0);
    while append(&mut log, &one).is_ok() {
        written += size;
        assert!(written <= 5_000, "{written} bytes");
    }
}

#[test]
fn damage_in_the_middle_is_named_by_file_and_byte() {
    let left = leave(true);
    let name = "00000000000000000000.log";
    let file = left.files.iter().position(|(path, _)| path.ends_with(name)).unwrap();
    let disk = left.flipped(file, 140, 4);
    let (_dir, log) = disk.reopen(Some(7));
    let read = log.read(1, log.end_offset(), 300, true).unwrap().read();
    let said = read.unwrap_err().to_string();
    assert!(said.contains(name) && said.contains("the batch at byte "), "{said}");
}

/// After a clean stop nothing is scanned; the first reader pays for the checksums of all others.
#[test]
fn batches_are_looked_at_once_and_then_sent_from_their_file() {
    let disk = Disk::new(small());
    let dir = disk.open().unwrap();
    let mut log = disk.create(&dir);
    for at in 0..6 {
        append(&mut log, &batch(&[(NOW + at, "v")])).unwrap();
    }
    disk.stop(dir, log);
    let (_dir, mut log) = disk.reopen(Some(7));
    let read = |log: &Log, from: Offset| {
        let slices = log.read(from, log.end_offset(), 10_000, true).unwrap();
        let (unchecked, bytes) = (slices.is_unchecked(), slices.read().unwrap());
        (unchecked, whole(&bytes).len())
    };
    assert_eq!(read(&log, 3), (true, 3));
    assert_eq!(read(&log, 3), (true, 3), "what is before it was not looked at");
    assert_eq!(read(&log, 0), (true, 6));
    assert_eq!(read(&log, 0), (false, 6));
    assert_eq!(read(&log, 3), (false, 3));
    append(&mut log, &batch(&[(NOW + 6, "v")])).unwrap();
    assert_eq!(read(&log, 6), (false, 1), "what is written now needs no look");
}
