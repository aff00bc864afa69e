//! The newest offset of each key of the part that is cleaned, in bounded memory: of a key only a
//! 128-bit hash is kept, under a secret of this process.

use siphasher::sip128::SipHasher24;

use crate::common::Offset;

/// Hash (two words) and offset + 1; 0 there: free.
type Slot = [u64; 3];
const SLOT_BYTES: u64 = size_of::<Slot>() as u64;

/// Key → offset; open addressing.
pub(super) struct OffsetMap {
    slots: Vec<Slot>,
    used: usize,
    /// Keys that it takes.
    most: usize,
    /// Slots that the allowed memory has.
    slots_max: u64,
    hasher: SipHasher24,
    /// Up to it (inclusive) all keys are in here.
    latest: Offset,
}

impl OffsetMap {
    /// - `bytes_max`: memory it may take; less is taken where `keys_max` need less.
    /// - `load_factor`: part of the memory that is to be used.
    /// - Returns `None` when not even one key fits.
    pub(super) fn new(
        bytes_max: u64,
        load_factor: f64,
        keys_max: u64,
        secret: (u64, u64),
    ) -> Option<Self> {
        let slots_max = bytes_max / SLOT_BYTES;
        // One slot stays free, or a search would not end.
        let most = ((slots_max as f64 * load_factor) as u64).min(slots_max.saturating_sub(1));
        if most == 0 {
            return None;
        }
        let needed = (keys_max.max(1) as f64 / load_factor) as u64 + 2;
        let slots = needed.clamp(2, slots_max.max(2));
        Some(Self {
            slots: vec![[0; 3]; slots as usize],
            used: 0,
            most: most.min(slots - 1) as usize,
            slots_max,
            hasher: SipHasher24::new_with_keys(secret.0, secret.1),
            latest: -1,
        })
    }

    pub(super) fn is_full(&self) -> bool {
        self.used >= self.most
    }

    /// What part of the allowed memory is used.
    pub(super) fn utilization(&self) -> f64 {
        self.used as f64 / self.slots_max as f64
    }

    pub(super) fn latest(&self) -> Offset {
        self.latest
    }

    pub(super) fn set_latest(&mut self, offset: Offset) {
        self.latest = offset;
    }

    /// Notes the newest offset of `key`; must not be full.
    pub(super) fn put(&mut self, key: &[u8], offset: Offset) {
        crate::invariant!(!self.is_full(), "the caller looks before");
        let (at, hash) = self.find(key);
        if self.slots[at][2] == 0 {
            self.used += 1;
        }
        self.slots[at] = [hash.0, hash.1, offset as u64 + 1];
        self.latest = offset;
    }

    /// The newest offset of `key`, if it has one.
    pub(super) fn get(&self, key: &[u8]) -> Option<Offset> {
        let (at, _) = self.find(key);
        self.slots[at][2].checked_sub(1).map(|offset| offset as Offset)
    }

    /// The slot that has the key, or the free one where it belongs.
    fn find(&self, key: &[u8]) -> (usize, (u64, u64)) {
        let hash = self.hasher.hash(key);
        let mut at = (hash.h1 % self.slots.len() as u64) as usize;
        loop {
            let slot = &self.slots[at];
            if slot[2] == 0 || (slot[0], slot[1]) == (hash.h1, hash.h2) {
                return (at, (hash.h1, hash.h2));
            }
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn memory_is_bounded_and_no_more_is_taken_than_keys_need() {
        let slots = |bytes, keys| OffsetMap::new(bytes, 0.9, keys, (1, 2)).map(|m| m.slots.len());
        assert_eq!(slots(24_000, 1 << 40), Some(1_000));
        assert_eq!(slots(24_000, 90), Some(102));
        assert_eq!(slots(24, 90), None, "no key fits");
        let full = OffsetMap::new(24_000, 0.9, 1 << 40, (1, 2)).unwrap();
        assert_eq!(full.most, 900);
        let whole = OffsetMap::new(24_000, 7.0, 1 << 40, (1, 2)).unwrap();
        assert_eq!(whole.most, 999, "a load factor over 1");
        assert!(OffsetMap::new(24_000, f64::NAN, 5, (1, 2)).is_none());
        assert!(OffsetMap::new(24_000, -1.0, 5, (1, 2)).is_none());
    }

    proptest! {
        #[test]
        fn it_holds_the_newest_offset_of_each_key(keys in proptest::collection::vec(0u16..80, 0..200)) {
            let mut map = OffsetMap::new(1 << 20, 0.9, 200, (3, 4)).unwrap();
            let mut model = HashMap::new();
            for (offset, key) in keys.iter().enumerate() {
                map.put(&key.to_be_bytes(), offset as Offset);
                model.insert(*key, offset as Offset);
            }
            for key in 0..100u16 {
                prop_assert_eq!(map.get(&key.to_be_bytes()), model.get(&key).copied());
            }
            prop_assert_eq!(map.used, model.len());
        }
    }
}
