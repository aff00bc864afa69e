//! The hash that a group keeps of its topics (KIP-1101): a topic that is made, deleted, made anew
//! or gets partitions changes it, and so do racks. The bytes hashed are Kafka's, so that a
//! coordinator that takes over finds the group unchanged.

use std::collections::BTreeSet;

use xxhash_rust::xxh3::Xxh3;

use crate::common::TopicName;
use crate::metadata::{Image, Topic};

/// Of the topics that are there; 0 without any.
pub fn of_topics(topics: &BTreeSet<TopicName>, image: &Image) -> i64 {
    let mut hasher = Xxh3::new();
    let mut is_empty = true;
    for topic in topics.iter().filter_map(|name| image.topic(name)) {
        hasher.update(&of_topic(topic, image).to_le_bytes());
        is_empty = false;
    }
    if is_empty { 0 } else { hasher.digest() as i64 }
}

fn of_topic(topic: &Topic, image: &Image) -> u64 {
    const MAGIC: u8 = 0;
    let mut hasher = Xxh3::new();
    let (high, low) = topic.id.0.as_u64_pair();
    hasher.update(&[MAGIC]);
    hasher.update(&high.to_le_bytes());
    hasher.update(&low.to_le_bytes());
    put_text(&mut hasher, &topic.name);
    hasher.update(&topic.partition_count().to_le_bytes());
    for (index, partition) in &topic.partitions {
        hasher.update(&index.to_le_bytes());
        let brokers = partition.replicas.iter().filter_map(|id| image.broker(*id));
        let racks: BTreeSet<_> = brokers.filter_map(|broker| broker.rack.clone()).collect();
        for rack in racks {
            hasher.update(&(rack.encode_utf16().count() as i32).to_le_bytes());
            put_text(&mut hasher, &rack);
        }
    }
    hasher.digest()
}

/// UTF-16, then how many units.
fn put_text(hasher: &mut Xxh3, text: &str) {
    let mut count = 0i32;
    for unit in text.encode_utf16() {
        hasher.update(&unit.to_le_bytes());
        count += 1;
    }
    hasher.update(&count.to_le_bytes());
}
