//! Behaviours of the simulated files, and of both sides of the door.

use super::*;
use crate::env::{File, Files};

const DIR: &str = "/data";

fn disk() -> (SimFiles, Files) {
    let sim = SimFiles::default();
    let files = Files::Sim(sim.clone());
    files.create_dir_all(Path::new(DIR)).unwrap();
    files.sync_dir(Path::new("/")).unwrap();
    (sim, files)
}

fn path(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

fn make(files: &Files, name: &str, content: &[u8]) -> File {
    let file = files.open(&path(name), OpenMode::CreateNew).unwrap();
    file.write_all_at(&[content], 0).unwrap();
    file
}

#[test]
fn what_was_synced_with_its_name_survives_every_crash() {
    for seed in 0..64 {
        let (sim, files) = disk();
        let file = make(&files, "a", b"safe");
        file.sync_data().unwrap();
        files.sync_dir(Path::new(DIR)).unwrap();
        file.write_all_at(&[b"more"], 4).unwrap();
        sim.crash(seed);
        assert_eq!(&files.read(&path("a")).unwrap()[..4], b"safe", "seed {seed}");
    }
}

#[test]
fn what_was_not_synced_is_sometimes_lost_and_sometimes_kept() {
    let outcomes = (0..64).map(|seed| {
        let (sim, files) = disk();
        make(&files, "a", &[7; 2_000]);
        files.sync_dir(Path::new(DIR)).unwrap();
        sim.crash(seed);
        files.read(&path("a")).unwrap()
    });
    let outcomes: std::collections::BTreeSet<Vec<u8>> = outcomes.collect();
    assert!(outcomes.contains(&vec![]) && outcomes.contains(&vec![7; 2_000]));
    assert!(outcomes.len() > 4, "some are torn: {}", outcomes.len());
}

#[test]
fn a_kill_keeps_the_page_cache_and_frees_the_lock() {
    let (sim, files) = disk();
    let lock = files.lock(&path(".lock")).unwrap();
    assert!(files.lock(&path(".lock")).is_err());
    let file = make(&files, "a", b"cached");
    sim.kill();
    assert_eq!(files.read(&path("a")).unwrap(), b"cached");
    assert!(file.write_all_at(&[b"x"], 0).is_err(), "a handle of before is stale");
    let again = files.lock(&path(".lock")).unwrap();
    drop(lock);
    assert!(files.lock(&path(".lock")).is_err(), "the old guard does not free the new lock");
    drop(again);
    assert!(files.lock(&path(".lock")).is_ok());
}

#[test]
fn atomic_replacement_leaves_old_or_new() {
    let seen = (0..64).map(|seed| {
        let (sim, files) = disk();
        files.write_atomic(&path("a"), b"old").unwrap();
        sim.fail(FaultOn::Sync, 1, 5); // the directory's fsync: the rename may be lost
        assert!(files.write_atomic(&path("a"), b"new").is_err());
        sim.crash(seed);
        files.read(&path("a")).unwrap()
    });
    for content in seen {
        assert!(content == b"old" || content == b"new", "{content:?}");
    }
}

#[test]
fn faults_hit_the_nth_call_once_and_tear_writes() {
    let (sim, files) = disk();
    let file = make(&files, "a", b"");
    sim.fail(FaultOn::Write, 1, 28);
    file.write_all_at(&[b"ab", b"cd"], 0).unwrap();
    let error = file.write_all_at(&[b"efgh"], 4).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(files.read(&path("a")).unwrap(), b"abcdef");
    file.write_all_at(&[b"efgh"], 4).unwrap();
    assert_eq!(files.read(&path("a")).unwrap(), b"abcdefgh");
}

#[test]
fn a_failed_fsync_loses_what_it_should_have_saved() {
    let (sim, files) = disk();
    let file = make(&files, "a", b"lost");
    files.sync_dir(Path::new(DIR)).unwrap();
    sim.fail(FaultOn::Sync, 0, 5);
    assert!(file.sync_data().is_err());
    file.sync_data().unwrap();
    sim.crash(0);
    assert_eq!(files.read(&path("a")).unwrap(), b"");
}

#[test]
fn both_sides_of_the_door_do_the_same() {
    let real = tempfile::tempdir().unwrap();
    let (_, sim) = disk();
    for (files, dir) in [(Files::Real, real.path()), (sim, Path::new(DIR))] {
        let file = files.open(&dir.join("b"), OpenMode::Create).unwrap();
        file.write_all_at(&[b"01", b"", b"2345", b"67", b"89"], 0).unwrap();
        let mut out = vec![b'>'];
        file.read_append(&mut out, 2, 3).unwrap();
        assert_eq!(out, b">234");
        assert_eq!(
            file.read_append(&mut out, 8, 3).unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
        assert_eq!(out, b">234");
        let mut buffer = [0; 4];
        assert_eq!(file.read_at(&mut buffer, 8).unwrap(), 2);
        assert_eq!(&buffer, b"89\0\0");
        file.set_len(5).unwrap();
        assert_eq!(files.size_of(&dir.join("b")).unwrap(), 5);
        files.sync_many(&[&file, &file, &file]).unwrap();
        files.create_dir_all(&dir.join("d/e")).unwrap();
        files.write(&dir.join("d/e/f"), b"x").unwrap();
        files.rename(&dir.join("d"), &dir.join("g")).unwrap();
        assert_eq!(files.read(&dir.join("g/e/f")).unwrap(), b"x");
        let names: Vec<String> = files.list(dir).unwrap().into_iter().map(|e| e.name).collect();
        assert_eq!(names, ["b", "g"]);
        files.remove_dir_all(&dir.join("g")).unwrap();
        assert!(!files.exists(&dir.join("g/e/f")) && files.exists(&dir.join("b")));
        assert!(files.open(&dir.join("b"), OpenMode::CreateNew).is_err());
        assert!(files.open(&dir.join("c"), OpenMode::Read).is_err());
    }
}
