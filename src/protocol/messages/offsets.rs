//! OffsetCommit and OffsetFetch (keys 8, 9); kafka-protocol ends at version 9, before topic ids.

use crate::protocol::dsl::messages;

messages! {
    struct OffsetCommitRequest "2-10" flexible "8+" {
        group_id: string, "0+";
        generation_id_or_member_epoch: int32, "1+" = -1;
        member_id: string, "1+";
        group_instance_id: string, "7+", null "7+" = None;
        retention_time_ms: int64, "2-4" = -1;
        topics: [OffsetCommitRequestTopic], "0+";
    }

    struct OffsetCommitRequestTopic {
        name: string, "0-9";
        topic_id: uuid, "10+";
        partitions: [OffsetCommitRequestPartition], "0+";
    }

    struct OffsetCommitRequestPartition {
        partition_index: int32, "0+";
        committed_offset: int64, "0+";
        committed_leader_epoch: int32, "6+" = -1;
        committed_metadata: string, "0+", null "0+";
    }

    struct OffsetCommitResponse "2-10" flexible "8+" {
        throttle_time_ms: int32, "3+";
        topics: [OffsetCommitResponseTopic], "0+";
    }

    struct OffsetCommitResponseTopic {
        name: string, "0-9";
        topic_id: uuid, "10+";
        partitions: [OffsetCommitResponsePartition], "0+";
    }

    struct OffsetCommitResponsePartition {
        partition_index: int32, "0+";
        error_code: int16, "0+";
    }

    struct OffsetFetchRequest "1-10" flexible "6+" {
        group_id: string, "0-7";
        topics: [OffsetFetchRequestTopic], "0-7", null "2-7";
        groups: [OffsetFetchRequestGroup], "8+";
        require_stable: bool, "7+";
    }

    struct OffsetFetchRequestTopic {
        name: string, "0-7";
        partition_indexes: [int32], "0-7";
    }

    struct OffsetFetchRequestGroup {
        group_id: string, "8+";
        member_id: string, "9+", null "9+" = None;
        member_epoch: int32, "9+" = -1;
        topics: [OffsetFetchRequestTopics], "8+", null "8+";
    }

    struct OffsetFetchRequestTopics {
        name: string, "8-9";
        topic_id: uuid, "10+";
        partition_indexes: [int32], "8+";
    }

    struct OffsetFetchResponse "1-10" flexible "6+" {
        throttle_time_ms: int32, "3+";
        topics: [OffsetFetchResponseTopic], "0-7";
        error_code: int16, "2-7";
        groups: [OffsetFetchResponseGroup], "8+";
    }

    struct OffsetFetchResponseTopic {
        name: string, "0-7";
        partitions: [OffsetFetchResponsePartition], "0-7";
    }

    struct OffsetFetchResponsePartition {
        partition_index: int32, "0-7";
        committed_offset: int64, "0-7";
        committed_leader_epoch: int32, "5-7" = -1;
        metadata: string, "0-7", null "0-7";
        error_code: int16, "0-7";
    }

    struct OffsetFetchResponseGroup {
        group_id: string, "8+";
        topics: [OffsetFetchResponseTopics], "8+";
        error_code: int16, "8+";
    }

    struct OffsetFetchResponseTopics {
        name: string, "8-9";
        topic_id: uuid, "10+";
        partitions: [OffsetFetchResponsePartitions], "8+";
    }

    struct OffsetFetchResponsePartitions {
        partition_index: int32, "8+";
        committed_offset: int64, "8+";
        committed_leader_epoch: int32, "8+" = -1;
        metadata: string, "8+", null "8+";
        error_code: int16, "8+";
    }
}
