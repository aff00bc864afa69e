//! What the benches share: batches and the frames that carry them, as a client sends them.

use bytes::{BufMut, Bytes, BytesMut};
use ottla::protocol::batch::{BatchBuilder, Codec};
use ottla::protocol::guard;
use ottla::protocol::header::RequestHeader;

/// A time that every batch has, so that the same bytes come out each time.
pub const NOW_MS: i64 = 1_700_000_000_000;
pub const TOPIC: &str = "measured";
const CLIENT: &str = "bench";

/// A batch of `records` keyless records of `value_bytes` each.
pub fn batch(records: usize, value_bytes: usize, codec: Codec) -> Bytes {
    let value: Vec<u8> = (0..value_bytes).map(|at| b'a' + (at % 23) as u8).collect();
    let mut builder = BatchBuilder::new(0).codec(codec);
    (0..records).for_each(|_| builder.push(NOW_MS, None, Some(&value), &[]));
    builder.build()
}

/// Produce v9, acks=all, one batch to partition 0; without the size field.
pub fn produce_frame(records: &[u8]) -> Bytes {
    let mut out = head(0, 9);
    out.put_u8(0); // no transactional id
    out.put_i16(-1);
    out.put_i32(30_000);
    topic(&mut out);
    length(&mut out, records.len());
    out.put_slice(records);
    out.put_slice(&[0, 0, 0]); // no tagged fields
    out.freeze()
}

/// Fetch v12 from `offset` of partition 0, outside a session; without the size field.
pub fn fetch_frame(offset: i64, bytes_max: i32) -> Bytes {
    let mut out = head(1, 12);
    [-1, 500, 1, bytes_max].iter().for_each(|field| out.put_i32(*field)); // replica, wait, least, most
    out.put_u8(0); // read uncommitted
    out.put_i32(0); // session
    out.put_i32(-1);
    topic(&mut out);
    out.put_i32(-1); // current leader epoch
    out.put_i64(offset);
    out.put_i32(-1); // last fetched epoch
    out.put_i64(-1); // log start
    out.put_i32(bytes_max);
    out.put_slice(&[0, 0]); // no tagged fields of partition and topic
    out.put_slice(&[1, 1, 0]); // nothing forgotten, no rack, no tagged fields
    out.freeze()
}

/// What stands before the handler: header and guard. The bytes are our own, so they pass.
pub fn admit(mut frame: Bytes) -> (RequestHeader, Bytes) {
    let header = RequestHeader::parse(&mut frame).expect("a header");
    let charge_max = guard::charge_max(frame.len());
    guard::check(header.key, header.version, &frame, charge_max).expect("a sound body");
    (header, frame)
}

fn head(key: i16, version: i16) -> BytesMut {
    let mut out = BytesMut::new();
    out.put_i16(key);
    out.put_i16(version);
    out.put_i32(7); // correlation id
    out.put_i16(CLIENT.len() as i16);
    out.put_slice(CLIENT.as_bytes());
    out.put_u8(0);
    out
}

/// One topic with one partition, up to and with the partition's number.
fn topic(out: &mut BytesMut) {
    out.put_u8(2);
    length(out, TOPIC.len());
    out.put_slice(TOPIC.as_bytes());
    out.put_u8(2);
    out.put_i32(0);
}

/// A compact length: one more than it is, as an unsigned varint.
fn length(out: &mut BytesMut, length: usize) {
    let mut rest = length + 1;
    while rest >= 0x80 {
        out.put_u8(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.put_u8(rest as u8);
}
