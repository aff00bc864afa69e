//! The hot functions, each alone (`cargo bench --bench hot`): what a Produce of 16 KB passes through
//! on its way to the log, and how a Fetch finds it there. Timings are for comparing two builds on
//! one quiet machine; what guards against getting slower is the `instructions` bench.

#[allow(dead_code, reason = "shared with the other bench, which uses the rest")]
mod support;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ottla::common::{BrokerId, LeaderEpoch, TopicId, TopicPartition};
use ottla::env::{Files, Random};
use ottla::protocol::batch::{CheckedBatch, Codec, Compression, Rules, check, crc_of};
use ottla::protocol::messages::ProduceRequest;
use ottla::storage::{Identity, Log, LogConfig, LogDir, LogDirOptions};
use support::{NOW_MS, TOPIC, batch, produce_frame};

/// As many records of 100 bytes as a Java producer's batch holds.
const RECORDS: usize = 150;
const RECORD_BYTES: usize = 100;
/// The log is cut back to nothing when it is larger, so that a bench fills no disk.
const LOG_BYTES_MAX: u64 = 64 << 20;

fn uncompressed() -> Bytes {
    batch(RECORDS, RECORD_BYTES, Codec::NONE)
}

fn requests(criterion: &mut Criterion) {
    let records = uncompressed();
    let frame = produce_frame(&records);
    let mut group = criterion.benchmark_group("produce 16 KB");
    group.throughput(Throughput::Bytes(records.len() as u64));
    group.bench_function("guard and decode", |bench| {
        bench.iter(|| {
            let (header, mut body) = support::admit(black_box(frame.clone()));
            ProduceRequest::decode(&mut body, header.version).expect("a Produce")
        });
    });
    group.bench_function("crc", |bench| bench.iter(|| crc_of(black_box(&records))));
    group.finish();
}

fn batches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("batch check, 16 KB of records");
    let lz4 = batch(RECORDS, RECORD_BYTES, Codec::of(Compression::Lz4));
    for (name, batch) in [("uncompressed", uncompressed()), ("lz4", lz4)] {
        group.throughput(Throughput::Bytes((RECORDS * RECORD_BYTES) as u64));
        group.bench_function(name, |bench| bench.iter(|| checked(black_box(&batch))));
    }
    group.finish();
}

fn logs(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut log = new_log(dir.path());
    let batch = checked(&uncompressed());
    let mut group = criterion.benchmark_group("log");
    group.throughput(Throughput::Bytes(batch.bytes.len() as u64));
    group.bench_function("append 16 KB", |bench| bench.iter(|| append(&mut log, &batch)));
    while log.size_bytes() < LOG_BYTES_MAX / 2 {
        append(&mut log, &batch);
    }
    let end = log.end_offset();
    group.bench_function("plan a fetch", |bench| {
        bench.iter(|| log.read(black_box(end / 2), end, 1 << 20, true).expect("in the log"));
    });
    group.finish();
}

fn checked(batch: &Bytes) -> CheckedBatch {
    check(batch, &Rules::defaults(NOW_MS)).expect("a sound batch")
}

fn append(log: &mut Log, batch: &CheckedBatch) {
    if log.size_bytes() > LOG_BYTES_MAX {
        log.truncate_fully(0, NOW_MS).expect("a file of ours");
    }
    log.append(batch, LeaderEpoch(0), NOW_MS, None).expect("space on the disk");
}

fn new_log(path: &std::path::Path) -> Log {
    let identity = Identity { cluster_id: None, node_id: BrokerId(1) };
    let options = LogDirOptions::default();
    let dir = LogDir::open(&Files::Real, &Random::seeded(1), path, &identity, &options);
    let config = Arc::new(ArcSwap::from_pointee(LogConfig::default()));
    let topic_id = TopicId(uuid::Uuid::from_u128(1));
    let dir = dir.expect("a log directory");
    dir.create_log(&TopicPartition::new(TOPIC, 0), topic_id, config, NOW_MS).expect("a log")
}

fn short() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
}

criterion_group! { name = hot; config = short(); targets = requests, batches, logs }
criterion_main!(hot);
