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
pub mod fetch;
pub mod list_offsets;
pub mod offsets;
pub mod produce;

/// The crate's newtypes around strings and numbers.
pub use kafka_protocol::messages::{BrokerId, GroupId, ProducerId, TopicName, TransactionalId};

/// Messages with a codec of our own.
macro_rules! own {
    ($($key:ident: $module:ident $request:ident $response:ident;)*) => {$(
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
    )*

        /// The schemas of the messages with a codec of our own.
        pub(crate) const MESSAGES: &[&Message] =
            &[$(&$request::MESSAGE, &$response::MESSAGE,)*];
    };
}

/// Messages that kafka-protocol reads and writes.
macro_rules! foreign {
    ($($key:ident: $request_module:ident $request:ident $response_module:ident $response:ident;)*) => {$(
        pub use kafka_protocol::messages::{$request_module, $response_module};
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
    )*};
}

own! {
    Produce: produce ProduceRequest ProduceResponse;
    Fetch: fetch FetchRequest FetchResponse;
    ListOffsets: list_offsets ListOffsetsRequest ListOffsetsResponse;
    OffsetCommit: offsets OffsetCommitRequest OffsetCommitResponse;
    OffsetFetch: offsets OffsetFetchRequest OffsetFetchResponse;
    ApiVersions: api_versions ApiVersionsRequest ApiVersionsResponse;
    DeleteGroups: delete_groups DeleteGroupsRequest DeleteGroupsResponse;
}

foreign! {
    Metadata: metadata_request MetadataRequest metadata_response MetadataResponse;
    FindCoordinator: find_coordinator_request FindCoordinatorRequest find_coordinator_response FindCoordinatorResponse;
    JoinGroup: join_group_request JoinGroupRequest join_group_response JoinGroupResponse;
    Heartbeat: heartbeat_request HeartbeatRequest heartbeat_response HeartbeatResponse;
    LeaveGroup: leave_group_request LeaveGroupRequest leave_group_response LeaveGroupResponse;
    SyncGroup: sync_group_request SyncGroupRequest sync_group_response SyncGroupResponse;
    DescribeGroups: describe_groups_request DescribeGroupsRequest describe_groups_response DescribeGroupsResponse;
    ListGroups: list_groups_request ListGroupsRequest list_groups_response ListGroupsResponse;
    CreateTopics: create_topics_request CreateTopicsRequest create_topics_response CreateTopicsResponse;
    DeleteTopics: delete_topics_request DeleteTopicsRequest delete_topics_response DeleteTopicsResponse;
    DeleteRecords: delete_records_request DeleteRecordsRequest delete_records_response DeleteRecordsResponse;
    InitProducerId: init_producer_id_request InitProducerIdRequest init_producer_id_response InitProducerIdResponse;
    OffsetForLeaderEpoch: offset_for_leader_epoch_request OffsetForLeaderEpochRequest offset_for_leader_epoch_response OffsetForLeaderEpochResponse;
    DescribeConfigs: describe_configs_request DescribeConfigsRequest describe_configs_response DescribeConfigsResponse;
    AlterConfigs: alter_configs_request AlterConfigsRequest alter_configs_response AlterConfigsResponse;
    CreatePartitions: create_partitions_request CreatePartitionsRequest create_partitions_response CreatePartitionsResponse;
    IncrementalAlterConfigs: incremental_alter_configs_request IncrementalAlterConfigsRequest incremental_alter_configs_response IncrementalAlterConfigsResponse;
    OffsetDelete: offset_delete_request OffsetDeleteRequest offset_delete_response OffsetDeleteResponse;
    DescribeCluster: describe_cluster_request DescribeClusterRequest describe_cluster_response DescribeClusterResponse;
    DescribeTopicPartitions: describe_topic_partitions_request DescribeTopicPartitionsRequest describe_topic_partitions_response DescribeTopicPartitionsResponse;
}
