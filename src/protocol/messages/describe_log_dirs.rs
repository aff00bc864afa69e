//! DescribeLogDirs (key 35); kafka-protocol ends at version 4.

use crate::protocol::dsl::messages;

messages! {
    struct DescribeLogDirsRequest "1-5" flexible "2+" {
        topics: [DescribableLogDirTopic], "0+", null "0+";
    }

    struct DescribableLogDirTopic {
        topic: string, "0+";
        partitions: [int32], "0+";
    }

    struct DescribeLogDirsResponse "1-5" flexible "2+" {
        throttle_time_ms: int32, "0+";
        error_code: int16, "3+";
        results: [DescribeLogDirsResult], "0+";
    }

    struct DescribeLogDirsResult {
        error_code: int16, "0+";
        log_dir: string, "0+";
        topics: [DescribeLogDirsTopic], "0+";
        total_bytes: int64, "4+" = -1;
        usable_bytes: int64, "4+" = -1;
        is_cordoned: bool, "5+";
    }

    struct DescribeLogDirsTopic {
        name: string, "0+";
        partitions: [DescribeLogDirsPartition], "0+";
    }

    struct DescribeLogDirsPartition {
        partition_index: int32, "0+";
        partition_size: int64, "0+";
        offset_lag: int64, "0+";
        is_future_key: bool, "0+";
    }
}
