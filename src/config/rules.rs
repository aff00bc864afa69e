//! Rules between keys, in Kafka's words where Kafka has the rule.

use super::broker::BrokerConfig;
use super::error::ConfigError;

/// Checks what no key says alone. `is_set`: whether a key was written by someone.
///
/// # Errors
/// [`ConfigError::Rule`] for the first rule that does not hold.
pub(super) fn check(
    config: &BrokerConfig,
    is_set: &dyn Fn(&str) -> bool,
) -> Result<(), ConfigError> {
    check_identity(config, is_set)?;
    check_logs(config)?;
    let network = &config.network;
    let request = i64::from(network.socket_request_max_bytes);
    if network.queued_max_request_bytes > 0 && network.queued_max_request_bytes < request {
        return rule(
            "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
        );
    }
    check_groups(config)?;
    let overrides = network.connection_overrides()?;
    if network.max_connections_per_ip == 0 && overrides.is_empty() {
        return rule(
            "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides \
             property is set.",
        );
    }
    let codec = config.group.offsets_topic_compression_codec;
    if !(0..=4).contains(&codec) {
        return rule(&format!(
            "Unknown compression type id: {codec} (offsets.topic.compression.codec)"
        ));
    }
    if let Some(id) = &config.ottla.cluster_id
        && (id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_graphic()))
    {
        return Err(ConfigError::value("ottla.cluster.id", id, "Not a cluster id"));
    }
    Ok(())
}

fn check_identity(config: &BrokerConfig, is_set: &dyn Fn(&str) -> bool) -> Result<(), ConfigError> {
    let node = &config.node;
    if node.broker_id != -1 && node.broker_id != node.node_id {
        return rule(
            "`node.id` and `broker.id` must be set to the same value. `broker.id` is deprecated, \
             please use `node.id` instead.",
        );
    }
    if is_set("inter.broker.listener.name") && is_set("security.inter.broker.protocol") {
        return rule(
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be \
             set.",
        );
    }
    for role in ["broker", "controller"] {
        if !node.process_roles.iter().any(|one| one == role) {
            return Err(ConfigError::rule_with_hint(
                format!(
                    "process.roles={} is not built yet: a node is broker and controller",
                    node.process_roles.join(",")
                ),
                "set `process.roles=broker,controller`",
            ));
        }
    }
    check_voters(config)
}

fn check_voters(config: &BrokerConfig) -> Result<(), ConfigError> {
    let mut ids = Vec::new();
    for entry in &config.node.controller_quorum_voters {
        let (id, address) = entry.split_once('@').unwrap_or(("", entry));
        let Ok(id) = id.trim().parse::<i32>() else {
            return rule(&format!(
                "Failed to parse voter ID as an integer from {id} in controller.quorum.voters"
            ));
        };
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        if port.is_none() {
            return rule(&format!(
                "Failed to parse host name from entry {entry} for the configuration \
                 controller.quorum.voters. Each entry should be in the form \
                 `{{id}}@{{host}}:{{port}}`."
            ));
        }
        ids.push(id);
    }
    let node_id = config.node.node_id;
    if !ids.is_empty() && !ids.contains(&node_id) {
        let voters = ids.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
        return rule(&format!(
            "If process.roles contains the 'controller' role, the node id {node_id} must be \
             included in the set of voters controller.quorum.voters=Set({voters})"
        ));
    }
    if ids.len() > 1 {
        return Err(ConfigError::rule_with_hint(
            format!(
                "controller.quorum.voters names {} controllers: several nodes are not built yet",
                ids.len()
            ),
            format!(
                "start one node with `controller.quorum.voters={}`",
                config.node.controller_quorum_voters[0]
            ),
        ));
    }
    Ok(())
}

fn check_logs(config: &BrokerConfig) -> Result<(), ConfigError> {
    let topic = &config.topic_defaults;
    if topic.retention_ms == 0 {
        return rule("log.retention.ms must be unlimited (-1) or, greater than or equal to 1");
    }
    if topic.segment_ms < 1 {
        return rule("log.roll.ms must be greater than or equal to 1");
    }
    if topic.segment_jitter_ms < 0 {
        return rule("log.roll.jitter.ms must be greater than or equal to 0");
    }
    // Kafka starts with it, and then refuses every change of every topic.
    if topic.flush_ms < 0 {
        return rule("log.flush.interval.ms must be greater than or equal to 0");
    }
    check_cleaner(config)
}

/// How the value of the first key must stand to that of the second.
enum Relation {
    AtLeast,
    AtMost,
    Below,
}

type KeyRule = (&'static str, Relation, &'static str);

/// Said of the keys of consumer, share and streams groups, which begin with `group.<family>.`.
const OF_EACH_FAMILY: &[KeyRule] = &[
    ("max.heartbeat.interval.ms", Relation::AtLeast, "min.heartbeat.interval.ms"),
    ("heartbeat.interval.ms", Relation::AtLeast, "min.heartbeat.interval.ms"),
    ("heartbeat.interval.ms", Relation::AtMost, "max.heartbeat.interval.ms"),
    ("max.session.timeout.ms", Relation::AtLeast, "min.session.timeout.ms"),
    ("session.timeout.ms", Relation::AtLeast, "min.session.timeout.ms"),
    ("session.timeout.ms", Relation::AtMost, "max.session.timeout.ms"),
    ("heartbeat.interval.ms", Relation::Below, "session.timeout.ms"),
    ("max.assignment.interval.ms", Relation::AtLeast, "min.assignment.interval.ms"),
    ("assignment.interval.ms", Relation::AtLeast, "min.assignment.interval.ms"),
    ("assignment.interval.ms", Relation::AtMost, "max.assignment.interval.ms"),
];

const OF_SHARE_GROUPS: &[KeyRule] = &[
    ("max.delivery.count.limit", Relation::AtLeast, "delivery.count.limit"),
    ("delivery.count.limit", Relation::AtLeast, "min.delivery.count.limit"),
    ("max.partition.max.record.locks", Relation::AtLeast, "partition.max.record.locks"),
    ("partition.max.record.locks", Relation::AtLeast, "min.partition.max.record.locks"),
    ("record.lock.duration.ms", Relation::AtLeast, "min.record.lock.duration.ms"),
    ("max.record.lock.duration.ms", Relation::AtLeast, "record.lock.duration.ms"),
    ("max.share.sessions", Relation::AtLeast, "max.size"),
];

const OF_STREAMS_GROUPS: &[KeyRule] = &[
    ("num.standby.replicas", Relation::AtMost, "max.standby.replicas"),
    ("task.offset.interval.ms", Relation::AtLeast, "min.task.offset.interval.ms"),
    ("num.warmup.replicas", Relation::AtMost, "max.warmup.replicas"),
];

fn check_groups(config: &BrokerConfig) -> Result<(), ConfigError> {
    let families: [(&str, &[KeyRule]); 3] =
        [("consumer", &[]), ("share", OF_SHARE_GROUPS), ("streams", OF_STREAMS_GROUPS)];
    for (family, own) in families {
        for (left, relation, right) in OF_EACH_FAMILY.iter().chain(own) {
            let [left, right] = [left, right].map(|name| format!("group.{family}.{name}"));
            let (Some(one), Some(other)) = (config.number(&left), config.number(&right)) else {
                continue;
            };
            let (holds, words) = match relation {
                Relation::AtLeast => (one >= other, "greater than or equal to"),
                Relation::AtMost => (one <= other, "less than or equal to"),
                Relation::Below => (one < other, "less than"),
            };
            if !holds {
                return rule(&format!("{left} must be {words} {right}"));
            }
        }
    }
    Ok(())
}

/// Kafka has no rule for it and fails on a division.
pub(super) const NO_CLEANER_THREAD: &str = "log.cleaner.threads must be at least 1";

fn check_cleaner(config: &BrokerConfig) -> Result<(), ConfigError> {
    let cleaner = &config.cleaner;
    let each = cleaner.dedupe_buffer_size.checked_div(i64::from(cleaner.threads));
    let Some(each_bytes) = each else { return rule(NO_CLEANER_THREAD) };
    if each_bytes <= 1 << 20 {
        return rule("log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.");
    }
    Ok(())
}

/// Checks what may not change so far in one step.
///
/// # Errors
/// [`ConfigError::Rule`] with Kafka's text.
pub(super) fn check_change(before: &BrokerConfig, after: &BrokerConfig) -> Result<(), ConfigError> {
    let (threads, current) = (after.cleaner.threads, before.cleaner.threads);
    let step = match i64::from(threads) {
        few if few < i64::from(current / 2) => "reduced to less than half",
        many if many > i64::from(current) * 2 => "increased to more than double",
        _ => return Ok(()),
    };
    rule(&format!(
        "Invalid value org.apache.kafka.common.config.ConfigException: Log cleaner threads cannot \
         be {step} the current value {current} for configuration Invalid dynamic configuration"
    ))
}

fn rule(reason: &str) -> Result<(), ConfigError> {
    Err(ConfigError::rule(reason))
}
