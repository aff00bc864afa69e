//! DescribeCluster (key 60): the brokers and the cluster's id. v1 can ask for controllers (only on
//! their listeners, KIP-919), v2 shows fenced brokers (KIP-1073).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::shape::{CLUSTER_OPERATIONS, operations, text, text_option};
use crate::metadata;
use crate::protocol::error::ErrorCode;
use crate::protocol::messages::describe_cluster_response::DescribeClusterBroker;
use crate::protocol::messages::{BrokerId, DescribeClusterRequest, DescribeClusterResponse};
use crate::security::{Access, Operation, Resource};

const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

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
        let request = &call.request;
        match request.endpoint_type {
            BROKERS => {}
            CONTROLLERS => {
                let message = "The request was sent to an endpoint of type BROKER, but we wanted \
                               an endpoint of type CONTROLLER";
                return refuse(ErrorCode::MismatchedEndpointType, message);
            }
            other => {
                let message = format!("Unsupported endpoint type {other}");
                return refuse(ErrorCode::UnsupportedEndpointType, &message);
            }
        }
        let image = broker.image();
        let shown = image.brokers().filter(|node| request.include_fenced_brokers || !node.is_fenced);
        let brokers = shown.filter_map(|node| shape(node, &call.listener.name)).collect();
        let asked = request.include_cluster_authorized_operations;
        DescribeClusterResponse::default()
            .with_endpoint_type(BROKERS)
            .with_cluster_id(text(&broker.cluster_id))
            .with_controller_id(BrokerId(broker.some_broker(&image)))
            .with_brokers(brokers)
            .with_cluster_authorized_operations(operations(asked, CLUSTER_OPERATIONS))
    }
}

fn shape(node: &metadata::Broker, listener: &str) -> Option<DescribeClusterBroker> {
    let endpoint = node.endpoints.iter().find(|endpoint| *endpoint.name == *listener)?;
    let broker = DescribeClusterBroker::default()
        .with_broker_id(BrokerId(node.id.0))
        .with_host(text(&endpoint.host))
        .with_port(i32::from(endpoint.port))
        .with_rack(text_option(node.rack.as_ref()))
        .with_is_fenced(node.is_fenced);
    Some(broker)
}

fn refuse(code: ErrorCode, message: &str) -> DescribeClusterResponse {
    DescribeClusterResponse::default()
        .with_error_code(code as i16)
        .with_error_message(Some(text(message)))
        .with_endpoint_type(BROKERS)
}
