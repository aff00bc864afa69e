//! ListOffsets (key 2); kafka-protocol ends at version 10.

use crate::protocol::dsl::messages;

messages! {
    struct ListOffsetsRequest "1-11" flexible "6+" {
        replica_id: int32, "0+";
        isolation_level: int8, "2+";
        topics: [ListOffsetsTopic], "0+";
        timeout_ms: int32, "10+";
    }

    struct ListOffsetsTopic {
        name: string, "0+";
        partitions: [ListOffsetsPartition], "0+";
    }

    struct ListOffsetsPartition {
        partition_index: int32, "0+";
        current_leader_epoch: int32, "4+" = -1;
        timestamp: int64, "0+";
    }

    struct ListOffsetsResponse "1-11" flexible "6+" {
        throttle_time_ms: int32, "2+";
        topics: [ListOffsetsTopicResponse], "0+";
    }

    struct ListOffsetsTopicResponse {
        name: string, "0+";
        partitions: [ListOffsetsPartitionResponse], "0+";
    }

    struct ListOffsetsPartitionResponse {
        partition_index: int32, "0+";
        error_code: int16, "0+";
        timestamp: int64, "1+" = -1;
        offset: int64, "1+" = -1;
        leader_epoch: int32, "4+" = -1;
    }
}
