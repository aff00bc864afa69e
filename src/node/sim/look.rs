//! After each start: everything that the model knows of is looked at.

use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::{DescribeConfigsRequest, MetadataRequest};
use kafka_protocol::protocol::StrBytes;

use super::client::{bounds, fetch_request, take_in};
use super::groups;
use super::model::Known;
use super::wire::Wire;
use super::{Lab, NAMES};

const TOPIC: i8 = 2;
/// DYNAMIC_TOPIC_CONFIG
const OF_THE_TOPIC: i8 = 1;

/// `None`: the node is gone.
pub async fn look_at_everything(lab: &Lab) -> Option<()> {
    let mut wire = Wire::open(lab).await?;
    let request = MetadataRequest::default().with_topics(None);
    let metadata = wire.ask(&request, 12).await?;
    for name in NAMES {
        let is = |topic: &&kafka_protocol::messages::metadata_response::MetadataResponseTopic| {
            topic.name.as_ref().is_some_and(|found| &***found == name)
        };
        let found = metadata.topics.iter().find(is);
        lab.model().found(name, found.map(|topic| (topic.topic_id, topic.partitions.len())));
        if found.is_some() {
            configs(lab, &mut wire, name).await?;
        }
    }
    let places = lab.model().places();
    for place in places {
        let Some((start, end)) = bounds(lab, &mut wire, place).await? else { continue };
        let least = lab.model().least_end(place);
        lab.model().bounds(place, least, (start, end));
        let mut next = start;
        while next < end {
            let response = wire.ask(&fetch_request(place, next, 0, 600), 12).await?;
            let part = &response.responses[0].partitions[0];
            if part.error_code != 0 {
                lab.allows("read all", part.error_code);
                break;
            }
            let mut model = lab.model();
            let known = &mut model.topic(place.0).parts[place.1 as usize];
            let read = take_in(part.records.as_ref(), |at, value| known.stands(at, value));
            let read = read.filter(|read| *read > next);
            next = read.unwrap_or_else(|| panic!("{place:?}: nothing at {next}, end {end}"));
        }
    }
    let commits: Vec<_> = lab.model().commits.keys().cloned().collect();
    for (group, part) in commits {
        groups::read_back(lab, &mut wire, &group, part).await?;
    }
    lab.model().restarted = None;
    Some(())
}

/// The topic's own setting is what was last acknowledged.
async fn configs(lab: &Lab, wire: &mut Wire, name: &'static str) -> Option<()> {
    let key = StrBytes::from_static_str("flush.messages");
    let resource = DescribeConfigsResource::default()
        .with_resource_type(TOPIC)
        .with_resource_name(StrBytes::from_static_str(name))
        .with_configuration_keys(Some(vec![key]));
    let request = DescribeConfigsRequest::default().with_resources(vec![resource]);
    let response = wire.ask(&request, 4).await?;
    let own = &response.results[0].configs[0];
    let flushes = own.config_source == OF_THE_TOPIC;
    let mut model = lab.model();
    let topic = model.topic(name);
    match topic.flushes {
        Known::Is(known) => assert_eq!(flushes, known, "{name}: its config is lost"),
        Known::Unknown => topic.flushes = Known::Is(flushes),
    }
    Some(())
}
