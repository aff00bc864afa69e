//! The coordinators, each a `Machine` over a led partition.

pub mod group;
pub mod txn;
