//! Which log directory of a broker holds which replica (KIP-858).

use uuid::Uuid;

use super::brokers::check_epoch;
use super::error::Refusal;
use super::machine::Plan;
use super::request::AssignDirectories;
use crate::common::TopicId;
use crate::metadata::{Image, Partition};
use crate::protocol::records::metadata::{MetadataRecord, PartitionChangeRecord};

/// A replica that is gone, or a directory that the broker did not register, is left out.
pub(super) fn plan(image: &Image, ask: &AssignDirectories) -> Plan<Result<usize, Refusal>> {
    if let Err(why) = check_epoch(image, ask.broker, ask.broker_epoch) {
        return Plan::of(Err(why.into()));
    }
    let registered = image.broker(ask.broker).map_or(&[] as &[Uuid], |broker| &broker.log_dirs);
    let (mut records, mut known) = (Vec::new(), 0);
    for (topic, index, directory) in &ask.replicas {
        let partition = image.topics().by_id(*topic).and_then(|topic| topic.partition(*index));
        let Some(partition) = partition.filter(|_| registered.contains(directory)) else {
            continue;
        };
        let Some(at) = partition.replicas.iter().position(|id| *id == ask.broker) else { continue };
        known += 1;
        records.extend(moved(*topic, *index, partition, at, *directory));
    }
    Plan { records, answer: Ok(known) }
}

/// `None`: it is known there already.
fn moved(
    topic: TopicId,
    index: i32,
    partition: &Partition,
    at: usize,
    directory: Uuid,
) -> Option<MetadataRecord> {
    let mut directories = partition.directories.clone();
    directories.resize(partition.replicas.len(), Uuid::nil());
    if directories[at] == directory {
        return None;
    }
    directories[at] = directory;
    let record = PartitionChangeRecord {
        partition_id: index,
        topic_id: topic.0,
        directories: Some(directories),
        ..PartitionChangeRecord::default()
    };
    Some(record.into())
}
