//! Who is to have which partitions: pure functions of members, their subscriptions and what they
//! are to have now. Lives here: the two assignors that Kafka has on its brokers, by its names.

mod range;
mod uniform;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::state::Assignment;
use crate::common::TopicId;
use crate::coordinator::group::types::{InstanceId, MemberId};

/// A member as an assignor sees it.
#[derive(Debug, Clone)]
pub struct Member {
    pub id: MemberId,
    pub instance_id: Option<InstanceId>,
    /// Those that are there.
    pub topics: BTreeSet<TopicId>,
    /// What it is to have so far.
    pub target: Arc<Assignment>,
}

/// What an assignor works with.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// In order of their ids.
    pub members: Vec<Member>,
    /// How many partitions each subscribed topic has.
    pub partitions: BTreeMap<TopicId, i32>,
}

/// An assignor of the broker (`group.consumer.assignors`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assignor {
    /// Even over all members, and moves as little as it can.
    Uniform,
    /// Topic by topic, a run of partitions each, members in order.
    Range,
}

impl Assignor {
    /// The one with Kafka's name, or the name of its class.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "uniform" | "org.apache.kafka.coordinator.group.assignor.UniformAssignor" => {
                Some(Self::Uniform)
            }
            "range" | "org.apache.kafka.coordinator.group.assignor.RangeAssignor" => {
                Some(Self::Range)
            }
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Range => "range",
        }
    }

    /// What each member is to have, in the order of `group.members`.
    pub fn assign(self, group: &Group) -> Vec<Assignment> {
        match self {
            Self::Uniform => uniform::assign(group),
            Self::Range => range::assign(group),
        }
    }
}

#[cfg(test)]
mod tests;
