//! Kafka's rules for topic names.

use super::error::NameFault;
use crate::metadata::Topics;

/// Longest name: with "-" and a partition number it must be a file name of 255 bytes.
const NAME_BYTES_MAX: usize = 249;

/// Judges the name alone.
pub fn check(name: &str) -> Result<(), NameFault> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    match name {
        "" => Err(NameFault::Empty),
        "." | ".." => Err(NameFault::Dots(name.to_owned())),
        // Kafka counts UTF-16 units here, which differ only where the next rule refuses anyway.
        _ if name.encode_utf16().count() > NAME_BYTES_MAX => {
            Err(NameFault::TooLong(name.to_owned()))
        }
        _ if !name.bytes().all(legal) => Err(NameFault::Characters(name.to_owned())),
        _ => Ok(()),
    }
}

/// Whether a topic is there whose name differs only in '.' and '_' (`name` itself not counted).
/// Cost: a look-up per spelling that is stored, found by a scan of the names.
pub(super) fn check_collision(name: &str, topics: &Topics) -> Result<(), NameFault> {
    if !name.contains(['.', '_']) {
        return Ok(());
    }
    let same = |a: u8, b: u8| a == b || (matches!(a, b'.' | b'_') && matches!(b, b'.' | b'_'));
    let collides = |other: &&crate::common::TopicName| {
        other.len() == name.len()
            && &***other != name
            && other.bytes().zip(name.bytes()).all(|(a, b)| same(a, b))
    };
    match topics.names().find(collides) {
        Some(existing) => {
            Err(NameFault::Collides { name: name.into(), existing: existing.clone() })
        }
        None => Ok(()),
    }
}
