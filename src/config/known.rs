//! All broker keys of Kafka 4.4, honoured or not.

use super::broker::honoured_keys;
use super::key::Key;

/// The row of a broker key, or of the key behind a `listener.name.<listener>.` prefix.
pub fn broker_key(name: &str) -> Option<&'static Key> {
    let plain = match name.strip_prefix("listener.name.") {
        Some(rest) => rest.split_once('.').map_or(rest, |(_, key)| key),
        None => name,
    };
    honoured_keys().find(|key| key.name == plain)
}
