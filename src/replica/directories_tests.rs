//! Several log directories: where logs go, moves between them, a stop at every step of one.

use super::*;
use crate::env::{FaultOn, Files, SimFiles};
use crate::protocol::records::metadata::{MetadataRecord, PartitionChangeRecord};
use crate::replica::Partition;
use crate::replica::moves::Step;
use crate::replica::testing::*;

const DIRS: [&str; 2] = ["/a", "/b"];

fn two_dirs() -> Node {
    Node::on_dirs(Files::Sim(Default::default()), &DIRS)
}

fn name(index: i32) -> TopicPartition {
    TopicPartition::new("t", index)
}

/// What the controller makes of it.
fn told(topic: u128, index: i32, directory: Uuid) -> MetadataRecord {
    MetadataRecord::PartitionChange(PartitionChangeRecord {
        partition_id: index,
        topic_id: Uuid::from_u128(topic),
        directories: Some(vec![directory]),
        ..Default::default()
    })
}

/// Tells what there is to tell; the last directory told.
fn tell(node: &mut Node) -> Option<Uuid> {
    let all = node.replicas.unassigned();
    node.apply(all.iter().map(|(topic, index, dir)| told(topic.0.as_u128(), *index, *dir)));
    all.last().map(|(_, _, directory)| *directory)
}

/// Every log: (directory, partition, is future, lag).
fn shown(node: &Node) -> Vec<(String, i32, bool, Offset)> {
    let row = |path: &str, log: &LogDescription| {
        (path.to_owned(), log.partition.partition, log.is_future, log.offset_lag)
    };
    let dirs = node.replicas.describe_dirs(None).into_iter().flat_map(|dir| {
        let logs = dir.online.map(|online| online.logs).unwrap_or_default();
        logs.iter().map(|log| row(&dir.path, log)).collect::<Vec<_>>()
    });
    dirs.collect()
}

fn home(node: &Node, index: i32) -> usize {
    node.partition(index).dir()
}

fn values(partition: &Partition) -> Vec<String> {
    let bytes = partition
        .look(|log| log.read(log.start_offset(), log.end_offset(), 1 << 20, true).unwrap())
        .unwrap()
        .read()
        .unwrap();
    let (mut rest, mut values) = (bytes, Vec::new());
    while let Ok(header) = crate::protocol::batch::BatchHeader::parse(&rest) {
        let batch = rest.split_to(header.size_bytes());
        for record in crate::protocol::batch::records(&batch) {
            values.push(String::from_utf8_lossy(&record.unwrap().value.unwrap()).into_owned());
        }
    }
    values
}

#[tokio::test(start_paused = true)]
async fn new_partitions_go_where_the_fewest_are() {
    let mut node = two_dirs();
    node.create("t", 1, 5, &[]);
    let homes: Vec<_> = (0..5).map(|index| home(&node, index)).collect();
    assert_eq!(homes, [0, 1, 0, 1, 0]);
    assert_eq!(node.replicas.unassigned().len(), 5);
    tell(&mut node);
    assert_eq!(node.replicas.unassigned(), []);
}

#[tokio::test(start_paused = true)]
async fn a_directory_can_be_asked_for_before_the_topic_is_there() {
    let mut node = two_dirs();
    let ask = |node: &Node, index, path| {
        node.replicas.move_replica(&name(index), path).map_err(|error| word(&error))
    };
    assert_eq!(ask(&node, 0, "/b"), Err("unknown"));
    assert_eq!(ask(&node, 1, "/b"), Err("unknown"));
    assert_eq!(ask(&node, 0, "/c"), Err("unknown dir"));
    let long = TopicPartition::new("x".repeat(249).as_str(), 0);
    let refused = node.replicas.move_replica(&long, "/c").map_err(|error| word(&error));
    assert_eq!(refused, Err("name"));
    node.create("t", 1, 3, &[]);
    assert_eq!([home(&node, 0), home(&node, 1), home(&node, 2)], [1, 1, 0]);
    assert_eq!(ask(&node, 0, "/b"), Ok(()));
    assert!(node.replicas.moving().is_empty(), "it is there already");
}

#[tokio::test(start_paused = true)]
async fn a_replica_moves_while_it_is_written_to() {
    let mut node = two_dirs();
    node.create("t", 1, 1, &[("segment.bytes", "1048576")]);
    tell(&mut node);
    node.put(sequenced(9, 1, 0, 3)).await;
    node.put(batch(&["a"; 4])).await;
    node.partition(0).delete_records(2).unwrap();
    node.replicas.move_replica(&name(0), "/b").unwrap();
    assert_eq!(shown(&node), [("/a".into(), 0, false, 0), ("/b".into(), 0, true, 5)]);
    let partition = node.partition(0);
    assert_eq!(node.replicas.step_move(&partition), Step::Copied);
    assert_eq!(shown(&node)[1], ("/b".into(), 0, true, 0));
    node.put(batch(&["b"])).await;
    assert_eq!(node.replicas.step_move(&partition), Step::Copied);
    assert_eq!(node.replicas.step_move(&partition), Step::Unassigned);
    tell(&mut node);
    assert_eq!(node.replicas.step_move(&partition), Step::Over);
    assert_eq!(shown(&node), [("/b".into(), 0, false, 0)]);
    let offsets = partition.offsets().unwrap();
    assert_eq!((offsets.log_start, offsets.high_watermark, offsets.log_end), (2, 8, 8));
    assert_eq!(node.put(sequenced(9, 1, 3, 1)).await, 8, "the producer is known there");
    assert_eq!(node.put(sequenced(9, 1, 3, 1)).await, 8, "and so is its last batch");
    assert_eq!(node.replicas.unassigned(), []);
    let found = node.replicas.topic("t").unwrap().partition(0).unwrap();
    assert_eq!(found.dir(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_directory_is_told_after_what_was_in_it_and_its_partitions_stay_refused() {
    let mut node = two_dirs();
    node.create("t", 1, 2, &[]);
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let (assigned, failed) = (told.clone(), told.clone());
    let assign: crate::replica::Assign = Box::new(move |replicas| {
        assigned.lock().unwrap().push(format!("{} replicas", replicas.len()));
        Box::pin(std::future::ready(true))
    });
    let tell_failed: crate::replica::TellFailed = Box::new(move |dirs| {
        let mut told = failed.lock().unwrap();
        told.push(format!("{} failed", dirs.len()));
        // The first time the controller has no time.
        let is_told = told.iter().filter(|line| line.ends_with("failed")).count() > 1;
        Box::pin(std::future::ready(is_told))
    });
    node.replicas.fail_dir(home(&node, 0), "test");
    let keeping = node.replicas.clone().keep_directories(assign, tell_failed);
    let minute = std::time::Duration::from_secs(60);
    let clock = &node.env.clock;
    assert!(clock.until(clock.deadline_in(minute), keeping).await.is_none(), "it goes on");
    let told = told.lock().unwrap().clone();
    assert_eq!(told, ["2 replicas", "1 failed", "2 replicas", "1 failed"]);
    node.apply([change(1, 0, -1, None)]);
    let outcomes = node.produce(vec![(0, batch(&["a"])), (1, batch(&["b"]))]).await;
    let outcomes: Vec<_> = outcomes.iter().map(|outcome| short(outcome).0).collect();
    assert_eq!(outcomes, ["offline", "ok"]);
    let answer = node.replicas.fetch(node.fetch_ask(&[(0, 0, 100)])).await;
    assert_eq!(word(answer.parts[0].outcome.as_ref().unwrap_err()), "offline");
}

#[tokio::test(start_paused = true)]
async fn a_move_taken_back_leaves_nothing() {
    let mut node = two_dirs();
    node.create("t", 1, 1, &[]);
    tell(&mut node);
    node.put(batch(&["a"])).await;
    node.replicas.move_replica(&name(0), "/b").unwrap();
    let partition = node.partition(0);
    while node.replicas.step_move(&partition) == Step::Copied {}
    tell(&mut node);
    node.replicas.move_replica(&name(0), "/a").unwrap();
    assert_eq!(shown(&node), [("/a".into(), 0, false, 0)]);
    assert_eq!(node.replicas.unassigned().len(), 1, "the controller is told that it stays");
}

/// Each change of a name on the way fails once; then the process is killed, or the power goes.
#[tokio::test(start_paused = true)]
async fn a_move_survives_a_stop_at_every_step() {
    let mut swapped = 0;
    for (step, power_loss) in (0..14).flat_map(|step| [(step, false), (step, true)]) {
        let sim = SimFiles::default();
        let mut node = Node::on_dirs(Files::Sim(sim.clone()), &DIRS);
        node.env.files.sync_dir(std::path::Path::new("/")).unwrap();
        node.create("t", 1, 1, &[("flush.messages", "1")]);
        let mut directory = tell(&mut node).unwrap();
        let flush = |node: &Node| {
            let flushed = node.partition(0).locked(|state, _| state.log().unwrap().flush());
            flushed.unwrap();
        };
        node.partition(0).locked(|state, _| {
            state.log().unwrap().append_copied(&batch(&["a", "b", "c"]), NOW_MS).unwrap();
        });
        flush(&node);
        node.replicas.write_checkpoints();
        sim.fail(FaultOn::Name, step, 5);
        let _ = node.replicas.move_replica(&name(0), "/b");
        let partition = node.partition(0);
        for _ in 0..4 {
            node.replicas.step_move(&partition);
            directory = tell(&mut node).unwrap_or(directory);
        }
        swapped += usize::from(partition.dir() == 1);
        drop(partition);
        drop(node.stop().await);
        match power_loss {
            true => sim.crash(step),
            false => sim.kill(),
        }
        let mut node = Node::on_dirs(Files::Sim(sim), &DIRS);
        let MetadataRecord::Partition(mut record) = partition_record() else { unreachable!() };
        record.directories = vec![directory];
        node.apply([topic_record(), MetadataRecord::Partition(record)]);
        let partition = node.partition(0);
        let case = format!("step {step}, power loss: {power_loss}");
        assert_eq!(values(&partition), ["a", "b", "c"], "{case}");
        while node.replicas.step_move(&partition) != Step::Over {
            tell(&mut node);
        }
        assert_eq!(values(&partition), ["a", "b", "c"], "{case}, moved on");
        assert_eq!(shown(&node).len(), 1, "{case}");
    }
    assert!(swapped > 0 && swapped < 28, "{swapped} of 28 got as far as the swap");
}

fn topic_record() -> MetadataRecord {
    let topic_id = Uuid::from_u128(1);
    let record = crate::protocol::records::metadata::TopicRecord { name: "t".into(), topic_id };
    MetadataRecord::Topic(record)
}

fn partition_record() -> MetadataRecord {
    partition(1, 0, 1, &[1])
}

#[tokio::test(start_paused = true)]
async fn a_directory_that_fails_goes_offline_alone() {
    let mut node = two_dirs();
    node.create("t", 1, 2, &[]);
    tell(&mut node);
    node.replicas.fail_dir(1, "gone");
    assert_eq!(*node.failed_dirs.lock().unwrap(), [false]);
    let outcomes = node.produce(vec![(0, batch(&["a"])), (1, batch(&["b"]))]).await;
    assert_eq!(outcomes.iter().map(|it| short(it).0).collect::<Vec<_>>(), ["ok", "offline"]);
    let dirs = node.replicas.describe_dirs(None);
    assert_eq!(dirs.iter().map(|dir| dir.online.is_some()).collect::<Vec<_>>(), [true, false]);
    let ask = |path| node.replicas.move_replica(&name(0), path).map_err(|error| word(&error));
    assert_eq!((ask("/b"), ask("/a")), (Err("offline"), Ok(())));
    node.create("u", 2, 2, &[]);
    let homes = [0, 1].map(|index| node.replicas.partition("u", index).unwrap().dir());
    assert_eq!(homes, [0, 0], "new ones go to what works");
    node.replicas.fail_dir(0, "gone too");
    assert_eq!(*node.failed_dirs.lock().unwrap(), [false, true]);
}

#[tokio::test(start_paused = true)]
async fn what_lies_in_a_directory_that_is_offline_at_the_start_is_not_made_anew() {
    let mut node = two_dirs();
    node.create("t", 1, 2, &[]);
    let ids = node.replicas.online_dirs();
    tell(&mut node);
    node.put(batch(&["a"])).await;
    let files = node.stop().await;
    let Files::Sim(sim) = &files else { unreachable!() };
    sim.kill();
    let mut node = Node::on_dead(files, &["/b"], &["/a"]);
    let assigned = |index: i32| {
        let MetadataRecord::Partition(mut record) = partition(1, index, 1, &[1]) else {
            unreachable!()
        };
        record.directories = vec![ids[index as usize]];
        MetadataRecord::Partition(record)
    };
    node.apply([topic_record(), assigned(0), assigned(1)]);
    let state = |index| node.partition(index).offsets().map(|it| it.log_end).map_err(|e| word(&e));
    assert_eq!([state(0), state(1)], [Err("offline"), Ok(0)]);
}
