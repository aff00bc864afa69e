//! The hot functions, each alone (`cargo bench --bench hot`): what a Produce of 16 KB passes through
//! on its way to the log, how a Fetch finds it there by offset and by time, and how both are
//! answered. Timings are for comparing two builds on
//! one quiet machine; what guards against getting slower is the `instructions` bench.

#[allow(dead_code, reason = "shared with the other bench, which uses the rest")]
mod support;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ottla::common::{BrokerId, LeaderEpoch, Proof, TopicId, TopicPartition};
use ottla::env::{Files, Random};
use ottla::protocol::StrBytes;
use ottla::protocol::batch::{
    BatchBuilder, CheckedBatch, Codec, Compression, Rules, check, crc_of,
};
use ottla::protocol::messages::{FetchResponse, ProduceRequest, ProduceResponse, fetch, produce};
use ottla::protocol::wire::{Pieces, Stored, WireResponse};
use ottla::storage::{Identity, Log, LogConfig, LogDir, LogDirOptions};
use support::{NOW_MS, TOPIC, batch, produce_frame};

/// As many records of 100 bytes as a Java producer's batch holds.
const RECORDS: usize = 150;
const RECORD_BYTES: usize = 100;
/// The log is cut back to nothing when it is larger, so that a bench fills no disk.
const LOG_BYTES_MAX: u64 = 64 << 20;
/// Of the log that is searched: the first segments are sealed, their indexes mapped.
const SEARCHED_SEGMENT_BYTES: u32 = 16 << 20;
const SEARCHED_BYTES: u64 = 120 << 20;

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
    let mut log = new_log(dir.path(), LogConfig::default());
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

/// A batch is found by its offset and by its time, in a sealed segment and in the active one.
fn searches(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let log = searched_log(dir.path());
    let end = log.end_offset();
    let mut group = criterion.benchmark_group("find a batch");
    let active = log.active_base_offset();
    for (name, offset) in [("sealed", end / 2 + 7), ("active", active + (end - active) / 2)] {
        let sought = log.plan_read(offset, end).expect("in the log");
        group.bench_function(format!("by offset, {name}"), |bench| {
            bench.iter(|| black_box(&sought).locate(1, true).expect("a file of ours"));
        });
        // Each offset has its own millisecond.
        let sought = log.plan_time(NOW_MS + offset);
        group.bench_function(format!("by time, {name}"), |bench| {
            let found = || black_box(&sought).first_at_or_after().expect("a file of ours");
            assert_eq!(found().map(|found| found.offset), Some(offset));
            bench.iter(found);
        });
    }
    group.bench_function("plan by offset", |bench| {
        bench.iter(|| log.plan_read(black_box(end / 2), end).expect("in the log"));
    });
    group.bench_function("plan by time", |bench| {
        bench.iter(|| log.plan_time(black_box(NOW_MS + end / 2)));
    });
    group.finish();
}

/// Several segments of small batches, one record each, so that a search also has to walk.
fn searched_log(path: &std::path::Path) -> Log {
    let config = LogConfig { segment_bytes: SEARCHED_SEGMENT_BYTES, ..LogConfig::default() };
    let mut log = new_log(path, config);
    while log.size_bytes() < SEARCHED_BYTES {
        let mut builder = BatchBuilder::new(0);
        builder.push(NOW_MS + log.end_offset(), None, Some(&[b'v'; 1000]), &[]);
        log.append(&builder.build_checked(), Proof::Unneeded, LeaderEpoch(0), NOW_MS, None)
            .expect("space");
    }
    log
}

/// From the answer of a handler to the pieces that are written.
fn answers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode an answer");
    for partitions in [1, 100] {
        let produced = produced(partitions);
        group.bench_function(format!("produce v12, partitions: {partitions}"), |bench| {
            bench.iter(|| encoded(black_box(&produced), 12));
        });
        let fetched = fetched(partitions, &uncompressed());
        group.bench_function(format!("fetch v12, partitions: {partitions}"), |bench| {
            bench.iter(|| encoded(black_box(&fetched), 12));
        });
    }
    group.finish();
}

fn encoded(response: &impl WireResponse, version: i16) -> usize {
    let mut pieces = Pieces::new();
    response.encode_pieces(&mut pieces, version).expect("a sound answer");
    black_box(pieces.finish()).len()
}

fn produced(partitions: i32) -> ProduceResponse {
    let partition = |index| produce::PartitionProduceResponse {
        index,
        base_offset: 1_000_000,
        log_start_offset: 0,
        ..Default::default()
    };
    let topic = produce::TopicProduceResponse {
        name: StrBytes::from_static_str(TOPIC),
        partition_responses: (0..partitions).map(partition).collect(),
        ..Default::default()
    };
    ProduceResponse { responses: vec![topic], ..Default::default() }
}

fn fetched(partitions: i32, records: &Bytes) -> FetchResponse {
    let partition = |partition_index| fetch::PartitionData {
        partition_index,
        high_watermark: 1_000_000,
        last_stable_offset: 1_000_000,
        log_start_offset: 0,
        records: Some(Stored::Read(records.clone())),
        ..Default::default()
    };
    let topic = fetch::FetchableTopicResponse {
        topic: StrBytes::from_static_str(TOPIC),
        partitions: (0..partitions).map(partition).collect(),
        ..Default::default()
    };
    FetchResponse { responses: vec![topic], ..Default::default() }
}

fn checked(batch: &Bytes) -> CheckedBatch {
    check(batch, &Rules::defaults(NOW_MS)).expect("a sound batch")
}

fn append(log: &mut Log, batch: &CheckedBatch) {
    if log.size_bytes() > LOG_BYTES_MAX {
        log.truncate_fully(0, NOW_MS).expect("a file of ours");
    }
    log.append(batch, Proof::Unneeded, LeaderEpoch(0), NOW_MS, None).expect("space on the disk");
}

fn new_log(path: &std::path::Path, config: LogConfig) -> Log {
    let identity = Identity { cluster_id: None, node_id: BrokerId(1) };
    let options = LogDirOptions::default();
    let dir = LogDir::open(&Files::Real, &Random::seeded(1), path, &identity, &options);
    let config = Arc::new(ArcSwap::from_pointee(config));
    let topic_id = TopicId(uuid::Uuid::from_u128(1));
    let dir = dir.expect("a log directory");
    dir.create_log(&TopicPartition::new(TOPIC, 0), topic_id, config, NOW_MS).expect("a log")
}

fn short() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
}

criterion_group! { name = hot; config = short(); targets = requests, batches, logs, searches, answers }
criterion_main!(hot);
