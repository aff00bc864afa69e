//! The authentication of one connection.

use std::fmt;
use std::sync::Arc;

/// A name that rights are given to, written `User:alice`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal {
    /// `User`, for everyone whom Kafka itself authenticates.
    pub kind: Arc<str>,
    pub name: Arc<str>,
}

impl Principal {
    /// Who has not shown who they are.
    pub fn anonymous() -> Self {
        Self { kind: "User".into(), name: "ANONYMOUS".into() }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.name)
    }
}

/// Owned by its connection, from the first byte to the last.
#[derive(Debug, Clone)]
pub struct Session {
    listener: Arc<str>,
    state: State,
}

/// The states after which requests are served; those before it (TLS, SASL) come with security.
#[derive(Debug, Clone)]
enum State {
    Anonymous(Principal),
}

impl Session {
    /// A connection on a plaintext listener: ready at once.
    pub fn anonymous(listener: impl Into<Arc<str>>) -> Self {
        Self { listener: listener.into(), state: State::Anonymous(Principal::anonymous()) }
    }

    /// Name of the listener that the connection came in by.
    pub fn listener(&self) -> &Arc<str> {
        &self.listener
    }

    pub fn principal(&self) -> &Principal {
        match &self.state {
            State::Anonymous(principal) => principal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plaintext_session_is_anonymous_and_knows_its_listener() {
        let session = Session::anonymous("INSIDE");
        assert_eq!(session.principal().to_string(), "User:ANONYMOUS");
        assert_eq!(&**session.listener(), "INSIDE");
    }
}
