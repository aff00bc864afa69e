//! CreatePartitions: topics only grow; old partitions stay where they are.

use std::collections::BTreeSet;

use super::create_topics::PARTITIONS_MAX;
use super::error::{
    AssignmentFault, PartitionsFault, PlacementFault, Refusal, RequestFault, TooLarge,
};
use super::machine::{Cx, Plan};
use super::placement;
use super::request::{CreatePartitions, MorePartitions, TopicResult};
use crate::common::BrokerId;
use crate::env::Random;
use crate::metadata::{Image, Topic};
use crate::protocol::records::metadata::MetadataRecord;

pub(super) fn plan(image: &Image, ask: &CreatePartitions, cx: &Cx<'_>) -> Plan<Vec<TopicResult>> {
    let random = Random::seeded(cx.seed);
    let (mut seen, mut twice) = (BTreeSet::new(), BTreeSet::new());
    for topic in &ask.topics {
        if !seen.insert(&topic.name) {
            twice.insert(&topic.name);
        }
    }
    let added = |topic: &MorePartitions| {
        image.topic(&topic.name).map_or(0, |it| topic.count.saturating_sub(it.partition_count()))
    };
    let once = ask.topics.iter().filter(|topic| !twice.contains(&topic.name));
    let total: i64 = once.map(|topic| i64::from(added(topic).max(0))).sum();
    if total > PARTITIONS_MAX {
        return Plan::of(refuse_all(ask, TooLarge::AdditionalPartitions));
    }
    let mut plan = Plan::of(Vec::with_capacity(seen.len()));
    for topic in &ask.topics {
        if !seen.remove(&topic.name) {
            continue; // a duplicate is answered once
        }
        let outcome = if twice.contains(&topic.name) {
            Err(RequestFault::DuplicateTopic.into())
        } else {
            grow(image, topic, &random)
        };
        let outcome = outcome.map(|records| plan.records.extend(records));
        plan.answer.push(TopicResult { name: topic.name.clone(), outcome });
    }
    if !plan.fits(cx) {
        return Plan::of(refuse_all(ask, TooLarge::Batch));
    }
    if ask.validate_only {
        plan.records.clear();
    }
    plan
}

fn refuse_all(ask: &CreatePartitions, why: TooLarge) -> Vec<TopicResult> {
    let refused = |topic: &MorePartitions| TopicResult {
        name: topic.name.clone(),
        outcome: Err(why.clone().into()),
    };
    ask.topics.iter().map(refused).collect()
}

fn grow(
    image: &Image,
    ask: &MorePartitions,
    random: &Random,
) -> Result<Vec<MetadataRecord>, Refusal> {
    let topic = image.topic(&ask.name).ok_or(Refusal::UnknownTopic)?;
    let now = topic.partition_count();
    if ask.count == now {
        return Err(PartitionsFault::Same(now).into());
    }
    if ask.count < now {
        let name = ask.name.clone();
        return Err(PartitionsFault::NoIncrease { name, now, asked: ask.count }.into());
    }
    let added = ask.count - now;
    let partitions = match &ask.assignments {
        Some(assignments) => assigned(image, topic, added, assignments)?,
        None => placement::place(image, now, added, topic.replication_factor() as i32, random)?,
    };
    let mut records = Vec::with_capacity(partitions.len());
    for (index, replicas) in (now..).zip(partitions) {
        let copies = replicas.len() as i32;
        match placement::new_partition(image, topic.id, index, replicas) {
            Some(record) => records.push(record),
            None => return Err(PlacementFault::NoneActive(copies).into()),
        }
    }
    Ok(records)
}

fn assigned(
    image: &Image,
    topic: &Topic,
    added: i32,
    assignments: &[Vec<BrokerId>],
) -> Result<Vec<Vec<BrokerId>>, AssignmentFault> {
    if assignments.len() as i64 != i64::from(added) {
        return Err(AssignmentFault::Count { asked: added, given: assignments.len() });
    }
    for (index, replicas) in (topic.partition_count()..).zip(assignments) {
        placement::check_manual(image, replicas, Some(topic.replication_factor()))?;
        if !replicas.iter().any(|id| placement::is_active(image, *id)) {
            return Err(AssignmentFault::AllFenced(index));
        }
    }
    Ok(assignments.to_vec())
}
