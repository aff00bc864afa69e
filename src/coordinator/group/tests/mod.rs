//! Behaviours of the group coordinator, asked of the machine without sockets and sleeps.

mod bench;
mod consumers;
mod coordinator;
mod offsets;
mod rebalance;
mod states;
mod statics;
