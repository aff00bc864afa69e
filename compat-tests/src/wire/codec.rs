//! Encodes any message at any version from a JSON value.
//! Values: numbers and booleans as themselves; uuids as 32 hex digits; bytes and records as hex digits.
//! A missing field gets the schema's default; a field that the version does not have is left out.

use super::schema::{Field, Kind, Message, Versions};
use serde_json::{Value, json};

/// What a length in an encoded message counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    Elements,
    StringBytes,
    Bytes,
    TaggedFields,
}

/// Where a length stands in an encoded message; hostile bodies are made by rewriting one.
#[derive(Debug, Clone)]
pub struct Spot {
    /// The field, as in `topics[0].name`.
    pub path: String,
    pub counts: Counts,
    /// Position and size of the length in bytes.
    pub at: usize,
    pub size: usize,
    /// An unsigned varint (the value plus one, for all but tagged fields).
    pub compact: bool,
}

pub struct Encoded {
    pub bytes: Vec<u8>,
    pub spots: Vec<Spot>,
}

/// # Errors
/// A sentence that names the field: of a wrong type, or unknown to every version of the message.
pub fn encode(message: &Message, version: i16, value: &Value) -> Result<Encoded, String> {
    let mut writer = Writer { version, out: Vec::new(), spots: Vec::new() };
    let flexible = message.flexible.contains(version);
    writer
        .fields(&message.fields, value, flexible, "")
        .map_err(|e| format!("{} v{version}: {e}", message.name))?;
    Ok(Encoded { bytes: writer.out, spots: writer.spots })
}

/// The value a field has when nobody sets it.
pub fn default_of(field: &Field, version: i16) -> Value {
    let nullable = field.nullable.contains(version);
    match (&field.default, &field.kind) {
        (Some(Value::String(text)), _) if text == "null" => {
            if nullable {
                Value::Null
            } else {
                zero(&field.kind, version)
            }
        }
        (Some(Value::String(text)), Kind::String) => json!(text),
        (Some(Value::String(text)), Kind::Bool) => json!(text == "true"),
        (Some(Value::String(text)), Kind::Float64) => json!(text.parse::<f64>().unwrap_or(0.0)),
        (Some(Value::String(text)), Kind::Uuid) => json!(text),
        (Some(Value::String(text)), _) => json!(integer(text).unwrap_or(0)),
        (Some(value), _) => value.clone(),
        (None, kind) => zero(kind, version),
    }
}

fn zero(kind: &Kind, version: i16) -> Value {
    match kind {
        Kind::Bool => json!(false),
        Kind::Float64 => json!(0.0),
        Kind::Uuid => json!("0".repeat(32)),
        Kind::String | Kind::Bytes | Kind::Records => json!(""),
        Kind::Array(_) => json!([]),
        Kind::Struct(fields) => Value::Object(
            fields
                .iter()
                .filter(|f| f.versions.contains(version))
                .map(|f| (f.name.clone(), default_of(f, version)))
                .collect(),
        ),
        _ => json!(0),
    }
}

fn integer(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

struct Writer {
    version: i16,
    out: Vec<u8>,
    spots: Vec<Spot>,
}

impl Writer {
    fn fields(
        &mut self,
        fields: &[Field],
        value: &Value,
        flexible: bool,
        path: &str,
    ) -> Result<(), String> {
        let object = value.as_object().ok_or_else(|| format!("`{path}` is not an object"))?;
        if let Some(unknown) = object.keys().find(|k| !fields.iter().any(|f| f.name == **k)) {
            return Err(format!("no field is called `{path}{unknown}`"));
        }
        let mut tagged = Vec::new();
        let version = self.version;
        for field in fields.iter().filter(|f| f.versions.contains(version)) {
            let default = default_of(field, version);
            let value = object.get(&field.name).unwrap_or(&default);
            match field.tagged {
                Some((tag, versions)) if versions.contains(version) => {
                    if *value != default {
                        tagged.push((tag, field, value.clone()));
                    }
                }
                _ => self.value(field, value, flexible, &format!("{path}{}", field.name))?,
            }
        }
        if flexible {
            tagged.sort_by_key(|(tag, ..)| *tag);
            self.tagged(&tagged, path)?;
        }
        Ok(())
    }

    fn tagged(&mut self, tagged: &[(u32, &Field, Value)], path: &str) -> Result<(), String> {
        let at = self.out.len();
        put_varint(&mut self.out, tagged.len() as u64);
        self.spot(format!("{path}tags"), Counts::TaggedFields, at, true);
        for (tag, field, value) in tagged {
            put_varint(&mut self.out, u64::from(*tag));
            let mut inner = Writer { version: self.version, out: Vec::new(), spots: Vec::new() };
            inner.value(field, value, true, &format!("{path}{}", field.name))?;
            put_varint(&mut self.out, inner.out.len() as u64);
            let start = self.out.len();
            self.out.extend(inner.out);
            self.spots.extend(inner.spots.into_iter().map(|s| Spot { at: s.at + start, ..s }));
        }
        Ok(())
    }

    fn value(
        &mut self,
        field: &Field,
        value: &Value,
        flexible: bool,
        path: &str,
    ) -> Result<(), String> {
        let compact = field.flexible.map_or(flexible, |v: Versions| v.contains(self.version));
        let nullable = field.nullable.contains(self.version);
        if let (Kind::Struct(fields), true) = (&field.kind, nullable) {
            self.out.push(if value.is_null() { -1i8 as u8 } else { 1 });
            return match value {
                Value::Null => Ok(()),
                value => self.fields(fields, value, flexible, &format!("{path}.")),
            };
        }
        self.kind(&field.kind, value, compact, path)
    }

    fn kind(
        &mut self,
        kind: &Kind,
        value: &Value,
        compact: bool,
        path: &str,
    ) -> Result<(), String> {
        let wrong = || format!("`{path}` cannot be {value}");
        let int = || value.as_i64().ok_or_else(wrong);
        match kind {
            Kind::Bool => self.out.push(u8::from(value.as_bool().ok_or_else(wrong)?)),
            Kind::Int8 => self.out.push(int()? as u8),
            Kind::Int16 | Kind::Uint16 => self.out.extend((int()? as i16).to_be_bytes()),
            Kind::Int32 | Kind::Uint32 => self.out.extend((int()? as i32).to_be_bytes()),
            Kind::Int64 => self.out.extend(int()?.to_be_bytes()),
            Kind::Float64 => {
                self.out.extend(value.as_f64().ok_or_else(wrong)?.to_be_bytes());
            }
            Kind::Uuid => {
                let bytes = value.as_str().and_then(from_hex).ok_or_else(wrong)?;
                self.out.extend(bytes);
            }
            Kind::String => match value {
                Value::Null => self.null(Counts::StringBytes, compact, path),
                value => {
                    let text = value.as_str().ok_or_else(wrong)?;
                    self.length(text.len(), Counts::StringBytes, compact, path);
                    self.out.extend(text.as_bytes());
                }
            },
            Kind::Bytes | Kind::Records => match value {
                Value::Null => self.null(Counts::Bytes, compact, path),
                value => {
                    let bytes = value.as_str().and_then(from_hex).ok_or_else(wrong)?;
                    self.length(bytes.len(), Counts::Bytes, compact, path);
                    self.out.extend(bytes);
                }
            },
            Kind::Struct(fields) => self.fields(fields, value, compact, &format!("{path}."))?,
            Kind::Array(element) => {
                if value.is_null() {
                    self.null(Counts::Elements, compact, path);
                    return Ok(());
                }
                let elements = value.as_array().ok_or_else(wrong)?;
                self.length(elements.len(), Counts::Elements, compact, path);
                for (index, value) in elements.iter().enumerate() {
                    self.kind(element, value, compact, &format!("{path}[{index}]"))?;
                }
            }
        }
        Ok(())
    }

    /// A null is written as given, also where the schema forbids it: brokers must bear it.
    fn null(&mut self, counts: Counts, compact: bool, path: &str) {
        let at = self.out.len();
        match (compact, counts) {
            (true, _) => self.out.push(0),
            (false, Counts::StringBytes) => self.out.extend((-1i16).to_be_bytes()),
            (false, _) => self.out.extend((-1i32).to_be_bytes()),
        }
        self.spot(path.to_string(), counts, at, compact);
    }

    fn length(&mut self, n: usize, counts: Counts, compact: bool, path: &str) {
        let at = self.out.len();
        match (compact, counts) {
            (true, _) => put_varint(&mut self.out, n as u64 + 1),
            (false, Counts::StringBytes) => self.out.extend((n as i16).to_be_bytes()),
            (false, _) => self.out.extend((n as i32).to_be_bytes()),
        }
        self.spot(path.to_string(), counts, at, compact);
    }

    fn spot(&mut self, path: String, counts: Counts, at: usize, compact: bool) {
        let size = self.out.len() - at;
        self.spots.push(Spot { path, counts, at, size, compact });
    }
}

pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
