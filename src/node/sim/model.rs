//! What must be readable: a simple account of what was asked, what was answered, and what each
//! answer promises.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::common::Offset;

/// A record's value, unique in the whole run.
pub type Value = u64;

/// How the last life ended, and so what of it must still be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// All that was written.
    Written,
    /// All that was synced.
    Synced,
}

/// Whether something is so; `Unknown` after a change that nobody answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known<T> {
    Is(T),
    Unknown,
}

#[derive(Debug)]
pub struct Topic {
    pub exists: Known<bool>,
    pub id: Option<Uuid>,
    /// Moves with each creation and deletion that is asked for.
    pub incarnation: u64,
    /// `flush.messages=1` of its own.
    pub flushes: Known<bool>,
    /// Moves with each change of `flushes` that is asked for.
    pub flushes_version: u64,
    /// Least and most partitions that it may have.
    pub partitions: (usize, usize),
    pub parts: Vec<Part>,
}

/// One partition.
#[derive(Debug, Default)]
pub struct Part {
    /// All that was ever sent to a partition of this name.
    pub sent: BTreeSet<Value>,
    /// What was acknowledged or read.
    pub known: BTreeMap<Offset, Value>,
    offset_of: BTreeMap<Value, Offset>,
    /// All below is on the disk.
    pub durable_end: Offset,
    /// The highest start that DeleteRecords was asked for.
    pub start_asked: Offset,
    /// The highest end that this life has shown.
    pub end_seen: Offset,
}

impl Part {
    /// The first offset that nobody knows of.
    pub fn known_end(&self) -> Offset {
        self.known.last_key_value().map_or(0, |(offset, _)| offset + 1)
    }

    /// A record stands at an offset: always the same one, sent once, found once.
    pub fn stands(&mut self, offset: Offset, value: Value) {
        assert!(self.sent.contains(&value), "offset {offset}: {value} was never sent here");
        let before = *self.known.entry(offset).or_insert(value);
        assert_eq!(before, value, "offset {offset} has changed its record");
        let at = *self.offset_of.entry(value).or_insert(offset);
        assert_eq!(at, offset, "record {value} is there twice");
    }

    /// After a restart: the log is `start..end` now.
    fn reopen(&mut self, start: Offset, end: Offset, kept: Kept) {
        let least = match kept {
            Kept::Written => self.known_end().max(self.end_seen),
            Kept::Synced => self.durable_end,
        };
        assert!(end >= least, "the log ends at {end}, {least} were promised ({kept:?})");
        self.look_at_start(start);
        self.known.split_off(&end);
        self.offset_of.retain(|_, at| *at < end);
        self.end_seen = end;
    }

    pub fn look_at_start(&self, start: Offset) {
        let most = self.start_asked;
        assert!(start <= most, "the log starts at {start}, nobody asked for more than {most}");
    }

    /// The partition of a new topic of the same name.
    fn begin_anew(&mut self) {
        *self = Self { sent: std::mem::take(&mut self.sent), ..Self::default() };
    }
}

/// What one group has committed for one partition.
#[derive(Debug, Default)]
pub struct Commits {
    /// The last that was acknowledged, and all that were asked for, ascending.
    pub acknowledged: Option<Offset>,
    pub asked: Vec<Offset>,
    pub durable: Option<Offset>,
}

impl Commits {
    /// What is found, while running or after a restart.
    pub fn found(&mut self, found: Option<Offset>, kept: Kept) {
        let least = match kept {
            Kept::Written => self.acknowledged,
            Kept::Synced => self.durable,
        };
        assert!(found >= least, "committed {found:?}, {least:?} was promised ({kept:?})");
        assert!(found.is_none_or(|at| self.asked.contains(&at)), "{found:?} was never committed");
        self.acknowledged = found;
        self.asked.retain(|asked| Some(*asked) <= found);
    }
}

/// All of it.
#[derive(Debug, Default)]
pub struct Model {
    pub topics: BTreeMap<&'static str, Topic>,
    pub commits: BTreeMap<(String, i32), Commits>,
    pub producer_ids: BTreeSet<i64>,
    last_value: Value,
    pub acknowledged: u64,
    /// How the life before this one ended, until a look at everything.
    pub restarted: Option<Kept>,
    /// Each topic of the broker's defaults is flushed with every record.
    pub flushes_by_default: bool,
}

impl Model {
    pub fn new(names: &[&'static str], flushes_by_default: bool) -> Self {
        let topic = |name: &&'static str| {
            let topic = Topic {
                exists: Known::Is(false),
                id: None,
                incarnation: 0,
                flushes: Known::Is(false),
                flushes_version: 0,
                partitions: (0, 0),
                parts: Vec::new(),
            };
            (*name, topic)
        };
        let topics = names.iter().map(topic).collect();
        Self { topics, flushes_by_default, ..Self::default() }
    }

    pub fn value(&mut self) -> Value {
        self.last_value += 1;
        self.last_value
    }

    pub fn topic(&mut self, name: &str) -> &mut Topic {
        self.topics.get_mut(name).expect("a name of the pool")
    }

    /// Partitions that are certainly there.
    pub fn places(&self) -> Vec<(&'static str, i32)> {
        let there = self.topics.iter().filter(|(_, topic)| topic.exists == Known::Is(true));
        let places = there
            .flat_map(|(name, topic)| (0..topic.partitions.0).map(|index| (*name, index as i32)));
        places.collect()
    }

    /// The node is gone.
    pub fn end_life(&mut self, kept: Kept) {
        // A second crash before anybody looked takes no more away than the worse of both.
        let worse = self.restarted == Some(Kept::Synced) || kept == Kept::Synced;
        self.restarted = Some(if worse { Kept::Synced } else { Kept::Written });
    }

    /// After a clean stop, all that was written is durable.
    pub fn stopped_cleanly(&mut self) {
        for part in self.topics.values_mut().flat_map(|topic| &mut topic.parts) {
            part.durable_end = part.known_end().max(part.end_seen);
        }
        self.commits.values_mut().for_each(|commits| commits.durable = commits.acknowledged);
    }

    /// What the metadata says of a topic: (id, partitions), or that it is not there.
    pub fn found(&mut self, name: &str, found: Option<(Uuid, usize)>) {
        let topic = self.topic(name);
        match (topic.exists, found) {
            (Known::Is(true), None) => panic!("topic {name} is lost"),
            (Known::Is(false), Some(_)) => panic!("topic {name} is back"),
            (_, found) => topic.exists = Known::Is(found.is_some()),
        }
        let Some((id, count)) = found else { return };
        let (least, most) = topic.partitions;
        assert!((least..=most).contains(&count), "{name}: {count} partitions of {least}–{most}");
        topic.begin(id, count);
    }

    /// Up to where a partition has been seen.
    pub fn least_end(&mut self, (name, index): (&str, i32)) -> Offset {
        let part = &self.topic(name).parts[index as usize];
        part.end_seen.max(part.known_end())
    }

    /// A partition after a restart, or while running: then it had come to `least` before.
    pub fn bounds(
        &mut self,
        (name, index): (&str, i32),
        least: Offset,
        (start, end): (Offset, Offset),
    ) {
        let restarted = self.restarted;
        let part = &mut self.topic(name).parts[index as usize];
        match restarted {
            Some(kept) => part.reopen(start, end, kept),
            None => {
                part.look_at_start(start);
                assert!(end >= least, "{name}-{index} ends at {end}, it was {least}");
                part.end_seen = part.end_seen.max(end);
            }
        }
    }
}

impl Topic {
    /// It is there with `count` partitions; with another id it is another topic.
    pub fn begin(&mut self, id: Uuid, count: usize) {
        if self.id != Some(id) {
            self.parts.iter_mut().for_each(Part::begin_anew);
            self.id = Some(id);
        }
        self.partitions = (count, count);
        self.grow(count);
    }

    pub fn grow(&mut self, count: usize) {
        if self.parts.len() < count {
            self.parts.resize_with(count, Part::default);
        }
    }

    /// Whether what is acknowledged now is on the disk.
    pub fn is_durable(&self, by_default: bool) -> bool {
        self.flushes == Known::Is(true) || (by_default && self.flushes == Known::Is(false))
    }
}
