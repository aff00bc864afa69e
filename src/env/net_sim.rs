//! A simulated network: ports of one machine, and in-memory streams between what listens there
//! and what connects. Nothing is lost or reordered; a node that dies takes its streams with it.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use super::net::Stream;

/// Bytes that a stream holds each way.
const STREAM_BYTES: usize = 1 << 16;
const FIRST_FREE_PORT: u16 = 32_768;

type Calls = mpsc::UnboundedSender<(Stream, SocketAddr)>;

/// The machine's ports. Cloning shares them.
#[derive(Clone, Default)]
pub struct SimNet(Arc<Mutex<Ports>>);

#[derive(Default)]
struct Ports {
    /// `None`: taken, not open.
    taken: BTreeMap<u16, Option<Calls>>,
    /// Ports given to clients so far.
    connected: u16,
}

impl SimNet {
    /// Every host is this machine, unless it is written as an address.
    pub(super) fn address(host: &str, port: u16) -> SocketAddr {
        SocketAddr::new(host.parse().unwrap_or(Ipv4Addr::LOCALHOST.into()), port)
    }

    pub(super) fn bind(&self, mut address: SocketAddr) -> io::Result<SimBound> {
        let mut ports = self.ports();
        if address.port() == 0 {
            let free = (FIRST_FREE_PORT..).find(|port| !ports.taken.contains_key(port));
            address.set_port(free.ok_or(io::ErrorKind::AddrInUse)?);
        }
        if ports.taken.contains_key(&address.port()) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        ports.taken.insert(address.port(), None);
        Ok(SimBound { net: self.clone(), address })
    }

    pub(super) fn connect(&self, address: &str) -> io::Result<Stream> {
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let port: u16 = port.ok_or(io::ErrorKind::InvalidInput)?;
        let mut ports = self.ports();
        let own_port = ports.connected.wrapping_add(1);
        let Some(Some(calls)) = ports.taken.get(&port) else {
            return Err(io::ErrorKind::ConnectionRefused.into());
        };
        let (near, far) = Stream::pair(STREAM_BYTES);
        let peer = Self::address("", own_port);
        calls.send((far, peer)).map_err(|_| io::ErrorKind::ConnectionRefused)?;
        ports.connected = own_port;
        Ok(near)
    }

    fn ports(&self) -> MutexGuard<'_, Ports> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A taken port; given back when dropped.
pub struct SimBound {
    net: SimNet,
    address: SocketAddr,
}

impl SimBound {
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn listen(self) -> SimListener {
        let (sender, calls) = mpsc::unbounded_channel();
        self.net.ports().taken.insert(self.address.port(), Some(sender));
        SimListener { bound: self, calls: tokio::sync::Mutex::new(calls) }
    }
}

impl Drop for SimBound {
    fn drop(&mut self) {
        self.net.ports().taken.remove(&self.address.port());
    }
}

/// An open port.
pub struct SimListener {
    bound: SimBound,
    calls: tokio::sync::Mutex<mpsc::UnboundedReceiver<(Stream, SocketAddr)>>,
}

impl SimListener {
    pub(super) fn address(&self) -> SocketAddr {
        self.bound.address
    }

    pub(super) async fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
        let call = self.calls.lock().await.recv().await;
        // The sender stays among the ports for as long as the listener lives.
        call.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use crate::env::{Net, SimNet};

    #[tokio::test]
    async fn a_port_is_taken_then_open_then_free_again() {
        let net = Net::Sim(SimNet::default());
        let bound = net.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = bound.local_addr().unwrap();
        assert!(net.bind(address).is_err(), "taken");
        assert!(net.connect(&address.to_string()).await.is_err(), "not open");
        let listener = bound.listen().unwrap();
        let mut near = net.connect(&address.to_string()).await.unwrap();
        let (mut far, _) = listener.accept().await.unwrap();
        near.write_all(b"x").await.unwrap();
        assert_eq!(far.read_u8().await.unwrap(), b'x');
        drop(far);
        assert_eq!(near.read(&mut [0]).await.unwrap(), 0, "closed by the peer");
        drop(listener);
        assert!(net.connect(&address.to_string()).await.is_err(), "closed");
        assert!(net.bind(address).is_ok(), "free");
    }
}
