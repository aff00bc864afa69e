//! Records of the metadata log, as Kafka 4.4 writes them at metadata.version 33 (4.4-IV2).
//! Each value starts with three unsigned varints: frame version 1, record type, record version.

use bytes::{Bytes, BytesMut};

use crate::common::varint;
use crate::protocol::codec;
use crate::protocol::dsl::messages;
use crate::protocol::schema::{DescribedMessage, Message};
use crate::protocol::wire::{DecodeError, EncodeError};

/// The only form of the three leading varints so far.
const FRAME_VERSION: u32 = 1;

macro_rules! metadata_records {
    ($($id:literal $variant:ident $record:ident $version:literal;)*) => {
        /// One record of the metadata log.
        #[derive(Debug, Clone, PartialEq)]
        pub enum MetadataRecord {
            $($variant($record),)*
        }

        $(impl From<$record> for MetadataRecord {
            fn from(record: $record) -> Self {
                Self::$variant(record)
            }
        })*

        impl MetadataRecord {
            /// The record as the value of a log record.
            ///
            /// # Errors
            /// [`EncodeError`]: a field is too long or null where it may not be.
            pub fn encode(&self) -> Result<Bytes, EncodeError> {
                let mut out = BytesMut::with_capacity(64);
                varint::write_u32(&mut out, FRAME_VERSION);
                match self {$(
                    Self::$variant(record) => {
                        varint::write_u32(&mut out, $id);
                        varint::write_u32(&mut out, $version);
                        record.encode(&mut out, $version)?;
                    }
                )*}
                Ok(out.freeze())
            }

            /// Reads what [`MetadataRecord::encode`] or Kafka wrote, in any version.
            ///
            /// # Errors
            /// [`DecodeError::UnknownKind`] for a frame version or record type that is not known:
            /// a node must not serve without it. Otherwise the record is damaged.
            pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
                let mut bytes = Bytes::copy_from_slice(value);
                let frame = codec::read_varint(&mut bytes)?;
                if frame != FRAME_VERSION {
                    return Err(unknown("metadata frame version", frame));
                }
                let id = codec::read_varint(&mut bytes)?;
                let version = codec::read_varint(&mut bytes)?;
                let version = i16::try_from(version)
                    .map_err(|_| unknown("metadata record version", version))?;
                match id {
                    $($id => Ok(Self::$variant($record::decode(&mut bytes, version)?)),)*
                    _ => Err(unknown("metadata record type", id)),
                }
            }
        }

        /// The schemas of the records above.
        pub(crate) const MESSAGES: &[&Message] = &[$(&$record::MESSAGE,)*];
    };
}

fn unknown(what: &'static str, id: u32) -> DecodeError {
    DecodeError::UnknownKind { what, id: i64::from(id) }
}

metadata_records! {
//  id variant                  record                         version written
    0  RegisterBroker            RegisterBrokerRecord           4;
    1  UnregisterBroker          UnregisterBrokerRecord         0;
    2  Topic                     TopicRecord                    0;
    3  Partition                 PartitionRecord                2;
    4  Config                    ConfigRecord                   0;
    5  PartitionChange           PartitionChangeRecord          2;
    7  FenceBroker               FenceBrokerRecord              0;
    8  UnfenceBroker             UnfenceBrokerRecord            0;
    9  RemoveTopic               RemoveTopicRecord              0;
    12 FeatureLevel              FeatureLevelRecord             0;
    15 ProducerIds               ProducerIdsRecord              0;
    17 BrokerRegistrationChange  BrokerRegistrationChangeRecord 3;
    20 NoOp                      NoOpRecord                     0;
}

messages! {
    /// A broker registered: its offset is the broker epoch.
    struct RegisterBrokerRecord "0-4" flexible "0+" {
        broker_id: int32, "0+";
        is_migrating_zk_broker: bool, "2+";
        incarnation_id: uuid, "0+";
        broker_epoch: int64, "0+";
        end_points: [BrokerEndpoint], "0+";
        features: [BrokerFeature], "0+";
        rack: text, "0+", null "0+";
        fenced: bool, "0+" = true;
        in_controlled_shutdown: bool, "1+";
        log_dirs: [uuid], "3+", tag 0;
        cordoned_log_dirs: [uuid], "4+", null "4+", tag 1 = None;
    }

    struct BrokerEndpoint {
        name: text, "0+";
        host: text, "0+";
        port: uint16, "0+";
        security_protocol: int16, "0+";
    }

    struct BrokerFeature {
        name: text, "0+";
        min_supported_version: int16, "0+";
        max_supported_version: int16, "0+";
    }

    /// A broker was taken out of the cluster for good.
    struct UnregisterBrokerRecord "0" flexible "0+" {
        broker_id: int32, "0+";
        broker_epoch: int64, "0+";
    }

    /// A topic was created; its partitions follow.
    struct TopicRecord "0" flexible "0+" {
        name: text, "0+";
        topic_id: uuid, "0+";
    }

    /// A partition was created, or is restated in a snapshot.
    struct PartitionRecord "0-2" flexible "0+" {
        partition_id: int32, "0+" = -1;
        topic_id: uuid, "0+";
        replicas: [int32], "0+";
        isr: [int32], "0+";
        removing_replicas: [int32], "0+";
        adding_replicas: [int32], "0+";
        leader: int32, "0+" = -1;
        leader_recovery_state: int8, "0+", tag 0;
        leader_epoch: int32, "0+" = -1;
        partition_epoch: int32, "0+" = -1;
        directories: [uuid], "1+";
        eligible_leader_replicas: [int32], "2+", null "2+", tag 1 = None;
        last_known_elr: [int32], "2+", null "2+", tag 2 = None;
    }

    /// One key of one resource was set; a null value removes it.
    struct ConfigRecord "0" flexible "0+" {
        resource_type: int8, "0+";
        resource_name: text, "0+";
        name: text, "0+";
        value: text, "0+", null "0+";
    }

    /// What changed of a partition; each change adds one to its partition epoch.
    struct PartitionChangeRecord "0-2" flexible "0+" {
        partition_id: int32, "0+" = -1;
        topic_id: uuid, "0+";
        isr: [int32], "0+", null "0+", tag 0 = None;
        leader: int32, "0+", tag 1 = -2;
        replicas: [int32], "0+", null "0+", tag 2 = None;
        removing_replicas: [int32], "0+", null "0+", tag 3 = None;
        adding_replicas: [int32], "0+", null "0+", tag 4 = None;
        leader_recovery_state: int8, "0+", tag 5 = -1;
        directories: [uuid], "1+", null "1+", tag 8 = None;
        eligible_leader_replicas: [int32], "2+", null "2+", tag 6 = None;
        last_known_elr: [int32], "2+", null "2+", tag 7 = None;
    }

    /// A broker was fenced (old form of BrokerRegistrationChange).
    struct FenceBrokerRecord "0" flexible "0+" {
        id: int32, "0+";
        epoch: int64, "0+";
    }

    /// A broker was unfenced (old form of BrokerRegistrationChange).
    struct UnfenceBrokerRecord "0" flexible "0+" {
        id: int32, "0+";
        epoch: int64, "0+";
    }

    /// A topic was deleted with all its partitions.
    struct RemoveTopicRecord "0" flexible "0+" {
        topic_id: uuid, "0+";
    }

    /// A feature was finalized at a level; 0 removes it.
    struct FeatureLevelRecord "0" flexible "0+" {
        name: text, "0+";
        feature_level: int16, "0+";
    }

    /// A block of producer ids was handed out; `next_producer_id` is the first still free.
    struct ProducerIdsRecord "0" flexible "0+" {
        broker_id: int32, "0+";
        broker_epoch: int64, "0+" = -1;
        next_producer_id: int64, "0+";
    }

    /// What changed of a registration: fenced 1, unfenced -1, 0 as it was.
    struct BrokerRegistrationChangeRecord "0-3" flexible "0+" {
        broker_id: int32, "0+";
        broker_epoch: int64, "0+";
        fenced: int8, "0+", tag 0;
        in_controlled_shutdown: int8, "1+", tag 1;
        log_dirs: [uuid], "2+", tag 2;
        cordoned_log_dirs: [uuid], "3+", null "3+", tag 3 = None;
    }

    /// Written by an idle controller to move the offset on.
    struct NoOpRecord "0" flexible "0+" {
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_topic_record_has_kafkas_bytes() {
        let record = MetadataRecord::from(TopicRecord {
            name: "orders".into(),
            topic_id: Uuid::from_u128(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10),
        });
        let mut expected = vec![1, 2, 0, 7];
        expected.extend_from_slice(b"orders");
        expected.extend(1..=16);
        expected.push(0);
        assert_eq!(record.encode().unwrap(), expected);
        assert_eq!(MetadataRecord::decode(&expected), Ok(record));
    }

    #[test]
    fn tagged_fields_are_written_ascending_and_only_where_they_differ() {
        let record = MetadataRecord::from(PartitionChangeRecord {
            partition_id: 3,
            leader: 5,
            directories: Some(vec![]),
            last_known_elr: Some(vec![7]),
            ..Default::default()
        });
        let mut expected = vec![1, 5, 2, 0, 0, 0, 3];
        expected.extend([0; 16]);
        expected.extend([3, 1, 4, 0, 0, 0, 5, 7, 5, 2, 0, 0, 0, 7, 8, 1, 1]);
        assert_eq!(record.encode().unwrap(), expected);
        assert_eq!(MetadataRecord::decode(&expected), Ok(record));
    }

    #[test]
    fn an_unknown_record_type_is_an_error_by_name() {
        let error = DecodeError::UnknownKind { what: "metadata record type", id: 99 };
        assert_eq!(MetadataRecord::decode(&[1, 99, 0]), Err(error));
    }
}
