//! All broker keys of Kafka 4.4: those honoured, which have typed fields, and the others, which
//! are known so that a configuration made for Kafka starts and its owner is told.

mod later;
mod security;
mod tuning;

use std::sync::LazyLock;

use hashbrown::HashMap;

use super::broker::honoured_keys;
use super::key::Key;

/// Rows of keys without a typed field.
macro_rules! other_keys {
    (
        #[doc = $doc:literal] $table:ident, $honour:ident;
        $($name:literal: $kind:ident = $default:tt, $valid:expr, $dynamic:ident
            $(, $flag:ident $($reason:literal)?)?;)+
    ) => {
        #[doc = $doc]
        pub(super) const $table: &[$crate::config::Key] = &[
            $($crate::config::Key {
                name: $name,
                kind: $crate::config::Kind::$kind,
                fallback: $crate::config::table::fallback!($default),
                valid: {
                    use $crate::config::key::Valid::*;
                    $valid
                },
                dynamic: $crate::config::Dynamic::$dynamic,
                honour: $crate::config::known::honour!($honour $($flag $($reason)?)?),
                internal: $crate::config::table::is_internal!($($flag)?),
                broker: None,
                doc: $doc,
            },)+
        ];
    };
}

macro_rules! honour {
    ($honour:ident) => {
        $crate::config::Honour::$honour
    };
    ($honour:ident internal) => {
        $crate::config::Honour::$honour
    };
    ($honour:ident refused $reason:literal) => {
        $crate::config::Honour::Refused($reason)
    };
}

pub(super) use {honour, other_keys};

/// Settings of Kafka's own authorizer, which are no rows of its table.
const OF_PLUGINS: &[&str] = &["super.users", "allow.everyone.if.no.acl.found"];

/// Every broker key of Kafka 4.4 and Ottla's own.
pub fn broker_keys() -> impl Iterator<Item = &'static Key> {
    let others = [later::LATER, later::REMOTE, later::OTHER, security::SECURITY, tuning::TUNING];
    honoured_keys().chain(others.into_iter().flatten())
}

/// By name; made once of the tables, which never change.
static BY_NAME: LazyLock<HashMap<&'static str, &'static Key>> =
    LazyLock::new(|| broker_keys().map(|key| (key.name, key)).collect());

/// The row of a broker key, or of the key behind a `listener.name.<listener>.` prefix.
pub fn broker_key(name: &str) -> Option<&'static Key> {
    BY_NAME.get(without_listener(name)).copied()
}

/// The key behind a `listener.name.<listener>.` prefix; without one, `name` itself.
pub(super) fn without_listener(name: &str) -> &str {
    let prefixed = name.strip_prefix("listener.name.").and_then(|rest| rest.split_once('.'));
    prefixed.map_or(name, |(_, key)| key)
}

/// Whether `name` belongs to a plug-in of Kafka's (authorizer, tiered storage), and is thus no
/// mistake although no table has it.
pub(super) fn is_of_a_plugin(name: &str) -> bool {
    OF_PLUGINS.contains(&name)
        || name.starts_with("rsm.config.")
        || name.starts_with("rlmm.config.")
}

/// The known broker key whose spelling is nearest to `name`, if it is near enough to be meant.
pub fn nearest_broker_key(name: &str) -> Option<&'static str> {
    let limit = (name.len() / 4).clamp(1, 4);
    let near = broker_keys().map(|key| (distance(name, key.name), key.name));
    near.filter(|(distance, _)| *distance <= limit).min().map(|(_, name)| name)
}

/// Edit distance (insert, delete, replace, swap of neighbours) in bytes.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_key_finds_the_one_that_is_meant() {
        #[rustfmt::skip]
        let table = [
            ("num.partition",             Some("num.partitions")),
            ("mum.partitions",            Some("num.partitions")),
            ("log.dris",                  Some("log.dirs")),
            ("advertized.listeners",      Some("advertised.listeners")),
            ("ottla.http.prot",           Some("ottla.http.port")),
            ("zookeeper.connect",         None),
            ("x",                         None),
        ];
        for (written, meant) in table {
            assert_eq!(nearest_broker_key(written), meant, "{written}");
        }
    }

    #[test]
    fn no_key_is_in_two_tables() {
        let mut names: Vec<_> = broker_keys().map(|key| key.name).collect();
        names.sort_unstable();
        let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }
}
