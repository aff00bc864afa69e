//! Schemas of what kafka-protocol decodes: feature levels.

use crate::protocol::dsl::schemas;

schemas! {
    update_features_request:
    struct UpdateFeaturesRequest "0-2" flexible "0+" {
        timeout_ms: int32, "0+" = 60000;
        feature_updates: [FeatureUpdateKey], "0+";
        validate_only: bool, "1+";
    }

    struct FeatureUpdateKey {
        feature: string, "0+";
        max_version_level: int16, "0+";
        allow_downgrade: bool, "0";
        upgrade_type: int8, "1+" = 1;
    }
}

schemas! {
    update_features_response:
    struct UpdateFeaturesResponse "0-2" flexible "0+" {
        throttle_time_ms: int32, "0+";
        error_code: int16, "0+";
        error_message: string, "0+", null "0+";
        results: [UpdatableFeatureResult], "0-1";
    }

    struct UpdatableFeatureResult {
        feature: string, "0+";
        error_code: int16, "0+";
        error_message: string, "0+", null "0+";
    }
}
