//! Many producers at once: `producers PORT CONNECTIONS MILLISECONDS`.
//! Each connection has one Produce in flight, of one record, acks=all, to the same partition; one
//! epoll loop drives them all. Prints how many requests were acknowledged per second.

#[allow(dead_code, reason = "shared with the benches, which use the rest")]
#[path = "support/mod.rs"]
mod support;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::ExitCode;
use std::time::Duration;

use ottla::env::Clock;
use ottla::protocol::batch::Codec;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::net::{self, AddressFamily, SendFlags, SocketType};

const RECORD_BYTES: usize = 100;
/// In the answer (Produce v9, one partition): ids, tags, lengths and the topic's name come before.
const ERROR_AT: usize = 4 + 4 + 1 + 1 + 1 + support::TOPIC.len() + 1 + 4;
/// An answer takes longer only when there will be none.
const SILENCE: rustix::fs::Timespec = rustix::fs::Timespec { tv_sec: 30, tv_nsec: 0 };

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u32>().ok());
    let port = number(1).and_then(|port| u16::try_from(port).ok());
    let (Some(port), Some(connections), Some(ms)) = (port, number(2), number(3)) else {
        eprintln!("usage: producers PORT CONNECTIONS MILLISECONDS");
        return ExitCode::from(2);
    };
    match drive(port, connections, Duration::from_millis(ms.into())) {
        Ok(rate) => {
            println!("{rate:.1} requests/s");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Acknowledged requests per second, once every producer has had its first answer.
fn drive(port: u16, connections: u32, time: Duration) -> Result<f64, String> {
    let frame = sized(&support::produce_frame(&support::batch(1, RECORD_BYTES, Codec::NONE)));
    let poll = epoll::create(CreateFlags::CLOEXEC).map_err(|error| error.to_string())?;
    let mut producers = Vec::new();
    for id in 0..connections {
        let producer = Producer::connect(port, &frame).map_err(|error| format!("{error}"))?;
        let data = EventData::new_u64(id.into());
        epoll::add(&poll, &producer.socket, data, EventFlags::IN).map_err(|e| e.to_string())?;
        producers.push(producer);
    }
    let clock = Clock::real();
    let mut events: Vec<Event> = Vec::with_capacity(producers.len());
    let (mut answered, mut began, mut counted) = (0, clock.now(), 0_u64);
    loop {
        events.clear();
        epoll::wait(&poll, spare_capacity(&mut events), Some(&SILENCE))
            .map_err(|error| error.to_string())?;
        if events.is_empty() {
            return Err("no answer came".to_owned());
        }
        for event in &events {
            let producer = &mut producers[event.data.u64() as usize];
            if producer.take_answer()? {
                producer.send(&frame).map_err(|error| error.to_string())?;
                answered += 1;
                counted += 1;
            }
        }
        let now = clock.now();
        if answered < producers.len() {
            (began, counted) = (now, 0);
        } else if now - began >= time {
            return Ok(counted as f64 / (now - began).as_secs_f64());
        }
    }
}

fn sized(frame: &[u8]) -> Vec<u8> {
    [&(frame.len() as u32).to_be_bytes(), frame].concat()
}

struct Producer {
    socket: OwnedFd,
    inbound: Vec<u8>,
}

impl Producer {
    /// Connects and sends the first request.
    fn connect(port: u16, frame: &[u8]) -> rustix::io::Result<Self> {
        let socket = net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
        net::connect(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
        net::sockopt::set_tcp_nodelay(&socket, true)?;
        let producer = Self { socket, inbound: Vec::with_capacity(256) };
        producer.send(frame)?;
        Ok(producer)
    }

    /// One small frame, with nothing else under way: the socket takes it whole.
    fn send(&self, frame: &[u8]) -> rustix::io::Result<()> {
        let sent = net::send(&self.socket, frame, SendFlags::NOSIGNAL)?;
        if sent == frame.len() { Ok(()) } else { Err(rustix::io::Errno::AGAIN) }
    }

    /// Reads once; whether the answer is whole, and it is an ok.
    fn take_answer(&mut self) -> Result<bool, String> {
        let read = rustix::io::read(&self.socket, spare_capacity(&mut self.inbound));
        if read.map_err(|error| error.to_string())? == 0 {
            return Err("the broker closed a connection".to_owned());
        }
        let Some(size) = self.inbound.first_chunk::<4>() else { return Ok(false) };
        if self.inbound.len() < 4 + u32::from_be_bytes(*size) as usize {
            return Ok(false);
        }
        let code = self.inbound.get(ERROR_AT..).and_then(|rest| rest.first_chunk::<2>());
        match code.map(|code| i16::from_be_bytes(*code)) {
            Some(0) => {
                self.inbound.clear();
                Ok(true)
            }
            code => Err(format!("a Produce was answered with the error {code:?}")),
        }
    }
}
