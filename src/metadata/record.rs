//! The image as records (a snapshot), and metadata records as a journal keeps them.

use bytes::Bytes;

use super::apply::NO_LEADER;
use super::image::{Broker, Endpoint, FeatureRange, Image, Partition, Topic};
use crate::common::BrokerId;
use crate::machine::{JournalRecord, Record};
use crate::protocol::records::metadata as records;
use records::MetadataRecord;

/// The feature whose record stands first, since it says which versions the others have.
const METADATA_VERSION: &str = "metadata.version";

impl Image {
    /// Records that make this image from an empty one, `end_offset` aside: features (the
    /// metadata version first), brokers, topics with their partitions, configs, producer ids.
    pub fn to_records(&self) -> impl Iterator<Item = MetadataRecord> {
        let level = |(name, level): (&std::sync::Arc<str>, i16)| {
            MetadataRecord::FeatureLevel(records::FeatureLevelRecord {
                name: name.clone(),
                feature_level: level,
            })
        };
        let first = self.features().filter(|(name, _)| ***name == *METADATA_VERSION).map(level);
        let others = self.features().filter(|(name, _)| ***name != *METADATA_VERSION).map(level);
        let brokers = self.brokers().map(|it| MetadataRecord::RegisterBroker(it.to_record()));
        let topics = self.topics().iter().flat_map(|topic| topic.to_records());
        let configs = self.configured().flat_map(|(resource, entries)| {
            entries.iter().map(|(name, value)| {
                MetadataRecord::Config(records::ConfigRecord {
                    resource_type: resource.kind as i8,
                    resource_name: resource.name.clone(),
                    name: name.as_str().into(),
                    value: Some(value.as_str().into()),
                })
            })
        });
        let producer_ids = self.producer_ids.map(|block| {
            MetadataRecord::ProducerIds(records::ProducerIdsRecord {
                broker_id: block.broker.0,
                broker_epoch: block.broker_epoch,
                next_producer_id: block.next,
            })
        });
        first.chain(others).chain(brokers).chain(topics).chain(configs).chain(producer_ids)
    }
}

impl Broker {
    /// Its registration with all changes since.
    pub fn to_record(&self) -> records::RegisterBrokerRecord {
        let endpoint = |it: &Endpoint| records::BrokerEndpoint {
            name: it.name.clone(),
            host: it.host.clone(),
            port: it.port,
            security_protocol: it.security_protocol,
        };
        let feature = |it: &FeatureRange| records::BrokerFeature {
            name: it.name.clone(),
            min_supported_version: it.min,
            max_supported_version: it.max,
        };
        records::RegisterBrokerRecord {
            broker_id: self.id.0,
            is_migrating_zk_broker: false,
            incarnation_id: self.incarnation,
            broker_epoch: self.epoch,
            end_points: self.endpoints.iter().map(endpoint).collect(),
            features: self.features.iter().map(feature).collect(),
            rack: self.rack.clone(),
            fenced: self.is_fenced,
            in_controlled_shutdown: self.in_controlled_shutdown,
            log_dirs: self.log_dirs.clone(),
            cordoned_log_dirs: self.cordoned_log_dirs.clone(),
        }
    }
}

impl Topic {
    /// The topic, then its partitions by index.
    pub fn to_records(&self) -> impl Iterator<Item = MetadataRecord> {
        let topic = records::TopicRecord { name: self.name.clone(), topic_id: self.id.0 };
        let partition = |(index, it): (&i32, &std::sync::Arc<Partition>)| {
            MetadataRecord::Partition(it.to_record(self.id.0, *index))
        };
        std::iter::once(MetadataRecord::Topic(topic)).chain(self.partitions.iter().map(partition))
    }
}

impl Partition {
    /// Its record as partition `index` of the topic with `topic_id`.
    pub fn to_record(&self, topic_id: uuid::Uuid, index: i32) -> records::PartitionRecord {
        let some = |ids: &[BrokerId]| (!ids.is_empty()).then(|| numbers(ids));
        records::PartitionRecord {
            partition_id: index,
            topic_id,
            replicas: numbers(&self.replicas),
            isr: numbers(&self.isr),
            removing_replicas: numbers(&self.removing_replicas),
            adding_replicas: numbers(&self.adding_replicas),
            leader: self.leader.map_or(NO_LEADER, |id| id.0),
            leader_recovery_state: i8::from(self.is_recovering),
            leader_epoch: self.leader_epoch.0,
            partition_epoch: self.partition_epoch,
            directories: self.directories.clone(),
            eligible_leader_replicas: some(&self.elr),
            last_known_elr: some(&self.last_known_elr),
        }
    }
}

fn numbers(ids: &[BrokerId]) -> Vec<i32> {
    ids.iter().map(|id| id.0).collect()
}

/// In the log a metadata record is a value without a key.
impl Record for MetadataRecord {
    fn encode(&self) -> JournalRecord {
        match MetadataRecord::encode(self) {
            Ok(value) => JournalRecord { key: None, value: Some(value) },
            Err(error) => crate::common::broken_invariant(
                concat!(file!(), ":", line!()),
                "whoever decides a record keeps its texts within their lengths",
                &format!("{error}: {self:?}"),
            ),
        }
    }

    /// An unknown type is an error: metadata that is not understood must not be served.
    fn decode(record: &JournalRecord) -> Result<Option<Self>, String> {
        let value = record.value.as_ref().map_or(&[] as &[u8], Bytes::as_ref);
        MetadataRecord::decode(value).map(Some).map_err(|error| error.to_string())
    }
}
