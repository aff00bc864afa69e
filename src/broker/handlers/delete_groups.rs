//! DeleteGroups (key 42): removes groups without members, with their offsets. v3 says why not in
//! words (KIP-1331).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border;
use crate::broker::shape::{shared, text};
use crate::protocol::messages::delete_groups::DeletableGroupResult;
use crate::protocol::messages::{DeleteGroupsRequest, DeleteGroupsResponse};
use crate::security::{Access, Operation, Resource};

pub struct Api;

impl Handler for Api {
    type Request = DeleteGroupsRequest;

    fn access(request: &DeleteGroupsRequest) -> Access<'_> {
        let groups = request.groups_names.iter().map(|name| Resource::Group(name));
        Access::each(groups, Operation::Delete)
    }

    async fn handle(broker: &Broker, call: &Call<DeleteGroupsRequest>) -> DeleteGroupsResponse {
        let ids = call.request.groups_names.iter().map(|name| shared(name)).collect();
        let deleted = broker.groups.delete_groups(ids).await;
        let results = deleted.into_iter().map(|(id, outcome)| DeletableGroupResult {
            group_id: text(&id),
            error_code: border::group_outcome(&outcome),
            // Kafka has words only for a failure of a plugin (KIP-1331).
            error_message: None,
        });
        DeleteGroupsResponse { results: results.collect(), ..DeleteGroupsResponse::default() }
    }
}
