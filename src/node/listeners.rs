//! The node's ports: taken first, so that they are known and registered, opened last.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use super::error::NodeError;
use crate::config::{BrokerConfig, EndPoint};
use crate::env::{Bound, Env};
use crate::metadata::Endpoint;
use crate::net::ListenerInfo;

/// A port that is taken but not open.
pub struct Taken {
    pub info: Arc<ListenerInfo>,
    /// One per address of the host's name: some clients try IPv6 first.
    pub bound: Vec<Bound>,
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

/// Takes `host:port` on every address of the name; an empty host is every address of the machine.
/// Port 0 is a free one, the same on all.
pub fn bind(host: &str, port: u16, env: &Env) -> Result<(Vec<Bound>, SocketAddr), NodeError> {
    let shown = format!("{}:{port}", if host.is_empty() { "0.0.0.0" } else { host });
    let wrong = |source| NodeError::Bind { address: shown.clone(), source };
    let (mut taken, mut first, mut failed) = (Vec::new(), None::<SocketAddr>, None);
    for mut address in resolve(host, port, env)? {
        address.set_port(first.map_or(port, |first| first.port()));
        match env.net.bind(address) {
            Ok(bound) => {
                first.get_or_insert(bound.local_addr().map_err(wrong)?);
                taken.push(bound);
            }
            // A machine without IPv6 still resolves names to it.
            Err(error) if error.kind() == ErrorKind::AddrNotAvailable => failed = Some(error),
            Err(error) => return Err(wrong(error)),
        }
    }
    match first {
        Some(first) => Ok((taken, first)),
        None => Err(wrong(failed.unwrap_or_else(|| ErrorKind::AddrNotAvailable.into()))),
    }
}

/// IPv4 first: that is what clients of a name without an IPv6 stack reach.
fn resolve(host: &str, port: u16, env: &Env) -> Result<Vec<SocketAddr>, NodeError> {
    if host.is_empty() {
        return Ok(vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))]);
    }
    let resolved = env.net.resolve(host, port);
    let mut addresses = resolved
        .map_err(|source| NodeError::Resolve { address: format!("{host}:{port}"), source })?;
    addresses.sort_by_key(SocketAddr::is_ipv6);
    addresses.dedup();
    Ok(addresses)
}

/// What is told of the listeners, by name.
pub struct Advertised {
    pub to_clients: Vec<Endpoint>,
    /// To those who ask the controllers.
    pub of_controllers: Vec<Endpoint>,
}

/// What is told of the listeners. The machine's own name is looked up once: that may take a while.
pub fn advertised(config: &BrokerConfig, taken: &[Taken], env: &Env) -> Advertised {
    let own_host = own_host(env);
    let endpoint = |listener: &Taken| {
        let port = listener.address.port();
        let (host, port) = config.listeners.advertised_for(&listener.info.name, port, &own_host)?;
        Some(Endpoint {
            name: listener.info.name.clone(),
            host: host.into(),
            port,
            security_protocol: listener.security_protocol,
        })
    };
    let of = |is_controller: bool| {
        let listeners = taken.iter().filter(|one| one.info.is_controller == is_controller);
        listeners.filter_map(endpoint).collect()
    };
    Advertised { to_clients: of(false), of_controllers: of(true) }
}

/// The machine's name, if the machine itself can resolve it.
fn own_host(env: &Env) -> String {
    let name = env.net.host_name();
    match env.net.resolve(&name, 0) {
        Ok(addresses) if !addresses.is_empty() => name,
        _ => "localhost".to_owned(),
    }
}
