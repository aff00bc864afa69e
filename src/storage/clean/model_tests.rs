//! Compaction against a simple model, a list of all records ever written: whatever is appended,
//! rolled, cleaned, trimmed, truncated, stopped, killed or crashed, a reader finds the newest
//! committed record of each key, no record that was not written, and below the last pass nothing
//! that is superseded or aborted.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::tests::{DAY_MS, Sent, all_batches, config, kept, limits, pass_with, plain};
use super::{CleanError, CleanLimits};
use crate::common::{Offset, ProducerEpoch, ProducerId};
use crate::protocol::batch::{Compression, Producer};
use crate::storage::testing::{Disk, EPOCH, NOW, append, marker, row};
use crate::storage::{Log, LogDir};

#[derive(Debug, Clone)]
enum Step {
    /// A batch of keys, some of them deleted, in a codec.
    Append(Vec<(u8, bool)>, usize),
    /// One record by the idempotent producer.
    Produce(u8),
    /// A transaction of one batch, and how it ends.
    Transact(Vec<u8>, bool),
    Roll,
    /// So many hours later, with memory for so many keys.
    Clean(u8, u8),
    /// To this part of the cleaned log.
    Trim(u8),
    Truncate(u8),
    Stop,
    Kill,
    Crash(u64),
}

fn any_step() -> impl Strategy<Value = Step> {
    let record = (0u8..12, prop::bool::weighted(0.2));
    prop_oneof![
        8 => (prop::collection::vec(record, 1..5), 0usize..5).prop_map(|(r, c)| Step::Append(r, c)),
        3 => (0u8..12).prop_map(Step::Produce),
        2 => (prop::collection::vec(0u8..12, 1..3), any::<bool>()).prop_map(|(k, c)| Step::Transact(k, c)),
        3 => Just(Step::Roll),
        5 => (0u8..40, 2u8..40).prop_map(|(hours, keys)| Step::Clean(hours, keys)),
        1 => any::<u8>().prop_map(Step::Trim),
        1 => any::<u8>().prop_map(Step::Truncate),
        1 => Just(Step::Stop),
        1 => Just(Step::Kill),
        2 => any::<u64>().prop_map(Step::Crash),
    ]
}

#[derive(Debug, Clone)]
struct Written {
    key: String,
    value: Option<String>,
    aborted: bool,
    /// When a deletion may go: set by the first pass over it.
    horizon: Option<i64>,
}

struct World {
    disk: Disk,
    open: Option<(LogDir, Log)>,
    /// By offset; markers are not in it.
    model: BTreeMap<Offset, Written>,
    clean_until: Option<Offset>,
    now_ms: i64,
    sequence: i32,
    epochs: i16,
}

impl World {
    fn new() -> Self {
        let disk = Disk::new(config());
        let dir = disk.open().unwrap();
        let mut log = disk.create(&dir);
        append(&mut log, &plain(&[("k0", Some("first"))])).unwrap();
        let mut world = Self {
            disk,
            open: Some((dir, log)),
            model: BTreeMap::new(),
            clean_until: None,
            now_ms: NOW,
            sequence: 0,
            epochs: 0,
        };
        world.wrote(0, &[(0, false)], &["first".to_owned()], false);
        world
    }

    fn log(&mut self) -> &mut Log {
        &mut self.open.as_mut().expect("open").1
    }

    fn wrote(&mut self, base: Offset, keys: &[(u8, bool)], values: &[String], aborted: bool) {
        for (at, ((key, deleted), value)) in keys.iter().zip(values).enumerate() {
            let value = (!deleted).then(|| value.clone());
            let written = Written { key: format!("k{key}"), value, aborted, horizon: None };
            self.model.insert(base + at as Offset, written);
        }
    }

    fn append(&mut self, keys: &[(u8, bool)], codec: usize, producer: Option<Producer>) -> Offset {
        let end = self.log().end_offset();
        let values: Vec<String> = (0..keys.len()).map(|at| format!("value {end} {at}")).collect();
        let names: Vec<String> = keys.iter().map(|(key, _)| format!("k{key}")).collect();
        let record = |at: usize| {
            let value = (!keys[at].1).then_some(values[at].as_str());
            (names[at].as_str(), value)
        };
        let records: Vec<(&str, Option<&str>)> = (0..keys.len()).map(record).collect();
        let sent = Sent { records: &records, producer, codec: Compression::ALL[codec] }.batch();
        let base = append(self.log(), &sent).unwrap();
        assert_eq!(base, end);
        self.wrote(base, keys, &values, false);
        base
    }

    fn producer(id: i64, epoch: i16, base_sequence: i32, transactional: bool) -> Producer {
        let (id, epoch) = (ProducerId(id), ProducerEpoch(epoch));
        Producer { id, epoch, base_sequence, transactional }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Append(keys, codec) => drop(self.append(keys, *codec, None)),
            Step::Produce(key) => {
                let producer = Self::producer(1, 0, self.sequence, false);
                self.append(&[(*key, false)], 0, Some(producer));
                self.sequence += 1;
            }
            Step::Transact(keys, commit) => {
                let keys: Vec<(u8, bool)> = keys.iter().map(|key| (*key, false)).collect();
                let producer = Self::producer(2, self.epochs, 0, true);
                let base = self.append(&keys, 0, Some(producer));
                let (epoch, end) = (self.epochs, self.log().end_offset());
                let ending = marker(2, epoch, *commit, 0);
                self.log().append_marker(&ending, Some(end), 0, EPOCH, NOW).unwrap();
                self.model.range_mut(base..).for_each(|(_, record)| record.aborted = !commit);
                self.epochs += 1;
            }
            Step::Roll => self.log().roll(NOW).unwrap(),
            Step::Clean(hours, keys) => self.clean(*hours, *keys),
            Step::Trim(part) => {
                let (start, end) = (self.log().start_offset(), self.log().end_offset());
                let to = start + (end - start) * Offset::from(*part) / 512;
                self.log().advance_start(to).unwrap();
                self.log().delete_segments_below(to).unwrap();
                self.model = self.model.split_off(&to);
            }
            Step::Truncate(back) => {
                let end = self.log().end_offset();
                let least = self.clean_until.unwrap_or(0).max(self.log().start_offset()) + 5;
                let to = end - Offset::from(*back) % 8;
                // Only what is not committed is ever cut, and no transaction is here.
                let open = self.model.range(to..).next().is_none_or(|(_, r)| !r.aborted);
                if to > least && self.epochs == 0 && open {
                    self.log().truncate_to(to, NOW).unwrap();
                    let end = self.log().end_offset();
                    drop(self.model.split_off(&end));
                    // The caller's duty, before anything is appended.
                    let (dir, log) = self.open.as_ref().expect("open");
                    dir.write_checkpoints([row(log)]).unwrap();
                    let known = self.log().producers().get(ProducerId(1));
                    self.sequence = known.map_or(0, |producer| producer.last_sequence() + 1);
                }
            }
            Step::Stop | Step::Kill | Step::Crash(_) => self.restart(step),
        }
    }

    fn clean(&mut self, hours: u8, keys: u8) {
        self.now_ms += i64::from(hours) * 3_600_000;
        let (now_ms, from) = (self.now_ms, self.clean_until);
        let limits = CleanLimits { map_bytes: 24 * u64::from(keys), ..limits(now_ms) };
        let mut segments = self.log().segments();
        segments.retain(|segment| !segment.is_active);
        let until = match pass_with(self.log(), from, &limits) {
            Ok(stats) => stats.clean_until,
            Err(CleanError::NoMemory) => return,
            Err(error) => panic!("{error}"),
        };
        self.clean_until = Some(until);
        // The last segment is copied to its end, though only a part of its keys is known.
        let copied = segments.iter().filter(|segment| segment.base_offset < until);
        let copied_until = copied.map(|segment| segment.next_base_offset).max().unwrap_or(until);
        for (_, record) in self.model.range_mut(..copied_until) {
            record.horizon.get_or_insert(now_ms + DAY_MS);
        }
        let mut newest: BTreeMap<String, Offset> = BTreeMap::new();
        for (offset, record) in self.model.range(..until).filter(|(_, record)| !record.aborted) {
            newest.insert(record.key.clone(), *offset);
        }
        // What a pass may take away is away, and is asked for no more.
        self.model.retain(|offset, record| {
            if *offset >= until {
                return true;
            }
            let over =
                record.value.is_none() && record.horizon.is_some_and(|horizon| now_ms >= horizon);
            newest.get(&record.key) == Some(offset) && !over
        });
    }

    fn restart(&mut self, how: &Step) {
        let (dir, mut log) = self.open.take().expect("open");
        let mut last = None;
        match how {
            Step::Stop => {
                self.disk.stop(dir, log);
                last = Some(7);
            }
            Step::Kill => {
                drop((dir, log));
                self.disk.sim.kill();
            }
            Step::Crash(seed) => {
                log.flush().unwrap();
                dir.write_checkpoints([row(&log)]).unwrap();
                drop((dir, log));
                self.disk.sim.crash(*seed);
            }
            _ => unreachable!("not a restart"),
        }
        let start = self.model_start();
        self.open = Some(self.disk.reopen(last));
        // The start that no checkpoint told of.
        if self.log().start_offset() < start {
            self.log().advance_start(start).unwrap();
        }
    }

    fn model_start(&self) -> Offset {
        self.model.keys().next().copied().unwrap_or(0)
    }

    fn check(&mut self) {
        let until = self.clean_until.unwrap_or(0);
        let start = self.model_start().max(self.log().start_offset());
        let found = kept(self.log());
        let read: BTreeMap<Offset, (String, Option<String>)> = found
            .into_iter()
            // What is aborted and not cleaned yet may be there or not.
            .filter(|(at, ..)| *at >= start && !self.model.get(at).is_some_and(|r| r.aborted))
            .map(|(offset, key, value)| (offset, (key, value)))
            .collect();
        let want: BTreeMap<Offset, (String, Option<String>)> = self
            .model
            .iter()
            .filter(|(_, record)| !record.aborted)
            .map(|(offset, record)| (*offset, (record.key.clone(), record.value.clone())))
            .collect();
        assert_eq!(read, want, "cleaned until {until}");
        let batches = all_batches(self.log());
        let ordered = |pair: &[(crate::protocol::batch::BatchHeader, _)]| {
            pair[0].0.last_offset() < pair[1].0.base_offset
        };
        assert!(batches.windows(2).all(ordered), "offsets ascend");
        let known = self.log().producers().get(ProducerId(1)).map(|p| p.last_sequence());
        if let Some(last) = self.sequence.checked_sub(1).filter(|last| *last >= 0) {
            assert_eq!(known, Some(last), "the idempotent producer goes on");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(5),
        failure_persistence: None,
        ..ProptestConfig::with_cases(256)
    })]

    #[test]
    fn what_a_reader_finds_is_what_the_model_says(steps in prop::collection::vec(any_step(), 1..60)) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
            let quiet = matches!(step, Step::Append(..) | Step::Produce(_) | Step::Transact(..));
            if !quiet {
                world.check();
            }
        }
        world.check();
    }
}
