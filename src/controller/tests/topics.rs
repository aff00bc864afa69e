//! CreateTopics, CreatePartitions, DeleteTopics against the answers of a Kafka 4.4.0.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use uuid::Uuid;

use super::*;
use crate::common::{TopicId, format_uuid};
use crate::controller::placement;
use crate::env::Random;

fn topic(name: &str, partitions: i32, replication_factor: i16) -> NewTopic {
    NewTopic { partitions, replication_factor, ..NewTopic::named(name) }
}

fn with(name: &str, configs: &[(&str, Option<&str>)]) -> NewTopic {
    let own = |(key, value): &(&str, Option<&str>)| ((*key).to_owned(), value.map(str::to_owned));
    NewTopic { configs: configs.iter().map(own).collect(), ..topic(name, 1, 1) }
}

fn assigned(name: &str, assignments: &[(i32, &[i32])]) -> NewTopic {
    let one = |(index, ids): &(i32, &[i32])| (*index, ids.iter().copied().map(BrokerId).collect());
    NewTopic { assignments: assignments.iter().map(one).collect(), ..NewTopic::named(name) }
}

const INVALID: &str = "Topic name is invalid: ";
const CHARACTERS: &str =
    "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'";
const TOO_FEW: &str = "cannot be reached because only 1 broker(s) are registered or some brokers \
                       have all their log directories cordoned.";
const MANUAL: &str = "The manual partition assignment includes ";

#[test]
fn create_topics_judges_each_topic_as_kafka_does() {
    let long = "x".repeat(250);
    #[rustfmt::skip] // columns
    let table = [
        (topic("good", 3, 1),       0,  String::new()),
        (topic("defaults", -1, -1), 0,  String::new()),
        (topic("none", 0, 1),       37, "Number of partitions was set to an invalid non-positive value.".into()),
        (topic("minus", -2, 1),     37, "Number of partitions was set to an invalid non-positive value.".into()),
        (topic("rf0", 1, 0),        38, "Replication factor must be larger than 0, or -1 to use the default value.".into()),
        (topic("rf-2", 1, -2),      38, "Replication factor must be larger than 0, or -1 to use the default value.".into()),
        (topic("both", 0, 0),       38, "Replication factor must be larger than 0, or -1 to use the default value.".into()),
        (topic("rf2p0", 0, 2),      37, "Number of partitions was set to an invalid non-positive value.".into()),
        (topic("rf2", 1, 2),        38, format!("Unable to replicate the partition 2 time(s): The target replication factor of 2 {TOO_FEW}")),
        (topic("", 1, 1),           17, format!("{INVALID}the empty string is not allowed")),
        (topic(".", 1, 1),          17, format!("{INVALID}'.' is not allowed")),
        (topic("..", 1, 1),         17, format!("{INVALID}'..' is not allowed")),
        (topic("a b", 0, 0),        17, format!("{INVALID}'a b' {CHARACTERS}")),
        (topic("é", 1, 1),          17, format!("{INVALID}'é' {CHARACTERS}")),
        (topic(&long, 1, 1),        17, format!("{INVALID}the length of '{long}' is longer than the max allowed length 249")),
        (topic(&long[1..], 1, 1),   0,  String::new()),
        (topic("old_topic", 1, 1),  36, "Topic 'old_topic' already exists.".into()),
        (topic("old.topic", 0, 1),  17, "Topic 'old.topic' collides with existing topic: old_topic".into()),
        (topic("new.a", 1, 1),      0,  String::new()),
        (topic("new_a", 1, 1),      0,  String::new()), // Kafka looks at existing topics only
        (topic("__cluster_metadata", 1, 1), 42, "Creation of internal topic __cluster_metadata is prohibited.".into()),
        (NewTopic { replication_factor: 1, ..assigned("ar", &[(0, &[1])]) }, 42, "A manual partition assignment was specified, but replication factor was not set to -1.".into()),
        (NewTopic { partitions: 1, ..assigned("ap", &[(0, &[1])]) }, 42, "A manual partition assignment was specified, but numPartitions was not set to -1.".into()),
        (assigned("gap", &[(1, &[1])]),             39, "partitions should be a consecutive 0-based integer sequence".into()),
        (assigned("negative", &[(-1, &[1])]),       39, "partitions should be a consecutive 0-based integer sequence".into()),
        (assigned("twice", &[(0, &[1]), (0, &[1])]), 39, "Found multiple manual partition assignments for partition 0".into()),
        (assigned("same", &[(0, &[1, 1])]),         39, format!("{MANUAL}the broker 1 more than once.")),
        (assigned("empty", &[(0, &[])]),            39, format!("{MANUAL}an empty replica list.")),
        (assigned("unknown", &[(0, &[2])]),         39, format!("{MANUAL}broker 2, but no such broker is registered.")),
        (assigned("assigned", &[(1, &[1]), (0, &[1])]), 0, String::new()),
        (with("config", &[("retention.ms", Some("1"))]), 0, String::new()),
        (with("bad", &[("retention.ms", Some("abc"))]),  40, "Invalid value abc for configuration retention.ms".into()),
        (with("foo", &[("foo", Some("1"))]),             40, "Unknown topic config name: foo".into()),
        (with("null", &[("retention.ms", None)]),        40, "Null value not supported for topic configs: retention.ms".into()),
        (with("last", &[("retention.ms", Some("1")), ("retention.ms", Some("2"))]), 0, String::new()),
        (NewTopic { partitions: 0, ..with("order", &[("foo", Some("1"))]) }, 40, "Unknown topic config name: foo".into()),
    ];
    let topics: Vec<_> = table.iter().map(|row| row.0.clone()).collect();
    let mut lab = Lab::new(1);
    lab.create("old_topic", 1, 1);
    let before = lab.image().clone();
    let checked = lab.ask(CreateTopics { topics: topics.clone(), validate_only: true });
    assert_eq!(*lab.image(), before, "validate_only writes nothing");
    let made = lab.ask(CreateTopics { topics, validate_only: false });
    for (((asked, code, text), made), checked) in table.iter().zip(&made).zip(&checked) {
        assert_eq!(made.name, asked.name);
        assert_eq!(told(&made.outcome), (*code, text.clone()), "{asked:?}");
        assert_eq!(told(&checked.outcome), (*code, text.clone()), "validate_only: {asked:?}");
        let made = made.outcome.as_ref().ok().map(|made| (made.partitions, made.configs.clone()));
        let checked = checked.outcome.as_ref().ok().map(|it| (it.partitions, it.configs.clone()));
        assert_eq!(made, checked, "{asked:?}");
        let is_there = lab.image().topic(&asked.name).is_some();
        assert_eq!(is_there, *code == 0 || *code == 36, "{asked:?}");
    }
    let names = lab.image().topics().names().map(|name| name.to_string()).collect::<Vec<_>>();
    assert_eq!(names.len(), 9, "{names:?}");
}

#[test]
fn a_topic_named_twice_is_refused_once_and_not_made() {
    let mut lab = Lab::new(1);
    let topics = ["twice", "once", "twice"].map(|name| topic(name, 1, 1)).to_vec();
    let made = lab.ask(CreateTopics { topics, validate_only: false });
    let told: Vec<_> = made.iter().map(|it| (&*it.name, told(&it.outcome))).collect();
    let duplicate = (42, "Duplicate topic name.".to_owned());
    assert_eq!(told, [("twice", duplicate), ("once", (0, String::new()))]);
    assert!(lab.image().topic("twice").is_none());
}

#[test]
fn a_created_topic_says_what_it_got() {
    let mut lab = Lab::new(3);
    let topics = vec![NewTopic::named("default"), with("own", &[("retention.ms", Some("7"))])];
    let (made, records) = lab.ask_with_records(CreateTopics { topics, validate_only: false });
    let first = made[0].outcome.as_ref().unwrap();
    assert_eq!((first.partitions, first.replication_factor), (4, 1));
    let second = made[1].outcome.as_ref().unwrap();
    assert_eq!(
        (second.configs[0].name.as_str(), second.configs[0].value.as_deref()),
        ("retention.ms", Some("7"))
    );
    assert_eq!(lab.image().topics().id("own"), Some(second.id));
    assert_eq!(second.id.0.get_version_num(), 4);
    let kinds: Vec<_> = records.iter().map(kind).collect();
    let expected = [
        "topic",
        "partition",
        "partition",
        "partition",
        "partition",
        "topic",
        "config",
        "partition",
    ];
    assert_eq!(kinds, expected);
    let partition = lab.image().topic("own").unwrap().partition(0).unwrap();
    let leader = partition.replicas[0];
    assert_eq!((partition.leader, &partition.isr), (Some(leader), &partition.replicas));
    assert_eq!(partition.directories, [Uuid::from_u128(1_000 + leader.0 as u128)]);
}

fn kind(record: &MetadataRecord) -> &'static str {
    match record {
        MetadataRecord::Topic(_) => "topic",
        MetadataRecord::Partition(_) => "partition",
        MetadataRecord::Config(_) => "config",
        MetadataRecord::RemoveTopic(_) => "remove",
        _ => "other",
    }
}

#[test]
fn what_is_too_much_for_one_batch_is_refused_whole() {
    #[rustfmt::skip] // columns
    let table = [
        (vec![10_000, 1], "Excessively large number of partitions per request."),
        (vec![9_998, 1],  "Unable to perform excessively large batch operation."),
        (vec![9_997, 1],  ""),
    ];
    for (counts, text) in table {
        let mut lab = Lab::new(1);
        let topics = counts.iter().map(|count| topic(&format!("t{count}"), *count, 1)).collect();
        let (made, records) = lab.ask_with_records(CreateTopics { topics, validate_only: false });
        let code = if text.is_empty() { 0 } else { 44 };
        for made in &made {
            assert_eq!(told(&made.outcome), (code, text.to_owned()), "{counts:?}");
        }
        assert_eq!(records.is_empty(), code != 0, "{counts:?}");
    }
    let mut lab = Lab::new(1);
    lab.batch_bytes_max = 1_000;
    let made = lab.ask(CreateTopics { topics: vec![topic("t", 100, 1)], validate_only: false });
    assert_eq!(told(&made[0].outcome).0, 44, "by bytes");
}

#[test]
fn create_partitions_answers_each_topic() {
    let more = |name: &str, count, assignments: Option<&[&[i32]]>| MorePartitions {
        name: name.into(),
        count,
        assignments: assignments
            .map(|all| all.iter().map(|ids| ids.iter().copied().map(BrokerId).collect()).collect()),
    };
    let grow = |name: &str, now, asked| {
        format!(
            "The topic {name} currently has {now} partition(s); {asked} would not be an increase."
        )
    };
    let count = |asked, given| {
        format!(
            "Attempted to add {asked} additional partition(s), but only {given} assignment(s) were specified."
        )
    };
    #[rustfmt::skip] // columns
    let table = [
        (more("a", 5, None),                  0,  String::new(), 5),
        (more("b", 3, None),                  37, "Topic already has 3 partition(s).".into(), 3),
        (more("c", 2, None),                  37, grow("c", 3, 2), 3),
        (more("d", 0, None),                  37, grow("d", 3, 0), 3),
        (more("e", -1, None),                 37, grow("e", 3, -1), 3),
        (more("f", 5, Some(&[&[1]])),         39, count(2, 1), 3),
        (more("g", 4, Some(&[&[1], &[1]])),   39, count(1, 2), 3),
        (more("h", 4, Some(&[])),             39, count(1, 0), 3),
        (more("i", 4, Some(&[&[2]])),         39, format!("{MANUAL}broker 2, but no such broker is registered."), 3),
        (more("j", 4, Some(&[&[1, 1]])),      39, format!("{MANUAL}the broker 1 more than once."), 3),
        (more("k", 4, Some(&[&[]])),          39, format!("{MANUAL}an empty replica list."), 3),
        (more("l", 4, Some(&[&[1]])),         0,  String::new(), 4),
        (more("m", 3, Some(&[&[1]])),         37, "Topic already has 3 partition(s).".into(), 3),
        (more("ghost", 3, None),              3,  "This server does not host this topic-partition.".into(), 0),
    ];
    let mut lab = Lab::new(1);
    for name in "abcdefghijklm".chars() {
        lab.create(&name.to_string(), 3, 1);
    }
    let mut topics: Vec<_> = table.iter().map(|row| row.0.clone()).collect();
    topics.extend([more("twice", 1, None), more("twice", 2, None)]);
    for validate_only in [true, false] {
        let before = lab.image().clone();
        let results = lab.ask(CreatePartitions { topics: topics.clone(), validate_only });
        assert_eq!(results.len(), table.len() + 1, "one per distinct name");
        for ((asked, code, text, now), result) in table.iter().zip(&results) {
            assert_eq!(told(&result.outcome), (*code, text.clone()), "{asked:?}");
            let found = lab.image().topic(&asked.name).map_or(0, |topic| topic.partition_count());
            let now = if validate_only && *now > 0 { 3 } else { *now };
            assert_eq!(found, now, "{asked:?}");
        }
        assert_eq!(told(&results[table.len()].outcome), (42, "Duplicate topic name.".into()));
        assert_eq!(*lab.image() == before, validate_only);
    }
    let topics = vec![more("a", 9_000, None), more("b", 9_000, None)];
    let results = lab.ask(CreatePartitions { topics, validate_only: true });
    let text = "Excessively large number of additional partitions per request.";
    assert_eq!(told(&results[1].outcome), (44, text.into()));
}

#[test]
fn delete_topics_by_name_and_id() {
    let mut lab = Lab::new(1);
    for name in ["one", "two", "three", "four", "five"] {
        lab.create(name, 2, 1);
    }
    let id = |name: &str| lab.image().topics().id(name).unwrap();
    let (ghost, none) = (TopicId(Uuid::from_u128(77)), TopicId::NONE);
    let (two, three, four) = (id("two"), id("three"), id("four"));
    let one = id("one");
    let by = |name: Option<&str>, id| TopicReference { name: name.map(Into::into), id };
    #[rustfmt::skip] // columns
    let asked = [
        by(Some("one"), none),
        by(None, two),
        by(Some("three"), none), by(None, three),                    // a name and its id
        by(Some("five"), none), by(Some("five"), none),
        by(None, four), by(None, four),
        by(Some("ghost"), none),
        by(None, ghost),
        by(Some("x"), ghost),
        by(None, none), by(None, none),
        by(Some("a b"), none),
        by(Some("__cluster_metadata"), none),
    ];
    #[rustfmt::skip] // columns
    let expected = [
        (Some("one"),   one,   0,   ""),
        (Some("two"),   two,   0,   ""),
        (Some("three"), three, 42,  "The provided topic name maps to an ID that was already supplied."),
        (Some("five"),  none,  42,  "Duplicate topic name."),
        (None,          four,  42,  "Duplicate topic id."),
        (Some("ghost"), none,  3,   "This server does not host this topic-partition."),
        (None,          ghost, 100, "This server does not host this topic ID."),
        (Some("x"),     ghost, 42,  "You may not specify both topic name and topic id."),
        (None,          none,  42,  "Neither topic name nor id were specified."),
        (None,          none,  42,  "Neither topic name nor id were specified."),
        (Some("a b"),   none,  3,   "This server does not host this topic-partition."),
        (Some("__cluster_metadata"), none, 3, "This server does not host this topic-partition."),
    ];
    let results = lab.ask(DeleteTopics { topics: asked.to_vec() });
    let told: Vec<_> =
        results.iter().map(|it| (it.name.as_deref(), it.id, told(&it.outcome))).collect();
    let expected: Vec<_> =
        expected.map(|(name, id, code, text)| (name, id, (code, text.to_owned()))).into();
    assert_eq!(told, expected);
    let left: Vec<_> = lab.image().topics().names().map(|name| &**name).collect();
    assert_eq!(left, ["five", "four", "three"]);
}

#[test]
fn a_recreated_topic_is_new() {
    let mut lab = Lab::new(1);
    lab.ask(CreateTopics {
        topics: vec![with("t", &[("retention.ms", Some("1"))])],
        validate_only: false,
    });
    let old = lab.image().topics().id("t");
    let name = TopicReference { name: Some("t".into()), id: TopicId::NONE };
    lab.ask(DeleteTopics { topics: vec![name.clone()] });
    lab.create("t", 5, 1);
    let topic = lab.image().topic("t").unwrap();
    assert_ne!(Some(topic.id), old);
    assert_eq!((topic.partition_count(), lab.image().topic_configs("t")), (5, None));
    lab.world.is_deletion_enabled = false;
    let results = lab.ask(DeleteTopics { topics: vec![name] });
    assert_eq!(told(&results[0].outcome), (73, "Topic deletion is disabled.".into()));
}

#[test]
fn topic_ids_are_no_options_for_a_shell() {
    let mut lab = Lab::new(1);
    for at in 0..300 {
        lab.create(&format!("t{at}"), 1, 1);
    }
    let ids: BTreeSet<_> =
        lab.image().topics().iter().map(|topic| format_uuid(topic.id.0)).collect();
    assert_eq!(ids.len(), 300);
    assert!(ids.iter().all(|id| !id.starts_with('-')), "{ids:?}");
}

#[test]
fn fenced_brokers_hold_replicas_but_do_not_lead() {
    let mut lab = Lab::new(3);
    lab.ask(RegisterBroker { is_caught_up: false, ..registration(4, 1) }).unwrap();
    let all = assigned("all", &[(0, &[4, 2, 1])]);
    let only = assigned("only", &[(0, &[4])]);
    let uneven = assigned("uneven", &[(0, &[1]), (1, &[1, 2])]);
    let made = lab.ask(CreateTopics { topics: vec![all, only, uneven], validate_only: false });
    assert_eq!(lab.line("all", 0), "isr 21 elr  leader 2 epoch 0");
    let text = "All brokers specified in the manual partition assignment for partition 0 are \
                fenced or in controlled shutdown.";
    assert_eq!(told(&made[1].outcome), (39, text.into()));
    let text = format!(
        "{MANUAL}a partition with 2 replica(s), but this is not consistent with \
                        previous partitions, which have 1 replica(s)."
    );
    assert_eq!(told(&made[2].outcome), (39, text));
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::with_cases(128) })]

    /// Replicas of a partition are distinct and as far apart as the racks allow; leaders never
    /// fenced; with one broker per rack, or all in one, leaders differ by at most one.
    #[test]
    fn replicas_are_spread(
        racks in prop::collection::vec((0..4u8, prop::bool::weighted(0.2)), 1..8),
        partitions in 1..40i32,
        copies in 1..5usize,
        seed in any::<u64>(),
    ) {
        let mut lab = Lab::new(0);
        for ((rack, is_fenced), id) in racks.iter().zip(1..) {
            let ask = RegisterBroker {
                rack: Some(rack.to_string()),
                is_caught_up: !is_fenced,
                ..registration(id, 1)
            };
            lab.ask(ask).unwrap();
        }
        let copies = copies.min(racks.len());
        let random = Random::seeded(seed);
        let placed = placement::place(lab.image(), 0, partitions, copies as i32, &random);
        if racks.iter().all(|(_, is_fenced)| *is_fenced) {
            prop_assert!(placed.is_err());
            return Ok(());
        }
        let placed = placed.unwrap();
        prop_assert_eq!(placed.len(), partitions as usize);
        let rack_of = |id: &BrokerId| racks[id.0 as usize - 1].0;
        let all_racks: BTreeSet<_> = racks.iter().map(|(rack, _)| *rack).collect();
        let mut leaders: BTreeMap<BrokerId, i32> = BTreeMap::new();
        for replicas in &placed {
            prop_assert_eq!(replicas.iter().collect::<BTreeSet<_>>().len(), copies);
            prop_assert!(!racks[replicas[0].0 as usize - 1].1, "a fenced broker leads");
            let used: BTreeSet<_> = replicas.iter().map(rack_of).collect();
            prop_assert_eq!(used.len(), copies.min(all_racks.len()));
            *leaders.entry(replicas[0]).or_default() += 1;
        }
        let even = all_racks.len() == racks.len() || all_racks.len() == 1;
        if even && racks.iter().all(|(_, is_fenced)| !is_fenced) {
            let least = racks.len() as i32 <= partitions;
            let (low, high) = (leaders.values().min().unwrap(), leaders.values().max().unwrap());
            prop_assert!(high - low <= 1, "{leaders:?}");
            prop_assert!(!least || leaders.len() == racks.len());
        }
    }
}
