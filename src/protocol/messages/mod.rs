//! Every served request and response, from one place whichever codec serves it: Ottla's own where
//! it is hot or kafka-protocol lags behind Kafka 4.4, the crate's otherwise. This file is the only
//! one that knows which.
//!
//! Both kinds are plain structs with public fields and `Default`. The crate's are
//! `#[non_exhaustive]`: start from `default()` and assign, or chain its `with_…` methods. Own parts
//! are in [`produce`], [`fetch`] and so on, the crate's in its modules, re-exported here.

use bytes::{Bytes, BytesMut};
use kafka_protocol::protocol::{Decodable, Encodable};

use super::api::ApiKey;
use super::schema::{DescribedMessage, Message};
use super::wire::{DecodeError, EncodeError, Pieces, WireRequest, WireResponse};

pub mod api_versions;
pub mod delete_groups;
pub mod describe_log_dirs;
pub mod fetch;
pub mod list_offsets;
pub mod offsets;
pub mod produce;

/// The crate's newtypes around strings and numbers.
pub use kafka_protocol::messages::{BrokerId, GroupId, ProducerId, TopicName, TransactionalId};

/// Which codec serves which message.
macro_rules! messages_of {
    ($($key:ident: $codec:ident $request:ident in $requests:ident, $response:ident in $responses:ident;)*) => {
        $(messages_of! { @$codec $key, $request in $requests, $response in $responses })*

        /// The schema of the requests of `key`; none when it is not served.
        pub(crate) const fn request_message(key: ApiKey) -> Option<&'static Message> {
            match key {
                $(ApiKey::$key => Some(&<$request as DescribedMessage>::MESSAGE),)*
                _ => None,
            }
        }

        /// Decodes a request of `key` and drops it.
        #[cfg(any(test, feature = "fuzzing"))]
        pub(crate) fn decode_any(
            key: ApiKey,
            body: &mut Bytes,
            version: i16,
        ) -> Result<(), DecodeError> {
            match key {
                $(ApiKey::$key => <$request as WireRequest>::decode(body, version).map(drop),)*
                _ => unreachable!("{key} is not served"),
            }
        }

        /// The schemas of all served messages.
        pub(crate) const MESSAGES: &[&Message] = &[$(
            &<$request as DescribedMessage>::MESSAGE,
            &<$response as DescribedMessage>::MESSAGE,
        )*];
    };
    (@own $key:ident, $request:ident in $module:ident, $response:ident in $_:ident) => {
        pub use $module::{$request, $response};

        impl WireRequest for $request {
            const KEY: ApiKey = ApiKey::$key;
            type Response = $response;

            fn decode(body: &mut Bytes, version: i16) -> Result<Self, DecodeError> {
                Self::decode(body, version)
            }
        }

        impl WireResponse for $response {
            fn encode(&self, out: &mut BytesMut, version: i16) -> Result<(), EncodeError> {
                self.encode(out, version)
            }

            fn encode_pieces(&self, out: &mut Pieces, version: i16) -> Result<(), EncodeError> {
                self.encode(out, version)
            }
        }
    };
    (@foreign $key:ident, $request:ident in $requests:ident, $response:ident in $responses:ident) => {
        pub use kafka_protocol::messages::{$requests, $responses};
        pub use kafka_protocol::messages::{$request, $response};

        impl WireRequest for $request {
            const KEY: ApiKey = ApiKey::$key;
            type Response = $response;

            fn decode(body: &mut Bytes, version: i16) -> Result<Self, DecodeError> {
                <Self as Decodable>::decode(body, version).map_err(|error| DecodeError::Crate {
                    message: stringify!($request),
                    reason: error.to_string(),
                })
            }
        }

        impl WireResponse for $response {
            fn encode(&self, out: &mut BytesMut, version: i16) -> Result<(), EncodeError> {
                Encodable::encode(self, out, version).map_err(|error| EncodeError::Crate {
                    message: stringify!($response),
                    reason: error.to_string(),
                })
            }
        }
    };
}

messages_of! {
    Produce: own ProduceRequest in produce, ProduceResponse in produce;
    Fetch: own FetchRequest in fetch, FetchResponse in fetch;
    ListOffsets: own ListOffsetsRequest in list_offsets, ListOffsetsResponse in list_offsets;
    Metadata: foreign MetadataRequest in metadata_request, MetadataResponse in metadata_response;
    OffsetCommit: own OffsetCommitRequest in offsets, OffsetCommitResponse in offsets;
    OffsetFetch: own OffsetFetchRequest in offsets, OffsetFetchResponse in offsets;
    FindCoordinator: foreign FindCoordinatorRequest in find_coordinator_request, FindCoordinatorResponse in find_coordinator_response;
    JoinGroup: foreign JoinGroupRequest in join_group_request, JoinGroupResponse in join_group_response;
    Heartbeat: foreign HeartbeatRequest in heartbeat_request, HeartbeatResponse in heartbeat_response;
    LeaveGroup: foreign LeaveGroupRequest in leave_group_request, LeaveGroupResponse in leave_group_response;
    SyncGroup: foreign SyncGroupRequest in sync_group_request, SyncGroupResponse in sync_group_response;
    DescribeGroups: foreign DescribeGroupsRequest in describe_groups_request, DescribeGroupsResponse in describe_groups_response;
    ListGroups: foreign ListGroupsRequest in list_groups_request, ListGroupsResponse in list_groups_response;
    ApiVersions: own ApiVersionsRequest in api_versions, ApiVersionsResponse in api_versions;
    CreateTopics: foreign CreateTopicsRequest in create_topics_request, CreateTopicsResponse in create_topics_response;
    DeleteTopics: foreign DeleteTopicsRequest in delete_topics_request, DeleteTopicsResponse in delete_topics_response;
    DeleteRecords: foreign DeleteRecordsRequest in delete_records_request, DeleteRecordsResponse in delete_records_response;
    InitProducerId: foreign InitProducerIdRequest in init_producer_id_request, InitProducerIdResponse in init_producer_id_response;
    OffsetForLeaderEpoch: foreign OffsetForLeaderEpochRequest in offset_for_leader_epoch_request, OffsetForLeaderEpochResponse in offset_for_leader_epoch_response;
    DescribeConfigs: foreign DescribeConfigsRequest in describe_configs_request, DescribeConfigsResponse in describe_configs_response;
    AlterConfigs: foreign AlterConfigsRequest in alter_configs_request, AlterConfigsResponse in alter_configs_response;
    AlterReplicaLogDirs: foreign AlterReplicaLogDirsRequest in alter_replica_log_dirs_request, AlterReplicaLogDirsResponse in alter_replica_log_dirs_response;
    DescribeLogDirs: own DescribeLogDirsRequest in describe_log_dirs, DescribeLogDirsResponse in describe_log_dirs;
    CreatePartitions: foreign CreatePartitionsRequest in create_partitions_request, CreatePartitionsResponse in create_partitions_response;
    DeleteGroups: own DeleteGroupsRequest in delete_groups, DeleteGroupsResponse in delete_groups;
    IncrementalAlterConfigs: foreign IncrementalAlterConfigsRequest in incremental_alter_configs_request, IncrementalAlterConfigsResponse in incremental_alter_configs_response;
    OffsetDelete: foreign OffsetDeleteRequest in offset_delete_request, OffsetDeleteResponse in offset_delete_response;
    UpdateFeatures: foreign UpdateFeaturesRequest in update_features_request, UpdateFeaturesResponse in update_features_response;
    DescribeCluster: foreign DescribeClusterRequest in describe_cluster_request, DescribeClusterResponse in describe_cluster_response;
    DescribeProducers: foreign DescribeProducersRequest in describe_producers_request, DescribeProducersResponse in describe_producers_response;
    ConsumerGroupHeartbeat: foreign ConsumerGroupHeartbeatRequest in consumer_group_heartbeat_request, ConsumerGroupHeartbeatResponse in consumer_group_heartbeat_response;
    ConsumerGroupDescribe: foreign ConsumerGroupDescribeRequest in consumer_group_describe_request, ConsumerGroupDescribeResponse in consumer_group_describe_response;
    ListConfigResources: foreign ListConfigResourcesRequest in list_config_resources_request, ListConfigResourcesResponse in list_config_resources_response;
    DescribeTopicPartitions: foreign DescribeTopicPartitionsRequest in describe_topic_partitions_request, DescribeTopicPartitionsResponse in describe_topic_partitions_response;
}
