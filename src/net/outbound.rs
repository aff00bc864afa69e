//! Finished answers of one wake-up, written together.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::AsyncWrite;

/// Slices given to one vectored write (well below the system's limit of 1 024).
const SLICES_MAX: usize = 64;

/// Whole frames on their way out, in order.
#[derive(Debug, Default)]
pub struct Outbound {
    frames: VecDeque<Bytes>,
    bytes: usize,
}

impl Outbound {
    pub fn push(&mut self, frame: Bytes) {
        self.bytes += frame.len();
        self.frames.push_back(frame);
    }

    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Bytes not written yet.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes what the peer takes now; `Ready` once something was written or all is out.
    ///
    /// # Errors
    /// What the system says, `WriteZero` when the peer takes nothing any more.
    pub fn poll_write(
        &mut self,
        stream: &mut (impl AsyncWrite + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if self.frames.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let count = self.frames.len().min(SLICES_MAX);
        for (slice, frame) in slices.iter_mut().zip(&self.frames) {
            *slice = IoSlice::new(frame);
        }
        let written = ready!(Pin::new(stream).poll_write_vectored(cx, &slices[..count]))?;
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.advance(written);
        Poll::Ready(Ok(()))
    }

    fn advance(&mut self, mut written: usize) {
        self.bytes -= written;
        while let Some(front) = self.frames.front_mut() {
            if written < front.len() {
                front.advance(written);
                return;
            }
            written -= front.len();
            self.frames.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn frames_leave_whole_and_in_order_through_a_narrow_pipe() {
        let (mut ours, mut theirs) = tokio::io::duplex(5);
        let mut outbound = Outbound::default();
        let frames: Vec<Bytes> = (0..200u8).map(|n| Bytes::from(vec![n; n as usize % 7])).collect();
        for frame in frames.iter().filter(|frame| !frame.is_empty()) {
            outbound.push(frame.clone());
        }
        let write = async {
            while !outbound.is_empty() {
                std::future::poll_fn(|cx| outbound.poll_write(&mut ours, cx))
                    .await
                    .expect("open pipe");
            }
            drop(ours);
            outbound.bytes()
        };
        let mut got = Vec::new();
        let (left, read) = tokio::join!(write, theirs.read_to_end(&mut got));
        assert_eq!((left, read.expect("closed pipe")), (0, got.len()));
        assert_eq!(got, frames.concat());
    }
}
