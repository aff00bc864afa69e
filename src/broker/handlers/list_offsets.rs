//! ListOffsets (key 2): offsets by timestamp, and the special ones. v4 knows leader epochs, v7 the
//! largest timestamp (KIP-734), v8, v9, v11 tiered storage.

use std::collections::HashSet;

use super::{Call, Handler};
use crate::broker::Broker;
use crate::broker::border;
use crate::common::LeaderEpoch;
use crate::protocol::error::ErrorCode;
use crate::protocol::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use crate::protocol::messages::{ListOffsetsRequest, ListOffsetsResponse};
use crate::replica::{Found, Isolation, Lookup, NotNow, ReplicaError};
use crate::security::{Access, Operation, Resource};

pub struct Api;

impl Handler for Api {
    type Request = ListOffsetsRequest;

    fn access(request: &ListOffsetsRequest) -> Access<'_> {
        let topics = request.topics.iter().map(|topic| Resource::Topic(&topic.name));
        Access::each(topics, Operation::Describe)
    }

    async fn handle(broker: &Broker, call: &Call<ListOffsetsRequest>) -> ListOffsetsResponse {
        let (request, version) = (&call.request, call.header.version);
        let isolation = Isolation::from_number(request.isolation_level);
        let twice = named_twice(request);
        let topics = request.topics.iter().map(|topic| {
            let mut refused = HashSet::new();
            let partitions = topic.partitions.iter().filter_map(|asked| {
                let outcome = match isolation {
                    // As for a Fetch, for everything.
                    None => Err(ErrorCode::UnknownServerError),
                    Some(_) if twice.contains(&(&*topic.name, asked.partition_index)) => {
                        // One answer for all mentions, as Kafka has it.
                        refused.insert(asked.partition_index).then_some(())?;
                        Err(ErrorCode::InvalidRequest)
                    }
                    Some(isolation) => look(broker, &topic.name, asked, isolation, version),
                };
                Some(shape(asked.partition_index, outcome))
            });
            ListOffsetsTopicResponse { name: topic.name.clone(), partitions: partitions.collect() }
        });
        ListOffsetsResponse { topics: topics.collect(), ..ListOffsetsResponse::default() }
    }
}

fn named_twice(request: &ListOffsetsRequest) -> HashSet<(&str, i32)> {
    let (mut seen, mut twice) = (HashSet::new(), HashSet::new());
    for topic in &request.topics {
        for partition in &topic.partitions {
            let name = (&*topic.name, partition.partition_index);
            if !seen.insert(name) {
                twice.insert(name);
            }
        }
    }
    twice
}

fn look(
    broker: &Broker,
    topic: &str,
    asked: &ListOffsetsPartition,
    isolation: Isolation,
    version: i16,
) -> Result<Found, ErrorCode> {
    let lookup = Lookup::from_number(asked.timestamp)
        .ok()
        .filter(|lookup| version >= first_version(*lookup))
        .ok_or(ErrorCode::UnsupportedVersion)?;
    let epoch = Some(LeaderEpoch(asked.current_leader_epoch)).filter(|epoch| epoch.0 >= 0);
    let partition = broker.replicas.partition(topic, asked.partition_index).ok_or(NotNow::UnknownPartition.into());
    let found = partition.and_then(|partition| partition.list_offset(lookup, isolation, epoch));
    found.map_err(|error: ReplicaError| border::list_offsets_code(&error, version))
}

fn first_version(lookup: Lookup) -> i16 {
    match lookup {
        Lookup::Latest | Lookup::Earliest | Lookup::AtOrAfter(_) => 1,
        Lookup::MaxTimestamp => 7,
        Lookup::EarliestLocal => 8,
        Lookup::LatestTiered => 9,
        Lookup::EarliestPendingUpload => 11,
    }
}

fn shape(
    partition_index: i32,
    outcome: Result<Found, ErrorCode>,
) -> ListOffsetsPartitionResponse {
    let (code, found) = match outcome {
        Ok(found) => (ErrorCode::None, found),
        Err(code) => (code, Found::NOTHING),
    };
    ListOffsetsPartitionResponse {
        partition_index,
        error_code: code as i16,
        timestamp: found.timestamp,
        offset: found.offset,
        leader_epoch: found.leader_epoch.0,
    }
}
