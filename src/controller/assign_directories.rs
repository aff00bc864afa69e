//! Which log directory of a broker holds which replica (KIP-858).

use uuid::Uuid;

use super::brokers::check_epoch;
use super::election::Election;
use super::error::Refusal;
use super::machine::{Cx, Plan};
use super::request::AssignDirectories;
use crate::metadata::{Image, Partition};
use crate::protocol::records::metadata::PartitionChangeRecord;

/// A replica that is gone, or a directory that the broker did not register, is left out.
/// What nobody led, because it was where the broker has no directory, is led again.
pub(super) fn plan(
    image: &Image,
    ask: &AssignDirectories,
    cx: &Cx<'_>,
) -> Plan<Result<usize, Refusal>> {
    if let Err(why) = check_epoch(image, ask.broker, ask.broker_epoch) {
        return Plan::of(Err(why.into()));
    }
    let registered = image.broker(ask.broker).map_or(&[] as &[Uuid], |broker| &broker.log_dirs);
    let election = Election { image, rules: &*cx.world.rules };
    let (mut records, mut known) = (Vec::new(), 0);
    for (topic, index, directory) in &ask.replicas {
        let Some(topic) = image.topics().by_id(*topic) else { continue };
        let partition = topic.partition(*index).filter(|_| registered.contains(directory));
        let Some(partition) = partition else { continue };
        let Some(at) = partition.replicas.iter().position(|id| *id == ask.broker) else { continue };
        known += 1;
        let mut after = Partition::clone(partition);
        after.directories.resize(after.replicas.len(), Uuid::nil());
        after.directories[at] = *directory;
        if after.directories != partition.directories {
            let change = election.finds_leader((topic, *index, &after));
            let directories = Some(after.directories);
            records.push(PartitionChangeRecord { directories, ..change }.into());
        }
    }
    Plan { records, answer: Ok(known) }
}
