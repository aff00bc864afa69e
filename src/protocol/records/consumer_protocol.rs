//! What consumers put into JoinGroup and SyncGroup: Kafka's "consumer" protocol of classic groups.
//! Each begins with its version in two bytes; one above those known is read as the newest known.

use bytes::Bytes;

use super::group::{with_prefix, without_prefix};
use crate::protocol::dsl::messages;
use crate::protocol::schema::{DescribedMessage, Message};
use crate::protocol::wire::{DecodeError, EncodeError};

const NEWEST: i16 = 3;

impl ConsumerProtocolSubscription {
    /// Reads a member's metadata; returns its version too.
    ///
    /// # Errors
    /// [`DecodeError`]: not a subscription.
    pub fn parse(metadata: &[u8]) -> Result<(Self, i16), DecodeError> {
        let (mut bytes, version) = without_prefix(metadata)?;
        Ok((Self::decode(&mut bytes, version.clamp(0, NEWEST))?, version))
    }
}

impl ConsumerProtocolAssignment {
    /// Reads a member's assignment.
    ///
    /// # Errors
    /// [`DecodeError`]: not an assignment.
    pub fn parse(assignment: &[u8]) -> Result<Self, DecodeError> {
        let (mut bytes, version) = without_prefix(assignment)?;
        Self::decode(&mut bytes, version.clamp(0, NEWEST))
    }

    /// The bytes for a member whose metadata had `version`.
    ///
    /// # Errors
    /// [`EncodeError`]: a name is too long.
    pub fn to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {
        let version = version.clamp(0, NEWEST);
        with_prefix(version, |out| self.encode(out, version))
    }
}

/// The schemas of the messages below.
pub(crate) const MESSAGES: &[&Message] =
    &[&ConsumerProtocolSubscription::MESSAGE, &ConsumerProtocolAssignment::MESSAGE];

messages! {
    /// What a consumer wants, and has.
    struct ConsumerProtocolSubscription "0-3" flexible "none" {
        topics: [text], "0+";
        user_data: bytes, "0+", null "0+" = None;
        owned_partitions: [TopicPartition], "1+";
        generation_id: int32, "2+" = -1;
        rack_id: text, "3+", null "3+" = None;
    }

    /// Partitions of a topic.
    struct TopicPartition {
        topic: text, "0+";
        partitions: [int32], "0+";
    }

    /// What a consumer is given.
    struct ConsumerProtocolAssignment "0-3" flexible "none" {
        assigned_partitions: [TopicPartition], "0+";
        user_data: bytes, "0+", null "0+" = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_versions_are_read_as_the_newest_known() {
        let metadata = b"\0\x09\0\0\0\x01\0\x01t\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xff\0\x01rnew";
        let (subscription, version) = ConsumerProtocolSubscription::parse(metadata).unwrap();
        assert_eq!((version, &*subscription.topics[0]), (9, "t"));
        assert_eq!(subscription.rack_id.as_deref(), Some("r"));
        let partitions = vec![TopicPartition { topic: "t".into(), partitions: vec![1] }];
        let assignment =
            ConsumerProtocolAssignment { assigned_partitions: partitions, user_data: None };
        let bytes = assignment.to_bytes(version).unwrap();
        assert_eq!(&bytes[..], b"\0\x03\0\0\0\x01\0\x01t\0\0\0\x01\0\0\0\x01\xff\xff\xff\xff");
        assert_eq!(ConsumerProtocolAssignment::parse(&bytes), Ok(assignment));
        assert!(ConsumerProtocolSubscription::parse(b"\0").is_err());
    }
}
