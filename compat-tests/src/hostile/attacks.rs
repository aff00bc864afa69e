//! Frames that no client sends: spoiled bodies of every API, silly frames, other protocols.

use crate::differential::play::Served;
use crate::differential::sample;
use crate::wire::codec::{encode, put_varint};
use crate::wire::connection::frame;
use crate::wire::schema::{Message, Schemas};

pub struct Attack {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Attacks by the name of their test.
pub fn all(schemas: &Schemas, served: &Served) -> Result<Vec<(String, Vec<Attack>)>, String> {
    let mut tests = vec![
        ("the 4-byte Metadata body".to_string(), four_bytes(schemas)?),
        ("frame lengths".into(), frame_lengths()),
        ("other protocols".into(), other_protocols()),
        ("headers".into(), headers(schemas)?),
    ];
    for (api, range) in served {
        let message = schemas.request(api)?;
        tests.push((format!("bodies {api}"), bodies(schemas, api, message, *range)?));
        if message.flexible.contains(range.1) {
            tests.push((format!("tagged floods {api}"), floods(schemas, api, range.1)?));
        }
    }
    Ok(tests)
}

/// An array of 2^31-1 elements in a body of four bytes: what once made a decoder reserve 154 GB.
fn four_bytes(schemas: &Schemas) -> Result<Vec<Attack>, String> {
    let attack = |version: i16, count: i32| {
        let bytes = frame(schemas, "Metadata", version, 1, &count.to_be_bytes())?;
        Ok(Attack { name: format!("v{version}, {count} topics"), bytes })
    };
    let counts = [i32::MAX, i32::MAX - 1, 1 << 30, 1_000_001, i32::MIN, -2];
    (0..=8).flat_map(|v| counts.map(|count| attack(v, count))).collect()
}

fn bodies(
    schemas: &Schemas,
    api: &str,
    message: &Message,
    (min, max): (i16, i16),
) -> Result<Vec<Attack>, String> {
    let mut attacks = Vec::new();
    for version in min.max(message.valid.min)..=max.min(message.valid.max) {
        let encoded = encode(message, version, &sample::body(message, version, "a/b"))?;
        for (name, body) in sample::spoiled(&encoded) {
            let bytes = frame(schemas, api, version, 1, &body)?;
            attacks.push(Attack { name: format!("v{version} {name}"), bytes });
        }
    }
    Ok(attacks)
}

/// Many or huge tagged fields at the end of a sample body.
fn floods(schemas: &Schemas, api: &str, version: i16) -> Result<Vec<Attack>, String> {
    let message = schemas.request(api)?;
    let mut body = encode(message, version, &sample::body(message, version, "a/b"))?.bytes;
    body.pop(); // the count of tagged fields, 0
    let with = |name: &str, tail: Vec<u8>| -> Result<Attack, String> {
        let bytes = frame(schemas, api, version, 1, &[body.as_slice(), &tail].concat())?;
        Ok(Attack { name: name.into(), bytes })
    };
    let flood = |count: u64, written: u64| {
        let mut tail = Vec::new();
        put_varint(&mut tail, count);
        for tag in 0..written {
            put_varint(&mut tail, tag + 1000);
            put_varint(&mut tail, 0);
        }
        tail
    };
    let mut long = flood(1, 0);
    put_varint(&mut long, 1000);
    put_varint(&mut long, u64::from(u32::MAX));
    Ok(vec![
        with("2^32-1 promised", flood(u64::from(u32::MAX), 0))?,
        with("2^31-1 promised, 100 sent", flood(i32::MAX as u64, 100))?,
        with("20 000 empty ones", flood(20_000, 20_000))?,
        with("a million empty ones", flood(1_000_000, 1_000_000))?,
        with("one of 2^32-1 bytes", long)?,
        with("the same one twice", vec![2, 0xe8, 7, 0, 0xe8, 7, 0])?,
    ])
}

fn frame_lengths() -> Vec<Attack> {
    let lengths = [0, 1, 2, 7, 8, 9, -1, i32::MIN, i32::MAX, 104_857_601, 1_000_000_000];
    let attack = |length: i32| Attack {
        name: format!("a frame of {length} bytes"),
        bytes: [&length.to_be_bytes()[..], &[0xff; 64]].concat(),
    };
    lengths.map(attack).into()
}

fn other_protocols() -> Vec<Attack> {
    let hello = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
    let hello = [hello.as_slice(), &[7; 500]].concat();
    let attack = |name: &str, bytes: &[u8]| Attack { name: name.into(), bytes: bytes.to_vec() };
    vec![
        attack("HTTP GET", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        attack("HTTP POST", b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"),
        attack("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        attack("TLS client hello", &hello),
        attack("SSH", b"SSH-2.0-OpenSSH_9.2\r\n"),
        attack("nothing", b""),
        attack("one byte", b"\0"),
    ]
}

/// Keys and versions that do not exist, client ids that cannot be.
fn headers(schemas: &Schemas) -> Result<Vec<Attack>, String> {
    let mut attacks = Vec::new();
    for key in [-1i16, i16::MIN, 4, 7, 95, 999, i16::MAX] {
        let header = [&key.to_be_bytes()[..], &[0, 0, 0, 0, 0, 1, 0xff, 0xff, 0, 0, 0, 0]].concat();
        let bytes = [&(header.len() as i32).to_be_bytes()[..], &header].concat();
        attacks.push(Attack { name: format!("key {key}"), bytes });
    }
    for length in [i16::MAX, -2, i16::MIN] {
        let header = [&[0, 3, 0, 1, 0, 0, 0, 1][..], &length.to_be_bytes(), b"abc"].concat();
        let bytes = [&(header.len() as i32).to_be_bytes()[..], &header].concat();
        attacks.push(Attack { name: format!("a client id of {length} bytes"), bytes });
    }
    let not_text = [&[0, 3, 0, 1, 0, 0, 0, 1, 0, 2, 0xff, 0xfe][..], &[0, 0, 0, 0]].concat();
    let bytes = [&(not_text.len() as i32).to_be_bytes()[..], &not_text].concat();
    attacks.push(Attack { name: "a client id that is no text".into(), bytes });
    let bytes = frame(schemas, "ApiVersions", 99, 1, &[0xff; 40])?;
    attacks.push(Attack { name: "ApiVersions of the far future".into(), bytes });
    Ok(attacks)
}
