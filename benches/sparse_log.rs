//! A log far larger than the disk: `sparse_log DATA_DIR TOPIC SEGMENTS`.
//! Fills partition 0 of a topic without records, in a directory that was stopped cleanly, with
//! segments of 1 GiB. All batches, indexes and checkpoints are true, as a clean stop leaves them;
//! what makes the files sparse is that the long values are zeros, which nobody writes.
//! A step is a short batch with a long one behind it; each step has its own millisecond.

#[allow(dead_code, reason = "shared with the benches, which use the rest")]
#[path = "support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bytes::{BufMut, Bytes};
use ottla::common::LeaderEpoch;
use ottla::env::{Files, OpenMode};
use ottla::protocol::batch::{BatchBuilder, HEADER_BYTES};
use support::NOW_MS;

const SEGMENT_BYTES: usize = 1 << 30;
const STEP_BYTES: usize = 16 << 20;
const STEPS: usize = SEGMENT_BYTES / STEP_BYTES;
const OFFSETS_PER_STEP: usize = 2;
const SHORT_VALUE_BYTES: usize = 100;
/// Header and record header of the long batch end before; all behind is zeros.
const FRONT_BYTES: usize = 96;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    let segments = words.get(3).and_then(|word| word.parse().ok());
    let (Some(dir), Some(topic), Some(segments)) = (words.get(1), words.get(2), segments) else {
        eprintln!("usage: sparse_log DATA_DIR TOPIC SEGMENTS");
        return ExitCode::from(2);
    };
    match fill(Path::new(dir), topic, segments) {
        Ok(()) => {
            println!("{} steps from {NOW_MS} ms", segments * STEPS);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn fill(dir: &Path, topic: &str, segments: usize) -> std::io::Result<()> {
    let place = dir.join(format!("{topic}-0"));
    let file = |base: usize, kind: &str| place.join(format!("{base:020}.{kind}"));
    let short = batch(SHORT_VALUE_BYTES);
    let long = batch(long_value_bytes(short.len()));
    let (short, long) = (Front::of(&short, short.len()), Front::of(&long, FRONT_BYTES));
    for segment in 0..segments {
        let base = segment * STEPS * OFFSETS_PER_STEP;
        write_segment(base, &short, &long, |kind| file(base, kind))?;
    }
    let end = segments * STEPS * OFFSETS_PER_STEP;
    let files = Files::Real;
    files.write(&place.join("leader-epoch-checkpoint"), b"0\n1\n0 0\n")?;
    files.write(&file(end, "snapshot"), &no_producers())?;
    for name in ["recovery-point-offset-checkpoint", "replication-offset-checkpoint"] {
        let end = format!("{topic} 0 {end}");
        set_row(&files, &dir.join(name), &format!("{topic} 0 0"), &end)?;
    }
    Ok(())
}

/// A batch of one record, at the offset 0 and the first millisecond.
fn batch(value_bytes: usize) -> Bytes {
    let mut builder = BatchBuilder::new(0).leader_epoch(LeaderEpoch(0));
    builder.push(NOW_MS, None, Some(&vec![0; value_bytes]), &[]);
    builder.build()
}

/// So many that a short and a long batch make one step.
fn long_value_bytes(short_bytes: usize) -> usize {
    let guess = STEP_BYTES - short_bytes - HEADER_BYTES;
    guess - (batch(guess).len() + short_bytes - STEP_BYTES)
}

/// The beginning of a batch, which is all of it but zeros.
struct Front {
    bytes: Vec<u8>,
    zeros: usize,
    zeros_crc: u32,
}

impl Front {
    fn of(batch: &[u8], front_bytes: usize) -> Self {
        let (front, zeros) = batch.split_at(front_bytes);
        assert!(zeros.iter().all(|byte| *byte == 0), "only zeros follow the front");
        Self { bytes: front.to_vec(), zeros: zeros.len(), zeros_crc: crc32c::crc32c(zeros) }
    }

    /// The bytes to write for the batch at another offset and time.
    fn at(&self, offset: usize, timestamp: i64) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        bytes[..8].copy_from_slice(&(offset as i64).to_be_bytes());
        bytes[27..35].copy_from_slice(&timestamp.to_be_bytes());
        bytes[35..43].copy_from_slice(&timestamp.to_be_bytes());
        let crc = crc32c::crc32c_combine(crc32c::crc32c(&bytes[21..]), self.zeros_crc, self.zeros);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        bytes
    }
}

/// Batches and indexes. As with Kafka's interval of 4 KiB, each batch behind a long one has an
/// entry, with its last offset.
fn write_segment(
    base: usize,
    short: &Front,
    long: &Front,
    path: impl Fn(&str) -> PathBuf,
) -> std::io::Result<()> {
    let files = Files::Real;
    let (mut offsets, mut times) = (Vec::new(), Vec::new());
    let log = files.open(&path("log"), OpenMode::Create)?;
    log.set_len(SEGMENT_BYTES as u64)?;
    for step in 0..STEPS {
        let (relative, position) = (step * OFFSETS_PER_STEP, step * STEP_BYTES);
        let offset = base + relative;
        let timestamp = NOW_MS + (offset / OFFSETS_PER_STEP) as i64;
        let (short, long) = (short.at(offset, timestamp), long.at(offset + 1, timestamp));
        log.write_all_at(&[&short, &long], position as u64)?;
        if step > 0 {
            offsets.put_u32(relative as u32);
            offsets.put_u32(position as u32);
            times.put_i64(timestamp);
            times.put_u32(relative as u32);
        }
    }
    files.write(&path("index"), &offsets)?;
    files.write(&path("timeindex"), &times)
}

/// Kafka's snapshot of producers, version 1, with none in it.
fn no_producers() -> Vec<u8> {
    let count = [0; 4];
    let mut out = Vec::new();
    out.put_i16(1);
    out.put_u32(crc32c::crc32c(&count));
    out.put_slice(&count);
    out
}

/// Replaces a row of a checkpoint.
fn set_row(files: &Files, path: &Path, row: &str, new: &str) -> std::io::Result<()> {
    let text = String::from_utf8_lossy(&files.read(path)?).into_owned();
    if !text.lines().any(|line| line == row) {
        return Err(std::io::Error::other(format!("{} has no row `{row}`", path.display())));
    }
    let lines = text.lines().map(|line| if line == row { new } else { line });
    let lines: Vec<&str> = lines.collect();
    files.write(path, format!("{}\n", lines.join("\n")).as_bytes())
}
