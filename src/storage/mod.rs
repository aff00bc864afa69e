//! The log engine, in Kafka's on-disk format byte for byte.
//! Lives here: log directories and their checkpoints, logs, segments and their indexes, what a log
//! knows of producers and leader epochs, recovery. May not live here: the high watermark, who
//! leads, waiting, sockets, Kafka error codes (`broker::border` maps [`StorageError`]).
//! Invariants: what was acknowledged as durable is never lost; offsets are never given twice; a
//! failed write is not in the log. All calls block; a log is owned by its partition, under one
//! lock, and readers take a plan from it that they look up without the lock.

mod checkpoint;
mod clean;
mod error;
mod fd_cache;
mod flush;
mod future;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod index;
mod inspect;
mod leader_epochs;
mod leftovers;
mod load;
mod load_dir;
mod log;
mod log_dir;
mod meta_properties;
mod mmap;
mod names;
mod producer_state;
mod room;
mod segment;
mod small_files;
mod snapshot;
mod trim;
mod txn_index;
mod view;
mod walk;

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod log_dir_tests;
#[cfg(test)]
mod log_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod testing;

pub use clean::{
    CleanBounds, CleanError, CleanLimits, CleanOrder, CleanOwner, CleanStats, CleanView, Cleanable,
    Cleaned, clean,
};
pub use error::{ClientFault, DiskError, OperatorFault, StorageError};
pub use fd_cache::SegmentFile;
pub use flush::{FlushPlan, run_all};
pub use inspect::{Inspected, inspect};
pub use leader_epochs::LeaderEpochs;
pub use load_dir::{Loaded, LoadedLog, Loading};
pub use log::{Appended, Log, LogConfig};
pub use log_dir::{CheckpointRow, DeletedLog, Identity, LogDir, LogDirOptions};
pub use producer_state::{BatchSeen, Producer, Producers, Verification};
pub use trim::{DeletedSegments, SegmentInfo};
pub use txn_index::AbortedTxn;
pub use view::{LogSlices, ReadPlan, TimePlan, TimedOffset};
