//! A partition as a journal: what goes in comes out, and only its leader writes.

use super::*;
use crate::common::{ProducerEpoch, ProducerId};
use crate::replica::testing::*;

fn record(value: &str) -> JournalRecord {
    let value = (!value.is_empty()).then(|| Bytes::copy_from_slice(value.as_bytes()));
    JournalRecord { key: Some(Bytes::from_static(b"key")), value }
}

fn plain(values: &[&str]) -> Batch {
    let records = values.iter().map(|value| record(value)).collect();
    Batch { write: Write::Plain, records, timestamp_ms: NOW_MS }
}

#[tokio::test(start_paused = true)]
async fn batches_of_every_kind_are_read_back_in_place() {
    let node = Node::with_topic(&[]);
    let journal = PartitionJournal::new(node.replicas.clone(), node.partition(0));
    let (producer_id, producer_epoch) = (ProducerId(5), ProducerEpoch(0));
    let proof = Proof::Unneeded;
    let transactional = Write::Transactional { producer_id, producer_epoch, proof };
    let (commit, coordinator_epoch, transaction_version) = (true, 3, 0);
    let marker = Write::Marker {
        producer_id,
        producer_epoch,
        commit,
        coordinator_epoch,
        transaction_version,
    };
    assert_eq!(journal.append(0, 0, plain(&["a", ""])), Ok(2));
    let open = Batch { write: transactional, records: vec![record("b")], timestamp_ms: NOW_MS };
    assert_eq!(journal.append(0, 2, open), Ok(3));
    let end = Batch { write: marker, records: Vec::new(), timestamp_ms: NOW_MS };
    assert_eq!(journal.append(0, 3, end), Ok(4));
    assert_eq!(*journal.committed().borrow(), 4);
    let entry = |at, kind, record| ReadEntry { position: Position(at), kind, record };
    let all = [
        entry(0, EntryKind::Plain, Some(record("a"))),
        entry(1, EntryKind::Plain, Some(record(""))),
        entry(2, transactional.kind(), Some(record("b"))),
        entry(3, marker.kind(), None),
    ];
    for from in 0..=4 {
        let read = journal.read(from, 1 << 20).unwrap();
        assert_eq!(read, all[from as usize..], "from {from}");
        let piece = journal.read(from, 1).unwrap();
        assert_eq!(piece.first(), all.get(from as usize), "at least one");
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_current_leader_appends_and_only_at_the_end() {
    let mut node = Node::with_topic(&[]);
    let journal = PartitionJournal::new(node.replicas.clone(), node.partition(0));
    let leadership = journal.leadership();
    assert_eq!(*leadership.borrow(), Leadership { epoch: 0, leads: true });
    assert_eq!(journal.ready(), Ok(()));
    assert_eq!(journal.append(0, 0, plain(&["a"])), Ok(1));
    let moved = JournalError::Moved { expected: 0, found: 1 };
    assert_eq!(journal.append(0, 0, plain(&["b"])), Err(moved));
    node.apply([change(1, 0, 1, None)]);
    assert_eq!(*leadership.borrow(), Leadership { epoch: 1, leads: true });
    assert_eq!(journal.append(0, 1, plain(&["b"])), Err(JournalError::NotLeader { asked: 0 }));
    assert_eq!(journal.append(1, 1, plain(&["b"])), Ok(2));
    node.delete(1);
    assert_eq!(*leadership.borrow(), Leadership { epoch: 1, leads: false });
    assert_eq!(journal.ready(), Err(NotReady::NotLeader));
}

#[tokio::test(start_paused = true)]
async fn a_journal_waits_for_its_followers_and_needs_enough_of_them() {
    let mut node = Node::with_topic(&[("min.insync.replicas", "2")]);
    node.apply([partition(1, 2, 1, &[1, 2])]);
    let journal = PartitionJournal::new(node.replicas.clone(), node.partition(2));
    assert_eq!(journal.ready(), Ok(()));
    assert_eq!(journal.append(0, 0, plain(&["a"])), Ok(1));
    assert_eq!((*journal.committed().borrow(), journal.end_offset()), (0, 1));
    node.apply([change(1, 2, -2, Some(&[1]))]);
    assert_eq!(journal.ready(), Err(NotReady::TooFewReplicas));
    node.apply([config("t", "min.insync.replicas", Some("1"))]);
    assert_eq!(journal.ready(), Ok(()));
    assert_eq!(*journal.committed().borrow(), 1, "the config freed the high watermark");
}

#[tokio::test(start_paused = true)]
async fn what_a_producer_may_not_write_leaves_the_journal_as_it_was() {
    let node = Node::with_topic(&[]);
    let journal = PartitionJournal::new(node.replicas.clone(), node.partition(0));
    let write = |epoch: i16, proof| Batch {
        write: Write::Transactional {
            producer_id: ProducerId(5),
            producer_epoch: ProducerEpoch(epoch),
            proof,
        },
        records: vec![record("a")],
        timestamp_ms: NOW_MS,
    };
    let end = |epoch: i16, coordinator_epoch| Batch {
        write: Write::Marker {
            producer_id: ProducerId(5),
            producer_epoch: ProducerEpoch(epoch),
            commit: true,
            coordinator_epoch,
            transaction_version: 2,
        },
        records: Vec::new(),
        timestamp_ms: NOW_MS,
    };
    let refused = |fault| Err(JournalError::Refused(fault));
    let nobody_asked = write(1, Proof::Guard(Some(1)));
    assert_eq!(journal.append(0, 0, nobody_asked), refused(ProducerFault::NoTransaction));
    assert_eq!(journal.append(0, 0, write(1, Proof::Unneeded)), Ok(1));
    assert_eq!(journal.append(0, 1, write(1, Proof::Guard(None))), Ok(2), "it is open");
    assert_eq!(journal.append(0, 2, end(1, 0)), refused(ProducerFault::StaleEpoch), "late");
    assert_eq!(journal.append(0, 2, end(2, 4)), Ok(3));
    assert_eq!(journal.append(0, 3, end(2, 4)), Ok(4), "said twice");
    assert_eq!(journal.append(0, 4, end(3, 3)), refused(ProducerFault::StaleCoordinator));
    assert_eq!(journal.append(0, 4, write(1, Proof::Unneeded)), refused(ProducerFault::StaleEpoch));
    assert_eq!(journal.end_offset(), 4);
}
