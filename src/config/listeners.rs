//! `listeners`, `advertised.listeners` and their kin: parsed, and checked by Kafka's rules.

use std::fmt;
use std::net::IpAddr;

use super::broker::NodeKeys;
use super::error::ConfigError;

/// How bytes on a listener are protected; the number is Kafka's, as in registration records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i16)]
pub enum SecurityProtocol {
    Plaintext = 0,
    Ssl = 1,
    SaslPlaintext = 2,
    SaslSsl = 3,
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
    /// Empty: every address (to bind), or the machine's name (to advertise).
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
    /// For clients and brokers, in the order written; at least one.
    pub client: Vec<EndPoint>,
    /// For controllers, in the order written; may be none on a node that is its own quorum.
    pub controller: Vec<EndPoint>,
    /// What clients are told, by name, for some or all of the client listeners; host and port may
    /// be still to be filled in (see [`Listeners::advertised_for`]).
    pub advertised: Vec<EndPoint>,
    /// What is told of each controller listener: itself, if nothing else is written.
    pub controller_advertised: Vec<EndPoint>,
    /// Name of the advertised listener that brokers use.
    pub inter_broker: String,
}

impl Listeners {
    /// Parses and checks.
    /// - `map_is_set`: whether `listener.security.protocol.map` was written by someone; if not,
    ///   controller listeners are plaintext, as long as no other protocol is in use.
    ///
    /// # Errors
    /// [`ConfigError::Rule`] with Kafka's text.
    pub(super) fn of(node: &NodeKeys, map_is_set: bool) -> Result<Self, ConfigError> {
        let mut protocols = protocol_map(&node.listener_security_protocol_map)?;
        if !map_is_set && node.listeners.iter().all(|text| is_plaintext_or(text, node)) {
            let names = node.controller_listener_names.iter().map(|name| name.to_uppercase());
            protocols.extend(names.map(|name| (name, SecurityProtocol::Plaintext)));
        }
        let all = parse_all(&node.listeners, &protocols)?;
        check_ports(&node.listeners, &all)?;
        let (controller, client): (Vec<_>, Vec<_>) =
            all.iter().cloned().partition(|endpoint| is_controller(&endpoint.name, node));
        let advertised = match &node.advertised_listeners {
            Some(written) => parse_all(written, &protocols)?,
            None => client.clone(),
        };
        let (told, advertised): (Vec<_>, Vec<_>) =
            advertised.into_iter().partition(|one| is_controller(&one.name, node));
        let told =
            |own: &EndPoint| told.iter().find(|one| one.name == own.name).unwrap_or(own).clone();
        let controller_advertised = controller.iter().map(told).collect();
        let inter_broker = match &node.inter_broker_listener_name {
            Some(name) => name.to_uppercase(),
            None => node.security_inter_broker_protocol.clone(),
        };
        check_inter_broker(node, &protocols, &inter_broker)?;
        let listeners =
            Self { client, controller, advertised, controller_advertised, inter_broker };
        listeners.check_protocols()?;
        listeners.check_advertised(&all)?;
        Ok(listeners)
    }

    /// What is told of listener `name` once it is bound to `port`.
    /// - `own_host`: the machine's name, for a listener on every address that has no advertised
    ///   host.
    pub fn advertised_for(&self, name: &str, port: u16, own_host: &str) -> Option<(String, u16)> {
        let mut told = self.advertised.iter().chain(&self.controller_advertised);
        let endpoint = told.find(|endpoint| endpoint.name == name)?;
        let host = if endpoint.host.is_empty() { own_host } else { &endpoint.host };
        let port = if endpoint.port == 0 { port } else { endpoint.port };
        Some((host.to_owned(), port))
    }

    fn check_advertised(&self, all: &[EndPoint]) -> Result<(), ConfigError> {
        let names = |endpoints: &[EndPoint]| {
            endpoints.iter().map(|endpoint| endpoint.name.as_str()).collect::<Vec<_>>().join(",")
        };
        if self.advertised.is_empty() {
            return Err(ConfigError::rule(
                "There must be at least one broker advertised listener. Perhaps all listeners \
                 appear in controller.listener.names?",
            ));
        }
        if !self.advertised.iter().any(|endpoint| endpoint.name == self.inter_broker) {
            return Err(ConfigError::rule_with_hint(
                format!(
                    "inter.broker.listener.name must be a listener name defined in \
                     advertised.listeners. The valid options based on currently configured \
                     listeners are {}",
                    names(&self.advertised)
                ),
                format!("set `inter.broker.listener.name={}`", self.advertised[0].name),
            ));
        }
        let unknown = |endpoint: &EndPoint| all.iter().all(|known| known.name != endpoint.name);
        if self.advertised.iter().any(unknown) {
            return Err(ConfigError::rule(format!(
                "advertised.listeners listener names must be equal to or a subset of the ones \
                 defined in listeners. Found {}. The valid options based on the current \
                 configuration are {}",
                names(&self.advertised),
                names(all)
            )));
        }
        for endpoint in &self.advertised {
            if endpoint.host.parse().is_ok_and(|address: IpAddr| address.is_unspecified()) {
                let (name, port) = (&endpoint.name, endpoint.port);
                return Err(ConfigError::rule_with_hint(
                    format!(
                        "advertised.listeners cannot use the nonroutable meta-address {}. Use a \
                         routable IP address.",
                        endpoint.host
                    ),
                    format!(
                        "set `advertised.listeners` to what clients can reach, such as \
                         {name}://localhost:{port}"
                    ),
                ));
            }
        }
        Ok(())
    }

    fn check_protocols(&self) -> Result<(), ConfigError> {
        let all = self.client.iter().chain(&self.controller);
        match all.into_iter().find(|one| one.protocol != SecurityProtocol::Plaintext) {
            Some(endpoint) => Err(ConfigError::rule_with_hint(
                format!("listener {endpoint}: {} is not built yet", endpoint.protocol.as_str()),
                "listeners of this version are PLAINTEXT",
            )),
            None => Ok(()),
        }
    }
}

fn is_controller(name: &str, node: &NodeKeys) -> bool {
    node.controller_listener_names.iter().any(|one| one.eq_ignore_ascii_case(name))
}

fn is_plaintext_or(text: &str, node: &NodeKeys) -> bool {
    let name = text.split("://").next().unwrap_or(text);
    name.eq_ignore_ascii_case("PLAINTEXT") || is_controller(name, node)
}

fn check_inter_broker(
    node: &NodeKeys,
    protocols: &Protocols,
    inter_broker: &str,
) -> Result<(), ConfigError> {
    if node.inter_broker_listener_name.is_some()
        && !protocols.iter().any(|(name, _)| name == inter_broker)
    {
        return Err(ConfigError::rule(format!(
            "Listener with name {inter_broker} defined in inter.broker.listener.name not found \
             in listener.security.protocol.map."
        )));
    }
    Ok(())
}

type Protocols = Vec<(String, SecurityProtocol)>;

fn protocol_map(text: &str) -> Result<Protocols, ConfigError> {
    let mut protocols = Protocols::new();
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let (name, word) = entry.rsplit_once(':').ok_or_else(|| {
            ConfigError::rule_with_hint(
                format!(
                    "Error parsing configuration property 'listener.security.protocol.map': \
                     `{entry}` has no protocol"
                ),
                format!("write `{entry}:PLAINTEXT`"),
            )
        })?;
        let protocol = SecurityProtocol::of(word.trim()).ok_or_else(|| {
            ConfigError::rule_with_hint(
                format!(
                    "Invalid security protocol `{}` defined in listener.security.protocol.map",
                    word.trim()
                ),
                "PLAINTEXT, SSL, SASL_PLAINTEXT and SASL_SSL are security protocols",
            )
        })?;
        protocols.push((name.trim().to_uppercase(), protocol));
    }
    Ok(protocols)
}

fn creating(written: &[String], reason: &str) -> String {
    format!("Error creating broker listeners from '[{}]': {reason}", written.join(", "))
}

fn parse_all(written: &[String], protocols: &Protocols) -> Result<Vec<EndPoint>, ConfigError> {
    let mut endpoints: Vec<EndPoint> = Vec::new();
    for text in written {
        let endpoint = parse(written, text, protocols)?;
        if endpoints.iter().any(|other| other.name == endpoint.name) {
            let list = written.join(", ");
            let reason = format!("Each listener must have a different name, listeners: [{list}]");
            return Err(ConfigError::rule(creating(written, &reason)));
        }
        endpoints.push(endpoint);
    }
    Ok(endpoints)
}

fn parse(written: &[String], text: &str, protocols: &Protocols) -> Result<EndPoint, ConfigError> {
    let wrong = || {
        ConfigError::rule_with_hint(
            creating(written, &format!("Unable to parse {text} to a broker endpoint")),
            "write NAME://host:port, such as PLAINTEXT://localhost:9092",
        )
    };
    let (name, address) = text.split_once("://").ok_or_else(wrong)?;
    let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = bracketed.unwrap_or(host);
    let is_host_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte) || byte == b'%';
    let is_host = host.bytes().all(|byte| is_host_byte(byte) || byte == b':');
    let port: u16 = port.parse().map_err(|_| wrong())?;
    if name.is_empty() || !is_host {
        return Err(wrong());
    }
    let name = name.to_uppercase();
    let protocol = protocols.iter().find(|(known, _)| *known == name).map(|(_, p)| *p);
    let protocol = protocol.ok_or_else(|| {
        ConfigError::rule_with_hint(
            creating(written, &format!("No security protocol defined for listener {name}")),
            format!("add `{name}:PLAINTEXT` to `listener.security.protocol.map`"),
        )
    })?;
    Ok(EndPoint { name, host: host.to_owned(), port, protocol })
}

/// Two listeners may share a port only when one is on an IPv4 and one on an IPv6 address.
fn check_ports(written: &[String], all: &[EndPoint]) -> Result<(), ConfigError> {
    let list = written.join(", ");
    for (at, one) in all.iter().enumerate() {
        let same: Vec<_> =
            all[at..].iter().filter(|other| other.port == one.port && one.port != 0).collect();
        let addresses: Vec<IpAddr> =
            same.iter().filter_map(|endpoint| endpoint.host.parse().ok()).collect();
        let reason = match (same.as_slice(), addresses.as_slice()) {
            ([] | [_], _) => continue,
            ([_, _], [a, b]) if a.is_ipv4() != b.is_ipv4() => continue,
            (_, []) => format!("Each listener must have a different port, listeners: [{list}]"),
            _ => format!(
                "If you have two listeners on the same port then one needs to be IPv4 and the \
                 other IPv6, listeners: [{list}], port: {}",
                one.port
            ),
        };
        return Err(ConfigError::rule(creating(written, &reason)));
    }
    Ok(())
}
