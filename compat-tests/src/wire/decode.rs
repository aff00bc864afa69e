//! Decodes any message at any version to a JSON value (see `codec` for the form of values).
//! Strict: bytes that are left over, a null where the schema forbids it or an unknown tag are errors.

use super::codec::{default_of, to_hex};
use super::schema::{Field, Kind, Message, Versions};
use serde_json::{Map, Value, json};

/// # Errors
/// A sentence that names the field and the position.
pub fn decode(message: &Message, version: i16, bytes: &[u8]) -> Result<Value, String> {
    let mut reader = Reader { version, bytes, at: 0 };
    let flexible = message.flexible.contains(version);
    let value = reader.fields(&message.fields, flexible).and_then(|value| {
        let left = bytes.len() - reader.at;
        if left == 0 { Ok(value) } else { Err(format!("{left} bytes are left over")) }
    });
    value.map_err(|e| format!("{} v{version}, at byte {}: {e}", message.name, reader.at))
}

/// Reads a message that may be followed by other bytes; returns how many it took.
pub fn decode_prefix(
    message: &Message,
    version: i16,
    bytes: &[u8],
) -> Result<(Value, usize), String> {
    let mut reader = Reader { version, bytes, at: 0 };
    let value = reader.fields(&message.fields, message.flexible.contains(version))?;
    Ok((value, reader.at))
}

struct Reader<'a> {
    version: i16,
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take(&mut self, n: usize) -> Result<&[u8], String> {
        let end = self.at.checked_add(n).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| format!("{n} bytes wanted, too few are left"))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn int<const N: usize>(&mut self) -> Result<[u8; N], String> {
        Ok(self.take(N)?.try_into().expect("take returns as many as asked"))
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0u64;
        for shift in (0..=28).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a varint is longer than five bytes".into())
    }

    fn fields(&mut self, fields: &[Field], flexible: bool) -> Result<Value, String> {
        let mut object = Map::new();
        let present = fields.iter().filter(|f| f.versions.contains(self.version));
        let version = self.version;
        let is_tagged = |f: &&Field| f.tagged.is_some_and(|(_, v)| v.contains(version));
        let (tagged, plain): (Vec<_>, Vec<_>) = present.partition(is_tagged);
        for field in plain {
            let value = self.value(field, flexible).map_err(|e| format!("{}: {e}", field.name))?;
            object.insert(field.name.clone(), value);
        }
        for field in &tagged {
            object.insert(field.name.clone(), default_of(field, self.version));
        }
        if flexible {
            self.tagged(&tagged, &mut object)?;
        }
        Ok(Value::Object(object))
    }

    fn tagged(&mut self, known: &[&Field], object: &mut Map<String, Value>) -> Result<(), String> {
        let mut last = None;
        for _ in 0..self.varint()? {
            let tag = self.varint()? as u32;
            if last.is_some_and(|last| tag <= last) {
                return Err(format!("tag {tag} is out of order"));
            }
            last = Some(tag);
            let size = self.varint()? as usize;
            let start = self.at;
            let field = known.iter().find(|f| f.tagged.is_some_and(|(t, _)| t == tag));
            let field = field.ok_or_else(|| format!("tag {tag} is not in the schema"))?;
            let value = self.value(field, true).map_err(|e| format!("{}: {e}", field.name))?;
            if self.at - start != size {
                return Err(format!("tag {tag} is {} bytes, not {size}", self.at - start));
            }
            object.insert(field.name.clone(), value);
        }
        Ok(())
    }

    fn value(&mut self, field: &Field, flexible: bool) -> Result<Value, String> {
        let compact = field.flexible.map_or(flexible, |v: Versions| v.contains(self.version));
        let nullable = field.nullable.contains(self.version);
        if let (Kind::Struct(fields), true) = (&field.kind, nullable) {
            return match self.int::<1>()?[0] as i8 {
                -1 => Ok(Value::Null),
                _ => self.fields(fields, flexible),
            };
        }
        let value = self.kind(&field.kind, compact)?;
        if value.is_null() && !nullable {
            return Err("null is not allowed here".into());
        }
        Ok(value)
    }

    fn kind(&mut self, kind: &Kind, compact: bool) -> Result<Value, String> {
        Ok(match kind {
            Kind::Bool => json!(self.int::<1>()?[0] != 0),
            Kind::Int8 => json!(self.int::<1>()?[0] as i8),
            Kind::Int16 => json!(i16::from_be_bytes(self.int()?)),
            Kind::Uint16 => json!(u16::from_be_bytes(self.int()?)),
            Kind::Int32 => json!(i32::from_be_bytes(self.int()?)),
            Kind::Uint32 => json!(u32::from_be_bytes(self.int()?)),
            Kind::Int64 => json!(i64::from_be_bytes(self.int()?)),
            Kind::Float64 => json!(f64::from_be_bytes(self.int()?)),
            Kind::Uuid => json!(to_hex(self.take(16)?)),
            Kind::String => match self.length(compact, 2)? {
                None => Value::Null,
                Some(n) => {
                    let bytes = self.take(n)?.to_vec();
                    json!(String::from_utf8(bytes).map_err(|_| "not UTF-8".to_string())?)
                }
            },
            Kind::Bytes | Kind::Records => match self.length(compact, 4)? {
                None => Value::Null,
                Some(n) => json!(to_hex(self.take(n)?)),
            },
            Kind::Struct(fields) => self.fields(fields, compact)?,
            Kind::Array(element) => match self.length(compact, 4)? {
                None => Value::Null,
                Some(n) => {
                    let mut elements = Vec::new();
                    for index in 0..n {
                        let value = self.kind(element, compact);
                        elements.push(value.map_err(|e| format!("[{index}]: {e}"))?);
                    }
                    Value::Array(elements)
                }
            },
        })
    }

    /// Returns none for null.
    fn length(&mut self, compact: bool, size: usize) -> Result<Option<usize>, String> {
        let length = match (compact, size) {
            (true, _) => self.varint()? as i64 - 1,
            (false, 2) => i64::from(i16::from_be_bytes(self.int()?)),
            (false, _) => i64::from(i32::from_be_bytes(self.int()?)),
        };
        match length {
            -1 => Ok(None),
            n if n < -1 => Err(format!("a length of {n}")),
            n => Ok(Some(n as usize)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::codec::encode;
    use super::super::schema::Schemas;
    use super::*;

    /// What is encoded reads back, at every version of every message, with one element per array.
    #[test]
    fn every_message_of_every_version_reads_back() {
        let places = crate::places::Places::find().unwrap();
        if !places.schemas().exists() {
            return; // before `setup` there is nothing to read; `run` looks at the schemas again
        }
        let schemas = Schemas::load(&places.schemas()).unwrap();
        for message in schemas.all() {
            for version in message.valid.min..=message.valid.max {
                let sample = crate::differential::sample::body(message, version, "sample");
                let encoded = encode(message, version, &sample).unwrap();
                let decoded = decode(message, version, &encoded.bytes).unwrap();
                assert_eq!(encode(message, version, &decoded).unwrap().bytes, encoded.bytes);
            }
        }
    }
}
