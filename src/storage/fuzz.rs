//! Fuzz targets of the files beside the segments.

use super::index::{ActiveIndex, IndexEntry, OffsetEntry, TimeEntry, last, lookup};
use super::leader_epochs::LeaderEpochs;
use super::meta_properties::MetaProperties;
use super::small_files::{CleanShutdown, decode_partition_metadata};
use super::{names, snapshot};

fn index<E: IndexEntry>(data: &[u8]) {
    let (of_sealed, active) = (last::<E>(data), ActiveIndex::<E>::read(data));
    if let Some(entry) = of_sealed {
        lookup::<E>(data, entry.key());
    }
    if let Some(active) = active {
        assert_eq!(active.last(), of_sealed);
        for entry in active.entries() {
            assert_eq!(active.lookup(entry.key()), Some(*entry));
            assert_eq!(lookup::<E>(data, entry.key()), Some(*entry));
        }
    }
}

pub fn offset_index(data: &[u8]) {
    index::<OffsetEntry>(data);
}

pub fn time_index(data: &[u8]) {
    index::<TimeEntry>(data);
}

pub fn txn_index(data: &[u8]) {
    let Some(entries) = super::txn_index::decode(data) else { return };
    let mut bytes = Vec::new();
    entries.iter().for_each(|entry| entry.encode(&mut bytes));
    assert_eq!(bytes, data);
}

/// As it is, and with the version and CRC that let it in.
pub fn producer_snapshot(data: &[u8]) {
    assert!(snapshot::decode(data).is_none_or(|producers| producers.len() <= data.len()));
    if data.len() < 10 {
        return;
    }
    let mut bytes = data.to_vec();
    bytes[..2].copy_from_slice(&[0, 1]);
    let crc = crc32c::crc32c(&bytes[6..]);
    bytes[2..6].copy_from_slice(&crc.to_be_bytes());
    let Some(producers) = snapshot::decode(&bytes) else { return };
    let written = snapshot::encode(producers.iter().map(|(id, producer)| (*id, producer)));
    let again = snapshot::decode(&written).expect("what we wrote");
    assert_eq!(again.len(), producers.len());
}

pub fn checkpoint(data: &[u8]) {
    let Ok(offsets) = super::checkpoint::decode_offsets(data) else { return };
    let written = super::checkpoint::encode_offsets(&offsets);
    assert_eq!(super::checkpoint::decode_offsets(&written).expect("what we wrote"), offsets);
}

pub fn leader_epochs(data: &[u8]) {
    let Ok(epochs) = LeaderEpochs::decode(data) else { return };
    let again = LeaderEpochs::decode(&epochs.encode()).expect("what we wrote");
    assert_eq!(again.entries(), epochs.entries());
}

/// `meta.properties`, `partition.metadata`, the clean mark, names of files and directories.
pub fn small_files(data: &[u8]) {
    if let Some(mark) = CleanShutdown::decode(data) {
        let again = CleanShutdown::decode(mark.encode().as_bytes());
        assert_eq!(again.map(|again| again.encode()), Some(mark.encode()));
    }
    let text = String::from_utf8_lossy(data);
    if let Ok(meta) = MetaProperties::decode(&text) {
        assert!(MetaProperties::decode(&meta.encode()).is_ok());
    }
    let _ = decode_partition_metadata(&text);
    let _ = names::parse_segment_file(&text);
    let _ = names::parse_dir(&text);
}
