//! Reading the records of a batch, one at a time.

use bytes::Bytes;

use super::codec::Decompressed;
use super::walk::{Source, Stream, varint};
use super::{BatchError, BatchHeader, Compression, HEADER_BYTES, Invalid, TimestampType};
use crate::common::{Offset, varint as bytes_varint};

/// A record as a consumer sees it. Null and empty differ, for key, value and header values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub offset: Offset,
    /// Milliseconds since the Unix epoch: the batch's append time where the broker set it.
    pub timestamp: i64,
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    /// In order; keys may repeat.
    pub headers: Vec<Header>,
}

/// A header of a record; the key is UTF-8 by agreement only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub key: Bytes,
    pub value: Option<Bytes>,
}

/// The records of `batch`, which starts with a header; bytes after the batch are not looked at.
/// The CRC is not checked. Uncompressed records are slices of `batch`; of compressed ones only
/// the current record is in memory.
pub fn records(batch: &Bytes) -> Records {
    let open = || {
        let header = BatchHeader::parse(batch)?;
        let size_bytes = header.size_bytes();
        if size_bytes > batch.len() {
            return Err(BatchError::Corrupt { size_bytes, crc: header.crc });
        }
        let payload = batch.slice(HEADER_BYTES..size_bytes);
        let from = match header.compression()? {
            Compression::None => From::Slice(payload),
            compression => {
                let stream = Decompressed::new(compression, payload)?;
                From::Stream(Stream::new(stream, STREAM_BUFFER_BYTES))
            }
        };
        Ok(Open { header, from, index: 0 })
    };
    Records(open().map(Some))
}

const STREAM_BUFFER_BYTES: usize = 16 << 10;

/// Whole batches at the front of `bytes`, one slice each; what is cut short ends the iteration.
///
/// # Errors
/// Of an item: [`BatchHeader::parse`]'s; it is the last one.
pub fn batches(bytes: &Bytes) -> impl Iterator<Item = Result<(BatchHeader, Bytes), BatchError>> {
    let mut rest = bytes.clone();
    std::iter::from_fn(move || {
        if rest.len() < HEADER_BYTES {
            return None;
        }
        match BatchHeader::parse(&rest) {
            Ok(header) if header.size_bytes() > rest.len() => None,
            Ok(header) => Some(Ok((header, rest.split_to(header.size_bytes())))),
            Err(error) => {
                rest.clear();
                Some(Err(error))
            }
        }
    })
}

/// Iterator of [`records`]; ends after an error.
pub struct Records(Result<Option<Open>, BatchError>);

struct Open {
    header: BatchHeader,
    from: From,
    index: i32,
}

enum From {
    Slice(Bytes),
    Stream(Stream),
}

impl Iterator for Records {
    type Item = Result<Record, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = match &mut self.0 {
            Ok(None) => return None,
            Ok(Some(open)) if open.index >= open.header.records_count => return None,
            Ok(Some(open)) => open.next(),
            Err(error) => Err(error.clone()),
        };
        if next.is_err() {
            self.0 = Ok(None);
        }
        Some(next)
    }
}

impl Open {
    fn next(&mut self) -> Result<Record, BatchError> {
        let index = self.index;
        self.index += 1;
        let cut = || BatchError::Invalid(Invalid::Record { index, what: "bytes end inside it" });
        let body = match &mut self.from {
            From::Slice(rest) => {
                let mut front = &rest[..];
                let size = bytes_varint::read_i32(&mut front).map_err(|_| cut())?;
                let size = usize::try_from(size).map_err(|_| cut())?;
                let at = rest.len() - front.len();
                if size > front.len() {
                    return Err(cut());
                }
                let body = rest.slice(at..at + size);
                *rest = rest.slice(at + size..);
                body
            }
            From::Stream(stream) => {
                let size = usize::try_from(varint(stream, index)?).map_err(|_| cut())?;
                let mut body = Vec::with_capacity(size.min(STREAM_BUFFER_BYTES));
                if !stream.take(size, &mut body)? {
                    return Err(cut());
                }
                invariant_taken(stream);
                Bytes::from(body)
            }
        };
        parse(&body, &self.header).ok_or(BatchError::Invalid(Invalid::Record {
            index,
            what: "its fields do not fit its size",
        }))
    }
}

fn invariant_taken(stream: &Stream) {
    crate::invariant!(stream.taken() <= i32::MAX as u64, "the codec lets more through");
}

fn parse(body: &Bytes, header: &BatchHeader) -> Option<Record> {
    let mut rest = body.get(1..)?; // the attributes of a record are not used
    let timestamp_delta = bytes_varint::read_i64(&mut rest).ok()?;
    let offset_delta = bytes_varint::read_i32(&mut rest).ok()?;
    let key = sized(body, &mut rest)?;
    let value = sized(body, &mut rest)?;
    let count = usize::try_from(bytes_varint::read_i32(&mut rest).ok()?).ok()?;
    if count > rest.len() {
        return None;
    }
    let mut headers = Vec::with_capacity(count);
    for _ in 0..count {
        let key = sized(body, &mut rest)??;
        headers.push(Header { key, value: sized(body, &mut rest)? });
    }
    let timestamp = match header.timestamp_type() {
        TimestampType::CreateTime => header.base_timestamp.wrapping_add(timestamp_delta),
        TimestampType::LogAppendTime => header.max_timestamp,
    };
    let offset = header.base_offset.wrapping_add(i64::from(offset_delta));
    rest.is_empty().then_some(Record { offset, timestamp, key, value, headers })
}

/// A field with its length in front, as a slice of `body`; `Some(None)` for null.
fn sized(body: &Bytes, rest: &mut &[u8]) -> Option<Option<Bytes>> {
    let size = bytes_varint::read_i32(rest).ok()?;
    let Ok(size) = usize::try_from(size) else { return Some(None) };
    let (field, after) = rest.split_at_checked(size)?;
    *rest = after;
    Some(Some(body.slice_ref(field)))
}
