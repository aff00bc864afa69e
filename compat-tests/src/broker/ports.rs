//! Free ports: both brokers are told theirs before they start, so that both have the same settings.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the range that the system gives to clients; `OTTLA_COMPAT_PORTS=FIRST-LAST` replaces it.
const RANGE: (u16, u16) = (20000, 29999);

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A port on which nobody listens now, never the same one twice in a process.
pub fn free() -> Result<u16, String> {
    let (first, last) = range();
    let count = u32::from(last - first) + 1;
    // Runs side by side begin at different places.
    let start = std::process::id().wrapping_mul(37) % count;
    for _ in 0..count {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = first + ((start + step) % count) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err(format!("no free port between {first} and {last}"))
}

fn range() -> (u16, u16) {
    let set = std::env::var("OTTLA_COMPAT_PORTS").unwrap_or_default();
    let parsed = set.split_once('-').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    parsed.filter(|(first, last)| first <= last).unwrap_or(RANGE)
}
