//! Records of `__consumer_offsets` in Kafka 4.4's format; other tools read this topic, so the bytes
//! are a contract. A key starts with the record type, a value with its version, two bytes each.

use bytes::{Bytes, BytesMut};

use super::consumer_group::ConsumerGroupRecord;
use crate::protocol::codec::{At, Wire};
use crate::protocol::dsl::messages;
use crate::protocol::schema::{DescribedMessage, Message};
use crate::protocol::wire::{DecodeError, EncodeError};

/// Key types.
const LEGACY_OFFSET_COMMIT: i16 = 0;
const OFFSET_COMMIT: i16 = 1;
const GROUP_METADATA: i16 = 2;

/// What Kafka 4.4 writes. An offset with an expiry of its own is written in the one version that
/// has the field.
const OFFSET_COMMIT_VERSION: i16 = 4;
const OFFSET_COMMIT_VERSION_WITH_EXPIRY: i16 = 1;
const GROUP_METADATA_VERSION: i16 = 3;

/// One record of `__consumer_offsets`; `None` as value is a tombstone.
#[derive(Debug, Clone, PartialEq)]
pub enum GroupRecord {
    OffsetCommit(OffsetCommitKey, Option<OffsetCommitValue>),
    GroupMetadata(GroupMetadataKey, Option<GroupMetadataValue>),
    Consumer(ConsumerGroupRecord),
    /// A record of a kind that is not served yet (share, streams groups): skipped with a warning
    /// by whoever replays.
    Unknown {
        kind: i16,
    },
}

impl GroupRecord {
    /// Key and value of the log record. An [`GroupRecord::Unknown`] has none to write.
    ///
    /// # Errors
    /// [`EncodeError`]: a field is too long, or the kind is unknown.
    pub fn encode(&self) -> Result<(Bytes, Option<Bytes>), EncodeError> {
        match self {
            Self::OffsetCommit(key, value) => {
                let key = with_prefix(OFFSET_COMMIT, |out| key.encode(out, 0))?;
                let value = value.as_ref().map(encode_offset).transpose()?;
                Ok((key, value))
            }
            Self::GroupMetadata(key, value) => {
                let key = with_prefix(GROUP_METADATA, |out| key.encode(out, 0))?;
                let version = GROUP_METADATA_VERSION;
                let value = value
                    .as_ref()
                    .map(|value| with_prefix(version, |out| value.encode(out, version)))
                    .transpose()?;
                Ok((key, value))
            }
            Self::Consumer(record) => record.encode(),
            Self::Unknown { kind } => {
                Err(EncodeError::Version { message: "GroupRecord", version: *kind })
            }
        }
    }

    /// Reads what [`GroupRecord::encode`] or Kafka wrote, in any version.
    ///
    /// # Errors
    /// [`DecodeError`]: the record is damaged, or its value has a version above Kafka 4.4's.
    pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Self, DecodeError> {
        let (mut key, kind) = without_prefix(key)?;
        if let Some(record) = ConsumerGroupRecord::decode(kind, &mut key, value)? {
            return Ok(Self::Consumer(record));
        }
        let value = value.map(without_prefix).transpose()?;
        match kind {
            LEGACY_OFFSET_COMMIT => {
                let key = LegacyOffsetCommitKey::decode(&mut key, 0)?;
                let value = value
                    .map(|(mut bytes, version)| {
                        LegacyOffsetCommitValue::decode(&mut bytes, version)
                    })
                    .transpose()?;
                Ok(Self::OffsetCommit(key.into(), value.map(Into::into)))
            }
            OFFSET_COMMIT => {
                let key = OffsetCommitKey::decode(&mut key, 0)?;
                let value = value
                    .map(|(mut bytes, version)| OffsetCommitValue::decode(&mut bytes, version))
                    .transpose()?;
                Ok(Self::OffsetCommit(key, value))
            }
            GROUP_METADATA => {
                let key = GroupMetadataKey::decode(&mut key, 0)?;
                let value = value
                    .map(|(mut bytes, version)| GroupMetadataValue::decode(&mut bytes, version))
                    .transpose()?;
                Ok(Self::GroupMetadata(key, value))
            }
            kind => Ok(Self::Unknown { kind }),
        }
    }
}

fn encode_offset(value: &OffsetCommitValue) -> Result<Bytes, EncodeError> {
    let version = match value.expire_timestamp {
        -1 => OFFSET_COMMIT_VERSION,
        _ => OFFSET_COMMIT_VERSION_WITH_EXPIRY,
    };
    with_prefix(version, |out| value.encode(out, version))
}

pub(super) fn with_prefix(
    prefix: i16,
    encode: impl FnOnce(&mut BytesMut) -> Result<(), EncodeError>,
) -> Result<Bytes, EncodeError> {
    let mut out = BytesMut::with_capacity(64);
    prefix.write(&mut out, At { version: 0, flexible: false })?;
    encode(&mut out)?;
    Ok(out.freeze())
}

/// Splits off the two leading bytes. The copy keeps replayed state from holding a whole batch.
pub(super) fn without_prefix(record: &[u8]) -> Result<(Bytes, i16), DecodeError> {
    let mut bytes = Bytes::copy_from_slice(record);
    let prefix = i16::read(&mut bytes, At { version: 0, flexible: false })?;
    Ok((bytes, prefix))
}

impl From<LegacyOffsetCommitKey> for OffsetCommitKey {
    fn from(key: LegacyOffsetCommitKey) -> Self {
        Self { group: key.group, topic: key.topic, partition: key.partition }
    }
}

impl From<LegacyOffsetCommitValue> for OffsetCommitValue {
    fn from(value: LegacyOffsetCommitValue) -> Self {
        Self {
            offset: value.offset,
            metadata: value.metadata,
            commit_timestamp: value.commit_timestamp,
            ..Self::default()
        }
    }
}

/// The schemas of the records above.
pub(crate) const MESSAGES: &[&Message] = &[
    &OffsetCommitKey::MESSAGE,
    &OffsetCommitValue::MESSAGE,
    &GroupMetadataKey::MESSAGE,
    &GroupMetadataValue::MESSAGE,
    &LegacyOffsetCommitKey::MESSAGE,
    &LegacyOffsetCommitValue::MESSAGE,
];

messages! {
    /// Key type 1: whose offset in which partition.
    struct OffsetCommitKey "0" flexible "none" {
        group: text, "0";
        topic: text, "0";
        partition: int32, "0";
    }

    /// A committed offset.
    struct OffsetCommitValue "0-4" flexible "4+" {
        offset: int64, "0+";
        leader_epoch: int32, "3+" = -1;
        metadata: text, "0+";
        commit_timestamp: int64, "0+";
        expire_timestamp: int64, "1" = -1;
        topic_id: uuid, "4+", tag 0;
    }

    /// Key type 2: a group.
    struct GroupMetadataKey "0" flexible "none" {
        group: text, "0";
    }

    /// A classic group at the end of a rebalance.
    struct GroupMetadataValue "0-4" flexible "4+" {
        protocol_type: text, "0+";
        generation: int32, "0+";
        protocol: text, "0+", null "0+";
        leader: text, "0+", null "0+";
        current_state_timestamp: int64, "2+" = -1;
        members: [MemberMetadata], "0+";
    }

    /// A member of a classic group.
    struct MemberMetadata {
        member_id: text, "0+";
        group_instance_id: text, "3+", null "3+" = None;
        client_id: text, "0+";
        client_host: text, "0+";
        rebalance_timeout: int32, "1+" = -1;
        session_timeout: int32, "0+";
        subscription: bytes, "0+";
        assignment: bytes, "0+";
    }

    /// Key type 0: what Kafka 0.8 wrote; only read.
    struct LegacyOffsetCommitKey "0" flexible "none" {
        group: text, "0";
        topic: text, "0";
        partition: int32, "0";
    }

    /// A committed offset under key type 0; only read.
    struct LegacyOffsetCommitValue "0" flexible "none" {
        offset: int64, "0";
        metadata: text, "0";
        commit_timestamp: int64, "0";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(record: GroupRecord) -> (Bytes, Option<Bytes>) {
        let (key, value) = record.encode().unwrap();
        assert_eq!(GroupRecord::decode(&key, value.as_deref()), Ok(record));
        (key, value)
    }

    #[test]
    fn an_offset_is_written_in_version_4_and_with_an_expiry_in_version_1() {
        let key = OffsetCommitKey { group: "g".into(), topic: "t".into(), partition: 2 };
        let value = OffsetCommitValue {
            offset: 9,
            metadata: "m".into(),
            commit_timestamp: 5,
            ..Default::default()
        };
        let (bytes, tombstone) = round_trip(GroupRecord::OffsetCommit(key.clone(), None));
        assert_eq!(&bytes[..], b"\0\x01\0\x01g\0\x01t\0\0\0\x02");
        assert_eq!(tombstone, None);
        let (_, bytes) = round_trip(GroupRecord::OffsetCommit(key.clone(), Some(value.clone())));
        let expected = b"\0\x04\0\0\0\0\0\0\0\x09\xff\xff\xff\xff\x02m\0\0\0\0\0\0\0\x05\0";
        assert_eq!(bytes.as_deref(), Some(&expected[..]));
        let value = OffsetCommitValue { expire_timestamp: 6, ..value };
        let (_, bytes) = round_trip(GroupRecord::OffsetCommit(key, Some(value)));
        assert_eq!(bytes.unwrap()[..2], [0, 1]);
    }

    #[test]
    fn a_group_is_written_in_version_3() {
        let key = GroupMetadataKey { group: "g".into() };
        let member = MemberMetadata { member_id: "m".into(), ..Default::default() };
        let value = GroupMetadataValue {
            protocol_type: "consumer".into(),
            protocol: None,
            members: vec![MemberMetadata { group_instance_id: Some("i".into()), ..member }],
            ..Default::default()
        };
        let (key, value) = round_trip(GroupRecord::GroupMetadata(key, Some(value)));
        assert_eq!((&key[..], &value.unwrap()[..2]), (&b"\0\x02\0\x01g"[..], &[0, 3][..]));
    }

    #[test]
    fn what_kafka_0_8_wrote_is_read_and_other_kinds_are_unknown() {
        let key = b"\0\0\0\x01g\0\x01t\0\0\0\x02";
        let value = b"\0\0\0\0\0\0\0\0\0\x09\0\x01m\0\0\0\0\0\0\0\x05";
        let Ok(GroupRecord::OffsetCommit(key, Some(value))) = GroupRecord::decode(key, Some(value))
        else {
            panic!("an offset commit is expected");
        };
        assert_eq!((&*key.topic, value.offset, value.leader_epoch), ("t", 9, -1));
        let unknown = GroupRecord::decode(b"\0\x0b\0\x01g", None);
        assert_eq!(unknown, Ok(GroupRecord::Unknown { kind: 11 }));
    }
}
