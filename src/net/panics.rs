//! A panic in request handling ends that request, not the process.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;

/// Runs a future, which stays where it is, and turns its panic into an error with the panic's
/// message. State behind locks that the panic passed is poisoned, and a poisoned partition or
/// machine lock stops the process.
pub async fn catch_panic<F: Future>(mut work: Pin<&mut F>) -> Result<F::Output, String> {
    poll_fn(move |cx| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
        Ok(polled) => polled.map(Ok),
        Err(panic) => std::task::Poll::Ready(Err(message(panic.as_ref()))),
    })
    .await
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "?".to_owned())
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_its_message() {
        assert_eq!(catch_panic(pin!(async { 7 })).await, Ok(7));
        let shattered = pin!(async { panic!("broken {}", 1) });
        assert_eq!(catch_panic(shattered).await, Err::<(), _>("broken 1".to_owned()));
    }
}
