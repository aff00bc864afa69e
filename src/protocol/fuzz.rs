//! Fuzz targets of what clients send and what logs hold.

use bytes::Bytes;

use super::api::{ApiKey, ApiRow, served};
use super::batch::{BatchHeader, Codec, Compression, Rules, TimestampType, check, records};
use super::header::RequestHeader;
use super::records::{group::GroupRecord, metadata::MetadataRecord, txn::TransactionRecord};
use super::{guard, messages};

/// Key and version from the first two bytes, the body from the rest: what the guard passes, the
/// decoder must take or refuse. The same bytes as a whole frame, too.
pub fn requests(data: &[u8]) {
    let frame = Bytes::copy_from_slice(data);
    // A refusal is as good as a request.
    let _ = RequestHeader::parse(&mut frame.clone());
    let [key, version, ..] = data else { return };
    let rows: Vec<&ApiRow> = served().collect();
    let row = rows[usize::from(*key) % rows.len()];
    let versions = i16::from(*version) % (row.max - row.min + 1);
    decode(row.key, row.min + versions, frame.slice(2..));
}

fn decode(key: ApiKey, version: i16, mut body: Bytes) {
    if guard::check(key, version, &body, guard::charge_max(body.len())).is_ok() {
        let _ = messages::decode_any(key, &mut body, version);
    }
}

/// The first byte chooses codec and rules; a batch of any bytes gets the length, magic and CRC
/// that let it in, unless the byte says otherwise.
pub fn batches(data: &[u8]) {
    let [how, rest @ ..] = data else { return };
    let mut bytes = rest.to_vec();
    if how & 1 == 0 && bytes.len() >= 61 {
        let length = (bytes.len() - 12) as u32;
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        bytes[16] = 2;
        let crc = crc32c::crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    }
    let into = [None, Some(Compression::None), Some(Compression::Lz4), Some(Compression::Zstd)];
    let rules = Rules {
        max_bytes: 1 << 20,
        max_record_bytes: 1 << 20,
        compacted: how & 2 != 0,
        timestamp_type: match how & 4 {
            0 => TimestampType::CreateTime,
            _ => TimestampType::LogAppendTime,
        },
        before_max_ms: i64::MAX,
        after_max_ms: i64::MAX,
        now_ms: 1_700_000_000_000,
        codec: into[usize::from(how >> 3 & 3)].map(Codec::of),
    };
    let bytes = Bytes::from(bytes);
    let _ = BatchHeader::parse(&bytes);
    if let Ok(checked) = check(&bytes, &rules) {
        let read: Vec<_> = records(&checked.bytes).map(|record| record.expect("checked")).collect();
        assert_eq!(read.len() as i32, checked.header.records_count);
    }
    records(&bytes).take_while(Result::is_ok).take(1_000).for_each(drop);
}

pub fn group_records(data: &[u8]) {
    read_again(data, |key, value| GroupRecord::decode(key, value).ok()?.encode().ok());
}

pub fn txn_records(data: &[u8]) {
    read_again(data, |key, value| TransactionRecord::decode(key, value).ok()?.encode().ok());
}

/// The first byte says how long the key is.
/// - `again`: reads a record and writes it, if it can.
fn read_again(data: &[u8], again: impl Fn(&[u8], Option<&[u8]>) -> Option<(Bytes, Option<Bytes>)>) {
    let [key_bytes, rest @ ..] = data else { return };
    let (key, value) = rest.split_at(usize::from(*key_bytes).min(rest.len()));
    for value in [None, Some(value)] {
        let Some((key, value)) = again(key, value) else { continue };
        assert_eq!(again(&key, value.as_deref()), Some((key, value)), "what we wrote");
    }
}

pub fn metadata_records(data: &[u8]) {
    let Ok(record) = MetadataRecord::decode(data) else { return };
    let Ok(bytes) = record.encode() else { return };
    let again = MetadataRecord::decode(&bytes).expect("what we wrote");
    assert_eq!(again.encode().expect("again"), bytes);
}
