//! Which brokers hold the replicas of new partitions, and whether a client's own choice is good.

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

use super::error::{AssignmentFault, PlacementFault};
use crate::common::{BrokerId, LeaderEpoch, TopicId};
use crate::env::Random;
use crate::metadata::{Broker, Image, Partition};
use crate::protocol::records::metadata::MetadataRecord;

/// Spreads replicas over racks first, then over the brokers of each rack. Leaders (the first
/// replica) go round; a fenced broker is used only where its rack has no other, and never leads.
/// - `start`: the number of the first partition placed.
/// - Returns `count` lists of `replication_factor` brokers.
pub(super) fn place(
    image: &Image,
    start: i32,
    count: i32,
    replication_factor: i32,
    random: &Random,
) -> Result<Vec<Vec<BrokerId>>, PlacementFault> {
    let asked = replication_factor;
    let usable: Vec<_> = image.brokers().filter(|broker| !is_cordoned(broker)).collect();
    let copies = match usize::try_from(asked) {
        Ok(copies) if copies > 0 => copies,
        _ => return Err(PlacementFault::NotPositive),
    };
    if copies > usable.len() {
        return Err(PlacementFault::TooFewBrokers { asked, brokers: usable.len() });
    }
    if usable.iter().all(|broker| broker.is_fenced) {
        return Err(PlacementFault::AllFenced(asked));
    }
    let racks = Racks::of(&usable, random);
    Ok((start..start + count).map(|partition| racks.replicas(partition as usize, copies)).collect())
}

struct Racks {
    racks: Vec<Rack>,
    /// Where the first partition starts; random, so that topics of one partition spread.
    first: usize,
}

#[derive(Default)]
struct Rack {
    unfenced: Vec<BrokerId>,
    fenced: Vec<BrokerId>,
}

impl Racks {
    fn of(brokers: &[&Arc<Broker>], random: &Random) -> Self {
        let mut by_name: BTreeMap<Option<&str>, Rack> = BTreeMap::new();
        for broker in brokers {
            let rack = by_name.entry(broker.rack.as_deref()).or_default();
            let list = if broker.is_fenced { &mut rack.fenced } else { &mut rack.unfenced };
            let at = random.below(list.len() as u64 + 1) as usize;
            list.insert(at, broker.id);
        }
        let racks: Vec<_> = by_name.into_values().collect();
        Self { racks, first: random.below(brokers.len() as u64 * 16) as usize }
    }

    fn replicas(&self, partition: usize, copies: usize) -> Vec<BrokerId> {
        let turn = self.first + partition;
        let count = self.racks.len();
        let leads = |step: &usize| !self.racks[(turn + step) % count].unfenced.is_empty();
        // `place` saw an unfenced broker, so some rack can lead.
        let start = turn + (0..count).find(leads).unwrap_or(0);
        let mut lists: Vec<_> = (0..count)
            .map(|step| self.racks[(start + step) % count].in_order(turn / count).into_iter())
            .collect();
        let mut replicas = Vec::with_capacity(copies);
        while replicas.len() < copies {
            let round = lists.iter_mut().filter_map(Iterator::next);
            replicas.extend(round.take(copies - replicas.len()));
        }
        replicas
    }
}

impl Rack {
    /// Its brokers, each once: unfenced ones first. Every turn another one is first, and every
    /// round of turns the others follow in another order, so that the partitions of a lost
    /// broker do not all go to the same one.
    fn in_order(&self, turn: usize) -> Vec<BrokerId> {
        let rotated = |list: &[BrokerId]| {
            let mut list = list.to_vec();
            if !list.is_empty() {
                let (count, round) = (list.len(), turn / list.len());
                list.rotate_left(turn % count);
                if count > 1 {
                    list[1..].rotate_left(round % (count - 1));
                }
            }
            list
        };
        let mut all = rotated(&self.unfenced);
        all.extend(rotated(&self.fenced));
        all
    }
}

/// Judges the brokers that a client chose for one partition.
/// - `expected`: the replicas that the topic's other partitions have.
pub(super) fn check_manual(
    image: &Image,
    replicas: &[BrokerId],
    expected: Option<usize>,
) -> Result<(), AssignmentFault> {
    if replicas.is_empty() {
        return Err(AssignmentFault::Empty);
    }
    let mut sorted = replicas.to_vec();
    sorted.sort_unstable();
    for (at, id) in sorted.iter().enumerate() {
        match image.broker(*id) {
            None => return Err(AssignmentFault::UnknownBroker(*id)),
            Some(broker) if is_cordoned(broker) => return Err(AssignmentFault::Cordoned(*id)),
            Some(_) if at > 0 && sorted[at - 1] == *id => {
                return Err(AssignmentFault::BrokerTwice(*id));
            }
            Some(_) => {}
        }
    }
    match expected {
        Some(expected) if expected != replicas.len() => {
            Err(AssignmentFault::Uneven { found: replicas.len(), expected })
        }
        _ => Ok(()),
    }
}

/// The record of a new partition; its ISR are the replicas that are up. `None` when none is.
pub(super) fn new_partition(
    image: &Image,
    topic: TopicId,
    index: i32,
    replicas: Vec<BrokerId>,
) -> Option<MetadataRecord> {
    let isr: Vec<_> = replicas.iter().copied().filter(|id| is_active(image, *id)).collect();
    let leader = *isr.first()?;
    let partition = Partition {
        directories: replicas.iter().map(|id| directory_of(image, *id)).collect(),
        replicas,
        isr,
        leader: Some(leader),
        leader_epoch: LeaderEpoch(0),
        ..Partition::default()
    };
    Some(MetadataRecord::Partition(partition.to_record(topic.0, index)))
}

/// Registered, not fenced and not on its way out: may join an ISR and lead.
pub(super) fn is_active(image: &Image, id: BrokerId) -> bool {
    image.broker(id).is_some_and(|broker| !broker.is_fenced && !broker.in_controlled_shutdown)
}

fn is_cordoned(broker: &Broker) -> bool {
    let cordoned = broker.cordoned_log_dirs.as_deref().unwrap_or_default();
    !broker.log_dirs.is_empty() && broker.log_dirs.iter().all(|dir| cordoned.contains(dir))
}

/// Where a broker puts a replica: known here only when it has one directory.
fn directory_of(image: &Image, id: BrokerId) -> Uuid {
    match image.broker(id).map(|broker| broker.log_dirs.as_slice()) {
        Some([only]) => *only,
        _ => Uuid::nil(),
    }
}
