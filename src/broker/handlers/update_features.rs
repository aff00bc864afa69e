//! UpdateFeatures (key 57): finalized levels of features go up or down (KIP-584). v1 upgrade types
//! and validation alone (KIP-778), v2 no results per feature.

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border;
use crate::broker::shape::text;
use crate::controller::{FeatureUpdate, UpdateFeatures};
use crate::protocol::messages::update_features_request::FeatureUpdateKey;
use crate::protocol::messages::update_features_response::UpdatableFeatureResult;
use crate::protocol::messages::{UpdateFeaturesRequest, UpdateFeaturesResponse};
use crate::security::{Access, Operation, Resource};

pub struct Api;

impl Handler for Api {
    type Request = UpdateFeaturesRequest;

    fn access(_: &UpdateFeaturesRequest) -> Access<'_> {
        Access::one(Resource::Cluster, Operation::Alter)
    }

    async fn handle(
        broker: &Broker,
        call: &Call<UpdateFeaturesRequest>,
    ) -> UpdateFeaturesResponse {
        let request = &call.request;
        let ask = UpdateFeatures {
            updates: request.feature_updates.iter().map(read).collect(),
            validate_only: request.validate_only,
        };
        let answer = UpdateFeaturesResponse::default();
        match broker.ask_controller(ask, broker.request_timeout_ms()).await {
            Ok(Ok(())) if call.header.version <= 1 => {
                let done = request.feature_updates.iter().map(|update| {
                    UpdatableFeatureResult::default()
                        .with_feature(update.feature.clone())
                        // Kafka's text for "no error".
                        .with_error_message(Some(text("NONE")))
                });
                answer.with_error_message(None).with_results(done.collect())
            }
            Ok(Ok(())) => answer.with_error_message(None),
            Ok(Err(refusal)) => {
                let message = format!(
                    "The update failed for all features since the following feature had an \
                     error: {refusal}"
                );
                answer
                    .with_error_code(border::controller_code(&refusal) as i16)
                    .with_error_message(Some(text(&message)))
            }
            Err(error) => answer
                .with_error_code(border::ask_code(&error) as i16)
                .with_error_message(None),
        }
    }
}

/// v0 has no upgrade type, so that it is the default, an upgrade: like Kafka's controller it does
/// not look at `allow_downgrade`.
fn read(update: &FeatureUpdateKey) -> FeatureUpdate {
    FeatureUpdate {
        feature: update.feature.to_string(),
        level: update.max_version_level,
        upgrade_type: update.upgrade_type,
    }
}
