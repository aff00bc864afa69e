//! DeleteTopics (key 20): by name, since v6 by id too (KIP-516). v5 says why not in words.

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border;
use crate::broker::shape::{shared, text};
use crate::common::TopicId;
use crate::controller::{DeleteTopicResult, DeleteTopics, Refusal, TopicReference};
use crate::protocol::error::ErrorCode;
use crate::protocol::messages::delete_topics_response::DeletableTopicResult;
use crate::protocol::messages::{DeleteTopicsRequest, DeleteTopicsResponse, TopicName};
use crate::security::{Access, Operation, Resource};

pub struct Api;

impl Handler for Api {
    type Request = DeleteTopicsRequest;

    fn access(request: &DeleteTopicsRequest) -> Access<'_> {
        let states = request.topics.iter().filter_map(|topic| topic.name.as_ref());
        let names = request.topic_names.iter().chain(states);
        Access::each(names.map(|name| Resource::Topic(name)), Operation::Delete)
    }

    async fn handle(broker: &Broker, call: &Call<DeleteTopicsRequest>) -> DeleteTopicsResponse {
        let request = &call.request;
        let version = call.header.version;
        let topics = read(request, version);
        let ask = DeleteTopics { topics: topics.clone() };
        let responses = match broker.ask_controller(ask, request.timeout_ms).await {
            Ok(results) => results.iter().map(|result| shape(result, version)).collect(),
            Err(error) => {
                let code = border::ask_code(&error) as i16;
                let refuse = |topic: &TopicReference| {
                    DeletableTopicResult::default()
                        .with_name(topic.name.as_deref().map(|name| TopicName(text(name))))
                        .with_topic_id(topic.id.0)
                        .with_error_code(code)
                };
                topics.iter().map(refuse).collect()
            }
        };
        DeleteTopicsResponse::default().with_responses(responses)
    }
}

fn read(request: &DeleteTopicsRequest, version: i16) -> Vec<TopicReference> {
    if version < 6 {
        let names = request.topic_names.iter();
        let named = names.map(|name| TopicReference { name: Some(shared(name)), id: TopicId::NONE });
        return named.collect();
    }
    let states = request.topics.iter().map(|topic| TopicReference {
        name: topic.name.as_ref().map(|name| shared(name)),
        id: TopicId(topic.topic_id),
    });
    states.collect()
}

/// Clients know TOPIC_DELETION_DISABLED since v3.
fn code(refusal: &Refusal, version: i16) -> ErrorCode {
    match border::controller_code(refusal) {
        ErrorCode::TopicDeletionDisabled if version < 3 => ErrorCode::InvalidRequest,
        code => code,
    }
}

fn shape(result: &DeleteTopicResult, version: i16) -> DeletableTopicResult {
    let shaped = DeletableTopicResult::default()
        .with_name(result.name.as_deref().map(|name| TopicName(text(name))))
        .with_topic_id(result.id.0);
    match &result.outcome {
        Ok(()) => shaped,
        Err(refusal) => shaped
            .with_error_code(code(refusal, version) as i16)
            .with_error_message(Some(text(&refusal.to_string()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletion_that_is_disabled_has_a_code_of_its_own_since_v3() {
        let codes = [1, 2, 3, 6].map(|version| code(&Refusal::DeletionDisabled, version));
        let (old, new) = (ErrorCode::InvalidRequest, ErrorCode::TopicDeletionDisabled);
        assert_eq!(codes, [old, old, new, new]);
        assert_eq!(code(&Refusal::UnknownTopic, 1), ErrorCode::UnknownTopicOrPartition);
    }
}
