//! Record batches from a JSON description, right or wrong, and back to JSON for comparison.
//!
//! A description: `{"records": [{"key": "k", "value": "v", "headers": [["h", "x"]], "timestamp": 1}],
//! "codec": "gzip", "producerId": 1, "producerEpoch": 0, "baseSequence": 0, "baseTimestamp": 1}`.
//! What would make it wrong: `magic`, `count`, `lastOffsetDelta`, `length`, `attributes`, `crc` (any
//! number replaces the right one), `baseOffset`, `maxTimestamp`, `cut` (bytes dropped from the end),
//! `append` (hex digits), `body` (hex digits in place of the records), `message` (0 or 1: the formats
//! before record batches). `{"value": "x", "times": 1000}` repeats a value's text.

use super::codec::{from_hex, to_hex};
use serde_json::{Value, json};
use std::io::Write;

/// Where the CRC of a batch stands; it covers all that follows it.
const CRC_AT: usize = 17;
const HEADER_BYTES: usize = 61;

/// # Errors
/// A sentence about the description.
pub fn build(spec: &Value) -> Result<Vec<u8>, String> {
    let mut out = match spec["message"].as_u64() {
        Some(magic) => legacy(spec, magic as u8)?,
        None => batch(spec)?,
    };
    if let Some(cut) = spec["cut"].as_u64() {
        out.truncate(out.len().saturating_sub(cut as usize));
    }
    if let Some(more) = spec["append"].as_str() {
        out.extend(from_hex(more).ok_or("`append` is not hex")?);
    }
    Ok(out)
}

fn batch(spec: &Value) -> Result<Vec<u8>, String> {
    let none = Vec::new();
    let records = spec["records"].as_array().unwrap_or(&none);
    let number = |key: &str, default: i64| spec[key].as_i64().unwrap_or(default);
    let base_timestamp = number("baseTimestamp", 1_700_000_000_000);
    let mut plain = Vec::new();
    let mut max_timestamp = base_timestamp;
    for (index, record) in records.iter().enumerate() {
        let timestamp = record["timestamp"].as_i64().unwrap_or(base_timestamp);
        max_timestamp = max_timestamp.max(timestamp);
        put_record(&mut plain, record, timestamp - base_timestamp, index as i64)?;
    }
    if let Some(body) = spec["body"].as_str() {
        plain = from_hex(body).ok_or("`body` is not hex")?;
    }
    let (codec, body) = compress(spec["codec"].as_str().unwrap_or("none"), &plain)?;
    let flag = |key: &str, bit: i64| if spec[key].as_bool() == Some(true) { bit } else { 0 };
    let attributes =
        codec | flag("transactional", 16) | flag("control", 32) | flag("appendTime", 8);
    let count = records.len() as i64;

    let mut out = Vec::with_capacity(HEADER_BYTES + body.len());
    out.extend(number("baseOffset", 0).to_be_bytes());
    out.extend((number("length", (HEADER_BYTES - 12 + body.len()) as i64) as i32).to_be_bytes());
    out.extend((number("leaderEpoch", -1) as i32).to_be_bytes());
    out.push(number("magic", 2) as u8);
    out.extend([0; 4]);
    out.extend((number("attributes", attributes) as i16).to_be_bytes());
    out.extend((number("lastOffsetDelta", count - 1) as i32).to_be_bytes());
    out.extend(base_timestamp.to_be_bytes());
    out.extend(number("maxTimestamp", max_timestamp).to_be_bytes());
    out.extend(number("producerId", -1).to_be_bytes());
    out.extend((number("producerEpoch", -1) as i16).to_be_bytes());
    out.extend((number("baseSequence", -1) as i32).to_be_bytes());
    out.extend((number("count", count) as i32).to_be_bytes());
    out.extend(body);
    let crc = number("crc", i64::from(crc32c::crc32c(&out[CRC_AT + 4..]))) as u32;
    out[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
    Ok(out)
}

fn put_record(
    out: &mut Vec<u8>,
    record: &Value,
    timestamp: i64,
    offset: i64,
) -> Result<(), String> {
    let mut body = vec![record["attributes"].as_i64().unwrap_or(0) as u8];
    put_signed(&mut body, timestamp);
    put_signed(&mut body, record["offsetDelta"].as_i64().unwrap_or(offset));
    put_field(&mut body, record["key"].as_str().map(str::as_bytes));
    let times = record["times"].as_u64().unwrap_or(1) as usize;
    let value = record["value"].as_str().map(|text| text.repeat(times));
    put_field(&mut body, value.as_ref().map(String::as_bytes));
    let none = Vec::new();
    let headers = record["headers"].as_array().unwrap_or(&none);
    put_signed(&mut body, record["headerCount"].as_i64().unwrap_or(headers.len() as i64));
    for header in headers {
        put_field(&mut body, header[0].as_str().map(str::as_bytes));
        put_field(&mut body, header[1].as_str().map(str::as_bytes));
    }
    put_signed(out, record["length"].as_i64().unwrap_or(body.len() as i64));
    out.extend(body);
    Ok(())
}

fn put_field(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    put_signed(out, bytes.map_or(-1, |b| b.len() as i64));
    out.extend(bytes.unwrap_or_default());
}

/// A zigzag varint, as records use them.
fn put_signed(out: &mut Vec<u8>, value: i64) {
    super::codec::put_varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Returns the codec's number in the attributes and the compressed bytes.
pub fn compress(codec: &str, plain: &[u8]) -> Result<(i64, Vec<u8>), String> {
    let failed = |e: std::io::Error| format!("{codec}: {e}");
    Ok(match codec {
        "none" => (0, plain.to_vec()),
        "gzip" => {
            let level = flate2::Compression::default();
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            encoder.write_all(plain).map_err(failed)?;
            (1, encoder.finish().map_err(failed)?)
        }
        "snappy" => (2, snappy_block(plain)?),
        "xerial" => {
            let block = snappy_block(plain)?;
            let mut out = vec![0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1];
            out.extend((block.len() as i32).to_be_bytes());
            out.extend(block);
            (2, out)
        }
        "lz4" => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
            encoder.write_all(plain).map_err(failed)?;
            (3, encoder.finish().map_err(|e| format!("lz4: {e}"))?)
        }
        "zstd" => (4, zstd::encode_all(plain, 1).map_err(failed)?),
        other => return Err(format!("no codec is called `{other}`")),
    })
}

fn snappy_block(plain: &[u8]) -> Result<Vec<u8>, String> {
    snap::raw::Encoder::new().compress_vec(plain).map_err(|e| format!("snappy: {e}"))
}

/// Formats 0 and 1: one message per record, no batch around them.
fn legacy(spec: &Value, magic: u8) -> Result<Vec<u8>, String> {
    let none = Vec::new();
    let mut out = Vec::new();
    for (index, record) in spec["records"].as_array().unwrap_or(&none).iter().enumerate() {
        let mut body = vec![magic, 0];
        if magic == 1 {
            let timestamp = record["timestamp"].as_i64().unwrap_or(1_700_000_000_000);
            body.extend(timestamp.to_be_bytes());
        }
        for field in [&record["key"], &record["value"]] {
            let bytes = field.as_str().map(str::as_bytes);
            body.extend(bytes.map_or(-1, |b| b.len() as i32).to_be_bytes());
            body.extend(bytes.unwrap_or_default());
        }
        let mut crc = flate2::Crc::new();
        crc.update(&body);
        out.extend((index as i64).to_be_bytes());
        out.extend((body.len() as i32 + 4).to_be_bytes());
        out.extend(crc.sum().to_be_bytes());
        out.extend(body);
    }
    Ok(out)
}

/// The batches in the bytes of a Fetch answer, one object each; a tail that is not whole says so.
pub fn describe(bytes: &[u8]) -> Value {
    let mut batches = Vec::new();
    let mut rest = bytes;
    while rest.len() >= HEADER_BYTES {
        let int4 = |at: usize| i32::from_be_bytes(rest[at..at + 4].try_into().unwrap_or_default());
        let int8 = |at: usize| i64::from_be_bytes(rest[at..at + 8].try_into().unwrap_or_default());
        let int2 = |at: usize| i16::from_be_bytes([rest[at], rest[at + 1]]);
        let size = 12 + int4(8).max(0) as usize;
        if size > rest.len() || size < HEADER_BYTES {
            break;
        }
        let crc = crc32c::crc32c(&rest[CRC_AT + 4..size]);
        batches.push(json!({
            "baseOffset": int8(0), "sizeBytes": size, "leaderEpoch": int4(12),
            "magic": rest[16], "crcIsRight": int4(17) as u32 == crc, "attributes": int2(21),
            "lastOffsetDelta": int4(23), "baseTimestamp": int8(27), "maxTimestamp": int8(35),
            "producerId": int8(43), "producerEpoch": int2(51), "baseSequence": int4(53),
            "count": int4(57), "body": to_hex(&rest[HEADER_BYTES..size]),
        }));
        rest = &rest[size..];
    }
    if !rest.is_empty() {
        batches.push(json!({ "tail": to_hex(rest) }));
    }
    Value::Array(batches)
}
