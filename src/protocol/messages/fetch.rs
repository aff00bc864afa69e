//! Fetch (key 1). Hot: records are passed on as the slices they were read into.

use crate::protocol::dsl::messages;

messages! {
    struct FetchRequest "4-18" flexible "12+" {
        cluster_id: string, "12+", null "12+", tag 0 = None;
        replica_id: int32, "0-14" = -1;
        replica_state: ReplicaState, "15+", tag 1;
        max_wait_ms: int32, "0+";
        min_bytes: int32, "0+";
        max_bytes: int32, "3+" = i32::MAX;
        isolation_level: int8, "4+";
        session_id: int32, "7+";
        session_epoch: int32, "7+" = -1;
        topics: [FetchTopic], "0+";
        forgotten_topics_data: [ForgottenTopic], "7+";
        rack_id: string, "11+";
    }

    struct ReplicaState {
        replica_id: int32, "15+" = -1;
        replica_epoch: int64, "15+" = -1;
    }

    struct FetchTopic {
        topic: string, "0-12";
        topic_id: uuid, "13+";
        partitions: [FetchPartition], "0+";
    }

    struct FetchPartition {
        partition: int32, "0+";
        current_leader_epoch: int32, "9+" = -1;
        fetch_offset: int64, "0+";
        last_fetched_epoch: int32, "12+" = -1;
        log_start_offset: int64, "5+" = -1;
        partition_max_bytes: int32, "0+";
        replica_directory_id: uuid, "17+", tag 0;
        high_watermark: int64, "18+", tag 1 = i64::MAX;
    }

    struct ForgottenTopic {
        topic: string, "7-12";
        topic_id: uuid, "13+";
        partitions: [int32], "7+";
    }

    struct FetchResponse "4-18" flexible "12+" {
        throttle_time_ms: int32, "1+";
        error_code: int16, "7+";
        session_id: int32, "7+";
        responses: [FetchableTopicResponse], "0+";
        node_endpoints: [NodeEndpoint], "16+", tag 0;
    }

    struct FetchableTopicResponse {
        topic: string, "0-12";
        topic_id: uuid, "13+";
        partitions: [PartitionData], "0+";
    }

    struct PartitionData {
        partition_index: int32, "0+";
        error_code: int16, "0+";
        high_watermark: int64, "0+";
        last_stable_offset: int64, "4+" = -1;
        log_start_offset: int64, "5+" = -1;
        diverging_epoch: EpochEndOffset, "12+", tag 0;
        current_leader: LeaderIdAndEpoch, "12+", tag 1;
        snapshot_id: SnapshotId, "12+", tag 2;
        aborted_transactions: [AbortedTransaction], "4+", null "4+";
        preferred_read_replica: int32, "11+" = -1;
        records: stored, "0+", null "0+" = None;
    }

    struct EpochEndOffset {
        epoch: int32, "12+" = -1;
        end_offset: int64, "12+" = -1;
    }

    struct LeaderIdAndEpoch {
        leader_id: int32, "12+" = -1;
        leader_epoch: int32, "12+" = -1;
    }

    struct SnapshotId {
        end_offset: int64, "0+" = -1;
        epoch: int32, "0+" = -1;
    }

    struct AbortedTransaction {
        producer_id: int64, "4+";
        first_offset: int64, "4+";
    }

    struct NodeEndpoint {
        node_id: int32, "16+";
        host: string, "16+";
        port: int32, "16+";
        rack: string, "16+", null "16+" = None;
    }
}
