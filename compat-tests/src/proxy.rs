//! A proxy that clients take for the broker and that spoils its answers: every answer of an API that does
//! work says error -1. Brokers' addresses in answers are replaced by its own. Used by the self-check only.

use crate::wire::codec::encode;
use crate::wire::decode::{decode, decode_prefix};
use crate::wire::schema::Schemas;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Answers that lead a client to the broker stay right, so that it gets to the ones that are spoiled.
const UNSPOILED: &[&str] = &["ApiVersions", "Metadata", "FindCoordinator", "DescribeCluster"];

pub struct Proxy {
    pub port: u16,
    over: Arc<AtomicBool>,
}

impl Proxy {
    /// Serves until dropped, a thread per direction and connection.
    pub fn serve(schemas: Arc<Schemas>, broker_port: u16) -> Result<Proxy, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
        let port = listener.local_addr().map_err(|e| e.to_string())?.port();
        let over = Arc::new(AtomicBool::new(false));
        let flag = over.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if flag.load(Ordering::Relaxed) {
                    break;
                }
                let Ok(broker) = TcpStream::connect(("127.0.0.1", broker_port)) else { continue };
                let pair = Pair { schemas: schemas.clone(), ports: (broker_port, port) };
                let _ = pair.join(client, broker);
            }
        });
        Ok(Proxy { port, over })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

struct Pair {
    schemas: Arc<Schemas>,
    /// The broker's and the proxy's.
    ports: (u16, u16),
}

/// Key and version of requests whose answers are still to come.
type Asked = Arc<Mutex<VecDeque<(i16, i16)>>>;

impl Pair {
    fn join(self, client: TcpStream, broker: TcpStream) -> std::io::Result<()> {
        let asked = Asked::default();
        let (mut from, mut to, noted) = (client.try_clone()?, broker.try_clone()?, asked.clone());
        std::thread::spawn(move || {
            while let Some(frame) = read_frame(&mut from) {
                if let (Some(head), Ok(mut queue)) = (frame.get(..4), noted.lock()) {
                    let int2 = |at: usize| i16::from_be_bytes([head[at], head[at + 1]]);
                    queue.push_back((int2(0), int2(2)));
                }
                if write_frame(&mut to, &frame).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(std::net::Shutdown::Both);
        });
        let (mut from, mut to) = (broker, client);
        std::thread::spawn(move || {
            while let Some(frame) = read_frame(&mut from) {
                let next = asked.lock().ok().and_then(|mut queue| queue.pop_front());
                let spoiled = next.and_then(|(key, version)| self.spoil(key, version, &frame));
                if write_frame(&mut to, &spoiled.unwrap_or(frame)).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(std::net::Shutdown::Both);
        });
        Ok(())
    }

    /// Returns none for what it cannot read, which goes on as it is.
    fn spoil(&self, key: i16, version: i16, frame: &[u8]) -> Option<Vec<u8>> {
        let api = self.schemas.api(key)?;
        let response = self.schemas.response(api).ok()?;
        let header = self.schemas.get("ResponseHeader")?;
        let flexible = i16::from(response.flexible.contains(version) && api != "ApiVersions");
        let (_, used) = decode_prefix(header, flexible, frame).ok()?;
        let mut body = decode(response, version, &frame[used..]).ok()?;
        self.change(&mut body, !UNSPOILED.contains(&api));
        let encoded = encode(response, version, &body).ok()?;
        Some([&frame[..used], &encoded.bytes].concat())
    }

    fn change(&self, value: &mut Value, spoil: bool) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match name.as_str() {
                        "port" if *value == json!(self.ports.0) => *value = json!(self.ports.1),
                        "errorCode" if spoil => *value = json!(-1),
                        _ => self.change(value, spoil),
                    }
                }
            }
            Value::Array(elements) => elements.iter_mut().for_each(|e| self.change(e, spoil)),
            _ => {}
        }
    }
}

fn read_frame(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut size = [0; 4];
    stream.read_exact(&mut size).ok()?;
    let mut frame = vec![0; usize::try_from(i32::from_be_bytes(size)).ok()?];
    stream.read_exact(&mut frame).ok()?;
    Some(frame)
}

fn write_frame(stream: &mut TcpStream, frame: &[u8]) -> std::io::Result<()> {
    stream.write_all(&(frame.len() as i32).to_be_bytes())?;
    stream.write_all(frame)
}
