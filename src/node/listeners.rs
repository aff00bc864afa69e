//! The node's ports: taken first, so that they are known and registered, opened last.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use super::error::NodeError;
use crate::config::{BrokerConfig, EndPoint};
use crate::env::{Bound, Env};
use crate::metadata::Endpoint;
use crate::net::ListenerInfo;

/// A port that is taken but not open.
pub struct Taken {
    pub info: Arc<ListenerInfo>,
    pub bound: Bound,
    pub address: SocketAddr,
    security_protocol: i16,
}

/// Takes the ports of all listeners, the clients' first.
pub fn take(config: &BrokerConfig, env: &Env) -> Result<Vec<Taken>, NodeError> {
    let listeners = &config.listeners;
    let clients = listeners.client.iter().map(|endpoint| (endpoint, false));
    let controllers = listeners.controller.iter().map(|endpoint| (endpoint, true));
    clients
        .chain(controllers)
        .map(|(endpoint, is_controller)| one(endpoint, is_controller, env))
        .collect()
}

fn one(endpoint: &EndPoint, is_controller: bool, env: &Env) -> Result<Taken, NodeError> {
    let (bound, address) = bind(&endpoint.host, endpoint.port, env)?;
    let info = ListenerInfo { name: endpoint.name.as_str().into(), is_controller };
    let security_protocol = endpoint.protocol as i16;
    Ok(Taken { info: Arc::new(info), bound, address, security_protocol })
}

/// Takes `host:port`; an empty host is every address of the machine.
pub fn bind(host: &str, port: u16, env: &Env) -> Result<(Bound, SocketAddr), NodeError> {
    let shown = format!("{}:{port}", if host.is_empty() { "0.0.0.0" } else { host });
    let wrong = |source| NodeError::Bind { address: shown.clone(), source };
    let mut last = None;
    for address in resolve(host, port)? {
        match env.net.bind(address) {
            Ok(bound) => {
                let address = bound.local_addr().map_err(wrong)?;
                return Ok((bound, address));
            }
            Err(error) => last = Some(error),
        }
    }
    Err(wrong(last.unwrap_or_else(|| std::io::ErrorKind::AddrNotAvailable.into())))
}

/// IPv4 first: that is what clients of a name without an IPv6 stack reach.
fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, NodeError> {
    if host.is_empty() {
        return Ok(vec![SocketAddr::from(([0, 0, 0, 0], port))]);
    }
    let resolved = (host, port).to_socket_addrs();
    let resolved = resolved
        .map_err(|source| NodeError::Resolve { address: format!("{host}:{port}"), source })?;
    let mut addresses: Vec<SocketAddr> = resolved.collect();
    addresses.sort_by_key(SocketAddr::is_ipv6);
    Ok(addresses)
}

/// What clients are told of the listeners, by name.
pub fn advertised(config: &BrokerConfig, taken: &[Taken]) -> Vec<Endpoint> {
    let own_host = own_host();
    let endpoints = taken.iter().filter(|listener| !listener.info.is_controller);
    let endpoints = endpoints.filter_map(|listener| {
        let port = listener.address.port();
        let (host, port) = config.listeners.advertised_for(&listener.info.name, port, &own_host)?;
        Some(Endpoint {
            name: listener.info.name.clone(),
            host: host.into(),
            port,
            security_protocol: listener.security_protocol,
        })
    });
    endpoints.collect()
}

/// The machine's name, if the machine itself can resolve it.
fn own_host() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    match (name.as_str(), 0).to_socket_addrs() {
        Ok(addresses) if !addresses.as_slice().is_empty() => name,
        _ => "localhost".to_owned(),
    }
}
