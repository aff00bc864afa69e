//! `listeners`, `advertised.listeners` and their kin: parsed, and checked by Kafka's rules.

use std::fmt;

use super::broker::NodeKeys;
use super::error::ConfigError;

/// How bytes on a listener are protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecurityProtocol {
    Plaintext,
    Ssl,
    SaslPlaintext,
    SaslSsl,
}

impl SecurityProtocol {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plaintext => "PLAINTEXT",
            Self::Ssl => "SSL",
            Self::SaslPlaintext => "SASL_PLAINTEXT",
            Self::SaslSsl => "SASL_SSL",
        }
    }

    fn of(word: &str) -> Option<Self> {
        let all = [Self::Plaintext, Self::Ssl, Self::SaslPlaintext, Self::SaslSsl];
        all.into_iter().find(|protocol| protocol.as_str().eq_ignore_ascii_case(word))
    }
}

/// One listener's address, to bind or to tell clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndPoint {
    /// Upper case, as Kafka normalizes it.
    pub name: String,
    /// Empty: every address (to bind), or not known yet (to advertise).
    pub host: String,
    /// 0: a free one.
    pub port: u16,
    pub protocol: SecurityProtocol,
}

impl fmt::Display for EndPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "{}://[{}]:{}", self.name, self.host, self.port)
        } else {
            write!(f, "{}://{}:{}", self.name, self.host, self.port)
        }
    }
}

/// The listeners of the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listeners {
    /// For clients and brokers, in the order written.
    pub client: Vec<EndPoint>,
    /// For controllers, in the order of `controller.listener.names`.
    pub controller: Vec<EndPoint>,
    /// What clients are told, one per client listener and in that order; host and port may be
    /// still to be filled in (see [`Listeners::advertised_for`]).
    pub advertised: Vec<EndPoint>,
    /// Name of the client listener that brokers use.
    pub inter_broker: String,
}

impl Listeners {
    /// Parses and checks.
    ///
    /// # Errors
    /// [`ConfigError::Rule`] with Kafka's text.
    pub(super) fn of(node: &NodeKeys) -> Result<Self, ConfigError> {
        let protocols = protocol_map(&node.listener_security_protocol_map)?;
        let all = parse_all(&node.listeners, &protocols, "listeners")?;
        let is_controller = |endpoint: &EndPoint| {
            node.controller_listener_names.iter().any(|n| n.eq_ignore_ascii_case(&endpoint.name))
        };
        let (controller, client): (Vec<_>, Vec<_>) = all.into_iter().partition(is_controller);
        let advertised = match &node.advertised_listeners {
            Some(written) => {
                let mut all = parse_all(written, &protocols, "advertised.listeners")?;
                all.retain(|endpoint| !is_controller(endpoint));
                all
            }
            None => client.clone(),
        };
        let inter_broker = match &node.inter_broker_listener_name {
            Some(name) => name.to_uppercase(),
            None => node.security_inter_broker_protocol.clone(),
        };
        Ok(Self { client, controller, advertised, inter_broker })
    }

    /// What clients of listener `name` are told once it is bound to `port`.
    /// - `own_host`: the machine's name, for a listener on every address without an advertised
    ///   one.
    pub fn advertised_for(&self, name: &str, port: u16, own_host: &str) -> Option<(String, u16)> {
        let endpoint = self.advertised.iter().find(|endpoint| endpoint.name == name)?;
        let host = if endpoint.host.is_empty() { own_host } else { &endpoint.host };
        let port = if endpoint.port == 0 { port } else { endpoint.port };
        Some((host.to_owned(), port))
    }
}

type Protocols = Vec<(String, SecurityProtocol)>;

fn protocol_map(text: &str) -> Result<Protocols, ConfigError> {
    let mut protocols = Protocols::new();
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let (name, word) = entry.split_once(':').unwrap_or((entry, ""));
        let protocol = SecurityProtocol::of(word.trim()).ok_or_else(|| {
            let reason = format!("No enum constant for security protocol {word}");
            ConfigError::value("listener.security.protocol.map", text, reason)
        })?;
        protocols.push((name.trim().to_uppercase(), protocol));
    }
    Ok(protocols)
}

fn parse_all(
    written: &[String],
    protocols: &Protocols,
    key: &str,
) -> Result<Vec<EndPoint>, ConfigError> {
    written.iter().map(|text| parse(text, protocols, key)).collect()
}

fn parse(text: &str, protocols: &Protocols, key: &str) -> Result<EndPoint, ConfigError> {
    let wrong = || ConfigError::value(key, text, "Unable to parse to an endpoint");
    let (name, address) = text.split_once("://").ok_or_else(wrong)?;
    let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let port = port.parse().map_err(|_| wrong())?;
    let name = name.to_uppercase();
    let protocol = protocols.iter().find(|(known, _)| *known == name).map(|(_, p)| *p);
    let protocol = protocol.ok_or_else(|| {
        ConfigError::rule(format!(
            "No security protocol defined for listener {name} in listener.security.protocol.map"
        ))
    })?;
    Ok(EndPoint { name, host: host.to_owned(), port, protocol })
}
