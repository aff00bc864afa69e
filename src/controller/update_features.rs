//! UpdateFeatures: the finalized levels of features go up or down, all that are asked for or none.

use super::bootstrap::{
    ELR_FEATURE as ELR, FEATURES, METADATA_FEATURE as METADATA, MIN_ISR, min_isr_record,
};
use super::error::{FeatureFault, LevelFault, Refusal};
use super::machine::{Cx, Plan};
use super::request::UpdateFeatures;
use crate::metadata::{ConfigKind, Image};
use crate::protocol::records::metadata::{FeatureLevelRecord, MetadataRecord};

/// Features of Kafka 4.4 beside those served here: their level is 0, and may be set to it.
const NOT_SERVED: &[&str] =
    &["kraft.version", "share.version", "streams.version", "transaction.version"];

/// Levels of the metadata version that change what is written: there is no way back below them.
/// Source: `MetadataVersion` of Kafka 4.4.
const METADATA_CHANGES: &[i16] = &[7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33];

/// Eligible leader replicas need fields of partition records that came with this metadata version.
const ELR_NEEDS_METADATA: i16 = 23;

/// Which way a level may go. The numbers are Kafka's `FeatureUpdate.UpgradeType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    DownSafely,
    DownUnsafely,
}

impl Direction {
    fn of(number: i8) -> Option<Self> {
        Some(match number {
            1 => Self::Up,
            2 => Self::DownSafely,
            3 => Self::DownUnsafely,
            _ => return None,
        })
    }
}

pub(super) fn plan(image: &Image, ask: &UpdateFeatures, cx: &Cx<'_>) -> Plan<Result<(), Refusal>> {
    // Of entries with the same name the last counts, at the place of the first, as in a map.
    let mut updates: Vec<(&str, i16, i8)> = Vec::new();
    for update in &ask.updates {
        let entry = (update.feature.as_str(), update.level, update.upgrade_type);
        match updates.iter_mut().find(|(feature, ..)| *feature == update.feature) {
            Some(same) => *same = entry,
            None => updates.push(entry),
        }
    }
    let proposed = |feature: &str| {
        let asked = updates.iter().find(|(name, ..)| *name == feature);
        asked.map_or(image.feature(feature), |(_, level, _)| *level)
    };
    let mut records = Vec::new();
    for &(feature, level, upgrade_type) in &updates {
        if let Err(fault) = check(image, feature, level, upgrade_type, cx) {
            return Plan::of(Err(fault.into()));
        }
        if feature == ELR && level > 0 && proposed(METADATA) < ELR_NEEDS_METADATA {
            let why = LevelFault::Needs { feature: ELR, level, metadata: ELR_NEEDS_METADATA };
            return Plan::of(Err(invalid(feature, level, why).into()));
        }
        let record = FeatureLevelRecord { name: feature.into(), feature_level: level };
        records.push(record.into());
    }
    if ask.validate_only {
        return Plan::of(Ok(()));
    }
    if updates.iter().any(|(feature, level, _)| *feature == ELR && *level > 0) {
        records.splice(0..0, agreement_on_min_isr(image, cx));
    }
    Plan { records, answer: Ok(()) }
}

fn check(
    image: &Image,
    feature: &str,
    level: i16,
    upgrade_type: i8,
    cx: &Cx<'_>,
) -> Result<(), FeatureFault> {
    let now = image.feature(feature);
    let fail = |why| Err(invalid(feature, level, why));
    let Some(direction) = Direction::of(upgrade_type) else {
        return fail(LevelFault::UnknownType);
    };
    if level < 0 {
        return fail(LevelFault::Negative);
    }
    check_support(image, feature, level, cx).or_else(fail)?;
    if level < now && direction == Direction::Up {
        return fail(LevelFault::DownNotAllowed);
    }
    if level > now && direction != Direction::Up {
        return fail(LevelFault::DownToNewer);
    }
    if feature == METADATA {
        let is_lossy = METADATA_CHANGES.iter().any(|change| (level + 1..=now).contains(change));
        return match (is_lossy, direction) {
            (false, _) => Ok(()),
            (true, Direction::DownUnsafely) => {
                Err(FeatureFault::AcceptedLoss { from: now, to: level })
            }
            (true, _) => Err(FeatureFault::LossyDowngrade { from: now, to: level }),
        };
    }
    if !FEATURES.iter().any(|known| known.name == feature) && !NOT_SERVED.contains(&feature) {
        return fail(LevelFault::UnknownFeature(feature.to_owned()));
    }
    Ok(())
}

/// Whether this controller and every registered broker can run `level`. Who does not know the
/// feature runs level 0 of it.
fn check_support(image: &Image, feature: &str, level: i16, cx: &Cx<'_>) -> Result<(), LevelFault> {
    let own = FEATURES.iter().find(|known| known.name == feature);
    let own = own.map_or((0, 0), |known| (known.min, known.max));
    let local = ("Local controller", cx.world.node_id.0, own);
    let brokers = image.brokers().map(|broker| {
        let range = broker.features.iter().find(|range| *range.name == *feature);
        ("Broker", broker.id.0, range.map_or((0, 0), |range| (range.min, range.max)))
    });
    for (role, id, (min, max)) in std::iter::once(local).chain(brokers) {
        match (min..=max).contains(&level) {
            true => {}
            false if max == 0 => return Err(LevelFault::NotSupported { role, id }),
            false => return Err(LevelFault::OutOfRange { role, id, min, max }),
        }
    }
    Ok(())
}

fn invalid(feature: &str, level: i16, why: LevelFault) -> FeatureFault {
    FeatureFault::Level { feature: feature.to_owned(), level, why }
}

/// Once eligible leader replicas count, all brokers must agree on `min.insync.replicas`: what the
/// cluster has not set becomes this controller's static value, and brokers lose their own.
fn agreement_on_min_isr(image: &Image, cx: &Cx<'_>) -> Vec<MetadataRecord> {
    let sets_it = image
        .configured()
        .filter(|(resource, own)| resource.kind == ConfigKind::Broker && own.contains_key(MIN_ISR));
    let (cluster, brokers): (Vec<_>, Vec<_>) =
        sets_it.map(|(resource, _)| &*resource.name).partition(|name| name.is_empty());
    let mut records = Vec::new();
    if cluster.is_empty() {
        // Of an empty image the static value is all that is left.
        let fixed = cx.world.rules.min_insync_replicas(&Image::default(), None);
        records.push(min_isr_record("", Some(fixed.to_string())));
    }
    records.extend(brokers.into_iter().map(|name| min_isr_record(name, None)));
    records
}
