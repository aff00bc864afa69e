//! The offset index and the time index of a segment.
//! `.index`: 8-byte entries (relative last offset of a batch u32, its position u32), one each
//! `index.interval.bytes`. `.timeindex`: 12-byte entries (largest timestamp so far i64, relative
//! last offset of the batch that has it u32). Both big-endian and ascending, without checksum:
//! after an unclean stop they are made anew from the segment.

use std::path::Path;

use super::error::{At, DiskError};
use crate::env::{Files, OpenMode};

/// An active index goes to its file in pieces of this many entries.
const WRITE_ENTRIES: usize = 512;

/// One entry of an index file.
pub(super) trait IndexEntry: Copy + PartialEq + std::fmt::Debug {
    const BYTES: usize;
    type Key: Ord + Copy;
    fn put(&self, out: &mut Vec<u8>);
    /// `bytes` has [`IndexEntry::BYTES`].
    fn get(bytes: &[u8]) -> Self;
    /// What the entries ascend by.
    fn key(&self) -> Self::Key;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OffsetEntry {
    /// Last offset of the batch, minus the segment's base offset.
    pub relative_offset: u32,
    pub position: u32,
}

impl IndexEntry for OffsetEntry {
    const BYTES: usize = 8;
    type Key = u32;

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.relative_offset.to_be_bytes());
        out.extend_from_slice(&self.position.to_be_bytes());
    }

    fn get(bytes: &[u8]) -> Self {
        Self { relative_offset: be_u32(bytes), position: be_u32(&bytes[4..]) }
    }

    fn key(&self) -> u32 {
        self.relative_offset
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeEntry {
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
    pub relative_offset: u32,
}

impl IndexEntry for TimeEntry {
    const BYTES: usize = 12;
    type Key = i64;

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        out.extend_from_slice(&self.relative_offset.to_be_bytes());
    }

    fn get(bytes: &[u8]) -> Self {
        let high = u64::from(be_u32(bytes)) << 32;
        let timestamp = (high | u64::from(be_u32(&bytes[4..]))) as i64;
        Self { timestamp, relative_offset: be_u32(&bytes[8..]) }
    }

    fn key(&self) -> i64 {
        self.timestamp
    }
}

fn be_u32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// The last entry of a sealed index whose key is ≤ `key`; `None` when the first is above.
/// Cost: one binary search over the mapped bytes.
pub(super) fn lookup<E: IndexEntry>(bytes: &[u8], key: E::Key) -> Option<E> {
    count_until::<E>(bytes, key).checked_sub(1).map(|at| entry(bytes, at))
}

/// How many entries of a sealed index have a key ≤ `key`.
pub(super) fn count_until<E: IndexEntry>(bytes: &[u8], key: E::Key) -> usize {
    let (mut low, mut high) = (0, bytes.len() / E::BYTES);
    while low < high {
        let middle = low + (high - low) / 2;
        if entry::<E>(bytes, middle).key() <= key { low = middle + 1 } else { high = middle }
    }
    low
}

/// The entry at place `at` of a sealed index, which has more than that.
pub(super) fn entry<E: IndexEntry>(bytes: &[u8], at: usize) -> E {
    E::get(&bytes[at * E::BYTES..])
}

/// The last entry of an index file's bytes.
pub(super) fn last<E: IndexEntry>(bytes: &[u8]) -> Option<E> {
    (bytes.len() / E::BYTES).checked_sub(1).map(|at| E::get(&bytes[at * E::BYTES..]))
}

/// The index of the active segment: in memory, written to its file in pieces.
#[derive(Debug)]
pub(super) struct ActiveIndex<E> {
    entries: Vec<E>,
    /// Entries that the file has; `None`: the next write makes the file anew.
    written: Option<usize>,
}

impl<E: IndexEntry> ActiveIndex<E> {
    pub(super) fn empty() -> Self {
        Self { entries: Vec::new(), written: None }
    }

    /// The index as a clean stop left it; `None` when the bytes cannot be one.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let entries: Vec<E> = bytes.chunks_exact(E::BYTES).map(E::get).collect();
        let ascending = entries.windows(2).all(|pair| pair[0].key() < pair[1].key());
        let whole = bytes.len() == entries.len() * E::BYTES;
        let written = Some(entries.len());
        (ascending && whole).then_some(Self { entries, written })
    }

    pub(super) fn entries(&self) -> &[E] {
        &self.entries
    }

    pub(super) fn last(&self) -> Option<E> {
        self.entries.last().copied()
    }

    /// The last entry whose key is ≤ `key`.
    pub(super) fn lookup(&self, key: E::Key) -> Option<E> {
        self.count_until(key).checked_sub(1).map(|at| self.entries[at])
    }

    /// How many entries have a key ≤ `key`.
    pub(super) fn count_until(&self, key: E::Key) -> usize {
        self.entries.partition_point(|entry| entry.key() <= key)
    }

    pub(super) fn push(&mut self, entry: E) {
        self.entries.push(entry);
    }

    /// Keeps the first entries for which `kept` holds.
    pub(super) fn truncate(&mut self, kept: impl Fn(&E) -> bool) {
        let count = self.entries.partition_point(|entry| kept(entry));
        self.entries.truncate(count);
        self.written = None;
    }

    pub(super) fn is_written(&self) -> bool {
        self.written == Some(self.entries.len())
    }

    pub(super) fn wants_writing(&self) -> bool {
        self.entries.len() - self.written.unwrap_or(0) >= WRITE_ENTRIES
    }

    /// Brings the file up to date (page cache only).
    ///
    /// # Errors
    /// [`DiskError`]; the next call tries again.
    pub(super) fn write(&mut self, files: &Files, path: &Path) -> Result<(), DiskError> {
        let written = match self.written {
            Some(written) if written == self.entries.len() => return Ok(()),
            Some(written) => written,
            None => {
                // Unlinked, not shortened: a reader may have the old file mapped.
                if files.exists(path) {
                    files.remove_file(path).at("remove", path)?;
                }
                0
            }
        };
        let file = files.open(path, OpenMode::Create).at("open", path)?;
        let new = &self.entries[written..];
        let mut bytes = Vec::with_capacity(new.len() * E::BYTES);
        new.iter().for_each(|entry| entry.put(&mut bytes));
        file.write_all_at(&[&bytes], (written * E::BYTES) as u64).at("write", path)?;
        self.written = Some(self.entries.len());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_are_kafkas() {
        let mut out = Vec::new();
        OffsetEntry { relative_offset: 300, position: 0x0102_0304 }.put(&mut out);
        assert_eq!(out, [0, 0, 1, 0x2c, 1, 2, 3, 4]);
        let mut out = Vec::new();
        TimeEntry { timestamp: 1_700_000_000_000, relative_offset: 7 }.put(&mut out);
        assert_eq!(out, [0, 0, 1, 0x8b, 0xcf, 0xe5, 0x68, 0, 0, 0, 0, 7]);
    }

    #[test]
    fn half_an_entry_or_descending_ones_are_no_index() {
        assert!(ActiveIndex::<OffsetEntry>::read(&[0; 12]).is_none());
        assert!(ActiveIndex::<OffsetEntry>::read(&[0; 16]).is_none());
        assert!(ActiveIndex::<OffsetEntry>::read(&[]).is_some());
    }

    #[test]
    fn pieces_written_one_by_one_are_the_same_file() {
        let files = Files::Sim(Default::default());
        let path = Path::new("/0.timeindex");
        files.write(path, b"left over from before").unwrap();
        let mut index = ActiveIndex::empty();
        let mut whole = Vec::new();
        for at in 0..1_500 {
            let entry = TimeEntry { timestamp: i64::from(at) * 10, relative_offset: at };
            index.push(entry);
            entry.put(&mut whole);
            if index.wants_writing() {
                index.write(&files, path).unwrap();
            }
        }
        index.write(&files, path).unwrap();
        assert_eq!(files.read(path).unwrap(), whole);
        assert_eq!(ActiveIndex::<TimeEntry>::read(&whole).unwrap().entries(), index.entries());
    }

    proptest! {
        #[test]
        fn sealed_and_active_find_the_same(mut keys in proptest::collection::vec(0u32..1_000, 0..50), asked in 0u32..1_100) {
            keys.sort_unstable();
            keys.dedup();
            let (mut index, mut bytes) = (ActiveIndex::empty(), Vec::new());
            for (at, key) in keys.iter().enumerate() {
                let entry = OffsetEntry { relative_offset: *key, position: at as u32 };
                index.push(entry);
                entry.put(&mut bytes);
            }
            let want = keys.iter().rposition(|key| *key <= asked).map(|at| at as u32);
            prop_assert_eq!(index.lookup(asked).map(|entry| entry.position), want);
            prop_assert_eq!(lookup::<OffsetEntry>(&bytes, asked).map(|entry| entry.position), want);
            prop_assert_eq!(last::<OffsetEntry>(&bytes), index.last());
        }
    }
}
