//! Schemas of what kafka-protocol decodes: classic groups.

use crate::protocol::dsl::schemas;

schemas! {
    join_group_request:
    struct JoinGroupRequest "0-9" flexible "6+" {
        group_id: string, "0+";
        session_timeout_ms: int32, "0+";
        rebalance_timeout_ms: int32, "1+" = -1;
        member_id: string, "0+";
        group_instance_id: string, "5+", null "5+" = None;
        protocol_type: string, "0+";
        protocols: [JoinGroupRequestProtocol], "0+";
        reason: string, "8+", null "8+" = None;
    }

    struct JoinGroupRequestProtocol {
        name: string, "0+";
        metadata: bytes, "0+";
    }
}

schemas! {
    join_group_response:
    struct JoinGroupResponse "0-9" flexible "6+" {
        throttle_time_ms: int32, "2+";
        error_code: int16, "0+";
        generation_id: int32, "0+" = -1;
        protocol_type: string, "7+", null "7+" = None;
        protocol_name: string, "0+", null "7+";
        leader: string, "0+";
        skip_assignment: bool, "9+";
        member_id: string, "0+";
        members: [JoinGroupResponseMember], "0+";
    }

    struct JoinGroupResponseMember {
        member_id: string, "0+";
        group_instance_id: string, "5+", null "5+" = None;
        metadata: bytes, "0+";
    }
}

schemas! {
    sync_group_request:
    struct SyncGroupRequest "0-5" flexible "4+" {
        group_id: string, "0+";
        generation_id: int32, "0+";
        member_id: string, "0+";
        group_instance_id: string, "3+", null "3+" = None;
        protocol_type: string, "5+", null "5+" = None;
        protocol_name: string, "5+", null "5+" = None;
        assignments: [SyncGroupRequestAssignment], "0+";
    }

    struct SyncGroupRequestAssignment {
        member_id: string, "0+";
        assignment: bytes, "0+";
    }
}

schemas! {
    sync_group_response:
    struct SyncGroupResponse "0-5" flexible "4+" {
        throttle_time_ms: int32, "1+";
        error_code: int16, "0+";
        protocol_type: string, "5+", null "5+" = None;
        protocol_name: string, "5+", null "5+" = None;
        assignment: bytes, "0+";
    }
}

schemas! {
    heartbeat_request:
    struct HeartbeatRequest "0-4" flexible "4+" {
        group_id: string, "0+";
        generation_id: int32, "0+";
        member_id: string, "0+";
        group_instance_id: string, "3+", null "3+" = None;
    }
}

schemas! {
    heartbeat_response:
    struct HeartbeatResponse "0-4" flexible "4+" {
        throttle_time_ms: int32, "1+";
        error_code: int16, "0+";
    }
}

schemas! {
    leave_group_request:
    struct LeaveGroupRequest "0-5" flexible "4+" {
        group_id: string, "0+";
        member_id: string, "0-2";
        members: [MemberIdentity], "3+";
    }

    struct MemberIdentity {
        member_id: string, "3+";
        group_instance_id: string, "3+", null "3+" = None;
        reason: string, "5+", null "5+" = None;
    }
}

schemas! {
    leave_group_response:
    struct LeaveGroupResponse "0-5" flexible "4+" {
        throttle_time_ms: int32, "1+";
        error_code: int16, "0+";
        members: [MemberResponse], "3+";
    }

    struct MemberResponse {
        member_id: string, "3+";
        group_instance_id: string, "3+", null "3+";
        error_code: int16, "3+";
    }
}

schemas! {
    describe_groups_request:
    struct DescribeGroupsRequest "0-6" flexible "5+" {
        groups: [string], "0+";
        include_authorized_operations: bool, "3+";
    }
}

schemas! {
    describe_groups_response:
    struct DescribeGroupsResponse "0-6" flexible "5+" {
        throttle_time_ms: int32, "1+";
        groups: [DescribedGroup], "0+";
    }

    struct DescribedGroup {
        error_code: int16, "0+";
        error_message: string, "6+", null "6+" = None;
        group_id: string, "0+";
        group_state: string, "0+";
        protocol_type: string, "0+";
        protocol_data: string, "0+";
        members: [DescribedGroupMember], "0+";
        authorized_operations: int32, "3+" = i32::MIN;
    }

    struct DescribedGroupMember {
        member_id: string, "0+";
        group_instance_id: string, "4+", null "4+" = None;
        client_id: string, "0+";
        client_host: string, "0+";
        member_metadata: bytes, "0+";
        member_assignment: bytes, "0+";
    }
}

schemas! {
    list_groups_request:
    struct ListGroupsRequest "0-5" flexible "3+" {
        states_filter: [string], "4+";
        types_filter: [string], "5+";
    }
}

schemas! {
    list_groups_response:
    struct ListGroupsResponse "0-5" flexible "3+" {
        throttle_time_ms: int32, "1+";
        error_code: int16, "0+";
        groups: [ListedGroup], "0+";
    }

    struct ListedGroup {
        group_id: string, "0+";
        protocol_type: string, "0+";
        group_state: string, "4+";
        group_type: string, "5+";
    }
}

schemas! {
    offset_delete_request:
    struct OffsetDeleteRequest "0" flexible "none" {
        group_id: string, "0+";
        topics: [OffsetDeleteRequestTopic], "0+";
    }

    struct OffsetDeleteRequestTopic {
        name: string, "0+";
        partitions: [OffsetDeleteRequestPartition], "0+";
    }

    struct OffsetDeleteRequestPartition {
        partition_index: int32, "0+";
    }
}

schemas! {
    offset_delete_response:
    struct OffsetDeleteResponse "0" flexible "none" {
        error_code: int16, "0+";
        throttle_time_ms: int32, "0+";
        topics: [OffsetDeleteResponseTopic], "0+";
    }

    struct OffsetDeleteResponseTopic {
        name: string, "0+";
        partitions: [OffsetDeleteResponsePartition], "0+";
    }

    struct OffsetDeleteResponsePartition {
        partition_index: int32, "0+";
        error_code: int16, "0+";
    }
}
