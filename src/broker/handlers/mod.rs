//! One file per API key, one word in the list below: the listing is the table of what is served.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use super::{Broker, dispatch};
use crate::net::{CloseReason, Incoming, ListenerInfo, Progress, Reply};
use crate::protocol::api::ApiKey;
use crate::protocol::header::RequestHeader;
use crate::protocol::wire::WireRequest;
use crate::security::{Access, Allowed, Session};

/// One request on its way through a handler.
pub struct Call<R> {
    pub header: RequestHeader,
    pub request: R,
    pub peer: SocketAddr,
    pub listener: Arc<ListenerInfo>,
    pub session: Session,
    pub allowed: Allowed,
}

/// Serves one API key: reads the request, asks one lower room, shapes the answer.
pub trait Handler {
    const KEY: ApiKey = <Self::Request as WireRequest>::KEY;
    type Request: WireRequest + Send + Sync;

    /// What the request needs permission for, item by item.
    fn access(request: &Self::Request) -> Access<'_>;

    fn handle(
        broker: &Broker,
        call: &Call<Self::Request>,
    ) -> impl Future<Output = <Self::Request as WireRequest>::Response> + Send;
}

macro_rules! handlers {
    ($($name:ident)*) => {
        $(pub mod $name;)*

        /// Runs the handler of the request's key. Cold futures are boxed, so that a connection
        /// does not carry room for the largest of them.
        pub async fn route(broker: &Arc<Broker>, incoming: Incoming) -> Progress {
            match incoming.header.key {
                ApiKey::Produce => produce::serve(broker, incoming).await,
                $(<$name::Api as Handler>::KEY => {
                    Box::pin(dispatch::serve::<$name::Api>(broker, incoming)).await
                })*
                key => {
                    let reason = format!("{key} has no handler");
                    Progress::Done(Reply::Close(CloseReason::BadRequest(reason)))
                }
            }
        }

        const HANDLED: &[ApiKey] = &[ApiKey::Produce, $(<$name::Api as Handler>::KEY),*];
    };
}

pub mod produce;

handlers! {
    alter_configs
    alter_replica_log_dirs
    api_versions
    consumer_group_describe
    consumer_group_heartbeat
    create_partitions
    create_topics
    delete_groups
    delete_records
    delete_topics
    describe_cluster
    describe_configs
    describe_groups
    describe_log_dirs
    describe_producers
    describe_topic_partitions
    fetch
    find_coordinator
    heartbeat
    incremental_alter_configs
    init_producer_id
    join_group
    leave_group
    list_config_resources
    list_groups
    list_offsets
    metadata
    offset_commit
    offset_delete
    offset_fetch
    offset_for_leader_epoch
    sync_group
    update_features
}

/// Every served key has a handler and every handler serves its key, at compile time.
const _: () = {
    let mut at = 0;
    let mut handled = 0;
    while at < ApiKey::ALL.len() {
        let key = ApiKey::ALL[at];
        if key.row().is_some() {
            assert!(contains(HANDLED, key), "a key of the API table has no handler");
            handled += 1;
        }
        at += 1;
    }
    assert!(
        handled == HANDLED.len(),
        "a handler's key is not in the API table, or it stands twice"
    );
};

const fn contains(keys: &[ApiKey], key: ApiKey) -> bool {
    let mut at = 0;
    while at < keys.len() {
        if keys[at] as i16 == key as i16 {
            return true;
        }
        at += 1;
    }
    false
}
