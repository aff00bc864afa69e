//! One pass over the records of a batch without keeping them: structure, timestamps, keys.

use bytes::Bytes;

use super::codec::Decompressed;
use super::{BatchError, BatchHeader, Compression, HEADER_BYTES, Invalid, TimestampType};

/// What the pass tells of each record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub index: i32,
    pub offset_delta: i32,
    pub timestamp: i64,
    /// Bytes of the key, negative for null.
    pub key_size: i32,
    /// Bytes of the value, negative for null.
    pub value_size: i32,
}

/// Shows every record of `batch` (whole, header included) to `visit`.
/// - `record_bytes_max`: largest record in a compressed batch, without its length field.
///
/// # Errors
/// [`BatchError::Invalid`]: a record's structure is broken, or bytes are missing or left over.
/// [`BatchError::Undecodable`]: the payload does not decompress.
pub(super) fn walk(
    batch: &Bytes,
    header: &BatchHeader,
    record_bytes_max: i64,
    visit: impl FnMut(Seen),
) -> Result<(), BatchError> {
    match header.compression()? {
        Compression::None => {
            let source = Slice { all: &batch[HEADER_BYTES..], taken: 0 };
            walk_source(source, header, i64::MAX, visit)
        }
        compression => {
            let payload = batch.slice(HEADER_BYTES..);
            let stream = Decompressed::new(compression, payload)?;
            let source = Stream::new(stream, STREAM_BUFFER_BYTES);
            walk_source(source, header, record_bytes_max, visit)
        }
    }
}

const STREAM_BUFFER_BYTES: usize = 16 << 10;

/// Bytes taken from the front.
pub(super) trait Source {
    /// `Ok(None)` at the end.
    fn byte(&mut self) -> Result<Option<u8>, BatchError>;
    /// Whether `count` bytes were there to be passed over.
    fn skip(&mut self, count: usize) -> Result<bool, BatchError>;
    /// How many were taken so far.
    fn taken(&self) -> u64;
}

pub(super) struct Slice<'a> {
    pub all: &'a [u8],
    pub taken: usize,
}

impl Source for Slice<'_> {
    #[inline]
    fn byte(&mut self) -> Result<Option<u8>, BatchError> {
        let byte = self.all.get(self.taken).copied();
        self.taken += usize::from(byte.is_some());
        Ok(byte)
    }

    #[inline]
    fn skip(&mut self, count: usize) -> Result<bool, BatchError> {
        let there = count <= self.all.len() - self.taken;
        if there {
            self.taken += count;
        }
        Ok(there)
    }

    #[inline]
    fn taken(&self) -> u64 {
        self.taken as u64
    }
}

pub(super) struct Stream {
    decompressed: Decompressed,
    buffer: Vec<u8>,
    from: usize,
    until: usize,
    before: u64,
}

impl Stream {
    pub fn new(decompressed: Decompressed, buffer_bytes: usize) -> Self {
        Self { decompressed, buffer: vec![0; buffer_bytes], from: 0, until: 0, before: 0 }
    }

    /// Whether there is at least one more byte in the buffer.
    fn fill(&mut self) -> Result<bool, BatchError> {
        if self.from == self.until {
            self.before += self.until as u64;
            (self.from, self.until) = (0, 0);
            self.until = self.decompressed.read(&mut self.buffer)?;
        }
        Ok(self.from < self.until)
    }

    /// Appends up to `count` bytes to `out`; whether all were there.
    pub fn take(&mut self, mut count: usize, out: &mut Vec<u8>) -> Result<bool, BatchError> {
        while count > 0 && self.fill()? {
            let step = count.min(self.until - self.from);
            out.extend_from_slice(&self.buffer[self.from..self.from + step]);
            self.from += step;
            count -= step;
        }
        Ok(count == 0)
    }
}

impl Source for Stream {
    fn byte(&mut self) -> Result<Option<u8>, BatchError> {
        if !self.fill()? {
            return Ok(None);
        }
        self.from += 1;
        Ok(Some(self.buffer[self.from - 1]))
    }

    fn skip(&mut self, mut count: usize) -> Result<bool, BatchError> {
        while count > 0 && self.fill()? {
            let step = count.min(self.until - self.from);
            self.from += step;
            count -= step;
        }
        Ok(count == 0)
    }

    fn taken(&self) -> u64 {
        self.before + self.from as u64
    }
}

fn walk_source(
    mut source: impl Source,
    header: &BatchHeader,
    record_bytes_max: i64,
    mut visit: impl FnMut(Seen),
) -> Result<(), BatchError> {
    let append_time = match header.timestamp_type() {
        TimestampType::CreateTime => None,
        TimestampType::LogAppendTime => Some(header.max_timestamp),
    };
    for index in 0..header.records_count {
        let mut seen = record(&mut source, index, record_bytes_max)?;
        let create_time = header.base_timestamp.wrapping_add(seen.timestamp);
        seen.timestamp = append_time.unwrap_or(create_time);
        visit(seen);
    }
    match source.byte()? {
        None => Ok(()),
        Some(_) => Err(Invalid::Trailing.into()),
    }
}

/// Reads one record; its timestamp is still a delta.
fn record(source: &mut impl Source, index: i32, size_max: i64) -> Result<Seen, BatchError> {
    let wrong = |what| BatchError::Invalid(Invalid::Record { index, what });
    let size = i64::from(varint(source, index)?);
    if size > size_max {
        return Err(wrong("larger than max.decompressed.message.bytes"));
    }
    let start = source.taken();
    byte(source, index)?; // attributes of a record are not used
    let timestamp = varlong(source, index)?;
    let offset_delta = varint(source, index)?;
    let key_size = sized(source, index)?;
    let value_size = sized(source, index)?;
    let headers = varint(source, index)?;
    if headers < 0 {
        return Err(wrong("negative number of headers"));
    }
    for _ in 0..headers {
        if sized(source, index)? < 0 {
            return Err(wrong("header without a key"));
        }
        sized(source, index)?;
    }
    if source.taken() as i64 - start as i64 != size {
        return Err(wrong("size does not match its fields"));
    }
    Ok(Seen { index, offset_delta, timestamp, key_size, value_size })
}

/// Passes over a field with a length in front; returns that length, negative for null.
#[inline]
fn sized(source: &mut impl Source, index: i32) -> Result<i32, BatchError> {
    let size = varint(source, index)?;
    match usize::try_from(size) {
        Ok(count) if !source.skip(count)? => Err(cut(index)),
        _ => Ok(size),
    }
}

#[cold]
fn cut(index: i32) -> BatchError {
    BatchError::Invalid(Invalid::Record { index, what: "bytes end inside it" })
}

#[inline]
fn byte(source: &mut impl Source, index: i32) -> Result<u8, BatchError> {
    source.byte()?.ok_or_else(|| cut(index))
}

/// Zig-zag, at most 5 bytes; bits above the 32nd are dropped, as Kafka does.
#[inline]
pub(super) fn varint(source: &mut impl Source, index: i32) -> Result<i32, BatchError> {
    let raw = unsigned(source, index, 5)? as u32;
    Ok((raw >> 1) as i32 ^ -((raw & 1) as i32))
}

/// Zig-zag, at most 10 bytes.
#[inline]
fn varlong(source: &mut impl Source, index: i32) -> Result<i64, BatchError> {
    let raw = unsigned(source, index, 10)?;
    Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
}

#[inline]
fn unsigned(source: &mut impl Source, index: i32, longest: u32) -> Result<u64, BatchError> {
    let first = byte(source, index)?;
    let mut value = u64::from(first & 0x7f);
    if first < 0x80 {
        return Ok(value);
    }
    for at in 1..longest {
        let next = byte(source, index)?;
        value |= u64::from(next & 0x7f) << (7 * at);
        if next < 0x80 {
            return Ok(value);
        }
    }
    Err(BatchError::Invalid(Invalid::Record { index, what: "a varint has no end" }))
}
