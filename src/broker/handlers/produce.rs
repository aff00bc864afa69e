//! Produce (key 0): appends batches. v8 names refused records (KIP-467), v10 the leader where it
//! is another (KIP-951), v13 topics by id (KIP-516). It answers in two steps, so that the next
//! Produce may start while this one awaits its acknowledgement.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::Call;
use crate::broker::Broker;
use crate::broker::border::{self, Leaders};
use crate::broker::dispatch::{answer, decode};
use crate::common::{Proof, TopicId};
use crate::net::{CloseReason, Incoming, Progress, Reply};
use crate::protocol::batch::BatchHeader;
use crate::protocol::error::ErrorCode;
use crate::protocol::messages::produce::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse,
    TopicProduceData, TopicProduceResponse,
};
use crate::protocol::messages::{ProduceRequest, ProduceResponse};
use crate::replica::{NotNow, Outcome, ProduceAsk, Produced, Refusal, ReplicaError, ToProduce};

/// The one client id that may write internal topics, as in Kafka.
const ADMIN_CLIENT: &str = "__admin_client";

/// Runs one Produce up to its appends.
pub async fn serve(broker: &Arc<Broker>, incoming: Incoming) -> Progress {
    let mut call = match decode::<ProduceRequest>(incoming) {
        Ok(call) => call,
        Err(reply) => return Progress::Done(reply),
    };
    keep_last_mentions(&mut call.request);
    if call.request.transactional_id.is_none() && any_transactional(&call.request) {
        let code = ErrorCode::TransactionalIdAuthorizationFailed;
        return Progress::Done(refuse_all(&call, code));
    }
    match broker.replicas.produce(read(broker, &call)).await {
        Produced::Done(outcomes) => Progress::Done(reply(broker, &call, &outcomes)),
        Produced::Waiting(acks) => {
            let broker = broker.clone();
            Progress::Acks(Box::pin(async move {
                let outcomes = acks.done().await;
                reply(&broker, &call, &outcomes)
            }))
        }
    }
}

/// A partition named twice counts once, with what was said last, as in Kafka.
fn keep_last_mentions(request: &mut ProduceRequest) {
    let parts: usize = request.topic_data.iter().map(|topic| topic.partition_data.len()).sum();
    if parts < 2 {
        return;
    }
    let mut seen = HashSet::with_capacity(parts);
    for topic in request.topic_data.iter_mut().rev() {
        let (name, id) = (topic.name.clone(), topic.topic_id);
        topic.partition_data.reverse();
        topic.partition_data.retain(|part| seen.insert((name.clone(), id, part.index)));
        topic.partition_data.reverse();
    }
    request.topic_data.retain(|topic| !topic.partition_data.is_empty());
}

fn read(broker: &Broker, call: &Call<ProduceRequest>) -> ProduceAsk {
    let (request, version) = (&call.request, call.header.version);
    let mut parts = Vec::with_capacity(request.topic_data.len());
    for data in &request.topic_data {
        let topic = || find(broker, data, version);
        parts.extend(data.partition_data.iter().map(|partition| {
            let records = partition.records.clone().unwrap_or_default();
            // No broker coordinates transactions in this version, so nobody can say that the
            // partition is part of one.
            let unverified = is_transactional(&records);
            let topic = if unverified { Err(NotNow::Unverified.into()) } else { topic() };
            ToProduce { topic, partition: partition.index, records, proof: Proof::Unneeded }
        }));
    }
    ProduceAsk {
        acks: request.acks,
        timeout: Duration::from_millis(request.timeout_ms.max(0) as u64),
        version,
        internal_allowed: call.header.client_id.as_deref() == Some(ADMIN_CLIENT),
        parts,
    }
}

fn find(
    broker: &Broker,
    data: &TopicProduceData,
    version: i16,
) -> Result<Arc<crate::replica::Topic>, ReplicaError> {
    if version >= 13 {
        let topic = broker.replicas.topic_by_id(TopicId(data.topic_id));
        topic.ok_or(Refusal::UnknownTopicId.into())
    } else {
        broker.replicas.topic(&data.name).ok_or(NotNow::UnknownPartition.into())
    }
}

fn is_transactional(records: &Bytes) -> bool {
    BatchHeader::parse(records).is_ok_and(|header| header.is_transactional())
}

fn any_transactional(request: &ProduceRequest) -> bool {
    let mut parts = request.topic_data.iter().flat_map(|topic| &topic.partition_data);
    parts.any(|part| part.records.as_ref().is_some_and(is_transactional))
}

fn reply(broker: &Broker, call: &Call<ProduceRequest>, outcomes: &[Outcome]) -> Reply {
    let failed = outcomes.iter().filter_map(|outcome| outcome.result.as_ref().err());
    let failed: Vec<&ReplicaError> = failed.collect();
    if !failed.is_empty() {
        broker.metrics.failed_produce_requests.inc_by(failed.len() as u64);
    }
    if call.request.acks == 0 {
        return match failed.first() {
            None => Reply::Silent,
            Some(error) => Reply::Close(CloseReason::FailedWithoutAcks(error.to_string())),
        };
    }
    let version = call.header.version;
    let mut leaders = Leaders::new(broker, &call.listener.name);
    let mut outcomes = outcomes.iter();
    let names = |topic: &TopicProduceData| name(broker, topic, version);
    let responses = call.request.topic_data.iter().map(|topic| TopicProduceResponse {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partition_responses: topic
            .partition_data
            .iter()
            .zip(&mut outcomes)
            .map(|(part, outcome)| {
                shape(|| names(topic), part.index, outcome, version, &mut leaders)
            })
            .collect(),
    });
    let responses = responses.collect();
    let node_endpoints = leaders.endpoints().map(|node| NodeEndpoint {
        node_id: node.id,
        host: node.host,
        port: node.port,
        rack: node.rack,
    });
    let node_endpoints = node_endpoints.collect();
    answer(&call.header, &ProduceResponse { responses, throttle_time_ms: 0, node_endpoints })
}

/// The topic's name for sentences that show it.
fn name(broker: &Broker, topic: &TopicProduceData, version: i16) -> String {
    if version < 13 {
        return topic.name.to_string();
    }
    let known = broker.replicas.topic_by_id(TopicId(topic.topic_id));
    known.map(|topic| topic.name.to_string()).unwrap_or_default()
}

fn shape(
    topic: impl FnOnce() -> String,
    index: i32,
    outcome: &Outcome,
    version: i16,
    leaders: &mut Leaders<'_>,
) -> PartitionProduceResponse {
    let mut shaped = PartitionProduceResponse {
        index,
        error_code: ErrorCode::None as i16,
        base_offset: outcome.base_offset,
        log_append_time_ms: outcome.log_append_time_ms,
        log_start_offset: outcome.log_start_offset,
        ..PartitionProduceResponse::default()
    };
    let Err(error) = &outcome.result else { return shaped };
    let refusal = border::produce_refusal(error, &format_args!("{}-{index}", topic()));
    shaped.error_code = refusal.code as i16;
    shaped.error_message = refusal.message.map(|message| crate::broker::shape::text(&message));
    let records = refusal.records.into_iter().map(|(batch_index, message)| {
        let message = message.map(|message| crate::broker::shape::text(&message));
        BatchIndexAndErrorMessage { batch_index, batch_index_error_message: message }
    });
    shaped.record_errors = records.collect();
    if version >= 10
        && let Some((leader_id, leader_epoch)) = leaders.of(error)
    {
        shaped.current_leader = LeaderIdAndEpoch { leader_id, leader_epoch };
    }
    shaped
}

fn refuse_all(call: &Call<ProduceRequest>, code: ErrorCode) -> Reply {
    if call.request.acks == 0 {
        return Reply::Close(CloseReason::FailedWithoutAcks(code.to_string()));
    }
    let responses = call.request.topic_data.iter().map(|topic| TopicProduceResponse {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partition_responses: topic
            .partition_data
            .iter()
            .map(|part| PartitionProduceResponse {
                index: part.index,
                error_code: code as i16,
                base_offset: -1,
                ..PartitionProduceResponse::default()
            })
            .collect(),
    });
    answer(&call.header, &ProduceResponse { responses: responses.collect(), ..Default::default() })
}
