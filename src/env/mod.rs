//! The doors: clock, random, files, network, tasks and threads. Every outside effect of the
//! broker goes through one of them, so that a test can run a node on virtual time, seeded
//! random and simulated files. `clippy.toml` closes the originals everywhere else.
//! May not live here: what a file or a socket means.

#![expect(clippy::disallowed_methods, reason = "the doors are where the originals are used")]

mod clock;
mod files;
mod files_sim;
mod net;
mod net_sim;
mod random;
#[cfg(test)]
pub(crate) mod seeds;
mod tasks;
mod trace;

pub use clock::{Clock, Instant};
pub use files::{DirEntry, File, FileLock, FileSlice, Files, OpenMode, Space};
pub use files_sim::{FaultOn, SimCounts, SimFiles};
pub use net::{Bound, Listener, Net, Stream};
pub use net_sim::SimNet;
pub use random::Random;
pub use tasks::{Tasks, on_each};
pub use trace::Trace;

/// All doors of one node. Cloning shares them.
#[derive(Clone)]
pub struct Env {
    pub clock: Clock,
    pub random: Random,
    pub files: Files,
    pub net: Net,
    pub tasks: Tasks,
}
