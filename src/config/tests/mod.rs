//! The tables and the answers made of them, compared with what Apache Kafka 4.4 has and says
//! (`fixtures/`, recorded from it).

mod start;
mod values;

use std::collections::BTreeMap;

use super::key::Honour;
use super::*;

fn table(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect())
}

/// Kafka's tables print a list as `[a, b]`, a missing default as `(none)`.
fn default_of(key: &Key) -> String {
    match (key.fallback, key.kind) {
        (Fallback::Required, _) => "(none)".to_owned(),
        (Fallback::Null, _) => "null".to_owned(),
        (Fallback::Is(text), Kind::List) => format!("[{}]", text.replace(',', ", ")),
        (Fallback::Is(text), _) => text.to_owned(),
    }
}

fn row_of(key: &Key) -> (String, String, String, bool) {
    let kind = format!("{:?}", key.kind).to_uppercase();
    (key.name.to_owned(), kind, default_of(key), key.internal)
}

#[test]
fn broker_keys_are_those_of_kafka_with_type_default_and_dynamic_mode() {
    let mode = |key: &Key| match key.dynamic {
        Dynamic::ReadOnly => "",
        Dynamic::PerBroker => "per-broker",
        Dynamic::ClusterWide => "cluster-wide",
    };
    let own = broker_keys().filter(|key| !key.name.starts_with("ottla."));
    let mut own: Vec<_> = own.map(|key| (row_of(key), mode(key))).collect();
    own.sort();
    let kafka: Vec<_> = table(include_str!("../fixtures/broker-keys.tsv"))
        .map(|f| ((f[0].to_owned(), f[1].to_owned(), f[2].to_owned(), f[3] == "internal"), f[4]))
        .collect();
    for (own, kafka) in own.iter().zip(&kafka) {
        assert_eq!(own, kafka);
    }
    assert_eq!(own.len(), kafka.len());
}

#[test]
fn topic_keys_are_those_of_kafka_with_type_default_and_first_synonym() {
    let own: Vec<_> =
        TopicConfig::KEYS.iter().map(|key| (row_of(key), key.broker.unwrap_or(""))).collect();
    let kafka: Vec<_> = table(include_str!("../fixtures/topic-keys.tsv"))
        .map(|f| {
            let first = f[4].split(',').next().unwrap();
            ((f[0].to_owned(), f[1].to_owned(), f[2].to_owned(), f[3] == "internal"), first)
        })
        .collect();
    assert_eq!(own, kafka);
}

#[test]
fn group_keys_are_those_of_kafka_with_type_default_and_synonym() {
    let own: Vec<_> =
        group::KEYS.iter().map(|key| (row_of(key), key.broker.unwrap_or(""))).collect();
    let kafka: Vec<_> = table(include_str!("../fixtures/group-keys.tsv"))
        .map(|f| ((f[0].to_owned(), f[1].to_owned(), f[2].to_owned(), f[3] == "internal"), f[4]))
        .collect();
    assert_eq!(own, kafka);
    for broker in group::KEYS.iter().filter_map(|key| key.broker) {
        assert!(broker_key(broker).is_some(), "{broker}");
    }
}

#[test]
fn every_key_has_a_doc_and_a_default_that_it_allows() {
    for key in broker_keys().chain(TopicConfig::KEYS).chain(group::KEYS) {
        assert!(!key.doc.trim().is_empty(), "{}", key.name);
        if let Some(text) = key.default_text()
            && !matches!(key.honour, Honour::Refused(_))
        {
            assert!(key.parse(text).is_ok(), "{}: {:?}", key.name, key.parse(text));
        }
    }
}

/// The node that the answers were recorded from.
fn recorded_node() -> BrokerConfig {
    let file =
        ("server.properties".to_owned(), include_str!("../fixtures/server.properties").into());
    let sources = Sources { file: Some(file), ..Sources::default() };
    let values = |pairs: &[(&str, &str)]| -> Values {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let cluster = values(&[
        ("log.retention.ms", "5000"),
        ("min.insync.replicas", "2"),
        ("log.cleanup.policy", ""),
        ("foo.bar", "5000"),
    ]);
    let own = values(&[
        ("num.io.threads", "10"),
        ("listener.name.plaintext.ssl.keystore.type", "PKCS12"),
        ("sasl.jaas.config", "abc"),
        ("message.max.bytes", "2000000"),
    ]);
    let (config, refused) = load(&sources).unwrap().0.with_dynamic(&cluster, &own);
    assert_eq!(refused, []);
    config
}

fn line_of(row: &ConfigRow) -> String {
    let source = |source: ConfigSource| match source {
        ConfigSource::DynamicTopic => "DYNAMIC_TOPIC_CONFIG",
        ConfigSource::DynamicBroker => "DYNAMIC_BROKER_CONFIG",
        ConfigSource::DynamicDefaultBroker => "DYNAMIC_DEFAULT_BROKER_CONFIG",
        ConfigSource::StaticBroker => "STATIC_BROKER_CONFIG",
        ConfigSource::Default => "DEFAULT_CONFIG",
        ConfigSource::DynamicGroup => "DYNAMIC_GROUP_CONFIG",
    };
    let value = |value: &Option<String>| value.clone().unwrap_or("null".to_owned());
    let synonyms: Vec<_> = row
        .synonyms
        .iter()
        .map(|one| format!("{}:{}={}", source(one.source), one.name, value(&one.value)))
        .collect();
    let kind = row.kind.map_or("UNKNOWN".to_owned(), |kind| format!("{kind:?}").to_uppercase());
    [
        row.name.clone(),
        value(&row.value),
        source(row.source).to_owned(),
        kind,
        if row.is_read_only { "ro" } else { "rw" }.to_owned(),
        if row.is_sensitive { "sens" } else { "" }.to_owned(),
        format!("[{}]", synonyms.join(" | ")),
    ]
    .join("\t")
}

#[test]
fn a_topic_is_described_as_by_kafka() {
    let pairs = [
        ("retention.ms", " 5 "),
        ("cleanup.policy", " compact , delete "),
        ("preallocate", "TRUE"),
        ("min.cleanable.dirty.ratio", "1"),
        ("leader.replication.throttled.replicas", "1:1,2:2"),
        ("internal.segment.bytes", "1000"),
        ("remote.log.copy.disable", "true"),
    ];
    let overrides = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let rows = recorded_node().describe_topic(&overrides, &[]).unwrap();
    let own: Vec<_> = rows.iter().map(line_of).collect();
    let kafka: Vec<_> = table(include_str!("../fixtures/describe-topic.tsv"))
        .map(|fields| fields.join("\t"))
        .collect();
    assert_eq!(own, kafka);
}

#[test]
fn a_group_is_described_as_by_kafka() {
    let values = |pairs: &[(&str, &str)]| -> Values {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let cluster = values(&[
        ("group.consumer.assignment.interval.ms", "2000"),
        ("group.share.assignor.offload.enable", "FALSE"),
    ]);
    let own = values(&[
        ("consumer.session.timeout.ms", " 50000 "),
        ("consumer.assignor.offload.enable", " TRUE "),
        ("streams.rack.aware.assignment.tags", " a , b "),
        ("share.auto.offset.reset", "earliest"),
        ("streams.assignor.name", "sticky"),
        ("share.renew.acknowledge.enable", "FALSE"),
        ("streams.acceptable.recovery.lag", "5"),
    ]);
    let (config, refused) = recorded_node().with_dynamic(&cluster, &Values::new());
    assert_eq!(refused, []);
    let mut lines: Vec<_> = config.describe_group(&own, &[]).iter().map(line_of).collect();
    lines.sort();
    let kafka: Vec<_> = table(include_str!("../fixtures/describe-group.tsv"))
        .map(|fields| fields.join("\t"))
        .collect();
    assert_eq!(lines, kafka);
}

#[test]
fn a_broker_is_described_as_by_kafka_as_far_as_it_is_honoured_or_set() {
    let rows = recorded_node().describe_broker(&[]);
    let own: BTreeMap<_, _> = rows.iter().map(|row| (row.name.as_str(), line_of(row))).collect();
    let kafka: BTreeMap<_, _> = table(include_str!("../fixtures/describe-broker.tsv"))
        .map(|fields| (fields[0], fields.join("\t")))
        .collect();
    for (name, line) in &own {
        // Kafka forgets the static hours once milliseconds are set dynamically.
        if *name != "log.retention.hours" {
            assert_eq!(Some(line), kafka.get(name), "{name}");
        }
    }
    let missing = kafka.keys().filter(|name| !own.contains_key(**name));
    let honoured: Vec<_> = missing
        .filter(|name| broker_key(name).is_some_and(|key| key.honour == Honour::Yes))
        .collect();
    assert!(honoured.is_empty(), "honoured and not described: {honoured:?}");
}

#[test]
fn the_default_of_all_brokers_is_described_as_by_kafka() {
    let config = recorded_node();
    let own: Vec<_> =
        describe_cluster_default(&config.layers.cluster, &[]).iter().map(line_of).collect();
    let kafka: Vec<_> = table(include_str!("../fixtures/describe-default.tsv"))
        .map(|fields| fields.join("\t"))
        .collect();
    assert_eq!(own, kafka);
}

#[test]
fn names_asked_for_filter_the_rows() {
    let config = BrokerConfig::default();
    let names = ["retention.ms", "no.such.key", "segment.bytes"];
    let rows = config.describe_topic(&Values::new(), &names).unwrap();
    let got: Vec<_> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(got, ["retention.ms", "segment.bytes"]);
    let rows = config.describe_broker(&["node.id", "no.such.key", "ottla.http.port"]);
    let got: Vec<_> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(got, ["node.id"]);
}
