//! IncrementalAlterConfigs and AlterConfigs against the answers of a Kafka 4.4.0.

use super::*;

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;
const TOPIC: i8 = 2;
const BROKER: i8 = 4;

type Edit = (&'static str, i8, Option<&'static str>);

fn edits(kind: i8, name: &str, edits: &[Edit]) -> ConfigEdits {
    let edit = |(key, operation, value): &Edit| ConfigEdit {
        key: (*key).to_owned(),
        operation: *operation,
        value: value.map(str::to_owned),
    };
    ConfigEdits { kind, name: name.to_owned(), edits: edits.iter().map(edit).collect() }
}

fn alter(lab: &mut Lab, resources: Vec<ConfigEdits>, validate_only: bool) -> Vec<(i16, String)> {
    let results = lab.ask(AlterConfigs { at: BrokerId(1), resources, validate_only });
    results.iter().map(|result| told(&result.outcome)).collect()
}

fn settings(lab: &Lab, resource: &ConfigResource) -> String {
    let pair = |(key, value): (&String, &String)| format!("{key}={value}");
    let own = lab.image().configs(resource);
    own.map_or(String::new(), |own| own.iter().map(pair).collect::<Vec<_>>().join(" "))
}

fn refused(code: i16, text: &str) -> (i16, String) {
    (code, text.to_owned())
}

#[test]
fn incremental_alter_judges_each_resource_as_kafka_does() {
    let big: &'static str = Box::leak("x".repeat(32_768).into_boxed_str());
    #[rustfmt::skip] // columns
    let table = [
        (edits(TOPIC, "t", &[("retention.ms", SET, Some("1")), ("min.insync.replicas", SET, Some("abc"))]), 40, "Invalid value abc for configuration min.insync.replicas"),
        (edits(TOPIC, "t", &[("retention.ms", SET, Some("1")), ("retention.ms", DELETE, None)]), 42, "Error due to duplicate config keys"),
        (edits(TOPIC, "t", &[("retention.ms", SET, None), ("foo", APPEND, None)]), 42, "Null value not supported for : retention.ms, foo"),
        (edits(TOPIC, "t", &[("retention.ms", APPEND, Some("1"))]), 40, "Can't APPEND to key retention.ms because its type is not LIST."),
        (edits(TOPIC, "t", &[("retention.ms", SUBTRACT, Some("1"))]), 40, "Can't SUBTRACT to key retention.ms because its type is not LIST."),
        (edits(TOPIC, "t", &[("foo", SET, Some("1"))]), 40, "Unknown topic config name: foo"),
        (edits(TOPIC, "t", &[("foo", DELETE, None)]), 0, ""),
        (edits(TOPIC, "t", &[("retention.ms", 7, Some("1"))]), 42, "Unknown config operation 7"),
        (edits(TOPIC, "t", &[("cleanup.policy", SET, Some(big))]), 40, "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes."),
        (edits(TOPIC, "ghost", &[("retention.ms", SET, Some("1"))]), 3, "The topic 'ghost' does not exist."),
        (edits(TOPIC, "ghost", &[("foo", SET, Some("1"))]), 40, "Unknown topic config name: foo"),
        (edits(TOPIC, "", &[("retention.ms", SET, Some("1"))]), 42, "Default topic resources are not allowed."),
        (edits(TOPIC, "a b", &[("foo", SET, Some("1"))]), 17, "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        (edits(TOPIC, "a b", &[("foo", APPEND, Some("1"))]), 40, "Can't APPEND to key foo because its type is not LIST."),
        (edits(0, "x", &[("a", SET, Some("1"))]), 42, "Unknown resource type 0"),
        (edits(7, "x", &[("a", SET, Some("1"))]), 42, "Unknown resource type 7"),
        (edits(32, "", &[("a", SET, Some("1"))]), 42, "Default group resources are not allowed."),
        (edits(16, "", &[("a", SET, Some("1"))]), 42, "Subscription name can't be empty"),
        (edits(8, "1", &[("kafka.zz", SET, Some("WARN"))]), 40, "Logger kafka.zz does not exist!"),
        (edits(8, "1", &[("kafka", APPEND, Some("WARN"))]), 42, "APPEND operation is not allowed for the BROKER_LOGGER resource"),
        (edits(8, "2", &[("kafka", SET, Some("WARN"))]), 42, "Unexpected node id. Expected 1, but received 2"),
        (edits(8, "x", &[("kafka", SET, Some("WARN"))]), 42, "Node id must be an integer, but it is: x"),
        (edits(BROKER, "2", &[("log.retention.ms", SET, Some("1"))]), 42, "Unexpected broker id, expected 1, but received 2"),
        (edits(BROKER, "-1", &[("log.retention.ms", SET, Some("1"))]), 42, "Unexpected broker id, expected 1, but received -1"),
        (edits(BROKER, "x", &[("log.retention.ms", SET, Some("1"))]), 42, "Node id must be an integer, but it is: x"),
        (edits(BROKER, "1", &[("log.retention.ms", SET, Some("abc"))]), 42, "Invalid value abc for configuration log.retention.ms"),
        (edits(BROKER, "1", &[("log.retention.ms", APPEND, Some("1"))]), 40, "Config value append is not allowed for config key: log.retention.ms"),
        (edits(BROKER, "1", &[("min.insync.replicas", SET, Some("2"))]), 40, "Broker-level min.insync.replicas cannot be altered while ELR is enabled."),
        (edits(BROKER, "1", &[("min.insync.replicas", DELETE, None)]), 40, "Broker-level min.insync.replicas cannot be altered while ELR is enabled."),
        (edits(BROKER, "", &[("min.insync.replicas", DELETE, None)]), 40, "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."),
        (edits(BROKER, "", &[("min.insync.replicas", SET, Some("2"))]), 0, ""),
    ];
    let mut lab = Lab::with_elr(1);
    lab.create("t", 1, 1);
    for (resource, code, text) in table {
        let what = format!("{resource:?}");
        let what = &what[..what.len().min(200)];
        let before = lab.end();
        assert_eq!(alter(&mut lab, vec![resource], false), [refused(code, text)], "{what}");
        assert!(code == 0 || lab.end() == before, "{what} wrote a record");
    }
    assert_eq!(settings(&lab, &ConfigResource::topic("t")), "");
}

#[test]
fn resources_are_independent_and_one_named_twice_is_refused() {
    let mut lab = Lab::new(1);
    lab.create("a", 1, 1);
    lab.create("b", 1, 1);
    let set = |name: &str, value| edits(TOPIC, name, &[("retention.ms", SET, Some(value))]);
    let asked = vec![set("a", "1"), set("b", "x"), set("c", "1"), set("c", "2")];
    let told = alter(&mut lab, asked, false);
    let twice = refused(42, "Each resource must appear at most once.");
    let bad = refused(40, "Invalid value x for configuration retention.ms");
    assert_eq!(told, [refused(0, ""), bad, twice.clone(), twice]);
    assert_eq!(settings(&lab, &ConfigResource::topic("a")), "retention.ms=1");
}

#[test]
fn lists_grow_and_shrink_as_written() {
    let key = "cleanup.policy";
    let mut lab = Lab::new(1);
    lab.create("t", 1, 1);
    #[rustfmt::skip] // columns
    let table = [
        (APPEND,   "compact",          "cleanup.policy=delete,compact"), // the default first
        (APPEND,   "compact",          "cleanup.policy=delete,compact"),
        (SUBTRACT, "delete",           "cleanup.policy=compact"),
        (SUBTRACT, "delete,foo",       "cleanup.policy=compact"),
        (APPEND,   "delete, compact",  "cleanup.policy=compact,delete, compact"), // spaces count
        (SET,      "",                 "cleanup.policy="),
        (APPEND,   "delete",           "cleanup.policy=delete"),
        (APPEND,   "",                 "cleanup.policy=delete,"),
        (SUBTRACT, "delete",           "cleanup.policy="), // a trailing comma is lost
        (DELETE,   "whatever",         ""),
    ];
    for (operation, value, now) in table {
        let edit = edits(TOPIC, "t", &[(key, operation, Some(value))]);
        assert_eq!(alter(&mut lab, vec![edit], false), [refused(0, "")], "{value:?}");
        assert_eq!(settings(&lab, &ConfigResource::topic("t")), now, "{operation} {value:?}");
    }
}

#[test]
fn validate_only_and_what_is_already_so_write_nothing() {
    let mut lab = Lab::new(1);
    lab.create("t", 1, 1);
    let set = || vec![edits(TOPIC, "t", &[("retention.ms", SET, Some("1"))])];
    let end = lab.end();
    assert_eq!(alter(&mut lab, set(), true), [refused(0, "")]);
    assert_eq!(lab.end(), end);
    alter(&mut lab, set(), false);
    assert_eq!(lab.end(), end + 1);
    alter(&mut lab, set(), false);
    assert_eq!(lab.end(), end + 1);
}

#[test]
fn brokers_have_configs_of_one_and_of_all() {
    let mut lab = Lab::new(1);
    let set = |name: &str, value| edits(BROKER, name, &[("log.retention.ms", SET, Some(value))]);
    alter(&mut lab, vec![set("", "2"), set("1", "1")], false);
    assert_eq!(settings(&lab, &ConfigResource::all_brokers()), "log.retention.ms=2");
    assert_eq!(settings(&lab, &ConfigResource::broker(BrokerId(1))), "log.retention.ms=1");
}

#[test]
fn legacy_alter_replaces_all_settings() {
    type New = (i8, &'static str, Vec<(&'static str, Option<&'static str>)>);
    let replace = |lab: &mut Lab, asked: Vec<New>, validate_only| {
        let resources = asked.into_iter().map(|(kind, name, configs)| NewConfigs {
            kind,
            name: name.to_owned(),
            configs: configs.iter().map(|(k, v)| ((*k).to_owned(), v.map(str::to_owned))).collect(),
        });
        let ask = ReplaceConfigs { at: BrokerId(1), resources: resources.collect(), validate_only };
        lab.ask(ask).iter().map(|it| told(&it.outcome)).collect::<Vec<_>>()
    };
    let mut lab = Lab::with_elr(1);
    lab.create("t", 1, 1);
    let both = [("retention.ms", SET, Some("1")), ("cleanup.policy", SET, Some("compact"))];
    alter(&mut lab, vec![edits(TOPIC, "t", &both)], false);
    #[rustfmt::skip] // columns
    let table: Vec<(New, bool, i16, &str, &str)> = vec![
        ((TOPIC, "t", vec![]), true,  0,  "", "cleanup.policy=compact retention.ms=1"),
        ((TOPIC, "t", vec![("retention.ms", Some("x"))]), false, 40, "Invalid value x for configuration retention.ms", "cleanup.policy=compact retention.ms=1"),
        ((TOPIC, "t", vec![("retention.ms", None)]), false, 42, "Null value not supported for : retention.ms", "cleanup.policy=compact retention.ms=1"),
        ((TOPIC, "t", vec![("retention.ms", Some("1")), ("retention.ms", Some("1"))]), false, 42, "Error due to duplicate config keys", "cleanup.policy=compact retention.ms=1"),
        ((TOPIC, "t", vec![("retention.ms", Some("2"))]), false, 0, "", "retention.ms=2"),
        ((TOPIC, "ghost", vec![("retention.ms", Some("2"))]), false, 3, "The topic 'ghost' does not exist.", "retention.ms=2"),
        ((TOPIC, "", vec![("retention.ms", Some("2"))]), false, 42, "Default topic resources are not allowed.", "retention.ms=2"),
        ((8, "1", vec![("kafka", Some("WARN"))]), false, 42, "Unknown resource type 8", "retention.ms=2"),
        ((0, "1", vec![("kafka", Some("WARN"))]), false, 42, "Unknown resource type 0", "retention.ms=2"),
        ((BROKER, "2", vec![]), false, 42, "Unexpected broker id, expected 1, but received 2", "retention.ms=2"),
        ((BROKER, "", vec![("min.insync.replicas", Some("1"))]), false, 0, "", "retention.ms=2"),
        ((BROKER, "", vec![]), false, 40, "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.", "retention.ms=2"),
        ((TOPIC, "t", vec![]), false, 0, "", ""),
    ];
    for (asked, validate_only, code, text, now) in table {
        let what = format!("{asked:?}");
        assert_eq!(replace(&mut lab, vec![asked], validate_only), [refused(code, text)], "{what}");
        assert_eq!(settings(&lab, &ConfigResource::topic("t")), now, "{what}");
    }
    let twice = vec![(TOPIC, "t", vec![]), (TOPIC, "t", vec![])];
    let told = replace(&mut lab, twice, false);
    assert_eq!(told, vec![refused(42, "Each resource must appear at most once."); 2]);
}
