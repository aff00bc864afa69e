//! Record batches of format v2 (magic 2), as producers send them, logs keep them and consumers
//! get them. Lives here: the header view, the CRC, Kafka's rules for a client's batch
//! ([`shape`], [`check`]), iteration over records, [`BatchBuilder`], the codecs behind them.
//! May not live here: I/O, producer state, offsets of a log, Kafka error codes (`broker::border`
//! maps [`BatchError`]). A client's batch is never re-encoded unless the topic asks for another
//! codec. Source: protocol guide, "Record Batch".

mod builder;
mod check;
mod codec;
mod error;
mod header;
mod rebuild;
mod records;
mod walk;

pub use builder::{BatchBuilder, EndTxnMarker, Producer};
pub use check::{CheckedBatch, HEAVY_BYTES, Rules, check, is_heavy, shape};
pub use codec::{Codec, Compression};
pub use error::{BatchError, Invalid, RecordFault, RecordFaultKind, Unreadable};
pub use header::{BatchHeader, HEADER_BYTES, LOG_OVERHEAD_BYTES, TimestampType, crc_of};
pub use rebuild::{emptied, rebuilt};
pub use records::{Header, Record, Records, batches, records};
