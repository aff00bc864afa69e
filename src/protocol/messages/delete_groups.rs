//! DeleteGroups (key 42); kafka-protocol ends at version 2.

use crate::protocol::dsl::messages;

messages! {
    struct DeleteGroupsRequest "0-3" flexible "2+" {
        groups_names: [string], "0+";
    }

    struct DeleteGroupsResponse "0-3" flexible "2+" {
        throttle_time_ms: int32, "0+";
        results: [DeletableGroupResult], "0+";
    }

    struct DeletableGroupResult {
        group_id: string, "0+";
        error_code: int16, "0+";
        error_message: string, "3+", null "3+" = None;
    }
}
