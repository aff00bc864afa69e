//! ListConfigResources (key 74): names of things that have configs. v0 client-metrics
//! subscriptions only (KIP-714), v1 any kind (KIP-1142).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::shape::text;
use crate::metadata::{ConfigKind, Image};
use crate::protocol::error::ErrorCode;
use crate::protocol::messages::list_config_resources_response::ConfigResource;
use crate::protocol::messages::{ListConfigResourcesRequest, ListConfigResourcesResponse};
use crate::security::{Access, Operation, Resource};

/// In the order of Kafka's answer.
const KINDS: &[ConfigKind] = &[
    ConfigKind::Group,
    ConfigKind::ClientMetrics,
    ConfigKind::BrokerLogger,
    ConfigKind::Broker,
    ConfigKind::Topic,
];

pub struct Api;

impl Handler for Api {
    type Request = ListConfigResourcesRequest;

    fn access(_: &ListConfigResourcesRequest) -> Access<'_> {
        Access::one(Resource::Cluster, Operation::DescribeConfigs)
    }

    async fn handle(
        broker: &Broker,
        call: &Call<ListConfigResourcesRequest>,
    ) -> ListConfigResourcesResponse {
        let known: &[ConfigKind] = match call.header.version {
            0 => &[ConfigKind::ClientMetrics],
            _ => KINDS,
        };
        let asked = &call.request.resource_types;
        if asked.iter().any(|number| !known.iter().any(|kind| *kind as i8 == *number)) {
            return ListConfigResourcesResponse::default()
                .with_error_code(ErrorCode::UnsupportedVersion as i16);
        }
        let image = broker.image();
        let wanted = |kind: &&ConfigKind| asked.is_empty() || asked.contains(&(**kind as i8));
        let resources = known.iter().filter(wanted).flat_map(|kind| {
            let kind = *kind;
            names(&image, kind, &call.listener.name).into_iter().map(move |name| {
                ConfigResource::default().with_resource_name(text(&name)).with_resource_type(kind as i8)
            })
        });
        ListConfigResourcesResponse::default().with_config_resources(resources.collect())
    }
}

/// Brokers and topics have configs as soon as they are there, the others once one is set.
fn names(image: &Image, kind: ConfigKind, listener: &str) -> Vec<String> {
    match kind {
        ConfigKind::Topic => image.topics().names().map(ToString::to_string).collect(),
        ConfigKind::Broker | ConfigKind::BrokerLogger => {
            let reachable = image
                .alive_brokers()
                .filter(|broker| broker.endpoints.iter().any(|it| *it.name == *listener));
            reachable.map(|broker| broker.id.to_string()).collect()
        }
        ConfigKind::Group | ConfigKind::ClientMetrics => {
            let own = image.configured().filter(|(resource, _)| resource.kind == kind);
            own.map(|(resource, _)| resource.name.to_string()).collect()
        }
    }
}
