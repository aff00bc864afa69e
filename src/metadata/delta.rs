//! What differs between two images. Images share what did not change, so finding it costs about
//! as much as the change is large, whatever the size of the cluster; records and snapshots
//! take the same way.

use std::sync::Arc;

use imbl::ordmap::DiffItem;

use super::image::{Broker, ConfigResource, Image, Partition, Topic};
use crate::common::BrokerId;

/// A step from one image to a later one.
#[derive(Debug, Clone)]
pub struct Delta {
    pub before: Arc<Image>,
    pub after: Arc<Image>,
}

/// A partition that is new or differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionChange<'a> {
    /// As it is after the step.
    pub topic: &'a Arc<Topic>,
    pub index: i32,
    /// `None`: it is new.
    pub before: Option<&'a Arc<Partition>>,
    pub after: &'a Arc<Partition>,
}

impl Delta {
    pub fn between(before: Arc<Image>, after: Arc<Image>) -> Self {
        Self { before, after }
    }

    /// Topics that are there only after the step, by id. A topic deleted and created again under
    /// its old name is both created and deleted, under two ids.
    pub fn created(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.topics().filter_map(|item| match item {
            DiffItem::Add(_, topic) => Some(topic),
            DiffItem::Update { .. } | DiffItem::Remove(..) => None,
        })
    }

    /// Topics that were there only before the step, as they were.
    pub fn deleted(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.topics().filter_map(|item| match item {
            DiffItem::Remove(_, topic) => Some(topic),
            DiffItem::Update { .. } | DiffItem::Add(..) => None,
        })
    }

    /// Partitions that are new or differ, those of created topics included; by topic id, then
    /// index. Partitions of deleted topics are not here.
    pub fn partitions(&self) -> impl Iterator<Item = PartitionChange<'_>> {
        self.topics().flat_map(|item| match item {
            DiffItem::Add(_, topic) => changes(None, topic),
            DiffItem::Update { old: (_, before), new: (_, topic) } => changes(Some(before), topic),
            DiffItem::Remove(..) => Vec::new(),
        })
    }

    /// Resources whose own settings differ, those that lost their last one included.
    pub fn configs(&self) -> impl Iterator<Item = &ConfigResource> {
        self.before.configs.diff(&self.after.configs).map(|item| match item {
            DiffItem::Add(resource, _)
            | DiffItem::Remove(resource, _)
            | DiffItem::Update { new: (resource, _), .. } => resource,
        })
    }

    /// Brokers that registered, left or differ: (id, before, after).
    pub fn brokers(
        &self,
    ) -> impl Iterator<Item = (BrokerId, Option<&Arc<Broker>>, Option<&Arc<Broker>>)> {
        self.before.brokers.diff(&self.after.brokers).map(|item| match item {
            DiffItem::Add(id, after) => (*id, None, Some(after)),
            DiffItem::Remove(id, before) => (*id, Some(before), None),
            DiffItem::Update { old: (id, before), new: (_, after) } => {
                (*id, Some(before), Some(after))
            }
        })
    }

    /// Whether a finalized feature level differs.
    pub fn features_changed(&self) -> bool {
        self.before.features != self.after.features
    }

    fn topics(&self) -> impl Iterator<Item = TopicDiff<'_>> {
        self.before.topics.by_id.diff(&self.after.topics.by_id)
    }
}

type TopicDiff<'a> = DiffItem<'a, 'a, crate::common::TopicId, Arc<Topic>>;

fn changes<'a>(before: Option<&'a Arc<Topic>>, topic: &'a Arc<Topic>) -> Vec<PartitionChange<'a>> {
    let all = |(index, after): (&i32, &'a Arc<Partition>)| PartitionChange {
        topic,
        index: *index,
        before: None,
        after,
    };
    let Some(before) = before else { return topic.partitions.iter().map(all).collect() };
    let differs = |item| match item {
        DiffItem::Add(index, after) => {
            Some(PartitionChange { topic, index: *index, before: None, after })
        }
        DiffItem::Update { old: (_, before), new: (index, after) } => {
            Some(PartitionChange { topic, index: *index, before: Some(before), after })
        }
        DiffItem::Remove(..) => None,
    };
    before.partitions.diff(&topic.partitions).filter_map(differs).collect()
}
