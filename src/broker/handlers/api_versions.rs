//! ApiVersions (key 18): what is served here, and which features the cluster has agreed on. v3
//! names the client (KIP-511) and carries features (KIP-584); v5 says which node of which cluster
//! the client means to talk to (KIP-1242).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::shape::text;
use crate::controller::FEATURES;
use crate::metadata::Image;
use crate::protocol::api::{self, ApiKey, Scope};
use crate::protocol::error::ErrorCode;
use crate::protocol::messages::api_versions::{
    ApiVersion, FinalizedFeatureKey, SupportedFeatureKey,
};
use crate::protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use crate::security::Access;

pub struct Api;

impl Handler for Api {
    type Request = ApiVersionsRequest;

    fn access(_: &ApiVersionsRequest) -> Access<'_> {
        Access::none()
    }

    async fn handle(broker: &Broker, call: &Call<ApiVersionsRequest>) -> ApiVersionsResponse {
        let (request, version) = (&call.request, call.header.version);
        if let Some(code) = refuse(broker, request, version) {
            return ApiVersionsResponse { error_code: code as i16, ..Default::default() };
        }
        let on_controller = call.listener.is_controller;
        let served = api::served().filter(|row| !on_controller || row.scope == Scope::Both);
        let api_keys = served.map(|row| ApiVersion {
            api_key: row.key as i16,
            min_version: row.advertised_min(),
            max_version: row.max,
        });
        let api_keys = api_keys.collect();
        features(&broker.image(), version, ApiVersionsResponse { api_keys, ..Default::default() })
    }
}

/// The answer to a version that is not served: version 0's layout, naming the versions that are
/// (KIP-511).
pub fn unknown_version() -> ApiVersionsResponse {
    let row = ApiKey::ApiVersions.row();
    let api_keys = row.map(|row| ApiVersion {
        api_key: row.key as i16,
        min_version: row.min,
        max_version: row.max,
    });
    ApiVersionsResponse {
        error_code: ErrorCode::UnsupportedVersion as i16,
        api_keys: api_keys.into_iter().collect(),
        ..Default::default()
    }
}

fn refuse(broker: &Broker, request: &ApiVersionsRequest, version: i16) -> Option<ErrorCode> {
    let named = is_software_name(&request.client_software_name)
        && is_software_name(&request.client_software_version);
    if version >= 3 && !named {
        return Some(ErrorCode::InvalidRequest);
    }
    if request.cluster_id.is_some() != (request.node_id >= 0) {
        return Some(ErrorCode::InvalidRequest);
    }
    let other_cluster =
        request.cluster_id.as_ref().is_some_and(|id| **id != *broker.cluster_id);
    let other_node = request.node_id >= 0 && request.node_id != broker.id.0;
    (other_cluster || other_node).then_some(ErrorCode::RebootstrapRequired)
}

/// `[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?`
fn is_software_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(inner)
}

/// Versions before 4 are not told of features that start at level 0: clients of then fail on them.
fn features(image: &Image, version: i16, response: ApiVersionsResponse) -> ApiVersionsResponse {
    let finalized = image.features().filter(|(_, level)| *level > 0);
    let finalized = finalized.map(|(name, level)| FinalizedFeatureKey {
        name: text(name),
        max_version_level: level,
        min_version_level: level,
    });
    let supported = FEATURES.iter().filter(|feature| version >= 4 || feature.min > 0);
    let supported = supported.map(|feature| SupportedFeatureKey {
        name: text(feature.name),
        min_version: feature.min,
        max_version: feature.max,
    });
    ApiVersionsResponse {
        supported_features: supported.collect(),
        finalized_features_epoch: image.end_offset - 1,
        finalized_features: finalized.collect(),
        ..response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_names_follow_kip_511() {
        #[rustfmt::skip]
        let table = [
            ("librdkafka", true), ("a", true), ("a-1.b", true),
            ("", false), ("-a", false), ("a.", false), ("a b", false), ("ä", false),
        ];
        for (name, valid) in table {
            assert_eq!(is_software_name(name), valid, "{name:?}");
        }
    }
}
