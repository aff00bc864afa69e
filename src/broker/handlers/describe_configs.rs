//! DescribeConfigs (key 32): effective configs with their sources. v1 synonyms (KIP-226), v3 types
//! and docs (KIP-569).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::shape::{config_resource, text};
use crate::config::{self, ConfigRow};
use crate::metadata::{ConfigKind, ConfigResource, Configs};
use crate::protocol::StrBytes;
use crate::protocol::error::ErrorCode;
use crate::protocol::messages::describe_configs_request::DescribeConfigsResource;
use crate::protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use crate::protocol::messages::{DescribeConfigsRequest, DescribeConfigsResponse};
use crate::security::{Access, Operation};

/// `config_source` of what a client-metrics subscription sets.
const CLIENT_METRICS_SOURCE: i8 = 7;

pub struct Api;

type Refusal = (ErrorCode, String);

impl Handler for Api {
    type Request = DescribeConfigsRequest;

    fn access(request: &DescribeConfigsRequest) -> Access<'_> {
        let resources = request.resources.iter();
        let resources = resources.map(|r| config_resource(r.resource_type, &r.resource_name));
        Access::each(resources, Operation::DescribeConfigs)
    }

    async fn handle(
        broker: &Broker,
        call: &Call<DescribeConfigsRequest>,
    ) -> DescribeConfigsResponse {
        let results = call.request.resources.iter().map(|resource| {
            let result = DescribeConfigsResult::default()
                .with_resource_type(resource.resource_type)
                .with_resource_name(resource.resource_name.clone());
            match describe(broker, resource, &call.request) {
                Ok(configs) => result.with_configs(configs),
                Err((code, message)) => {
                    result.with_error_code(code as i16).with_error_message(Some(text(&message)))
                }
            }
        });
        DescribeConfigsResponse::default().with_results(results.collect())
    }
}

fn describe(
    broker: &Broker,
    resource: &DescribeConfigsResource,
    request: &DescribeConfigsRequest,
) -> Result<Vec<DescribeConfigsResourceResult>, Refusal> {
    let keys: Vec<&str> = resource.configuration_keys.iter().flatten().map(|key| &**key).collect();
    let name: &str = &resource.resource_name;
    let shape = |rows: Vec<ConfigRow>| rows.iter().map(|row| shape(row, request)).collect();
    match ConfigKind::from_number(resource.resource_type) {
        Some(ConfigKind::Topic) => topic(broker, name, &keys).map(shape),
        Some(ConfigKind::Broker) => node(broker, name, &keys).map(shape),
        // Ottla has no loggers of Kafka's names.
        Some(ConfigKind::BrokerLogger) => is_this_node(broker, name).map(|()| Vec::new()),
        Some(ConfigKind::ClientMetrics) if name.is_empty() => {
            let message = "Client metrics subscription name must not be empty";
            Err((ErrorCode::InvalidRequest, message.to_owned()))
        }
        Some(ConfigKind::ClientMetrics) => Ok(client_metrics(broker, name, &keys)),
        Some(ConfigKind::Group) if name.is_empty() => {
            Err((ErrorCode::InvalidRequest, "Group name must not be empty".to_owned()))
        }
        Some(ConfigKind::Group) => {
            let own = broker.image().configs(&ConfigResource::group(name)).map(values);
            let rows = broker.config.load().describe_group(&own.unwrap_or_default(), &keys);
            Ok(shape(rows))
        }
        None => {
            let message = "This most likely occurs because of a request being malformed by the \
                           client library or the message was sent to an incompatible broker. See \
                           the broker logs for more details.";
            Err((ErrorCode::InvalidRequest, message.to_owned()))
        }
    }
}

fn topic(broker: &Broker, name: &str, keys: &[&str]) -> Result<Vec<ConfigRow>, Refusal> {
    if let Err(fault) = crate::controller::check_topic_name(name) {
        return Err((ErrorCode::InvalidTopicException, fault.to_string()));
    }
    let image = broker.image();
    if image.topic(name).is_none() {
        return Err((ErrorCode::UnknownTopicOrPartition, String::new()));
    }
    let overrides = image.topic_configs(name).map(values).unwrap_or_default();
    let rows = broker.config.load().describe_topic(&overrides, keys);
    rows.map_err(|error| (ErrorCode::UnknownServerError, error.to_string()))
}

fn node(broker: &Broker, name: &str, keys: &[&str]) -> Result<Vec<ConfigRow>, Refusal> {
    if name.is_empty() {
        let image = broker.image();
        let cluster = image.configs(&ConfigResource::all_brokers()).map(values).unwrap_or_default();
        return Ok(config::describe_cluster_default(&cluster, keys));
    }
    is_this_node(broker, name)?;
    Ok(broker.config.load().describe_broker(keys))
}

fn is_this_node(broker: &Broker, name: &str) -> Result<(), Refusal> {
    let invalid = |message: String| (ErrorCode::InvalidRequest, message);
    let id: i32 = name.parse().map_err(|_| {
        invalid(format!("Broker id must be an integer, but it is: {name}"))
    })?;
    if id != broker.id.0 {
        let expected = broker.id;
        return Err(invalid(format!(
            "Unexpected broker id, expected {expected} or empty string, but received {name}"
        )));
    }
    Ok(())
}

/// What is set for a subscription: there is no table of its keys here.
fn client_metrics(
    broker: &Broker,
    name: &str,
    keys: &[&str],
) -> Vec<DescribeConfigsResourceResult> {
    let image = broker.image();
    let resource = ConfigResource { kind: ConfigKind::ClientMetrics, name: name.into() };
    let configs = image.configs(&resource).map(values);
    let configs = configs.unwrap_or_default();
    let asked = configs.iter().filter(|(key, _)| keys.is_empty() || keys.contains(&key.as_str()));
    let rows = asked.map(|(key, value)| {
        DescribeConfigsResourceResult::default()
            .with_name(text(key))
            .with_value(Some(text(value)))
            .with_config_source(CLIENT_METRICS_SOURCE)
    });
    rows.collect()
}

fn values(configs: &std::sync::Arc<Configs>) -> config::Values {
    configs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

fn shape(row: &ConfigRow, request: &DescribeConfigsRequest) -> DescribeConfigsResourceResult {
    let synonyms = row.synonyms.iter().filter(|_| request.include_synonyms).map(|synonym| {
        DescribeConfigsSynonym::default()
            .with_name(text(&synonym.name))
            .with_value(synonym.value.as_deref().map(text))
            .with_source(synonym.source as i8)
    });
    let doc: Option<StrBytes> = row.doc.filter(|_| request.include_documentation).map(text);
    DescribeConfigsResourceResult::default()
        .with_name(text(&row.name))
        .with_value(row.value.as_deref().map(text))
        .with_read_only(row.is_read_only)
        .with_config_source(row.source as i8)
        .with_is_sensitive(row.is_sensitive)
        .with_synonyms(synonyms.collect())
        .with_config_type(row.kind.map_or(0, config::Kind::code))
        .with_documentation(doc)
}
