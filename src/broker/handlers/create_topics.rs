//! CreateTopics (key 19): each topic is judged alone. v5 tells the topic's configs (KIP-525), v7
//! its id (KIP-516).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border;
use crate::broker::shape::{shared, text};
use crate::common;
use crate::config::ConfigRow;
use crate::controller::{CreateTopicResult, CreateTopics, CreatedTopic, NewTopic};
use crate::protocol::error::ErrorCode;
use crate::protocol::messages::create_topics_request::CreatableTopic;
use crate::protocol::messages::create_topics_response::{
    CreatableTopicConfigs, CreatableTopicResult,
};
use crate::protocol::messages::{CreateTopicsRequest, CreateTopicsResponse, TopicName};
use crate::security::{Access, Operation, Resource};

pub struct Api;

impl Handler for Api {
    type Request = CreateTopicsRequest;

    fn access(request: &CreateTopicsRequest) -> Access<'_> {
        let topics = request.topics.iter().map(|topic| Resource::Topic(&topic.name));
        Access::each(topics, Operation::Create)
    }

    async fn handle(broker: &Broker, call: &Call<CreateTopicsRequest>) -> CreateTopicsResponse {
        let request = &call.request;
        let ask = CreateTopics {
            topics: request.topics.iter().map(read).collect(),
            validate_only: request.validate_only,
        };
        let topics = match broker.ask_controller(ask, request.timeout_ms).await {
            Ok(results) => results.into_iter().map(shape).collect(),
            Err(error) => {
                let code = border::ask_code(&error);
                request.topics.iter().map(|topic| refuse(topic.name.clone(), code, None)).collect()
            }
        };
        CreateTopicsResponse::default().with_topics(topics)
    }
}

fn read(topic: &CreatableTopic) -> NewTopic {
    let assignments = topic.assignments.iter().map(|assignment| {
        let brokers = assignment.broker_ids.iter().map(|id| common::BrokerId(id.0));
        (assignment.partition_index, brokers.collect())
    });
    let configs = topic.configs.iter().map(|config| {
        (config.name.to_string(), config.value.as_ref().map(ToString::to_string))
    });
    NewTopic {
        name: shared(&topic.name),
        partitions: topic.num_partitions,
        replication_factor: topic.replication_factor,
        assignments: assignments.collect(),
        configs: configs.collect(),
    }
}

fn shape(result: CreateTopicResult) -> CreatableTopicResult {
    let name = TopicName(text(&result.name));
    match result.outcome {
        Ok(created) => success(name, &created),
        Err(refusal) => {
            let code = border::controller_code(&refusal);
            refuse(name, code, Some(refusal.to_string()))
        }
    }
}

fn success(name: TopicName, created: &CreatedTopic) -> CreatableTopicResult {
    CreatableTopicResult::default()
        .with_name(name)
        .with_error_message(None)
        .with_topic_id(created.id.0)
        .with_num_partitions(created.partitions)
        .with_replication_factor(created.replication_factor)
        .with_configs(Some(created.configs.iter().map(config).collect()))
}

fn config(config: &ConfigRow) -> CreatableTopicConfigs {
    CreatableTopicConfigs::default()
        .with_name(text(&config.name))
        .with_value(config.value.as_deref().map(text))
        .with_read_only(config.is_read_only)
        .with_config_source(config.source as i8)
        .with_is_sensitive(config.is_sensitive)
}

fn refuse(name: TopicName, code: ErrorCode, message: Option<String>) -> CreatableTopicResult {
    CreatableTopicResult::default()
        .with_name(name)
        .with_error_code(code as i16)
        .with_error_message(message.map(|message| text(&message)))
        .with_num_partitions(-1)
        .with_replication_factor(-1)
        .with_configs(Some(Vec::new()))
}
