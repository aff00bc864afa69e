//! A data directory that Apache Kafka wrote: its `__cluster_metadata-0` becomes the first records of
//! Ottla's own metadata log, once, and is left as it is. One that `kafka-storage format` made and no
//! broker has used says which feature levels the cluster begins with. What cannot be taken over is
//! refused before anything is touched.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::error::NodeError;
use super::quorum::DIR_NAME;
use crate::common::{BrokerId, Offset, varint};
use crate::controller::{FEATURES, Levels, METADATA_FEATURE};
use crate::env::Files;
use crate::metadata::{ConfigKind, Image};
use crate::protocol::batch::{self, BatchHeader, crc_of, records};
use crate::protocol::records::metadata::MetadataRecord;
use crate::storage::Inspected;

const KAFKA_METADATA: &str = "__cluster_metadata-0";
const CHECKPOINT: &str = ".checkpoint";
/// All that `kafka-storage format` leaves before Kafka 4.4: the snapshot that the log begins with.
const BOOTSTRAP: &str = "bootstrap.checkpoint";

/// Control records, by type: who leads with whom, and who may vote (KIP-853).
const LEADER_CHANGE: i16 = 2;
const VOTERS: i16 = 6;

/// Metadata records that are not of the image, by type.
mod kind {
    pub const DELEGATION_TOKEN: u32 = 10;
    pub const SCRAM: u32 = 11;
    pub const CLIENT_QUOTA: u32 = 14;
    pub const ACL: u32 = 18;
    pub const REMOVE_ACL: u32 = 19;
    pub const ZK_MIGRATION: u32 = 21;
    pub const REMOVE_SCRAM: u32 = 22;
    pub const BEGIN: u32 = 23;
    pub const END: u32 = 24;
    pub const ABORT: u32 = 25;
    pub const REMOVE_DELEGATION_TOKEN: u32 = 26;
    pub const REGISTER_CONTROLLER: u32 = 27;
    pub const UNREGISTER_CONTROLLER: u32 = 29;
}

/// What Kafka left for the cluster to begin with.
#[derive(Debug, PartialEq)]
pub enum Imported {
    /// The metadata of a node that has served.
    Cluster(Vec<MetadataRecord>),
    /// Of a directory that was only formatted: finalized levels of features.
    Formatted(Levels),
}

/// What to begin with, if the directories are Kafka's and were never opened here.
///
/// # Errors
/// [`NodeError::Import`].
pub fn look(
    node: BrokerId,
    files: &Files,
    parent: &Path,
    dirs: &[(PathBuf, Inspected)],
) -> Result<Option<Imported>, NodeError> {
    let own = files.list(&parent.join(DIR_NAME)).unwrap_or_default();
    if own.iter().any(|entry| !entry.name.starts_with('.')) {
        return Ok(None);
    }
    let refuse = |dir: &Path, reason: String| {
        Err(NodeError::Import { dir: dir.display().to_string(), reason })
    };
    let (log, snapshot) = (parent.join(KAFKA_METADATA), parent.join(BOOTSTRAP));
    let (from, read): (_, Read) = match files.exists(&log) {
        true => (log, read_log),
        false => (snapshot, read_snapshot),
    };
    if !files.exists(&from) {
        let Some((dir, _)) = dirs.iter().find(|(_, inspected)| inspected.has_logs) else {
            return Ok(None);
        };
        return refuse(dir, "it has logs, but there is no metadata of their cluster".to_owned());
    }
    for (dir, inspected) in dirs {
        if let Some(name) = inspected.aside.first() {
            let reason = format!("`{name}` is left of unfinished work: let Kafka finish it first");
            return refuse(dir, reason);
        }
    }
    match read(files, &from, node).and_then(|read| read.into_imported(node)) {
        Ok(imported) => {
            if let Imported::Cluster(records) = &imported {
                let (from, records) = (from.display(), records.len());
                tracing::info!(%from, records, "metadata taken over from Kafka");
            }
            Ok(Some(imported))
        }
        Err(reason) => refuse(&from, reason),
    }
}

type Read = fn(&Files, &Path, BrokerId) -> Result<Reading, String>;

/// What the log has said so far.
#[derive(Default)]
struct Reading {
    image: Image,
    /// Those of a transaction that is not over.
    open: Option<Vec<MetadataRecord>>,
    /// What has no place in the image: what it is, and by its key each one that is there.
    others: BTreeMap<&'static str, BTreeSet<Vec<u8>>>,
}

fn said(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("`{}`: {error}", path.display())
}

/// Reads the newest snapshot and the log behind it, up to the first batch that is not whole.
fn read_log(files: &Files, dir: &Path, node: BrokerId) -> Result<Reading, String> {
    let list = files.list(dir).map_err(|error| said(dir, &error))?;
    let names: Vec<&str> = list.iter().map(|entry| entry.name.as_str()).collect();
    let snapshot = names.iter().rev().find_map(|name| {
        let end = name.strip_suffix(CHECKPOINT)?.split_once('-')?.0.parse().ok()?;
        Some((dir.join(name), end))
    });
    let (mut reading, mut next) = match snapshot {
        Some((path, end)) => (read_snapshot(files, &path, node)?, end),
        None => (Reading::default(), 0),
    };
    let logs: Vec<PathBuf> =
        names.iter().filter(|name| name.ends_with(".log")).map(|name| dir.join(name)).collect();
    for (at, path) in logs.iter().enumerate() {
        let content = Bytes::from(files.read(path).map_err(|error| said(path, &error))?);
        let read = reading.take(&content, Some(&mut next), node);
        let read = read.map_err(|error| said(path, &error))?;
        // Only the last write of a crash may be torn.
        if read < content.len() && at + 1 < logs.len() {
            return Err(said(path, &format!("damaged at byte {read}")));
        }
    }
    Ok(reading)
}

fn read_snapshot(files: &Files, path: &Path, node: BrokerId) -> Result<Reading, String> {
    let mut reading = Reading::default();
    let content = Bytes::from(files.read(path).map_err(|error| said(path, &error))?);
    let read = reading.take(&content, None, node).map_err(|error| said(path, &error))?;
    if read < content.len() {
        return Err(said(path, &format!("damaged at byte {read}")));
    }
    Ok(reading)
}

impl Reading {
    /// Takes in the whole batches at the front of `content`; returns how many bytes they are.
    /// - `next`: the next offset to take; `None` for a snapshot, whose offsets mean nothing.
    fn take(
        &mut self,
        content: &Bytes,
        mut next: Option<&mut Offset>,
        node: BrokerId,
    ) -> Result<usize, String> {
        let mut at = 0;
        for item in batch::batches(content) {
            let Ok((header, bytes)) = item else { break };
            if crc_of(&bytes) != header.crc {
                break;
            }
            at += bytes.len();
            if let Some(next) = &mut next {
                if header.last_offset() < **next {
                    continue;
                }
                if header.base_offset > **next {
                    return Err(format!("offset {next} is missing"));
                }
                **next = header.next_offset();
            }
            self.take_batch(&header, &bytes, node)?;
        }
        Ok(at)
    }

    fn take_batch(
        &mut self,
        header: &BatchHeader,
        bytes: &Bytes,
        node: BrokerId,
    ) -> Result<(), String> {
        for record in records(bytes) {
            let record = record.map_err(|error| error.to_string())?;
            let value = record.value.unwrap_or_default();
            if header.is_control() {
                check_voters(&record.key.unwrap_or_default(), &value, node)?;
            } else {
                self.take_record(&value)?;
            }
        }
        Ok(())
    }

    fn take_record(&mut self, value: &[u8]) -> Result<(), String> {
        let short = || "a record is cut short".to_owned();
        let mut rest = value;
        let mut number = || varint::read_u32(&mut rest).map_err(|error| error.to_string());
        let (_, id, _) = (number()?, number()?, number()?);
        match id {
            kind::BEGIN => self.open = Some(Vec::new()),
            kind::ABORT => self.open = None,
            kind::END => {
                let ended = self.open.take().unwrap_or_default();
                ended.iter().for_each(|record| self.image.apply_unplaced(record));
            }
            kind::ZK_MIGRATION | kind::REGISTER_CONTROLLER | kind::UNREGISTER_CONTROLLER => {}
            kind::ACL => self.other("ACLs", rest.get(..16).ok_or_else(short)?, true),
            kind::REMOVE_ACL => self.other("ACLs", rest.get(..16).ok_or_else(short)?, false),
            kind::SCRAM => self.other("SCRAM credentials", scram_key(rest), true),
            kind::REMOVE_SCRAM => self.other("SCRAM credentials", scram_key(rest), false),
            kind::CLIENT_QUOTA => self.other("client quotas", rest, true),
            kind::DELEGATION_TOKEN => self.other("delegation tokens", rest, true),
            kind::REMOVE_DELEGATION_TOKEN => {}
            _ => {
                let record = MetadataRecord::decode(value).map_err(|error| error.to_string())?;
                match &mut self.open {
                    Some(open) => open.push(record),
                    None => self.image.apply_unplaced(&record),
                }
            }
        }
        Ok(())
    }

    fn other(&mut self, what: &'static str, key: &[u8], is_there: bool) {
        let all = self.others.entry(what).or_default();
        match is_there {
            true => all.insert(key.to_vec()),
            false => all.remove(key),
        };
    }

    /// What a log of Ottla's begins with.
    fn into_imported(self, node: BrokerId) -> Result<Imported, String> {
        let others = self.others.iter().filter(|(_, all)| !all.is_empty());
        let others: Vec<String> =
            others.map(|(what, all)| format!("{} {what}", all.len())).collect();
        if !others.is_empty() {
            let others = others.join(", ");
            return Err(format!("it has {others}, which this version does not know"));
        }
        let levels = self.levels()?;
        let is_formatted = levels.contains_key(METADATA_FEATURE);
        if is_formatted && self.image.brokers().next().is_none() && self.image.topics().is_empty() {
            return Ok(Imported::Formatted(levels));
        }
        if self.image.broker(node).is_none() {
            return Err(format!("no broker {node} is registered in it: it is a controller's"));
        }
        if let Some(other) = self.image.brokers().find(|broker| broker.id != node) {
            return Err(format!("it is of a cluster with other brokers, {} is one", other.id));
        }
        if let Some((resource, _)) =
            self.image.configured().find(|(resource, _)| resource.kind == ConfigKind::ClientMetrics)
        {
            return Err(format!(
                "it has client metrics `{}`, unknown to this version",
                resource.name
            ));
        }
        let served = |record: &MetadataRecord| match record {
            MetadataRecord::FeatureLevel(record) => levels.contains_key(&*record.name),
            _ => true,
        };
        Ok(Imported::Cluster(self.image.to_records().filter(served).collect()))
    }

    /// Levels of the features that are served; the others are left out.
    fn levels(&self) -> Result<Levels, String> {
        let (mut levels, mut left) = (Levels::new(), Vec::new());
        for (name, level) in self.image.features() {
            match FEATURES.iter().find(|feature| *feature.name == **name) {
                Some(feature) if (feature.min..=feature.max).contains(&level) => {
                    levels.insert(feature.name, level);
                }
                Some(feature) => {
                    let (min, max) = (feature.min, feature.max);
                    return Err(format!("its {name} is {level}, {min} to {max} can be served"));
                }
                None => left.push(format!("{name}={level}")),
            }
        }
        if !left.is_empty() {
            tracing::warn!(
                features = left.join(","),
                "features of Kafka are not served and left out"
            );
        }
        Ok(levels)
    }
}

/// Name and mechanism, which a record and its removal begin with.
fn scram_key(rest: &[u8]) -> &[u8] {
    let mut behind = rest;
    let length = varint::read_u32(&mut behind).unwrap_or_default() as usize;
    rest.get(..rest.len() - behind.len() + length).unwrap_or(rest)
}

/// This node alone may have voted. Both records begin with a version and, the first one, with the
/// leader; then come the voters, each beginning with its id.
fn check_voters(key: &[u8], value: &[u8], node: BrokerId) -> Result<(), String> {
    let kind = key.get(2..4).map_or(0, |kind| i16::from_be_bytes([kind[0], kind[1]]));
    let skipped = match kind {
        LEADER_CHANGE => 6,
        VOTERS => 2,
        _ => return Ok(()),
    };
    let mut rest = value.get(skipped..).unwrap_or_default();
    let count = varint::read_u32(&mut rest).unwrap_or_default();
    let first = rest.first_chunk().map(|id| i32::from_be_bytes(*id));
    match (count, first) {
        // Compact: one more than there are.
        (2, Some(id)) if id == node.0 => Ok(()),
        (2, Some(id)) => Err(format!("its only controller is node {id}, this is node {node}")),
        (count, _) => {
            let voters = count.saturating_sub(1);
            Err(format!("its quorum has {voters} controllers; a cluster cannot be taken over"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::SimFiles;
    use crate::machine::Record;
    use crate::protocol::batch::BatchBuilder;
    use crate::protocol::records::metadata::{
        FeatureLevelRecord, RegisterBrokerRecord, TopicRecord,
    };

    fn broker(id: i32) -> Vec<u8> {
        let record = RegisterBrokerRecord { broker_id: id, ..Default::default() };
        value(record.into())
    }

    fn topic(name: &str, id: u128) -> Vec<u8> {
        let topic_id = uuid::Uuid::from_u128(id);
        value(TopicRecord { name: name.into(), topic_id }.into())
    }

    fn feature(name: &str, feature_level: i16) -> Vec<u8> {
        value(FeatureLevelRecord { name: name.into(), feature_level }.into())
    }

    fn value(record: MetadataRecord) -> Vec<u8> {
        Record::encode(&record).value.unwrap_or_default().to_vec()
    }

    /// A record that only its type and the front of its body matter of.
    fn other(kind: u8, body: &[u8]) -> Vec<u8> {
        [&[1, kind, 0], body].concat()
    }

    fn control(kind: u8, body: &[u8]) -> Bytes {
        let mut builder = BatchBuilder::new(0).control();
        builder.push(0, Some(&[0, 0, 0, kind]), Some(body), &[]);
        builder.build()
    }

    fn batch(base: Offset, values: &[Vec<u8>]) -> Bytes {
        let mut builder = BatchBuilder::new(base);
        values.iter().for_each(|value| builder.push(0, None, Some(value), &[]));
        builder.build()
    }

    /// Of a log with this content, or why not.
    fn imported(log: &[u8]) -> Result<Imported, String> {
        let (files, dir) = (Files::Sim(SimFiles::default()), Path::new("/m"));
        files.create_dir_all(dir).unwrap();
        files.write(&dir.join("00000000000000000000.log"), log).unwrap();
        let read = read_log(&files, dir, BrokerId(1));
        let taken = read.and_then(|it| it.into_imported(BrokerId(1)));
        taken.map_err(|said| said.replace("`/m/00000000000000000000.log`: ", ""))
    }

    /// Names of the topics taken over, or why not.
    fn take(log: &[u8]) -> Result<Vec<String>, String> {
        let Imported::Cluster(records) = imported(log)? else {
            return Err("only formatted".to_owned());
        };
        let name = |record: &MetadataRecord| match record {
            MetadataRecord::Topic(topic) => Some(topic.name.to_string()),
            _ => None,
        };
        Ok(records.iter().filter_map(name).collect())
    }

    /// The log's records; the topics taken over, or why not.
    type Row<'a> = (Vec<Vec<u8>>, Result<&'a [&'a str], &'a str>);

    #[test]
    fn what_cannot_be_taken_over_is_named() {
        let id = [7; 16];
        #[rustfmt::skip] // columns
        let table: Vec<Row<'_>> = vec![
            (vec![broker(1), topic("t", 1)],                                    Ok(&["t"])),
            (vec![broker(1), feature("group.version", 1), topic("t", 1)],       Ok(&["t"])),
            (vec![feature("metadata.version", 99)],                             Err("its metadata.version is 99, 7 to 33 can be served")),
            (vec![feature("metadata.version", 30), other(11, b"\x02a\x01more")], Err("it has 1 SCRAM credentials, which this version does not know")),
            (vec![broker(1), feature("metadata.version", 99)],                  Err("its metadata.version is 99, 7 to 33 can be served")),
            (vec![topic("t", 1)],                                               Err("no broker 1 is registered in it: it is a controller's")),
            (vec![broker(1), broker(2)],                                        Err("it is of a cluster with other brokers, 2 is one")),
            (vec![broker(1), other(18, &id)],                                   Err("it has 1 ACLs, which this version does not know")),
            (vec![broker(1), other(18, &id), other(19, &id)],                   Ok(&[])),
            (vec![broker(1), other(11, b"\x02a\x01more")],                      Err("it has 1 SCRAM credentials, which this version does not know")),
            (vec![broker(1), other(11, b"\x02a\x01more"), other(22, b"\x02a\x01")], Ok(&[])),
            (vec![broker(1), other(14, b"q")],                                  Err("it has 1 client quotas, which this version does not know")),
            (vec![broker(1), other(99, b"")],                                   Err("metadata record type 99 is not known")),
            // Transactions of the metadata log.
            (vec![broker(1), other(23, b""), topic("t", 1), other(24, b"")],    Ok(&["t"])),
            (vec![broker(1), other(23, b""), topic("t", 1), other(25, b"")],    Ok(&[])),
            (vec![broker(1), other(23, b""), topic("t", 1)],                    Ok(&[])),
        ];
        for (records, expected) in table {
            let expected = expected.map(|names| names.iter().map(|it| (*it).to_owned()).collect());
            assert_eq!(take(&batch(0, &records)), expected.map_err(str::to_owned), "{records:?}");
        }
    }

    #[test]
    fn a_directory_that_was_only_formatted_says_the_levels_of_features() {
        let metadata = feature("metadata.version", 30);
        #[rustfmt::skip] // columns
        let table: [(Vec<Vec<u8>>, Levels); 3] = [
            (vec![metadata.clone()],                                        [("metadata.version", 30)].into()),
            (vec![metadata.clone(), feature("group.version", 1)],           [("metadata.version", 30), ("group.version", 1)].into()),
            (vec![metadata, feature("a.feature.of.a.later.version", 1)],    [("metadata.version", 30)].into()),
        ];
        for (records, levels) in table {
            let found = imported(&batch(0, &records));
            assert_eq!(found, Ok(Imported::Formatted(levels)), "{records:?}");
        }
    }

    #[test]
    fn what_the_format_of_any_version_left_is_found() {
        let content = batch(0, &[feature("metadata.version", 30)]);
        let levels: Levels = [("metadata.version", 30)].into();
        let parent = Path::new("/m");
        let table = [
            ("bootstrap.checkpoint", true),
            ("__cluster_metadata-0/00000000000000000000-0000000000.checkpoint", true),
            ("other.checkpoint", false),
        ];
        for (name, is_found) in table {
            let files = Files::Sim(SimFiles::default());
            let path = parent.join(name);
            files.create_dir_all(path.parent().unwrap()).unwrap();
            files.write(&path, &content).unwrap();
            let dirs = [(parent.to_owned(), Inspected::default())];
            let found = look(BrokerId(1), &files, parent, &dirs).unwrap();
            assert_eq!(found, is_found.then(|| Imported::Formatted(levels.clone())), "{name}");
        }
    }

    #[test]
    fn a_torn_tail_is_cut_and_a_hole_is_refused() {
        let whole = batch(0, &[broker(1), topic("t", 1)]);
        let torn = [&whole[..], &batch(2, &[topic("u", 2)])[..70]].concat();
        assert_eq!(take(&torn), Ok(vec!["t".to_owned()]));
        let hole = [&whole[..], &batch(3, &[topic("u", 2)])[..]].concat();
        assert_eq!(take(&hole).unwrap_err(), "offset 2 is missing");
    }

    #[test]
    fn only_a_quorum_of_this_node_alone_is_taken_over() {
        let leader_change = |voters: &[u8]| control(2, &[&[0, 0, 0, 0, 0, 1], voters].concat());
        let rest = batch(1, &[broker(1)]);
        #[rustfmt::skip] // columns
        let table: [(&[u8], Option<&str>); 3] = [
            (&[2, 0, 0, 0, 1, 0],                None),
            (&[2, 0, 0, 0, 9, 0],                Some("its only controller is node 9, this is node 1")),
            (&[3, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0], Some("its quorum has 2 controllers; a cluster cannot be taken over")),
        ];
        for (voters, refused) in table {
            let taken = take(&[&leader_change(voters)[..], &rest[..]].concat());
            assert_eq!(taken.err().as_deref(), refused, "{voters:?}");
        }
    }
}
