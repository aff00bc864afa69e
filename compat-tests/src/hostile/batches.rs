//! Record batches that are wrong, or that unpack to far more than they are.

use super::{PATIENCE, Siege, TOPIC};
use crate::wire::batch;
use crate::wire::codec::to_hex;
use crate::wire::connection::{Answer, Connection};
use serde_json::{Value, json};

/// What a bomb unpacks to.
const BOMB_BYTES: usize = 256 << 20;

/// Every wrong batch is answered with an error; the connection and the neighbour live on.
pub fn wrong(siege: &mut Siege<'_>) -> Result<(), String> {
    let one = json!([{ "key": "k", "value": "v" }]);
    let spoiled = [
        ("crc", json!(1)),
        ("count", json!(2)),
        ("count", json!(0)),
        ("count", json!(i32::MAX)),
        ("count", json!(-1)),
        ("lastOffsetDelta", json!(7)),
        ("lastOffsetDelta", json!(i32::MAX)),
        ("lastOffsetDelta", json!(-1)),
        ("length", json!(i32::MAX)),
        ("length", json!(-1)),
        ("length", json!(0)),
        ("length", json!(48)),
        ("magic", json!(0)),
        ("magic", json!(1)),
        ("magic", json!(3)),
        ("magic", json!(-1)),
        ("attributes", json!(1)),
        ("attributes", json!(2)),
        ("attributes", json!(3)),
        ("attributes", json!(4)),
        ("attributes", json!(7)),
        ("cut", json!(1)),
        ("cut", json!(60)),
        ("body", json!("ffffffff0f")),
        ("body", json!("02")),
        ("body", json!("feffffffffffffffff01")),
    ];
    let mut connection = Connection::open(&siege.broker.bootstrap(), PATIENCE)?;
    for (field, value) in spoiled {
        let mut spec = json!({ "records": one });
        spec[field] = value.clone();
        let answer = produce(siege, &mut connection, &batch::build(&spec)?)?;
        let code = &answer["responses"][0]["partitionResponses"][0]["errorCode"];
        if code.as_i64().is_none_or(|code| code == 0) {
            return Err(format!("a batch with {field} {value} was answered with {answer}"));
        }
        siege.neighbour_is_served()?;
    }
    if siege.broker.is_running() { Ok(()) } else { Err("the broker is gone".into()) }
}

/// A small batch that unpacks to much; it may be taken or refused, but not held in memory as a whole.
pub fn bomb(siege: &mut Siege<'_>, codec: &str) -> Result<(), String> {
    let bytes = packed(codec)?;
    let mut connection = Connection::open(&siege.broker.bootstrap(), PATIENCE)?;
    produce(siege, &mut connection, &bytes)?;
    siege.neighbour_is_served()?;
    if siege.broker.is_running() { Ok(()) } else { Err("the broker is gone".into()) }
}

/// One record with a value of zeros. Snappy packs too little for that within a batch's limit: there the
/// length that its block claims is the bomb.
fn packed(codec: &str) -> Result<Vec<u8>, String> {
    let body = match codec {
        "snappy" => vec![0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0],
        "xerial" => {
            let mut body =
                vec![0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1];
            body.extend([0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0]);
            body
        }
        codec => {
            // lz4 packs 255 to 1, so it stays below the limit of a batch with less.
            let size = if codec == "lz4" { BOMB_BYTES / 2 } else { BOMB_BYTES };
            batch::compress(codec, &record(size))?.1
        }
    };
    let number = match codec {
        "gzip" => 1,
        "lz4" => 3,
        "zstd" => 4,
        _ => 2,
    };
    let one = json!([{ "value": "" }]);
    let spec = json!({ "records": one, "attributes": number, "body": to_hex(&body) });
    batch::build(&spec)
}

/// The record format written by hand: lengths as zigzag varints.
fn record(size: usize) -> Vec<u8> {
    let varint = |value: usize| {
        let mut out = Vec::new();
        crate::wire::codec::put_varint(&mut out, (value as u64) << 1);
        out
    };
    let head = [&[0u8, 0, 0, 1][..], &varint(size)].concat();
    let mut out = varint(head.len() + size + 1);
    out.extend(head);
    out.resize(out.len() + size + 1, 0);
    out
}

fn produce(siege: &Siege<'_>, connection: &mut Connection, bytes: &[u8]) -> Result<Value, String> {
    let records = to_hex(bytes);
    let partition = json!({ "index": 0, "records": records });
    let topic = json!({ "name": TOPIC, "partitionData": [partition] });
    let body = json!({ "acks": -1, "timeoutMs": 5000, "topicData": [topic] });
    match connection.ask(siege.schemas, "Produce", 9, &body)? {
        Answer::Body(answer) => Ok(answer),
        other => Err(format!("a wrong batch was answered with {other:?}")),
    }
}
