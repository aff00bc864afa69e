//! What the assignors promise, for groups of every shape.

use proptest::prelude::*;

use super::*;

fn topic(n: u128) -> TopicId {
    TopicId(uuid::Uuid::from_u128(n))
}

/// Members of `(id, topics)`, and the partitions of topics 1, 2, ….
fn group(members: &[(&str, &[u128])], partitions: &[i32]) -> Group {
    let member = |(id, topics): &(&str, &[u128])| Member {
        id: (*id).into(),
        instance_id: None,
        topics: topics.iter().map(|n| topic(*n)).collect(),
        target: Arc::default(),
    };
    Group {
        members: members.iter().map(member).collect(),
        partitions: (1..).map(topic).zip(partitions.iter().copied()).collect(),
    }
}

fn shown(assigned: &[Assignment]) -> Vec<String> {
    let one = |(topic, partitions): (&TopicId, &BTreeSet<i32>)| {
        let partitions: Vec<String> = partitions.iter().map(ToString::to_string).collect();
        format!("{}:{}", topic.0.as_u128(), partitions.join(","))
    };
    let member = |assigned: &Assignment| assigned.iter().map(one).collect::<Vec<_>>().join(" ");
    assigned.iter().map(member).collect()
}

#[test]
fn range_cuts_every_topic_alike() {
    let alike = group(&[("a", &[1, 2]), ("b", &[1, 2]), ("c", &[1])], &[5, 2]);
    assert_eq!(shown(&Assignor::Range.assign(&alike)), ["1:0,1 2:0", "1:2,3 2:1", "1:4"]);
    let mut with_static = alike;
    with_static.members[2].instance_id = Some("i".into());
    let assigned = Assignor::Range.assign(&with_static);
    assert_eq!(shown(&assigned), ["1:2,3 2:0", "1:4 2:1", "1:0,1"], "static members first");
}

#[test]
fn uniform_is_even_over_topics() {
    let alike = group(&[("a", &[1, 2]), ("b", &[1, 2])], &[3, 2]);
    assert_eq!(shown(&Assignor::Uniform.assign(&alike)), ["1:0,1,2", "2:0,1"]);
    let mixed = group(&[("a", &[1]), ("b", &[1, 2])], &[4, 2]);
    assert_eq!(shown(&Assignor::Uniform.assign(&mixed)), ["1:0,1,2", "1:3 2:0,1"]);
}

#[test]
fn uniform_moves_no_more_than_it_must() {
    let mut three = group(&[("a", &[1]), ("b", &[1])], &[6]);
    let first = Assignor::Uniform.assign(&three);
    for (member, target) in three.members.iter_mut().zip(first) {
        member.target = Arc::new(target);
    }
    let one = three.members[0].clone();
    three.members.push(Member { id: "c".into(), target: Arc::default(), ..one });
    assert_eq!(shown(&Assignor::Uniform.assign(&three)), ["1:0,1", "1:3,4", "1:2,5"]);
}

/// Groups of 1 to 6 members over 4 topics, with targets that may be outdated in every way.
fn groups() -> impl Strategy<Value = Group> {
    let topics = proptest::collection::btree_set(1u128..5, 0..4);
    let target = proptest::collection::btree_set((1u128..6, 0i32..8), 0..12);
    let members = proptest::collection::vec((topics, target), 1..7);
    (members, proptest::collection::vec(0i32..8, 4)).prop_map(|(members, partitions)| {
        let partitions: BTreeMap<TopicId, i32> = (1..).map(topic).zip(partitions).collect();
        let mut taken = BTreeSet::new();
        let members = members.into_iter().enumerate().map(|(n, (topics, wanted))| {
            let mut target = Assignment::new();
            for (of, partition) in wanted {
                if taken.insert((of, partition)) {
                    target.entry(topic(of)).or_default().insert(partition);
                }
            }
            let topics = topics.into_iter().map(topic).collect();
            let id = MemberId::from(format!("m{n}"));
            Member { id, instance_id: None, topics, target: Arc::new(target) }
        });
        Group { members: members.collect(), partitions }
    })
}

proptest! {
    #[test]
    fn every_partition_has_one_owner_that_wants_it(group in groups()) {
        for assignor in [Assignor::Uniform, Assignor::Range] {
            let assigned = assignor.assign(&group);
            let mut owned = BTreeSet::new();
            for (member, has) in group.members.iter().zip(&assigned) {
                for (topic, partitions) in has {
                    prop_assert!(member.topics.contains(topic), "{assignor:?} {topic}");
                    prop_assert!(!partitions.is_empty());
                    for partition in partitions {
                        prop_assert!((0..group.partitions[topic]).contains(partition));
                        prop_assert!(owned.insert((*topic, *partition)), "{topic}-{partition} twice");
                    }
                }
            }
            let wanted: BTreeSet<TopicId> =
                group.members.iter().flat_map(|member| member.topics.clone()).collect();
            let all = wanted.iter().map(|topic| group.partitions[topic] as usize).sum::<usize>();
            prop_assert_eq!(owned.len(), all);
        }
    }

    /// Asked again with its own answer it gives the same one.
    #[test]
    fn uniform_rests_where_it_is(group in groups()) {
        let assigned = Assignor::Uniform.assign(&group);
        let mut again = group.clone();
        for (member, target) in again.members.iter_mut().zip(&assigned) {
            member.target = Arc::new(target.clone());
        }
        prop_assert_eq!(Assignor::Uniform.assign(&again), assigned);
    }

    #[test]
    fn uniform_differs_by_one_where_all_subscribe_alike(group in groups()) {
        let mut alike = group;
        let topics = alike.members[0].topics.clone();
        alike.members.iter_mut().for_each(|member| member.topics = topics.clone());
        let sizes = Assignor::Uniform.assign(&alike);
        let sizes = sizes.iter().map(|has| has.values().map(BTreeSet::len).sum::<usize>());
        let (least, most) = sizes.fold((usize::MAX, 0), |(l, m), n| (l.min(n), m.max(n)));
        prop_assert!(most - least <= 1);
    }
}
