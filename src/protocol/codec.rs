//! How each type of the schema table stands on the wire. The structs of [`super::messages`] and
//! [`super::records`] are built from these by the macros of [`super::dsl`].
//! Source: protocol guide, "Protocol Primitive Types"; KIP-482 for compact lengths and tags.

use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use uuid::Uuid;

use super::StrBytes;
use super::schema::{DescribedMessage, Field};
use super::wire::{DecodeError, EncodeError, Fault, Out, Stored};
use crate::common::varint::{self, VarintError};

/// Elements that an array may have; Kafka 4.4 refuses more.
pub const ARRAY_ELEMENTS_MAX: usize = 1_000_000;
/// Bytes of the longest string, in every version; Kafka refuses longer ones.
pub const STRING_BYTES_MAX: usize = 32_767;
/// Tagged fields that a struct may have; Kafka 4.4 refuses more.
pub const TAGGED_FIELDS_MAX: u32 = 10_000;

/// The version that is read or written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At {
    pub version: i16,
    /// Whether it has compact lengths and tagged fields.
    pub flexible: bool,
}

/// A value that can be read from and written to the wire.
pub(crate) trait Wire: Sized {
    fn read(bytes: &mut Bytes, at: At) -> Result<Self, DecodeError>;
    fn write<O: Out>(&self, out: &mut O, at: At) -> Result<(), EncodeError>;

    /// Reads a value that may be null in some version.
    fn read_nullable(bytes: &mut Bytes, at: At) -> Result<Option<Self>, DecodeError> {
        Self::read(bytes, at).map(Some)
    }

    /// Writes a value that may be null in some version.
    fn write_nullable<O: Out>(
        value: Option<&Self>,
        out: &mut O,
        at: At,
    ) -> Result<(), EncodeError> {
        value.ok_or(EncodeError::Null { field: "", version: at.version })?.write(out, at)
    }

    fn is_null(&self) -> bool {
        false
    }
}

impl<T: Wire> Wire for Option<T> {
    fn read(bytes: &mut Bytes, at: At) -> Result<Self, DecodeError> {
        T::read_nullable(bytes, at)
    }

    fn write<O: Out>(&self, out: &mut O, at: At) -> Result<(), EncodeError> {
        T::write_nullable(self.as_ref(), out, at)
    }

    fn is_null(&self) -> bool {
        self.is_none()
    }
}

/// Reads the value of `field`, checking that it is not null where it may not be.
pub(crate) fn read_field<T: Wire>(
    bytes: &mut Bytes,
    at: At,
    field: &'static Field,
) -> Result<T, DecodeError> {
    let value = T::read(bytes, at).map_err(|error| error.at(field.name))?;
    if value.is_null() && !field.nullable.contains(at.version) {
        return Err(DecodeError::Field { field: field.name, fault: Fault::Null });
    }
    Ok(value)
}

/// Writes the value of `field`.
pub(crate) fn write_field<T: Wire, O: Out>(
    value: &T,
    out: &mut O,
    at: At,
    field: &'static Field,
) -> Result<(), EncodeError> {
    if value.is_null() && !field.nullable.contains(at.version) {
        return Err(EncodeError::Null { field: field.name, version: at.version });
    }
    value.write(out, at).map_err(|error| error.at(field.name))
}

/// The tagged fields of one struct while it is written; those at their default are left out.
#[derive(Default)]
pub(crate) struct Tagged {
    /// Ascending by tag, as KIP-482 wants them.
    fields: Vec<(u32, BytesMut)>,
}

impl Tagged {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn write<T: Wire + PartialEq>(
        &mut self,
        value: &T,
        default: T,
        at: At,
        field: &'static Field,
    ) -> Result<(), EncodeError> {
        let Some(tag) = field.tag.filter(|_| *value != default) else { return Ok(()) };
        let mut body = BytesMut::new();
        write_field(value, &mut body, at, field)?;
        let place = self.fields.partition_point(|(before, _)| *before < tag);
        self.fields.insert(place, (tag, body));
        Ok(())
    }

    pub fn finish<O: Out>(self, out: &mut O) {
        varint::write_u64(out.open(), self.fields.len() as u64);
        for (tag, body) in self.fields {
            varint::write_u32(out.open(), tag);
            varint::write_u64(out.open(), body.len() as u64);
            out.open().extend_from_slice(&body);
        }
    }
}

/// Reads a struct that may be null: a byte says whether it follows.
pub(crate) fn read_nullable_struct<T: Wire>(
    bytes: &mut Bytes,
    at: At,
) -> Result<Option<T>, DecodeError> {
    if i8::read(bytes, at)? < 0 { Ok(None) } else { T::read(bytes, at).map(Some) }
}

/// Writes a struct that may be null.
pub(crate) fn write_nullable_struct<T: Wire, O: Out>(
    value: Option<&T>,
    out: &mut O,
    at: At,
) -> Result<(), EncodeError> {
    let Some(value) = value else { return (-1_i8).write(out, at) };
    1_i8.write(out, at)?;
    value.write(out, at)
}

/// Reads a message of a version that it has.
pub(crate) fn decode_whole<T: Wire + DescribedMessage>(
    bytes: &mut Bytes,
    version: i16,
) -> Result<T, DecodeError> {
    let message = &T::MESSAGE;
    if !message.versions.contains(version) {
        return Err(DecodeError::Version { message: message.schema.name, version });
    }
    T::read(bytes, At { version, flexible: message.flexible.contains(version) })
}

/// Writes a message in a version that it has.
pub(crate) fn encode_whole<T: Wire + DescribedMessage, O: Out>(
    value: &T,
    out: &mut O,
    version: i16,
) -> Result<(), EncodeError> {
    let message = &T::MESSAGE;
    if !message.versions.contains(version) {
        return Err(EncodeError::Version { message: message.schema.name, version });
    }
    value.write(out, At { version, flexible: message.flexible.contains(version) })
}

/// Reads the tagged fields of one struct; `read` is given each tag with its bytes and ignores the
/// ones that it does not know.
pub(crate) fn read_tagged(
    bytes: &mut Bytes,
    mut read: impl FnMut(u32, &mut Bytes) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let count = read_varint(bytes)?;
    if count > TAGGED_FIELDS_MAX {
        return Err(Fault::TooManyTags.into());
    }
    for _ in 0..count {
        let tag = read_varint(bytes)?;
        let size = read_varint(bytes)? as usize;
        let mut value = take(bytes, size)?;
        read(tag, &mut value)?;
    }
    Ok(())
}

pub(crate) fn read_varint(bytes: &mut Bytes) -> Result<u32, Fault> {
    let mut rest = &bytes[..];
    let value = varint::read_u32(&mut rest)?;
    let read = bytes.len() - rest.len();
    bytes.advance(read);
    Ok(value)
}

impl From<VarintError> for Fault {
    fn from(error: VarintError) -> Self {
        match error {
            VarintError::Cut => Self::Cut,
            VarintError::TooLong => Self::Varint,
        }
    }
}

fn take(bytes: &mut Bytes, size: usize) -> Result<Bytes, Fault> {
    if size > bytes.len() {
        return Err(Fault::Length);
    }
    Ok(bytes.split_to(size))
}

macro_rules! fixed_size {
    ($($type:ty: $get:ident $put:ident;)*) => {$(
        impl Wire for $type {
            fn read(bytes: &mut Bytes, _: At) -> Result<Self, DecodeError> {
                bytes.$get().map_err(|_| Fault::Cut.into())
            }

            fn write<O: Out>(&self, out: &mut O, _: At) -> Result<(), EncodeError> {
                out.open().$put(*self);
                Ok(())
            }
        }
    )*};
}

fixed_size! {
    i8: try_get_i8 put_i8;
    i16: try_get_i16 put_i16;
    u16: try_get_u16 put_u16;
    i32: try_get_i32 put_i32;
    u32: try_get_u32 put_u32;
    i64: try_get_i64 put_i64;
    f64: try_get_f64 put_f64;
}

impl Wire for bool {
    fn read(bytes: &mut Bytes, at: At) -> Result<Self, DecodeError> {
        i8::read(bytes, at).map(|byte| byte != 0)
    }

    fn write<O: Out>(&self, out: &mut O, at: At) -> Result<(), EncodeError> {
        i8::from(*self).write(out, at)
    }
}

impl Wire for Uuid {
    fn read(bytes: &mut Bytes, _: At) -> Result<Self, DecodeError> {
        let value = bytes.try_get_u128().map_err(|_| Fault::Cut)?;
        Ok(Self::from_u128(value))
    }

    fn write<O: Out>(&self, out: &mut O, _: At) -> Result<(), EncodeError> {
        out.open().put_slice(self.as_bytes());
        Ok(())
    }
}

/// Reads a length in four bytes, or a varint of length + 1; `None` is null, which any negative
/// length says.
fn read_length(bytes: &mut Bytes, at: At) -> Result<Option<usize>, DecodeError> {
    if at.flexible {
        return Ok((read_varint(bytes)? as usize).checked_sub(1));
    }
    Ok(usize::try_from(i32::read(bytes, at)?).ok())
}

fn write_length<O: Out>(length: Option<usize>, out: &mut O, at: At) -> Result<(), EncodeError> {
    if at.flexible {
        varint::write_u64(out.open(), length.map_or(0, |length| length as u64 + 1));
        return Ok(());
    }
    let length = match length {
        None => -1,
        Some(length) => {
            i32::try_from(length).map_err(|_| EncodeError::TooLong { field: "", length })?
        }
    };
    length.write(out, at)
}

impl Wire for Bytes {
    fn read(bytes: &mut Bytes, at: At) -> Result<Self, DecodeError> {
        Self::read_nullable(bytes, at)?.ok_or(Fault::Null.into())
    }

    fn write<O: Out>(&self, out: &mut O, at: At) -> Result<(), EncodeError> {
        Self::write_nullable(Some(self), out, at)
    }

    fn read_nullable(bytes: &mut Bytes, at: At) -> Result<Option<Self>, DecodeError> {
        let Some(length) = read_length(bytes, at)? else { return Ok(None) };
        Ok(Some(take(bytes, length)?))
    }

    fn write_nullable<O: Out>(
        value: Option<&Self>,
        out: &mut O,
        at: At,
    ) -> Result<(), EncodeError> {
        write_length(value.map(Bytes::len), out, at)?;
        if let Some(bytes) = value {
            out.put_shared(bytes);
        }
        Ok(())
    }
}

impl Wire for Stored {
    fn read(bytes: &mut Bytes, at: At) -> Result<Self, DecodeError> {
        Bytes::read(bytes, at).map(Self::Read)
    }

    fn write<O: Out>(&self, out: &mut O, at: At) -> Result<(), EncodeError> {
        Self::write_nullable(Some(self), out, at)
    }

    fn read_nullable(bytes: &mut Bytes, at: At) -> Result<Option<Self>, DecodeError> {
        Ok(Bytes::read_nullable(bytes, at)?.map(Self::Read))
    }

    fn write_nullable<O: Out>(
        value: Option<&Self>,
        out: &mut O,
        at: At,
    ) -> Result<(), EncodeError> {
        match value {
            Some(Self::InFile(slice)) => {
                write_length(Some(slice.size_bytes), out, at)?;
                out.put_file(slice)
            }
            Some(Self::Read(bytes)) => Bytes::write_nullable(Some(bytes), out, at),
            None => Bytes::write_nullable(None, out, at),
        }
    }
}

/// Reads a string: its length has two bytes, or is a varint of length + 1. Bytes that are not UTF-8
/// are replaced, as Kafka does.
fn read_text(bytes: &mut Bytes, at: At) -> Result<Option<StrBytes>, DecodeError> {
    let length = if at.flexible {
        (read_varint(bytes)? as usize).checked_sub(1)
    } else {
        usize::try_from(i16::read(bytes, at)?).ok()
    };
    let Some(length) = length else { return Ok(None) };
    if length > STRING_BYTES_MAX {
        return Err(Fault::Length.into());
    }
    let text = take(bytes, length)?;
    Ok(Some(StrBytes::from_utf8(text.clone()).unwrap_or_else(|_| replaced(&text))))
}

/// Heap bytes that a string of `length` bytes takes when it is not UTF-8: each byte may become the
/// three of U+FFFD, and somebody counts who shares them.
pub(crate) const fn replaced_bytes_max(length: usize) -> usize {
    3 * length + 64
}

fn replaced(text: &[u8]) -> StrBytes {
    let mut out = String::with_capacity(3 * text.len());
    for chunk in text.utf8_chunks() {
        out.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
    StrBytes::from_string(out)
}

fn write_text<O: Out>(text: Option<&str>, out: &mut O, at: At) -> Result<(), EncodeError> {
    let length = text.map(str::len);
    if let Some(length) = length.filter(|length| *length > STRING_BYTES_MAX) {
        return Err(EncodeError::TooLong { field: "", length });
    }
    if at.flexible {
        varint::write_u64(out.open(), length.map_or(0, |length| length as u64 + 1));
    } else {
        length.map_or(-1, |length| length as i16).write(out, at)?;
    }
    out.open().put_slice(text.unwrap_or_default().as_bytes());
    Ok(())
}

macro_rules! string {
    ($($type:ty: $from:expr;)*) => {$(
        impl Wire for $type {
            fn read(bytes: &mut Bytes, at: At) -> Result<Self, DecodeError> {
                Self::read_nullable(bytes, at)?.ok_or(Fault::Null.into())
            }

            fn write<O: Out>(&self, out: &mut O, at: At) -> Result<(), EncodeError> {
                write_text(Some(self), out, at)
            }

            fn read_nullable(bytes: &mut Bytes, at: At) -> Result<Option<Self>, DecodeError> {
                Ok(read_text(bytes, at)?.map($from))
            }

            fn write_nullable<O: Out>(
                value: Option<&Self>,
                out: &mut O,
                at: At,
            ) -> Result<(), EncodeError> {
                write_text(value.map(|text| &**text), out, at)
            }
        }
    )*};
}

string! {
    StrBytes: std::convert::identity;
    Arc<str>: |text: StrBytes| Arc::from(text.as_str());
}

impl<T: Wire> Wire for Vec<T> {
    fn read(bytes: &mut Bytes, at: At) -> Result<Self, DecodeError> {
        Self::read_nullable(bytes, at)?.ok_or(Fault::Null.into())
    }

    fn write<O: Out>(&self, out: &mut O, at: At) -> Result<(), EncodeError> {
        Self::write_nullable(Some(self), out, at)
    }

    fn read_nullable(bytes: &mut Bytes, at: At) -> Result<Option<Self>, DecodeError> {
        let Some(length) = read_length(bytes, at)? else { return Ok(None) };
        if length > ARRAY_ELEMENTS_MAX {
            return Err(Fault::TooManyElements.into());
        }
        // An element takes one byte at least, so that this reserves what can really follow.
        if length > bytes.len() {
            return Err(Fault::Length.into());
        }
        let mut elements = Self::with_capacity(length);
        for _ in 0..length {
            elements.push(T::read(bytes, at)?);
        }
        Ok(Some(elements))
    }

    fn write_nullable<O: Out>(
        value: Option<&Self>,
        out: &mut O,
        at: At,
    ) -> Result<(), EncodeError> {
        write_length(value.map(Vec::len), out, at)?;
        for element in value.into_iter().flatten() {
            element.write(out, at)?;
        }
        Ok(())
    }
}
