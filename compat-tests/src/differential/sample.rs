//! Bodies that need no scenario: a sample of any request, and every way to spoil its lengths.

use crate::wire::codec::{Counts, Encoded, Spot, put_varint};
use crate::wire::schema::{Field, Kind, Message};
use serde_json::{Value, json};

/// A body with one element in every array.
/// - `name`: of every topic, group and member in it; fresh names keep one request from touching what
///   another made.
pub fn body(message: &Message, version: i16, name: &str) -> Value {
    object(&message.fields, version, name)
}

fn object(fields: &[Field], version: i16, name: &str) -> Value {
    let present = fields.iter().filter(|f| f.versions.contains(version));
    let of = |f: &Field| match f.name.as_str() {
        // With no time at all the answer would depend on who is faster.
        "timeoutMs" => json!(60_000),
        _ => value(&f.kind, version, name),
    };
    Value::Object(present.map(|f| (f.name.clone(), of(f))).collect())
}

/// A body with every field left to its default, but time to be carried out in, and for Produce an
/// acknowledgement: without one there would be no answer at all.
pub fn empty_body(message: &Message) -> Value {
    let has = |name: &str| message.fields.iter().any(|f| f.name == name);
    let mut body = json!({});
    if has("timeoutMs") {
        body["timeoutMs"] = json!(60_000);
    }
    if has("acks") {
        body["acks"] = json!(-1);
    }
    body
}

fn value(kind: &Kind, version: i16, name: &str) -> Value {
    match kind {
        Kind::Bool => json!(false),
        Kind::Float64 => json!(0.0),
        Kind::Uuid => json!("0".repeat(32)),
        Kind::String => json!(name),
        Kind::Bytes => json!("00"),
        Kind::Records => json!(""),
        Kind::Struct(fields) => object(fields, version, name),
        Kind::Array(element) => json!([value(element, version, name)]),
        _ => json!(0),
    }
}

/// Bodies made from a right one by spoiling one length, or the end; each with a name.
pub fn spoiled(encoded: &Encoded) -> Vec<(String, Vec<u8>)> {
    let mut bodies = Vec::new();
    let whole = &encoded.bytes;
    if whole.len() > 1 {
        bodies.push(("cut in half".into(), whole[..whole.len() / 2].to_vec()));
        bodies.push(("cut by a byte".into(), whole[..whole.len() - 1].to_vec()));
    }
    bodies.push(("bytes left over".into(), [whole.as_slice(), &[0; 7]].concat()));
    for spot in &encoded.spots {
        for (name, length) in lengths(spot) {
            let spoiled = [&whole[..spot.at], &length, &whole[spot.at + spot.size..]].concat();
            bodies.push((format!("{} {name}", spot.path), spoiled));
        }
    }
    bodies
}

fn lengths(spot: &Spot) -> Vec<(&'static str, Vec<u8>)> {
    let varint = |value: u64| {
        let mut out = Vec::new();
        put_varint(&mut out, value);
        out
    };
    match (spot.compact, spot.counts) {
        (true, _) => vec![
            ("2^31-2 long", varint((1 << 31) - 1)),
            ("2^32-1 long", varint((1 << 32) - 1)),
            ("a million long", varint(1_000_001)),
            ("a six-byte varint", vec![0x81, 0x80, 0x80, 0x80, 0x80, 0x00]),
            ("an unending varint", vec![0xff; 12]),
            ("null", vec![0]),
        ],
        (false, Counts::StringBytes) => vec![
            ("32767 long", i16::MAX.to_be_bytes().to_vec()),
            ("-2 long", (-2i16).to_be_bytes().to_vec()),
            ("null", (-1i16).to_be_bytes().to_vec()),
        ],
        (false, _) => vec![
            ("2^31-1 long", i32::MAX.to_be_bytes().to_vec()),
            ("a million long", 1_000_001i32.to_be_bytes().to_vec()),
            ("-2^31 long", i32::MIN.to_be_bytes().to_vec()),
            ("-2 long", (-2i32).to_be_bytes().to_vec()),
            ("null", (-1i32).to_be_bytes().to_vec()),
        ],
    }
}
