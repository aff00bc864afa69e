//! Requests → records and answers, as a Kafka 4.4.0 gave them; no sockets, no sleeps.

mod brokers;
mod configs;
mod features;
mod handle;
mod rules;
mod topics;

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::*;
use crate::common::{BrokerId, Offset};
use crate::config::{ConfigRow, ConfigSource};
use crate::env::Instant;
use crate::machine::{Context, Entry, Machine, Position, Ticket};
use crate::metadata::{ConfigKind, ConfigResource, Configs, Endpoint, Image};
use crate::protocol::records::metadata::MetadataRecord;

/// A controller, what it forgets at failover, and hands to move its time.
pub(super) struct Lab {
    pub controller: Controller,
    pub soft: Soft,
    pub world: World,
    pub now: Instant,
    pub seed: u64,
    pub batch_bytes_max: usize,
}

impl Lab {
    /// `brokers` serving brokers, numbered from 1, in one rack each; ELR off.
    pub fn new(brokers: i32) -> Self {
        let mut lab = Self {
            controller: Controller::default(),
            soft: Soft::default(),
            world: world(),
            now: Instant::default(),
            seed: 7,
            batch_bytes_max: 8 << 20,
        };
        for id in 1..=brokers {
            let rack = Some(format!("rack{id}"));
            let registered = lab.ask(RegisterBroker { rack, ..registration(id, 1) });
            assert!(registered.is_ok(), "{registered:?}");
        }
        lab
    }

    /// As [`Lab::new`], with eligible leader replicas.
    pub fn with_elr(brokers: i32) -> Self {
        let mut lab = Self::new(brokers);
        let feature = crate::protocol::records::metadata::FeatureLevelRecord {
            name: "eligible.leader.replicas.version".into(),
            feature_level: 1,
        };
        lab.replay(&[feature.into()]);
        lab
    }

    pub fn image(&self) -> &Image {
        self.controller.image()
    }

    /// Decides, replays, and gives the answer.
    pub fn ask<Q: Ask>(&mut self, request: Q) -> Q::Answer {
        self.ask_with_records(request).0
    }

    pub fn ask_with_records<Q: Ask>(&mut self, request: Q) -> (Q::Answer, Vec<MetadataRecord>) {
        let (answer, records) = self.decide(request.into());
        let answer = Q::answer(answer).expect("the answer to this request");
        (answer, records)
    }

    pub fn decide(&mut self, request: Request) -> (Answer, Vec<MetadataRecord>) {
        self.seed += 1;
        let cx = Context {
            now_ms: 0,
            now: self.now,
            epoch: 1,
            position: Position(self.image().end_offset),
            ticket: Ticket(self.seed),
            seed: self.seed,
            batch_bytes_max: self.batch_bytes_max,
            world: &self.world,
        };
        let decision = self.controller.decide(&mut self.soft, request, &cx);
        self.replay(&decision.records);
        let [(ticket, answer)]: [_; 1] = decision.answers.try_into().expect("one answer");
        assert_eq!(ticket, Ticket(self.seed));
        (answer, decision.records)
    }

    /// Decides what falls due until nothing does; the records written.
    pub fn run_due(&mut self) -> Vec<MetadataRecord> {
        let mut written = Vec::new();
        while self.controller.next_due(&self.soft).is_some_and(|due| due <= self.now) {
            let cx = Context {
                now_ms: 0,
                now: self.now,
                epoch: 1,
                position: Position(self.image().end_offset),
                ticket: Ticket(0),
                seed: 0,
                batch_bytes_max: self.batch_bytes_max,
                world: &self.world,
            };
            let due = self.controller.due(&mut self.soft, &cx);
            for request in due {
                written.extend(self.decide(request).1);
            }
        }
        written
    }

    pub fn replay(&mut self, records: &[MetadataRecord]) {
        for record in records {
            let at = Position(self.image().end_offset);
            self.controller.replay(Entry::plain_of(record), at);
        }
    }

    pub fn create(&mut self, name: &str, partitions: i32, replication_factor: i16) {
        let topic = NewTopic { partitions, replication_factor, ..NewTopic::named(name) };
        let made = self.ask(CreateTopics { topics: vec![topic], validate_only: false });
        assert!(made[0].outcome.is_ok(), "{made:?}");
    }

    /// Replicas, ISR, ELR, leader and leader epoch of a partition, as one line.
    pub fn line(&self, topic: &str, partition: i32) -> String {
        let partition = self.image().topic(topic).unwrap().partition(partition).unwrap();
        let ids = |ids: &[BrokerId]| ids.iter().map(|id| id.0.to_string()).collect::<String>();
        format!(
            "isr {} elr {} leader {} epoch {}{}",
            ids(&partition.isr),
            ids(&partition.elr),
            partition.leader.map_or("none".to_owned(), |id| id.0.to_string()),
            partition.leader_epoch,
            if partition.is_recovering { " recovering" } else { "" },
        )
    }

    pub fn end(&self) -> Offset {
        self.image().end_offset
    }
}

pub(super) fn world() -> World {
    World {
        node_id: BrokerId(1),
        num_partitions: 4,
        default_replication_factor: 1,
        is_deletion_enabled: true,
        session_timeout: Some(Duration::from_secs(9)),
        rules: Arc::new(FewKeys),
    }
}

pub(super) fn registration(id: i32, incarnation: u128) -> RegisterBroker {
    RegisterBroker {
        id: BrokerId(id),
        incarnation: Uuid::from_u128(incarnation << 64),
        endpoints: vec![Endpoint {
            name: "PLAINTEXT".into(),
            host: "localhost".into(),
            port: 9092,
            security_protocol: 0,
        }],
        features: FEATURES.iter().map(Feature::range).collect(),
        rack: None,
        log_dirs: vec![Uuid::from_u128(1_000 + id as u128)],
        previous_broker_epoch: -1,
        is_caught_up: true,
    }
}

/// Kafka's code and text of a refusal; the codes are written down a second time here on purpose.
pub(super) fn told<T>(outcome: &Result<T, Refusal>) -> (i16, String) {
    let Err(refusal) = outcome else { return (0, String::new()) };
    let code = match refusal {
        Refusal::TopicExists(_) => 36,
        Refusal::TopicName(_) => 17,
        Refusal::UnknownTopic | Refusal::NoTopicToConfigure(_) => 3,
        Refusal::UnknownTopicId => 100,
        Refusal::DeletionDisabled => 73,
        Refusal::Partitions(_) => 37,
        Refusal::ReplicationFactor(_) => 38,
        Refusal::Assignment(_) => 39,
        Refusal::Config(_) => 40,
        Refusal::Request(_) => 42,
        Refusal::TooLarge(_) => 44,
        Refusal::Feature(_) => 95,
        Refusal::Broker(BrokerFault::Duplicate) => 101,
        Refusal::Broker(BrokerFault::Feature { .. }) => 35,
        Refusal::Broker(BrokerFault::StaleEpoch { .. } | BrokerFault::NotRegistered(_)) => 77,
        Refusal::Broker(BrokerFault::ProducerIdsExhausted) => -1,
    };
    (code, refusal.to_string())
}

/// A config room of three keys: `retention.ms`, `cleanup.policy` (a list), and
/// `min.insync.replicas`. What is no number is refused.
struct FewKeys;

impl ConfigRules for FewKeys {
    fn list_default(&self, _: ConfigKind, key: &str) -> Option<String> {
        key.ends_with("cleanup.policy").then(|| "delete".to_owned())
    }

    fn check(&self, resource: &ConfigResource, proposed: &Proposed<'_>) -> Result<(), Refusal> {
        for key in proposed.set {
            let value = &proposed.settings[key];
            let fault = match key.as_str() {
                "retention.ms" | "log.retention.ms" | "min.insync.replicas"
                    if value.parse::<i64>().is_err() =>
                {
                    format!("Invalid value {value} for configuration {key}")
                }
                "retention.ms" | "cleanup.policy" | "min.insync.replicas" | "log.retention.ms" => {
                    continue;
                }
                _ => format!("Unknown topic config name: {key}"),
            };
            return Err(match resource.kind {
                ConfigKind::Broker => RequestFault::BrokerConfig(fault).into(),
                _ => ConfigFault::Value(fault).into(),
            });
        }
        Ok(())
    }

    fn describe_topic(&self, _: &Image, own: &Configs) -> Vec<ConfigRow> {
        let own = own.iter().map(|(name, value)| ConfigRow {
            name: name.clone(),
            value: Some(value.clone()),
            source: ConfigSource::DynamicTopic,
            kind: None,
            is_read_only: false,
            is_sensitive: false,
            synonyms: Vec::new(),
            doc: None,
        });
        own.collect()
    }

    fn min_insync_replicas(&self, _: &Image, own: Option<&Configs>) -> usize {
        own.and_then(|own| own.get("min.insync.replicas")?.parse().ok()).unwrap_or(1)
    }

    fn is_unclean_election_enabled(&self, _: &Image, _: Option<&Configs>) -> bool {
        false
    }
}
