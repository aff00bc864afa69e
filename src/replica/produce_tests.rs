//! Produce as tables: what is answered, in which order rules hold, when it is acknowledged.

use super::*;
use crate::replica::flusher::Flusher;
use crate::replica::testing::*;
use proptest::prelude::*;

#[tokio::test(start_paused = true)]
async fn a_request_is_judged_partition_by_partition_in_kafkas_order() {
    let mut node = Node::with_topic(&[("max.message.bytes", "200")]);
    node.put(batch(&["first"])).await;
    node.partition(0).delete_records(1).unwrap();
    let good = || batch(&["a", "b"]);
    let mut corrupt = good().to_vec();
    corrupt[70] ^= 1;
    let large = batch(&[&"x".repeat(300)]);
    let (mut headless, mut based) = (good().to_vec(), good().to_vec());
    headless[16] = 1;
    based[7] = 9;
    #[rustfmt::skip]
    let table = [
        // name           partition  acks  records         outcome       base  log start
        ("good",          0,         -1,   good(),         "ok",         1,    1),
        ("unknown",       7,         -1,   good(),         "unknown",    -1,   -1),
        ("unknown first", 7,         2,    Bytes::new(),   "unknown",    -1,   -1),
        ("no batch",      0,         2,    Bytes::new(),   "invalid",    -1,   -1),
        ("acks",          0,         2,    good(),         "acks",       -1,   -1),
        ("magic 1",       0,         -1,   headless.into(), "invalid",   -1,   -1),
        ("base offset",   0,         -1,   based.into(),   "invalid",    -1,   1),
        ("corrupt",       0,         -1,   corrupt.into(), "corrupt",    -1,   -1),
        ("too large",     0,         -1,   large,          "too large",  -1,   -1),
        ("still good",    0,         1,    good(),         "ok",         3,    1),
        ("unanswered",    0,         0,    good(),         "ok",         5,    1),
    ];
    for (name, partition, acks, records, outcome, base, log_start) in table {
        let ask = node.produce_ask(acks, vec![(partition, records)]);
        let Produced::Done(outcomes) = node.replicas.produce(ask).await else { panic!("{name}") };
        let got = (short(&outcomes[0]), outcomes[0].log_start_offset);
        assert_eq!(got, ((outcome, base), log_start), "{name}");
    }
    node.apply([config("t", "max.message.bytes", None)]);
    assert_eq!(node.put(batch(&[&"x".repeat(300)])).await, 7, "a changed limit holds at once");
}

#[tokio::test(start_paused = true)]
async fn one_bad_partition_leaves_the_others_alone_but_noise_refuses_the_request() {
    let node = Node::with_topic(&[]);
    let mut wrong = batch(&["a"]).to_vec();
    wrong[60] = 9;
    let outcomes = node.produce(vec![(0, wrong.into()), (1, batch(&["b"]))]).await;
    assert_eq!(outcomes.iter().map(short).collect::<Vec<_>>(), [("corrupt", -1), ("ok", 0)]);
    let mut noise = batch(&["a"]).to_vec();
    noise[16] = 3;
    let outcomes = node.produce(vec![(0, noise.into()), (1, batch(&["b"]))]).await;
    let refused = [("unreadable", -1), ("unreadable", -1)];
    assert_eq!(outcomes.iter().map(short).collect::<Vec<_>>(), refused);
    assert_eq!(node.partition(1).offsets().unwrap().log_end, 1);
}

#[tokio::test(start_paused = true)]
async fn retries_and_epochs_of_idempotent_producers_c001_c003() {
    let node = Node::with_topic(&[]);
    for sequence in 0..6 {
        node.put(sequenced(9, 0, sequence, 1)).await;
    }
    #[rustfmt::skip]
    let table = [
        // batch                     outcome          base
        (sequenced(9, 0, 5, 1),      "ok",            5),
        (sequenced(9, 0, 1, 1),      "ok",            1),
        (sequenced(9, 0, 0, 1),      "out of order",  -1),
        (sequenced(9, 0, 4, 2),      "out of order",  -1),
        (sequenced(9, 1, 3, 1),      "out of order",  -1),
        (sequenced(9, 1, 0, 1),      "ok",            6),
        (sequenced(9, 0, 6, 1),      "stale epoch",   -1),
        (sequenced(8, 0, 42, 1),     "ok",            7),
    ];
    for (at, (records, outcome, base)) in table.into_iter().enumerate() {
        let outcomes = node.produce(vec![(0, records)]).await;
        assert_eq!(short(&outcomes[0]), (outcome, base), "row {at}");
    }
    assert_eq!(node.partition(0).offsets().unwrap().log_end, 8);
}

#[tokio::test(start_paused = true)]
async fn a_log_append_time_topic_tells_and_stores_its_own_clock() {
    let node = Node::with_topic(&[("message.timestamp.type", "LogAppendTime")]);
    tokio::time::advance(Duration::from_secs(3)).await;
    let outcomes = node.produce(vec![(0, stamped(&[(5, "a"), (6, "b")]))]).await;
    assert_eq!((short(&outcomes[0]), outcomes[0].log_append_time_ms), (("ok", 0), NOW_MS + 3000));
    let answer = node.replicas.fetch(node.fetch_ask(&[(0, 0, 1000)])).await;
    let read = answer.parts[0].outcome.as_ref().unwrap().slices.as_ref().unwrap().read().unwrap();
    let records: Result<Vec<_>, _> = batch::records(&read).collect();
    let stamps: Vec<i64> = records.unwrap().iter().map(|record| record.timestamp).collect();
    assert_eq!(stamps, [NOW_MS + 3000; 2]);
    let header = BatchHeader::parse(&read).unwrap();
    assert_eq!(header.crc, batch::crc_of(&read));
}

#[tokio::test(start_paused = true)]
async fn min_insync_replicas_counts_what_there_is() {
    let mut node = Node::with_topic(&[("min.insync.replicas", "2")]);
    assert_eq!(node.put(batch(&["alone"])).await, 0, "one replica is all there is");
    node.apply([partition(1, 2, 1, &[1, 2])]);
    let ask = |acks| node.produce_ask(acks, vec![(2, batch(&["a"]))]);
    let Produced::Waiting(wait) = node.replicas.produce(ask(-1)).await else { panic!("follower") };
    assert_eq!(short(&wait.done().await[0]), ("timed out", 0));
    let Produced::Done(done) = node.replicas.produce(ask(1)).await else { panic!("leader only") };
    assert_eq!(short(&done[0]), ("ok", 1));
    let Produced::Waiting(wait) = node.replicas.produce(ask(-1)).await else { panic!("follower") };
    node.apply([change(1, 2, -2, Some(&[1]))]);
    let Produced::Done(few) =
        node.replicas.produce(node.produce_ask(-1, vec![(2, batch(&["a"]))])).await
    else {
        panic!("refused at once")
    };
    assert_eq!(short(&few[0]), ("few replicas", -1));
    assert_eq!(short(&wait.done().await[0]), ("timed out", 2), "below min ISR nothing commits");
}

#[tokio::test(start_paused = true)]
async fn a_lost_leadership_ends_the_wait_for_acknowledgement() {
    let mut node = Node::with_topic(&[]);
    node.apply([partition(1, 2, 1, &[1, 2])]);
    let ask = node.produce_ask(-1, vec![(2, batch(&["a"])), (0, batch(&["b"]))]);
    let Produced::Waiting(wait) = node.replicas.produce(ask).await else { panic!("waits") };
    let started = node.env.clock.now();
    node.apply([change(1, 2, 2, None)]);
    let outcomes = wait.done().await;
    assert_eq!(outcomes.iter().map(short).collect::<Vec<_>>(), [("not leader", 0), ("ok", 0)]);
    assert_eq!(node.env.clock.now(), started);
    let outcomes = node.produce(vec![(2, batch(&["c"]))]).await;
    assert_eq!(short(&outcomes[0]), ("not leader", -1));
}

#[tokio::test(start_paused = true)]
async fn with_flush_messages_one_nothing_is_acknowledged_before_it_is_durable() {
    let node = Node::with_topic(&[("flush.messages", "1")]);
    let flusher = node.replicas.dirs[0].flusher.get_or_init(Flusher::by_hand);
    for acks in [1, -1] {
        let before = node.partition(0).offsets().unwrap();
        let ask = node.produce_ask(acks, vec![(0, batch(&["a"]))]);
        let Produced::Waiting(wait) = node.replicas.produce(ask).await else {
            panic!("acks={acks}: waits for the disk")
        };
        let high_watermark = node.partition(0).offsets().unwrap().high_watermark;
        assert_eq!(high_watermark, before.high_watermark);
        flusher.run_once(&node.env.files, &node.replicas.on_failure());
        assert_eq!(short(&wait.done().await[0]), ("ok", before.log_end), "acks={acks}");
        let now = node.partition(0).offsets().unwrap();
        assert_eq!(now.high_watermark, before.log_end + 1);
    }
}

/// Two records of `t`, and a start after a kill.
async fn left_unflushed_by_a_kill() -> Node {
    let node = Node::with_topic(&[]);
    node.put(batch(&["a", "b"])).await;
    let mut node = Node::on(node.stop().await);
    node.replicas.dirs[0].flusher.get_or_init(Flusher::by_hand);
    node.create("t", 1, 2, &[("flush.messages", "1")]);
    node
}

#[tokio::test(start_paused = true)]
async fn what_a_kill_left_unflushed_is_flushed_by_itself() {
    let node = left_unflushed_by_a_kill().await;
    assert_eq!(node.partition(0).offsets().unwrap().high_watermark, 0);
    let flusher = node.replicas.dirs[0].flusher.get().unwrap();
    flusher.run_once(&node.env.files, &node.replicas.on_failure());
    assert_eq!(node.partition(0).offsets().unwrap().high_watermark, 2);
}

#[tokio::test(start_paused = true)]
async fn what_a_kill_left_unflushed_is_flushed_before_the_ports_open() {
    let node = left_unflushed_by_a_kill().await;
    node.replicas.flush_what_a_crash_left().await;
    assert_eq!(node.partition(0).offsets().unwrap().high_watermark, 2);
}

#[tokio::test(start_paused = true)]
async fn a_flush_that_a_full_disk_stops_waits_and_takes_nothing_offline() {
    let node = Node::with_topic(&[("flush.messages", "1")]);
    let flusher = node.replicas.dirs[0].flusher.get_or_init(Flusher::by_hand);
    let ask = node.produce_ask(-1, vec![(0, batch(&["a"]))]);
    let Produced::Waiting(wait) = node.replicas.produce(ask).await else { panic!("waits") };
    let crate::env::Files::Sim(disk) = &node.env.files else { panic!("simulated") };
    disk.fail(crate::env::FaultOn::Write, 0, 28);
    for high_watermark in [0, 1] {
        flusher.run_once(&node.env.files, &node.replicas.on_failure());
        assert_eq!(node.partition(0).offsets().unwrap().high_watermark, high_watermark);
    }
    assert_eq!(short(&wait.done().await[0]), ("ok", 0));
    assert!(node.failed_dirs.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_sealed_segment_is_flushed_without_being_asked_for() {
    let node = Node::with_topic(&[("internal.segment.bytes", "1200")]);
    let flusher = node.replicas.dirs[0].flusher.get_or_init(Flusher::by_hand);
    for _ in 0..5 {
        node.put(batch(&[&"v".repeat(500)])).await;
    }
    flusher.run_once(&node.env.files, &node.replicas.on_failure());
    let points = node.partition(0).look(|log| (log.durable_until(), log.active_base_offset()));
    assert_eq!(points.unwrap(), (4, 4));
}

#[tokio::test(start_paused = true)]
async fn internal_topics_are_closed_to_producers() {
    let mut node = Node::new();
    node.create("__consumer_offsets", 5, 1, &[]);
    let topic = node.replicas.topic("__consumer_offsets").unwrap();
    for (internal_allowed, word) in [(false, "internal"), (true, "ok")] {
        let part = ToProduce {
            topic: Ok(topic.clone()),
            partition: 0,
            records: batch(&["a"]),
            proof: crate::common::Proof::Unneeded,
        };
        let ask = ProduceAsk { internal_allowed, parts: vec![part], ..node.produce_ask(1, vec![]) };
        let Produced::Done(done) = node.replicas.produce(ask).await else { panic!("done") };
        assert_eq!(short(&done[0]).0, word);
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_compressed_batch_is_checked_off_the_thread_and_stored_as_sent() {
    let node = Node::with_topic(&[("max.message.bytes", "10000000")]);
    let mut builder = batch::BatchBuilder::new(0).codec(Codec::of(Compression::Lz4));
    let mut noise: u64 = 1;
    for _ in 0..300 {
        let value: Vec<u8> = (0..5000)
            .map(|_| {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (noise >> 56) as u8
            })
            .collect();
        builder.push(NOW_MS, None, Some(&value), &[]);
    }
    let sent = builder.build();
    assert!(sent.len() > batch::HEAVY_BYTES);
    assert_eq!(node.put(sent.clone()).await, 0);
    let answer = node.replicas.fetch(node.fetch_ask(&[(0, 0, 1)])).await;
    let read = answer.parts[0].outcome.as_ref().unwrap().slices.as_ref().unwrap().read().unwrap();
    assert_eq!(read[batch::HEADER_BYTES..], sent[batch::HEADER_BYTES..]);
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: proptest::test_runner::RngSeed::Fixed(1), ..ProptestConfig::with_cases(64)
    })]

    /// Offsets are given once, in order, without holes, whatever is refused in between.
    #[test]
    fn offsets_are_dense(steps in proptest::collection::vec((0_i32..2, 1_usize..4, any::<bool>()), 1..30)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let node = Node::with_topic(&[]);
            let mut ends = [0, 0];
            for (partition, count, whole) in steps {
                let mut records = batch(&vec!["v"; count]).to_vec();
                if !whole {
                    records[65] ^= 0xff;
                }
                let outcome = node.produce(vec![(partition, records.into())]).await.remove(0);
                let end = &mut ends[partition as usize];
                match outcome.result {
                    Ok(()) => {
                        assert_eq!(outcome.base_offset, *end);
                        *end += count as i64;
                    }
                    Err(_) => assert!(!whole),
                }
                let offsets = node.partition(partition).offsets().unwrap();
                assert_eq!((offsets.log_end, offsets.high_watermark), (*end, *end));
            }
        });
    }
}
