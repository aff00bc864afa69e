//! openraft's own suite for log storage and state machine, over ours.

use std::sync::Arc;

use openraft::testing::{StoreBuilder, Suite};
use tempfile::TempDir;
use uuid::Uuid;

use super::log_store::{Log, LogStore};
use super::snapshots::StateStore;
use super::state::State;
use super::tests::{Book, fail_the_test};
use super::types::{MemberId, StorageError, Types};
use super::wal::{Content, FILE_NAME};
use super::writer::{Full, LogFile, Writer, Writes};
use crate::env::Files;
use crate::machine::testing::simulated_env;

impl From<u64> for MemberId {
    fn from(node_id: u64) -> Self {
        Self { node_id: node_id as i32, directory_id: Uuid::nil() }
    }
}

struct OnDisk;

impl StoreBuilder<Types, LogStore, StateStore, TempDir> for OnDisk {
    async fn build(&self) -> Result<(TempDir, LogStore, StateStore), StorageError> {
        let dir = tempfile::tempdir().expect("a directory");
        let (path, member) = (dir.path().join(FILE_NAME), MemberId::from(0));
        let content = Content::default().to_file(member);
        Files::Real.write_atomic(&path, &content).expect("an empty log");
        let lock = Files::Real.lock(&dir.path().join(".lock")).expect("the lock");
        let known = (content.len() as u64, content.len() as u64);
        let full = Full::new(Writes::Inline);
        let file = LogFile::open(Files::Real, path, lock, known, full, fail_the_test());
        let file = file.expect("the log");
        let tasks = simulated_env(1).tasks;
        let writer = Writer::start(file, Writes::Inline, &tasks).expect("a writer");
        let (log, state) = (Log::default(), State::new(Arc::new(Book::default())));
        let (inner, own) = (state.clone(), writer.clone());
        let log_store = LogStore { member, log: log.clone(), state, writer, hinted: 0 };
        let dir_path = dir.path().to_path_buf();
        let state_store = StateStore { state: inner, log, writer: own, dir: dir_path };
        Ok((dir, log_store, state_store))
    }
}

#[test]
fn storage_passes_openrafts_suite() {
    Suite::test_all(OnDisk).expect("every test of the suite");
}
