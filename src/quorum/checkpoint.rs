//! Snapshots as Kafka's `.checkpoint` files: a stream of record batches that starts with a
//! snapshot header, ends with a snapshot footer (both control records), and has the records
//! that make the state from nothing in between. `kafka-dump-log` reads them.

use bytes::Bytes;

use crate::common::{LeaderEpoch, Offset};
use crate::machine::JournalRecord;
use crate::protocol::batch::{self, BatchBuilder, BatchHeader, crc_of};

/// Control record types of the format.
const SNAPSHOT_HEADER: i16 = 3;
const SNAPSHOT_FOOTER: i16 = 4;
/// Records go into a batch until it has this size.
const BATCH_BYTES: usize = 64 << 10;

/// Which state a snapshot holds: that of the log up to `end` (exclusive), whose last record was
/// written in `epoch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CheckpointId {
    pub end: Offset,
    pub epoch: i32,
}

impl CheckpointId {
    /// As in the file's name: `00000000000000000123-0000000001`.
    pub fn text(self) -> String {
        format!("{:020}-{:010}", self.end, self.epoch)
    }

    pub fn parse(text: &str) -> Option<Self> {
        let (end, epoch) = text.split_once('-')?;
        Some(Self { end: end.parse().ok()?, epoch: epoch.parse().ok()? })
    }

    pub fn file_name(self) -> String {
        format!("{}.checkpoint", self.text())
    }

    /// The id in a file's name; `None` for a file that is no snapshot.
    pub fn of_file(name: &str) -> Option<Self> {
        Self::parse(name.strip_suffix(".checkpoint")?)
    }
}

/// The content of a checkpoint file.
/// - `last_timestamp_ms`: of the last record of the log that went into the state.
pub(super) fn encode(
    id: CheckpointId,
    records: &[JournalRecord],
    last_timestamp_ms: i64,
) -> Vec<u8> {
    let builder = |base| BatchBuilder::new(base).leader_epoch(LeaderEpoch(id.epoch));
    let mut header = Vec::from([0, 0]);
    header.extend_from_slice(&last_timestamp_ms.to_be_bytes());
    header.push(0);
    let mut first = builder(0).control();
    first.push(last_timestamp_ms, Some(&control_key(SNAPSHOT_HEADER)), Some(&header), &[]);
    let mut out = Vec::from(first.build());

    let (mut base, mut open) = (1, builder(1));
    for record in records {
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        open.push(last_timestamp_ms, key, value, &[]);
        if open.size_bytes() >= BATCH_BYTES {
            base += Offset::from(open.records_count());
            out.extend_from_slice(&std::mem::replace(&mut open, builder(base)).build());
        }
    }
    if open.records_count() > 0 {
        base += Offset::from(open.records_count());
        out.extend_from_slice(&open.build());
    }
    let mut last = builder(base).control();
    last.push(last_timestamp_ms, Some(&control_key(SNAPSHOT_FOOTER)), Some(&[0, 0, 0]), &[]);
    out.extend_from_slice(&last.build());
    out
}

/// Key of a control record: version 0, then the type.
fn control_key(kind: i16) -> [u8; 4] {
    let kind = kind.to_be_bytes();
    [0, 0, kind[0], kind[1]]
}

/// The records of a checkpoint file, without header and footer.
///
/// # Errors
/// Where the file is damaged or cut short, and why.
pub(super) fn decode(file: &Bytes) -> Result<Vec<JournalRecord>, (usize, String)> {
    let (mut records, mut at, mut controls) = (Vec::new(), 0, Vec::new());
    for item in batch::batches(file) {
        let (header, bytes) = item.map_err(|error| (at, error.to_string()))?;
        if crc_of(&bytes) != header.crc {
            return Err((at, "a batch's CRC is wrong".into()));
        }
        let is_last = at + bytes.len() == file.len();
        take_batch(&header, &bytes, &mut records, &mut controls).map_err(|reason| (at, reason))?;
        at += bytes.len();
        if controls.contains(&SNAPSHOT_FOOTER) && !is_last {
            return Err((at, "records behind the snapshot footer".into()));
        }
    }
    match controls[..] {
        [SNAPSHOT_HEADER, .., SNAPSHOT_FOOTER] if at == file.len() => Ok(records),
        _ => Err((at, "the snapshot has no header, or no footer".into())),
    }
}

fn take_batch(
    header: &BatchHeader,
    bytes: &Bytes,
    records: &mut Vec<JournalRecord>,
    controls: &mut Vec<i16>,
) -> Result<(), String> {
    for record in batch::records(bytes) {
        let record = record.map_err(|error| error.to_string())?;
        if !header.is_control() {
            records.push(JournalRecord { key: record.key, value: record.value });
            continue;
        }
        match record.key.as_deref() {
            Some([_, _, high, low]) => controls.push(i16::from_be_bytes([*high, *low])),
            _ => return Err("a control record without a type".into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: CheckpointId = CheckpointId { end: 123, epoch: 7 };

    fn records(count: usize) -> Vec<JournalRecord> {
        let value = |n: usize| Some(Bytes::from(format!("record {n} {}", "x".repeat(n % 700))));
        (0..count).map(|n| JournalRecord { key: None, value: value(n) }).collect()
    }

    #[test]
    fn the_name_is_kafkas() {
        assert_eq!(ID.file_name(), "00000000000000000123-0000000007.checkpoint");
        assert_eq!(CheckpointId::of_file(&ID.file_name()), Some(ID));
        for other in ["quorum.log", "123.checkpoint", "1-2.checkpoint.tmp", "a-b.checkpoint"] {
            assert_eq!(CheckpointId::of_file(other), None, "{other}");
        }
    }

    #[test]
    fn records_come_back_in_order_whatever_their_number() {
        for count in [0, 1, 2, 1_000] {
            let records = records(count);
            let file = Bytes::from(encode(ID, &records, 1_700_000_000_000));
            assert_eq!(decode(&file).as_ref(), Ok(&records), "{count} records");
        }
    }

    #[test]
    fn a_file_cut_short_or_spoilt_is_refused() {
        let file = encode(ID, &records(300), 5);
        for cut in [0, 1, 61, 80, file.len() / 2, file.len() - 1] {
            let found = decode(&Bytes::copy_from_slice(&file[..cut]));
            assert!(found.is_err(), "cut at {cut}");
        }
        for spoilt in [30, 200, file.len() - 3] {
            let mut file = file.clone();
            file[spoilt] ^= 1;
            assert!(decode(&Bytes::from(file)).is_err(), "byte {spoilt}");
        }
        let twice = Bytes::from([file.clone(), file].concat());
        assert!(decode(&twice).is_err(), "two snapshots in one file");
    }
}
