//! CreateTopics: the checks in Kafka's order, each topic alone.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::error::{AssignmentFault, ConfigFault, PlacementFault, Refusal, RequestFault, TooLarge};
use super::machine::{Cx, Plan};
use super::request::{CreateTopicResult, CreateTopics, CreatedTopic, NewTopic};
use super::world::Proposed;
use super::{PartitionsFault, names, placement};
use crate::common::{BrokerId, TopicId, TopicName, format_uuid};
use crate::env::Random;
use crate::metadata::{ConfigKind, ConfigResource, Configs, Image};
use crate::protocol::records::metadata::{ConfigRecord, MetadataRecord, TopicRecord};

/// Most partitions that one request may add.
pub(super) const PARTITIONS_MAX: i64 = 10_000;
/// The metadata log, which is no topic that clients can make.
const METADATA_TOPIC: &str = "__cluster_metadata";
/// Longest config value, in bytes (Kafka's `Short.MAX_VALUE`).
pub(super) const CONFIG_VALUE_BYTES_MAX: usize = 32_767;

pub(super) fn plan(image: &Image, ask: &CreateTopics, cx: &Cx<'_>) -> Plan<Vec<CreateTopicResult>> {
    let random = Random::seeded(cx.seed);
    let (mut seen, mut twice) = (BTreeSet::new(), BTreeSet::new());
    for topic in &ask.topics {
        if !seen.insert(&topic.name) {
            twice.insert(&topic.name);
        }
    }
    let once = ask.topics.iter().filter(|topic| !twice.contains(&topic.name));
    let total: i64 = once.map(|topic| partitions_asked(topic, cx)).sum();
    if total > PARTITIONS_MAX {
        return Plan::of(refuse_all(ask, TooLarge::Partitions));
    }
    let mut plan = Plan::of(Vec::with_capacity(seen.len()));
    for topic in &ask.topics {
        if !seen.remove(&topic.name) {
            continue; // a duplicate is answered once
        }
        let outcome = if twice.contains(&topic.name) {
            Err(RequestFault::DuplicateTopic.into())
        } else {
            create(image, topic, cx, &random)
        };
        let outcome = outcome.map(|(created, records)| {
            plan.records.extend(records);
            created
        });
        plan.answer.push(CreateTopicResult { name: topic.name.clone(), outcome });
    }
    if !plan.fits(cx) {
        return Plan::of(refuse_all(ask, TooLarge::Batch));
    }
    if ask.validate_only {
        plan.records.clear();
    }
    plan
}

fn refuse_all(ask: &CreateTopics, why: TooLarge) -> Vec<CreateTopicResult> {
    let refused = |topic: &NewTopic| CreateTopicResult {
        name: topic.name.clone(),
        outcome: Err(why.clone().into()),
    };
    ask.topics.iter().map(refused).collect()
}

fn partitions_asked(topic: &NewTopic, cx: &Cx<'_>) -> i64 {
    match topic.partitions {
        _ if !topic.assignments.is_empty() => topic.assignments.len() as i64,
        -1 => cx.world.num_partitions.into(),
        count => count.max(0).into(),
    }
}

type Created = (CreatedTopic, Vec<MetadataRecord>);

fn create(
    image: &Image,
    topic: &NewTopic,
    cx: &Cx<'_>,
    random: &Random,
) -> Result<Created, Refusal> {
    let name = &topic.name;
    if **name == *METADATA_TOPIC {
        return Err(RequestFault::MetadataTopic(name.clone()).into());
    }
    names::check(name)?;
    if image.topic(name).is_some() {
        return Err(Refusal::TopicExists(name.clone()));
    }
    names::check_collision(name, image.topics())?;
    let configs = settings(image, topic, cx)?;
    let partitions = if topic.assignments.is_empty() {
        placed(image, topic, cx, random)?
    } else {
        assigned(image, topic)?
    };
    let id = fresh_id(image, random);
    let created = CreatedTopic {
        id,
        partitions: partitions.len() as i32,
        replication_factor: partitions.first().map_or(0, Vec::len) as i16,
        configs: cx.world.rules.describe_topic(image, &configs),
    };
    Ok((created, records(image, name, id, configs, partitions)?))
}

fn records(
    image: &Image,
    name: &TopicName,
    id: TopicId,
    configs: Configs,
    partitions: Vec<Vec<BrokerId>>,
) -> Result<Vec<MetadataRecord>, Refusal> {
    let mut records = Vec::with_capacity(1 + configs.len() + partitions.len());
    records.push(TopicRecord { name: name.clone(), topic_id: id.0 }.into());
    records.extend(configs.into_iter().map(|(key, value)| {
        MetadataRecord::from(ConfigRecord {
            resource_type: ConfigKind::Topic as i8,
            resource_name: name.clone(),
            name: key.into(),
            value: Some(value.into()),
        })
    }));
    for (index, replicas) in partitions.into_iter().enumerate() {
        let copies = replicas.len() as i32;
        match placement::new_partition(image, id, index as i32, replicas) {
            Some(record) => records.push(record),
            None => return Err(PlacementFault::NoneActive(copies).into()),
        }
    }
    Ok(records)
}

/// The topic's own settings, where the last of two values for a key counts.
fn settings(image: &Image, topic: &NewTopic, cx: &Cx<'_>) -> Result<Configs, Refusal> {
    let nulls: Vec<_> =
        topic.configs.iter().filter(|(_, value)| value.is_none()).map(|(key, _)| &**key).collect();
    let mut settings = Configs::new();
    let mut set = Vec::new();
    for (key, value) in &topic.configs {
        let Some(value) = value else { continue };
        if value.len() > CONFIG_VALUE_BYTES_MAX {
            return Err(ConfigFault::TooLong.into());
        }
        settings.insert(key.clone(), value.clone());
        set.push(key.clone());
    }
    if !nulls.is_empty() {
        return Err(ConfigFault::NullOnCreate(nulls.join(",")).into());
    }
    let proposed = Proposed { settings: &settings, set: &set, deleted: &[], image };
    cx.world.rules.check(&ConfigResource::topic(topic.name.clone()), &proposed)?;
    Ok(settings)
}

fn placed(
    image: &Image,
    topic: &NewTopic,
    cx: &Cx<'_>,
    random: &Random,
) -> Result<Vec<Vec<BrokerId>>, Refusal> {
    if topic.replication_factor < -1 || topic.replication_factor == 0 {
        return Err(PlacementFault::NotPositive.into());
    }
    if topic.partitions < -1 || topic.partitions == 0 {
        return Err(PartitionsFault::NotPositive.into());
    }
    let or_default = |asked: i32, default: i32| if asked == -1 { default } else { asked };
    let partitions = or_default(topic.partitions, cx.world.num_partitions);
    let replication_factor =
        or_default(topic.replication_factor.into(), cx.world.default_replication_factor);
    Ok(placement::place(image, 0, partitions, replication_factor, random)?)
}

fn assigned(image: &Image, topic: &NewTopic) -> Result<Vec<Vec<BrokerId>>, Refusal> {
    if topic.replication_factor != -1 {
        return Err(RequestFault::AssignmentAndReplication.into());
    }
    if topic.partitions != -1 {
        return Err(RequestFault::AssignmentAndPartitions.into());
    }
    let mut partitions = BTreeMap::new();
    let mut expected = None;
    for (index, replicas) in &topic.assignments {
        if partitions.contains_key(index) {
            return Err(AssignmentFault::Twice(*index).into());
        }
        placement::check_manual(image, replicas, expected)?;
        expected = Some(replicas.len());
        if !replicas.iter().any(|id| placement::is_active(image, *id)) {
            return Err(AssignmentFault::AllFenced(*index).into());
        }
        partitions.insert(*index, replicas.clone());
    }
    if partitions.keys().zip(0..).any(|(index, expected)| *index != expected) {
        return Err(AssignmentFault::Gap.into());
    }
    Ok(partitions.into_values().collect())
}

/// Random; as Kafka, none whose text starts with a dash (it would look like an option), and none
/// of those with a meaning of their own (0 and 1).
fn fresh_id(image: &Image, random: &Random) -> TopicId {
    loop {
        let id = TopicId(random.uuid());
        let is_usable = id.0 != Uuid::from_u128(1) && !format_uuid(id.0).starts_with('-');
        if id != TopicId::NONE && is_usable && image.topics().by_id(id).is_none() {
            return id;
        }
    }
}
