//! Fuzz targets: everything that reads bytes from a peer or a disk. Each takes any bytes and must
//! neither panic nor read back something else than it wrote.
//! Lives here: the table of targets; they stand in their rooms. May not live here: an engine
//! (`compat-tests/fuzz` has one; the tests below replay findings and mutate good input).

/// Its name, and what takes the bytes.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: &[Target] = &[
    ("requests", crate::protocol::fuzz::requests),
    ("batches", crate::protocol::fuzz::batches),
    ("group_records", crate::protocol::fuzz::group_records),
    ("txn_records", crate::protocol::fuzz::txn_records),
    ("metadata_records", crate::protocol::fuzz::metadata_records),
    ("properties", crate::config::fuzz_properties),
    ("offset_index", crate::storage::fuzz::offset_index),
    ("time_index", crate::storage::fuzz::time_index),
    ("txn_index", crate::storage::fuzz::txn_index),
    ("producer_snapshot", crate::storage::fuzz::producer_snapshot),
    ("checkpoint", crate::storage::fuzz::checkpoint),
    ("leader_epochs", crate::storage::fuzz::leader_epochs),
    ("small_files", crate::storage::fuzz::small_files),
    ("quorum_log", crate::quorum::fuzz::log),
    ("quorum_checkpoint", crate::quorum::fuzz::checkpoint),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::TARGETS;
    use crate::env::{Files, Random};

    /// Inputs that once broke a target: `compat-tests/fuzz/findings/<target>/…`.
    #[test]
    fn findings_stay_mended() {
        let findings = Path::new(env!("CARGO_MANIFEST_DIR")).join("compat-tests/fuzz/findings");
        for (name, run) in TARGETS {
            let dir = findings.join(name);
            for entry in Files::Real.list(&dir).unwrap_or_default() {
                run(&Files::Real.read(&dir.join(entry.name)).expect("a finding"));
            }
        }
    }

    const STEPS: usize = 1_000;

    /// A short walk without an engine, so that a broken target shows in every test run.
    #[test]
    fn nothing_panics_on_mutated_bytes() {
        for (name, run) in TARGETS {
            let random = Random::seeded(name.len() as u64);
            let mut bytes: Vec<u8> = Vec::new();
            for _ in 0..STEPS {
                match random.below(8) {
                    0 => bytes.truncate(random.below(bytes.len() as u64 + 1) as usize),
                    1 => bytes.extend((0..random.below(40)).map(|_| random.next_u64() as u8)),
                    2 => bytes.extend([0; 9]),
                    _ if !bytes.is_empty() => {
                        let at = random.below(bytes.len() as u64) as usize;
                        bytes[at] = random.next_u64() as u8;
                    }
                    _ => {}
                }
                bytes.truncate(2_000);
                run(&bytes);
            }
        }
    }
}
