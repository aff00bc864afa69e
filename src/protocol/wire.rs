//! The traits by which dispatch reads requests and writes answers, whichever codec serves them,
//! and where encoded bytes go.

use bytes::{Bytes, BytesMut};

use super::api::ApiKey;
use crate::env::FileSlice;

/// What is wrong with bytes that a peer sent.
#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum Fault {
    #[error("the bytes end inside it")]
    Cut,
    #[error("its length is negative or longer than what follows")]
    Length,
    #[error("it is null, which this version does not allow")]
    Null,
    #[error("it is not UTF-8")]
    Utf8,
    #[error("a varint is longer than its type allows")]
    Varint,
    #[error("the byte that says whether it is null is neither 1 nor -1")]
    Presence,
    #[error("it does not fill the size that its tag names")]
    TagSize,
    #[error("it has more than 1000000 elements")]
    TooManyElements,
    #[error("it has more than 10000 tagged fields")]
    TooManyTags,
}

/// The bytes are not the message that their sender says they are.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DecodeError {
    #[error("`{field}`: {fault}")]
    Field { field: &'static str, fault: Fault },
    #[error("{message} has no version {version}")]
    Version { message: &'static str, version: i16 },
    #[error("{what} {id} is not known")]
    UnknownKind { what: &'static str, id: i64 },
    /// kafka-protocol's own words.
    #[error("{message}: {reason}")]
    Crate { message: &'static str, reason: String },
}

impl From<Fault> for DecodeError {
    fn from(fault: Fault) -> Self {
        Self::Field { field: "", fault }
    }
}

impl DecodeError {
    /// Names the field, unless an inner one is already named.
    pub(crate) fn at(self, name: &'static str) -> Self {
        match self {
            Self::Field { field: "", fault } => Self::Field { field: name, fault },
            named => named,
        }
    }
}

/// We tried to say what the protocol cannot.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum EncodeError {
    #[error("`{field}` is null, which version {version} does not allow")]
    Null { field: &'static str, version: i16 },
    #[error("`{field}` has {length} bytes or elements, more than its length field can say")]
    TooLong { field: &'static str, length: usize },
    #[error("{message} has no version {version}")]
    Version { message: &'static str, version: i16 },
    #[error("its records are still in their file")]
    NotRead,
    /// kafka-protocol's own words.
    #[error("{message}: {reason}")]
    Crate { message: &'static str, reason: String },
}

impl EncodeError {
    pub(crate) fn at(self, name: &'static str) -> Self {
        match self {
            Self::Null { field: "", version } => Self::Null { field: name, version },
            Self::TooLong { field: "", length } => Self::TooLong { field: name, length },
            named => named,
        }
    }
}

/// A request as dispatch sees it.
pub trait WireRequest: Sized {
    const KEY: ApiKey;
    type Response: WireResponse;

    /// Reads a body that the guard has passed. Strings, bytes and records are slices of `body`.
    ///
    /// # Errors
    /// [`DecodeError`]: the connection is closed, as Kafka does.
    fn decode(body: &mut Bytes, version: i16) -> Result<Self, DecodeError>;
}

/// An answer as dispatch sees it.
pub trait WireResponse: Sized {
    /// Appends the body, without the header, to `out`.
    ///
    /// # Errors
    /// [`EncodeError`]: our mistake; `out` then holds half a body.
    fn encode(&self, out: &mut BytesMut, version: i16) -> Result<(), EncodeError>;

    /// As [`WireResponse::encode`], but large records are passed on instead of copied.
    ///
    /// # Errors
    /// As [`WireResponse::encode`].
    fn encode_pieces(&self, out: &mut Pieces, version: i16) -> Result<(), EncodeError> {
        self.encode(out.open(), version)
    }
}

/// Where encoded bytes go.
pub trait Out {
    /// The buffer that small values are appended to.
    fn open(&mut self) -> &mut BytesMut;

    /// Appends bytes that somebody else may go on holding.
    fn put_shared(&mut self, bytes: &Bytes) {
        self.open().extend_from_slice(bytes);
    }

    /// Appends bytes of a file.
    ///
    /// # Errors
    /// [`EncodeError::NotRead`] where only bytes can go.
    fn put_file(&mut self, _: &FileSlice) -> Result<(), EncodeError> {
        Err(EncodeError::NotRead)
    }
}

impl Out for BytesMut {
    fn open(&mut self) -> &mut BytesMut {
        self
    }
}

/// From this size on bytes are passed on; below, a copy is cheaper than a piece more to write.
const SHARED_BYTES_MIN: usize = 1024;
/// Most answers to Produce and Fetch, their records left aside, fit without growing.
const FIRST_BYTES: usize = 160;

/// Records of an answer, read or left in the file that they are sent from.
#[derive(Debug, Clone, PartialEq)]
pub enum Stored {
    Read(Bytes),
    InFile(FileSlice),
}

impl Default for Stored {
    fn default() -> Self {
        Self::Read(Bytes::new())
    }
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    Bytes(Bytes),
    File(FileSlice),
}

impl Piece {
    pub fn size_bytes(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::File(slice) => slice.size_bytes,
        }
    }
}

/// An answer as pieces for few writes; large records stay where they are.
#[derive(Debug)]
pub struct Pieces {
    done: Vec<Piece>,
    open: BytesMut,
}

impl Default for Pieces {
    fn default() -> Self {
        Self::new()
    }
}

impl Pieces {
    pub fn new() -> Self {
        Self { done: Vec::new(), open: BytesMut::with_capacity(FIRST_BYTES) }
    }

    /// Bytes of all pieces.
    pub fn size_bytes(&self) -> usize {
        self.done.iter().map(Piece::size_bytes).sum::<usize>() + self.open.len()
    }

    /// The pieces in order; none is empty.
    pub fn finish(mut self) -> Vec<Piece> {
        self.close_open();
        self.done
    }

    fn close_open(&mut self) {
        if !self.open.is_empty() {
            self.done.push(Piece::Bytes(self.open.split().freeze()));
        }
    }
}

impl Out for Pieces {
    fn open(&mut self) -> &mut BytesMut {
        &mut self.open
    }

    fn put_shared(&mut self, bytes: &Bytes) {
        if bytes.len() < SHARED_BYTES_MIN {
            self.open.extend_from_slice(bytes);
        } else {
            self.close_open();
            self.done.push(Piece::Bytes(bytes.clone()));
        }
    }

    fn put_file(&mut self, slice: &FileSlice) -> Result<(), EncodeError> {
        self.close_open();
        self.done.push(Piece::File(slice.clone()));
        Ok(())
    }
}
