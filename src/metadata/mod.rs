//! The cluster's metadata as one immutable value, and its way to whoever lives by it.
//! Lives here: [`Image`] (brokers, topics, configs, features), how each record changes it,
//! [`Delta`] (what differs between two images), and [`Publisher`], which applies committed
//! records and tells its subscribers in one fixed order.
//! May not live here: who may change what (`controller` decides), where the records are kept
//! (`quorum`), what a broker does when they change (the subscribers).
//! Invariant: `apply` of an image's own records to an empty image gives that image again.

mod apply;
mod delta;
mod image;
mod publisher;
mod record;
#[cfg(test)]
mod tests;

pub use delta::{Delta, PartitionChange};
pub use image::{
    Broker, ConfigKind, ConfigResource, Configs, Endpoint, FeatureRange, Image, Partition, Topic,
    Topics, is_internal,
};
pub use publisher::{PublishError, Publisher, Subscriber};
