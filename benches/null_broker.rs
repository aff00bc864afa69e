//! The null broker: the least that a Kafka broker can do, as the measure of what Ottla does.
//! `null_broker PORT DIRECTORY PARTITIONS`: one thread, one epoll loop. It frames, checks the CRC of
//! batches, gives them offsets, appends them with one `pwritev` and sends them back with `sendfile`.
//! May not live here: validation, waiting for anything but data, recovery, errors. What is no sound
//! request of the few keys below closes its connection.

use std::collections::{HashMap, VecDeque};
use std::io::IoSlice;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, Ipv4Addr, SendFlags, SocketFlags, SocketType};

const PRODUCE: i16 = 0;
const FETCH: i16 = 1;
const LIST_OFFSETS: i16 = 2;
const METADATA: i16 = 3;
const FIND_COORDINATOR: i16 = 10;
const API_VERSIONS: i16 = 18;
/// Key, least and greatest version: as old as librdkafka takes, so that nothing else is needed.
/// It sends lz4 only to a broker that names FindCoordinator.
const SERVED: [(i16, i16, i16); 6] = [
    (PRODUCE, 3, 7),
    (FETCH, 4, 4),
    (LIST_OFFSETS, 1, 1),
    (METADATA, 4, 4),
    (FIND_COORDINATOR, 0, 0),
    (API_VERSIONS, 0, 3),
];

const LISTENER: u64 = u64::MAX;
const INBOUND_BYTES: usize = 256 << 10;
/// A quiet time as long as clients' `fetch.wait.max.ms` answers every fetch that waits.
const QUIET: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

/// The fixed part of a batch (magic 2), with its base offset and leader epoch in front.
const BATCH_HEADER_BYTES: usize = 61;
const PATCHED_BYTES: usize = 16;
const CRC_FROM: usize = 21;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u16>().ok());
    let (Some(port), Some(dir), Some(partitions)) = (number(1), words.get(2), number(3)) else {
        eprintln!("usage: null_broker PORT DIRECTORY PARTITIONS");
        return ExitCode::from(2);
    };
    let topics = Topics { dir: dir.into(), partitions, by_name: HashMap::new() };
    match serve(port, topics) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(port: u16, topics: Topics) -> rustix::io::Result<()> {
    let listener = net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    net::sockopt::set_socket_reuseaddr(&listener, true)?;
    net::bind(&listener, &std::net::SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    net::listen(&listener, 64)?;
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&poll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let mut broker = Broker { port, topics, waiting: Vec::new() };
    let mut connections: HashMap<u64, Connection> = HashMap::new();
    let mut events: Vec<Event> = Vec::with_capacity(64);
    let mut next_id = 0;
    loop {
        events.clear();
        match epoll::wait(&poll, spare_capacity(&mut events), Some(&QUIET)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        let mut appended = false;
        for event in &events {
            let id = event.data.u64();
            if id == LISTENER {
                let socket = net::accept_with(&listener, SocketFlags::NONBLOCK)?;
                net::sockopt::set_tcp_nodelay(&socket, true)?;
                epoll::add(&poll, &socket, EventData::new_u64(next_id), EventFlags::IN)?;
                connections.insert(next_id, Connection::new(socket));
                next_id += 1;
            } else if let Some(connection) = connections.get_mut(&id) {
                match connection.turn(id, &mut broker, &poll) {
                    Some(any) => appended |= any,
                    None => _ = connections.remove(&id),
                }
            }
        }
        if appended || events.is_empty() {
            for (id, answer) in broker.due(events.is_empty()) {
                if let Some(connection) = connections.get_mut(&id) {
                    connection.outbound.extend(answer);
                    if connection.flush(&poll, id).is_none() {
                        connections.remove(&id);
                    }
                }
            }
        }
    }
}

// --- connections ----------------------------------------------------------------------------------

struct Connection {
    socket: OwnedFd,
    inbound: Vec<u8>,
    outbound: VecDeque<Piece>,
    /// The peer is slow: nothing is read until it has taken what waits.
    blocked: bool,
}

/// A part of an answer.
enum Piece {
    Bytes { bytes: Vec<u8>, sent: usize },
    File { file: Rc<OwnedFd>, at: u64, left: usize },
}

impl Connection {
    fn new(socket: OwnedFd) -> Self {
        let (inbound, outbound) = (Vec::with_capacity(INBOUND_BYTES), VecDeque::new());
        Self { socket, inbound, outbound, blocked: false }
    }

    /// Reads once, serves what is complete, sends; says whether anything was appended, `None` to
    /// close.
    fn turn(&mut self, id: u64, broker: &mut Broker, poll: &OwnedFd) -> Option<bool> {
        let appended = if self.blocked { false } else { self.read(id, broker)? };
        self.flush(poll, id)?;
        Some(appended)
    }

    fn read(&mut self, id: u64, broker: &mut Broker) -> Option<bool> {
        match rustix::io::read(&self.socket, spare_capacity(&mut self.inbound)) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(Errno::AGAIN | Errno::INTR) => return Some(false),
            Err(_) => return None,
        }
        let (mut used, mut appended) = (0, false);
        while let Some(size) = self.inbound[used..].first_chunk::<4>() {
            let size = usize::try_from(i32::from_be_bytes(*size)).ok()?;
            let Some(frame) = self.inbound.get(used + 4..used + 4 + size) else {
                self.inbound.reserve_exact((4 + size).saturating_sub(self.inbound.len() - used));
                break;
            };
            let request = Request::read(frame)?;
            appended |= request.key == PRODUCE;
            for piece in broker.answer(id, request)? {
                push(&mut self.outbound, piece);
            }
            used += 4 + size;
        }
        self.inbound.drain(..used);
        Some(appended)
    }

    /// Sends what the peer takes; `None` when it is gone.
    fn flush(&mut self, poll: &OwnedFd, id: u64) -> Option<()> {
        let was_blocked = std::mem::take(&mut self.blocked);
        while let Some(front) = self.outbound.front_mut() {
            let (sent, done) = match front {
                Piece::Bytes { bytes, sent } => {
                    let wrote = net::send(&self.socket, &bytes[*sent..], SendFlags::NOSIGNAL);
                    *sent += *wrote.as_ref().unwrap_or(&0);
                    (wrote, *sent == bytes.len())
                }
                Piece::File { file, at, left } => {
                    let wrote = rustix::fs::sendfile(&self.socket, &**file, Some(at), *left);
                    *left -= *wrote.as_ref().unwrap_or(&0);
                    (wrote, *left == 0)
                }
            };
            match sent {
                Ok(0) => return None,
                Ok(_) if done => _ = self.outbound.pop_front(),
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.blocked = true;
                    break;
                }
                Err(_) => return None,
            }
        }
        if self.blocked != was_blocked {
            let flags = if self.blocked { EventFlags::OUT } else { EventFlags::IN };
            epoll::modify(poll, &self.socket, EventData::new_u64(id), flags).ok()?;
        }
        Some(())
    }
}

/// Answers of one wake-up leave in as few calls as their file parts allow.
fn push(outbound: &mut VecDeque<Piece>, piece: Piece) {
    match (outbound.back_mut(), piece) {
        (Some(Piece::Bytes { bytes, .. }), Piece::Bytes { bytes: more, .. }) => bytes.extend(more),
        (_, piece) => outbound.push_back(piece),
    }
}

// --- requests -------------------------------------------------------------------------------------

struct Request<'a> {
    key: i16,
    version: i16,
    correlation_id: i32,
    body: Reader<'a>,
}

impl<'a> Request<'a> {
    fn read(frame: &'a [u8]) -> Option<Self> {
        let mut body = Reader(frame);
        let (key, version, correlation_id) = (body.i16()?, body.i16()?, body.i32()?);
        body.text()?; // client id
        let known =
            SERVED.iter().any(|(k, min, max)| *k == key && (*min..=*max).contains(&version));
        known.then_some(Self { key, version, correlation_id, body })
    }
}

/// Reads topics with their partitions and answers each partition by `one`, under the same topics.
fn each_partition<'a>(
    body: &mut Reader<'a>,
    out: &mut Frame,
    mut one: impl FnMut(&'a [u8], &mut Reader<'a>, &mut Frame) -> Option<()>,
) -> Option<()> {
    let topics = body.i32()?;
    out.i32(topics);
    for _ in 0..topics {
        let name = body.text()?;
        let partitions = body.i32()?;
        out.text(name);
        out.i32(partitions);
        for _ in 0..partitions {
            one(name, body, out)?;
        }
    }
    Some(())
}

struct Broker {
    port: u16,
    topics: Topics,
    waiting: Vec<Waiting>,
}

/// A fetch that found nothing.
struct Waiting {
    connection: u64,
    correlation_id: i32,
    body: Vec<u8>,
}

impl Broker {
    /// The pieces of one answer, none while a fetch waits or with acks=0; `None` closes.
    fn answer(&mut self, connection: u64, request: Request<'_>) -> Option<Vec<Piece>> {
        let mut out = Frame::new(request.correlation_id);
        let mut body = request.body;
        match request.key {
            PRODUCE => {
                if !self.produce(&mut body, &mut out)? {
                    return Some(Vec::new());
                }
            }
            FETCH => {
                let kept = body.0;
                if self.topics.fetch(&mut body, &mut out)? == 0 {
                    let (correlation_id, body) = (request.correlation_id, kept.to_vec());
                    self.waiting.push(Waiting { connection, correlation_id, body });
                    return Some(Vec::new());
                }
            }
            LIST_OFFSETS => self.topics.list_offsets(&mut body, &mut out)?,
            METADATA => self.metadata(&mut body, &mut out)?,
            API_VERSIONS => api_versions(request.version, &mut out),
            _ => return None,
        }
        Some(out.finish())
    }

    /// Fetches that have something now, or all of them.
    fn due(&mut self, all: bool) -> Vec<(u64, Vec<Piece>)> {
        let mut ready = Vec::new();
        let topics = &mut self.topics;
        self.waiting.retain(|waiting| {
            let mut out = Frame::new(waiting.correlation_id);
            let found = topics.fetch(&mut Reader(&waiting.body), &mut out);
            let is_due = all || found != Some(0);
            if is_due {
                ready.push((waiting.connection, out.finish()));
            }
            !is_due
        });
        ready
    }

    /// False with acks=0, which takes no answer.
    fn produce(&mut self, body: &mut Reader<'_>, out: &mut Frame) -> Option<bool> {
        body.text()?; // transactional id
        let acks = body.i16()?;
        body.i32()?; // timeout
        each_partition(body, out, |name, body, out| {
            let index = body.i32()?;
            let records = body.bytes()?;
            let base_offset = self.topics.log(name, index)?.append(records)?;
            out.i32(index);
            out.i16(0);
            out.i64(base_offset);
            out.i64(-1); // log append time
            out.i64(0); // log start offset
            Some(())
        })?;
        out.i32(0); // throttle
        Some(acks != 0)
    }

    /// Every topic that is asked for exists.
    fn metadata(&mut self, body: &mut Reader<'_>, out: &mut Frame) -> Option<()> {
        out.i32(0); // throttle
        out.i32(1);
        out.i32(1); // node id
        out.text(b"127.0.0.1");
        out.i32(self.port.into());
        out.i16(-1); // rack
        out.text(b"null");
        out.i32(1); // controller
        let topics = body.i32()?.max(0);
        out.i32(topics);
        for _ in 0..topics {
            let name = body.text()?;
            let partitions = self.topics.open(name)?;
            out.i16(0);
            out.text(name);
            out.bytes(&[0]); // not internal
            out.i32(partitions);
            for index in 0..partitions {
                out.i16(0);
                // index, leader, one replica, one in sync
                [index, 1, 1, 1, 1, 1].iter().for_each(|field| out.i32(*field));
            }
        }
        Some(())
    }
}

fn api_versions(version: i16, out: &mut Frame) {
    let flexible = version >= 3;
    out.i16(0);
    match flexible {
        true => out.bytes(&[SERVED.len() as u8 + 1]),
        false => out.i32(SERVED.len() as i32),
    }
    for (key, min, max) in SERVED {
        [key, min, max].iter().for_each(|field| out.i16(*field));
        out.bytes(if flexible { &[0] } else { &[] });
    }
    if version >= 1 {
        out.i32(0); // throttle
    }
    out.bytes(if flexible { &[0] } else { &[] });
}

// --- logs -----------------------------------------------------------------------------------------

struct Topics {
    dir: PathBuf,
    partitions: u16,
    by_name: HashMap<Vec<u8>, Vec<Log>>,
}

struct Log {
    file: Rc<OwnedFd>,
    /// Of every batch: the offset after it, the position after it.
    ends: Vec<(i64, u64)>,
}

impl Topics {
    /// Makes the topic if it is new; returns its number of partitions.
    fn open(&mut self, name: &[u8]) -> Option<i32> {
        if !self.by_name.contains_key(name) {
            let text = std::str::from_utf8(name).ok()?;
            let open = |index: u16| {
                let path = self.dir.join(format!("{text}-{index}"));
                let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::RDWR | OFlags::CLOEXEC;
                let file = rustix::fs::open(path, flags, Mode::from(0o644)).ok()?;
                Some(Log { file: Rc::new(file), ends: Vec::new() })
            };
            let logs = (0..self.partitions).map(open).collect::<Option<Vec<Log>>>()?;
            self.by_name.insert(name.to_vec(), logs);
        }
        Some(self.partitions.into())
    }

    fn log(&mut self, name: &[u8], index: i32) -> Option<&mut Log> {
        self.by_name.get_mut(name)?.get_mut(usize::try_from(index).ok()?)
    }

    /// How many bytes of records the answer holds.
    fn fetch(&mut self, body: &mut Reader<'_>, out: &mut Frame) -> Option<usize> {
        body.take(4 + 4 + 4)?; // replica id, longest wait, least bytes
        let mut budget = usize::try_from(body.i32()?).ok()?;
        body.take(1)?; // isolation level
        let mut found = 0;
        out.i32(0); // throttle
        each_partition(body, out, |name, body, out| {
            let (index, offset, bytes_max) = (body.i32()?, body.i64()?, body.i32()?);
            let log = self.log(name, index)?;
            let bytes_max = usize::try_from(bytes_max).ok()?.min(budget);
            let (at, size) = log.find(offset, bytes_max, found == 0);
            out.i32(index);
            out.i16(0);
            out.i64(log.end_offset()); // high watermark
            out.i64(log.end_offset()); // last stable offset
            out.i32(-1); // no aborted transactions
            out.i32(size as i32);
            out.file(&log.file, at, size);
            budget = budget.saturating_sub(size);
            found += size;
            Some(())
        })?;
        Some(found)
    }

    fn list_offsets(&mut self, body: &mut Reader<'_>, out: &mut Frame) -> Option<()> {
        const EARLIEST: i64 = -2;
        body.i32()?; // replica id
        each_partition(body, out, |name, body, out| {
            let (index, timestamp) = (body.i32()?, body.i64()?);
            let end = self.log(name, index)?.end_offset();
            out.i32(index);
            out.i16(0);
            out.i64(-1); // timestamp
            out.i64(if timestamp == EARLIEST { 0 } else { end });
            Some(())
        })
    }
}

impl Log {
    fn end_offset(&self) -> i64 {
        self.ends.last().map_or(0, |end| end.0)
    }

    /// Appends whole batches with sound CRCs; returns the base offset of the first.
    fn append(&mut self, mut records: &[u8]) -> Option<i64> {
        let base_offset = self.end_offset();
        while !records.is_empty() {
            let header = records.get(..BATCH_HEADER_BYTES)?;
            let number = |at: usize| Some(i32::from_be_bytes(*header[at..].first_chunk()?));
            let size = 12 + usize::try_from(number(8)?).ok()?;
            let (batch, rest) = records.split_at_checked(size.max(BATCH_HEADER_BYTES))?;
            if crc32c::crc32c(&batch[CRC_FROM..]) != number(17)? as u32 {
                return None;
            }
            let (offset, position) = self.ends.last().copied().unwrap_or_default();
            let mut patched = [0; PATCHED_BYTES];
            patched[..8].copy_from_slice(&offset.to_be_bytes());
            patched[8..12].copy_from_slice(&batch[8..12]);
            let slices = [IoSlice::new(&patched), IoSlice::new(&batch[PATCHED_BYTES..])];
            if rustix::io::pwritev(&*self.file, &slices, position).ok()? != size {
                return None;
            }
            self.ends.push((offset + 1 + i64::from(number(23)?), position + size as u64));
            records = rest;
        }
        Some(base_offset)
    }

    /// Position and size of the batches from `offset` on; one whole batch always fits if `any`.
    fn find(&self, offset: i64, bytes_max: usize, any: bool) -> (u64, usize) {
        let first = self.ends.partition_point(|end| end.0 <= offset);
        let at = first.checked_sub(1).map_or(0, |before| self.ends[before].1);
        let last = self.ends.partition_point(|end| end.1 <= at + bytes_max as u64);
        let last = last.max(first + usize::from(any)).min(self.ends.len());
        let end = last.checked_sub(1).map_or(0, |last| self.ends[last].1);
        (at, end.saturating_sub(at) as usize)
    }
}

// --- bytes ----------------------------------------------------------------------------------------

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn i16(&mut self) -> Option<i16> {
        self.array().map(i16::from_be_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_be_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// A string; null reads as empty.
    fn text(&mut self) -> Option<&'a [u8]> {
        let size = self.i16()?;
        self.take(size.max(0) as usize)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let size = self.i32()?;
        self.take(size.max(0) as usize)
    }
}

/// An answer being written; its size field is filled in at the end.
struct Frame {
    pieces: Vec<Piece>,
    /// What follows the last piece.
    bytes: Vec<u8>,
    file_bytes: usize,
}

impl Frame {
    fn new(correlation_id: i32) -> Self {
        let mut frame = Self { pieces: Vec::new(), bytes: Vec::with_capacity(128), file_bytes: 0 };
        frame.i32(0);
        frame.i32(correlation_id);
        frame
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn i16(&mut self, value: i16) {
        self.bytes(&value.to_be_bytes());
    }

    fn i32(&mut self, value: i32) {
        self.bytes(&value.to_be_bytes());
    }

    fn i64(&mut self, value: i64) {
        self.bytes(&value.to_be_bytes());
    }

    fn text(&mut self, text: &[u8]) {
        self.i16(text.len() as i16);
        self.bytes(text);
    }

    fn file(&mut self, file: &Rc<OwnedFd>, at: u64, size: usize) {
        if size > 0 {
            let bytes = std::mem::take(&mut self.bytes);
            self.pieces.push(Piece::Bytes { bytes, sent: 0 });
            self.pieces.push(Piece::File { file: file.clone(), at, left: size });
            self.file_bytes += size;
        }
    }

    fn finish(mut self) -> Vec<Piece> {
        let bytes = std::mem::take(&mut self.bytes);
        if !bytes.is_empty() {
            self.pieces.push(Piece::Bytes { bytes, sent: 0 });
        }
        let in_memory = self.pieces.iter().map(|piece| match piece {
            Piece::Bytes { bytes, .. } => bytes.len(),
            Piece::File { .. } => 0,
        });
        let size = (in_memory.sum::<usize>() + self.file_bytes - 4) as u32;
        if let Some(Piece::Bytes { bytes, .. }) = self.pieces.first_mut() {
            bytes[..4].copy_from_slice(&size.to_be_bytes());
        }
        self.pieces
    }
}
