//! The order of requests on one connection, with a service that answers on command.

use std::sync::Mutex;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;
use crate::env::{Clock, Files, Net, Random, Tasks};

/// What became of a request, in the order it happened.
type Events = Arc<Mutex<Vec<String>>>;
/// Answers by correlation id: those not in the list are given at once.
type Held = Arc<Mutex<Vec<(i32, oneshot::Receiver<()>)>>>;

struct Fake {
    events: Events,
    held: Held,
}

/// Tells when a request is given up.
struct Dropped(Events, i32);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.lock().expect("events").push(format!("dropped {}", self.1));
    }
}

fn answer_of(id: i32) -> Reply {
    let mut head = BytesMut::new();
    head.put_i32(4);
    head.put_i32(id);
    Reply::Frame { head: head.freeze(), rest: Vec::new(), throttle: Duration::ZERO }
}

impl Service for Fake {
    async fn call(&self, incoming: Incoming) -> Progress {
        let id = incoming.header.correlation_id;
        self.events.lock().expect("events").push(format!("started {id}"));
        assert!(id != 666, "the service is asked to break");
        let held = {
            let mut held = self.held.lock().expect("held");
            held.iter().position(|(of, _)| *of == id).map(|at| held.remove(at).1)
        };
        let Some(held) = held else { return Progress::Done(answer_of(id)) };
        let dropped = Dropped(self.events.clone(), id);
        if incoming.header.key == ApiKey::Produce {
            return Progress::Acks(Box::pin(async move {
                let _ = held.await;
                std::mem::forget(dropped);
                answer_of(id)
            }));
        }
        let _ = held.await;
        std::mem::forget(dropped);
        Progress::Done(answer_of(id))
    }
}

struct Client {
    stream: Stream,
    events: Events,
    held: Held,
    connection: JoinHandle<()>,
}

fn connect() -> Client {
    let (ours, theirs) = Stream::pair(1 << 16);
    let (events, held) = (Events::default(), Held::default());
    let env = Env {
        clock: Clock::simulated(0),
        random: Random::seeded(1),
        files: Files::Real,
        net: Net::default(),
        tasks: Tasks::current(),
    };
    let shared = Shared {
        env,
        limits: Limits { frame_bytes_max: 1 << 20, idle: Duration::from_secs(600) },
        frames: RequestMemory::new(-1),
        decoded: RequestMemory::new(-1),
        metrics: Arc::new(Metrics::new()),
        warn_limits: WarnLimits::default(),
        stop: Stop::default(),
    };
    let info = Arc::new(ListenerInfo { name: "PLAINTEXT".into(), is_controller: false });
    let service = Arc::new(Fake { events: events.clone(), held: held.clone() });
    let peer = SocketAddr::from(([127, 0, 0, 1], 1));
    let connection = Connection::new(theirs, peer, info, service, Arc::new(shared));
    let connection = tokio::task::spawn_local(connection.run());
    Client { stream: ours, events, held, connection }
}

impl Client {
    /// Requests with these ids will wait until their sender is used.
    fn hold(&self, id: i32) -> oneshot::Sender<()> {
        let (sender, receiver) = oneshot::channel();
        self.held.lock().expect("held").push((id, receiver));
        sender
    }

    async fn send(&mut self, key: ApiKey, id: i32) {
        let (version, body): (i16, &[u8]) = match key {
            // No transactional id, acks -1, timeout 0, no topics.
            ApiKey::Produce => (3, b"\xff\xff\xff\xff\0\0\0\0\0\0\0\0"),
            _ => (0, b""),
        };
        let mut frame = BytesMut::new();
        frame.put_i32((10 + body.len()) as i32);
        frame.put_i16(key as i16);
        frame.put_i16(version);
        frame.put_i32(id);
        frame.put_i16(-1);
        frame.put_slice(body);
        self.stream.write_all(&frame).await.expect("open connection");
    }

    async fn answer(&mut self) -> i32 {
        let mut frame = [0; 8];
        self.stream.read_exact(&mut frame).await.expect("an answer");
        i32::from_be_bytes([frame[4], frame[5], frame[6], frame[7]])
    }

    /// What happened once everybody had a turn.
    async fn events(&self) -> Vec<String> {
        tokio::time::advance(Duration::from_millis(1)).await;
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        std::mem::take(&mut *self.events.lock().expect("events"))
    }
}

/// Runs `test` on one thread with paused time.
fn simulated(test: impl Future<Output = ()>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    tokio::task::LocalSet::new().block_on(&runtime.expect("runtime"), test);
}

#[test]
fn a_request_starts_when_all_earlier_ones_are_answered() {
    simulated(async {
        let mut client = connect();
        let first = client.hold(1);
        client.send(ApiKey::ApiVersions, 1).await;
        client.send(ApiKey::ApiVersions, 2).await;
        assert_eq!(client.events().await, ["started 1"]);
        first.send(()).expect("waiting");
        assert_eq!((client.answer().await, client.answer().await), (1, 2));
        assert_eq!(client.events().await, ["started 2"]);
    });
}

#[test]
fn a_produce_starts_beside_produces_that_await_acknowledgement_and_nothing_else_does() {
    simulated(async {
        let mut client = connect();
        let (first, second) = (client.hold(1), client.hold(2));
        client.send(ApiKey::Produce, 1).await;
        client.send(ApiKey::Produce, 2).await;
        client.send(ApiKey::ApiVersions, 3).await;
        assert_eq!(client.events().await, ["started 1", "started 2"]);
        second.send(()).expect("waiting");
        assert!(client.events().await.is_empty(), "the answer of 2 waits for that of 1");
        first.send(()).expect("waiting");
        let answers = (client.answer().await, client.answer().await, client.answer().await);
        assert_eq!(answers, (1, 2, 3));
    });
}

#[test]
fn a_peer_that_closes_gives_its_waiting_requests_up() {
    simulated(async {
        let mut client = connect();
        let _held = (client.hold(1), client.hold(2));
        client.send(ApiKey::Produce, 1).await;
        client.send(ApiKey::ApiVersions, 2).await;
        assert_eq!(client.events().await, ["started 1"]);
        client.stream.shutdown().await.expect("open connection");
        assert_eq!(client.events().await, ["dropped 1"]);
        client.connection.await.expect("it ended in order");
    });
}

#[test]
fn a_panic_or_a_bad_frame_closes_the_connection_after_earlier_answers() {
    simulated(async {
        for bad in ["panic", "frame"] {
            let mut client = connect();
            client.send(ApiKey::ApiVersions, 1).await;
            match bad {
                "panic" => client.send(ApiKey::ApiVersions, 666).await,
                _ => client.stream.write_all(b"GET / HTTP/1.1\r\n").await.expect("open"),
            }
            assert_eq!(client.answer().await, 1, "{bad}");
            assert_eq!(client.stream.read(&mut [0]).await.expect("end"), 0, "{bad}");
        }
    });
}

#[test]
fn a_silent_connection_is_closed_at_the_idle_limit_and_a_waiting_request_is_not_silence() {
    simulated(async {
        let mut client = connect();
        let held = client.hold(1);
        client.send(ApiKey::ApiVersions, 1).await;
        client.events().await;
        tokio::time::advance(Duration::from_secs(601)).await;
        assert!(client.events().await.is_empty());
        held.send(()).expect("still waiting");
        assert_eq!(client.answer().await, 1);
        for _ in 0..2 {
            client.events().await;
            tokio::time::advance(Duration::from_secs(601)).await;
        }
        client.events().await;
        assert_eq!(client.stream.read(&mut [0]).await.expect("end"), 0);
    });
}

#[test]
fn many_frames_in_one_write_are_all_answered_in_order() {
    simulated(async {
        let mut client = connect();
        let mut bytes = BytesMut::new();
        for id in 0..200 {
            bytes.put_slice(b"\0\0\0\x0a\0\x12\0\0");
            bytes.put_i32(id);
            bytes.put_i16(-1);
        }
        let bytes: Bytes = bytes.freeze();
        client.stream.write_all(&bytes).await.expect("open connection");
        for id in 0..200 {
            assert_eq!(client.answer().await, id);
        }
    });
}
