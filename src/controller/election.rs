//! Who is in sync and who leads when a broker goes or comes (KIP-966 where its feature is on).

use uuid::Uuid;

use super::bootstrap::ELR_FEATURE;
use super::placement::is_active;
use super::world::ConfigRules;
use crate::common::{BrokerId, TopicId};
use crate::metadata::{Image, Partition, Topic};
use crate::protocol::records::metadata::PartitionChangeRecord;

/// `PartitionChangeRecord.Leader`: the leader stays.
const LEADER_UNCHANGED: i32 = -2;
const NO_LEADER: i32 = -1;
/// `PartitionChangeRecord.LeaderRecoveryState`.
const RECOVERY_UNCHANGED: i8 = -1;

pub(super) struct Election<'a> {
    pub image: &'a Image,
    pub rules: &'a dyn ConfigRules,
}

/// What a partition is to become; compared with what it is to find the record.
struct Target {
    isr: Vec<BrokerId>,
    elr: Vec<BrokerId>,
    last_known_elr: Vec<BrokerId>,
    leader: Option<BrokerId>,
    is_recovering: bool,
}

impl Target {
    fn of(partition: &Partition) -> Self {
        Self {
            isr: partition.isr.clone(),
            elr: partition.elr.clone(),
            last_known_elr: partition.last_known_elr.clone(),
            leader: partition.leader,
            is_recovering: partition.is_recovering,
        }
    }

    fn elect(&mut self, leader: BrokerId, is_recovering: bool) {
        if !self.isr.contains(&leader) {
            self.isr = vec![leader];
        }
        self.elr.retain(|id| *id != leader);
        self.last_known_elr.clear();
        self.leader = Some(leader);
        self.is_recovering = is_recovering;
    }

    /// `None` when nothing differs.
    fn record(self, topic: TopicId, index: i32, now: &Partition) -> Option<PartitionChangeRecord> {
        let changed = |new: &Vec<BrokerId>, old: &Vec<BrokerId>| {
            (new != old).then(|| new.iter().map(|id| id.0).collect::<Vec<_>>())
        };
        let record = PartitionChangeRecord {
            partition_id: index,
            topic_id: topic.0,
            isr: changed(&self.isr, &now.isr),
            leader: match self.leader {
                leader if leader == now.leader => LEADER_UNCHANGED,
                leader => leader.map_or(NO_LEADER, |id| id.0),
            },
            leader_recovery_state: match self.is_recovering {
                state if state == now.is_recovering => RECOVERY_UNCHANGED,
                state => i8::from(state),
            },
            eligible_leader_replicas: changed(&self.elr, &now.elr),
            last_known_elr: changed(&self.last_known_elr, &now.last_known_elr),
            ..unchanged(topic, index)
        };
        (record != unchanged(topic, index)).then_some(record)
    }
}

/// A record that changes nothing but the partition epoch.
fn unchanged(topic: TopicId, index: i32) -> PartitionChangeRecord {
    PartitionChangeRecord {
        partition_id: index,
        topic_id: topic.0,
        leader: LEADER_UNCHANGED,
        leader_recovery_state: RECOVERY_UNCHANGED,
        ..PartitionChangeRecord::default()
    }
}

impl Election<'_> {
    /// `broker` no longer serves: it leaves ISRs and hands over what it leads.
    /// - `is_unclean`: what it had not flushed may be lost, so it is not eligible either.
    /// - Order: by topic name, then partition; lazy, so that a caller can take a part.
    pub fn leaves(
        &self,
        broker: BrokerId,
        is_unclean: bool,
    ) -> impl Iterator<Item = PartitionChangeRecord> {
        self.partitions().filter_map(move |at| self.without(at, broker, is_unclean))
    }

    /// As [`Election::leaves`] in an orderly way, of the replicas in directories of `broker` that
    /// have failed.
    pub fn loses(
        &self,
        broker: BrokerId,
        failed: &[Uuid],
    ) -> impl Iterator<Item = PartitionChangeRecord> {
        self.partitions().filter_map(move |at @ (_, _, partition)| {
            let is_lost = failed.contains(&partition.directory_of(broker));
            is_lost.then(|| self.without(at, broker, false)).flatten()
        })
    }

    fn without(
        &self,
        (topic, index, partition): (&Topic, i32, &Partition),
        broker: BrokerId,
        is_unclean: bool,
    ) -> Option<PartitionChangeRecord> {
        let is_concerned = partition.isr.contains(&broker)
            || partition.leader == Some(broker)
            || (is_unclean && partition.elr.contains(&broker));
        if !is_concerned {
            return None;
        }
        let mut target = Target::of(partition);
        self.shrink(&mut target, topic, partition, broker, is_unclean);
        let serves = |id: &BrokerId| *id != broker && self.may_lead(partition, *id);
        if !target.leader.is_some_and(|leader| serves(&leader)) {
            self.elect(&mut target, topic, partition, serves);
        }
        target.record(topic.id, index, partition)
    }

    /// A leader for a partition that has none, of those that have it in an online directory now.
    pub fn finds_leader(
        &self,
        (topic, index, partition): (&Topic, i32, &Partition),
    ) -> PartitionChangeRecord {
        let mut target = Target::of(partition);
        if target.leader.is_none() {
            let serves = |id: &BrokerId| self.may_lead(partition, *id);
            self.elect(&mut target, topic, partition, serves);
        }
        let found = target.record(topic.id, index, partition);
        found.unwrap_or_else(|| unchanged(topic.id, index))
    }

    fn may_lead(&self, partition: &Partition, broker: BrokerId) -> bool {
        is_active(self.image, broker) && self.image.has_online_replica(partition, broker)
    }

    /// `broker` serves again: it leads where nobody could.
    pub fn returns(&self, broker: BrokerId) -> impl Iterator<Item = PartitionChangeRecord> {
        self.partitions().filter_map(move |(topic, index, partition)| {
            if partition.leader.is_some() || !partition.replicas.contains(&broker) {
                return None;
            }
            let mut target = Target::of(partition);
            let online = self.image.broker(broker).map_or(&[] as &[Uuid], |node| &node.log_dirs);
            let serves = |id: &BrokerId| match *id == broker {
                true => partition.is_in(broker, online),
                false => self.may_lead(partition, *id),
            };
            self.elect(&mut target, topic, partition, serves);
            target.record(topic.id, index, partition)
        })
    }

    /// `broker` is back, with the directories `online`, and serves at once: what it leads gets a new
    /// leader epoch as on any return, so that readers of records that an unclean stop has lost
    /// notice (KIP-320).
    pub fn restarts(
        &self,
        broker: BrokerId,
        online: &[Uuid],
    ) -> impl Iterator<Item = PartitionChangeRecord> {
        self.partitions().filter_map(move |(topic, index, partition)| {
            let is_concerned = match partition.leader {
                // What it has of it, it has without that directory.
                _ if !partition.is_in(broker, online) => {
                    return self.without((topic, index, partition), broker, false);
                }
                None if partition.isr.contains(&broker) => true,
                // It left in order, as the last one: it is eligible still.
                None if partition.replicas.contains(&broker) => {
                    let mut target = Target::of(partition);
                    let serves = |id: &BrokerId| *id == broker || self.may_lead(partition, *id);
                    self.elect(&mut target, topic, partition, serves);
                    return target.record(topic.id, index, partition);
                }
                None => false,
                Some(leader) => leader == broker,
            };
            let record =
                || PartitionChangeRecord { leader: broker.0, ..unchanged(topic.id, index) };
            is_concerned.then(record)
        })
    }

    /// Whether `broker` leads any partition.
    pub fn leads(&self, broker: BrokerId) -> bool {
        self.partitions().any(|(_, _, partition)| partition.leader == Some(broker))
    }

    fn partitions(&self) -> impl Iterator<Item = (&Topic, i32, &Partition)> {
        self.image
            .topics()
            .iter()
            .flat_map(|topic| topic.partitions.iter().map(|(index, it)| (&**topic, *index, &**it)))
    }

    fn has_elr(&self) -> bool {
        self.image.feature(ELR_FEATURE) > 0
    }

    fn shrink(
        &self,
        target: &mut Target,
        topic: &Topic,
        now: &Partition,
        broker: BrokerId,
        is_unclean: bool,
    ) {
        let mut isr = now.isr.clone();
        isr.retain(|id| *id != broker);
        if !self.has_elr() {
            // Its last member keeps its place: nobody else has the data.
            if !isr.is_empty() {
                target.isr = isr;
            }
            return;
        }
        let own = self.image.topic_configs(&topic.name).map(|own| &**own);
        let enough = self.rules.min_insync_replicas(self.image, own).min(now.replicas.len());
        if isr.len() >= enough {
            target.elr.clear();
            target.last_known_elr.clear();
        } else {
            for id in &now.isr {
                if !target.elr.contains(id) {
                    target.elr.push(*id);
                }
            }
            target.elr.retain(|id| !isr.contains(id) && (!is_unclean || *id != broker));
        }
        if isr.is_empty() && now.last_known_elr.is_empty() {
            target.last_known_elr = now.leader.into_iter().collect();
        }
        target.isr = isr;
    }

    /// In this order: in sync, eligible, the last known leader, and where the topic allows it
    /// any replica. The last two may lose records, so the leader recovers first.
    fn elect(
        &self,
        target: &mut Target,
        topic: &Topic,
        now: &Partition,
        serves: impl Fn(&BrokerId) -> bool,
    ) {
        let first =
            |of: &[BrokerId]| now.replicas.iter().copied().find(|id| of.contains(id) && serves(id));
        if let Some(leader) = first(&target.isr).or_else(|| first(&target.elr)) {
            return target.elect(leader, target.is_recovering);
        }
        let own = self.image.topic_configs(&topic.name).map(|own| &**own);
        let last_known = match target.isr.is_empty() && target.elr.is_empty() {
            true => first(&target.last_known_elr),
            false => None,
        };
        let any = || match self.rules.is_unclean_election_enabled(self.image, own) {
            true => first(&now.replicas),
            false => None,
        };
        match last_known.or_else(any) {
            Some(leader) => target.elect(leader, true),
            None => target.leader = None,
        }
    }
}

/// A directory id that stands for something else than a directory (Kafka's `DirectoryId`).
pub(super) fn is_reserved_directory(id: Uuid) -> bool {
    id.as_u128() < 100
}
