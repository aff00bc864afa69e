//! ListOffsets (C020, C022, C024), DeleteRecords and OffsetForLeaderEpoch (C098) as tables.

use super::*;
use crate::protocol::batch::{BatchBuilder, Codec, Compression};
use crate::replica::testing::*;

fn find(node: &Node, number: i64) -> (Offset, i64) {
    let lookup = Lookup::from_number(number).unwrap();
    let found = node.partition(0).list_offset(lookup, Isolation::ReadUncommitted, None).unwrap();
    (found.offset, found.timestamp)
}

#[tokio::test(start_paused = true)]
async fn a_timestamp_finds_the_first_record_at_or_after_it() {
    let node = Node::with_topic(&[]);
    let t = NOW_MS;
    node.put(stamped(&[(t + 2, "a"), (t + 4, "b")])).await;
    node.put(stamped(&[(t + 6, "c"), (t + 8, "d")])).await;
    let expected = [0, 0, 1, 1, 2, 2, 3, 3];
    for (at, offset) in expected.into_iter().enumerate() {
        let asked = t + 1 + at as i64;
        let stamp = t + 2 * (offset + 1);
        assert_eq!(find(&node, asked), (offset, stamp), "{at}");
    }
    assert_eq!(find(&node, t + 9), (-1, -1));
    assert_eq!(find(&node, -3), (3, t + 8));
}

#[tokio::test(start_paused = true)]
async fn unordered_and_compressed_records_are_found_by_their_own_time() {
    for codec in [Codec::NONE, Codec::of(Compression::Gzip)] {
        let node = Node::with_topic(&[]);
        let mut builder = BatchBuilder::new(0).codec(codec);
        for stamp in [10, 5, 20, 7] {
            builder.push(NOW_MS + stamp, None, Some(b"v"), &[]);
        }
        let mut sent = builder.build().to_vec();
        sent[35..43].fill(0); // the producer's own maximum is not trusted
        let crc = crate::protocol::batch::crc_of(&sent).to_be_bytes();
        sent[17..21].copy_from_slice(&crc);
        node.put(sent.into()).await;
        #[rustfmt::skip]
        let table = [(6, (0, 10)), (11, (2, 20)), (20, (2, 20)), (21, (-1, -1)), (0, (0, 10))];
        for (asked, (offset, stamp)) in table {
            let stamp = if stamp < 0 { stamp } else { NOW_MS + stamp };
            assert_eq!(find(&node, NOW_MS + asked), (offset, stamp), "{asked} {codec:?}");
        }
        assert_eq!(find(&node, -3), (2, NOW_MS + 20));
    }
}

#[tokio::test(start_paused = true)]
async fn special_lookups_of_an_empty_a_full_and_a_trimmed_log() {
    let mut node = Node::with_topic(&[]);
    #[rustfmt::skip]
    let empty = [(-1, 0), (-2, 0), (-3, -1), (-4, 0), (-5, -1), (-6, -1), (0, -1)];
    for (number, offset) in empty {
        assert_eq!(find(&node, number), (offset, -1), "empty, {number}");
    }
    node.put(batch(&["a"; 6])).await;
    node.apply([change(1, 0, 1, None)]);
    node.put(batch(&["a"; 4])).await;
    assert_eq!(node.partition(0).delete_records(4).unwrap(), 4);
    #[rustfmt::skip]
    let trimmed = [(-1, (10, 1)), (-2, (4, 0)), (-4, (4, 0)), (-5, (-1, -1)), (-6, (-1, -1)), (0, (4, 0))];
    for (number, (offset, epoch)) in trimmed {
        let lookup = Lookup::from_number(number).unwrap();
        let isolation = Isolation::ReadCommitted;
        let found = node.partition(0).list_offset(lookup, isolation, None).unwrap();
        assert_eq!((found.offset, found.leader_epoch.0), (offset, epoch), "trimmed, {number}");
    }
    assert!(Lookup::from_number(-7).is_err());
}

#[tokio::test(start_paused = true)]
async fn lookups_are_fenced_by_epoch_and_wait_for_a_new_leader_to_know() {
    let mut node = Node::with_topic(&[]);
    node.apply([partition(1, 2, 1, &[1, 2])]);
    let ask = node.produce_ask(1, vec![(2, batch(&["a"]))]);
    let _ = node.replicas.produce(ask).await;
    node.apply([change(1, 2, 1, None)]);
    let list = |partition: i32, lookup, epoch: Option<i32>| {
        let partition = node.partition(partition);
        let epoch = epoch.map(LeaderEpoch);
        let found = partition.list_offset(lookup, Isolation::ReadUncommitted, epoch);
        found.map_or_else(|error| word(&error), |_| "ok")
    };
    #[rustfmt::skip]
    let table = [
        // partition  lookup                   epoch    answer
        (0,           Lookup::Latest,          Some(0), "ok"),
        (0,           Lookup::Latest,          Some(1), "unknown epoch"),
        (2,           Lookup::Latest,          Some(0), "fenced epoch"),
        (2,           Lookup::Latest,          None,    "not available"),
        (2,           Lookup::AtOrAfter(0),    None,    "not available"),
        (2,           Lookup::Earliest,        None,    "ok"),
    ];
    for (partition, lookup, epoch, answer) in table {
        assert_eq!(list(partition, lookup, epoch), answer, "{partition} {lookup:?} {epoch:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn records_are_deleted_up_to_the_high_watermark_and_never_back() {
    let mut node = Node::with_topic(&[]);
    node.put(batch(&["a"; 5])).await;
    #[rustfmt::skip]
    let table = [(3, Ok(3)), (1, Ok(3)), (6, Err("out of range")), (-2, Err("out of range")), (-1, Ok(5))];
    for (before, answer) in table {
        let got = node.partition(0).delete_records(before).map_err(|error| word(&error));
        assert_eq!(got, answer, "{before}");
    }
    for (policy, answer) in
        [("compact", Err("not deletable")), ("compact,delete", Ok(5)), ("", Ok(5))]
    {
        node.apply([config("t", "cleanup.policy", Some(policy))]);
        let got = node.partition(0).delete_records(5).map_err(|error| word(&error));
        assert_eq!(got, answer, "`{policy}`");
    }
}

#[tokio::test(start_paused = true)]
async fn an_epoch_ends_where_the_next_begins() {
    let mut node = Node::with_topic(&[]);
    node.put(batch(&["a"; 10])).await;
    node.apply([change(1, 0, 1, None)]);
    node.put(batch(&["b"; 5])).await;
    let ask = |epoch, current: Option<i32>| {
        let partition = node.partition(0);
        let found = partition.offset_for_leader_epoch(LeaderEpoch(epoch), current.map(LeaderEpoch));
        found.map(|end| end.map(|(epoch, end)| (epoch.0, end))).map_err(|error| word(&error))
    };
    #[rustfmt::skip]
    let table = [
        // epoch  current   answer
        (0,       None,     Ok(Some((0, 10)))),
        (1,       None,     Ok(Some((1, 15)))),
        (2,       None,     Ok(None)),
        (1,       Some(0),  Err("fenced epoch")),
        (1,       Some(1),  Ok(Some((1, 15)))),
        (1,       Some(2),  Err("unknown epoch")),
    ];
    for (epoch, current, answer) in table {
        assert_eq!(ask(epoch, current), answer, "{epoch} {current:?}");
    }
}
