//! Schemas of what kafka-protocol decodes: log directories.

use crate::protocol::dsl::schemas;

schemas! {
    alter_replica_log_dirs_request:
    struct AlterReplicaLogDirsRequest "1-2" flexible "2+" {
        dirs: [AlterReplicaLogDir], "0+";
    }

    struct AlterReplicaLogDir {
        path: string, "0+";
        topics: [AlterReplicaLogDirTopic], "0+";
    }

    struct AlterReplicaLogDirTopic {
        name: string, "0+";
        partitions: [int32], "0+";
    }
}

schemas! {
    alter_replica_log_dirs_response:
    struct AlterReplicaLogDirsResponse "1-2" flexible "2+" {
        throttle_time_ms: int32, "0+";
        results: [AlterReplicaLogDirTopicResult], "0+";
    }

    struct AlterReplicaLogDirTopicResult {
        topic_name: string, "0+";
        partitions: [AlterReplicaLogDirPartitionResult], "0+";
    }

    struct AlterReplicaLogDirPartitionResult {
        partition_index: int32, "0+";
        error_code: int16, "0+";
    }
}
