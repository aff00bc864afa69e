//! Metadata (key 3): brokers, and topics with their leaders. v4 may make missing topics, v8 tells
//! permitted operations (KIP-430), v10 topic ids (KIP-516), v12 asks by id.

use std::collections::HashSet;
use std::sync::Arc;

use uuid::Uuid;

use super::{Call, Handler};
use crate::broker::shape::{
    CLUSTER_OPERATIONS, OPERATIONS_NOT_ASKED, TOPIC_OPERATIONS, operations, shared, text,
    text_option,
};
use crate::broker::{Broker, auto_create};
use crate::common::TopicId;
use crate::metadata::{self, Image, Partition, Topic};
use crate::protocol::error::ErrorCode;
use crate::protocol::messages::metadata_request::MetadataRequestTopic;
use crate::protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use crate::protocol::messages::{BrokerId, MetadataRequest, MetadataResponse, TopicName};
use crate::security::{Access, Operation, Resource};

pub struct Api;

/// What the answer depends on beside the image.
struct Asked<'a> {
    listener: &'a str,
    version: i16,
    topic_operations: i32,
}

impl Handler for Api {
    type Request = MetadataRequest;

    fn access(request: &MetadataRequest) -> Access<'_> {
        let names = request.topics.iter().flatten().filter_map(|topic| topic.name.as_deref());
        Access::each(names.map(|name| Resource::Topic(name)), Operation::Describe)
    }

    async fn handle(broker: &Broker, call: &Call<MetadataRequest>) -> MetadataResponse {
        let (request, version) = (&call.request, call.header.version);
        let asked = Asked {
            listener: &call.listener.name,
            version,
            topic_operations: operations(
                request.include_topic_authorized_operations,
                TOPIC_OPERATIONS,
            ),
        };
        let named = match &request.topics {
            Some(topics) if version > 0 || !topics.is_empty() => topics,
            _ => {
                let image = broker.image();
                let topics = image.topics().iter().map(|topic| shape(topic, &image, &asked));
                return answer(broker, &image, call, topics.collect());
            }
        };
        if named.iter().any(|topic| !fits_version(topic, version)) {
            return refuse_topics(named);
        }
        if named.iter().any(|topic| !topic.topic_id.is_nil()) {
            let image = broker.image();
            let topics = by_id(named, &image, &asked);
            return answer(broker, &image, call, topics);
        }
        let names = distinct(named);
        let may_create = request.allow_auto_topic_creation;
        let refused = auto_create::missing(broker, &names, may_create).await;
        let image = broker.image();
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for (name, refusal) in names.iter().zip(refused) {
            match (image.topic(name), refusal) {
                (Some(topic), _) => found.push(shape(topic, &image, &asked)),
                (None, code) => missing.push(unknown(Some(name), Uuid::nil(), code, &asked)),
            }
        }
        found.append(&mut missing);
        answer(broker, &image, call, found)
    }
}

/// Only v12 and later may leave the name out, or ask by id.
fn fits_version(topic: &MetadataRequestTopic, version: i16) -> bool {
    version >= 12 || (topic.name.is_some() && topic.topic_id.is_nil())
}

fn distinct(topics: &[MetadataRequestTopic]) -> Vec<Arc<str>> {
    let mut seen = HashSet::new();
    let names = topics.iter().filter_map(|topic| topic.name.as_ref());
    names.filter(|name| seen.insert(&***name)).map(|name| shared(name)).collect()
}

fn by_id(
    topics: &[MetadataRequestTopic],
    image: &Image,
    asked: &Asked<'_>,
) -> Vec<MetadataResponseTopic> {
    let mut seen = HashSet::new();
    let ids = topics.iter().map(|topic| topic.topic_id);
    let ids: Vec<Uuid> = ids.filter(|id| !id.is_nil() && seen.insert(*id)).collect();
    let is_known = |id: &Uuid| image.topics().by_id(TopicId(*id)).is_some();
    let (known, unknown_ids): (Vec<Uuid>, Vec<Uuid>) = ids.into_iter().partition(is_known);
    let unknown_ids = unknown_ids.into_iter();
    let mut shaped: Vec<MetadataResponseTopic> =
        unknown_ids.map(|id| unknown(None, id, ErrorCode::UnknownTopicId, asked)).collect();
    let known = known.into_iter().filter_map(|id| image.topics().by_id(TopicId(id)));
    shaped.extend(known.map(|topic| shape(topic, image, asked)));
    shaped
}

fn unknown(
    name: Option<&Arc<str>>,
    id: Uuid,
    code: ErrorCode,
    asked: &Asked<'_>,
) -> MetadataResponseTopic {
    let is_internal = name.is_some_and(|name| metadata::is_internal(name));
    let name = name.map(|name| TopicName(text(name)));
    let name = if asked.version < 12 { name.or_else(|| Some(TopicName(text("")))) } else { name };
    MetadataResponseTopic::default()
        .with_error_code(code as i16)
        .with_name(name)
        .with_topic_id(id)
        .with_is_internal(is_internal)
        .with_topic_authorized_operations(OPERATIONS_NOT_ASKED)
}

fn shape(topic: &Topic, image: &Image, asked: &Asked<'_>) -> MetadataResponseTopic {
    let partitions = topic.partitions.iter();
    let partitions = partitions.map(|(index, partition)| shape_partition(*index, partition, image, asked));
    MetadataResponseTopic::default()
        .with_name(Some(TopicName(text(&topic.name))))
        .with_topic_id(topic.id.0)
        .with_is_internal(topic.is_internal())
        .with_partitions(partitions.collect())
        .with_topic_authorized_operations(asked.topic_operations)
}

fn shape_partition(
    index: i32,
    partition: &Partition,
    image: &Image,
    asked: &Asked<'_>,
) -> MetadataResponsePartition {
    let is_here = |id: &crate::common::BrokerId| {
        image.broker(*id).is_some_and(|node| !node.is_fenced && endpoint(node, asked.listener).is_some())
    };
    let ids = |ids: &[crate::common::BrokerId]| {
        // Version 0 names only replicas that can be reached.
        let shown = ids.iter().filter(|id| asked.version > 0 || is_here(id));
        shown.map(|id| BrokerId(id.0)).collect::<Vec<_>>()
    };
    let leader = partition.leader.filter(is_here);
    let code = match partition.leader {
        None => ErrorCode::LeaderNotAvailable,
        Some(id) if leader.is_none() => {
            let is_alive = image.broker(id).is_some_and(|node| !node.is_fenced);
            if is_alive && asked.version >= 6 { ErrorCode::ListenerNotFound } else { ErrorCode::LeaderNotAvailable }
        }
        Some(_) if asked.version == 0 && !partition.replicas.iter().all(is_here) => {
            ErrorCode::ReplicaNotAvailable
        }
        Some(_) => ErrorCode::None,
    };
    let is_online = |id| is_here(id) && image.has_online_replica(partition, *id);
    let offline = partition.replicas.iter().filter(|id| !is_online(id));
    MetadataResponsePartition::default()
        .with_error_code(code as i16)
        .with_partition_index(index)
        .with_leader_id(BrokerId(leader.map_or(-1, |id| id.0)))
        .with_leader_epoch(partition.leader_epoch.0)
        .with_replica_nodes(ids(&partition.replicas))
        .with_isr_nodes(ids(&partition.isr))
        .with_offline_replicas(offline.map(|id| BrokerId(id.0)).collect())
}

fn endpoint<'a>(node: &'a metadata::Broker, listener: &str) -> Option<&'a metadata::Endpoint> {
    node.endpoints.iter().find(|endpoint| *endpoint.name == *listener)
}

fn refuse_topics(topics: &[MetadataRequestTopic]) -> MetadataResponse {
    let topics = topics.iter().map(|topic| {
        MetadataResponseTopic::default()
            .with_error_code(ErrorCode::InvalidRequest as i16)
            .with_name(Some(topic.name.clone().unwrap_or_default()))
            .with_topic_id(topic.topic_id)
    });
    MetadataResponse::default().with_topics(topics.collect())
}

fn answer(
    broker: &Broker,
    image: &Image,
    call: &Call<MetadataRequest>,
    topics: Vec<MetadataResponseTopic>,
) -> MetadataResponse {
    let brokers = image.alive_brokers().filter_map(|node| {
        let endpoint = endpoint(node, &call.listener.name)?;
        let shaped = MetadataResponseBroker::default()
            .with_node_id(BrokerId(node.id.0))
            .with_host(text(&endpoint.host))
            .with_port(i32::from(endpoint.port))
            .with_rack(text_option(node.rack.as_ref()));
        Some(shaped)
    });
    let asked = call.request.include_cluster_authorized_operations;
    MetadataResponse::default()
        .with_brokers(brokers.collect())
        .with_cluster_id(Some(text(&broker.cluster_id)))
        .with_controller_id(BrokerId(broker.some_broker(image)))
        .with_topics(topics)
        .with_cluster_authorized_operations(operations(asked, CLUSTER_OPERATIONS))
}
