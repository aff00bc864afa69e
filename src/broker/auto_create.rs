//! Topics that come to be because somebody asked for them: by Metadata (`auto.create.topics.enable`)
//! and the internal topics of the coordinators.

use std::sync::Arc;

use super::Broker;
use super::border;
use crate::controller::{CreateTopics, NewTopic, Refusal, check_topic_name};
use crate::protocol::error::ErrorCode;

/// What Metadata says of each name that has no topic, in order; missing topics are made first
/// where that is allowed, so that the code matters only for those that are still missing.
pub async fn missing(broker: &Broker, names: &[Arc<str>], may_create: bool) -> Vec<ErrorCode> {
    let image = broker.image();
    let wanted = names.iter().filter(|name| image.topic(name).is_none());
    let wanted: Vec<&Arc<str>> = wanted.collect();
    let is_enabled = may_create && broker.config.load().topics.auto_create_topics_enable;
    let mut refused = Vec::new();
    if is_enabled && !wanted.is_empty() {
        refused = create(broker, wanted.iter().map(|name| new_topic(broker, name)).collect()).await;
    }
    let code = |name: &Arc<str>| {
        let refusal = refused.iter().find(|(of, _)| of == name).map(|(_, code)| *code);
        refusal.unwrap_or_else(|| match check_topic_name(name) {
            Ok(()) => ErrorCode::UnknownTopicOrPartition,
            Err(_) => ErrorCode::InvalidTopicException,
        })
    };
    names.iter().map(code).collect()
}

/// Makes the internal topic `name` unless it is there.
pub async fn internal(broker: &Broker, name: &str) {
    if broker.image().topic(name).is_none() {
        create(broker, vec![new_topic(broker, name)]).await;
    }
}

fn new_topic(broker: &Broker, name: &str) -> NewTopic {
    NewTopic::auto(name, &broker.config.load())
}

async fn create(broker: &Broker, topics: Vec<NewTopic>) -> Vec<(Arc<str>, ErrorCode)> {
    let ask = CreateTopics { topics, validate_only: false };
    let Ok(results) = broker.ask_controller(ask, broker.request_timeout_ms()).await else {
        return Vec::new();
    };
    let refused = results.into_iter().filter_map(|result| match result.outcome {
        Ok(_) | Err(Refusal::TopicExists(_)) => None,
        Err(refusal) => Some((result.name, border::controller_code(&refusal))),
    });
    refused.collect()
}
