//! Records of consumer groups (KIP-848) in `__consumer_offsets`, in Kafka 4.4's format.

use bytes::{Bytes, BytesMut};

use super::group::{with_prefix, without_prefix};
use crate::protocol::dsl::messages;
use crate::protocol::schema::{DescribedMessage, Message};
use crate::protocol::wire::{DecodeError, EncodeError};

/// Declares the kinds of records: number, name, key and value. All are in version 0.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:literal $name:ident($key:ident, $value:ident);)*) => {
        /// One record of a consumer group; `None` as value is a tombstone.
        #[derive(Debug, Clone, PartialEq)]
        pub enum ConsumerGroupRecord {
            $($(#[$doc])* $name($key, Option<$value>),)*
        }

        impl ConsumerGroupRecord {
            /// Key and value of the log record.
            ///
            /// # Errors
            /// [`EncodeError`]: a field is too long.
            pub fn encode(&self) -> Result<(Bytes, Option<Bytes>), EncodeError> {
                match self {
                    $(Self::$name(key, value) => {
                        let key = with_prefix($kind, |out: &mut BytesMut| key.encode(out, 0))?;
                        let value = value.as_ref();
                        let value = value.map(|value| with_prefix(0, |out| value.encode(out, 0)));
                        Ok((key, value.transpose()?))
                    })*
                }
            }

            /// Reads a record whose key, without the two bytes of its kind, is `key`; `None` for
            /// a kind that is not of a consumer group.
            ///
            /// # Errors
            /// [`DecodeError`]: the record is damaged, or its value has a version above 0.
            pub fn decode(
                kind: i16,
                key: &mut Bytes,
                value: Option<&[u8]>,
            ) -> Result<Option<Self>, DecodeError> {
                let value = value.map(without_prefix).transpose()?;
                match kind {
                    $($kind => {
                        let key = $key::decode(key, 0)?;
                        let value = value.map(|(mut bytes, version)| {
                            $value::decode(&mut bytes, version)
                        });
                        Ok(Some(Self::$name(key, value.transpose()?)))
                    })*
                    _ => Ok(None),
                }
            }
        }

        /// The schemas of the records above.
        pub(crate) const MESSAGES: &[&Message] = &[$(&$key::MESSAGE, &$value::MESSAGE,)*];
    };
}

kinds! {
    /// The group's epoch.
    3 Metadata(ConsumerGroupMetadataKey, ConsumerGroupMetadataValue);
    /// Topics and racks as Kafka before 4.1 kept them; only read and removed.
    4 PartitionMetadata(ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue);
    /// What a member says of itself.
    5 MemberMetadata(ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue);
    /// The epoch that the target assignment was made for.
    6 TargetMetadata(
        ConsumerGroupTargetAssignmentMetadataKey,
        ConsumerGroupTargetAssignmentMetadataValue
    );
    /// What a member is to have.
    7 TargetMember(ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue);
    /// What a member has.
    8 CurrentMember(
        ConsumerGroupCurrentMemberAssignmentKey,
        ConsumerGroupCurrentMemberAssignmentValue
    );
    /// The topics that a regular expression stands for.
    16 RegularExpression(ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue);
}

messages! {
    /// Key type 3.
    struct ConsumerGroupMetadataKey "0" flexible "none" {
        group_id: text, "0";
    }

    /// The group's epoch, and a hash of its topics' partitions and racks (KIP-1101).
    struct ConsumerGroupMetadataValue "0" flexible "0+" {
        epoch: int32, "0+";
        metadata_hash: int64, "0+", tag 0 = 0;
    }

    /// Key type 4.
    struct ConsumerGroupPartitionMetadataKey "0" flexible "none" {
        group_id: text, "0";
    }

    /// The topics of a group.
    struct ConsumerGroupPartitionMetadataValue "0" flexible "0+" {
        topics: [TopicMetadata], "0+";
    }

    /// A topic and its partitions.
    struct TopicMetadata {
        topic_id: uuid, "0+";
        topic_name: text, "0+";
        num_partitions: int32, "0+";
        partition_metadata: [PartitionMetadata], "0+";
    }

    /// A partition and the racks of its replicas.
    struct PartitionMetadata {
        partition: int32, "0+";
        racks: [text], "0+";
    }

    /// Key type 5.
    struct ConsumerGroupMemberMetadataKey "0" flexible "none" {
        group_id: text, "0";
        member_id: text, "0";
    }

    /// A member's subscription.
    struct ConsumerGroupMemberMetadataValue "0" flexible "0+" {
        instance_id: text, "0+", null "0+";
        rack_id: text, "0+", null "0+";
        client_id: text, "0+";
        client_host: text, "0+";
        subscribed_topic_names: [text], "0+";
        subscribed_topic_regex: text, "0+", null "0+";
        rebalance_timeout_ms: int32, "0+" = -1;
        server_assignor: text, "0+", null "0+";
        classic_member_metadata: ClassicMemberMetadata, "0+", null "0+", tag 0 = None;
    }

    /// Of a member that speaks the classic protocol.
    struct ClassicMemberMetadata {
        session_timeout_ms: int32, "0+";
        supported_protocols: [ClassicProtocol], "0+";
    }

    /// A protocol of a classic member.
    struct ClassicProtocol {
        name: text, "0+";
        metadata: bytes, "0+";
    }

    /// Key type 6.
    struct ConsumerGroupTargetAssignmentMetadataKey "0" flexible "none" {
        group_id: text, "0";
    }

    /// When and for which epoch the target assignment was made.
    struct ConsumerGroupTargetAssignmentMetadataValue "0" flexible "0+" {
        assignment_epoch: int32, "0+";
        assignment_timestamp: int64, "0+", tag 0 = 0;
    }

    /// Key type 7.
    struct ConsumerGroupTargetAssignmentMemberKey "0" flexible "none" {
        group_id: text, "0";
        member_id: text, "0";
    }

    /// Partitions that a member is to have.
    struct ConsumerGroupTargetAssignmentMemberValue "0" flexible "0+" {
        topic_partitions: [TopicPartition], "0+";
    }

    /// Partitions of a topic.
    struct TopicPartition {
        topic_id: uuid, "0+";
        partitions: [int32], "0+";
    }

    /// Key type 8.
    struct ConsumerGroupCurrentMemberAssignmentKey "0" flexible "none" {
        group_id: text, "0";
        member_id: text, "0";
    }

    /// Partitions that a member has, and those that it is to give back.
    struct ConsumerGroupCurrentMemberAssignmentValue "0" flexible "0+" {
        member_epoch: int32, "0+";
        previous_member_epoch: int32, "0+";
        state: int8, "0+";
        assigned_partitions: [TopicPartitions], "0+";
        partitions_pending_revocation: [TopicPartitions], "0+";
    }

    /// Partitions of a topic, each with the epoch since which the member has it.
    struct TopicPartitions {
        topic_id: uuid, "0+";
        partitions: [int32], "0+";
        assignment_epochs: [int32], "0+", null "0+", tag 0 = None;
    }

    /// Key type 16.
    struct ConsumerGroupRegularExpressionKey "0" flexible "none" {
        group_id: text, "0";
        regular_expression: text, "0";
    }

    /// The topics that matched, of which image of the cluster and when.
    struct ConsumerGroupRegularExpressionValue "0" flexible "0+" {
        topics: [text], "0+";
        version: int64, "0+";
        timestamp: int64, "0+";
    }
}
