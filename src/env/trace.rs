//! To compare two runs of one seed.

/// A running hash (FNV-1a) of what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace(u64);

impl Default for Trace {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Trace {
    pub fn note(&mut self, what: &[u8]) {
        for byte in what {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    pub fn value(self) -> u64 {
        self.0
    }
}
