//! IncrementalAlterConfigs (key 44): edits named configs of resources (KIP-339).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border;
use crate::broker::shape::{config_resource, text};
use crate::controller::{AlterConfigs, ConfigEdit, ConfigEdits, ConfigResult};
use crate::protocol::error::ErrorCode;
use crate::protocol::messages::incremental_alter_configs_request::AlterConfigsResource;
use crate::protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use crate::protocol::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};
use crate::security::{Access, Operation};

pub struct Api;

impl Handler for Api {
    type Request = IncrementalAlterConfigsRequest;

    fn access(request: &IncrementalAlterConfigsRequest) -> Access<'_> {
        let resources = request.resources.iter();
        let resources = resources.map(|r| config_resource(r.resource_type, &r.resource_name));
        Access::each(resources, Operation::AlterConfigs)
    }

    async fn handle(
        broker: &Broker,
        call: &Call<IncrementalAlterConfigsRequest>,
    ) -> IncrementalAlterConfigsResponse {
        let request = &call.request;
        if request.resources.iter().any(has_unknown_operation) {
            return refuse(request, ErrorCode::UnknownServerError as i16);
        }
        let ask = AlterConfigs {
            at: broker.id,
            resources: request.resources.iter().map(read).collect(),
            validate_only: request.validate_only,
        };
        match broker.ask_controller(ask, broker.request_timeout_ms()).await {
            Ok(results) => {
                let responses = results.iter().map(shape).collect();
                IncrementalAlterConfigsResponse::default().with_responses(responses)
            }
            Err(error) => refuse(request, border::ask_code(&error) as i16),
        }
    }
}

/// Kafka refuses the whole request for one operation that it does not know.
fn has_unknown_operation(resource: &AlterConfigsResource) -> bool {
    resource.configs.iter().any(|config| !(0..=3).contains(&config.config_operation))
}

fn refuse(request: &IncrementalAlterConfigsRequest, code: i16) -> IncrementalAlterConfigsResponse {
    let responses = request.resources.iter().map(|resource| {
        AlterConfigsResourceResponse::default()
            .with_error_code(code)
            .with_error_message(None)
            .with_resource_type(resource.resource_type)
            .with_resource_name(resource.resource_name.clone())
    });
    IncrementalAlterConfigsResponse::default().with_responses(responses.collect())
}

fn read(resource: &AlterConfigsResource) -> ConfigEdits {
    let edits = resource.configs.iter().map(|config| ConfigEdit {
        key: config.name.to_string(),
        operation: config.config_operation,
        value: config.value.as_ref().map(ToString::to_string),
    });
    ConfigEdits {
        kind: resource.resource_type,
        name: resource.resource_name.to_string(),
        edits: edits.collect(),
    }
}

fn shape(result: &ConfigResult) -> AlterConfigsResourceResponse {
    let (code, message) = border::config_outcome(&result.outcome);
    AlterConfigsResourceResponse::default()
        .with_error_code(code as i16)
        .with_error_message(message.map(|message| text(&message)))
        .with_resource_type(result.kind)
        .with_resource_name(text(&result.name))
}
