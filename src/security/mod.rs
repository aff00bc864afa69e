//! Who is asking, and what they may do.
//! Lives here: [`Session`], the authentication of one connection as a state machine without I/O;
//! [`Access`], what a request touches; the [`Authorizer`], which says what of it is allowed.
//! May not live here: sockets, Kafka error codes, where rules are stored.
//! So far every session is anonymous and everything is allowed; the shapes are those that TLS,
//! SASL and ACLs will fill, so that nothing above has to change.

mod access;
mod session;

pub use access::{Access, Allowed, Authorizer, Operation, Resource};
pub use session::{Principal, Session};
