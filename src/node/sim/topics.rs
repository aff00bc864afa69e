//! What a client does to topics. Each changes one name of its own, so that the model knows what
//! an answer speaks of.

use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::{
    CreatePartitionsRequest, CreateTopicsRequest, DeleteRecordsRequest, DeleteTopicsRequest,
    IncrementalAlterConfigsRequest,
};
use kafka_protocol::protocol::StrBytes;

use super::client::{Client, topic_name};
use super::model::Known;
use super::wire::Wire;
use super::{Lab, NAMES};
use crate::common::Offset;

const TIMEOUT_MS: i32 = 30_000;
const TOPIC: i8 = 2;
/// Operations of IncrementalAlterConfigs.
const SET: i8 = 0;
const DELETE: i8 = 1;

/// Creates the client's topic if it is not there; else changes or, rarely, deletes it.
pub async fn change(client: &mut Client, lab: &Lab, wire: &mut Wire) -> Option<()> {
    let name = NAMES[client.id];
    let exists = lab.model().topic(name).exists;
    match exists {
        Known::Is(false) => create(client, lab, wire, name).await,
        Known::Is(true) => match client.random.below(6) {
            // The first is never deleted: groups commit for it.
            0 if client.id > 0 => delete(lab, wire, name).await,
            1 => grow(lab, wire, name).await,
            _ => alter(client, lab, wire, name).await,
        },
        Known::Unknown => Some(()),
    }
}

async fn create(client: &Client, lab: &Lab, wire: &mut Wire, name: &'static str) -> Option<()> {
    let count = 1 + client.random.below(2) as i32;
    let flushes = client.chance(3);
    {
        let mut model = lab.model();
        let topic = model.topic(name);
        topic.exists = Known::Unknown;
        topic.incarnation += 1;
        topic.partitions = (count as usize, count as usize);
        (topic.flushes, topic.flushes_version) = (Known::Is(flushes), topic.flushes_version + 1);
    }
    // A batch of four records must fit.
    let segment_bytes = 1_200 + client.random.below(1_500);
    let mut configs = vec![
        config("internal.segment.bytes", segment_bytes.to_string()),
        config("index.interval.bytes", "100".to_owned()),
        config("file.delete.delay.ms", client.random.below(3_000).to_string()),
    ];
    configs.extend(flushes.then(|| config("flush.messages", "1".to_owned())));
    let topic = CreatableTopic::default()
        .with_name(topic_name(name))
        .with_num_partitions(count)
        .with_replication_factor(1)
        .with_configs(configs);
    let request =
        CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(TIMEOUT_MS);
    let response = wire.ask(&request, 7).await?;
    let answer = &response.topics[0];
    if answer.error_code != 0 {
        lab.allows(&format!("create {name}"), answer.error_code);
        return Some(());
    }
    let mut model = lab.model();
    let topic = model.topic(name);
    topic.exists = Known::Is(true);
    topic.begin(answer.topic_id, count as usize);
    Some(())
}

fn config(name: &'static str, value: String) -> CreatableTopicConfig {
    CreatableTopicConfig::default()
        .with_name(StrBytes::from_static_str(name))
        .with_value(Some(StrBytes::from_string(value)))
}

async fn delete(lab: &Lab, wire: &mut Wire, name: &'static str) -> Option<()> {
    {
        let mut model = lab.model();
        let topic = model.topic(name);
        topic.exists = Known::Unknown;
        topic.incarnation += 1;
    }
    let request = DeleteTopicsRequest::default()
        .with_topic_names(vec![topic_name(name)])
        .with_timeout_ms(TIMEOUT_MS);
    let response = wire.ask(&request, 5).await?;
    match response.responses[0].error_code {
        0 => lab.model().topic(name).exists = Known::Is(false),
        code => lab.allows(&format!("delete {name}"), code),
    }
    Some(())
}

async fn grow(lab: &Lab, wire: &mut Wire, name: &'static str) -> Option<()> {
    let count = {
        let mut model = lab.model();
        let topic = model.topic(name);
        let (least, most) = topic.partitions;
        if least != most || least >= 4 {
            return Some(());
        }
        topic.partitions = (least, least + 1);
        least + 1
    };
    let topic =
        CreatePartitionsTopic::default().with_name(topic_name(name)).with_count(count as i32);
    let topic = topic.with_assignments(None);
    let request =
        CreatePartitionsRequest::default().with_topics(vec![topic]).with_timeout_ms(TIMEOUT_MS);
    let response = wire.ask(&request, 3).await?;
    match response.results[0].error_code {
        0 => {
            let mut model = lab.model();
            let topic = model.topic(name);
            topic.partitions = (count, count);
            topic.grow(count);
        }
        code => lab.allows(&format!("grow {name}"), code),
    }
    Some(())
}

async fn alter(client: &Client, lab: &Lab, wire: &mut Wire, name: &'static str) -> Option<()> {
    let flushes = client.chance(2);
    {
        let mut model = lab.model();
        let topic = model.topic(name);
        (topic.flushes, topic.flushes_version) = (Known::Unknown, topic.flushes_version + 1);
    }
    let own = AlterableConfig::default()
        .with_name(StrBytes::from_static_str("flush.messages"))
        .with_config_operation(if flushes { SET } else { DELETE })
        .with_value(flushes.then(|| StrBytes::from_static_str("1")));
    let resource = AlterConfigsResource::default()
        .with_resource_type(TOPIC)
        .with_resource_name(StrBytes::from_static_str(name))
        .with_configs(vec![own]);
    let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    let response = wire.ask(&request, 1).await?;
    match response.responses[0].error_code {
        0 => lab.model().topic(name).flushes = Known::Is(flushes),
        code => lab.allows(&format!("alter {name}"), code),
    }
    Some(())
}

pub async fn delete_records(client: &mut Client, lab: &Lab, wire: &mut Wire) -> Option<()> {
    let Some((name, index, incarnation)) = client.place(lab) else { return Some(()) };
    let to = {
        let mut model = lab.model();
        let part = &mut model.topic(name).parts[index as usize];
        let to = client.random.below(part.known_end() as u64 + 1) as Offset;
        part.start_asked = part.start_asked.max(to);
        to
    };
    let part = DeleteRecordsPartition::default().with_partition_index(index).with_offset(to);
    let topic =
        DeleteRecordsTopic::default().with_name(topic_name(name)).with_partitions(vec![part]);
    let request =
        DeleteRecordsRequest::default().with_topics(vec![topic]).with_timeout_ms(TIMEOUT_MS);
    let response = wire.ask(&request, 2).await?;
    let part = &response.topics[0].partitions[0];
    let same = lab.model().topic(name).incarnation == incarnation;
    match part.error_code {
        0 if same => assert!(part.low_watermark >= to, "{name}-{index} is not cut at {to}"),
        0 | 3 => {}
        // OFFSET_OUT_OF_RANGE: of a topic that is another by now.
        1 if !same => {}
        code => lab.allows(&format!("delete records of {name}-{index}"), code),
    }
    Some(())
}
