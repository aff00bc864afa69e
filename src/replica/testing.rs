//! A node's replicas over simulated files, led by hand-made images.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use uuid::Uuid;

use super::*;
use crate::common::{BrokerId, Offset, ProducerEpoch, ProducerId, TopicId};
use crate::config::TopicConfig;
use crate::env::{Clock, Env, Files, Net, Random, Tasks};
use crate::machine::Position;
use crate::metadata::{Delta, Image};
use crate::protocol::batch::{BatchBuilder, Producer};
use crate::protocol::records::metadata::{
    ConfigRecord, MetadataRecord, PartitionChangeRecord, PartitionRecord, RemoveTopicRecord,
    TopicRecord,
};
use crate::storage::{Identity, LogDir};
use crate::telemetry::Metrics;

pub const NOW_MS: i64 = 1_700_000_000_000;

pub struct Node {
    pub replicas: Arc<Replicas>,
    pub env: Env,
    pub metrics: Arc<Metrics>,
    pub failed_dirs: Arc<Mutex<Vec<bool>>>,
    image: Arc<Image>,
}

impl Node {
    /// With one empty directory.
    pub fn new() -> Self {
        Self::on(Files::Sim(Default::default()))
    }

    /// With the directory that `files` hold.
    pub fn on(files: Files) -> Self {
        Self::on_dirs(files, &["/data"])
    }

    /// With these directories, of those that `files` hold.
    pub fn on_dirs(files: Files, paths: &[&str]) -> Self {
        Self::on_dead(files, paths, &[])
    }

    /// With others that could not be opened.
    pub fn on_dead(files: Files, paths: &[&str], dead: &[&str]) -> Self {
        let env = Env {
            clock: Clock::simulated(NOW_MS),
            random: Random::seeded(1),
            files,
            net: Net::default(),
            tasks: Tasks::current(),
        };
        let identity = Identity { cluster_id: Some("c".to_owned()), node_id: BrokerId(1) };
        let open = |path: &&str| {
            let (path, options) = (std::path::Path::new(path), Default::default());
            LogDir::open(&env.files, &env.random, path, &identity, &options).unwrap()
        };
        let dirs = paths.iter().map(open).collect();
        let failed_dirs: Arc<Mutex<Vec<bool>>> = Arc::default();
        let failed = failed_dirs.clone();
        let config = ReplicasConfig {
            node: BrokerId(1),
            topic_defaults: TopicConfig::default(),
            recovery_threads: 1,
            fetch_bytes_max: 57_671_680,
            session_slots: 10,
            dead_dirs: dead.iter().map(|path| (*path).to_owned()).collect(),
            on_dir_failed: Box::new(move |_, last| failed.lock().unwrap().push(last)),
        };
        let metrics = Arc::new(Metrics::new());
        let image = Image::default();
        let opened = Replicas::open(config, env.clone(), metrics.clone(), dirs, Some(7), &image);
        let replicas = opened.unwrap();
        Self { replicas, env, metrics, failed_dirs, image: Arc::default() }
    }

    /// With one topic `t` of two partitions, led here in epoch 0.
    pub fn with_topic(configs: &[(&str, &str)]) -> Self {
        let mut node = Self::new();
        node.create("t", 1, 2, configs);
        node
    }

    /// Lets go of the directory, once background work has.
    pub async fn stop(self) -> Files {
        while Arc::strong_count(&self.replicas) > 1 {
            tokio::task::yield_now().await;
        }
        self.env.files.clone()
    }

    pub fn apply(&mut self, records: impl IntoIterator<Item = MetadataRecord>) {
        let mut after = (*self.image).clone();
        for record in records {
            after.apply(&record, Position(after.end_offset));
        }
        let delta = Delta::between(self.image.clone(), Arc::new(after));
        self.replicas.publish(&delta);
        self.image = delta.after;
    }

    pub fn create(&mut self, name: &str, id: u128, partitions: i32, configs: &[(&str, &str)]) {
        let topic_id = Uuid::from_u128(id);
        let mut records = vec![MetadataRecord::Topic(TopicRecord { name: name.into(), topic_id })];
        records.extend(configs.iter().map(|(key, value)| config(name, key, Some(value))));
        records.extend((0..partitions).map(|index| partition(id, index, 1, &[1])));
        self.apply(records);
    }

    pub fn delete(&mut self, id: u128) {
        let topic_id = Uuid::from_u128(id);
        self.apply([MetadataRecord::RemoveTopic(RemoveTopicRecord { topic_id })]);
    }

    pub fn partition(&self, index: i32) -> Arc<Partition> {
        self.replicas.partition("t", index).unwrap()
    }

    /// Produces to `t` with acks=all and waits for the outcomes.
    pub async fn produce(&self, parts: Vec<(i32, Bytes)>) -> Vec<Outcome> {
        match self.replicas.produce(self.produce_ask(-1, parts)).await {
            Produced::Done(outcomes) => outcomes,
            Produced::Waiting(wait) => wait.done().await,
        }
    }

    pub fn produce_ask(&self, acks: i16, parts: Vec<(i32, Bytes)>) -> ProduceAsk {
        let topic = || self.replicas.topic("t").ok_or_else(ReplicaError::unknown);
        let proof = crate::common::Proof::Unneeded;
        let part = |(partition, records)| ToProduce { topic: topic(), partition, records, proof };
        ProduceAsk {
            acks,
            timeout: Duration::from_secs(5),
            version: 9,
            internal_allowed: false,
            parts: parts.into_iter().map(part).collect(),
        }
    }

    /// Produces one batch to partition 0, which must succeed; its base offset.
    pub async fn put(&self, batch: Bytes) -> Offset {
        let outcome = self.produce(vec![(0, batch)]).await.remove(0);
        outcome.result.expect("produced");
        outcome.base_offset
    }

    pub fn fetch_ask(&self, parts: &[(i32, Offset, i32)]) -> FetchAsk {
        let asked = |(partition, fetch_offset, bytes_max): &(i32, Offset, i32)| Asked {
            topic: self.replicas.named("t"),
            partition: *partition,
            fetch_offset: *fetch_offset,
            bytes_max: *bytes_max,
            current_leader_epoch: None,
            last_fetched_epoch: None,
        };
        FetchAsk {
            isolation: Isolation::ReadUncommitted,
            max_wait: Duration::ZERO,
            min_bytes: 1,
            max_bytes: 1 << 20,
            by_topic_id: false,
            parts: parts.iter().map(asked).collect(),
        }
    }
}

/// Partition `index` of the topic, with its leader and ISR; all of the ISR are replicas.
pub fn partition(topic: u128, index: i32, leader: i32, isr: &[i32]) -> MetadataRecord {
    MetadataRecord::Partition(PartitionRecord {
        partition_id: index,
        topic_id: Uuid::from_u128(topic),
        replicas: isr.to_vec(),
        isr: isr.to_vec(),
        leader,
        directories: vec![Uuid::nil(); isr.len()],
        leader_epoch: 0,
        partition_epoch: 0,
        ..Default::default()
    })
}

/// Another leader (-2: the same), which makes a new epoch, and another ISR.
pub fn change(topic: u128, index: i32, leader: i32, isr: Option<&[i32]>) -> MetadataRecord {
    MetadataRecord::PartitionChange(PartitionChangeRecord {
        partition_id: index,
        topic_id: Uuid::from_u128(topic),
        leader,
        isr: isr.map(<[i32]>::to_vec),
        ..Default::default()
    })
}

pub fn config(topic: &str, key: &str, value: Option<&str>) -> MetadataRecord {
    MetadataRecord::Config(ConfigRecord {
        resource_type: 2,
        resource_name: topic.into(),
        name: key.into(),
        value: value.map(Into::into),
    })
}

/// A batch of records with these values, stamped now.
pub fn batch(values: &[&str]) -> Bytes {
    stamped(&values.iter().map(|value| (NOW_MS, *value)).collect::<Vec<_>>())
}

pub fn stamped(records: &[(i64, &str)]) -> Bytes {
    let mut builder = BatchBuilder::new(0);
    for (timestamp, value) in records {
        builder.push(*timestamp, Some(b"k"), Some(value.as_bytes()), &[]);
    }
    builder.build()
}

/// `count` records of a producer.
pub fn sequenced(id: i64, epoch: i16, base_sequence: i32, count: i32) -> Bytes {
    let producer = Producer {
        id: ProducerId(id),
        epoch: ProducerEpoch(epoch),
        base_sequence,
        transactional: false,
    };
    let mut builder = BatchBuilder::new(0).producer(producer);
    for _ in 0..count {
        builder.push(NOW_MS, Some(b"k"), Some(b"v"), &[]);
    }
    builder.build()
}

/// One word for an outcome, and the base offset where there is one.
pub fn short(outcome: &Outcome) -> (&'static str, Offset) {
    (outcome.result.as_ref().map_or_else(word, |()| "ok"), outcome.base_offset)
}

pub fn word(error: &ReplicaError) -> &'static str {
    use crate::protocol::batch::BatchError;
    use crate::storage::ClientFault;
    match error {
        ReplicaError::Offline => "offline",
        ReplicaError::Damaged => "damaged",
        ReplicaError::NotNow(not_now) => match not_now {
            NotNow::UnknownPartition => "unknown",
            NotNow::NotLeader { .. } => "not leader",
            NotNow::FencedLeaderEpoch { .. } => "fenced epoch",
            NotNow::UnknownLeaderEpoch { .. } => "unknown epoch",
            NotNow::TooFewReplicas { .. } => "few replicas",
            NotNow::TooFewReplicasAfter { .. } => "few replicas after",
            NotNow::TimedOut => "timed out",
            NotNow::OffsetNotAvailable => "not available",
            NotNow::Full => "full",
            NotNow::Unverified => "unverified",
        },
        ReplicaError::Client(refusal) => match refusal {
            Refusal::UnknownTopicId => "unknown id",
            Refusal::InconsistentTopicId => "inconsistent id",
            Refusal::Acks(_) => "acks",
            Refusal::InternalTopic => "internal",
            Refusal::Batch(BatchError::Corrupt { .. }) => "corrupt",
            Refusal::Batch(BatchError::Unreadable(_)) => "unreadable",
            Refusal::Batch(BatchError::TooLarge { .. }) => "too large",
            Refusal::Batch(BatchError::Invalid(_)) => "invalid",
            Refusal::Batch(BatchError::Records(_)) => "records",
            Refusal::Batch(_) => "batch",
            Refusal::Log(ClientFault::OverSegment { .. }) => "over segment",
            Refusal::Log(ClientFault::OutOfOrderSequence { .. }) => "out of order",
            Refusal::Log(ClientFault::StaleEpoch { .. }) => "stale epoch",
            Refusal::Log(_) => "log",
            Refusal::OutOfRange { .. } => "out of range",
            Refusal::NotDeletable => "not deletable",
            Refusal::Lookup(_) => "lookup",
            Refusal::Twice(_) => "twice",
            Refusal::Size(_) => "size",
            Refusal::Deleted => "deleted",
            Refusal::NameTooLong => "name",
            Refusal::UnknownDirectory(_) => "unknown dir",
        },
    }
}

/// Topic ids by name, to see which topic a name means now.
pub fn ids(replicas: &Replicas, names: &[&str]) -> BTreeMap<String, Option<TopicId>> {
    let id = |name: &&str| ((*name).to_owned(), replicas.topic(name).map(|topic| topic.id));
    names.iter().map(id).collect()
}
