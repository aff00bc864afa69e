//! Small conversions between the wire's strings and ids and the rooms' own.

use std::sync::Arc;

use crate::metadata::ConfigKind;
use crate::protocol::StrBytes;
use crate::security::Resource;

/// `authorized_operations` where they were not asked for (KIP-430).
pub const OPERATIONS_NOT_ASKED: i32 = i32::MIN;
/// All operations of a topic, a group, the cluster: bit n for AclOperation n. Without an
/// authorizer everyone may do everything.
pub const TOPIC_OPERATIONS: i32 = 0x0df8;
pub const GROUP_OPERATIONS: i32 = 0x0d48;
pub const CLUSTER_OPERATIONS: i32 = 0x1fa0;

pub fn shared(text: &str) -> Arc<str> {
    Arc::from(text)
}

pub fn shared_option(text: Option<&StrBytes>) -> Option<Arc<str>> {
    text.map(|text| Arc::from(&**text))
}

pub fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

pub fn text_option(text: Option<&Arc<str>>) -> Option<StrBytes> {
    text.map(|text| self::text(text))
}

/// Whose rights a config request needs: a topic's, a group's, or the cluster's.
pub fn config_resource(kind: i8, name: &str) -> Resource<'_> {
    match ConfigKind::from_number(kind) {
        Some(ConfigKind::Topic) => Resource::Topic(name),
        Some(ConfigKind::Group) => Resource::Group(name),
        Some(ConfigKind::Broker | ConfigKind::BrokerLogger | ConfigKind::ClientMetrics) | None => {
            Resource::Cluster
        }
    }
}

/// The operations that an answer names, if it was asked to.
pub fn operations(asked: bool, all: i32) -> i32 {
    if asked { all } else { OPERATIONS_NOT_ASKED }
}
