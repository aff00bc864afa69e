//! The coordinator's offset requests: topics are checked against the image, those that are there
//! go to the group's machine.

use std::collections::BTreeMap;

use super::coordinator::{GroupCoordinator, check_group_id, unanswered};
use super::error::{ClientFault, GroupError, NotNow};
use super::machine::{GroupAnswer, GroupRequest};
use super::types::{
    CommitTopic, FetchTopic, FetchedPartition, FetchedTopic, OffsetCommit, OffsetDelete,
    OffsetFetch, TopicOutcome,
};
use crate::common::{TopicId, TopicName};
use crate::coordinator::mismatched;
use crate::metadata::Image;

impl GroupCoordinator {
    /// OffsetCommit: an outcome for each partition; topics that are not there come first, as
    /// Kafka has it. What the group itself refuses, it refuses for every partition that is there.
    pub async fn commit_offsets(&self, mut ask: OffsetCommit) -> Vec<TopicOutcome> {
        let image = self.image();
        let mut outcomes = Vec::new();
        let mut known = Vec::with_capacity(ask.topics.len());
        for topic in std::mem::take(&mut ask.topics) {
            match split_commit(&image, topic, ask.by_topic_id) {
                Ok((is_there, None)) => known.push(is_there),
                Ok((is_there, Some(unknown))) => {
                    outcomes.push(unknown);
                    known.extend(Some(is_there).filter(|topic| !topic.partitions.is_empty()));
                }
                Err(unknown) => outcomes.push(unknown),
            }
        }
        if known.is_empty() {
            return outcomes;
        }
        ask.topics = known;
        let sent: Vec<(TopicId, TopicName, Vec<i32>)> = ask.topics.iter().map(named).collect();
        let answer = self.ask(&ask.group_id.clone(), GroupRequest::Commit(ask)).await;
        let committed = match answer {
            Ok(GroupAnswer::Commit(outcome)) => outcome,
            Ok(other) => mismatched(&other),
            Err(error) => Err(error),
        };
        let committed = committed.unwrap_or_else(|error| {
            let refuse = |(id, name, partitions)| refused(id, name, partitions, &error);
            sent.into_iter().map(refuse).collect()
        });
        merge(outcomes, committed)
    }

    /// OffsetFetch for one group: an entry for each partition asked for, unknown topic ids last.
    pub async fn fetch_offsets(&self, ask: OffsetFetch) -> Result<Vec<FetchedTopic>, GroupError> {
        let image = self.image();
        let (mut asked, mut unknown) = (None, Vec::new());
        if let Some(topics) = ask.topics {
            let mut known = Vec::with_capacity(topics.len());
            for topic in topics {
                match resolve(&image, topic.id, &topic.name, ask.by_topic_id) {
                    Some(name) => known.push(FetchTopic { name, ..topic }),
                    None => unknown.push(unknown_fetch(topic)),
                }
            }
            asked = Some(known);
        }
        let shard = self.shard(&ask.group_id)?;
        let fetch = shard.read(|groups| {
            if let Some(group) = groups.consumer(&ask.group_id) {
                group.check_fetch(&ask.group_id, ask.member_id.as_ref(), ask.member_epoch)?;
            }
            Ok(groups.fetch(&ask.group_id, asked.as_deref(), ask.require_stable))
        });
        let fetched: Result<_, GroupError> =
            fetch.await.map_err(|error| match unanswered(&error) {
                // Consumers before 3.9 do not know the other code here and would give up.
                GroupError::NotNow(NotNow::NotAvailable) => NotNow::NotCoordinator.into(),
                error => error,
            })?;
        let mut fetched = fetched?;
        if ask.by_topic_id && asked.is_none() {
            // What has no id cannot be said.
            fetched.retain_mut(|topic| {
                topic.id = image.topics().id(&topic.name).unwrap_or(TopicId::NONE);
                topic.id != TopicId::NONE
            });
        }
        fetched.extend(unknown);
        Ok(fetched)
    }

    /// OffsetDelete: an outcome for each partition; those that are not there come first.
    pub async fn delete_offsets(
        &self,
        mut ask: OffsetDelete,
    ) -> Result<Vec<TopicOutcome>, GroupError> {
        check_group_id(&ask.group_id)?;
        let image = self.image();
        let (mut outcomes, mut known) = (Vec::new(), Vec::new());
        for (name, partitions) in std::mem::take(&mut ask.topics) {
            let topic = image.topic(&name);
            let is_there = |index: &i32| topic.is_some_and(|t| t.partition(*index).is_some());
            let (there, missing): (Vec<i32>, Vec<i32>) = partitions.into_iter().partition(is_there);
            if !missing.is_empty() {
                let error = ClientFault::UnknownTopicOrPartition.into();
                outcomes.push(refused(TopicId::NONE, name.clone(), missing, &error));
            }
            if !there.is_empty() {
                known.push((name, there));
            }
        }
        ask.topics = known;
        match self.ask(&ask.group_id.clone(), GroupRequest::DeleteOffsets(ask)).await? {
            GroupAnswer::DeleteOffsets(deleted) => Ok(merge(outcomes, deleted?)),
            other => mismatched(&other),
        }
    }
}

/// The name of a topic that was asked for by id or by name; `None` for an id that no topic has.
fn resolve(image: &Image, id: TopicId, name: &TopicName, by_id: bool) -> Option<TopicName> {
    if !by_id {
        return Some(name.clone());
    }
    image.topics().by_id(id).map(|topic| topic.name.clone())
}

/// Parts the partitions that are there from those that are not. An error: none is.
fn split_commit(
    image: &Image,
    topic: CommitTopic,
    by_id: bool,
) -> Result<(CommitTopic, Option<TopicOutcome>), TopicOutcome> {
    let (id, _, all) = named(&topic);
    let Some(name) = resolve(image, id, &topic.name, by_id) else {
        return Err(refused(id, topic.name, all, &ClientFault::UnknownTopicId(id).into()));
    };
    let error = ClientFault::UnknownTopicOrPartition.into();
    let Some(found) = image.topic(&name) else { return Err(refused(id, name, all, &error)) };
    let (there, missing): (Vec<_>, Vec<_>) =
        topic.partitions.into_iter().partition(|sent| found.partition(sent.partition).is_some());
    let missing: Vec<i32> = missing.iter().map(|sent| sent.partition).collect();
    let unknown = (!missing.is_empty()).then(|| refused(id, name.clone(), missing, &error));
    // Kafka 4.4 keeps the id with an offset that is committed by name, too.
    Ok((CommitTopic { id: found.id, name, partitions: there }, unknown))
}

fn named(topic: &CommitTopic) -> (TopicId, TopicName, Vec<i32>) {
    let partitions = topic.partitions.iter().map(|sent| sent.partition).collect();
    (topic.id, topic.name.clone(), partitions)
}

fn refused(id: TopicId, name: TopicName, partitions: Vec<i32>, error: &GroupError) -> TopicOutcome {
    let refuse = |partition| (partition, Err(error.clone()));
    TopicOutcome { id, name, partitions: partitions.into_iter().map(refuse).collect() }
}

fn unknown_fetch(topic: FetchTopic) -> FetchedTopic {
    let partitions = topic.partitions.iter().map(|partition| FetchedPartition {
        outcome: Err(ClientFault::UnknownTopicId(topic.id).into()),
        ..FetchedPartition::of(*partition, None)
    });
    FetchedTopic { id: topic.id, partitions: partitions.collect(), name: topic.name }
}

/// Adds outcomes behind those of the same topic, or at the end.
fn merge(mut first: Vec<TopicOutcome>, then: Vec<TopicOutcome>) -> Vec<TopicOutcome> {
    if first.is_empty() {
        return then;
    }
    let places = first.iter().enumerate().map(|(place, topic)| (topic.name.clone(), place));
    let places: BTreeMap<TopicName, usize> = places.collect();
    for outcome in then {
        match places.get(&outcome.name) {
            Some(place) => first[*place].partitions.extend(outcome.partitions),
            None => first.push(outcome),
        }
    }
    first
}
