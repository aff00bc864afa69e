//! (room to be built)
pub mod batch;
