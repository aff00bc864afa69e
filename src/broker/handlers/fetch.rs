//! Fetch (key 1): reads batches as they are stored. v7 sessions (KIP-227), v12 truncation
//! (KIP-595), v13 topics by id (KIP-516), v16 the leader where it is another (KIP-951).

use std::time::Duration;

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border::{self, Leaders};
use crate::broker::shape::text;
use crate::common::{LeaderEpoch, TopicId};
use crate::protocol::error::ErrorCode;
use crate::protocol::messages::fetch::{
    AbortedTransaction, EpochEndOffset, FetchTopic, FetchableTopicResponse, LeaderIdAndEpoch,
    NodeEndpoint, PartitionData,
};
use crate::protocol::messages::{FetchRequest, FetchResponse};
use crate::protocol::wire::Stored;
use crate::replica::{
    Asked, FetchAnswer, FetchAsk, Isolation, NotNow, PartFetched, PartRead, ReplicaError,
    SessionAsk, TopicRef,
};
use crate::security::{Access, Operation, Resource};
use crate::storage::{DiskError, LogSlices};

pub struct Api;

impl Handler for Api {
    type Request = FetchRequest;

    fn access(request: &FetchRequest) -> Access<'_> {
        let topics = request.topics.iter().map(|topic| Resource::Topic(&topic.topic));
        Access::each(topics, Operation::Read)
    }

    async fn handle(broker: &Broker, call: &Call<FetchRequest>) -> FetchResponse {
        let (request, version) = (&call.request, call.header.version);
        let Some(isolation) = Isolation::from_number(request.isolation_level) else {
            return refuse_all(request, version);
        };
        let sessions = broker.replicas.sessions();
        let opened = sessions.open(session_ask(broker, request, version), broker.env.clock.now());
        let fetching = match opened {
            Ok(fetching) => fetching,
            Err(error) => return refuse(border::session_code(&error)),
        };
        let asked = fetching.parts.clone();
        let mut answer = broker.replicas.fetch(fetch_ask(request, version, isolation, fetching.parts)).await;
        if is_follower(request) {
            refuse_follower(broker, &mut answer);
        }
        let now = broker.env.clock.now();
        let session_id = match sessions.close(fetching.ticket, &mut answer, asked, now) {
            Ok(session_id) => session_id,
            Err(error) => return refuse(border::session_code(&error)),
        };
        let records = records(broker, &answer).await;
        shape(broker, call, answer, records, session_id)
    }
}

fn refuse(code: ErrorCode) -> FetchResponse {
    FetchResponse { error_code: code as i16, ..FetchResponse::default() }
}

/// Kafka does not know the isolation level either, and says so for everything.
fn refuse_all(request: &FetchRequest, version: i16) -> FetchResponse {
    let code = ErrorCode::UnknownServerError;
    let named = request.topics.iter().filter(|_| version < 13);
    let responses = named.map(|topic| FetchableTopicResponse {
        topic: topic.topic.clone(),
        topic_id: topic.topic_id,
        partitions: topic.partitions.iter().map(|p| refused(p.partition, code, Some(Vec::new()))).collect(),
    });
    FetchResponse { responses: responses.collect(), ..refuse(code) }
}

fn is_follower(request: &FetchRequest) -> bool {
    request.replica_id >= 0 || request.replica_state.replica_id >= 0
}

/// No partition has a follower in this version, so nobody may read as one.
fn refuse_follower(broker: &Broker, answer: &mut FetchAnswer) {
    for part in answer.parts.iter_mut().filter(|part| part.outcome.is_ok()) {
        let partition = broker.replicas.partition(&part.topic.name(), part.partition);
        let epoch = partition.map_or(LeaderEpoch::NONE, |partition| partition.leader_epoch());
        part.outcome = Err(NotNow::NotLeader { leader: Some(broker.id), epoch }.into());
    }
}

fn session_ask(broker: &Broker, request: &FetchRequest, version: i16) -> SessionAsk {
    let by_topic_id = version >= 13;
    let topic = |name: &str, id: uuid::Uuid| {
        if by_topic_id {
            broker.replicas.with_id(TopicId(id))
        } else {
            broker.replicas.named(name)
        }
    };
    let mut parts = Vec::with_capacity(request.topics.len());
    for FetchTopic { topic: name, topic_id, partitions } in &request.topics {
        let topic: TopicRef = topic(name, *topic_id);
        parts.extend(partitions.iter().map(|partition| Asked {
            topic: topic.clone(),
            partition: partition.partition,
            fetch_offset: partition.fetch_offset,
            bytes_max: partition.partition_max_bytes,
            current_leader_epoch: epoch(partition.current_leader_epoch),
            last_fetched_epoch: epoch(partition.last_fetched_epoch),
        }));
    }
    let forgotten = request.forgotten_topics_data.iter().flat_map(|forgotten| {
        let topic = topic(&forgotten.topic, forgotten.topic_id);
        forgotten.partitions.iter().map(move |partition| (topic.clone(), *partition))
    });
    SessionAsk {
        id: request.session_id,
        epoch: request.session_epoch,
        by_topic_id,
        privileged: is_follower(request),
        parts,
        forgotten: forgotten.collect(),
    }
}

fn epoch(sent: i32) -> Option<LeaderEpoch> {
    Some(LeaderEpoch(sent)).filter(|epoch| epoch.0 >= 0)
}

fn fetch_ask(
    request: &FetchRequest,
    version: i16,
    isolation: Isolation,
    parts: Vec<Asked>,
) -> FetchAsk {
    let max_wait_ms = if is_follower(request) { 0 } else { request.max_wait_ms.max(0) };
    FetchAsk {
        isolation,
        max_wait: Duration::from_millis(max_wait_ms as u64),
        min_bytes: request.min_bytes,
        max_bytes: request.max_bytes,
        by_topic_id: version >= 13,
        parts,
    }
}

type Records = Vec<Result<Stored, ReplicaError>>;

/// Fewer bytes are copied: one piece more to send costs more than that.
const SENT_FROM_FILE_MIN: usize = 16 << 10;

/// The records of each part, in order: what is in the page cache is sent from there, the rest is
/// read on the blocking pool.
async fn records(broker: &Broker, answer: &FetchAnswer) -> Records {
    let mut records: Records = Vec::with_capacity(answer.parts.len());
    let mut waiting: Vec<(usize, LogSlices)> = Vec::new();
    let failed = |at: usize, error| broker.replicas.failed_to_read(&answer.parts[at], error);
    for (at, part) in answer.parts.iter().enumerate() {
        let read = part.outcome.as_ref().ok();
        let slices = read.and_then(|read| Some((read.slices.as_ref()?, read.is_cold)));
        records.push(match slices {
            Some((slices, true)) if slices.is_unchecked() || !slices.is_cached() => {
                waiting.push((at, slices.clone()));
                Err(ReplicaError::Offline)
            }
            Some((slices, _)) => stored(slices).map_err(|error| failed(at, error)),
            None => Ok(Stored::default()),
        });
    }
    if !waiting.is_empty() {
        let read_all = move || -> Vec<_> {
            waiting.into_iter().map(|(at, slices)| (at, slices.read())).collect()
        };
        for (at, read) in broker.env.tasks.spawn_blocking(read_all).await.into_iter().flatten() {
            records[at] = read.map(Stored::Read).map_err(|error| failed(at, error));
        }
    }
    records
}

fn stored(slices: &LogSlices) -> Result<Stored, DiskError> {
    if slices.is_unchecked() {
        return slices.read().map(Stored::Read);
    }
    match slices.in_file() {
        Some(slice) if slice.size_bytes >= SENT_FROM_FILE_MIN => Ok(Stored::InFile(slice)),
        _ => slices.read().map(Stored::Read),
    }
}

fn shape(
    broker: &Broker,
    call: &Call<FetchRequest>,
    answer: FetchAnswer,
    records: Records,
    session_id: i32,
) -> FetchResponse {
    let mut leaders = Leaders::new(broker, &call.listener.name);
    let mut responses: Vec<FetchableTopicResponse> = Vec::new();
    let mut last: Option<TopicRef> = None;
    for (part, records) in answer.parts.into_iter().zip(records) {
        if !last.as_ref().is_some_and(|topic| topic.is_same(&part.topic)) {
            responses.push(FetchableTopicResponse {
                topic: text(&part.topic.name()),
                topic_id: part.topic.id().0,
                partitions: Vec::new(),
            });
            last = Some(part.topic.clone());
        }
        let data = partition(part, records, call.header.version, &mut leaders);
        if let Some(topic) = responses.last_mut() {
            topic.partitions.push(data);
        }
    }
    let node_endpoints = leaders.endpoints().map(|node| NodeEndpoint {
        node_id: node.id,
        host: node.host,
        port: node.port,
        rack: node.rack,
    });
    let mut node_endpoints: Vec<NodeEndpoint> = node_endpoints.collect();
    if is_follower(&call.request) {
        // Followers know the leaders from the metadata.
        node_endpoints.clear();
    }
    FetchResponse { session_id, responses, node_endpoints, ..FetchResponse::default() }
}

fn partition(
    part: PartFetched,
    records: Result<Stored, ReplicaError>,
    version: i16,
    leaders: &mut Leaders<'_>,
) -> PartitionData {
    match part.outcome.and_then(|read| Ok((read, records?))) {
        Ok((read, records)) => data(part.partition, read, records),
        Err(error) => {
            let code = border::replica_code(&error);
            // Kafka names no transactions for what it refused to read, and an empty list for what
            // it did not look for.
            let is_unknown =
                matches!(code, ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId);
            let mut refused = refused(part.partition, code, is_unknown.then(Vec::new));
            if version >= 16
                && let Some((leader_id, leader_epoch)) = leaders.of(&error)
            {
                refused.current_leader = LeaderIdAndEpoch { leader_id, leader_epoch };
            }
            refused
        }
    }
}

fn refused(
    partition_index: i32,
    code: ErrorCode,
    aborted_transactions: Option<Vec<AbortedTransaction>>,
) -> PartitionData {
    PartitionData {
        partition_index,
        error_code: code as i16,
        high_watermark: -1,
        aborted_transactions,
        records: Some(Stored::default()),
        ..PartitionData::default()
    }
}

fn data(partition_index: i32, read: PartRead, records: Stored) -> PartitionData {
    let aborted = read.aborted.map(|aborted| {
        let named = aborted.iter().map(|txn| AbortedTransaction {
            producer_id: txn.producer_id.0,
            first_offset: txn.first_offset,
        });
        named.collect()
    });
    let diverging = read.diverging.map(|(epoch, end_offset)| EpochEndOffset { epoch: epoch.0, end_offset });
    PartitionData {
        partition_index,
        high_watermark: read.high_watermark,
        last_stable_offset: read.last_stable_offset,
        log_start_offset: read.log_start_offset,
        diverging_epoch: diverging.unwrap_or_default(),
        aborted_transactions: aborted,
        records: Some(records),
        ..PartitionData::default()
    }
}
