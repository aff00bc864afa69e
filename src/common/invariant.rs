//! `invariant!`: our own mistakes stop the process by name, before they reach the disk.

/// Stops the process when `condition` does not hold: recovery is fast and tested, a broken
/// invariant carried on is not. In tests it panics. A client's bytes must never reach one.
#[macro_export]
macro_rules! invariant {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            $crate::common::broken_invariant(
                concat!(file!(), ":", line!()),
                stringify!($condition),
                &format!($($message)+),
            );
        }
    };
}

/// What [`invariant!`](crate::invariant) calls; not for direct use.
#[cold]
pub fn broken_invariant(at: &str, condition: &str, message: &str) -> ! {
    tracing::error!(at, condition, message, "invariant broken, stopping");
    if cfg!(test) {
        panic!("{at}: invariant `{condition}` broken: {message}");
    }
    std::process::abort()
}
