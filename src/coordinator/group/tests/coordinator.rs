//! The coordinator over its runtimes: routing, loading, topics of the image.

use super::super::*;
use super::bench::*;
use super::cluster::Cluster;
use crate::common::TopicId;
use crate::machine::testing::on_virtual_time;
use crate::machine::{NotReady, Record};
use crate::protocol::records::metadata as records;
use records::MetadataRecord;

impl Cluster {
    async fn commit(&self, ask: OffsetCommit) -> Vec<String> {
        let outcomes = self.coordinator.commit_offsets(ask).await;
        let one = |topic: &TopicOutcome| short(&GroupAnswer::Commit(Ok(vec![topic.clone()])));
        outcomes.iter().map(|topic| format!("{}: {}", topic.name, one(topic))).collect()
    }
}

fn topic(id: TopicId, name: &str, partitions: &[i32]) -> CommitTopic {
    let one = |partition: &i32| CommitPartition {
        partition: *partition,
        offset: 5,
        leader_epoch: -1,
        metadata: None,
    };
    CommitTopic { id, name: name.into(), partitions: partitions.iter().map(one).collect() }
}

#[test]
fn groups_of_partitions_elsewhere_are_not_coordinated_here() {
    on_virtual_time(async {
        let cluster = Cluster::start().await;
        for (partition, outcome) in [(0, "ok"), (1, "ok"), (2, "not coordinator")] {
            let group_id = cluster.group_in(partition);
            let ask = OffsetCommit { group_id, ..commit_as("", -1, 1) };
            assert_eq!(cluster.commit(ask).await, [format!("t: {outcome}")]);
        }
        assert_eq!(cluster.coordinator.counts().await, (2, 2));
        let listed = cluster.coordinator.list_groups(&ListGroups::default()).await;
        assert_eq!(listed.map(|groups| groups.len()), Ok(2));
        cluster.coordinator.stop();
    });
}

#[test]
fn leadership_that_comes_and_goes_is_answered_by_the_code_that_sends_clients_on() {
    on_virtual_time(async {
        let cluster = Cluster::start().await;
        let group_id = cluster.group_in(0);
        let commit = || OffsetCommit { group_id: group_id.clone(), ..commit_as("", -1, 1) };
        assert_eq!(cluster.commit(commit()).await, ["t: ok"]);
        let join =
            JoinGroup { group_id: group_id.clone(), requires_member_id: false, ..consumer("") };
        let coordinator = cluster.coordinator.clone();
        let waiting = cluster.env.tasks.spawn_data(async move {
            let joined = coordinator.join_group(join).await;
            joined.map(|joined| joined.generation_id).map_err(|refused| refused.error)
        });
        cluster.settle().await;
        let journal = cluster.journal(0);
        journal.resign(2);
        cluster.settle().await;
        assert_eq!(cluster.commit(commit()).await, ["t: not coordinator"]);
        assert_eq!(waiting.await.ok(), Some(Err(NotNow::NotCoordinator.into())));
        // Loading starts when the leadership is seen; until then, and during it, "wait".
        journal.lead(3);
        assert_eq!(cluster.commit(commit()).await, ["t: loading"]);
        let beat = Heartbeat {
            group_id: group_id.clone(),
            generation_id: 1,
            member_id: "m".into(),
            group_instance_id: None,
        };
        assert_eq!(cluster.coordinator.heartbeat(beat).await, Ok(()));
        cluster.settle().await;
        assert_eq!(cluster.commit(commit()).await, ["t: ok"]);
        journal.refuse(Some(NotReady::TooFewReplicas));
        assert_eq!(cluster.commit(commit()).await, ["t: not available"]);
        cluster.coordinator.stop();
    });
}

/// C051: partitions that are not there are refused one by one, the others are kept.
#[test]
fn topics_are_looked_up_before_the_group_is_asked() {
    on_virtual_time(async {
        let cluster = Cluster::start().await;
        let group_id = cluster.group_in(0);
        let (none, t, other) =
            (TopicId::NONE, TopicId(uuid::Uuid::from_u128(2)), TopicId(uuid::Uuid::from_u128(9)));
        #[rustfmt::skip]
        let table: [(bool, Vec<CommitTopic>, &[&str]); 5] = [
            (false, vec![topic(none, "t", &[0, 9]), topic(none, "ghost", &[0])],  &["t: no topic ok", "ghost: no topic"]),
            (false, vec![topic(none, "ghost", &[0]), topic(none, "t", &[0])],     &["ghost: no topic", "t: ok"]),
            (true,  vec![topic(t, "", &[0]), topic(other, "", &[0, 1])],          &[": no topic id no topic id", "t: ok"]),
            (true,  vec![topic(none, "t", &[0])],                                 &["t: no topic id"]),
            (false, vec![topic(none, "t", &[9])],                                 &["t: no topic"]),
        ];
        for (by_topic_id, topics, expected) in table {
            let ask = OffsetCommit {
                group_id: group_id.clone(),
                by_topic_id,
                topics,
                ..commit_as("", -1, 1)
            };
            assert_eq!(cluster.commit(ask).await, expected);
        }
        let last = cluster.journal(0).entries().pop().and_then(|entry| entry.record);
        let last = last.map(|record| GroupRecord::decode(&record));
        let Some(Ok(Some(GroupRecord::Offset { value: Some(value), .. }))) = last else {
            panic!("an offset was written: {last:?}");
        };
        assert_eq!(value.topic_id, t, "kept with the offset, whether it came by name or by id");
        // What the group refuses, it refuses for what is there only.
        let ask = OffsetCommit {
            group_id: group_id.clone(),
            topics: vec![topic(none, "t", &[0, 9]), topic(none, "ghost", &[0])],
            ..commit_as("stranger", 1, 1)
        };
        assert_eq!(cluster.commit(ask).await, ["t: no topic unknown member", "ghost: no topic"]);
        cluster.coordinator.stop();
    });
}

#[test]
fn offsets_are_fetched_by_name_and_by_id() {
    on_virtual_time(async {
        let cluster = Cluster::start().await;
        let group_id = cluster.group_in(0);
        cluster.commit(OffsetCommit { group_id: group_id.clone(), ..commit_as("", -1, 5) }).await;
        let (t, other) = (TopicId(uuid::Uuid::from_u128(2)), TopicId(uuid::Uuid::from_u128(9)));
        let asked = |id, name: &str| FetchTopic { id, name: name.into(), partitions: vec![0] };
        let by_id = vec![asked(other, ""), asked(t, "")];
        let by_name = vec![asked(TopicId::NONE, "ghost"), asked(TopicId::NONE, "t")];
        #[rustfmt::skip]
        let table = [
            // by id, asked,          (id, name, offset, outcome is ok)
            (true,  Some(by_id),   vec![(t, "t", 5, true), (other, "", -1, false)]),
            (true,  None,          vec![(t, "t", 5, true)]),
            (false, Some(by_name), vec![(TopicId::NONE, "ghost", -1, true), (TopicId::NONE, "t", 5, true)]),
            (false, None,          vec![(TopicId::NONE, "t", 5, true)]),
        ];
        for (by_topic_id, topics, expected) in table {
            let ask = OffsetFetch {
                group_id: group_id.clone(),
                topics,
                member_id: None,
                member_epoch: -1,
                require_stable: true,
                by_topic_id,
            };
            let fetched = cluster.coordinator.fetch_offsets(ask).await.expect("offsets");
            let shown: Vec<_> = fetched
                .iter()
                .map(|t| (t.id, &*t.name, t.partitions[0].offset, t.partitions[0].outcome.is_ok()))
                .collect();
            assert_eq!(shown, expected, "by id: {by_topic_id}");
        }
        cluster.coordinator.stop();
    });
}

#[test]
fn what_is_wrong_with_the_request_itself_is_refused_before_the_group_is_looked_for() {
    on_virtual_time(async {
        let cluster = Cluster::start().await;
        let join = |ask: JoinGroup| cluster.coordinator.join_group(ask);
        let refused =
            |error: ClientFault| Err(JoinRefused { member_id: "m".into(), error: error.into() });
        let no_group = JoinGroup { group_id: "".into(), session_timeout_ms: 1, ..consumer("m") };
        assert_eq!(join(no_group).await, refused(ClientFault::InvalidGroupId));
        for sent_ms in [5_999, 1_800_001] {
            let ask = JoinGroup { session_timeout_ms: sent_ms, ..consumer("m") };
            let (min_ms, max_ms) = (6_000, 1_800_000);
            let error = ClientFault::InvalidSessionTimeout { sent_ms, min_ms, max_ms };
            assert_eq!(join(ask).await, refused(error));
        }
        // For old clients' sake offsets may be committed and described for the empty group id.
        let described = cluster.coordinator.describe_groups(vec!["".into()]).await;
        assert!(matches!(&described[..], [(_, Err(_))]));
        cluster.coordinator.stop();
    });
}

#[test]
fn offsets_of_a_topic_that_is_deleted_are_forgotten_and_a_group_is_deleted_whole() {
    on_virtual_time(async {
        let mut cluster = Cluster::start().await;
        cluster.add("u", 3, &[1]);
        for partition in [0, 1] {
            let ask = OffsetCommit {
                group_id: cluster.group_in(partition),
                topics: vec![topic(TopicId::NONE, "t", &[0]), topic(TopicId::NONE, "u", &[0])],
                ..commit_as("", -1, 1)
            };
            assert_eq!(cluster.commit(ask).await, ["t: ok", "u: ok"]);
        }
        assert_eq!(cluster.coordinator.counts().await, (2, 4));
        let topic_id = uuid::Uuid::from_u128(3);
        cluster.publish(&[MetadataRecord::RemoveTopic(records::RemoveTopicRecord { topic_id })]);
        cluster.settle().await;
        assert_eq!(cluster.coordinator.counts().await, (2, 2));
        let delete = OffsetDelete {
            group_id: cluster.group_in(1),
            topics: vec![("u".into(), vec![0]), ("t".into(), vec![0, 4])],
        };
        let deleted = cluster.coordinator.delete_offsets(delete).await;
        assert_eq!(short(&GroupAnswer::DeleteOffsets(deleted)), "no topic no topic ok");
        let ids = vec![cluster.group_in(0), "nobody".into()];
        let deleted = cluster.coordinator.delete_groups(ids).await;
        assert_eq!(deleted[0].1, Ok(()));
        assert!(deleted[1].1.is_err());
        assert_eq!(cluster.coordinator.counts().await, (1, 0));
        cluster.coordinator.stop();
    });
}

#[test]
fn the_number_of_partitions_is_the_topic_s_or_as_long_as_there_is_none_the_planned_one() {
    on_virtual_time(async {
        let mut cluster = Cluster::start().await;
        assert_eq!(cluster.coordinator.coordinator_partition("my-group"), 1_906_497_762 % 3);
        let topic_id = uuid::Uuid::from_u128(1);
        cluster.publish(&[MetadataRecord::RemoveTopic(records::RemoveTopicRecord { topic_id })]);
        assert_eq!(cluster.coordinator.coordinator_partition("my-group"), 12);
        let ask = OffsetCommit { group_id: "my-group".into(), ..commit_as("", -1, 1) };
        assert_eq!(cluster.commit(ask).await, ["t: not coordinator"]);
    });
}
