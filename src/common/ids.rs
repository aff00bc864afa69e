//! Newtypes for Kafka's ids and epochs, and the base64url form Kafka prints UUIDs in.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use uuid::Uuid;

/// A record's position in a partition; as an end it is the first position not included.
pub type Offset = i64;
/// Kafka's "no offset" on the wire.
pub const NO_OFFSET: Offset = -1;
/// Kafka's "no timestamp" on the wire, in milliseconds since the Unix epoch otherwise.
pub const NO_TIMESTAMP: i64 = -1;

macro_rules! number_newtype {
    ($($(#[$doc:meta])* $name:ident($inner:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

number_newtype! {
    /// `node.id` of a broker or controller, ≥ 0.
    BrokerId(i32);
    /// Counts a partition's leaders; -1 where unknown.
    LeaderEpoch(i32);
    /// Identifies a producer (KIP-98); -1 for a producer without idempotence.
    ProducerId(i64);
    /// Counts the incarnations of one producer id (KIP-98); -1 without idempotence.
    ProducerEpoch(i16);
}

impl LeaderEpoch {
    pub const NONE: Self = Self(-1);
}

impl ProducerId {
    pub const NONE: Self = Self(-1);
}

impl ProducerEpoch {
    pub const NONE: Self = Self(-1);
}

/// A topic's name, 1 to 249 bytes of `[a-zA-Z0-9._-]`, shared.
pub type TopicName = Arc<str>;
/// The name under which a producer's transactions survive its restarts (KIP-98).
pub type TransactionalId = Arc<str>;

/// A topic's id (KIP-516); all zero means "none".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TopicId(pub Uuid);

impl TopicId {
    pub const NONE: Self = Self(Uuid::nil());

    /// Written as text, the two differ in one character at most. Ids are random, so that one is
    /// the other with a damaged bit.
    pub fn is_nearly(self, other: Self) -> bool {
        let (own, other) = (self.to_string(), other.to_string());
        own.bytes().zip(other.bytes()).filter(|(a, b)| a != b).count() <= 1
    }
}

impl fmt::Display for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_uuid(self.0))
    }
}

impl FromStr for TopicId {
    type Err = ParseUuidError;

    fn from_str(text: &str) -> Result<Self, ParseUuidError> {
        parse_uuid(text).map(Self)
    }
}

/// One partition of a topic, by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    pub topic: TopicName,
    pub partition: i32,
}

impl TopicPartition {
    pub fn new(topic: impl Into<TopicName>, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

const BASE64_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Kafka's text form of a UUID: base64url of its 16 bytes without padding, 22 characters.
pub fn format_uuid(id: Uuid) -> String {
    let bits = id.as_u128();
    let mut text = String::with_capacity(22);
    for sextet in 0..21 {
        let shift = 128 - 6 * (sextet + 1);
        text.push(BASE64_URL[(bits >> shift & 0x3f) as usize] as char);
    }
    text.push(BASE64_URL[((bits & 0x3) << 4) as usize] as char);
    text
}

/// The text is not a UUID in Kafka's form.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is not a UUID: 22 characters of base64url are needed")]
pub struct ParseUuidError(pub String);

/// Reads what [`format_uuid`] writes.
///
/// # Errors
/// [`ParseUuidError`] for another length, a character outside base64url, or spare bits that are
/// not zero.
pub fn parse_uuid(text: &str) -> Result<Uuid, ParseUuidError> {
    let wrong = || ParseUuidError(text.to_owned());
    if text.len() != 22 {
        return Err(wrong());
    }
    let mut bits: u128 = 0;
    for (at, byte) in text.bytes().enumerate() {
        let sextet = BASE64_URL.iter().position(|b| *b == byte).ok_or_else(wrong)? as u128;
        if at < 21 {
            bits = bits << 6 | sextet;
        } else if sextet & 0xf == 0 {
            bits = bits << 2 | sextet >> 4;
        } else {
            return Err(wrong());
        }
    }
    Ok(Uuid::from_u128(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuid_text_is_base64url_without_padding() {
        #[rustfmt::skip]
        let table = [
            (0,                                  "AAAAAAAAAAAAAAAAAAAAAA"),
            (1,                                  "AAAAAAAAAAAAAAAAAAAAAQ"),
            (u128::MAX,                          "_____________________w"),
            (0x4f000102030405060708090a0b0c0d0e, "TwABAgMEBQYHCAkKCwwNDg"),
        ];
        for (bits, text) in table {
            assert_eq!(format_uuid(Uuid::from_u128(bits)), text);
            assert_eq!(parse_uuid(text), Ok(Uuid::from_u128(bits)));
        }
    }

    #[test]
    fn text_of_another_length_alphabet_or_with_spare_bits_is_no_uuid() {
        for text in ["", "AAAA", "AAAAAAAAAAAAAAAAAAAAA=", "AAAAAAAAAAAAAAAAAAAAAB"] {
            assert_eq!(parse_uuid(text), Err(ParseUuidError(text.to_owned())));
        }
    }
}
