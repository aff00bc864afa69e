//! A blocking connection to a broker: frames out, frames in, each with a deadline.

use super::codec::{encode, put_varint};
use super::decode::{decode, decode_prefix};
use super::schema::Schemas;
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// What came back for a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Body(Value),
    /// The broker closed the connection without an answer.
    Closed,
    /// Nothing came within the time limit.
    Silence,
    /// Bytes that the schema does not read.
    Unreadable(String),
}

impl Answer {
    pub fn to_value(&self) -> Value {
        match self {
            Answer::Body(value) => value.clone(),
            Answer::Closed => json!("connection closed"),
            Answer::Silence => json!("no answer in time"),
            Answer::Unreadable(why) => json!(format!("unreadable: {why}")),
        }
    }
}

pub struct Connection {
    stream: TcpStream,
    next_correlation: i32,
    /// Of requests sent and not yet answered, in order.
    waiting: Vec<(String, i16, i32)>,
}

impl Connection {
    pub fn open(address: &str, patience: Duration) -> Result<Connection, String> {
        let stream = TcpStream::connect(address).map_err(|e| format!("{address}: {e}"))?;
        let set = stream.set_read_timeout(Some(patience)).and(stream.set_nodelay(true));
        set.and(stream.set_write_timeout(Some(patience))).map_err(|e| e.to_string())?;
        Ok(Connection { stream, next_correlation: 1, waiting: Vec::new() })
    }

    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    pub fn ask(
        &mut self,
        s: &Schemas,
        api: &str,
        version: i16,
        body: &Value,
    ) -> Result<Answer, String> {
        self.send(s, api, version, body)?;
        self.receive(s)
    }

    /// Sends a request; its answer is read by `receive`.
    pub fn send(
        &mut self,
        s: &Schemas,
        api: &str,
        version: i16,
        body: &Value,
    ) -> Result<(), String> {
        let bytes = encode(s.request(api)?, version, body)?.bytes;
        self.send_body(s, api, version, &bytes)
    }

    /// Sends a request whose body is already encoded, right or wrong.
    pub fn send_body(
        &mut self,
        s: &Schemas,
        api: &str,
        version: i16,
        body: &[u8],
    ) -> Result<(), String> {
        let correlation = self.next_correlation;
        self.next_correlation += 1;
        let frame = frame(s, api, version, correlation, body)?;
        self.waiting.push((api.to_string(), version, correlation));
        // A broker that has closed already shows it when the answer is read.
        let _ = self.stream.write_all(&frame);
        Ok(())
    }

    /// Forgets the newest request: a Produce with acks 0 has no answer.
    pub fn expect_no_answer(&mut self) {
        self.waiting.pop();
    }

    /// Reads the answer of the oldest request that still waits for one.
    pub fn receive(&mut self, schemas: &Schemas) -> Result<Answer, String> {
        if self.waiting.is_empty() {
            return Err("no request waits for an answer".into());
        }
        let (api, version, correlation) = self.waiting.remove(0);
        let bytes = match self.read_frame() {
            Ok(bytes) => bytes,
            Err(answer) => return Ok(answer),
        };
        Ok(read_answer(schemas, &api, version, correlation, &bytes))
    }

    fn read_frame(&mut self) -> Result<Vec<u8>, Answer> {
        let mut size = [0; 4];
        self.read_exact(&mut size)?;
        let size = i32::from_be_bytes(size);
        if !(4..=200_000_000).contains(&size) {
            return Err(Answer::Unreadable(format!("a frame of {size} bytes")));
        }
        let mut bytes = vec![0; size as usize];
        self.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn read_exact(&mut self, into: &mut [u8]) -> Result<(), Answer> {
        self.stream.read_exact(into).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Answer::Silence,
            _ => Answer::Closed,
        })
    }
}

/// A whole frame: size, header, body.
pub fn frame(
    schemas: &Schemas,
    api: &str,
    version: i16,
    correlation: i32,
    body: &[u8],
) -> Result<Vec<u8>, String> {
    let request = schemas.request(api)?;
    let key = request.key.ok_or("a request without a key")?;
    let mut out = vec![0; 4];
    out.extend(key.to_be_bytes());
    out.extend(version.to_be_bytes());
    out.extend(correlation.to_be_bytes());
    let client = b"compat";
    out.extend((client.len() as i16).to_be_bytes());
    out.extend(client);
    // A version above the known ones is written as the newest form that is known.
    if request.flexible.contains(version) {
        put_varint(&mut out, 0);
    }
    out.extend(body);
    let size = (out.len() - 4) as i32;
    out[..4].copy_from_slice(&size.to_be_bytes());
    Ok(out)
}

fn read_answer(s: &Schemas, api: &str, version: i16, correlation: i32, bytes: &[u8]) -> Answer {
    let parse = || -> Result<Value, String> {
        let response = s.response(api)?;
        let header = s.get("ResponseHeader").ok_or("no schema of ResponseHeader")?;
        // ApiVersions is asked before versions are known, so its answer never has a flexible header.
        let flexible = response.flexible.contains(version) && api != "ApiVersions";
        let (head, used) = decode_prefix(header, i16::from(flexible), bytes)?;
        if head["correlationId"] != json!(correlation) {
            return Err(format!("correlation id {}, not {correlation}", head["correlationId"]));
        }
        let body = &bytes[used..];
        match decode(response, version.min(response.valid.max), body) {
            // Error 35 comes in version 0, whatever was asked.
            Err(_) if api == "ApiVersions" => decode(response, 0, body),
            other => other,
        }
    };
    parse().map_or_else(Answer::Unreadable, Answer::Body)
}
