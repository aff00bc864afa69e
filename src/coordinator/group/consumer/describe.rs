//! ConsumerGroupDescribe.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::change::partitions_of;
use super::heartbeat::find;
use super::state::{Assignment, ConsumerGroup, ConsumerMember};
use crate::common::{TopicId, TopicName};
use crate::coordinator::group::machine::{GroupAnswer, Turn};
use crate::coordinator::group::types::{GroupId, MemberId};
use crate::metadata::Image;

/// A group as ConsumerGroupDescribe (key 69) shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedConsumerGroup {
    pub state: &'static str,
    pub epoch: i32,
    pub target_epoch: i32,
    pub assignor: Arc<str>,
    pub members: Vec<DescribedConsumer>,
}

/// A member of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedConsumer {
    pub id: MemberId,
    pub member: ConsumerMember,
    /// What it is yet to give back included.
    pub assigned: Vec<TopicPartitions>,
    pub target: Vec<TopicPartitions>,
}

/// Partitions of a topic that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicPartitions {
    pub id: TopicId,
    pub name: TopicName,
    pub partitions: Vec<i32>,
}

impl Turn<'_> {
    pub fn decide_describe_consumer(&mut self, id: &GroupId) {
        let outcome = find(self.state, id).map(|group| self.describe_consumer(group));
        self.answer(GroupAnswer::DescribeConsumer(outcome));
    }

    fn describe_consumer(&self, group: &ConsumerGroup) -> DescribedConsumerGroup {
        let members = group.members.iter().map(|(id, member)| {
            let mut assigned = partitions_of(&member.current.assigned);
            for (topic, partitions) in partitions_of(&member.current.revoking) {
                assigned.entry(topic).or_default().extend(partitions);
            }
            DescribedConsumer {
                id: id.clone(),
                member: member.clone(),
                assigned: named(&assigned, &self.image),
                target: named(&group.target_of(id), &self.image),
            }
        });
        DescribedConsumerGroup {
            state: group.state(),
            epoch: group.epoch.epoch,
            target_epoch: group.target_epoch.epoch,
            assignor: self.assignor_name(group),
            members: members.collect(),
        }
    }
}

fn named(assignment: &Assignment, image: &Image) -> Vec<TopicPartitions> {
    let topics = assignment.iter().filter_map(|(id, partitions)| {
        let topic = image.topics().by_id(*id)?;
        let partitions = partitions.iter().copied().collect();
        Some((
            topic.name.clone(),
            TopicPartitions { id: *id, name: topic.name.clone(), partitions },
        ))
    });
    let by_name: BTreeMap<TopicName, TopicPartitions> = topics.collect();
    by_name.into_values().collect()
}
