//! How each record changes the image. Records are committed and were decided on the same image,
//! so one that does not fit is a broken log, never a client's mistake.

use std::sync::Arc;

use uuid::Uuid;

use super::image::{
    Broker, ConfigKind, ConfigResource, Endpoint, FeatureRange, Image, Partition, ProducerIdBlock,
    Topic,
};
use crate::common::{BrokerId, LeaderEpoch, TopicId};
use crate::machine::Position;
use crate::protocol::records::metadata as records;
use records::MetadataRecord;

/// `PartitionChangeRecord.Leader` when the leader stays.
const LEADER_UNCHANGED: i32 = -2;
/// Leader of a partition that has none.
pub(super) const NO_LEADER: i32 = -1;

impl Image {
    /// Applies the record that stands at `at` of the metadata log. Cost: O(log n).
    pub fn apply(&mut self, record: &MetadataRecord, at: Position) {
        crate::invariant!(at.0 >= self.end_offset, "{at:?} is before {}", self.end_offset);
        self.apply_unplaced(record);
        self.end_offset = at.0 + 1;
    }

    /// Applies a record of a snapshot, which has no offset of its own.
    pub fn apply_unplaced(&mut self, record: &MetadataRecord) {
        match record {
            MetadataRecord::RegisterBroker(record) => self.register(record),
            MetadataRecord::UnregisterBroker(record) => {
                self.broker_of(record.broker_id, record.broker_epoch);
                self.brokers.remove(&BrokerId(record.broker_id));
            }
            MetadataRecord::FenceBroker(record) => {
                self.broker_of(record.id, record.epoch).is_fenced = true;
            }
            MetadataRecord::UnfenceBroker(record) => {
                self.broker_of(record.id, record.epoch).is_fenced = false;
            }
            MetadataRecord::BrokerRegistrationChange(record) => self.change_registration(record),
            MetadataRecord::Topic(record) => self.add_topic(record),
            MetadataRecord::RemoveTopic(record) => self.remove_topic(TopicId(record.topic_id)),
            MetadataRecord::Partition(record) => {
                let partition = Arc::new(partition_of(record));
                let topic = self.topic_of(record.topic_id, record.partition_id);
                topic.partitions.insert(record.partition_id, partition);
            }
            MetadataRecord::PartitionChange(record) => {
                let topic = self.topic_of(record.topic_id, record.partition_id);
                let partition = topic.partitions.get_mut(&record.partition_id);
                crate::invariant!(partition.is_some(), "{record:?} of an unknown partition");
                partition.into_iter().for_each(|it| change(Arc::make_mut(it), record));
            }
            MetadataRecord::Config(record) => self.configure(record),
            MetadataRecord::FeatureLevel(record) => {
                match record.feature_level {
                    0 => self.features.remove(&record.name),
                    level => self.features.insert(record.name.clone(), level),
                };
            }
            MetadataRecord::ProducerIds(record) => {
                self.producer_ids = Some(ProducerIdBlock {
                    broker: BrokerId(record.broker_id),
                    broker_epoch: record.broker_epoch,
                    next: record.next_producer_id,
                });
            }
            MetadataRecord::NoOp(_) => {}
        }
    }

    fn register(&mut self, record: &records::RegisterBrokerRecord) {
        let id = BrokerId(record.broker_id);
        let endpoint = |it: &records::BrokerEndpoint| Endpoint {
            name: it.name.clone(),
            host: it.host.clone(),
            port: it.port,
            security_protocol: it.security_protocol,
        };
        let feature = |it: &records::BrokerFeature| FeatureRange {
            name: it.name.clone(),
            min: it.min_supported_version,
            max: it.max_supported_version,
        };
        let broker = Broker {
            id,
            epoch: record.broker_epoch,
            incarnation: record.incarnation_id,
            endpoints: record.end_points.iter().map(endpoint).collect(),
            features: record.features.iter().map(feature).collect(),
            rack: record.rack.clone(),
            is_fenced: record.fenced,
            in_controlled_shutdown: record.in_controlled_shutdown,
            log_dirs: record.log_dirs.clone(),
            cordoned_log_dirs: record.cordoned_log_dirs.clone(),
        };
        self.brokers.insert(id, Arc::new(broker));
    }

    fn change_registration(&mut self, record: &records::BrokerRegistrationChangeRecord) {
        let broker = self.broker_of(record.broker_id, record.broker_epoch);
        match record.fenced {
            0 => {}
            change => broker.is_fenced = change > 0,
        }
        if record.in_controlled_shutdown != 0 {
            broker.in_controlled_shutdown = record.in_controlled_shutdown > 0;
        }
        if !record.log_dirs.is_empty() {
            broker.log_dirs.clone_from(&record.log_dirs);
        }
        if record.cordoned_log_dirs.is_some() {
            broker.cordoned_log_dirs.clone_from(&record.cordoned_log_dirs);
        }
    }

    fn add_topic(&mut self, record: &records::TopicRecord) {
        let id = TopicId(record.topic_id);
        let name: Arc<str> = record.name.clone();
        crate::invariant!(!self.topics.ids.contains_key(&name), "topic {name} is created twice");
        crate::invariant!(!self.topics.by_id.contains_key(&id), "topic id {id} is given twice");
        let topic = Topic { name: name.clone(), id, partitions: Default::default() };
        self.topics.ids.insert(name, id);
        self.topics.by_id.insert(id, Arc::new(topic));
    }

    /// Its partitions go with it, and its configs.
    fn remove_topic(&mut self, id: TopicId) {
        let topic = self.topics.by_id.remove(&id);
        crate::invariant!(topic.is_some(), "unknown topic {id} is removed");
        if let Some(topic) = topic {
            self.topics.ids.remove(&topic.name);
            self.configs.remove(&ConfigResource::topic(topic.name.clone()));
        }
    }

    fn configure(&mut self, record: &records::ConfigRecord) {
        let kind = ConfigKind::from_number(record.resource_type);
        crate::invariant!(kind.is_some(), "{record:?} is for an unknown kind of resource");
        let Some(kind) = kind else { return };
        let resource = ConfigResource { kind, name: record.resource_name.clone() };
        let mut configs = self.configs.get(&resource).cloned().unwrap_or_default();
        let entries = Arc::make_mut(&mut configs);
        match &record.value {
            Some(value) => entries.insert(record.name.to_string(), value.to_string()),
            None => entries.remove(&*record.name),
        };
        if configs.is_empty() {
            self.configs.remove(&resource);
        } else {
            self.configs.insert(resource, configs);
        }
    }

    fn broker_of(&mut self, id: i32, epoch: i64) -> &mut Broker {
        match self.brokers.get_mut(&BrokerId(id)) {
            Some(broker) if broker.epoch == epoch => Arc::make_mut(broker),
            found => crate::common::broken_invariant(
                concat!(file!(), ":", line!()),
                "a record names a registered broker",
                &format!("broker {id} with epoch {epoch}, found {found:?}"),
            ),
        }
    }

    fn topic_of(&mut self, id: Uuid, partition: i32) -> &mut Topic {
        match self.topics.by_id.get_mut(&TopicId(id)) {
            Some(topic) => Arc::make_mut(topic),
            None => crate::common::broken_invariant(
                concat!(file!(), ":", line!()),
                "a record names a known topic",
                &format!("partition {partition} of topic id {}", TopicId(id)),
            ),
        }
    }
}

fn partition_of(record: &records::PartitionRecord) -> Partition {
    let mut partition = Partition {
        replicas: ids(&record.replicas),
        isr: ids(&record.isr),
        removing_replicas: ids(&record.removing_replicas),
        adding_replicas: ids(&record.adding_replicas),
        leader: leader(record.leader),
        leader_epoch: LeaderEpoch(record.leader_epoch),
        partition_epoch: record.partition_epoch,
        is_recovering: record.leader_recovery_state == 1,
        directories: record.directories.clone(),
        elr: ids(record.eligible_leader_replicas.as_deref().unwrap_or_default()),
        last_known_elr: ids(record.last_known_elr.as_deref().unwrap_or_default()),
    };
    // Records before version 1 name no directories.
    partition.directories.resize(partition.replicas.len(), Uuid::nil());
    partition
}

/// Every change counts the partition epoch; one that names a leader, the same one included,
/// counts the leader epoch too.
fn change(partition: &mut Partition, record: &records::PartitionChangeRecord) {
    let set = |field: &mut Vec<BrokerId>, new: &Option<Vec<i32>>| {
        if let Some(new) = new {
            *field = ids(new);
        }
    };
    set(&mut partition.isr, &record.isr);
    set(&mut partition.replicas, &record.replicas);
    set(&mut partition.removing_replicas, &record.removing_replicas);
    set(&mut partition.adding_replicas, &record.adding_replicas);
    set(&mut partition.elr, &record.eligible_leader_replicas);
    set(&mut partition.last_known_elr, &record.last_known_elr);
    if let Some(directories) = &record.directories {
        partition.directories.clone_from(directories);
    }
    partition.directories.resize(partition.replicas.len(), Uuid::nil());
    if record.leader != LEADER_UNCHANGED {
        partition.leader = leader(record.leader);
        partition.leader_epoch = LeaderEpoch(partition.leader_epoch.0 + 1);
    }
    if record.leader_recovery_state != -1 {
        partition.is_recovering = record.leader_recovery_state == 1;
    }
    partition.partition_epoch += 1;
}

fn leader(id: i32) -> Option<BrokerId> {
    (id != NO_LEADER).then_some(BrokerId(id))
}

fn ids(numbers: &[i32]) -> Vec<BrokerId> {
    numbers.iter().copied().map(BrokerId).collect()
}
