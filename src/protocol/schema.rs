//! The schema table: fields, types and versions of every message and stored record, as values.
//! The codecs of [`super::messages`] are expanded from the same lines; the guard walks the table;
//! a compat test compares [`to_json`] with Kafka's own schema files.

use std::fmt::Write as _;

use super::{messages, records};

/// A range of versions, both ends included; empty when `first > last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    pub first: i16,
    pub last: i16,
}

impl Versions {
    pub const NONE: Self = Self { first: 0, last: -1 };

    /// Reads Kafka's notation: `"3+"`, `"0-12"`, `"1"`, `"none"`. For tables only: another text
    /// does not compile.
    pub const fn parse(text: &str) -> Self {
        let bytes = text.as_bytes();
        if matches!(bytes, b"none") {
            return Self::NONE;
        }
        let (first, at) = parse_number(bytes, 0);
        if at == bytes.len() {
            return Self { first, last: first };
        }
        if bytes[at] == b'+' {
            assert!(at + 1 == bytes.len(), "nothing follows the plus");
            return Self { first, last: i16::MAX };
        }
        assert!(bytes[at] == b'-', "versions are written as 3+, 0-12, 1 or none");
        let (last, end) = parse_number(bytes, at + 1);
        assert!(end == bytes.len() && first <= last, "a range runs upwards and ends the text");
        Self { first, last }
    }

    pub const fn contains(self, version: i16) -> bool {
        self.first <= version && version <= self.last
    }

    pub const fn is_empty(self) -> bool {
        self.first > self.last
    }

    /// Kafka's notation.
    pub fn text(self) -> String {
        match self {
            _ if self.is_empty() => "none".to_owned(),
            Self { first, last: i16::MAX } => format!("{first}+"),
            Self { first, last } if first == last => format!("{first}"),
            Self { first, last } => format!("{first}-{last}"),
        }
    }
}

const fn parse_number(bytes: &[u8], start: usize) -> (i16, usize) {
    let (mut value, mut at) = (0, start);
    while at < bytes.len() && bytes[at].is_ascii_digit() {
        value = value * 10 + (bytes[at] - b'0') as i16;
        at += 1;
    }
    assert!(at > start, "a version is a number");
    (value, at)
}

/// What a field holds.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Bool,
    Int8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Float64,
    Uuid,
    String,
    Bytes,
    /// Record batches; on the wire the same as `Bytes`.
    Records,
    Struct(&'static Schema),
    Array(&'static Kind),
}

impl Kind {
    /// Bytes that one value takes inside the struct or array that holds it, once decoded. What it
    /// points to is charged where it is decoded; strings and bytes are slices of the frame.
    pub const fn decoded_bytes(&self) -> usize {
        match self {
            Self::Bool | Self::Int8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Uint32 => 4,
            Self::Int64 | Self::Float64 => 8,
            Self::Uuid => 16,
            Self::String | Self::Bytes | Self::Records => size_of::<bytes::Bytes>(),
            Self::Array(_) => size_of::<Vec<u8>>(),
            Self::Struct(schema) => schema.decoded_bytes,
        }
    }

    /// Kafka's name of the type, `[]` before the element's for arrays.
    pub fn name(&self) -> String {
        match self {
            Self::Bool => "bool".into(),
            Self::Int8 => "int8".into(),
            Self::Int16 => "int16".into(),
            Self::Uint16 => "uint16".into(),
            Self::Int32 => "int32".into(),
            Self::Uint32 => "uint32".into(),
            Self::Int64 => "int64".into(),
            Self::Float64 => "float64".into(),
            Self::Uuid => "uuid".into(),
            Self::String => "string".into(),
            Self::Bytes => "bytes".into(),
            Self::Records => "records".into(),
            Self::Struct(schema) => schema.name.into(),
            Self::Array(element) => format!("[]{}", element.name()),
        }
    }
}

/// One field of a struct.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Kafka's name in `snake_case`.
    pub name: &'static str,
    pub kind: Kind,
    /// Versions that have the field.
    pub versions: Versions,
    /// Versions in which it may be null.
    pub nullable: Versions,
    /// Its number among the tagged fields; fields without one stand in order.
    pub tag: Option<u32>,
    /// Rust text of the default; empty where it is the type's own (0, false, "", []).
    pub default: &'static str,
}

impl Field {
    /// Whether it stands among the fields in order in `version`.
    pub const fn is_in_order(&self, version: i16) -> bool {
        self.tag.is_none() && self.versions.contains(version)
    }

    /// Whether it is the tagged field `tag` of `version`.
    pub const fn is_tagged_as(&self, tag: u32, version: i16) -> bool {
        matches!(self.tag, Some(own) if own == tag) && self.versions.contains(version)
    }
}

/// The fields of one struct, in the order of the wire.
#[derive(Debug, Clone, Copy)]
pub struct Schema {
    pub name: &'static str,
    pub fields: &'static [Field],
    /// Bytes that one decoded value takes, without what it points to.
    pub decoded_bytes: usize,
    /// Whether kafka-protocol decodes it: it keeps unknown tagged fields, which the guard has to
    /// charge, and is stricter than Kafka with strings and nulls.
    pub foreign: bool,
}

/// A whole request, response or stored record.
#[derive(Debug, Clone, Copy)]
pub struct Message {
    pub schema: &'static Schema,
    pub versions: Versions,
    /// Versions with compact lengths and tagged fields.
    pub flexible: Versions,
}

/// A struct that the table describes.
pub trait Described {
    const SCHEMA: Schema;
}

/// A request, response or record that the table describes.
pub trait DescribedMessage: Described {
    const MESSAGE: Message;
}

/// Every message and record of the table.
pub fn all() -> Vec<&'static Message> {
    [
        messages::MESSAGES,
        records::metadata::MESSAGES,
        records::group::MESSAGES,
        records::consumer_group::MESSAGES,
        records::consumer_protocol::MESSAGES,
        records::txn::MESSAGES,
    ]
    .concat()
}

/// The whole table as JSON: an array of messages, each with `name`, `validVersions`,
/// `flexibleVersions` and `fields`; a field has `name`, `type`, `versions`, where they apply
/// `nullableVersions`, `tag`, `default`, and for structs its own `fields`. Keys and version
/// notation are those of Kafka's schema files; names are in `snake_case`.
pub fn to_json() -> String {
    let messages = all();
    let mut out = String::from("[\n");
    for (at, message) in messages.iter().enumerate() {
        let _ = write!(
            out,
            "{{\"name\":\"{}\",\"validVersions\":\"{}\",\"flexibleVersions\":\"{}\",\"fields\":",
            message.schema.name,
            message.versions.text(),
            message.flexible.text()
        );
        write_fields(&mut out, message.schema.fields);
        out.push_str(if at + 1 < messages.len() { "},\n" } else { "}\n" });
    }
    out.push_str("]\n");
    out
}

fn write_fields(out: &mut String, fields: &[Field]) {
    out.push('[');
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        let (kind, versions) = (field.kind.name(), field.versions.text());
        let _ = write!(
            out,
            "{{\"name\":\"{}\",\"type\":\"{kind}\",\"versions\":\"{versions}\"",
            field.name
        );
        if !field.nullable.is_empty() {
            let _ = write!(out, ",\"nullableVersions\":\"{}\"", field.nullable.text());
        }
        if let Some(tag) = field.tag {
            let _ = write!(out, ",\"tag\":{tag}");
        }
        match field.default {
            "" => {}
            "None" if matches!(field.kind, Kind::Records) => {} // records are never anything else
            "None" => out.push_str(",\"default\":\"null\""),
            "i32::MIN" => out.push_str(",\"default\":\"-2147483648\""),
            "i32::MAX" => out.push_str(",\"default\":\"2147483647\""),
            "i64::MAX" => out.push_str(",\"default\":\"9223372036854775807\""),
            other => {
                let _ = write!(out, ",\"default\":{other:?}");
            }
        }
        if let Kind::Struct(schema) | Kind::Array(&Kind::Struct(schema)) = field.kind {
            out.push_str(",\"fields\":");
            write_fields(out, schema.fields);
        }
        out.push('}');
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_printed_in_the_words_of_kafkas_files() {
        let json: serde_json::Value = serde_json::from_str(&to_json()).unwrap();
        let messages = json.as_array().unwrap();
        assert_eq!(messages.len(), 2 * 34 + 13 + 6 + 14 + 2 + 2);
        let produce = &messages[0];
        assert_eq!(produce["name"], "ProduceRequest");
        assert_eq!(
            (&produce["validVersions"], &produce["flexibleVersions"]),
            (&"3-13".into(), &"9+".into())
        );
        let id = serde_json::json!({
            "name": "transactional_id", "type": "string", "versions": "3+",
            "nullableVersions": "3+", "default": "null",
        });
        assert_eq!(produce["fields"][0], id);
        assert_eq!(produce["fields"][3]["fields"][2]["type"], "[]PartitionProduceData");
    }

    #[test]
    fn versions_are_written_as_kafka_writes_them() {
        #[rustfmt::skip]
        let table = [
            ("3+",   3, i16::MAX),
            ("0-12", 0, 12),
            ("1",    1, 1),
            ("none", 0, -1),
        ];
        for (text, first, last) in table {
            assert_eq!(Versions::parse(text), Versions { first, last });
            assert_eq!(Versions { first, last }.text(), text);
        }
    }
}
