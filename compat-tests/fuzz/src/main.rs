//! libFuzzer around one of the targets of `ottla::fuzz`: the one that OTTLA_FUZZ_TARGET names.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();

fn chosen() -> fn(&[u8]) {
    let name = std::env::var("OTTLA_FUZZ_TARGET").unwrap_or_default();
    let found = ottla::fuzz::TARGETS.iter().find(|(target, _)| *target == name);
    found.map(|(_, run)| *run).expect("OTTLA_FUZZ_TARGET names a target")
}

fuzz_target!(|data: &[u8]| TARGET.get_or_init(chosen)(data));
