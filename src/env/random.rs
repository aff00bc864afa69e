//! The random door: the kernel's generator, or a seeded one that repeats.

use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;

/// A source of random numbers. Cloning shares the sequence.
#[derive(Clone)]
pub enum Random {
    Os,
    Seeded(Arc<Mutex<u64>>),
}

impl Random {
    pub fn seeded(seed: u64) -> Self {
        Self::Seeded(Arc::new(Mutex::new(seed)))
    }

    pub fn next_u64(&self) -> u64 {
        match self {
            Self::Os => uuid::Uuid::new_v4().as_u64_pair().1 ^ uuid::Uuid::new_v4().as_u64_pair().0,
            Self::Seeded(state) => {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                split_mix(&mut state)
            }
        }
    }

    /// Uniform in `0..bound`; `bound` must not be 0.
    pub fn below(&self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A random UUID, version 4.
    pub fn uuid(&self) -> Uuid {
        match self {
            Self::Os => Uuid::new_v4(),
            Self::Seeded(_) => Uuid::from_u64_pair(
                self.next_u64() & !0xf000 | 0x4000,
                self.next_u64() >> 2 | 1 << 63,
            ),
        }
    }
}

/// SplitMix64: small, and good enough where nobody attacks the sequence.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
