//! The configuration of a group: what it sets itself, within the bounds of the broker.

use super::Values;
use super::broker::GroupKeys;

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
    use crate::config::BrokerConfig;

    #[test]
    fn a_group_runs_by_its_own_values_within_the_bounds_of_the_broker() {
        let keys = BrokerConfig::default().group;
        let session = "consumer.session.timeout.ms";
        let heartbeat = "consumer.heartbeat.interval.ms";
        let assignment = "consumer.assignment.interval.ms";
        #[rustfmt::skip]
        let table: &[(&[(&str, &str)], [i32; 3])] = &[
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
