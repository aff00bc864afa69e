//! `.txnindex`: the aborted transactions whose marker stands in a segment; read-committed
//! consumers skip their records. 34-byte entries, big-endian: version i16 = 0, producer id i64,
//! first offset i64, last offset i64 (of the marker), last stable offset then i64. The file is
//! there only when it has an entry.

use std::path::Path;

use bytes::{Buf, BufMut};

use super::error::{At, DiskError};
use super::producer_state::EndedTxn;
use crate::common::{Offset, ProducerId};
use crate::env::{Files, OpenMode};

const VERSION: i16 = 0;
pub(super) const ENTRY_BYTES: usize = 34;

/// One aborted transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTxn {
    pub producer_id: ProducerId,
    pub first_offset: Offset,
    /// Of the marker.
    pub last_offset: Offset,
    /// Below it no transaction was open when the marker was written.
    pub last_stable_offset: Offset,
}

impl AbortedTxn {
    /// `None`: it was committed.
    pub(super) fn of(ended: &EndedTxn, last_stable_offset: Offset) -> Option<Self> {
        (!ended.committed).then_some(Self {
            producer_id: ended.producer_id,
            first_offset: ended.first_offset,
            last_offset: ended.last_offset,
            last_stable_offset,
        })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.put_i16(VERSION);
        out.put_i64(self.producer_id.0);
        out.put_i64(self.first_offset);
        out.put_i64(self.last_offset);
        out.put_i64(self.last_stable_offset);
    }

    /// Whether such a transaction can have been.
    pub(super) fn is_plausible(&self) -> bool {
        let ends = 0 <= self.first_offset && self.first_offset <= self.last_offset;
        let stable =
            0 <= self.last_stable_offset && self.last_stable_offset <= self.last_offset + 1;
        ends && stable && self.producer_id.0 >= 0
    }

    fn decode(mut bytes: &[u8]) -> Option<Self> {
        (bytes.get_i16() == VERSION).then(|| Self {
            producer_id: ProducerId(bytes.get_i64()),
            first_offset: bytes.get_i64(),
            last_offset: bytes.get_i64(),
            last_stable_offset: bytes.get_i64(),
        })
    }
}

/// The entries of a file; `None` when it is damaged and must be made anew.
pub(super) fn decode(bytes: &[u8]) -> Option<Vec<AbortedTxn>> {
    let whole = bytes.len().is_multiple_of(ENTRY_BYTES);
    let entries = bytes.chunks_exact(ENTRY_BYTES).map(AbortedTxn::decode);
    whole.then(|| entries.collect())?
}

/// Writes the entries from number `from` on behind those the file has.
///
/// # Errors
/// [`DiskError`].
pub(super) fn append(
    files: &Files,
    path: &Path,
    entries: &[AbortedTxn],
    from: usize,
) -> Result<(), DiskError> {
    let mut bytes = Vec::with_capacity((entries.len() - from) * ENTRY_BYTES);
    entries[from..].iter().for_each(|entry| entry.encode(&mut bytes));
    let file = files.open(path, OpenMode::Create).at("open", path)?;
    let position = (from * ENTRY_BYTES) as u64;
    file.write_all_at(&[&bytes], position).at("write", path)?;
    file.set_len(position + bytes.len() as u64).at("truncate", path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn aborted(producer: i64, first: Offset, last: Offset, stable: Offset) -> AbortedTxn {
        AbortedTxn {
            producer_id: ProducerId(producer),
            first_offset: first,
            last_offset: last,
            last_stable_offset: stable,
        }
    }

    #[test]
    fn bytes_are_kafkas() {
        let mut out = Vec::new();
        aborted(5, 100, 258, 90).encode(&mut out);
        #[rustfmt::skip]
        assert_eq!(out, [
            0, 0,
            0, 0, 0, 0, 0, 0, 0, 5,  0, 0, 0, 0, 0, 0, 0, 100,
            0, 0, 0, 0, 0, 0, 1, 2,  0, 0, 0, 0, 0, 0, 0, 90,
        ]);
        assert_eq!(decode(&out), Some(vec![aborted(5, 100, 258, 90)]));
        assert_eq!(decode(&out[1..]), None);
        out[1] = 1;
        assert_eq!(decode(&out), None, "an unknown version");
    }

    proptest! {
        #[test]
        fn what_is_appended_is_read_back(entries in proptest::collection::vec(any::<(i64, i64, i64, i64)>(), 0..9), split in 0usize..9) {
            let entries: Vec<_> = entries.into_iter().map(|(a, b, c, d)| aborted(a, b, c, d)).collect();
            let (files, path) = (Files::Sim(Default::default()), Path::new("/0.txnindex"));
            let split = split.min(entries.len());
            append(&files, path, &entries[..split], 0).unwrap();
            append(&files, path, &entries, split).unwrap();
            prop_assert_eq!(decode(&files.read(path).unwrap()), Some(entries));
        }
    }
}
