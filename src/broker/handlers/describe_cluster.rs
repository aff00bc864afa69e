//! DescribeCluster (key 60): the brokers and the cluster's id. v1 can ask for the controllers, which
//! is for their listeners only (KIP-919), v2 shows fenced brokers (KIP-1073).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::shape::{CLUSTER_OPERATIONS, operations, text, text_option};
use crate::common;
use crate::controller::METADATA_FEATURE;
use crate::metadata::Endpoint;
use crate::protocol::error::ErrorCode;
use crate::protocol::messages::describe_cluster_response::DescribeClusterBroker;
use crate::protocol::messages::{BrokerId, DescribeClusterRequest, DescribeClusterResponse};
use crate::security::{Access, Operation, Resource};

const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;
/// The metadata version (3.7-IV0) since which controllers say where they are.
const CONTROLLERS_ARE_REGISTERED: i16 = 15;

pub struct Api;

impl Handler for Api {
    type Request = DescribeClusterRequest;

    fn access(_: &DescribeClusterRequest) -> Access<'_> {
        Access::one(Resource::Cluster, Operation::Describe)
    }

    async fn handle(
        broker: &Broker,
        call: &Call<DescribeClusterRequest>,
    ) -> DescribeClusterResponse {
        let (request, version) = (&call.request, call.header.version);
        let own = if call.listener.is_controller { CONTROLLERS } else { BROKERS };
        let image = broker.image();
        if own == CONTROLLERS && image.feature(METADATA_FEATURE) < CONTROLLERS_ARE_REGISTERED {
            let message = "Direct-to-controller communication is not supported with the current \
                           MetadataVersion.";
            return refuse(ErrorCode::UnsupportedVersion, message);
        }
        if let Some((code, message)) = mismatch(own, request.endpoint_type, version) {
            return refuse(code, &message);
        }
        let asked = request.include_cluster_authorized_operations;
        let response = DescribeClusterResponse::default()
            .with_endpoint_type(own)
            .with_cluster_id(text(&broker.cluster_id))
            .with_cluster_authorized_operations(operations(asked, CLUSTER_OPERATIONS));
        let listener = &call.listener.name;
        if own == CONTROLLERS {
            let node = shape(broker.id, &broker.controller_endpoints, listener);
            return response
                .with_controller_id(BrokerId(broker.id.0))
                .with_brokers(node.into_iter().collect());
        }
        let shown = image.brokers().filter(|node| request.include_fenced_brokers || !node.is_fenced);
        let brokers = shown.filter_map(|node| {
            let shaped = shape(node.id, &node.endpoints, listener)?;
            Some(shaped.with_rack(text_option(node.rack.as_ref())).with_is_fenced(node.is_fenced))
        });
        response
            .with_controller_id(BrokerId(broker.some_broker(&image)))
            .with_brokers(brokers.collect())
    }
}

/// Why who listens here is not who was asked for. v0 cannot ask for anybody, nor knows the codes.
fn mismatch(own: i8, asked: i8, version: i16) -> Option<(ErrorCode, String)> {
    let name = |endpoint_type| if endpoint_type == BROKERS { "BROKER" } else { "CONTROLLER" };
    let (code, message) = match asked {
        asked if asked == own => return None,
        BROKERS | CONTROLLERS => {
            let (own, asked) = (name(own), name(asked));
            let message = format!(
                "The request was sent to an endpoint of type {own}, but we wanted an endpoint of \
                 type {asked}"
            );
            (ErrorCode::MismatchedEndpointType, message)
        }
        other => {
            (ErrorCode::UnsupportedEndpointType, format!("Unsupported endpoint type {other}"))
        }
    };
    Some((if version == 0 { ErrorCode::InvalidRequest } else { code }, message))
}

fn shape(
    id: common::BrokerId,
    endpoints: &[Endpoint],
    listener: &str,
) -> Option<DescribeClusterBroker> {
    let endpoint = endpoints.iter().find(|endpoint| *endpoint.name == *listener)?;
    let node = DescribeClusterBroker::default()
        .with_broker_id(BrokerId(id.0))
        .with_host(text(&endpoint.host))
        .with_port(i32::from(endpoint.port));
    Some(node)
}

fn refuse(code: ErrorCode, message: &str) -> DescribeClusterResponse {
    DescribeClusterResponse::default()
        .with_error_code(code as i16)
        .with_error_message(Some(text(message)))
        .with_endpoint_type(BROKERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_asked_for_says_so() {
        #[rustfmt::skip] // columns
        let table = [
            // here       asked        version  code
            (BROKERS,     BROKERS,     0,       None),
            (BROKERS,     CONTROLLERS, 1,       Some(ErrorCode::MismatchedEndpointType)),
            (CONTROLLERS, CONTROLLERS, 1,       None),
            (CONTROLLERS, BROKERS,     1,       Some(ErrorCode::MismatchedEndpointType)),
            (CONTROLLERS, BROKERS,     0,       Some(ErrorCode::InvalidRequest)),
            (BROKERS,     3,           2,       Some(ErrorCode::UnsupportedEndpointType)),
        ];
        for (own, asked, version, code) in table {
            let found = mismatch(own, asked, version).map(|(code, _)| code);
            assert_eq!(found, code, "{asked} of {own}, v{version}");
        }
    }
}
