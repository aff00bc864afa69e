//! What a fresh cluster's metadata log begins with.

use super::request::RegisterBroker;
use crate::common::Offset;
use crate::machine::{Batch, EntryKind, Record};
use crate::metadata::{Broker, ConfigKind, FeatureRange};
use crate::protocol::records::metadata::{ConfigRecord, FeatureLevelRecord, MetadataRecord};

/// A feature of Kafka 4.4 that this version runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feature {
    pub name: &'static str,
    /// Levels that a broker supports.
    pub min: i16,
    pub max: i16,
    /// Finalized in a fresh cluster; 0: left out.
    pub level: i16,
}

impl Feature {
    pub fn range(&self) -> FeatureRange {
        FeatureRange { name: self.name.into(), min: self.min, max: self.max }
    }
}

/// Said once: what brokers register with and what a fresh cluster finalizes. The metadata
/// version stands first, since it says how to read the rest. Levels are those of a fresh
/// Kafka 4.4.0; its other features (share, streams, transaction) follow with their
/// coordinators.
pub const FEATURES: &[Feature] = &[
    Feature { name: "metadata.version", min: 7, max: 33, level: 33 },
    Feature { name: "eligible.leader.replicas.version", min: 0, max: 1, level: 1 },
    Feature { name: "group.version", min: 0, max: 1, level: 1 },
];

/// The first records of a fresh single-node cluster, from offset 0 on: the broker's own
/// registration last, and serving at once.
/// - `min_insync_replicas`: the static value; Kafka makes it the cluster's dynamic one, since all
///   brokers must agree on it once eligible leader replicas count (KIP-966).
pub fn bootstrap(broker: &RegisterBroker, min_insync_replicas: i32) -> Vec<MetadataRecord> {
    let level = |feature: &Feature| {
        FeatureLevelRecord { name: feature.name.into(), feature_level: feature.level }.into()
    };
    let mut records: Vec<MetadataRecord> =
        FEATURES.iter().filter(|feature| feature.level > 0).map(level).collect();
    let min_isr = ConfigRecord {
        resource_type: ConfigKind::Broker as i8,
        resource_name: "".into(),
        name: "min.insync.replicas".into(),
        value: Some(min_insync_replicas.to_string().into()),
    };
    records.push(min_isr.into());
    let registration = Broker {
        id: broker.id,
        epoch: records.len() as Offset,
        incarnation: broker.incarnation,
        endpoints: broker.endpoints.clone(),
        features: broker.features.clone(),
        rack: broker.rack.as_deref().map(Into::into),
        is_fenced: false,
        in_controlled_shutdown: false,
        log_dirs: broker.log_dirs.clone(),
        cordoned_log_dirs: Some(Vec::new()),
    };
    records.push(registration.to_record().into());
    records
}

/// `records` as one batch of the metadata log.
/// - `now_ms`: wall time, in milliseconds since the Unix epoch.
pub fn batch_of(records: &[MetadataRecord], now_ms: i64) -> Batch {
    Batch {
        kind: EntryKind::Plain,
        records: records.iter().map(Record::encode).collect(),
        timestamp_ms: now_ms,
    }
}
