//! The quorum from outside: laws of the seam, restarts, crashes, snapshots.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use tempfile::TempDir;
use uuid::Uuid;

use super::batches;
use super::node::{OnFatal, Quorum, QuorumConfig};
use super::types::{MemberId, Vote};
use super::wal::FILE_NAME;
use super::{QuorumError, Writes};
use crate::common::{BrokerId, Offset};
use crate::env::Files;
use crate::machine::laws::{Ask, Tally, journal_keeps_its_laws};
use crate::machine::testing::{on_virtual_time, simulated_env};
use crate::machine::{
    Batch, CommitSink, Journal, JournalError, JournalRecord, NotReady, ReadEntry, Runtime, Write,
};

/// A sink that keeps what it was told: values in order, and how it got them.
#[derive(Default)]
pub(super) struct Book {
    values: Mutex<Vec<(Offset, String)>>,
    installs: AtomicUsize,
}

impl Book {
    pub(super) fn values(&self) -> Vec<String> {
        self.values.lock().expect("values").iter().map(|(_, value)| value.clone()).collect()
    }
}

impl CommitSink for Book {
    fn committed(&self, entries: &[ReadEntry]) {
        let mut values = self.values.lock().expect("values");
        for entry in entries {
            let record = entry.record.clone().expect("plain records");
            let at = entry.position.0;
            assert!(values.last().is_none_or(|(last, _)| *last < at), "{at} told twice");
            values.push((at, text(&record)));
        }
    }

    fn snapshot(&self) -> Vec<JournalRecord> {
        let values = self.values.lock().expect("values");
        values.iter().map(|(_, value)| record(value)).collect()
    }

    fn install(&self, records: &[JournalRecord], end: Offset) {
        self.installs.fetch_add(1, Ordering::Relaxed);
        let first = end - records.len() as Offset;
        let numbered = (first..).zip(records).map(|(at, record)| (at, text(record)));
        *self.values.lock().expect("values") = numbered.collect();
    }
}

fn text(record: &JournalRecord) -> String {
    String::from_utf8_lossy(record.value.as_deref().unwrap_or_default()).into_owned()
}

fn record(value: &str) -> JournalRecord {
    JournalRecord { key: None, value: Some(Bytes::copy_from_slice(value.as_bytes())) }
}

pub(super) fn batch(values: &[String]) -> Batch {
    let records = values.iter().map(|value| record(value)).collect();
    Batch { write: Write::Plain, records, timestamp_ms: 1_700_000_000_000 }
}

pub(super) fn fail_the_test() -> OnFatal {
    Arc::new(|error| panic!("fatal: {error}"))
}

pub(super) fn config(dir: &Path) -> QuorumConfig {
    QuorumConfig {
        dir: dir.to_path_buf(),
        node_id: BrokerId(1),
        directory_id: Uuid::from_u128(7),
        address: "localhost:9093".into(),
        first: vec![batch(&["first".into(), "second".into()])],
        writes: Writes::Inline,
        on_fatal: fail_the_test(),
    }
}

pub(super) async fn open(config: QuorumConfig) -> Result<(Arc<Quorum>, Arc<Book>), QuorumError> {
    let book = Arc::new(Book::default());
    let quorum = Quorum::open(config, simulated_env(1), book.clone()).await?;
    Ok((quorum, book))
}

async fn open_in(dir: &Path) -> (Arc<Quorum>, Arc<Book>) {
    open(config(dir)).await.expect("opened")
}

/// Appends one record after the other without waiting, then waits for all.
pub(super) async fn append_all(quorum: &Quorum, values: &[String]) {
    let epoch = quorum.leadership().borrow().epoch;
    let mut end = quorum.end_offset();
    for value in values {
        let batch = batch(std::slice::from_ref(value));
        end = quorum.append(epoch, end, batch).expect("appended");
    }
    let mut committed = quorum.committed();
    committed.wait_for(|committed| *committed == end).await.expect("committed");
}

pub(super) fn numbered(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| format!("value {n}")).collect()
}

pub(super) fn with_first(more: &[String]) -> Vec<String> {
    [&["first".to_owned(), "second".to_owned()], more].concat()
}

/// What the disk would hold if the process were killed now.
fn disk_of(dir: &Path) -> TempDir {
    let copy = tempfile::tempdir().expect("a directory");
    for entry in Files::Real.list(dir).expect("listed") {
        let content = Files::Real.read(&dir.join(&entry.name)).expect("read");
        Files::Real.write(&copy.path().join(&entry.name), &content).expect("copied");
    }
    copy
}

fn checkpoints(dir: &Path) -> Vec<String> {
    let names = Files::Real.list(dir).expect("listed").into_iter().map(|entry| entry.name);
    names.filter(|name| name.ends_with(".checkpoint")).collect()
}

#[test]
fn the_quorum_keeps_the_laws_of_journals() {
    for writes in [Writes::Inline, Writes::OnThread] {
        let dir = tempfile::tempdir().expect("a directory");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let config = QuorumConfig { writes, ..config(dir.path()) };
            let (quorum, _) = open(config).await.expect("opened");
            journal_keeps_its_laws(quorum.clone()).await;
            quorum.shutdown().await.expect("closed");
        });
    }
}

#[test]
fn a_fresh_directory_leads_at_once_with_its_first_records_committed() {
    let dir = tempfile::tempdir().expect("a directory");
    on_virtual_time(async {
        let (quorum, book) = open_in(&dir.path().join("made/too")).await;
        assert_eq!(book.values(), ["first", "second"]);
        assert_eq!(quorum.ready(), Ok(()));
        assert_eq!((quorum.end_offset(), quorum.start_offset()), (2, 0));
        assert_eq!(quorum.leadership().borrow().epoch, 1);
    });
}

#[test]
fn a_restart_keeps_all_that_was_committed() {
    let dir = tempfile::tempdir().expect("a directory");
    let values = numbered(0..1_000);
    for (round, chunk) in values.chunks(250).enumerate() {
        on_virtual_time(async {
            let (quorum, book) = open_in(dir.path()).await;
            assert_eq!(book.values(), with_first(&values[..round * 250]));
            append_all(&quorum, chunk).await;
            let closed = round % 2 == 0;
            if closed {
                quorum.shutdown().await.expect("closed");
                assert_eq!(quorum.ready(), Err(NotReady::NotLeader));
            }
        });
    }
}

#[test]
fn killed_at_any_moment_it_has_what_it_acknowledged() {
    let dir = tempfile::tempdir().expect("a directory");
    on_virtual_time(async {
        let (quorum, _) = open_in(dir.path()).await;
        let mut acknowledged = Vec::new();
        for chunk in numbered(0..60).chunks(20) {
            append_all(&quorum, chunk).await;
            acknowledged.extend_from_slice(chunk);
            let disk = disk_of(dir.path());
            let (after, book) = open_in(disk.path()).await;
            assert_eq!(book.values(), with_first(&acknowledged));
            append_all(&after, &["goes on".into()]).await;
        }
    });
}

#[test]
fn a_torn_end_is_cut_and_the_log_goes_on_from_there() {
    let dir = tempfile::tempdir().expect("a directory");
    on_virtual_time(async {
        let (quorum, _) = open_in(dir.path()).await;
        append_all(&quorum, &numbered(0..1)).await;
        let whole = Files::Real.read(&dir.path().join(FILE_NAME)).expect("read").len();
        append_all(&quorum, &numbered(1..2)).await;
        let file = Files::Real.read(&dir.path().join(FILE_NAME)).expect("read");
        for cut in whole..file.len() {
            let disk = disk_of(dir.path());
            Files::Real.write(&disk.path().join(FILE_NAME), &file[..cut]).expect("cut");
            let (after, book) = open_in(disk.path()).await;
            assert_eq!(book.values(), with_first(&numbered(0..1)), "cut at {cut}");
            append_all(&after, &numbered(1..3)).await;
            assert_eq!(book.values(), with_first(&numbered(0..3)), "cut at {cut}");
        }
    });
}

#[test]
fn what_was_durable_and_is_spoilt_is_refused_by_name() {
    let dir = tempfile::tempdir().expect("a directory");
    on_virtual_time(async {
        let (quorum, _) = open_in(dir.path()).await;
        append_all(&quorum, &numbered(0..1)).await;
        append_all(&quorum, &numbered(1..2)).await;
        let disk = disk_of(dir.path());
        let path = disk.path().join(FILE_NAME);
        let mut file = Files::Real.read(&path).expect("read");
        let at = file.windows(7).position(|window| window == b"value 0").expect("written");
        file[at] ^= 1;
        Files::Real.write(&path, &file).expect("spoilt");
        let refused = open(config(disk.path())).await.err();
        assert!(matches!(refused, Some(QuorumError::Damaged { .. })), "{refused:?}");
    });
}

#[test]
fn a_directory_of_another_node_or_in_use_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    on_virtual_time(async {
        let (quorum, _) = open_in(dir.path()).await;
        let refused = open(config(dir.path())).await.err();
        assert!(matches!(refused, Some(QuorumError::InUse { .. })), "{refused:?}");
        quorum.shutdown().await.expect("closed");
        let other = QuorumConfig { node_id: BrokerId(2), ..config(dir.path()) };
        let refused = open(other).await.err().map(|error| error.to_string());
        let expected = "belongs to node 1 with directory id AAAAAAAAAAAAAAAAAAAABw, \
                        this is node 2 with directory id AAAAAAAAAAAAAAAAAAAABw";
        assert!(refused.as_ref().is_some_and(|text| text.ends_with(expected)), "{refused:?}");
    });
}

#[test]
fn a_snapshot_takes_the_place_of_the_log_before_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let values = numbered(0..400);
    on_virtual_time(async {
        let (quorum, _) = open_in(dir.path()).await;
        for value in &values[..300] {
            append_all(&quorum, std::slice::from_ref(value)).await;
        }
        let size = || Files::Real.read(&dir.path().join(FILE_NAME)).expect("read").len();
        let before = size();
        quorum.snapshot().await.expect("asked for");
        let clock = simulated_env(1).clock;
        clock.sleep(Duration::from_secs(1)).await;
        assert!(size() < before / 2, "the log before the snapshot is still there");
        assert_eq!(checkpoints(dir.path()), ["00000000000000000302-0000000001.checkpoint"]);
        let start = quorum.start_offset();
        assert!(start > 100 && start < 302, "starts at {start}");
        assert_eq!(quorum.read(start, 1).expect("read")[0].position.0, start);
        let gone = quorum.read(start - 1, 1);
        assert!(matches!(gone, Err(JournalError::Storage(_))), "{gone:?}");
        append_all(&quorum, &values[300..]).await;
    });
    on_virtual_time(async {
        let (quorum, book) = open_in(dir.path()).await;
        assert_eq!(book.values(), with_first(&values));
        assert_eq!(book.installs.load(Ordering::Relaxed), 1);
        assert_eq!((quorum.start_offset(), quorum.end_offset()), (302, 402));
        quorum.snapshot().await.expect("asked for");
        simulated_env(1).clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(checkpoints(dir.path()), ["00000000000000000402-0000000001.checkpoint"]);
        quorum.shutdown().await.expect("closed");
    });
    on_virtual_time(async {
        let (quorum, book) = open_in(dir.path()).await;
        assert_eq!(book.values(), with_first(&values));
        assert_eq!(quorum.end_offset(), 402);
    });
}

#[test]
fn a_missing_snapshot_or_log_is_refused_and_an_orphan_removed() {
    let dir = tempfile::tempdir().expect("a directory");
    on_virtual_time(async {
        let (quorum, _) = open_in(dir.path()).await;
        append_all(&quorum, &numbered(0..5)).await;
        let disk = disk_of(dir.path());
        let orphan = disk.path().join("00000000000000000099-0000000001.checkpoint");
        Files::Real.write(&orphan, b"never referred to").expect("written");
        let (_, book) = open_in(disk.path()).await;
        assert_eq!(book.values(), with_first(&numbered(0..5)));
        assert!(checkpoints(disk.path()).is_empty());

        quorum.snapshot().await.expect("asked for");
        simulated_env(1).clock.sleep(Duration::from_secs(1)).await;
        let disk = disk_of(dir.path());
        let only = checkpoints(disk.path()).remove(0);
        Files::Real.remove_file(&disk.path().join(only)).expect("removed");
        let refused = open(config(disk.path())).await.err();
        assert!(matches!(refused, Some(QuorumError::Io { .. })), "{refused:?}");

        let disk = disk_of(dir.path());
        Files::Real.remove_file(&disk.path().join(FILE_NAME)).expect("removed");
        let refused = open(config(disk.path())).await.err();
        assert!(matches!(refused, Some(QuorumError::Damaged { .. })), "{refused:?}");
    });
}

#[test]
fn appends_of_one_moment_share_a_raft_entry() {
    let dir = tempfile::tempdir().expect("a directory");
    on_virtual_time(async {
        let (quorum, book) = open_in(dir.path()).await;
        append_all(&quorum, &numbered(0..500)).await;
        assert_eq!(book.values(), with_first(&numbered(0..500)));
        let entries = quorum.last_index();
        assert!(entries <= 4, "{entries} entries for 500 appends");
        assert_eq!(quorum.read(250, 1).expect("read").len(), 1);
    });
}

#[test]
fn an_empty_append_changes_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    on_virtual_time(async {
        let (quorum, _) = open_in(dir.path()).await;
        assert_eq!(quorum.append(1, 2, batch(&[])), Ok(2));
        append_all(&quorum, &numbered(0..1)).await;
        assert_eq!(quorum.end_offset(), 3);
    });
}

#[test]
fn a_vote_that_was_not_confirmed_leads_to_an_election_in_a_new_epoch() {
    let dir = tempfile::tempdir().expect("a directory");
    on_virtual_time(async {
        let (quorum, _) = open_in(dir.path()).await;
        append_all(&quorum, &numbered(0..3)).await;
        let member = MemberId { node_id: 1, directory_id: Uuid::from_u128(7) };
        let file = quorum.log_as_voted(Vote::new(4, member), member);
        let disk = tempfile::tempdir().expect("a directory");
        Files::Real.write(&disk.path().join(FILE_NAME), &file).expect("written");
        let (after, book) = open_in(disk.path()).await;
        assert_eq!(after.leadership().borrow().epoch, 5);
        assert_eq!(book.values(), with_first(&numbered(0..3)));
        append_all(&after, &numbered(3..5)).await;
        assert_eq!(book.values(), with_first(&numbered(0..5)));
        assert_eq!(book.installs.load(Ordering::Relaxed), 0);
    });
}

/// Somebody else's batch gets in first, as one of an earlier, doubtful proposal would.
#[test]
fn a_batch_that_does_not_fit_any_more_does_nothing_and_closes_the_gate_for_a_moment() {
    let dir = tempfile::tempdir().expect("a directory");
    on_virtual_time(async {
        let (quorum, book) = open_in(dir.path()).await;
        let mut leadership = quorum.leadership();
        leadership.borrow_and_update();
        let ahead = quorum.propose_beside(batches::encode(&[record("ahead")], 0, 1, 2));
        let end = async { quorum.append(1, 2, batch(&["late".into()])) };
        let (ahead, end) = tokio::join!(ahead, end);
        assert!(ahead.fitted);
        leadership.changed().await.expect("told");
        quorum.leadership().wait_for(|now| now.leads).await.expect("leads again");
        assert_eq!(book.values(), with_first(&["ahead".into()]));
        assert_eq!((end, quorum.end_offset()), (Ok(3), 3));
        append_all(&quorum, &numbered(0..1)).await;
    });
}

#[test]
fn a_doubtful_proposal_that_comes_through_late_moves_the_end() {
    let dir = tempfile::tempdir().expect("a directory");
    on_virtual_time(async {
        let (quorum, book) = open_in(dir.path()).await;
        let mut leadership = quorum.leadership();
        leadership.borrow_and_update();
        let late = quorum.propose_beside(batches::encode(&[record("late")], 0, 1, 2)).await;
        assert!(late.fitted);
        leadership.changed().await.expect("told, so that the machine is loaded again");
        assert_eq!(quorum.end_offset(), 3);
        append_all(&quorum, &numbered(0..1)).await;
        let old_epoch = batches::encode(&[record("of another epoch")], 0, 2, 4);
        assert!(!quorum.propose_beside(old_epoch).await.fitted);
        let other_base = batches::encode(&[record("of another state")], 0, 1, 5);
        assert!(!quorum.propose_beside(other_base).await.fitted);
        assert_eq!(book.values(), with_first(&["late".into(), "value 0".into()]));
    });
}

#[test]
fn a_machine_over_the_quorum_survives_the_process() {
    let dir = tempfile::tempdir().expect("a directory");
    for start in [0, 30] {
        on_virtual_time(async {
            let config = QuorumConfig { first: Vec::new(), ..config(dir.path()) };
            let (quorum, _) = open(config).await.expect("opened");
            let (env, world) = (simulated_env(1), Arc::new(ArcSwap::from_pointee(1)));
            let ignore = Box::new(|_, _| {});
            let runtime =
                Runtime::new(Tally::default(), quorum.clone(), env.clone(), world, ignore);
            env.tasks.spawn_control(runtime.run());
            runtime.until_leading().await.expect("leads");
            assert_eq!(runtime.read(|tally| tally.sum).await, Ok(start));
            let (first, second) = (runtime.ask(Ask::Add(10)), runtime.ask(Ask::Add(20)));
            assert_eq!(second.await.map(|(sum, _)| sum), Ok(start + 30));
            assert_eq!(first.await.map(|(sum, _)| sum), Ok(start + 10));
        });
    }
}
