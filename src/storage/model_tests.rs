//! The log engine against a simple model: a list of records. Whatever is appended, rolled,
//! flushed, trimmed, stopped, killed or crashed, the log holds a prefix of the model that is no
//! shorter than what was synced (after a crash) or all of it (after a kill or a clean stop), under
//! the same offsets.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::testing::{Disk, EPOCH, NOW, append, batch, by_producer, contents, row, small};
use super::{Log, LogDir};
use crate::common::{LeaderEpoch, Offset, Proof};
use crate::env::FaultOn;

#[derive(Debug, Clone)]
enum Step {
    /// Records a batch.
    Append(Vec<u8>),
    /// One record by the idempotent producer.
    Produce,
    Retry(u8),
    Roll,
    Flush,
    FlushRolled,
    Checkpoint,
    Epoch,
    Trim(u8),
    Truncate(u8),
    FailedWrite(u8),
    Stop,
    Kill,
    Crash(u64),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => proptest::collection::vec(0u8..60, 1..4).prop_map(Step::Append),
        4 => Just(Step::Produce),
        2 => any::<u8>().prop_map(Step::Retry),
        1 => Just(Step::Roll),
        2 => Just(Step::Flush),
        2 => Just(Step::FlushRolled),
        2 => Just(Step::Checkpoint),
        1 => Just(Step::Epoch),
        1 => any::<u8>().prop_map(Step::Trim),
        1 => any::<u8>().prop_map(Step::Truncate),
        1 => (0u8..6).prop_map(Step::FailedWrite),
        1 => Just(Step::Stop),
        2 => Just(Step::Kill),
        2 => any::<u64>().prop_map(Step::Crash),
    ]
}

/// What the log must hold.
#[derive(Default)]
struct Model {
    /// From offset 0 on; the producer's records are named by their sequence.
    records: Vec<String>,
    start: Offset,
    /// All below it survives a crash.
    synced: Offset,
    /// Lower bound of the log start after a restart without a checkpoint.
    saved_start: Offset,
    /// (sequence, offset) of the idempotent producer.
    produced: Vec<(i32, Offset)>,
    epoch: i32,
}

impl Model {
    fn end(&self) -> Offset {
        self.records.len() as Offset
    }

    fn cut(&mut self, end: Offset) {
        self.records.truncate(end as usize);
        self.produced.retain(|(_, offset)| *offset < end);
        self.start = self.start.min(end);
        self.synced = self.synced.min(end);
        self.saved_start = self.saved_start.min(end);
    }
}

struct World {
    disk: Disk,
    /// `None` only while it is being opened anew.
    open: Option<(LogDir, Log)>,
    model: Model,
}

impl World {
    fn new() -> Self {
        let disk = Disk::new(small());
        let dir = disk.open().unwrap();
        let mut log = disk.create(&dir);
        // The directory of the partition is durable from here on.
        append(&mut log, &batch(&[(NOW, "first")])).unwrap();
        log.flush().unwrap();
        dir.write_checkpoints([]).unwrap();
        let model = Model { records: vec!["first".to_owned()], synced: 1, ..Model::default() };
        Self { disk, open: Some((dir, log)), model }
    }

    fn log(&mut self) -> &mut Log {
        &mut self.open.as_mut().expect("open").1
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Append(sizes) => self.append(sizes),
            Step::Produce => self.produce(),
            Step::Retry(which) => self.retry(*which),
            Step::Roll => self.log().roll(NOW).unwrap(),
            Step::Flush => {
                self.log().flush().unwrap();
                self.model.synced = self.model.end();
            }
            Step::FlushRolled => {
                let files = self.disk.files.clone();
                let log = self.log();
                let plan = log.plan_flush(log.active_base_offset()).unwrap();
                plan.run(&files).unwrap();
                log.flushed(&plan);
                self.model.synced = self.model.synced.max(plan.until());
            }
            Step::Checkpoint => {
                let (dir, log) = self.open.as_ref().expect("open");
                dir.write_checkpoints([row(log)]).unwrap();
                self.model.saved_start = self.model.start;
            }
            Step::Epoch => {
                self.model.epoch += 1;
                let epoch = LeaderEpoch(self.model.epoch);
                self.log().assign_epoch(epoch);
            }
            Step::Trim(at) => {
                let end = self.model.end();
                let to = self.model.start + Offset::from(*at) % (end - self.model.start + 1);
                self.log().advance_start(to).unwrap();
                self.log().delete_segments_below(to).unwrap();
                self.model.start = to;
                // What is removed cannot come back; what is only below the start may.
                let first = self.log().segments();
                let first = first.first().map(|s| s.base_offset);
                let first = first.unwrap_or(self.log().active_base_offset());
                self.model.saved_start = self.model.saved_start.max(first.min(to));
            }
            Step::Truncate(at) => {
                let to = self.model.end() - Offset::from(*at) % 5;
                // Never below the log start (a high watermark is above it), batches of 3 included.
                if to >= self.model.start + 3 {
                    self.log().truncate_to(to, NOW).unwrap();
                    let end = self.log().end_offset();
                    self.model.cut(end);
                    self.step(&Step::Checkpoint);
                }
            }
            Step::FailedWrite(spare) => {
                self.disk.sim.fail(FaultOn::Write, u64::from(*spare), 28);
                for _ in 0..=*spare {
                    let value = format!("at {}", self.model.end());
                    if append(self.log(), &batch(&[(NOW, &value)])).is_ok() {
                        self.model.records.push(value);
                    }
                }
            }
            Step::Stop | Step::Kill | Step::Crash(_) => self.restart(step),
        }
    }

    fn append(&mut self, sizes: &[u8]) {
        let base = self.model.records.len();
        let value =
            |(at, size): (usize, &u8)| format!("{} {}", base + at, "x".repeat(*size as usize));
        let values: Vec<String> = sizes.iter().enumerate().map(value).collect();
        let records: Vec<(i64, &str)> = values.iter().map(|value| (NOW, value.as_str())).collect();
        let sent = batch(&records);
        let epoch = LeaderEpoch(self.model.epoch);
        let appended = self.log().append(&sent, Proof::Unneeded, epoch, NOW, None).unwrap();
        assert_eq!(appended.base_offset, base as Offset);
        self.model.records.extend(values);
    }

    fn produce(&mut self) {
        let sequence = self.model.produced.last().map_or(0, |(sequence, _)| sequence + 1);
        let base = append(self.log(), &by_producer(1, 0, sequence, 1, false)).unwrap();
        assert_eq!(base, self.model.end());
        self.model.produced.push((sequence, base));
        self.model.records.push("v".to_owned());
    }

    /// A retry of the newest batch is always recognized; of an older one it is, or it is refused.
    fn retry(&mut self, which: u8) {
        let back = usize::from(which) % 7;
        let Some(at) = self.model.produced.len().checked_sub(back + 1) else { return };
        let (sequence, offset) = self.model.produced[at];
        let end = self.model.end();
        match self.log().append(
            &by_producer(1, 0, sequence, 1, false),
            Proof::Unneeded,
            EPOCH,
            NOW,
            None,
        ) {
            Ok(appended) => assert_eq!((appended.duplicate, appended.base_offset), (true, offset)),
            Err(error) => assert!(back > 0, "the newest batch is forgotten: {error}"),
        }
        assert_eq!(self.log().end_offset(), end);
    }

    fn restart(&mut self, how: &Step) {
        let (dir, log) = self.open.take().expect("open");
        let mut last = None;
        match how {
            Step::Stop => {
                self.disk.stop(dir, log);
                last = Some(7);
                (self.model.synced, self.model.saved_start) = (self.model.end(), self.model.start);
            }
            Step::Kill => {
                drop((dir, log));
                self.disk.sim.kill();
            }
            Step::Crash(seed) => {
                drop((dir, log));
                self.disk.sim.crash(*seed);
            }
            _ => unreachable!("not a restart"),
        }
        self.open = Some(self.disk.reopen(last));
        let end = self.log().end_offset();
        let least = match how {
            Step::Crash(_) => self.model.synced,
            _ => self.model.end(),
        };
        assert!(
            (least..=self.model.end()).contains(&end),
            "{least} ≤ {end} ≤ {}",
            self.model.end()
        );
        let start = self.log().start_offset();
        let (low, high) = (self.model.saved_start, self.model.start.max(self.model.saved_start));
        let low = if matches!(how, Step::Crash(_)) { 0 } else { low };
        assert!((low..=high).contains(&start), "{low} ≤ {start} ≤ {high}");
        self.model.cut(end);
        self.model.start = start;
        self.model.saved_start = self.model.saved_start.min(start);
        // A log that lost all above its start begins there without knowing who wrote below it.
        let forgotten = self.log().producers().iter().next().is_none() && start == end;
        if matches!(how, Step::Crash(_)) && forgotten {
            self.model.produced.clear();
        }
    }

    fn check(&mut self, whole: bool) {
        let (start, end) = (self.model.start, self.model.end());
        assert_eq!((self.log().start_offset(), self.log().end_offset()), (start, end));
        if !whole {
            return;
        }
        let read = contents(self.log(), start);
        let want = self.model.records[start as usize..].iter().cloned();
        let want: Vec<(Offset, String)> = (start..).zip(want).collect();
        assert_eq!(read, want);
        let known = self.log().producers().iter().next().map(|(_, p)| p.last_sequence());
        assert_eq!(known, self.model.produced.last().map(|(sequence, _)| *sequence));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::with_cases(256)
    })]

    #[test]
    fn the_log_is_what_the_model_says(steps in proptest::collection::vec(any_step(), 1..60)) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
            world.check(!matches!(step, Step::Append(_) | Step::Produce | Step::Retry(_)));
        }
        world.check(true);
    }

    /// A tail torn at any byte, or with any bit flipped, loses whole batches from there on and
    /// nothing before.
    #[test]
    fn a_torn_tail_is_cut_at_the_first_batch_that_is_not_whole(
        count in 1usize..12,
        cut in any::<prop::sample::Index>(),
        flip in proptest::option::of(0u8..8),
    ) {
        let disk = Disk::new(super::LogConfig::default());
        let dir = disk.open().unwrap();
        let mut log = disk.create(&dir);
        for at in 0..count {
            append(&mut log, &batch(&[(NOW, &format!("record {at:02}"))])).unwrap();
        }
        dir.write_checkpoints([row(&log)]).unwrap();
        let (size, want) = (log.size_bytes() as usize, contents(&log, 0));
        drop((dir, log));
        disk.sim.kill();
        let path = disk.path.join("orders-0/00000000000000000000.log");
        let mut bytes = disk.files.read(&path).unwrap();
        let at = cut.index(size);
        match flip {
            Some(bit) => bytes[at] ^= 1 << bit,
            None => bytes.truncate(at),
        }
        disk.files.write(&path, &bytes).unwrap();
        let kept = at / (size / count);
        let (_dir, mut log) = disk.reopen(None);
        // The leader epoch (bytes 12 to 16) is outside the CRC, in Kafka's format as in ours.
        let in_epoch = flip.is_some() && (12..16).contains(&(at % (size / count)));
        let end = if in_epoch { count } else { kept };
        prop_assert_eq!(contents(&log, 0), &want[..end]);
        prop_assert_eq!(append(&mut log, &batch(&[(NOW, "next")])).unwrap(), end as Offset);
    }
}
