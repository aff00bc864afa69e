//! Behaviours of the group coordinator, asked of the machine without sockets and sleeps.

mod bench;
mod cluster;
mod consumers;
mod coordinator;
mod offsets;
mod rebalance;
mod sim;
mod states;
mod statics;
