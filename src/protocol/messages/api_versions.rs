//! ApiVersions (key 18); kafka-protocol ends at version 4.

use crate::protocol::dsl::messages;

messages! {
    struct ApiVersionsRequest "0-5" flexible "3+" {
        client_software_name: string, "3+";
        client_software_version: string, "3+";
        cluster_id: string, "5+", null "5+" = None;
        node_id: int32, "5+" = -1;
    }

    struct ApiVersionsResponse "0-5" flexible "3+" {
        error_code: int16, "0+";
        api_keys: [ApiVersion], "0+";
        throttle_time_ms: int32, "1+";
        supported_features: [SupportedFeatureKey], "3+", tag 0;
        finalized_features_epoch: int64, "3+", tag 1 = -1;
        finalized_features: [FinalizedFeatureKey], "3+", tag 2;
        zk_migration_ready: bool, "3+", tag 3;
    }

    struct ApiVersion {
        api_key: int16, "0+";
        min_version: int16, "0+";
        max_version: int16, "0+";
    }

    struct SupportedFeatureKey {
        name: string, "3+";
        min_version: int16, "3+";
        max_version: int16, "3+";
    }

    struct FinalizedFeatureKey {
        name: string, "3+";
        max_version_level: int16, "3+";
        min_version_level: int16, "3+";
    }
}
