//! DeleteTopics: by name or by id; what was named twice is not deleted.

use std::collections::{BTreeMap, BTreeSet};

use super::error::{Refusal, RequestFault, TooLarge};
use super::machine::{Cx, Plan};
use super::request::{DeleteTopicResult, DeleteTopics, TopicReference};
use crate::common::{TopicId, TopicName};
use crate::metadata::Image;
use crate::protocol::records::metadata::RemoveTopicRecord;

pub(super) fn plan(image: &Image, ask: &DeleteTopics, cx: &Cx<'_>) -> Plan<Vec<DeleteTopicResult>> {
    let counts = Counts::of(ask);
    let mut answered = BTreeSet::new();
    let mut plan = Plan::of(Vec::new());
    for topic in &ask.topics {
        let key = (topic.name.clone(), topic.id);
        let is_reference = topic.name.is_some() != (topic.id != TopicId::NONE);
        let result = if !cx.world.is_deletion_enabled {
            result(topic, Err(Refusal::DeletionDisabled))
        } else if is_reference && !answered.insert(key) {
            continue; // a duplicate is answered once
        } else if let Some(result) = judge(image, topic, &counts) {
            result
        } else {
            continue;
        };
        if result.outcome.is_ok() {
            plan.records.push(RemoveTopicRecord { topic_id: result.id.0 }.into());
        }
        plan.answer.push(result);
    }
    if !plan.fits(cx) {
        let refused = |topic| result(topic, Err(TooLarge::Batch.into()));
        return Plan::of(ask.topics.iter().map(refused).collect());
    }
    plan
}

/// How often each name and id was given alone.
struct Counts {
    names: BTreeMap<TopicName, usize>,
    ids: BTreeMap<TopicId, usize>,
}

impl Counts {
    fn of(ask: &DeleteTopics) -> Self {
        let mut counts = Self { names: BTreeMap::new(), ids: BTreeMap::new() };
        for topic in &ask.topics {
            match &topic.name {
                Some(name) if topic.id == TopicId::NONE => {
                    *counts.names.entry(name.clone()).or_default() += 1;
                }
                None if topic.id != TopicId::NONE => {
                    *counts.ids.entry(topic.id).or_default() += 1;
                }
                _ => {}
            }
        }
        counts
    }
}

/// `None`: answered with the name that stands for the same topic.
fn judge(image: &Image, topic: &TopicReference, counts: &Counts) -> Option<DeleteTopicResult> {
    let refused = |why: Refusal| Some(result(topic, Err(why)));
    let by =
        |name: &TopicName, id| DeleteTopicResult { name: Some(name.clone()), id, outcome: Ok(()) };
    match &topic.name {
        Some(_) if topic.id != TopicId::NONE => refused(RequestFault::BothNameAndId.into()),
        None if topic.id == TopicId::NONE => refused(RequestFault::NeitherNameNorId.into()),
        Some(name) if counts.names[name] > 1 => refused(RequestFault::DuplicateTopic.into()),
        None if counts.ids[&topic.id] > 1 => refused(RequestFault::DuplicateTopicId.into()),
        Some(name) => match image.topics().id(name) {
            None => refused(Refusal::UnknownTopic),
            Some(id) if counts.ids.contains_key(&id) => Some(DeleteTopicResult {
                outcome: Err(RequestFault::NameAndItsId.into()),
                ..by(name, id)
            }),
            Some(id) => Some(by(name, id)),
        },
        None => match image.topics().by_id(topic.id) {
            None => refused(Refusal::UnknownTopicId),
            Some(found) if counts.names.get(&found.name) == Some(&1) => None,
            Some(found) => Some(by(&found.name, topic.id)),
        },
    }
}

fn result(topic: &TopicReference, outcome: Result<(), Refusal>) -> DeleteTopicResult {
    DeleteTopicResult { name: topic.name.clone(), id: topic.id, outcome }
}
