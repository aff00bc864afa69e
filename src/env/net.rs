//! The network door: a listener in two steps (bind, then listen) and a byte stream.
//! The simulated side is in `net_sim.rs`.

use std::io::{self, IoSlice};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::fs::sendfile;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, Interest, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

use super::FileSlice;
use super::net_sim::{SimBound, SimListener, SimNet};

/// How sockets are made.
#[derive(Clone)]
pub enum Net {
    Real {
        /// Accept queue of each listener (`socket.listen.backlog.size`).
        backlog: u32,
    },
    /// In-memory streams ([`Stream::pair`]) between the nodes and clients that share it.
    Sim(SimNet),
}

impl Default for Net {
    fn default() -> Self {
        Self::Real { backlog: 0 }
    }
}

/// An address that is taken but does not accept yet: the port is known, clients are refused.
pub enum Bound {
    Real { socket: Socket, backlog: u32 },
    Sim(SimBound),
}

impl Net {
    /// Takes `address` (port 0: a free one).
    ///
    /// # Errors
    /// What the system says, `AddrInUse` above all.
    pub fn bind(&self, address: SocketAddr) -> io::Result<Bound> {
        let backlog = match self {
            Self::Real { backlog } => *backlog,
            Self::Sim(sim) => return sim.bind(address).map(Bound::Sim),
        };
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.set_nonblocking(true)?;
        Ok(Bound::Real { socket, backlog })
    }

    /// Connects to the first address of `host:port` that answers.
    ///
    /// # Errors
    /// What the system says of the last address tried.
    pub async fn connect(&self, address: &str) -> io::Result<Stream> {
        if let Self::Sim(sim) = self {
            return sim.connect(address);
        }
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Stream::Tcp(stream))
    }

    /// The addresses of `host`, with `port`.
    ///
    /// # Errors
    /// What the system's resolver says.
    pub fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        match self {
            Self::Real { .. } => (host, port).to_socket_addrs().map(Iterator::collect),
            Self::Sim(_) => Ok(vec![SimNet::address(host, port)]),
        }
    }

    /// The machine's own name.
    pub fn host_name(&self) -> String {
        match self {
            Self::Real { .. } => rustix::system::uname().nodename().to_string_lossy().into_owned(),
            Self::Sim(_) => "simulated".to_owned(),
        }
    }
}

impl Bound {
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let socket = match self {
            Self::Real { socket, .. } => socket,
            Self::Sim(bound) => return Ok(bound.address()),
        };
        socket.local_addr()?.as_socket().ok_or_else(|| io::Error::other("not an IP address"))
    }

    /// Opens the port; from here on a client that connects is served.
    ///
    /// # Errors
    /// What the system says: `AddrInUse` when another listener was faster.
    pub fn listen(self) -> io::Result<Listener> {
        match self {
            Self::Real { socket, backlog } => {
                socket.listen(backlog.min(i32::MAX as u32) as i32)?;
                TcpListener::from_std(socket.into()).map(Listener::Tcp)
            }
            Self::Sim(bound) => Ok(Listener::Sim(bound.listen())),
        }
    }
}

/// An open port.
pub enum Listener {
    Tcp(TcpListener),
    Sim(SimListener),
}

impl Listener {
    /// The next connection, with `TCP_NODELAY` set, and the peer's address.
    ///
    /// # Errors
    /// What the system says; `EMFILE` and the like pass, so the caller waits and goes on.
    pub async fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
        let listener = match self {
            Self::Tcp(listener) => listener,
            Self::Sim(listener) => return listener.accept().await,
        };
        let (stream, peer) = listener.accept().await?;
        stream.set_nodelay(true)?;
        Ok((Stream::Tcp(stream), peer))
    }

    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr(),
            Self::Sim(listener) => Ok(listener.address()),
        }
    }
}

/// A connection's bytes.
pub enum Stream {
    Tcp(TcpStream),
    Simulated(DuplexStream),
}

impl Stream {
    /// Two ends of an in-memory connection with `buffer` bytes each way.
    pub fn pair(buffer: usize) -> (Self, Self) {
        let (a, b) = tokio::io::duplex(buffer);
        (Self::Simulated(a), Self::Simulated(b))
    }

    /// As `poll_write_vectored`, for bytes that more follow: they need not leave at once.
    ///
    /// # Errors
    /// What the system says.
    pub fn poll_write_more(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let stream = match self {
            Self::Tcp(stream) => stream,
            Self::Simulated(stream) => return Pin::new(stream).poll_write_vectored(cx, slices),
        };
        poll_io(stream, cx, |fd| {
            let mut nothing = SendAncillaryBuffer::default();
            Ok(sendmsg(fd, slices, &mut nothing, SendFlags::MORE | SendFlags::NOSIGNAL)?)
        })
    }

    /// Sends what the peer takes now of `slice`, by `sendfile`.
    ///
    /// # Errors
    /// What the system says; `UnexpectedEof` when the file ends inside the slice.
    pub fn poll_send_file(
        &mut self,
        cx: &mut Context<'_>,
        slice: &FileSlice,
    ) -> Poll<io::Result<usize>> {
        let sent = match (self, slice.file.as_fd()) {
            (Self::Tcp(stream), Some(file)) => poll_io(stream, cx, |fd| {
                let mut position = slice.position;
                Ok(sendfile(fd, file, Some(&mut position), slice.size_bytes)?)
            }),
            (stream, _) => {
                let mut bytes = vec![0; slice.size_bytes.min(SIMULATED_SEND_BYTES)];
                slice.file.read_exact_at(&mut bytes, slice.position)?;
                Pin::new(stream).poll_write(cx, &bytes)
            }
        };
        match ready!(sent)? {
            0 => Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            count => Poll::Ready(Ok(count)),
        }
    }
}

/// Without `sendfile`: so much is read for one write.
const SIMULATED_SEND_BYTES: usize = 64 << 10;

/// Runs `io` while the socket can be written to.
fn poll_io(
    stream: &TcpStream,
    cx: &mut Context<'_>,
    io: impl Fn(BorrowedFd<'_>) -> io::Result<usize>,
) -> Poll<io::Result<usize>> {
    loop {
        ready!(stream.poll_write_ready(cx))?;
        match stream.try_io(Interest::WRITABLE, || io(stream.as_fd())) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return Poll::Ready(done),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Simulated(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Simulated(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Simulated(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Simulated(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Simulated(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
