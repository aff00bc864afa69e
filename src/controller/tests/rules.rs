//! The real config room behind the controller.

use super::*;
use crate::config::BrokerConfig;

const TAGS: &str = "streams.rack.aware.assignment.tags";

fn lab() -> Lab {
    let mut lab = Lab::new(0);
    lab.world = World::new(&BrokerConfig::default(), true);
    lab.replay(&bootstrap(&registration(lab.world_node(), 1), 1, &fresh_levels()));
    lab
}

impl Lab {
    fn world_node(&self) -> i32 {
        BrokerConfig::default().node.node_id
    }

    fn set(
        &mut self,
        kind: i8,
        name: &str,
        key: &str,
        operation: i8,
        value: &str,
    ) -> (i16, String) {
        let edit = ConfigEdit { key: key.into(), operation, value: Some(value.into()) };
        let resources = vec![ConfigEdits { kind, name: name.into(), edits: vec![edit] }];
        let at = BrokerId(self.world_node());
        let results = self.ask(AlterConfigs { at, resources, validate_only: false });
        told(&results[0].outcome)
    }
}

#[test]
fn values_are_judged_and_described_by_the_config_room() {
    let mut lab = lab();
    let node = lab.world_node().to_string();
    lab.create("t", 1, 1);
    #[rustfmt::skip] // columns
    let table = [
        (2, "t",   "retention.ms",      0, "100",  0,  ""),
        (2, "t",   "retention.ms",      0, "abc",  40, "Invalid value abc for configuration retention.ms: Not a number of type LONG"),
        (2, "t",   "foo",               0, "1",    40, "Unknown topic config name: foo"),
        (2, "t",   "segment.bytes",     0, "10",   40, "Invalid value 10 for configuration segment.bytes: Value must be at least 1048576"),
        (2, "t",   "cleanup.policy",    0, "zip",  40, "Invalid value zip for configuration cleanup.policy: String must be one of: compact, delete"),
        (2, "t",   "cleanup.policy",    2, "compact", 0, ""),
        (2, "t",   "retention.ms",      2, "1",    40, "Can't APPEND to key retention.ms because its type is not LIST."),
        (2, "t",   "remote.storage.enable", 0, "true", 40, "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."),
        (4, &node, "log.retention.ms",  0, "abc",  42, "Invalid value abc for configuration log.retention.ms: Not a number of type LONG"),
        (4, &node, "num.partitions",    0, "5",    42, "Cannot update these configs dynamically: [num.partitions]"),
        (4, &node, "log.cleanup.policy", 2, "compact", 0, ""),
        (4, &node, "log.retention.ms",  2, "1",    40, "Config value append is not allowed for config key: log.retention.ms"),
        (4, &node, "foo",               0, "1",    0,  ""),
        (4, "",    "listeners",         0, "PLAINTEXT://:1", 42, "Cannot update these configs at default cluster level, broker id must be specified: [listeners]"),
        (4, "",    "message.max.bytes", 0, "2000000", 0, ""),
    ];
    for (kind, name, key, operation, value, code, text) in table {
        let got = lab.set(kind, name, key, operation, value);
        assert_eq!(got, (code, text.to_owned()), "{key} {operation} {value}");
    }
    let own = lab.image().topic_configs("t").unwrap();
    assert_eq!(own.get("cleanup.policy").map(String::as_str), Some("delete,compact"));
    let topic =
        NewTopic { configs: vec![("segment.ms".into(), Some("7".into()))], ..NewTopic::named("u") };
    let made = lab.ask(CreateTopics { topics: vec![topic], validate_only: true });
    let configs = &made[0].outcome.as_ref().unwrap().configs;
    let row = |name: &str| {
        let row = configs.iter().find(|row| row.name == name).unwrap();
        (row.value.as_deref().unwrap(), row.source)
    };
    assert_eq!(configs.len(), 37);
    assert_eq!(row("segment.ms"), ("7", ConfigSource::DynamicTopic));
    assert_eq!(row("max.message.bytes"), ("2000000", ConfigSource::DynamicDefaultBroker));
    assert_eq!(row("cleanup.policy"), ("delete,compact", ConfigSource::DynamicBroker));
    assert_eq!(row("min.insync.replicas"), ("1", ConfigSource::DynamicDefaultBroker));
    assert_eq!(row("retention.bytes"), ("-1", ConfigSource::Default));
}

#[test]
fn values_of_a_group_are_judged_by_the_config_room() {
    let mut lab = lab();
    #[rustfmt::skip] // columns
    let table = [
        ("consumer.session.timeout.ms", 0, "50000", 0, ""),
        ("consumer.session.timeout.ms", 0, "44999", 40, "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive."),
        ("foo",                         0, "1",     40, "Unknown group config name: foo"),
        (TAGS,                          2, "a",     40, "Can't APPEND to key streams.rack.aware.assignment.tags because its type is not LIST."),
        (TAGS,                          0, "a,b",   0, ""),
    ];
    for (key, operation, value, code, text) in table {
        let got = lab.set(32, "g", key, operation, value);
        assert_eq!(got, (code, text.to_owned()), "{key} {operation} {value}");
    }
    let own = lab.image().configs(&ConfigResource::group("g")).unwrap();
    let own: Vec<_> = own.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(own, ["consumer.session.timeout.ms=50000", &format!("{TAGS}=a,b")]);
}

#[test]
fn the_offsets_topic_is_made_with_its_own_settings() {
    let mut lab = lab();
    let config = BrokerConfig::default();
    let topics = [CONSUMER_OFFSETS, "t"]
        .map(|name| NewTopic { replication_factor: 1, ..NewTopic::auto(name, &config) });
    let made = lab.ask(CreateTopics { topics: topics.to_vec(), validate_only: false });
    assert!(made.iter().all(|made| made.outcome.is_ok()), "{made:?}");
    let topic = lab.image().topic(CONSUMER_OFFSETS).unwrap();
    assert_eq!((topic.partition_count(), topic.is_internal()), (50, true));
    let own = lab.image().topic_configs(CONSUMER_OFFSETS).unwrap();
    let own: Vec<_> = own.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let expected =
        ["cleanup.policy=compact", "compression.type=producer", "segment.bytes=104857600"];
    assert_eq!(own, expected);
    assert_eq!(lab.image().topic("t").unwrap().partition_count(), 1);
}

const CONSUMER_OFFSETS: &str = "__consumer_offsets";
