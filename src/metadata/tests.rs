//! The image against its own records, deltas against a plain comparison, the publisher.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use uuid::Uuid;

use super::publisher::image_of;
use super::*;
use crate::common::{BrokerId, LeaderEpoch, TopicId};
use crate::machine::{CommitSink, EntryKind, JournalRecord, Position, ReadEntry, Record};
use crate::protocol::records::metadata as records;
use records::MetadataRecord;

pub(crate) fn broker(id: i32, epoch: i64) -> MetadataRecord {
    MetadataRecord::RegisterBroker(records::RegisterBrokerRecord {
        broker_id: id,
        broker_epoch: epoch,
        incarnation_id: Uuid::from_u128(id as u128 + 100),
        end_points: vec![records::BrokerEndpoint {
            name: "PLAINTEXT".into(),
            host: "localhost".into(),
            port: 9092,
            security_protocol: 0,
        }],
        rack: Some(format!("rack{id}").into()),
        fenced: true,
        ..Default::default()
    })
}

pub(crate) fn topic(name: &str, id: u128) -> MetadataRecord {
    MetadataRecord::Topic(records::TopicRecord { name: name.into(), topic_id: Uuid::from_u128(id) })
}

pub(crate) fn partition(topic: u128, index: i32, replicas: &[i32]) -> MetadataRecord {
    MetadataRecord::Partition(records::PartitionRecord {
        partition_id: index,
        topic_id: Uuid::from_u128(topic),
        replicas: replicas.to_vec(),
        isr: replicas.to_vec(),
        leader: replicas[0],
        directories: vec![Uuid::nil(); replicas.len()],
        leader_epoch: 0,
        partition_epoch: 0,
        ..Default::default()
    })
}

fn change(topic: u128, index: i32) -> records::PartitionChangeRecord {
    records::PartitionChangeRecord {
        partition_id: index,
        topic_id: Uuid::from_u128(topic),
        leader: -2,
        leader_recovery_state: -1,
        ..Default::default()
    }
}

pub(crate) fn config(
    kind: ConfigKind,
    name: &str,
    key: &str,
    value: Option<&str>,
) -> MetadataRecord {
    MetadataRecord::Config(records::ConfigRecord {
        resource_type: kind as i8,
        resource_name: name.into(),
        name: key.into(),
        value: value.map(Into::into),
    })
}

/// One step of a random history; numbers pick among what there is.
#[derive(Debug, Clone)]
enum Step {
    Register(i32),
    Fence(i32, bool),
    Topic(usize, i32),
    Remove(usize),
    Shrink(usize, i32),
    Config(usize, usize, bool),
    Feature(usize, i16),
    ProducerIds(i64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4).prop_map(Step::Register),
        (0..4, any::<bool>()).prop_map(|(id, on)| Step::Fence(id, on)),
        (0..20usize, 1..70).prop_map(|(name, partitions)| Step::Topic(name, partitions)),
        (0..20usize).prop_map(Step::Remove),
        (0..20usize, 0..70).prop_map(|(name, index)| Step::Shrink(name, index)),
        (0..20usize, 0..3usize, any::<bool>()).prop_map(|(a, b, c)| Step::Config(a, b, c)),
        (0..3usize, 0..3i16).prop_map(|(name, level)| Step::Feature(name, level)),
        (0..9_000i64).prop_map(Step::ProducerIds),
    ]
}

/// The records of `step` on `image`; none where it makes no sense.
fn records_of(image: &Image, step: &Step) -> Vec<MetadataRecord> {
    let at = image.end_offset;
    let known = |name: &usize| image.topic(&format!("topic-{name}"));
    match step {
        Step::Register(id) => vec![broker(*id, at)],
        Step::Fence(id, on) => match image.broker(BrokerId(*id)) {
            Some(broker) if *on => vec![MetadataRecord::FenceBroker(records::FenceBrokerRecord {
                id: *id,
                epoch: broker.epoch,
            })],
            Some(broker) => vec![MetadataRecord::UnfenceBroker(records::UnfenceBrokerRecord {
                id: *id,
                epoch: broker.epoch,
            })],
            None => Vec::new(),
        },
        Step::Topic(name, partitions) if known(name).is_none() => {
            let id = (at as u128 + 1) << 32;
            let partitions = (0..*partitions).map(|index| partition(id, index, &[1, 2, 3]));
            std::iter::once(topic(&format!("topic-{name}"), id)).chain(partitions).collect()
        }
        Step::Topic(..) => Vec::new(),
        Step::Remove(name) => known(name).map_or(Vec::new(), |topic| {
            vec![MetadataRecord::RemoveTopic(records::RemoveTopicRecord { topic_id: topic.id.0 })]
        }),
        Step::Shrink(name, index) => {
            let Some(topic) = known(name).filter(|it| it.partition(*index).is_some()) else {
                return Vec::new();
            };
            let change = change(topic.id.0.as_u128(), *index);
            vec![MetadataRecord::PartitionChange(records::PartitionChangeRecord {
                isr: Some(vec![2]),
                leader: 2,
                eligible_leader_replicas: Some(vec![3]),
                ..change
            })]
        }
        Step::Config(name, key, set) => {
            let (name, key) = (format!("topic-{name}"), format!("key-{key}"));
            vec![config(ConfigKind::Topic, &name, &key, set.then_some("value"))]
        }
        Step::Feature(name, level) => {
            let name = ["metadata.version", "group.version", "a.version"][*name].into();
            vec![MetadataRecord::FeatureLevel(records::FeatureLevelRecord {
                name,
                feature_level: *level,
            })]
        }
        Step::ProducerIds(next) => vec![MetadataRecord::ProducerIds(records::ProducerIdsRecord {
            broker_id: 1,
            broker_epoch: 2,
            next_producer_id: *next,
        })],
    }
}

fn run(image: &mut Image, steps: &[Step]) {
    for step in steps {
        for record in records_of(image, step) {
            image.apply(&record, Position(image.end_offset));
        }
    }
}

type Flat = BTreeSet<(TopicId, i32, String)>;

fn flat(image: &Image) -> Flat {
    let partitions = |topic: &Arc<Topic>| {
        let (id, partitions) = (topic.id, topic.partitions.clone());
        partitions.into_iter().map(move |(index, it)| (id, index, format!("{it:?}")))
    };
    image.topics().iter().flat_map(partitions).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::with_cases(64) })]

    /// A snapshot loses nothing, and records survive their encoding.
    #[test]
    fn an_image_is_its_records(steps in prop::collection::vec(step(), 0..80)) {
        let mut image = Image::default();
        run(&mut image, &steps);
        let mut again = Image::default();
        for record in image.to_records() {
            let decoded = <MetadataRecord as Record>::decode(&Record::encode(&record));
            prop_assert_eq!(decoded.as_ref(), Ok(&Some(record)));
            again.apply_unplaced(&decoded.unwrap().unwrap());
        }
        again.end_offset = image.end_offset;
        prop_assert_eq!(again, image);
    }

    /// What a delta names, applied to the old partitions, gives the new ones, and names no
    /// partition that stayed as it was.
    #[test]
    fn a_delta_is_the_difference(
        first in prop::collection::vec(step(), 0..60),
        then in prop::collection::vec(step(), 0..20),
    ) {
        let mut before = Image::default();
        run(&mut before, &first);
        let mut after = before.clone();
        run(&mut after, &then);
        let (old, new) = (flat(&before), flat(&after));
        let delta = Delta::between(Arc::new(before), Arc::new(after));
        let gone: BTreeSet<_> = delta.deleted().map(|topic| topic.id).collect();
        let named: Flat = delta.partitions()
            .map(|change| (change.topic.id, change.index, format!("{:?}", change.after)))
            .collect();
        prop_assert_eq!(&named, &new.difference(&old).cloned().collect());
        let keys: BTreeSet<_> = named.iter().map(|(id, index, _)| (*id, *index)).collect();
        let stay = |it: &&(TopicId, i32, String)| !gone.contains(&it.0) && !keys.contains(&(it.0, it.1));
        prop_assert_eq!(old.iter().filter(stay).cloned().chain(named).collect::<Flat>(), new);
        let created: Vec<_> = delta.created().map(|topic| topic.id).collect();
        prop_assert!(created.iter().all(|id| delta.before.topics().by_id(*id).is_none()));
        for (resource, _) in delta.after.configured() {
            let same = delta.before.configs(resource) == delta.after.configs(resource);
            prop_assert_eq!(same, !delta.configs().any(|it| it == resource));
        }
    }
}

#[test]
fn a_change_counts_the_epochs_of_what_it_changes() {
    let unset = change(1, 0);
    #[rustfmt::skip] // columns
    let table = [
        // change                                                     leader   leader epoch, partition epoch, isr
        ("isr",        records::PartitionChangeRecord { isr: Some(vec![1]), ..unset.clone() },      Some(1), 0, 1, 1),
        ("new leader", records::PartitionChangeRecord { leader: 2, ..unset.clone() },               Some(2), 1, 1, 2),
        ("same leader",records::PartitionChangeRecord { leader: 1, ..unset.clone() },               Some(1), 1, 1, 2),
        ("no leader",  records::PartitionChangeRecord { leader: -1, ..unset.clone() },              None,    1, 1, 2),
    ];
    for (what, change, leader, leader_epoch, partition_epoch, isr) in table {
        let image = image_of(&[
            topic("t", 1),
            partition(1, 0, &[1, 2]),
            MetadataRecord::PartitionChange(change),
        ]);
        let partition = image.topic("t").unwrap().partition(0).unwrap().clone();
        assert_eq!(partition.leader, leader.map(BrokerId), "{what}");
        assert_eq!(partition.leader_epoch, LeaderEpoch(leader_epoch), "{what}");
        assert_eq!(partition.partition_epoch, partition_epoch, "{what}");
        assert_eq!(partition.isr.len(), isr, "{what}");
    }
}

#[test]
fn a_removed_topic_takes_its_configs_along() {
    let image = image_of(&[
        topic("t", 1),
        partition(1, 0, &[1]),
        config(ConfigKind::Topic, "t", "retention.ms", Some("1")),
        config(ConfigKind::Topic, "other", "retention.ms", Some("1")),
        MetadataRecord::RemoveTopic(records::RemoveTopicRecord { topic_id: Uuid::from_u128(1) }),
    ]);
    assert!(image.topics().is_empty() && image.topic("t").is_none());
    assert_eq!(image.topic_configs("t"), None);
    assert!(image.topic_configs("other").is_some());
}

#[test]
#[should_panic(expected = "broken")]
fn a_record_for_an_unknown_topic_is_a_broken_log() {
    image_of(&[partition(1, 0, &[1])]);
}

fn entries(from: i64, records: &[MetadataRecord]) -> Vec<ReadEntry> {
    let entry = |(at, record): (usize, &MetadataRecord)| ReadEntry {
        position: Position(from + at as i64),
        kind: EntryKind::Plain,
        record: Some(Record::encode(record)),
    };
    records.iter().enumerate().map(entry).collect()
}

#[test]
fn subscribers_are_told_in_order_before_readers_see_it() {
    let publisher = Arc::new(Publisher::new());
    let told = Arc::new(Mutex::new(Vec::new()));
    for name in ["first", "second"] {
        let (told, publisher) = (told.clone(), Arc::downgrade(&publisher));
        publisher.upgrade().unwrap().subscribe(move |delta: &Delta| {
            let shown = publisher.upgrade().unwrap().image().end_offset;
            let created = delta.created().map(|topic| topic.name.to_string()).collect::<Vec<_>>();
            told.lock().unwrap().push((name, created, delta.after.end_offset, shown));
        });
    }
    let log = entries(0, &[topic("a", 1), topic("b", 2)]);
    publisher.publish(&log[..1]).unwrap();
    publisher.publish(&log).unwrap(); // the first entry again: skipped
    publisher.publish(&log).unwrap(); // nothing new: nobody is told
    let expected = [
        ("first", vec!["a".to_owned()], 1, 0),
        ("second", vec!["a".to_owned()], 1, 0),
        ("first", vec!["b".to_owned()], 2, 1),
        ("second", vec!["b".to_owned()], 2, 1),
    ];
    assert_eq!(*told.lock().unwrap(), expected);
    assert_eq!(*publisher.applied().borrow(), 2);
}

#[test]
fn a_snapshot_is_told_as_the_difference_and_a_late_subscriber_gets_all() {
    let publisher = Publisher::new();
    publisher.publish(&entries(0, &[topic("a", 1), topic("b", 2)])).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let sink = told.clone();
    publisher.subscribe(move |delta: &Delta| {
        let names =
            |topics: Vec<&Arc<Topic>>| topics.iter().map(|it| it.name.to_string()).collect();
        let names: (Vec<_>, Vec<String>) =
            (names(delta.created().collect()), names(delta.deleted().collect()));
        sink.lock().unwrap().push(names);
    });
    let other = image_of(&[topic("b", 2), topic("c", 3)]);
    let records: Vec<_> = other.to_records().map(|record| Record::encode(&record)).collect();
    CommitSink::install(&publisher, &records, 10);
    let expected = [
        (vec!["a".to_owned(), "b".to_owned()], vec![]),
        (vec!["c".to_owned()], vec!["a".to_owned()]),
    ];
    assert_eq!(*told.lock().unwrap(), expected);
    assert_eq!(publisher.snapshot(), records);
    assert_eq!(publisher.image().end_offset, 10);
}

#[test]
fn a_record_of_an_unknown_type_publishes_nothing() {
    let publisher = Publisher::new();
    let mut log = entries(0, &[topic("a", 1), topic("b", 2)]);
    log[1].record = Some(JournalRecord { key: None, value: Some(b"\x01\x7f\x00".as_ref().into()) });
    assert_eq!(publisher.publish(&log).unwrap_err().offset, 1);
    assert!(publisher.image().topics().is_empty());
    publisher.committed(&log);
    publisher.committed(&log[..1]); // nothing is applied behind a gap
    assert_eq!(publisher.failure().borrow().as_ref().map(|error| error.offset), Some(1));
    assert!(publisher.image().topics().is_empty());
}
