//! Framing: a buffer that grows with what has arrived, never with what a length field claims.

use std::future::Future;
use std::io;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Space asked for a first read, and for each step of a growing frame. A connection whose reads
/// fill it gets twice as much the next time, so that few calls fetch what a busy client sends;
/// at most as much as malloc still takes from its heap instead of mapping it anew each time.
const STEP_BYTES: usize = 16 << 10;
const STEP_BYTES_MAX: usize = 120 << 10;
/// A buffer above this is given back when nothing is left in it.
const KEEP_BYTES: usize = 64 << 10;
const SIZE_FIELD_BYTES: usize = 4;

/// A length field that no Kafka client would send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("frame size {0} is not positive")]
    NotPositive(i32),
    #[error("frame size {size} is over socket.request.max.bytes ({max})")]
    TooLarge { size: i32, max: i32 },
}

/// Received bytes of one connection.
#[derive(Debug)]
pub struct FrameBuffer {
    bytes: BytesMut,
    step_bytes: usize,
}

impl Default for FrameBuffer {
    fn default() -> Self {
        Self { bytes: BytesMut::new(), step_bytes: STEP_BYTES }
    }
}

impl FrameBuffer {
    /// Reads once; `Ready(0)` when the peer has closed its side.
    ///
    /// # Errors
    /// What the system says.
    pub fn poll_read(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let space = self.space();
        let free = space.capacity() - space.len();
        let read = std::pin::pin!(stream.read_buf(space));
        let read = ready!(read.poll(cx))?;
        self.fit_step(free, read);
        Poll::Ready(Ok(read))
    }

    /// The next step, after `read` bytes of `free` space were filled.
    fn fit_step(&mut self, free: usize, read: usize) {
        if read == free {
            self.step_bytes = (2 * self.step_bytes).min(STEP_BYTES_MAX);
        } else if read < self.step_bytes / 4 {
            self.step_bytes = (self.step_bytes / 2).max(STEP_BYTES);
        }
    }

    /// The size that the frame at the front claims, once its size field is there.
    pub fn claimed_bytes(&self) -> Option<i32> {
        let size = self.bytes.get(..SIZE_FIELD_BYTES)?;
        Some(i32::from_be_bytes([size[0], size[1], size[2], size[3]]))
    }

    /// Where the next read goes: at least a quarter of a step free, at most a step more than is
    /// there, or twice of that.
    fn space(&mut self) -> &mut BytesMut {
        if self.bytes.capacity() - self.bytes.len() < self.step_bytes / 4 {
            self.bytes.reserve(self.step_bytes.max(self.bytes.len()));
        }
        &mut self.bytes
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Gives memory back once nothing is buffered: an idle connection keeps no buffer.
    pub fn release(&mut self) {
        if self.is_empty() {
            self.bytes = BytesMut::new();
        }
    }

    /// The next complete frame without its size field, or `None` until more has arrived.
    ///
    /// # Errors
    /// [`FrameError`] as soon as the size field is there; nothing after it can be trusted.
    pub fn next_frame(&mut self, max_bytes: i32) -> Result<Option<Bytes>, FrameError> {
        let Some(size) = self.claimed_bytes() else { return Ok(None) };
        if size <= 0 {
            return Err(FrameError::NotPositive(size));
        }
        if size > max_bytes {
            return Err(FrameError::TooLarge { size, max: max_bytes });
        }
        let whole = SIZE_FIELD_BYTES + size as usize;
        if self.bytes.len() < whole {
            return Ok(None);
        }
        self.bytes.advance(SIZE_FIELD_BYTES);
        let frame = self.bytes.split_to(size as usize).freeze();
        if self.bytes.is_empty() && self.bytes.capacity() > KEEP_BYTES {
            self.bytes = BytesMut::new();
        }
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BufMut;

    fn buffer_of(bytes: &[u8]) -> FrameBuffer {
        let mut buffer = FrameBuffer::default();
        for chunk in bytes.chunks(3) {
            buffer.space().put_slice(chunk);
        }
        buffer
    }

    #[test]
    fn frames_come_out_whole_and_in_order() {
        let mut buffer = buffer_of(&[0, 0, 0, 2, 7, 8, 0, 0, 0, 1, 9, 0, 0]);
        assert_eq!(buffer.next_frame(100), Ok(Some(Bytes::from_static(&[7, 8]))));
        assert_eq!(buffer.next_frame(100), Ok(Some(Bytes::from_static(&[9]))));
        assert_eq!(buffer.next_frame(100), Ok(None));
        assert_eq!(buffer.len(), 2);
    }

    #[test]
    fn silly_sizes_are_refused_before_a_byte_of_the_body_arrives() {
        #[rustfmt::skip]
        let table = [
            (*b"GET ",    FrameError::TooLarge { size: 0x4745_5420, max: 100 }),
            ([0; 4],      FrameError::NotPositive(0)),
            ([0xff; 4],   FrameError::NotPositive(-1)),
            ([0, 0, 0, 101], FrameError::TooLarge { size: 101, max: 100 }),
        ];
        for (bytes, error) in table {
            assert_eq!(buffer_of(&bytes).next_frame(100), Err(error));
        }
    }

    #[test]
    fn a_busy_connection_reads_in_larger_steps_and_a_quiet_one_goes_back() {
        let mut buffer = FrameBuffer::default();
        let full = |buffer: &mut FrameBuffer| buffer.fit_step(buffer.step_bytes, buffer.step_bytes);
        (0..9).for_each(|_| full(&mut buffer));
        assert_eq!(buffer.step_bytes, STEP_BYTES_MAX);
        (0..9).for_each(|_| buffer.fit_step(STEP_BYTES, 100));
        assert_eq!(buffer.step_bytes, STEP_BYTES);
    }

    #[test]
    fn a_claimed_size_takes_no_memory() {
        let mut buffer = buffer_of(&[0x05, 0, 0, 0, 1, 2, 3]);
        assert_eq!(buffer.next_frame(100 << 20), Ok(None));
        assert!(buffer.space().capacity() <= STEP_BYTES);
    }
}
