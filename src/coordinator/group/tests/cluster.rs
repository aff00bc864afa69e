//! A coordinator over journals in memory, in a cluster whose topics come and go.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;

use super::super::*;
use super::bench::config;
use crate::common::BrokerId;
use crate::env::Env;
use crate::machine::testing::{MemoryJournal, simulated_env};
use crate::machine::{Journal, Position};
use crate::metadata::{Delta, Image, Subscriber};
use crate::protocol::records::metadata as records;
use records::MetadataRecord;

const HERE: BrokerId = BrokerId(1);

type Made = Arc<Mutex<BTreeMap<i32, Arc<MemoryJournal>>>>;

pub struct Cluster {
    pub env: Env,
    pub coordinator: GroupCoordinator,
    config: GroupConfig,
    journals: Made,
    image: Arc<Image>,
}

impl Cluster {
    /// `__consumer_offsets` with two partitions here and one elsewhere, topic `t` with one.
    pub async fn start() -> Self {
        Self::with(simulated_env(1), config(), 1).await
    }

    /// As [`Cluster::start`]; topic `t` has `partitions`.
    pub async fn with(env: Env, config: GroupConfig, partitions: usize) -> Self {
        let journals = Made::default();
        let coordinator = coordinator(&env, &config, &journals);
        let mut cluster = Self { env, coordinator, config, journals, image: Arc::default() };
        cluster.add(GROUP_TOPIC, 1, &[1, 1, 2]);
        cluster.add("t", 2, &vec![1; partitions]);
        cluster.settle().await;
        cluster
    }

    /// The coordinator is gone with all that it had in memory, and another one begins.
    pub fn restart(&mut self) {
        self.coordinator.stop();
        self.coordinator = coordinator(&self.env, &self.config, &self.journals);
        self.coordinator.publish(&Delta::between(Arc::default(), self.image.clone()));
    }

    /// Lets every task come to rest.
    pub async fn settle(&self) {
        self.env.clock.sleep(std::time::Duration::from_millis(1)).await;
    }

    pub fn publish(&mut self, changes: &[MetadataRecord]) {
        let mut after = Image::clone(&self.image);
        for record in changes {
            let at = Position(after.end_offset);
            after.apply(record, at);
        }
        let after = Arc::new(after);
        self.coordinator.publish(&Delta::between(self.image.clone(), after.clone()));
        self.image = after;
    }

    /// A topic with a partition on each of `brokers`.
    pub fn add(&mut self, name: &str, id: u128, brokers: &[i32]) {
        self.publish(&topic_records(name, id, brokers));
    }

    pub fn journal(&self, partition: i32) -> Arc<MemoryJournal> {
        self.journals.lock().expect("no panic before")[&partition].clone()
    }

    /// A group id that partition `partition` of three keeps.
    pub fn group_in(&self, partition: i32) -> GroupId {
        let mut ids = (0..).map(|n| GroupId::from(format!("g{n}")));
        let id = ids.find(|id| self.coordinator.coordinator_partition(id) == partition);
        id.expect("some group falls there")
    }
}

/// What makes a topic with a partition on each of `brokers`.
pub fn topic_records(name: &str, id: u128, brokers: &[i32]) -> Vec<MetadataRecord> {
    let topic_id = uuid::Uuid::from_u128(id);
    let partitions = (0..).zip(brokers).map(|(partition_id, broker)| {
        let partition = records::PartitionRecord {
            partition_id,
            topic_id,
            replicas: vec![*broker],
            isr: vec![*broker],
            leader: *broker,
            directories: vec![uuid::Uuid::nil()],
            ..Default::default()
        };
        partition.into()
    });
    let topic = records::TopicRecord { name: name.into(), topic_id };
    std::iter::once(topic.into()).chain(partitions).collect()
}

fn coordinator(env: &Env, config: &GroupConfig, journals: &Made) -> GroupCoordinator {
    let made = journals.clone();
    let make = move |partition| {
        let mut made = made.lock().expect("no panic before");
        let journal = made.entry(partition).or_insert_with(MemoryJournal::new).clone();
        Some(journal as Arc<dyn Journal>)
    };
    let config = Arc::new(ArcSwap::from_pointee(config.clone()));
    GroupCoordinator::new(env.clone(), HERE, config, Box::new(make), Arc::new(|_| {}))
}
