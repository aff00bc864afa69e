//! Schemas of what kafka-protocol decodes: topics, partitions and their records.

use crate::protocol::dsl::schemas;

schemas! {
    create_topics_request:
    struct CreateTopicsRequest "2-7" flexible "5+" {
        topics: [CreatableTopic], "0+";
        timeout_ms: int32, "0+" = 60000;
        validate_only: bool, "1+";
    }

    struct CreatableTopic {
        name: string, "0+";
        num_partitions: int32, "0+";
        replication_factor: int16, "0+";
        assignments: [CreatableReplicaAssignment], "0+";
        configs: [CreatableTopicConfig], "0+";
    }

    struct CreatableReplicaAssignment {
        partition_index: int32, "0+";
        broker_ids: [int32], "0+";
    }

    struct CreatableTopicConfig {
        name: string, "0+";
        value: string, "0+", null "0+";
    }
}

schemas! {
    create_topics_response:
    struct CreateTopicsResponse "2-7" flexible "5+" {
        throttle_time_ms: int32, "2+";
        topics: [CreatableTopicResult], "0+";
    }

    struct CreatableTopicResult {
        name: string, "0+";
        topic_id: uuid, "7+";
        error_code: int16, "0+";
        error_message: string, "1+", null "0+";
        topic_config_error_code: int16, "5+", tag 0;
        num_partitions: int32, "5+" = -1;
        replication_factor: int16, "5+" = -1;
        configs: [CreatableTopicConfigs], "5+", null "5+";
    }

    struct CreatableTopicConfigs {
        name: string, "5+";
        value: string, "5+", null "5+";
        read_only: bool, "5+";
        config_source: int8, "5+" = -1;
        is_sensitive: bool, "5+";
    }
}

schemas! {
    delete_topics_request:
    struct DeleteTopicsRequest "1-6" flexible "4+" {
        topics: [DeleteTopicState], "6+";
        topic_names: [string], "0-5";
        timeout_ms: int32, "0+";
    }

    struct DeleteTopicState {
        name: string, "6+", null "6+" = None;
        topic_id: uuid, "6+";
    }
}

schemas! {
    delete_topics_response:
    struct DeleteTopicsResponse "1-6" flexible "4+" {
        throttle_time_ms: int32, "1+";
        responses: [DeletableTopicResult], "0+";
    }

    struct DeletableTopicResult {
        name: string, "0+", null "6+";
        topic_id: uuid, "6+";
        error_code: int16, "0+";
        error_message: string, "5+", null "5+" = None;
    }
}

schemas! {
    create_partitions_request:
    struct CreatePartitionsRequest "0-3" flexible "2+" {
        topics: [CreatePartitionsTopic], "0+";
        timeout_ms: int32, "0+";
        validate_only: bool, "0+";
    }

    struct CreatePartitionsTopic {
        name: string, "0+";
        count: int32, "0+";
        assignments: [CreatePartitionsAssignment], "0+", null "0+";
    }

    struct CreatePartitionsAssignment {
        broker_ids: [int32], "0+";
    }
}

schemas! {
    create_partitions_response:
    struct CreatePartitionsResponse "0-3" flexible "2+" {
        throttle_time_ms: int32, "0+";
        results: [CreatePartitionsTopicResult], "0+";
    }

    struct CreatePartitionsTopicResult {
        name: string, "0+";
        error_code: int16, "0+";
        error_message: string, "0+", null "0+" = None;
    }
}

schemas! {
    delete_records_request:
    struct DeleteRecordsRequest "0-2" flexible "2+" {
        topics: [DeleteRecordsTopic], "0+";
        timeout_ms: int32, "0+";
    }

    struct DeleteRecordsTopic {
        name: string, "0+";
        partitions: [DeleteRecordsPartition], "0+";
    }

    struct DeleteRecordsPartition {
        partition_index: int32, "0+";
        offset: int64, "0+";
    }
}

schemas! {
    delete_records_response:
    struct DeleteRecordsResponse "0-2" flexible "2+" {
        throttle_time_ms: int32, "0+";
        topics: [DeleteRecordsTopicResult], "0+";
    }

    struct DeleteRecordsTopicResult {
        name: string, "0+";
        partitions: [DeleteRecordsPartitionResult], "0+";
    }

    struct DeleteRecordsPartitionResult {
        partition_index: int32, "0+";
        low_watermark: int64, "0+";
        error_code: int16, "0+";
    }
}
