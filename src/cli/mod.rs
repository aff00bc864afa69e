//! (room to be built)
