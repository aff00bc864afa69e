//! CreatePartitions (key 37): more partitions for topics that exist (KIP-195).

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border;
use crate::broker::shape::{shared, text};
use crate::common::BrokerId;
use crate::controller::{CreatePartitions, MorePartitions, Refusal, TopicResult};
use crate::protocol::messages::create_partitions_request::CreatePartitionsTopic;
use crate::protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use crate::protocol::messages::{CreatePartitionsRequest, CreatePartitionsResponse, TopicName};
use crate::security::{Access, Operation, Resource};

pub struct Api;

impl Handler for Api {
    type Request = CreatePartitionsRequest;

    fn access(request: &CreatePartitionsRequest) -> Access<'_> {
        let topics = request.topics.iter().map(|topic| Resource::Topic(&topic.name));
        Access::each(topics, Operation::Alter)
    }

    async fn handle(
        broker: &Broker,
        call: &Call<CreatePartitionsRequest>,
    ) -> CreatePartitionsResponse {
        let request = &call.request;
        let ask = CreatePartitions {
            topics: request.topics.iter().map(read).collect(),
            validate_only: request.validate_only,
        };
        let results = match broker.ask_controller(ask, request.timeout_ms).await {
            Ok(results) => results.iter().map(shape).collect(),
            Err(error) => {
                let code = border::ask_code(&error) as i16;
                let refuse = |topic: &CreatePartitionsTopic| {
                    let name = topic.name.clone();
                    CreatePartitionsTopicResult::default().with_name(name).with_error_code(code)
                };
                request.topics.iter().map(refuse).collect()
            }
        };
        CreatePartitionsResponse::default().with_results(results)
    }
}

fn read(topic: &CreatePartitionsTopic) -> MorePartitions {
    let assignments = topic.assignments.as_ref().map(|assignments| {
        let brokers = assignments.iter();
        brokers.map(|one| one.broker_ids.iter().map(|id| BrokerId(id.0)).collect()).collect()
    });
    MorePartitions { name: shared(&topic.name), count: topic.count, assignments }
}

fn shape(result: &TopicResult) -> CreatePartitionsTopicResult {
    let shaped = CreatePartitionsTopicResult::default().with_name(TopicName(text(&result.name)));
    match &result.outcome {
        Ok(()) => shaped,
        Err(refusal) => {
            // Kafka has no words for this one here.
            let message = (*refusal != Refusal::UnknownTopic).then(|| text(&refusal.to_string()));
            shaped
                .with_error_code(border::controller_code(refusal) as i16)
                .with_error_message(message)
        }
    }
}
