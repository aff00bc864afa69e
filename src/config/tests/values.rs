//! Values of topics and dynamic values of brokers: what is refused, in Kafka's words.

use crate::config::*;

const OK: &str = "ok";

type Pairs<'a> = &'a [(&'a str, &'a str)];

fn text(result: Result<(), ConfigError>) -> String {
    result.map_or_else(|error| error.to_string(), |()| OK.to_owned())
}

#[test]
fn a_topic_value_is_judged_as_by_kafka() {
    let throttled = "leader.replication.throttled.replicas must be the literal '*' or a list of \
                     replicas in the following format: \
                     [partitionId]:[brokerId],[partitionId]:[brokerId],...";
    #[rustfmt::skip]
    let table = [
        // key                       value          reason, or the whole answer
        ("foo.bar",                  "1",           "=Unknown topic config name: foo.bar"),
        ("message.format.version",   "3.0",         "=Unknown topic config name: message.format.version"),
        ("cleanup.policy",           "zip",         "String must be one of: compact, delete"),
        ("cleanup.policy",           "delete,",     "=Configuration 'cleanup.policy' values must not be empty."),
        ("cleanup.policy",           "delete,delete", OK),
        ("cleanup.policy",           "",            OK),
        ("cleanup.policy",           " compact , delete ", OK),
        ("retention.ms",             "abc",         "Not a number of type LONG"),
        ("retention.ms",             "",            "Not a number of type LONG"),
        ("retention.ms",             " 5 ",         OK),
        ("retention.ms",             "-2",          "Value must be at least -1"),
        ("retention.ms",             "99999999999999999999", "Not a number of type LONG"),
        ("segment.bytes",            "14",          "Value must be at least 1048576"),
        ("segment.bytes",            "99999999999", "Not a number of type INT"),
        ("internal.segment.bytes",   "1000",        OK),
        ("preallocate",              "yes",         "Expected value to be either true or false"),
        ("preallocate",              "TRUE",        OK),
        ("min.cleanable.dirty.ratio", "2.0",        "Value must be no more than 1"),
        ("min.cleanable.dirty.ratio", "-1.0",       "Value must be at least 0"),
        ("min.cleanable.dirty.ratio", "x",          "Not a number of type DOUBLE"),
        ("compression.type",         "zip",         "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("compression.type",         "",            "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("compression.gzip.level",   "0",           "Value must be between 1 and 9 or equal to -1"),
        ("compression.gzip.level",   "-1",          OK),
        ("compression.lz4.level",    "18",          "Value must be no more than 17"),
        ("compression.zstd.level",   "23",          "Value must be no more than 22"),
        ("message.timestamp.type",   "x",           "String must be one of: CreateTime, LogAppendTime"),
        ("leader.replication.throttled.replicas", "*", OK),
        ("leader.replication.throttled.replicas", "",  OK),
        ("leader.replication.throttled.replicas", "1:1,1:1", OK),
        ("min.insync.replicas",      "0",           "Value must be at least 1"),
        ("max.message.bytes",        "-1",          "Value must be at least 0"),
        ("max.decompressed.message.bytes", "2147483640", "Value must be no more than 2147483639"),
        ("remote.copy.lag.ms",       "-2",          "Value must be at least -1"),
        ("flush.messages",           "0",           "Value must be at least 1"),
    ];
    for (name, value, reason) in table {
        let answer = match reason.strip_prefix('=') {
            Some(whole) => whole.to_owned(),
            None if reason == OK => OK.to_owned(),
            None => format!("Invalid value {value} for configuration {name}: {reason}"),
        };
        assert_eq!(text(topic::validate(name, value)), answer, "{name}={value}");
    }
    let name = "leader.replication.throttled.replicas";
    let answer = format!("Invalid value [1:2, *] for configuration {name}: {throttled}");
    assert_eq!(text(topic::validate(name, "1:2,*")), answer);
}

#[test]
fn topic_values_that_exclude_each_other_are_refused() {
    #[rustfmt::skip]
    let table: [(Pairs, &str); 3] = [
        (&[("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "5")],
         "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)"),
        (&[("remote.storage.enable", "true")],
         "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with \
          remote log storage."),
        (&[("retention.bytes", "10"), ("local.retention.bytes", "100")], OK),
    ];
    for (values, answer) in table {
        let result = TopicConfig::default().with(values.iter().copied());
        assert_eq!(text(result.map(|_| ())), answer, "{values:?}");
    }
}

#[test]
fn dynamic_broker_values_are_judged_as_by_kafka() {
    use Level::{Broker, Cluster};
    let security = "These security configs can be dynamically updated only per-listener using \
                    the listener prefix: [ssl.keystore.type]";
    let per_broker = |name: &str| {
        format!(
            "Cannot update these configs at default cluster level, broker id must be specified: \
             [{name}]"
        )
    };
    let prefixed = "listener.name.plaintext.ssl.keystore.type";
    #[rustfmt::skip]
    let table: [(Level, Pairs, &str); 21] = [
        (Broker,  &[("num.io.threads", "abc")],  "Invalid value abc for configuration num.io.threads: Not a number of type INT"),
        (Broker,  &[("num.io.threads", "10")],   OK),
        (Broker,  &[("num.partitions", "10")],   "Cannot update these configs dynamically: [num.partitions]"),
        (Cluster, &[("num.partitions", "10")],   "Cannot update these configs dynamically: [num.partitions]"),
        (Broker,  &[("node.id", "2"), ("num.partitions", "3")], "Cannot update these configs dynamically: [node.id, num.partitions]"),
        (Cluster, &[("foo.bar", "10")],          OK),
        (Cluster, &[("ssl.keystore.type", "x")], security),
        (Broker,  &[("ssl.keystore.type", "x")], security),
        (Cluster, &[(prefixed, "x")],            &per_broker(prefixed)),
        (Broker,  &[(prefixed, "x")],            OK),
        (Cluster, &[("listeners", "PLAINTEXT://localhost:1")], &per_broker("listeners")),
        (Broker,  &[("message.max.bytes", "-1")], "Invalid value -1 for configuration message.max.bytes: Value must be at least 0"),
        (Cluster, &[("log.retention.ms", "0")],  "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1"),
        (Cluster, &[("log.retention.ms", "-5")], OK),
        (Cluster, &[("log.roll.ms", "0")],       "requirement failed: log.roll.ms must be greater than or equal to 1"),
        (Cluster, &[("log.cleanup.policy", "")], OK),
        (Cluster, &[("log.cleaner.threads", "2")], OK),
        (Cluster, &[("log.cleaner.threads", "3")], "Invalid value org.apache.kafka.common.config.ConfigException: Log cleaner threads cannot be increased to more than double the current value 1 for configuration Invalid dynamic configuration"),
        (Cluster, &[("log.cleaner.threads", "0")], "/ by zero"),
        (Cluster, &[("log.cleaner.dedupe.buffer.size", "1048576")], "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."),
        // Kafka accepts it, and then no topic can be changed any more.
        (Cluster, &[("log.flush.interval.ms", "-4")], "requirement failed: log.flush.interval.ms must be greater than or equal to 0"),
    ];
    for (level, values, answer) in table {
        let map = values.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let result = BrokerConfig::default().check_dynamic(level, &map);
        assert_eq!(text(result), answer, "{level:?} {values:?}");
    }
}

#[test]
fn dynamic_values_stand_over_static_ones_own_over_those_for_all() {
    let statics = |text: &str| {
        let file = Some(("p".to_owned(), text.to_owned()));
        load(&Sources { file, ..Sources::default() }).unwrap().0
    };
    let values = |value: Option<&str>| -> Values {
        value.map(|value| ("message.max.bytes".to_owned(), value.to_owned())).into_iter().collect()
    };
    #[rustfmt::skip]
    let table = [
        // file                    for all      own          what stands
        ("",                       None,        None,        1_048_588),
        ("message.max.bytes=1",    None,        None,        1),
        ("message.max.bytes=1",    Some("2"),   None,        2),
        ("message.max.bytes=1",    Some("2"),   Some("3"),   3),
        ("message.max.bytes=1",    None,        Some("3"),   3),
        ("message.max.bytes=1",    Some("2"),   Some("bad"), 2),
    ];
    for (file, cluster, own, stands) in table {
        let (config, refused) = statics(file).with_dynamic(&values(cluster), &values(own));
        let got = config.topic_defaults.max_message_bytes;
        assert_eq!(got, stands, "{file} {cluster:?} {own:?}");
        assert_eq!(refused.len(), usize::from(own == Some("bad")));
    }
}

#[test]
fn values_of_a_group_are_judged_as_by_kafka() {
    let offset = "Invalid value x for configuration share.auto.offset.reset: Invalid value `x` for \
                  configuration share.auto.offset.reset. The value must be either 'earliest', \
                  'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.";
    #[rustfmt::skip]
    let table: &[(Pairs<'_>, &str)] = &[
        (&[],                                                 OK),
        (&[("foo", "1")],                                     "Unknown group config name: foo"),
        (&[("consumer.session.timeout.ms", "abc")],           "Invalid value abc for configuration consumer.session.timeout.ms: Not a number of type INT"),
        (&[("consumer.session.timeout.ms", "0")],             "Invalid value 0 for configuration consumer.session.timeout.ms: Value must be at least 1"),
        (&[("consumer.session.timeout.ms", "44999")],         "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive."),
        (&[("consumer.session.timeout.ms", "60001")],         "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive."),
        (&[("consumer.session.timeout.ms", " 60000 ")],       OK),
        (&[("consumer.heartbeat.interval.ms", "4999")],       "consumer.heartbeat.interval.ms must be in the range 5000 to 15000 inclusive."),
        (&[("consumer.assignment.interval.ms", "-1")],        "Invalid value -1 for configuration consumer.assignment.interval.ms: Value must be at least 0"),
        (&[("consumer.assignment.interval.ms", "15001")],     "consumer.assignment.interval.ms must be in the range 0 to 15000 inclusive."),
        (&[("consumer.session.timeout.ms", "1"), ("consumer.heartbeat.interval.ms", "1")], "consumer.heartbeat.interval.ms must be in the range 5000 to 15000 inclusive."),
        (&[("share.session.timeout.ms", "x"), ("consumer.session.timeout.ms", "1")], "Invalid value x for configuration share.session.timeout.ms: Not a number of type INT"),
        (&[("consumer.assignor.offload.enable", "yes")],      "Invalid value yes for configuration consumer.assignor.offload.enable: Expected value to be either true or false"),
        (&[("share.record.lock.duration.ms", "14999")],       "share.record.lock.duration.ms must be in the range 15000 to 60000 inclusive."),
        (&[("share.delivery.count.limit", "11")],             "share.delivery.count.limit must be in the range 2 to 10 inclusive."),
        (&[("share.partition.max.record.locks", "4001")],     "share.partition.max.record.locks must be in the range 100 to 4000 inclusive."),
        (&[("share.auto.offset.reset", "x")],                 offset),
        (&[("share.auto.offset.reset", "by_duration:PT1H")],  OK),
        (&[("share.isolation.level", "x")],                   "Invalid value x for configuration share.isolation.level: String must be one of: read_committed, read_uncommitted"),
        (&[("streams.num.standby.replicas", "3")],            "streams.num.standby.replicas must be less than or equal to 2"),
        (&[("streams.task.offset.interval.ms", "14999")],     "streams.task.offset.interval.ms must be greater than or equal to 15000"),
        (&[("streams.num.warmup.replicas", "21")],            "streams.num.warmup.replicas must be less than or equal to 20"),
        (&[("streams.rack.aware.assignment.tags", "a, a")],   "streams.rack.aware.assignment.tags must not contain duplicate tag keys."),
        (&[("streams.rack.aware.assignment.tags", "a,,b")],   "Configuration 'streams.rack.aware.assignment.tags' values must not be empty."),
        (&[("streams.rack.aware.assignment.tags", "")],       OK),
        (&[("streams.assignor.name", "x")],                   "streams.assignor.name 'x' is not a registered task assignor. Registered assignors are: [sticky]."),
        (&[("streams.assignor.name", "sticky")],              OK),
        (&[("errors.deadletterqueue.topic.name", "__x")],     "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'"),
        (&[("errors.deadletterqueue.topic.name", "dlq")],     OK),
    ];
    for (pairs, answer) in table {
        let values = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let got = BrokerConfig::default().check_group(&values.collect());
        assert_eq!(text(got), *answer, "{pairs:?}");
    }
}

#[test]
fn the_session_of_a_group_outlasts_its_heartbeats() {
    // Only where the broker's bounds overlap can a value within them be too long.
    let mut statics = Statics::default();
    let close = ["session.timeout.ms", "heartbeat.interval.ms"];
    for (name, value) in [("min.session.timeout.ms", "6000"), ("session.timeout.ms", "7000")] {
        for family in ["consumer", "share", "streams"] {
            statics.set(format!("group.{family}.{name}"), value, Origin::House);
        }
    }
    statics.fill_from_house();
    let config = BrokerConfig::from_statics(statics).unwrap();
    for family in ["consumer", "share", "streams"] {
        let [session, heartbeat] = close.map(|name| format!("{family}.{name}"));
        let refused = format!("{session} must be greater than {heartbeat}");
        #[rustfmt::skip]
        let table: [(&[(&str, &str)], &str); 5] = [
            (&[(&session, "6000")],                        OK),
            (&[(&heartbeat, "6999")],                      OK),
            (&[(&heartbeat, "7000")],                      &refused),
            (&[(&session, "8000"), (&heartbeat, "7000")],  OK),
            (&[(&session, "8000"), (&heartbeat, "8000")],  &refused),
        ];
        for (pairs, answer) in table {
            let values = pairs.iter().map(|(name, value)| ((*name).into(), (*value).into()));
            assert_eq!(text(config.check_group(&values.collect())), answer, "{pairs:?}");
        }
    }
}

#[test]
fn the_broker_s_values_for_groups_must_fit_each_other() {
    #[rustfmt::skip]
    let table = [
        ("group.consumer.session.timeout.ms",         "40000", "group.consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms"),
        ("group.consumer.session.timeout.ms",         "60001", "group.consumer.session.timeout.ms must be less than or equal to group.consumer.max.session.timeout.ms"),
        ("group.consumer.max.heartbeat.interval.ms",  "4000",  "group.consumer.max.heartbeat.interval.ms must be greater than or equal to group.consumer.min.heartbeat.interval.ms"),
        ("group.consumer.assignment.interval.ms",     "15001", "group.consumer.assignment.interval.ms must be less than or equal to group.consumer.max.assignment.interval.ms"),
        ("group.share.max.share.sessions",            "100",   "group.share.max.share.sessions must be greater than or equal to group.share.max.size"),
        ("group.streams.num.standby.replicas",        "3",     "group.streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas"),
        ("group.consumer.migration.policy",           "Disabled", OK),
        ("group.consumer.session.timeout.ms",         "60000", OK),
    ];
    for (name, value, answer) in table {
        let mut statics = Statics::default();
        statics.set(name, value, Origin::House);
        statics.fill_from_house();
        assert_eq!(text(BrokerConfig::from_statics(statics).map(drop)), answer, "{name}={value}");
    }
}
