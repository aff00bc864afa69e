//! What a fresh cluster's metadata log begins with.

use std::collections::BTreeMap;

use super::request::RegisterBroker;
use crate::common::Offset;
use crate::machine::{Batch, Record, Write};
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

pub const METADATA_FEATURE: &str = "metadata.version";
pub const ELR_FEATURE: &str = "eligible.leader.replicas.version";
pub const GROUP_FEATURE: &str = "group.version";
/// All brokers must agree on it while [`ELR_FEATURE`] is on.
pub(super) const MIN_ISR: &str = "min.insync.replicas";

/// `min.insync.replicas` of all brokers (an empty name) or of one; `None` removes it.
pub(super) fn min_isr_record(name: &str, value: Option<String>) -> MetadataRecord {
    let config = ConfigRecord {
        resource_type: ConfigKind::Broker as i8,
        resource_name: name.into(),
        name: MIN_ISR.into(),
        value: value.map(Into::into),
    };
    config.into()
}

/// Said once: what brokers register with and what a fresh cluster finalizes. The metadata
/// version stands first, since it says how to read the rest. Levels are those of a fresh
/// Kafka 4.4.0; its other features (share, streams, transaction) follow with their
/// coordinators.
pub const FEATURES: &[Feature] = &[
    Feature { name: METADATA_FEATURE, min: 7, max: 33, level: 33 },
    Feature { name: ELR_FEATURE, min: 0, max: 1, level: 1 },
    Feature { name: GROUP_FEATURE, min: 0, max: 1, level: 1 },
];

/// Finalized levels by the names of [`FEATURES`]; one that is not there is at level 0.
pub type Levels = BTreeMap<&'static str, i16>;

/// Those that a cluster begins with when nobody said others.
pub fn fresh_levels() -> Levels {
    FEATURES.iter().map(|feature| (feature.name, feature.level)).collect()
}

/// The first records of a fresh single-node cluster, from offset 0 on: the broker's own
/// registration last, and serving at once.
/// - `min_insync_replicas`: the static value; Kafka makes it the cluster's dynamic one where
///   eligible leader replicas count (KIP-966), since all brokers must agree on it then.
pub fn bootstrap(
    broker: &RegisterBroker,
    min_insync_replicas: i32,
    levels: &Levels,
) -> Vec<MetadataRecord> {
    let level = |feature: &Feature| levels.get(feature.name).copied().filter(|level| *level > 0);
    let record = |(feature, level): (&Feature, i16)| {
        FeatureLevelRecord { name: feature.name.into(), feature_level: level }.into()
    };
    let finalized = FEATURES.iter().filter_map(|feature| Some((feature, level(feature)?)));
    let mut records: Vec<MetadataRecord> = finalized.map(record).collect();
    if levels.get(ELR_FEATURE).is_some_and(|level| *level > 0) {
        records.push(min_isr_record("", Some(min_insync_replicas.to_string())));
    }
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
        write: Write::Plain,
        records: records.iter().map(Record::encode).collect(),
        timestamp_ms: now_ms,
    }
}
