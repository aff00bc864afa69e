//! Schemas of what kafka-protocol decodes: what there is and where.

use crate::protocol::dsl::schemas;

schemas! {
    metadata_request:
    struct MetadataRequest "0-13" flexible "9+" {
        topics: [MetadataRequestTopic], "0+", null "1+";
        allow_auto_topic_creation: bool, "4+" = true;
        include_cluster_authorized_operations: bool, "8-10";
        include_topic_authorized_operations: bool, "8+";
    }

    struct MetadataRequestTopic {
        topic_id: uuid, "10+";
        name: string, "0+", null "10+";
    }
}

schemas! {
    metadata_response:
    struct MetadataResponse "0-13" flexible "9+" {
        throttle_time_ms: int32, "3+";
        brokers: [MetadataResponseBroker], "0+";
        cluster_id: string, "2+", null "2+" = None;
        controller_id: int32, "1+" = -1;
        topics: [MetadataResponseTopic], "0+";
        cluster_authorized_operations: int32, "8-10" = i32::MIN;
        error_code: int16, "13+";
    }

    struct MetadataResponseBroker {
        node_id: int32, "0+";
        host: string, "0+";
        port: int32, "0+";
        rack: string, "1+", null "1+" = None;
    }

    struct MetadataResponseTopic {
        error_code: int16, "0+";
        name: string, "0+", null "12+";
        topic_id: uuid, "10+";
        is_internal: bool, "1+";
        partitions: [MetadataResponsePartition], "0+";
        topic_authorized_operations: int32, "8+" = i32::MIN;
    }

    struct MetadataResponsePartition {
        error_code: int16, "0+";
        partition_index: int32, "0+";
        leader_id: int32, "0+";
        leader_epoch: int32, "7+" = -1;
        replica_nodes: [int32], "0+";
        isr_nodes: [int32], "0+";
        offline_replicas: [int32], "5+";
    }
}

schemas! {
    find_coordinator_request:
    struct FindCoordinatorRequest "0-6" flexible "3+" {
        key: string, "0-3";
        key_type: int8, "1+";
        coordinator_keys: [string], "4+";
    }
}

schemas! {
    find_coordinator_response:
    struct FindCoordinatorResponse "0-6" flexible "3+" {
        throttle_time_ms: int32, "1+";
        error_code: int16, "0-3";
        error_message: string, "1-3", null "1-3";
        node_id: int32, "0-3";
        host: string, "0-3";
        port: int32, "0-3";
        coordinators: [Coordinator], "4+";
    }

    struct Coordinator {
        key: string, "4+";
        node_id: int32, "4+";
        host: string, "4+";
        port: int32, "4+";
        error_code: int16, "4+";
        error_message: string, "4+", null "4+";
    }
}

schemas! {
    describe_cluster_request:
    struct DescribeClusterRequest "0-2" flexible "0+" {
        include_cluster_authorized_operations: bool, "0+";
        endpoint_type: int8, "1+" = 1;
        include_fenced_brokers: bool, "2+";
    }
}

schemas! {
    describe_cluster_response:
    struct DescribeClusterResponse "0-2" flexible "0+" {
        throttle_time_ms: int32, "0+";
        error_code: int16, "0+";
        error_message: string, "0+", null "0+" = None;
        endpoint_type: int8, "1+" = 1;
        cluster_id: string, "0+";
        controller_id: int32, "0+" = -1;
        brokers: [DescribeClusterBroker], "0+";
        cluster_authorized_operations: int32, "0+" = i32::MIN;
    }

    struct DescribeClusterBroker {
        broker_id: int32, "0+";
        host: string, "0+";
        port: int32, "0+";
        rack: string, "0+", null "0+" = None;
        is_fenced: bool, "2+";
    }
}

schemas! {
    describe_topic_partitions_request:
    struct DescribeTopicPartitionsRequest "0" flexible "0+" {
        topics: [TopicRequest], "0+";
        response_partition_limit: int32, "0+" = 2000;
        cursor: Cursor, "0+", null "0+" = None;
    }

    struct TopicRequest {
        name: string, "0+";
    }

    struct Cursor {
        topic_name: string, "0+";
        partition_index: int32, "0+";
    }
}

schemas! {
    describe_topic_partitions_response:
    struct DescribeTopicPartitionsResponse "0" flexible "0+" {
        throttle_time_ms: int32, "0+";
        topics: [DescribeTopicPartitionsResponseTopic], "0+";
        next_cursor: Cursor, "0+", null "0+" = None;
    }

    struct DescribeTopicPartitionsResponseTopic {
        error_code: int16, "0+";
        name: string, "0+", null "0+";
        topic_id: uuid, "0+";
        is_internal: bool, "0+";
        partitions: [DescribeTopicPartitionsResponsePartition], "0+";
        topic_authorized_operations: int32, "0+" = i32::MIN;
    }

    struct DescribeTopicPartitionsResponsePartition {
        error_code: int16, "0+";
        partition_index: int32, "0+";
        leader_id: int32, "0+";
        leader_epoch: int32, "0+" = -1;
        replica_nodes: [int32], "0+";
        isr_nodes: [int32], "0+";
        eligible_leader_replicas: [int32], "0+", null "0+" = None;
        last_known_elr: [int32], "0+", null "0+" = None;
        offline_replicas: [int32], "0+";
    }

    struct Cursor {
        topic_name: string, "0+";
        partition_index: int32, "0+";
    }
}
