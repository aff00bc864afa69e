//! The configuration of a group: every group key of Kafka 4.4, said once together with the broker
//! key that is its default, and Kafka's rules for them.

use super::Values;
use super::broker::{BrokerConfig, GroupKeys};
use super::error::ConfigError;
use super::key::{Key, Parsed};
use super::known;
use super::table::row;

/// `broker "k"`: the broker key `k` is the default; without it the row's own default is.
macro_rules! group_keys {
    ($(
        $(#[doc = $doc:literal])+
        $name:literal: $type:ty = $default:tt, $valid:expr
            $(, broker $broker:literal)? $(, flag $internal:ident)?;
    )+) => {
        /// Every group key of Kafka 4.4, in the order in which Kafka looks at their values.
        pub(super) const KEYS: &[Key] = &[
            $(row!(
                $type, $name, $default, $valid, ReadOnly,
                group_keys!(@broker $($broker)?), [$($internal)?], $($doc),+
            ),)+
        ];
    };
    (@broker) => { None };
    (@broker $name:literal) => { Some($name) };
}

group_keys! {
    /// How long a member of a consumer group may be silent, in milliseconds.
    "consumer.session.timeout.ms": i32 = "45000", AtLeast(1),
        broker "group.consumer.session.timeout.ms";
    /// How often members of a consumer group are told to send a heartbeat, in milliseconds.
    "consumer.heartbeat.interval.ms": i32 = "5000", AtLeast(1),
        broker "group.consumer.heartbeat.interval.ms";
    /// Least time between two assignments of a consumer group, in milliseconds.
    "consumer.assignment.interval.ms": i32 = "1000", AtLeast(0),
        broker "group.consumer.assignment.interval.ms";
    /// Whether assignments of a consumer group are made aside from its coordinator.
    "consumer.assignor.offload.enable": bool = "true", Any,
        broker "group.consumer.assignor.offload.enable", flag internal;
    /// How long a member of a share group may be silent, in milliseconds.
    "share.session.timeout.ms": i32 = "45000", AtLeast(1),
        broker "group.share.session.timeout.ms";
    /// How often members of a share group are told to send a heartbeat, in milliseconds.
    "share.heartbeat.interval.ms": i32 = "5000", AtLeast(1),
        broker "group.share.heartbeat.interval.ms";
    /// How long a member of a share group has to acknowledge a record, in milliseconds.
    "share.record.lock.duration.ms": i32 = "30000", AtLeast(1000),
        broker "group.share.record.lock.duration.ms";
    /// How often a record is delivered to a share group at most.
    "share.delivery.count.limit": i32 = "5", AtLeast(2),
        broker "group.share.delivery.count.limit";
    /// Most records of a partition that members of a share group hold at a time.
    "share.partition.max.record.locks": i32 = "2000", AtLeast(100),
        broker "group.share.partition.max.record.locks";
    /// Where a share group begins in a partition that it has not read: `earliest`, `latest`, or
    /// `by_duration:PnDTnHnMn.nS` before now.
    "share.auto.offset.reset": String = "latest", ShareOffsetReset;
    /// Whether a share group gets records of transactions that are open or were aborted.
    "share.isolation.level": String = "read_uncommitted",
        OneOf(&["read_committed", "read_uncommitted"]);
    /// Whether members of a share group may ask for more time for a record.
    "share.renew.acknowledge.enable": bool = "true", Any;
    /// Least time between two assignments of a share group, in milliseconds.
    "share.assignment.interval.ms": i32 = "1000", AtLeast(0),
        broker "group.share.assignment.interval.ms";
    /// Whether assignments of a share group are made aside from its coordinator.
    "share.assignor.offload.enable": bool = "true", Any,
        broker "group.share.assignor.offload.enable", flag internal;
    /// How long a member of a streams group may be silent, in milliseconds.
    "streams.session.timeout.ms": i32 = "45000", AtLeast(1),
        broker "group.streams.session.timeout.ms";
    /// How often members of a streams group are told to send a heartbeat, in milliseconds.
    "streams.heartbeat.interval.ms": i32 = "5000", AtLeast(1),
        broker "group.streams.heartbeat.interval.ms";
    /// Standby replicas of each task.
    "streams.num.standby.replicas": i32 = "0", AtLeast(0),
        broker "group.streams.num.standby.replicas";
    /// How long the first member of an empty streams group waits for others, in milliseconds.
    "streams.initial.rebalance.delay.ms": i32 = "3000", AtLeast(0),
        broker "group.streams.initial.rebalance.delay.ms";
    /// Least time between two assignments of a streams group, in milliseconds.
    "streams.assignment.interval.ms": i32 = "1000", AtLeast(0),
        broker "group.streams.assignment.interval.ms";
    /// Whether assignments of a streams group are made aside from its coordinator.
    "streams.assignor.offload.enable": bool = "true", Any,
        broker "group.streams.assignor.offload.enable", flag internal;
    /// How often members tell how far their warm-up tasks have come, in milliseconds.
    "streams.task.offset.interval.ms": i32 = "60000", AtLeast(1),
        broker "group.streams.task.offset.interval.ms", flag internal;
    /// Most warm-up replicas of tasks.
    "streams.num.warmup.replicas": i32 = "2", AtLeast(0),
        broker "group.streams.num.warmup.replicas", flag internal;
    /// Client tags that standby replicas are spread over.
    "streams.rack.aware.assignment.tags": Vec<String> = "", Any,
        broker "group.streams.rack.aware.assignment.tags";
    /// Offsets that a client may be behind and still count as caught up.
    "streams.acceptable.recovery.lag": i64 = "10000", AtLeast(0),
        broker "group.streams.acceptable.recovery.lag", flag internal;
    /// Who assigns the tasks: one of the broker's `group.streams.assignors`, the first of them
    /// where nothing is set.
    "streams.assignor.name": Option<String> = null, Any, broker "group.streams.assignors";
    /// Where records go that a share group could not process; empty: nowhere.
    "errors.deadletterqueue.topic.name": String = "", Any;
    /// Whether the whole record goes there, not only what is known about it.
    "errors.deadletterqueue.copy.record.enable": bool = "false", Any;
}

/// Broker keys that bound group keys: least, most. In the order in which Kafka looks at them.
#[rustfmt::skip] // columns
const BOUNDS: &[(&str, Option<&str>, Option<&str>)] = &[
    ("consumer.heartbeat.interval.ms",
        Some("group.consumer.min.heartbeat.interval.ms"), Some("group.consumer.max.heartbeat.interval.ms")),
    ("consumer.session.timeout.ms",
        Some("group.consumer.min.session.timeout.ms"), Some("group.consumer.max.session.timeout.ms")),
    ("consumer.assignment.interval.ms",
        Some("group.consumer.min.assignment.interval.ms"), Some("group.consumer.max.assignment.interval.ms")),
    ("share.heartbeat.interval.ms",
        Some("group.share.min.heartbeat.interval.ms"), Some("group.share.max.heartbeat.interval.ms")),
    ("share.session.timeout.ms",
        Some("group.share.min.session.timeout.ms"), Some("group.share.max.session.timeout.ms")),
    ("share.record.lock.duration.ms",
        Some("group.share.min.record.lock.duration.ms"), Some("group.share.max.record.lock.duration.ms")),
    ("share.delivery.count.limit",
        Some("group.share.min.delivery.count.limit"), Some("group.share.max.delivery.count.limit")),
    ("share.partition.max.record.locks",
        Some("group.share.min.partition.max.record.locks"), Some("group.share.max.partition.max.record.locks")),
    ("share.assignment.interval.ms",
        Some("group.share.min.assignment.interval.ms"), Some("group.share.max.assignment.interval.ms")),
    ("streams.heartbeat.interval.ms",
        Some("group.streams.min.heartbeat.interval.ms"), Some("group.streams.max.heartbeat.interval.ms")),
    ("streams.session.timeout.ms",
        Some("group.streams.min.session.timeout.ms"), Some("group.streams.max.session.timeout.ms")),
    ("streams.num.standby.replicas", None, Some("group.streams.max.standby.replicas")),
    ("streams.assignment.interval.ms",
        Some("group.streams.min.assignment.interval.ms"), Some("group.streams.max.assignment.interval.ms")),
    ("streams.task.offset.interval.ms", Some("group.streams.min.task.offset.interval.ms"), None),
    ("streams.num.warmup.replicas", None, Some("group.streams.max.warmup.replicas")),
];

const TAGS: &str = "streams.rack.aware.assignment.tags";
const ASSIGNOR: &str = "streams.assignor.name";
const DEAD_LETTERS: &str = "errors.deadletterqueue.topic.name";

/// The row of a group key.
pub(super) fn key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

impl BrokerConfig {
    /// Checks all values of a group as AlterConfigs and IncrementalAlterConfigs do.
    ///
    /// # Errors
    /// [`ConfigError`] with Kafka's text; Kafka answers INVALID_CONFIG.
    pub fn check_group(&self, values: &Values) -> Result<(), ConfigError> {
        if let Some(name) = values.keys().find(|name| key(name).is_none()) {
            return Err(ConfigError::UnknownName { resource: "group", name: name.clone() });
        }
        check_tags(values)?;
        let mut parsed = Vec::new();
        for key in KEYS {
            if let Some(text) = values.get(key.name) {
                parsed.push((key.name, key.parse(text)?));
            }
        }
        self.check_bounds(&parsed)?;
        self.check_assignor(&parsed)?;
        for family in ["consumer", "share", "streams"] {
            self.check_silence(family, &parsed)?;
        }
        match found(&parsed, DEAD_LETTERS) {
            Some(Parsed::Text(topic)) if topic.starts_with("__") => Err(ConfigError::rule(
                format!("{DEAD_LETTERS}: DLQ topic name must not start with '__'"),
            )),
            _ => Ok(()),
        }
    }

    fn check_bounds(&self, parsed: &[(&str, Parsed)]) -> Result<(), ConfigError> {
        for (name, least, most) in BOUNDS {
            let Some(Parsed::Int(value)) = found(parsed, name) else { continue };
            let least = least.and_then(|name| self.number(name));
            let most = most.and_then(|name| self.number(name));
            if least.is_none_or(|least| least <= *value) && most.is_none_or(|most| *value <= most) {
                continue;
            }
            let bound = match (least, most) {
                (Some(least), Some(most)) => format!("in the range {least} to {most} inclusive."),
                (Some(least), None) => format!("greater than or equal to {least}"),
                (None, Some(most)) => format!("less than or equal to {most}"),
                (None, None) => continue,
            };
            return Err(ConfigError::rule(format!("{name} must be {bound}")));
        }
        Ok(())
    }

    fn check_assignor(&self, parsed: &[(&str, Parsed)]) -> Result<(), ConfigError> {
        let Some(Parsed::Text(name)) = found(parsed, ASSIGNOR) else { return Ok(()) };
        let registered = match self.broker_value("group.streams.assignors") {
            Some(Parsed::List(names)) => names,
            _ => Vec::new(),
        };
        if registered.contains(name) {
            return Ok(());
        }
        Err(ConfigError::rule(format!(
            "{ASSIGNOR} '{name}' is not a registered task assignor. Registered assignors are: [{}].",
            registered.join(", ")
        )))
    }

    /// A member must have time for a heartbeat before its session is over.
    fn check_silence(&self, family: &str, parsed: &[(&str, Parsed)]) -> Result<(), ConfigError> {
        let session = format!("{family}.session.timeout.ms");
        let heartbeat = format!("{family}.heartbeat.interval.ms");
        let own = |name: &str| match found(parsed, name) {
            Some(Parsed::Int(value)) => Some(*value),
            _ => None,
        };
        let (own_session, own_heartbeat) = (own(&session), own(&heartbeat));
        if own_session.is_none() && own_heartbeat.is_none() {
            return Ok(());
        }
        let broker = |name: &str| self.number(&format!("group.{name}"));
        let lasts = own_session.or_else(|| broker(&session));
        let needed = own_heartbeat.or_else(|| broker(&heartbeat));
        match lasts > needed {
            true => Ok(()),
            false => Err(ConfigError::rule(format!("{session} must be greater than {heartbeat}"))),
        }
    }

    /// What holds for a broker key, with a typed field or without.
    pub(super) fn broker_value(&self, name: &str) -> Option<Parsed> {
        let key = known::broker_key(name)?;
        key.parse(self.text_of(name).or(key.default_text())?).ok()
    }

    pub(super) fn number(&self, name: &str) -> Option<i64> {
        match self.broker_value(name) {
            Some(Parsed::Int(value)) => Some(value),
            _ => None,
        }
    }
}

fn found<'a>(parsed: &'a [(&str, Parsed)], name: &str) -> Option<&'a Parsed> {
    parsed.iter().find(|(own, _)| *own == name).map(|(_, value)| value)
}

/// Kafka says it of the text, before it looks at any value.
fn check_tags(values: &Values) -> Result<(), ConfigError> {
    let text = values.get(TAGS).map_or("", |text| text.trim());
    let mut tags: Vec<_> = text.split(',').map(str::trim).collect();
    tags.sort_unstable();
    match tags.windows(2).any(|pair| pair[0] == pair[1]) {
        true => Err(ConfigError::rule(format!("{TAGS} must not contain duplicate tag keys."))),
        false => Ok(()),
    }
}

/// What a consumer group (KIP-848) runs by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupSettings {
    /// How long a member may be silent.
    pub session_timeout_ms: i32,
    /// How often members are told to send a heartbeat.
    pub heartbeat_interval_ms: i32,
    /// Least time between two assignments.
    pub assignment_interval_ms: i32,
}

impl GroupSettings {
    /// The group's own values, moved into the bounds of the broker where these have changed since
    /// they were set; the broker's where it has none.
    /// - `own`: as the metadata image keeps them; `None`: the group sets nothing.
    pub fn of(own: Option<&Values>, keys: &GroupKeys) -> Self {
        let value = |name: &str, broker: i32, min: i32, max: i32| {
            let own = own.and_then(|own| own.get(name)?.trim().parse::<i32>().ok());
            // Kafka looks at the lower bound first: with bounds that cross, it wins.
            own.map_or(broker, |own| if own < min { min } else { own.min(max) })
        };
        Self {
            session_timeout_ms: value(
                "consumer.session.timeout.ms",
                keys.consumer_session_timeout_ms,
                keys.consumer_min_session_timeout_ms,
                keys.consumer_max_session_timeout_ms,
            ),
            heartbeat_interval_ms: value(
                "consumer.heartbeat.interval.ms",
                keys.consumer_heartbeat_interval_ms,
                keys.consumer_min_heartbeat_interval_ms,
                keys.consumer_max_heartbeat_interval_ms,
            ),
            assignment_interval_ms: value(
                "consumer.assignment.interval.ms",
                keys.consumer_assignment_interval_ms,
                keys.consumer_min_assignment_interval_ms,
                keys.consumer_max_assignment_interval_ms,
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Own<'a> = &'a [(&'a str, &'a str)];

    #[test]
    fn a_group_runs_by_its_own_values_within_the_bounds_of_the_broker() {
        let keys = BrokerConfig::default().group;
        let session = "consumer.session.timeout.ms";
        let heartbeat = "consumer.heartbeat.interval.ms";
        let assignment = "consumer.assignment.interval.ms";
        #[rustfmt::skip]
        let table: &[(Own<'_>, [i32; 3])] = &[
            // own                     session, heartbeat, assignment
            (&[],                      [45_000, 5_000, 1_000]),
            (&[(session, "50000")],    [50_000, 5_000, 1_000]),
            (&[(session, " 50000 ")],  [50_000, 5_000, 1_000]),
            (&[(session, "1")],        [45_000, 5_000, 1_000]),
            (&[(session, "90000")],    [60_000, 5_000, 1_000]),
            (&[(heartbeat, "6000")],   [45_000, 6_000, 1_000]),
            (&[(heartbeat, "99999")],  [45_000, 15_000, 1_000]),
            (&[(assignment, "0")],     [45_000, 5_000, 0]),
            (&[(assignment, "20000")], [45_000, 5_000, 15_000]),
            (&[(session, "soon")],     [45_000, 5_000, 1_000]),
            (&[("share.session.timeout.ms", "50000")], [45_000, 5_000, 1_000]),
        ];
        for (own, [session, heartbeat, assignment]) in table {
            let pairs = own.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let got = GroupSettings::of(Some(&pairs.collect()), &keys);
            let expected = GroupSettings {
                session_timeout_ms: *session,
                heartbeat_interval_ms: *heartbeat,
                assignment_interval_ms: *assignment,
            };
            assert_eq!(got, expected, "{own:?}");
        }
        assert_eq!(GroupSettings::of(None, &keys).session_timeout_ms, 45_000);
    }
}
