//! Replicas against the image: topics come and go, survive a restart, fail with their directory.

use super::*;
use crate::common::NO_TIMESTAMP;
use crate::replica::testing::*;
use crate::replica::{Intervals, Produced};
use std::time::Duration;
use uuid::Uuid;

#[tokio::test(start_paused = true)]
async fn a_topic_created_anew_under_its_name_is_another_topic() {
    let mut node = Node::with_topic(&[]);
    node.put(sequenced(9, 5, 0, 3)).await;
    let old = node.replicas.topic("t").unwrap();
    node.delete(1);
    assert!(old.is_gone());
    assert_eq!(ids(&node.replicas, &["t"])["t"], None);
    node.create("t", 2, 1, &[]);
    assert_eq!(ids(&node.replicas, &["t"])["t"], Some(TopicId(Uuid::from_u128(2))));
    assert_eq!(node.partition(0).offsets().unwrap().log_end, 0);
    assert_eq!(node.put(sequenced(9, 1, 42, 1)).await, 0, "producers are forgotten too (C003)");
    assert!(node.replicas.partition("t", 1).is_none());
}

#[tokio::test(start_paused = true)]
async fn partitions_elsewhere_name_their_leader() {
    let mut node = Node::with_topic(&[]);
    node.apply([partition(1, 2, 9, &[9])]);
    let answer = |index| {
        let topic = node.replicas.topic("t").unwrap();
        topic.partition(index).err().map(|error| word(&error))
    };
    assert_eq!(
        [answer(0), answer(2), answer(3), answer(-1)],
        [None, Some("not leader"), Some("unknown"), Some("unknown")]
    );
}

#[tokio::test(start_paused = true)]
async fn logs_survive_a_clean_stop_and_a_crash() {
    for clean in [true, false] {
        let node = Node::with_topic(&[]);
        node.put(batch(&["a"; 4])).await;
        node.partition(0).delete_records(2).unwrap();
        match clean {
            true => node.replicas.close(7).unwrap(),
            false => node.replicas.write_checkpoints(),
        }
        if clean {
            assert_eq!(short(&node.produce(vec![(0, batch(&["b"]))]).await[0]).0, "not leader");
        }
        let mut node = Node::on(node.stop().await);
        node.create("t", 1, 2, &[]);
        let offsets = node.partition(0).offsets().unwrap();
        assert_eq!((offsets.log_start, offsets.high_watermark), (2, 4), "clean: {clean}");
        assert_eq!(node.put(batch(&["b"])).await, 4);
        node.apply([change(1, 0, 1, None)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_of_a_topic_that_is_not_this_one_makes_room() {
    let node = Node::with_topic(&[]);
    node.put(batch(&["a"; 4])).await;
    node.replicas.close(7).unwrap();
    let mut node = Node::on(node.stop().await);
    node.create("t", 99, 2, &[]);
    assert_eq!(node.partition(0).offsets().unwrap().log_end, 0);
}

#[tokio::test(start_paused = true)]
async fn a_failed_directory_takes_its_partitions_offline_and_is_told_once() {
    let mut node = Node::with_topic(&[]);
    node.put(batch(&["a"])).await;
    node.replicas.fail_dir(0, "test");
    node.replicas.fail_dir(0, "test");
    assert_eq!(*node.failed_dirs.lock().unwrap(), [true], "the last one, and once");
    let outcome = node.produce(vec![(0, batch(&["b"]))]).await.remove(0);
    assert_eq!(short(&outcome), ("offline", -1));
    let answer = node.replicas.fetch(node.fetch_ask(&[(0, 0, 100)])).await;
    assert_eq!(word(answer.parts[0].outcome.as_ref().unwrap_err()), "offline");
    assert!(node.replicas.online_dirs().is_empty());
    node.create("later", 5, 1, &[]);
    let later = node.replicas.partition("later", 0).unwrap();
    assert_eq!(word(&later.offsets().unwrap_err()), "offline");
}

/// Name, configs of the topic, milliseconds later, log start then.
type Retention = (&'static str, &'static [(&'static str, &'static str)], i64, i64);

#[tokio::test(start_paused = true)]
async fn retention_by_time_and_size_follows_the_config() {
    let day_ms = 24 * 3_600_000;
    #[rustfmt::skip]
    let table: [Retention; 8] = [
        // what             configs                                                later       log start
        ("young",           &[],                                                   day_ms,     0),
        ("all old",         &[],                                                   8 * day_ms, 6),
        ("kept for ever",   &[("retention.ms", "-1")],                             8 * day_ms, 0),
        ("over the size",   &[("retention.bytes", "1300"), ("retention.ms", "-1")], day_ms,    2),
        ("down to nothing", &[("retention.bytes", "0"), ("retention.ms", "-1")],   day_ms,     6),
        ("at the size",     &[("retention.bytes", "3500"), ("retention.ms", "-1")], day_ms,    0),
        ("compacted",       &[("cleanup.policy", "compact")],                      8 * day_ms, 0),
        ("no policy",       &[("cleanup.policy", "")],                             8 * day_ms, 0),
    ];
    for (name, configs, later_ms, start) in table {
        let segments = [("internal.segment.bytes", "1200")];
        let configs: Vec<_> = segments.iter().chain(configs).copied().collect();
        let node = Node::with_topic(&configs);
        for _ in 0..6 {
            node.put(batch(&[&"v".repeat(500)])).await;
        }
        node.replicas.delete_old_segments(NOW_MS + later_ms);
        let offsets = node.partition(0).offsets().unwrap();
        assert_eq!((offsets.log_start, offsets.log_end), (start, 6), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_segment_without_timestamps_is_as_old_as_its_file() {
    let node = Node::with_topic(&[("internal.segment.bytes", "1200"), ("retention.ms", "1000")]);
    for _ in 0..6 {
        node.put(stamped(&[(NO_TIMESTAMP, &"v".repeat(500))])).await;
    }
    let crate::env::Files::Sim(sim) = &node.env.files else { panic!("simulated") };
    let start = || node.partition(0).offsets().unwrap().log_start;
    node.replicas.delete_old_segments(NOW_MS);
    assert_eq!(start(), 0, "nobody knows how old they are");
    for (base, written_ms) in [(0, NOW_MS - 2000), (2, NOW_MS - 500), (4, NOW_MS - 9000)] {
        let path = format!("/data/t-0/{base:020}.log");
        sim.set_modified(std::path::Path::new(&path), written_ms).unwrap();
    }
    node.replicas.delete_old_segments(NOW_MS);
    assert_eq!(start(), 2, "from the oldest on");
}

#[tokio::test(start_paused = true)]
async fn housekeeping_begins_after_its_delay_and_removes_files_when_they_are_due() {
    let configs = [
        ("internal.segment.bytes", "1200"),
        ("retention.bytes", "1300"),
        ("file.delete.delay.ms", "7000"),
    ];
    let node = Node::with_topic(&configs);
    for _ in 0..6 {
        node.put(batch(&[&"v".repeat(500)])).await;
    }
    let every = Intervals {
        initial_delay: Duration::from_secs(10),
        retention: Duration::from_secs(300),
        checkpoints: Duration::from_secs(60),
        producers: Duration::from_secs(600),
        flush: None,
    };
    let files = node.env.files.clone();
    let waiting = || {
        let names = files.list(std::path::Path::new("/data/t-0")).unwrap();
        names.iter().filter(|entry| entry.name.ends_with(".log.deleted")).count()
    };
    let house = node.env.tasks.spawn_data(node.replicas.clone().keep_house(every));
    #[rustfmt::skip]
    let table = [
        // seconds later  log start  files that wait
        (9,               0,         0),
        (2,               2,         1),
        (5,               2,         1),
        (2,               2,         0),
    ];
    for (seconds, start, deleted) in table {
        node.env.clock.sleep(Duration::from_secs(seconds)).await;
        let offsets = node.partition(0).offsets().unwrap();
        assert_eq!((offsets.log_start, waiting()), (start, deleted), "{seconds} s later");
    }
    house.abort();
}

#[tokio::test(start_paused = true)]
async fn segments_below_the_log_start_go_under_every_policy() {
    for policy in ["delete", "compact,delete", ""] {
        let configs = [("internal.segment.bytes", "1200"), ("cleanup.policy", policy)];
        let node = Node::with_topic(&configs);
        for _ in 0..6 {
            node.put(batch(&[&"v".repeat(500)])).await;
        }
        node.partition(0).delete_records(5).unwrap();
        node.replicas.delete_old_segments(NOW_MS);
        let segments = node.partition(0).look(|log| log.segment_count()).unwrap();
        assert_eq!(segments, 1, "`{policy}`");
        assert_eq!(node.partition(0).offsets().unwrap().log_start, 5);
    }
}

#[tokio::test(start_paused = true)]
async fn housekeeping_writes_checkpoints_and_removes_deleted_logs_in_time() {
    let mut node = Node::with_topic(&[("file.delete.delay.ms", "60000")]);
    node.put(batch(&["a"])).await;
    let every = Intervals {
        initial_delay: Duration::from_secs(30),
        retention: Duration::from_secs(300),
        checkpoints: Duration::from_secs(5),
        producers: Duration::from_secs(600),
        flush: None,
    };
    let files = node.env.files.clone();
    let path = |name: &str| std::path::Path::new("/data").join(name);
    let has_deleted = || {
        let names = files.list(std::path::Path::new("/data")).unwrap();
        names.iter().any(|entry| entry.name.ends_with("-delete"))
    };
    let house = node.env.tasks.spawn_data(node.replicas.clone().keep_house(every));
    node.env.clock.sleep(Duration::from_secs(6)).await;
    assert!(files.exists(&path("replication-offset-checkpoint")));
    node.delete(1);
    node.env.clock.sleep(Duration::from_secs(30)).await;
    assert!(has_deleted());
    node.env.clock.sleep(Duration::from_secs(60)).await;
    assert!(!has_deleted());
    house.abort();
}

#[tokio::test(start_paused = true)]
async fn a_scrape_shows_the_logs_that_are_here_now() {
    let mut node = Node::with_topic(&[]);
    node.put(batch(&["a", "b"])).await;
    let text = node.metrics.text().unwrap();
    let line = "kafka_log_log_logendoffset{partition=\"0\",topic=\"t\"} 2";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("kafka_server_replicamanager_leadercount 2"), "{text}");
    node.delete(1);
    assert!(!node.metrics.text().unwrap().contains("topic=\"t\""));
}

#[tokio::test(start_paused = true)]
async fn futures_can_move_between_threads() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let node = Node::with_topic(&[]);
    let _ = is_send(node.replicas.fetch(node.fetch_ask(&[]))).await;
    let produced = is_send(node.replicas.produce(node.produce_ask(-1, vec![]))).await;
    let Produced::Done(done) = is_send(produced) else { panic!("nothing to wait for") };
    assert!(done.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_log_that_a_full_disk_did_not_take_is_made_once_there_is_room() {
    let mut node = Node::new();
    let crate::env::Files::Sim(disk) = node.env.files.clone() else { panic!("simulated") };
    disk.fail(crate::env::FaultOn::Name, 0, 28);
    node.create("t", 1, 2, &[]);
    let first = || async { short(&node.produce(vec![(0, batch(&["a"]))]).await[0]) };
    assert_eq!(first().await.0, "offline");
    assert!(node.failed_dirs.lock().unwrap().is_empty());
    node.replicas.make_missing_logs();
    assert_eq!(first().await, ("ok", 0));
}
