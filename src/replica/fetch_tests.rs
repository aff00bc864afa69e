//! Fetch as tables: KIP-74 limits (C011), offsets in empty answers (C013), long polls (C014).

use super::*;
use crate::replica::testing::*;
use std::future::Future;

/// Per partition: what was answered, and how many bytes.
fn told(answer: &FetchAnswer) -> Vec<(&'static str, usize)> {
    let told = |part: &PartFetched| match &part.outcome {
        Ok(read) => ("ok", read.size_bytes()),
        Err(error) => (word(error), 0),
    };
    answer.parts.iter().map(told).collect()
}

async fn filled() -> (Node, usize) {
    let node = Node::with_topic(&[]);
    let big = batch(&[&"v".repeat(1000)]);
    for partition in [0, 1] {
        for _ in 0..3 {
            node.produce(vec![(partition, big.clone())]).await[0].result.as_ref().unwrap();
        }
    }
    (node, big.len())
}

#[tokio::test(start_paused = true)]
async fn the_first_batch_is_whole_and_then_the_limits_hold() {
    let (node, len) = filled().await;
    let l = len as i32;
    #[rustfmt::skip]
    let table = [
        // what                   asked                              max bytes       bytes
        ("all",                   vec![(0, 0, 9999), (1, 0, 9999)],  1 << 20,        vec![3 * len, 3 * len]),
        ("cut as Kafka cuts",     vec![(0, 0, l + 500)],             1 << 20,        vec![len + 500]),
        ("tiny partition limit",  vec![(0, 0, 1), (1, 0, 1)],        1 << 20,        vec![len, 0]),
        ("tiny limit",            vec![(0, 0, 9999), (1, 0, 9999)],  10,             vec![len, 0]),
        ("swapped",               vec![(1, 0, 9999), (0, 0, 9999)],  10,             vec![len, 0]),
        ("what is left",          vec![(0, 0, 9999), (1, 0, 9999)],  4 * l + 500,    vec![3 * len, len + 500]),
        ("too little is left",    vec![(0, 0, 9999), (1, 0, 9999)],  3 * l + 500,    vec![3 * len, 0]),
        ("from the middle",       vec![(0, 1, 9999)],                1 << 20,        vec![2 * len]),
        ("empty ones first",      vec![(0, 3, 9999), (1, 0, 1)],     1 << 20,        vec![0, len]),
        ("no room at all",        vec![(0, 0, 0)],                   0,              vec![len]),
    ];
    for (name, asked, max_bytes, bytes) in table {
        let ask = FetchAsk { max_bytes, ..node.fetch_ask(&asked) };
        let expected: Vec<_> = bytes.into_iter().map(|bytes| ("ok", bytes)).collect();
        assert_eq!(told(&node.replicas.fetch(ask).await), expected, "{name}");
    }
    let negative = node.replicas.fetch(node.fetch_ask(&[(0, 0, -5), (1, 0, 10)])).await;
    assert_eq!(told(&negative), [("size", 0), ("ok", len)]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_data_still_tells_the_offsets() {
    let (node, _) = filled().await;
    node.partition(0).delete_records(2).unwrap();
    let answer = node.replicas.fetch(node.fetch_ask(&[(0, 3, 1000)])).await;
    let read = answer.parts[0].outcome.as_ref().unwrap();
    let offsets = (read.high_watermark, read.last_stable_offset, read.log_start_offset);
    assert_eq!((offsets, read.aborted.is_none()), ((3, 3, 2), true));
    for offset in [-1, 0, 1, 4, 99] {
        let answer = node.replicas.fetch(node.fetch_ask(&[(0, offset, 1000)])).await;
        assert_eq!(told(&answer), [("out of range", 0)], "{offset}");
    }
    let ask = FetchAsk { isolation: Isolation::ReadCommitted, ..node.fetch_ask(&[(0, 2, 1000)]) };
    let answer = node.replicas.fetch(ask).await;
    assert!(answer.parts[0].outcome.as_ref().unwrap().aborted.as_ref().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn epochs_fence_readers_and_name_where_logs_part() {
    let mut node = Node::with_topic(&[]);
    node.put(batch(&["a", "b"])).await;
    node.apply([change(1, 0, 1, None)]);
    node.put(batch(&["c"])).await;
    let ask = |offset, current: Option<i32>, last: Option<i32>| {
        let mut ask = node.fetch_ask(&[(0, offset, 1000)]);
        ask.parts[0].current_leader_epoch = current.map(LeaderEpoch);
        ask.parts[0].last_fetched_epoch = last.map(LeaderEpoch);
        ask
    };
    let epoch = node.partition(0).leader_epoch().0;
    assert_eq!(epoch, 1);
    #[rustfmt::skip]
    let table = [
        // offset  current         last            told             diverging
        (0,        Some(epoch),    None,           "ok",            None),
        (0,        Some(0),        None,           "fenced epoch",  None),
        (0,        Some(2),        None,           "unknown epoch", None),
        (2,        None,           Some(0),        "ok",            None),
        (3,        None,           Some(0),        "ok",            Some((0, 2))),
        (3,        None,           Some(1),        "ok",            None),
        (3,        None,           Some(9),        "out of range",  None),
    ];
    for (offset, current, last, outcome, diverging) in table {
        let answer = node.replicas.fetch(ask(offset, current, last)).await;
        assert_eq!(told(&answer)[0].0, outcome, "{offset} {current:?} {last:?}");
        let found = answer.parts[0].outcome.as_ref().ok().and_then(|read| read.diverging);
        assert_eq!(found, diverging.map(|(epoch, end)| (LeaderEpoch(epoch), end)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_overtaken_looks_again_and_is_told_what_is_so_then() {
    let (node, _) = filled().await;
    node.partition(0).locked(|state, _| state.leader_log().unwrap().roll(NOW_MS).unwrap());
    node.replicas.close(7).unwrap();
    // After a start the files of old segments are not open.
    let mut node = Node::on(node.stop().await);
    node.create("t", 1, 2, &[]);
    let partition = node.partition(0);
    let mut looks = 0;
    let found = look_again(|| {
        looks += 1;
        let plan = partition.locked(|state, _| {
            let log = state.leader_log()?;
            let (start, end) = (log.start_offset(), log.end_offset());
            let outside = Refusal::OutOfRange { offset: 0, start, end };
            log.plan_read(0, 3).map_err(|_| ReplicaError::from(outside))
        })?;
        partition.locked(|state, _| {
            let log = state.leader_log()?;
            // As retention does where `file.delete.delay.ms` is 0.
            log.delete_segments_below(3).unwrap().remove().unwrap();
            Ok::<_, ReplicaError>(())
        })?;
        plan.locate(100, true).map(|_| ()).map_err(|error| ReplicaError::of_read(&error))
    });
    assert_eq!((found.map_err(|error| word(&error)), looks), (Err("out of range"), 2));
    assert!(node.failed_dirs.lock().unwrap().is_empty());
    let mut looks = 0;
    let found: Result<(), _> = look_again(|| {
        looks += 1;
        Err(Refusal::Deleted.into())
    });
    assert_eq!((found.map_err(|error| word(&error)), looks), (Err("deleted"), LOOKS_MAX));
}

/// Polls once.
async fn is_ready<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    tokio::select! { biased; output = future => Some(output), () = std::future::ready(()) => None }
}

#[tokio::test(start_paused = true)]
async fn a_long_poll_ends_with_data_an_error_or_its_time() {
    let (mut node, len) = filled().await;
    node.apply([partition(1, 2, 9, &[9])]);
    let second = Duration::from_secs(1);
    #[rustfmt::skip]
    let table = [
        // what                    asked                          min bytes  waits
        ("enough is there",        vec![(0, 0, 9999)],            1,         false),
        ("min bytes 0",            vec![(0, 3, 9999)],            0,         false),
        ("idle",                   vec![(0, 3, 9999)],            1,         true),
        ("too little",             vec![(0, 0, 9999)],            99_999,    true),
        ("out of range beside",    vec![(0, 3, 9999), (1, 9, 1)], 1,         false),
        ("other leader beside",    vec![(0, 3, 9999), (2, 0, 1)], 1,         false),
        ("unknown alone",          vec![(7, 0, 9999)],            1,         false),
        ("unknown beside",         vec![(0, 3, 9999), (7, 0, 1)], 1,         true),
        ("nothing asked",          vec![],                        1,         false),
    ];
    for (name, asked, min_bytes, waits) in table {
        let ask = FetchAsk { max_wait: second, min_bytes, ..node.fetch_ask(&asked) };
        let started = node.env.clock.now();
        let answer = node.replicas.fetch(ask).await;
        let waited = node.env.clock.now() - started;
        assert_eq!(waited >= second, waits, "{name}");
        assert_eq!(answer.parts.len(), asked.len());
    }
    assert_eq!(len, batch(&[&"v".repeat(1000)]).len());
}

#[tokio::test(start_paused = true)]
async fn a_sleeping_fetch_wakes_when_its_partition_moves_and_leaves_nothing_when_dropped() {
    let node = Node::with_topic(&[]);
    let ask = || {
        let asked = node.fetch_ask(&[(0, 0, 9999), (1, 0, 9999)]);
        FetchAsk { max_wait: Duration::from_secs(60), min_bytes: 150, ..asked }
    };
    let mut fetch = std::pin::pin!(node.replicas.fetch(ask()));
    assert!(is_ready(fetch.as_mut()).await.is_none());
    let small = batch(&["a"]);
    node.produce(vec![(1, small.clone())]).await;
    assert!(is_ready(fetch.as_mut()).await.is_none(), "not enough yet");
    node.produce(vec![(0, small.clone())]).await;
    node.produce(vec![(0, small.clone())]).await;
    let answer = is_ready(fetch.as_mut()).await.expect("woken");
    assert_eq!(told(&answer), [("ok", 2 * small.len()), ("ok", small.len())]);
    for index in [0, 1] {
        assert!(node.partition(index).locked(|state, _| state.waiters.is_empty()));
    }
    {
        let ask = FetchAsk { min_bytes: 99_999, ..ask() };
        let mut dropped = Box::pin(node.replicas.fetch(ask));
        assert!(is_ready(dropped.as_mut()).await.is_none());
        assert!(!node.partition(0).locked(|state, _| state.waiters.is_empty()));
    }
    assert!(node.partition(0).locked(|state, _| state.waiters.is_empty()));
}

/// Partition, offset, largest size; then min bytes, max bytes, and whether it waits.
type Long<'a> = (&'a str, Vec<(i32, i64, i32)>, i32, i32, bool);

#[tokio::test(start_paused = true)]
async fn a_long_poll_does_not_wait_for_what_limits_hold_back_or_older_segments() {
    let (node, len) = filled().await;
    let l = len as i32;
    let old = Node::with_topic(&[("internal.segment.bytes", "1200")]);
    for _ in 0..3 {
        old.put(batch(&[&"v".repeat(1000)])).await;
    }
    let second = Duration::from_secs(1);
    #[rustfmt::skip]
    let table: [(&Node, Long<'_>); 6] = [
        // what                                 asked                              min bytes  max bytes    waits
        (&node, ("both together are enough",    vec![(0, 2, 9999), (1, 2, 9999)],  l + 500,   l + 500,     false)),
        (&node, ("one alone is not",            vec![(0, 2, 9999)],                l + 500,   l + 500,     true)),
        (&node, ("cut by their own limits",     vec![(0, 2, 500), (1, 2, 500)],    l + 500,   l + 500,     true)),
        (&old,  ("an older segment",            vec![(0, 0, 9999)],                99_999,    1 << 20,     false)),
        (&old,  ("the newest segment",          vec![(0, 2, 9999)],                99_999,    1 << 20,     true)),
        (&old,  ("an older one, nothing fits",  vec![(0, 2, 9999), (0, 0, 1)],     99_999,    1 << 20,     false)),
    ];
    for (node, (name, asked, min_bytes, max_bytes, waits)) in table {
        let ask = FetchAsk { max_wait: second, min_bytes, max_bytes, ..node.fetch_ask(&asked) };
        let started = node.env.clock.now();
        node.replicas.fetch(ask).await;
        assert_eq!(node.env.clock.now() - started >= second, waits, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_sleeping_fetch_is_told_when_one_of_its_topics_goes() {
    let mut node = Node::with_topic(&[]);
    node.create("u", 2, 1, &[]);
    let replicas = node.replicas.clone();
    let mut ask = FetchAsk { max_wait: Duration::from_secs(60), ..node.fetch_ask(&[(0, 0, 9999)]) };
    ask.parts.push(Asked { topic: replicas.named("u"), ..ask.parts[0].clone() });
    let mut fetch = std::pin::pin!(replicas.fetch(ask));
    assert!(is_ready(fetch.as_mut()).await.is_none());
    node.delete(2);
    let answer = is_ready(fetch.as_mut()).await.expect("told at once");
    assert_eq!(told(&answer), [("ok", 0), ("unknown", 0)]);
}

#[tokio::test(start_paused = true)]
async fn a_sleeping_fetch_is_told_when_its_topic_goes() {
    let mut node = Node::with_topic(&[]);
    let replicas = node.replicas.clone();
    let ask = FetchAsk { max_wait: Duration::from_secs(60), ..node.fetch_ask(&[(0, 0, 9999)]) };
    let mut fetch = std::pin::pin!(replicas.fetch(ask));
    assert!(is_ready(fetch.as_mut()).await.is_none());
    node.delete(1);
    let answer = is_ready(fetch.as_mut()).await.expect("told at once");
    assert_eq!(told(&answer), [("unknown", 0)]);
}

#[tokio::test(start_paused = true)]
async fn a_name_follows_the_topic_created_anew_and_an_id_does_not() {
    let mut node = Node::with_topic(&[]);
    let old = node.fetch_ask(&[(0, 0, 9999)]).parts;
    node.delete(1);
    node.create("t", 2, 1, &[]);
    let sent_anew = node.replicas.with_id(old[0].topic.id());
    let anew = vec![Asked { topic: sent_anew, ..old[0].clone() }];
    let ask = FetchAsk { by_topic_id: true, parts: anew, ..node.fetch_ask(&[]) };
    assert_eq!(told(&node.replicas.fetch(ask).await), [("unknown id", 0)]);
    for (by_topic_id, outcome) in [(false, "ok"), (true, "inconsistent id")] {
        let ask = FetchAsk { by_topic_id, parts: old.clone(), ..node.fetch_ask(&[]) };
        assert_eq!(told(&node.replicas.fetch(ask).await), [(outcome, 0)]);
    }
}
