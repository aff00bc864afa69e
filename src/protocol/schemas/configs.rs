//! Schemas of what kafka-protocol decodes: configs.

use crate::protocol::dsl::schemas;

schemas! {
    describe_configs_request:
    struct DescribeConfigsRequest "1-4" flexible "4+" {
        resources: [DescribeConfigsResource], "0+";
        include_synonyms: bool, "1+";
        include_documentation: bool, "3+";
    }

    struct DescribeConfigsResource {
        resource_type: int8, "0+";
        resource_name: string, "0+";
        configuration_keys: [string], "0+", null "0+";
    }
}

schemas! {
    describe_configs_response:
    struct DescribeConfigsResponse "1-4" flexible "4+" {
        throttle_time_ms: int32, "0+";
        results: [DescribeConfigsResult], "0+";
    }

    struct DescribeConfigsResult {
        error_code: int16, "0+";
        error_message: string, "0+", null "0+";
        resource_type: int8, "0+";
        resource_name: string, "0+";
        configs: [DescribeConfigsResourceResult], "0+";
    }

    struct DescribeConfigsResourceResult {
        name: string, "0+";
        value: string, "0+", null "0+";
        read_only: bool, "0+";
        config_source: int8, "1+" = -1;
        is_sensitive: bool, "0+";
        synonyms: [DescribeConfigsSynonym], "1+";
        config_type: int8, "3+";
        documentation: string, "3+", null "0+";
    }

    struct DescribeConfigsSynonym {
        name: string, "1+";
        value: string, "1+", null "0+";
        source: int8, "1+";
    }
}

schemas! {
    alter_configs_request:
    struct AlterConfigsRequest "0-2" flexible "2+" {
        resources: [AlterConfigsResource], "0+";
        validate_only: bool, "0+";
    }

    struct AlterConfigsResource {
        resource_type: int8, "0+";
        resource_name: string, "0+";
        configs: [AlterableConfig], "0+";
    }

    struct AlterableConfig {
        name: string, "0+";
        value: string, "0+", null "0+";
    }
}

schemas! {
    alter_configs_response:
    struct AlterConfigsResponse "0-2" flexible "2+" {
        throttle_time_ms: int32, "0+";
        responses: [AlterConfigsResourceResponse], "0+";
    }

    struct AlterConfigsResourceResponse {
        error_code: int16, "0+";
        error_message: string, "0+", null "0+";
        resource_type: int8, "0+";
        resource_name: string, "0+";
    }
}

schemas! {
    incremental_alter_configs_request:
    struct IncrementalAlterConfigsRequest "0-1" flexible "1+" {
        resources: [AlterConfigsResource], "0+";
        validate_only: bool, "0+";
    }

    struct AlterConfigsResource {
        resource_type: int8, "0+";
        resource_name: string, "0+";
        configs: [AlterableConfig], "0+";
    }

    struct AlterableConfig {
        name: string, "0+";
        config_operation: int8, "0+";
        value: string, "0+", null "0+";
    }
}

schemas! {
    incremental_alter_configs_response:
    struct IncrementalAlterConfigsResponse "0-1" flexible "1+" {
        throttle_time_ms: int32, "0+";
        responses: [AlterConfigsResourceResponse], "0+";
    }

    struct AlterConfigsResourceResponse {
        error_code: int16, "0+";
        error_message: string, "0+", null "0+";
        resource_type: int8, "0+";
        resource_name: string, "0+";
    }
}

schemas! {
    list_config_resources_request:
    struct ListConfigResourcesRequest "0-1" flexible "0+" {
        resource_types: [int8], "1+";
    }
}

schemas! {
    list_config_resources_response:
    struct ListConfigResourcesResponse "0-1" flexible "0+" {
        throttle_time_ms: int32, "0+";
        error_code: int16, "0+";
        config_resources: [ConfigResource], "0+";
    }

    struct ConfigResource {
        resource_name: string, "0+";
        resource_type: int8, "1+" = 16;
    }
}
