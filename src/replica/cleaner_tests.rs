//! Which log is cleaned when, what is written down of it, and what a failure means.

use super::*;
use crate::config::{BrokerConfig, CleanerKeys};
use crate::protocol::batch::{BatchBuilder, records};
use crate::replica::testing::*;

fn keys() -> CleanerKeys {
    BrokerConfig::default().cleaner
}

const SMALL: (&str, &str) = ("internal.segment.bytes", "1200");

fn keyed(key: &str, value: &str) -> bytes::Bytes {
    let mut builder = BatchBuilder::new(0);
    builder.push(NOW_MS, Some(key.as_bytes()), Some(value.as_bytes()), &[]);
    builder.build()
}

/// Flushed segments of superseded records in both partitions, more of them in partition 1.
async fn filled(configs: &[(&str, &str)]) -> Node {
    let node = Node::with_topic(configs);
    for (partition, count) in [(0, 6), (1, 12)] {
        for at in 0..count {
            let value = format!("{at} {}", "v".repeat(500));
            let outcome = node.produce(vec![(partition, keyed("k", &value))]).await.remove(0);
            outcome.result.expect("produced");
        }
    }
    flush(&node);
    node
}

fn flush(node: &Node) {
    for partition in node.replicas.partitions() {
        partition.locked(|state, _| state.log.as_mut().unwrap().flush().unwrap());
    }
}

/// Offsets of the records of a partition.
fn offsets(node: &Node, partition: i32) -> Vec<Offset> {
    let look = |log: &crate::storage::Log| {
        let (mut found, mut next) = (Vec::new(), log.start_offset());
        while next < log.end_offset() {
            let bytes = log.read(next, log.end_offset(), 1 << 20, true).unwrap().read().unwrap();
            for batch in crate::protocol::batch::batches(&bytes) {
                let (header, batch) = batch.unwrap();
                next = header.next_offset();
                found.extend(records(&batch).map(|record| record.unwrap().offset));
            }
        }
        found
    };
    node.partition(partition).look(look).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_filthiest_log_is_cleaned_first_and_what_is_done_is_written_down() {
    let node = filled(&[SMALL, ("cleanup.policy", "compact")]).await;
    let cleaner = Cleaner::by_hand(node.replicas.clone(), keys());
    // Both are dirty as a whole: the ratio is 1.
    assert!(cleaner.clean_filthiest(0) && cleaner.clean_filthiest(0));
    assert!(!cleaner.clean_filthiest(0), "nothing is left to do");
    assert_eq!((offsets(&node, 0), offsets(&node, 1)), (vec![3, 4, 5], vec![9, 10, 11]));
    let path = std::path::Path::new("/data/cleaner-offset-checkpoint");
    let text = node.env.files.read(path).unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), "0\n2\nt 0 4\nt 1 10\n");
    // A cleaner that starts anew goes on from there.
    let again = Cleaner::by_hand(node.replicas.clone(), keys());
    assert!(!again.clean_filthiest(0));
    drop(again);
    let text = node.metrics.text().unwrap();
    for line in [
        "kafka_log_logcleaner_cleaner_recopy_percent 10\n",
        "kafka_log_logcleanermanager_max_dirty_percent 0\n",
        "kafka_log_logcleanermanager_uncleanable_partitions_count{logDirectory=\"/data\"} 0\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

/// Name, configs of the topic, whether it is cleaned.
type Case = (&'static str, &'static [(&'static str, &'static str)], bool);

#[tokio::test(start_paused = true)]
async fn the_ratio_the_lag_and_the_policy_say_whether_a_log_is_cleaned() {
    #[rustfmt::skip]
    let table: [Case; 7] = [
        ("compact",             &[("cleanup.policy", "compact")],                                            true),
        ("both",                &[("cleanup.policy", "compact,delete")],                                     true),
        ("delete",              &[("cleanup.policy", "delete")],                                             false),
        ("neither",             &[("cleanup.policy", "")],                                                   false),
        ("never dirty enough",  &[("cleanup.policy", "compact"), ("min.cleanable.dirty.ratio", "1")],       false),
        ("but overdue",         &[("cleanup.policy", "compact"), ("min.cleanable.dirty.ratio", "1"), ("max.compaction.lag.ms", "1000")], true),
        ("too young",           &[("cleanup.policy", "compact"), ("min.compaction.lag.ms", "60000")],       false),
    ];
    for (name, configs, cleaned) in table {
        let configs: Vec<_> = std::iter::once(&SMALL).chain(configs).copied().collect();
        let node = filled(&configs).await;
        tokio::time::advance(Duration::from_secs(30)).await;
        let cleaner = Cleaner::by_hand(node.replicas.clone(), keys());
        assert_eq!(cleaner.clean_filthiest(0), cleaned, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_damaged_log_is_given_up_once_and_the_others_go_on() {
    let mut node = filled(&[SMALL, ("cleanup.policy", "compact")]).await;
    let path = std::path::Path::new("/data/t-1/00000000000000000000.log");
    let mut bytes = node.env.files.read(path).unwrap();
    bytes[700] ^= 1;
    node.env.files.write(path, &bytes).unwrap();
    let cleaner = Cleaner::by_hand(node.replicas.clone(), keys());
    let cleaned = (0..4).filter(|_| cleaner.clean_filthiest(0)).count();
    assert_eq!(cleaned, 1, "partition 0");
    assert_eq!(offsets(&node, 0), [3, 4, 5]);
    let count = "uncleanable_partitions_count{logDirectory=\"/data\"} 1\n";
    let text = node.metrics.text().unwrap();
    assert!(text.contains(count), "{text}");
    assert!(!text.contains("uncleanable_bytes{logDirectory=\"/data\"} 0\n"));
    assert!(node.failed_dirs.lock().unwrap().is_empty(), "the directory is sound");
    node.delete(1);
    cleaner.clean_filthiest(0);
    let none = "uncleanable_partitions_count{logDirectory=\"/data\"} 0\n";
    assert!(node.metrics.text().unwrap().contains(none));
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_leaves_the_log_as_it_is_until_there_is_room_and_a_failed_one_goes_offline() {
    let node = filled(&[SMALL, ("cleanup.policy", "compact")]).await;
    let crate::env::Files::Sim(sim) = node.env.files.clone() else { panic!("simulated") };
    let cleaner = Cleaner::by_hand(node.replicas.clone(), keys());
    node.replicas.write_checkpoints();
    let before = offsets(&node, 1);
    sim.fail(crate::env::FaultOn::Write, 0, 28);
    assert!(!cleaner.clean_filthiest(0));
    assert!(node.failed_dirs.lock().unwrap().is_empty());
    assert_eq!(offsets(&node, 1), before);
    assert!(cleaner.clean_filthiest(0) && cleaner.clean_filthiest(0));
    assert_eq!(offsets(&node, 1), [9, 10, 11]);
    let node = filled(&[SMALL, ("cleanup.policy", "compact")]).await;
    let crate::env::Files::Sim(sim) = node.env.files.clone() else { panic!("simulated") };
    let cleaner = Cleaner::by_hand(node.replicas.clone(), keys());
    node.replicas.write_checkpoints();
    sim.fail(crate::env::FaultOn::Sync, 0, 5);
    assert!(!cleaner.clean_filthiest(0));
    assert_eq!(*node.failed_dirs.lock().unwrap(), [true]);
}

#[tokio::test(start_paused = true)]
async fn a_topic_made_anew_under_the_name_of_a_cleaned_one_is_dirty_from_its_start() {
    let configs = [SMALL, ("cleanup.policy", "compact")];
    let mut node = filled(&configs).await;
    let cleaner = Cleaner::by_hand(node.replicas.clone(), keys());
    while cleaner.clean_filthiest(0) {}
    node.delete(1);
    node.create("t", 2, 2, &configs);
    for at in 0..12 {
        node.put(keyed("k", &format!("{at} {}", "v".repeat(500)))).await;
    }
    flush(&node);
    assert!(cleaner.clean_filthiest(0));
    assert_eq!(offsets(&node, 0), [9, 10, 11]);
}

#[tokio::test(start_paused = true)]
async fn workers_clean_in_the_background_and_follow_the_configuration() {
    let node = filled(&[SMALL, ("cleanup.policy", "compact")]).await;
    let cleaner = Cleaner::start(node.replicas.clone(), keys());
    let cleaned = || offsets(&node, 0).len() + offsets(&node, 1).len() == 6;
    node.env.clock.sleep(Duration::from_millis(14_900)).await;
    assert!(!cleaned(), "the pause comes first");
    cleaner.configure(CleanerKeys { backoff_ms: 10, threads: 2, ..keys() });
    for _ in 0..1_000 {
        node.env.clock.sleep(Duration::from_millis(10)).await;
        if cleaned() {
            break;
        }
    }
    assert!(cleaned());
    assert_eq!(cleaner.state().workers.values().filter(|worker| worker.runs).count(), 2);
    cleaner.configure(CleanerKeys { backoff_ms: 10, threads: 1, ..keys() });
    node.env.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(cleaner.state().workers.values().filter(|worker| worker.runs).count(), 1);
    assert!(node.metrics.text().unwrap().contains("kafka_log_logcleaner_deadthreadcount 0\n"));
    let off = Cleaner::start(node.replicas.clone(), CleanerKeys { enable: false, ..keys() });
    node.env.clock.sleep(Duration::from_secs(60)).await;
    assert!(off.state().workers.is_empty(), "log.cleaner.enable=false");
}

#[tokio::test(start_paused = true)]
async fn old_files_are_removed_after_their_delay() {
    let node =
        filled(&[SMALL, ("cleanup.policy", "compact"), ("file.delete.delay.ms", "5000")]).await;
    let cleaner = Cleaner::by_hand(node.replicas.clone(), keys());
    assert!(cleaner.clean_filthiest(0) && cleaner.clean_filthiest(0));
    let aside = || {
        let list = node.env.files.list(std::path::Path::new("/data/t-1")).unwrap();
        list.iter().filter(|entry| entry.name.ends_with(".deleted")).count()
    };
    assert!(aside() > 0);
    tokio::time::advance(Duration::from_millis(4_999)).await;
    node.replicas.remove_deleted();
    assert!(aside() > 0);
    tokio::time::advance(Duration::from_millis(1)).await;
    node.replicas.remove_deleted();
    assert_eq!(aside(), 0);
}
