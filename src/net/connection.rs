//! One connection: reads, starts requests in order, writes answers in order.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::admission::{Admitted, Refused, admit};
use super::events::{ConnectionClosed, FrameRefused, HandlerPanicked, WarnLimits};
use super::frames::FrameBuffer;
use super::limits::Limits;
use super::memory::{Charge, RequestMemory};
use super::outbound::Outbound;
use super::panics::catch_panic;
use super::{CloseReason, Incoming, ListenerInfo, Progress, Reply, Service, Stop};
use crate::env::{Env, Instant, Stream};
use crate::protocol::api::ApiKey;
use crate::protocol::wire::Piece;
use crate::security::Session;
use crate::telemetry::{Event as _, Metrics};

/// Frames and bytes taken in one turn, before other tasks get theirs.
const FRAMES_PER_TURN: usize = 64;
const BYTES_PER_TURN: usize = 1 << 20;
/// Produces of one connection that may await their acknowledgement together.
const ACKS_MAX: usize = 64;
/// Read ahead while a request waits: enough to see the peer close behind pipelined requests.
const READ_AHEAD_BYTES: usize = 1 << 20;
/// Unwritten answers above which nothing new is started.
const OUTBOUND_BYTES_MAX: usize = 4 << 20;

type BoxedTimer = Pin<Box<dyn Future<Output = ()> + Send>>;
type BoxedCharge = Pin<Box<dyn Future<Output = Charge> + Send>>;
type BoxedReply = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// What the connections of a node share.
pub struct Shared {
    pub env: Env,
    pub limits: Limits,
    /// Frames received but not answered (`queued.max.request.bytes`).
    pub frames: RequestMemory,
    /// What decoded requests may take together.
    pub decoded: RequestMemory,
    pub metrics: Arc<Metrics>,
    pub warn_limits: WarnLimits,
    pub stop: Stop,
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("closed by the peer")]
    PeerClosed,
    #[error("idle for longer than connections.max.idle.ms")]
    Idle,
    #[error("the broker stops")]
    Stopping,
    #[error(transparent)]
    Closed(#[from] CloseReason),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What happened while the connection waited.
enum Event {
    Called(Result<Progress, String>),
    Acked(Reply),
    Wrote(io::Result<()>),
    Read(io::Result<usize>),
    Timer,
    Stop,
}

pub struct Connection<S> {
    stream: Stream,
    peer: SocketAddr,
    listener: Arc<ListenerInfo>,
    session: Session,
    service: Arc<S>,
    shared: Arc<Shared>,
    inbound: FrameBuffer,
    outbound: Outbound,
    acks: VecDeque<BoxedReply>,
    /// Pays for the frame that is arriving or being served.
    frame_charge: Option<Charge>,
    /// Waits for the memory of the frame that is arriving.
    charging: Option<BoxedCharge>,
    last_active: Instant,
    muted_until: Option<Instant>,
    timer: BoxedTimer,
    stop: BoxedTimer,
    stopping: bool,
}

impl<S: Service> Connection<S> {
    pub fn new(
        stream: Stream,
        peer: SocketAddr,
        listener: Arc<ListenerInfo>,
        service: Arc<S>,
        shared: Arc<Shared>,
    ) -> Self {
        let now = shared.env.clock.now();
        let stop = shared.stop.clone();
        Self {
            stream,
            peer,
            session: Session::anonymous(listener.name.clone()),
            listener,
            service,
            inbound: FrameBuffer::default(),
            outbound: Outbound::default(),
            acks: VecDeque::new(),
            frame_charge: None,
            charging: None,
            last_active: now,
            muted_until: None,
            timer: timer_at(&shared, now + shared.limits.idle),
            stop: Box::pin(async move { stop.begun().await }),
            stopping: false,
            shared,
        }
    }

    /// Serves until either side ends it.
    pub async fn run(mut self) {
        let Err(end) = self.serve().await;
        let closed = ConnectionClosed {
            listener: &self.listener.name,
            peer: self.peer,
            reason: &end.to_string(),
            idle: matches!(end, End::Idle),
        };
        closed.tell(&self.shared.metrics);
    }

    async fn serve(&mut self) -> Result<std::convert::Infallible, End> {
        loop {
            let more = self.turn().await;
            if let Err(End::Closed(_) | End::Stopping) = more {
                // What was answered before still goes out.
                self.finish_acks().await?;
                self.flush().await?;
            }
            if more? {
                self.flush().await?;
                tokio::task::yield_now().await;
                continue;
            }
            if self.outbound.bytes() > OUTBOUND_BYTES_MAX {
                self.flush().await?;
            }
            self.wait().await?;
        }
    }

    /// Starts the requests that are complete in the buffer; true when a further turn has work.
    async fn turn(&mut self) -> Result<bool, End> {
        let mut started_bytes = 0;
        for _ in 0..FRAMES_PER_TURN {
            if self.stopping && self.acks.is_empty() {
                return Err(End::Stopping);
            }
            if self.stopping || self.muted() || started_bytes > BYTES_PER_TURN {
                return Ok(started_bytes > BYTES_PER_TURN);
            }
            let frame = match self.inbound.next_frame(self.shared.limits.frame_bytes_max) {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(false),
                Err(error) => {
                    let reason = error.to_string();
                    return Err(self.refuse(&Refused { api_key: None, version: None, reason }));
                }
            };
            started_bytes += frame.len();
            if self.frame_charge.is_none() {
                self.frame_charge = Some(self.shared.frames.charge(frame.len()).await);
            }
            let admitted = admit(frame).map_err(|refused| self.refuse(&refused))?;
            self.start(admitted).await?;
            self.frame_charge = None;
        }
        Ok(true)
    }

    fn refuse(&self, refused: &Refused) -> End {
        let told = FrameRefused {
            peer: self.peer,
            api_key: refused.api_key,
            version: refused.version,
            reason: &refused.reason,
            limits: &self.shared.warn_limits,
            now: self.shared.env.clock.now(),
        };
        told.tell(&self.shared.metrics);
        CloseReason::BadRequest(refused.reason.clone()).into()
    }

    fn muted(&mut self) -> bool {
        let now = self.shared.env.clock.now();
        self.muted_until = self.muted_until.filter(|until| *until > now);
        self.muted_until.is_some()
    }

    async fn start(&mut self, admitted: Admitted) -> Result<(), End> {
        let key = admitted.header.key;
        let is_produce = key == ApiKey::Produce;
        if !self.acks.is_empty() && (!is_produce || self.acks.len() >= ACKS_MAX) {
            self.finish_acks().await?;
        }
        let _decoded = self.shared.decoded.charge(admitted.decoded_bytes).await;
        let incoming = Incoming {
            header: admitted.header,
            body: admitted.body,
            version_known: admitted.version_known,
            peer: self.peer,
            listener: self.listener.clone(),
            session: self.session.clone(),
        };
        match self.call(incoming, is_produce).await? {
            Ok(Progress::Done(reply)) if self.acks.is_empty() => self.take_reply(reply),
            Ok(Progress::Done(reply)) => {
                self.acks.push_back(Box::pin(std::future::ready(reply)));
                Ok(())
            }
            Ok(Progress::Acks(reply)) => {
                self.acks.push_back(reply);
                Ok(())
            }
            Err(panic) => {
                let told = HandlerPanicked { api_key: key.name(), panic: &panic };
                told.tell(&self.shared.metrics);
                Err(CloseReason::Panicked.into())
            }
        }
    }

    /// Runs the request to its progress; meanwhile earlier answers leave and the peer is watched.
    async fn call(
        &mut self,
        incoming: Incoming,
        is_produce: bool,
    ) -> Result<Result<Progress, String>, End> {
        let service = self.service.clone();
        let mut call = pin!(service.call(incoming));
        let mut call = pin!(catch_panic(call.as_mut()));
        loop {
            let event = poll_fn(|cx| {
                if let Poll::Ready(progress) = call.as_mut().poll(cx) {
                    return Poll::Ready(Event::Called(progress));
                }
                self.poll_event(cx)
            });
            match event.await {
                Event::Called(progress) => return Ok(progress),
                Event::Stop if !is_produce => return Err(End::Stopping),
                // Outstanding work is not idleness.
                Event::Timer => {
                    self.arm_timer(self.shared.env.clock.now() + self.shared.limits.idle)
                }
                event => self.handle(event)?,
            }
        }
    }

    /// Waits for bytes, an acknowledgement, the end of a mute, or the idle limit.
    async fn wait(&mut self) -> Result<(), End> {
        if let Some(until) = self.muted_until {
            self.arm_timer(until);
        }
        let event = poll_fn(|cx| {
            let event = self.poll_event(cx);
            // Looking for bytes made space for them.
            if event.is_pending() && self.outbound.is_empty() && self.acks.is_empty() {
                self.inbound.release();
            }
            event
        });
        match event.await {
            Event::Timer => self.timer_fired(),
            event => self.handle(event),
        }
    }

    async fn finish_acks(&mut self) -> Result<(), End> {
        while !self.acks.is_empty() {
            match poll_fn(|cx| self.poll_event(cx)).await {
                Event::Timer => {
                    self.arm_timer(self.shared.env.clock.now() + self.shared.limits.idle);
                }
                event => self.handle(event)?,
            }
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), End> {
        while !self.outbound.is_empty() {
            let event = poll_fn(|cx| {
                if let Poll::Ready(wrote) = self.outbound.poll_write(&mut self.stream, cx) {
                    return Poll::Ready(Event::Wrote(wrote));
                }
                self.timer.as_mut().poll(cx).map(|()| Event::Timer)
            });
            match event.await {
                Event::Timer => self.timer_fired()?,
                event => self.handle(event)?,
            }
        }
        Ok(())
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        if let Some(front) = self.acks.front_mut()
            && let Poll::Ready(reply) = front.as_mut().poll(cx)
        {
            self.acks.pop_front();
            return Poll::Ready(Event::Acked(reply));
        }
        if !self.outbound.is_empty()
            && let Poll::Ready(wrote) = self.outbound.poll_write(&mut self.stream, cx)
        {
            return Poll::Ready(Event::Wrote(wrote));
        }
        if self.may_read(cx)
            && let Poll::Ready(read) = self.inbound.poll_read(&mut self.stream, cx)
        {
            return Poll::Ready(Event::Read(read));
        }
        if self.timer.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Event::Timer);
        }
        if !self.stopping && self.stop.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Event::Stop);
        }
        Poll::Pending
    }

    /// Reading goes on while the frame at the front is paid for; else it waits for memory.
    fn may_read(&mut self, cx: &mut Context<'_>) -> bool {
        let buffered = self.inbound.len();
        let Some(claimed) = self.inbound.claimed_bytes() else { return true };
        let claimed = claimed.max(0) as usize;
        if claimed + 4 <= buffered {
            return buffered < READ_AHEAD_BYTES;
        }
        if self.frame_charge.is_none() {
            let frames = &self.shared.frames;
            let charging = self.charging.get_or_insert_with(|| frames.clone().charged(claimed));
            if let Poll::Ready(charge) = charging.as_mut().poll(cx) {
                self.charging = None;
                self.frame_charge = Some(charge);
            }
        }
        self.frame_charge.is_some()
    }

    fn handle(&mut self, event: Event) -> Result<(), End> {
        self.last_active = self.shared.env.clock.now();
        match event {
            Event::Acked(reply) => self.take_reply(reply),
            Event::Wrote(wrote) => wrote.map_err(End::Io),
            Event::Read(read) => match read? {
                0 => Err(End::PeerClosed),
                _ => Ok(()),
            },
            Event::Stop => {
                self.stopping = true;
                Ok(())
            }
            Event::Called(_) | Event::Timer => Ok(()),
        }
    }

    fn take_reply(&mut self, reply: Reply) -> Result<(), End> {
        match reply {
            Reply::Frame { head, rest, throttle } => {
                self.outbound.push(Piece::Bytes(head));
                rest.into_iter().for_each(|piece| self.outbound.push(piece));
                if !throttle.is_zero() {
                    self.muted_until = Some(self.shared.env.clock.now() + throttle);
                }
                Ok(())
            }
            Reply::Silent => Ok(()),
            Reply::Close(reason) => Err(reason.into()),
        }
    }

    fn timer_fired(&mut self) -> Result<(), End> {
        let now = self.shared.env.clock.now();
        let idle_at = self.last_active + self.shared.limits.idle;
        if now >= idle_at && self.acks.is_empty() && !self.muted() {
            return Err(End::Idle);
        }
        self.arm_timer(if now >= idle_at { now + self.shared.limits.idle } else { idle_at });
        Ok(())
    }

    fn arm_timer(&mut self, at: Instant) {
        self.timer = timer_at(&self.shared, at.max(self.shared.env.clock.now() + MIN_WAIT));
    }
}

/// No timer is armed for less, so that a wait always yields.
const MIN_WAIT: Duration = Duration::from_millis(1);

fn timer_at(shared: &Shared, at: Instant) -> BoxedTimer {
    let clock = shared.env.clock.clone();
    Box::pin(async move { clock.sleep_until(at).await })
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
