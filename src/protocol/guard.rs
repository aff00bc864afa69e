//! The guard before every decoder: walks a request body by the schema table, allocates nothing, and
//! refuses what no honest client sends before anything is reserved for it. (A 4-byte Metadata body
//! makes kafka-protocol reserve 154 GB.)
//!
//! Where Kafka 4.4 is lenient, so is the guard (tried on a real one): bytes after the body are
//! ignored, any negative length is null, unknown tagged fields are skipped. It is stricter where a
//! decoder could lose step with it: a tagged field fills exactly the size that it names, a varint
//! fits its type. Of messages that kafka-protocol decodes strings must be UTF-8 and null is -1; our
//! own codecs take any negative length and replace what is not UTF-8, as Kafka does.
//! What it passes, the decoder behind it reads without an error.

use super::api::ApiKey;
use super::codec::{ARRAY_ELEMENTS_MAX, STRING_BYTES_MAX, TAGGED_FIELDS_MAX, replaced_bytes_max};
use super::messages;
use super::schema::{Field, Kind, Schema};
use super::wire::Fault;
use crate::common::varint;

/// Why a body is not decoded; the connection is closed with one warning.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum GuardError {
    #[error("`{field}`: {fault}")]
    Malformed { field: &'static str, fault: Fault },
    #[error("decoding takes more than {charge_max} bytes")]
    TooCostly { charge_max: usize },
    #[error("{key} is not served in version {version}")]
    NotServed { key: ApiKey, version: i16 },
}

/// Heap bytes that decoding a body of `body_bytes` may take: an honest one stays below 16 times its
/// size but for the smallest.
pub const fn charge_max(body_bytes: usize) -> usize {
    16 * body_bytes + 64 * 1024
}

/// Heap bytes of the map of unknown tagged fields that the crate keeps per struct: one node for the
/// first, then each one's share of half-filled nodes.
const FIRST_TAG_BYTES: usize = 432;
const NEXT_TAG_BYTES: usize = 96;

/// Checks a request body before it is decoded.
/// - `version`: one that the table serves.
/// - `charge_max`: limit of the charge, as by [`charge_max`].
/// - Returns the charge: an upper bound of the heap bytes that decoding takes, the frame itself not
///   counted.
/// - Cost: one walk over the body, no allocation.
///
/// # Errors
/// [`GuardError`]: the connection is closed.
pub fn check(
    key: ApiKey,
    version: i16,
    body: &[u8],
    charge_max: usize,
) -> Result<usize, GuardError> {
    let served = key.row().is_some_and(|row| row.serves(version));
    let message = messages::request_message(key).filter(|_| served);
    let message = message.ok_or(GuardError::NotServed { key, version })?;
    let flexible = message.flexible.contains(version);
    let mut walk = Walk { rest: body, version, flexible, charge: 0, charge_max };
    walk.charge(message.schema.decoded_bytes)?;
    walk.structure(message.schema)?;
    Ok(walk.charge)
}

/// The place in a body, and what it costs so far.
struct Walk<'a> {
    rest: &'a [u8],
    version: i16,
    flexible: bool,
    charge: usize,
    charge_max: usize,
}

impl Walk<'_> {
    fn charge(&mut self, bytes: usize) -> Result<(), GuardError> {
        self.charge = self.charge.saturating_add(bytes);
        if self.charge > self.charge_max {
            return Err(GuardError::TooCostly { charge_max: self.charge_max });
        }
        Ok(())
    }

    fn structure(&mut self, schema: &'static Schema) -> Result<(), GuardError> {
        for field in schema.fields {
            if field.is_in_order(self.version) {
                self.field(field, schema)?;
            }
        }
        if self.flexible { self.tags(schema) } else { Ok(()) }
    }

    /// The tagged fields at the end of a struct.
    fn tags(&mut self, schema: &'static Schema) -> Result<(), GuardError> {
        let malformed = |fault| GuardError::Malformed { field: schema.name, fault };
        let count = self.varint().map_err(malformed)?;
        if count > TAGGED_FIELDS_MAX {
            return Err(malformed(Fault::TooManyTags));
        }
        let mut unknown = 0;
        for _ in 0..count {
            let tag = self.varint().map_err(malformed)?;
            let size = self.varint().map_err(malformed)? as usize;
            let Some(after) = self.rest.get(size..) else { return Err(malformed(Fault::Length)) };
            let known = schema.fields.iter().find(|field| field.is_tagged_as(tag, self.version));
            if let Some(field) = known {
                self.field(field, schema)?;
                if self.rest.len() != after.len() {
                    return Err(GuardError::Malformed { field: field.name, fault: Fault::TagSize });
                }
            } else {
                self.rest = after;
                unknown += 1;
                if schema.foreign {
                    self.charge(if unknown == 1 { FIRST_TAG_BYTES } else { NEXT_TAG_BYTES })?;
                }
            }
        }
        Ok(())
    }

    fn field(&mut self, field: &'static Field, of: &'static Schema) -> Result<(), GuardError> {
        let malformed = |fault| GuardError::Malformed { field: field.name, fault };
        let present = match &field.kind {
            Kind::Struct(schema) => {
                let nullable = field.nullable.contains(self.version);
                let present = !nullable || self.presence(of).map_err(malformed)?;
                if present {
                    self.structure(schema)?;
                }
                present
            }
            Kind::Array(element) => match self.array_length(of).map_err(malformed)? {
                None => false,
                Some(count) => {
                    self.charge(count.saturating_mul(element.decoded_bytes()))?;
                    self.elements(count, element, field, of)?;
                    true
                }
            },
            kind => self.scalar(kind, field, of)?,
        };
        if present || field.nullable.contains(self.version) {
            Ok(())
        } else {
            Err(malformed(Fault::Null))
        }
    }

    fn elements(
        &mut self,
        count: usize,
        element: &'static Kind,
        field: &'static Field,
        of: &'static Schema,
    ) -> Result<(), GuardError> {
        let malformed = |fault| GuardError::Malformed { field: field.name, fault };
        if let Some(size) = fixed_bytes(element) {
            return self.skip(count * size).map_err(malformed);
        }
        for _ in 0..count {
            let present = match element {
                Kind::Struct(schema) => {
                    self.structure(schema)?;
                    true
                }
                kind => self.scalar(kind, field, of)?,
            };
            if !present {
                return Err(malformed(Fault::Null));
            }
        }
        Ok(())
    }

    /// A value that is neither struct nor array; returns whether it is there (not null).
    fn scalar(
        &mut self,
        kind: &'static Kind,
        field: &'static Field,
        of: &'static Schema,
    ) -> Result<bool, GuardError> {
        let malformed = |fault| GuardError::Malformed { field: field.name, fault };
        if let Some(size) = fixed_bytes(kind) {
            return self.skip(size).map(|()| true).map_err(malformed);
        }
        let is_text = matches!(kind, Kind::String);
        let length = if is_text { self.text_length(of) } else { self.length(of) };
        let Some(length) = length.map_err(malformed)? else { return Ok(false) };
        let value = self.rest;
        self.skip(length).map_err(malformed)?;
        if is_text && std::str::from_utf8(&value[..length]).is_err() {
            if of.foreign {
                return Err(malformed(Fault::Utf8));
            }
            self.charge(replaced_bytes_max(length))?;
        }
        Ok(true)
    }

    /// Whether a struct that may be null follows. To Kafka any number from 0 on says yes, to
    /// kafka-protocol 1 only.
    fn presence(&mut self, of: &Schema) -> Result<bool, Fault> {
        match i8::from_be_bytes(self.number()?) {
            marker if of.foreign && !matches!(marker, -1 | 1) => Err(Fault::Presence),
            marker => Ok(marker >= 0),
        }
    }

    fn skip(&mut self, bytes: usize) -> Result<(), Fault> {
        self.rest = self.rest.get(bytes..).ok_or(Fault::Cut)?;
        Ok(())
    }

    fn varint(&mut self) -> Result<u32, Fault> {
        Ok(varint::read_u32(&mut self.rest)?)
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (number, rest) = self.rest.split_first_chunk().ok_or(Fault::Cut)?;
        self.rest = rest;
        Ok(*number)
    }

    /// The length of bytes or of an array; `None` is null.
    fn length(&mut self, of: &Schema) -> Result<Option<usize>, Fault> {
        if self.flexible {
            return Ok((self.varint()? as usize).checked_sub(1));
        }
        or_null(i32::from_be_bytes(self.number()?), of)
    }

    fn text_length(&mut self, of: &Schema) -> Result<Option<usize>, Fault> {
        let length = if self.flexible {
            (self.varint()? as usize).checked_sub(1)
        } else {
            or_null(i16::from_be_bytes(self.number()?).into(), of)?
        };
        match length {
            Some(length) if length > STRING_BYTES_MAX => Err(Fault::Length),
            length => Ok(length),
        }
    }

    /// The number of elements, none of which takes less than a byte.
    fn array_length(&mut self, of: &Schema) -> Result<Option<usize>, Fault> {
        match self.length(of)? {
            Some(count) if count > self.rest.len() => Err(Fault::Length),
            Some(count) if count > ARRAY_ELEMENTS_MAX => Err(Fault::TooManyElements),
            length => Ok(length),
        }
    }
}

/// A length that is not compact; any negative one is null, for kafka-protocol only -1.
fn or_null(length: i32, of: &Schema) -> Result<Option<usize>, Fault> {
    if of.foreign && length < -1 {
        return Err(Fault::Length);
    }
    Ok(usize::try_from(length).ok())
}

/// Bytes on the wire of a type that always takes the same.
const fn fixed_bytes(kind: &Kind) -> Option<usize> {
    match kind {
        Kind::Bool | Kind::Int8 => Some(1),
        Kind::Int16 | Kind::Uint16 => Some(2),
        Kind::Int32 | Kind::Uint32 => Some(4),
        Kind::Int64 | Kind::Float64 => Some(8),
        Kind::Uuid => Some(16),
        Kind::String | Kind::Bytes | Kind::Records | Kind::Array(_) | Kind::Struct(_) => None,
    }
}
