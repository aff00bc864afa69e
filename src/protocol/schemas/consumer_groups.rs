//! Schemas of what kafka-protocol decodes: consumer groups (KIP-848).

use crate::protocol::dsl::schemas;

schemas! {
    consumer_group_heartbeat_request:
    struct ConsumerGroupHeartbeatRequest "0-1" flexible "0+" {
        group_id: string, "0+";
        member_id: string, "0+";
        member_epoch: int32, "0+";
        instance_id: string, "0+", null "0+" = None;
        rack_id: string, "0+", null "0+" = None;
        rebalance_timeout_ms: int32, "0+" = -1;
        subscribed_topic_names: [string], "0+", null "0+" = None;
        subscribed_topic_regex: string, "1+", null "1+" = None;
        server_assignor: string, "0+", null "0+" = None;
        topic_partitions: [TopicPartitions], "0+", null "0+" = None;
    }

    struct TopicPartitions {
        topic_id: uuid, "0+";
        partitions: [int32], "0+";
    }
}

schemas! {
    consumer_group_heartbeat_response:
    struct ConsumerGroupHeartbeatResponse "0-1" flexible "0+" {
        throttle_time_ms: int32, "0+";
        error_code: int16, "0+";
        error_message: string, "0+", null "0+" = None;
        member_id: string, "0+", null "0+" = None;
        member_epoch: int32, "0+";
        heartbeat_interval_ms: int32, "0+";
        assignment: Assignment, "0+", null "0+" = None;
    }

    struct Assignment {
        topic_partitions: [TopicPartitions], "0+";
    }

    struct TopicPartitions {
        topic_id: uuid, "0+";
        partitions: [int32], "0+";
    }
}

schemas! {
    consumer_group_describe_request:
    struct ConsumerGroupDescribeRequest "0-1" flexible "0+" {
        group_ids: [string], "0+";
        include_authorized_operations: bool, "0+";
    }
}

schemas! {
    consumer_group_describe_response:
    struct ConsumerGroupDescribeResponse "0-1" flexible "0+" {
        throttle_time_ms: int32, "0+";
        groups: [DescribedGroup], "0+";
    }

    struct DescribedGroup {
        error_code: int16, "0+";
        error_message: string, "0+", null "0+" = None;
        group_id: string, "0+";
        group_state: string, "0+";
        group_epoch: int32, "0+";
        assignment_epoch: int32, "0+";
        assignor_name: string, "0+";
        members: [Member], "0+";
        authorized_operations: int32, "0+" = -2147483648;
    }

    struct Member {
        member_id: string, "0+";
        instance_id: string, "0+", null "0+" = None;
        rack_id: string, "0+", null "0+" = None;
        member_epoch: int32, "0+";
        client_id: string, "0+";
        client_host: string, "0+";
        subscribed_topic_names: [string], "0+";
        subscribed_topic_regex: string, "0+", null "0+" = None;
        assignment: Assignment, "0+";
        target_assignment: Assignment, "0+";
        member_type: int8, "1+" = -1;
    }

    struct Assignment {
        topic_partitions: [TopicPartitions], "0+";
    }

    struct TopicPartitions {
        topic_id: uuid, "0+";
        topic_name: string, "0+";
        partitions: [int32], "0+";
    }
}
