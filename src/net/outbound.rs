//! Finished answers of one wake-up, written together.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use tokio::io::AsyncWrite;

use crate::env::Stream;
use crate::protocol::wire::Piece;

/// Slices given to one vectored write (well below the system's limit of 1 024).
const SLICES_MAX: usize = 64;

/// Whole frames on their way out, in order.
#[derive(Debug, Default)]
pub struct Outbound {
    pieces: VecDeque<Piece>,
    bytes: usize,
}

impl Outbound {
    pub fn push(&mut self, piece: Piece) {
        self.bytes += piece.size_bytes();
        self.pieces.push_back(piece);
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Bytes not written yet.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes what the peer takes now; `Ready` once something was written or all is out.
    ///
    /// # Errors
    /// What the system says, `WriteZero` when the peer takes nothing any more, `UnexpectedEof` when
    /// a file is shorter than was answered.
    pub fn poll_write(
        &mut self,
        stream: &mut Stream,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let written = match self.pieces.front() {
            None => return Poll::Ready(Ok(())),
            Some(Piece::File(slice)) => ready!(stream.poll_send_file(cx, slice))?,
            Some(Piece::Bytes(_)) => ready!(self.poll_write_bytes(stream, cx))?,
        };
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.advance(written);
        Poll::Ready(Ok(()))
    }

    /// Writes the pieces before the next one of a file.
    fn poll_write_bytes(
        &self,
        stream: &mut Stream,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let mut count = 0;
        let mut file_follows = false;
        for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
            let Piece::Bytes(bytes) = piece else {
                file_follows = true;
                break;
            };
            *slice = IoSlice::new(bytes);
            count += 1;
        }
        match file_follows {
            // One packet less, and one wake-up less of the peer.
            true => stream.poll_write_more(cx, &slices[..count]),
            false => Pin::new(stream).poll_write_vectored(cx, &slices[..count]),
        }
    }

    fn advance(&mut self, mut written: usize) {
        self.bytes -= written;
        while let Some(front) = self.pieces.front_mut() {
            if written < front.size_bytes() {
                match front {
                    Piece::Bytes(bytes) => bytes.advance(written),
                    Piece::File(slice) => slice.advance(written),
                }
                return;
            }
            written -= front.size_bytes();
            self.pieces.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use bytes::Bytes;
    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::env::{FileSlice, Files, OpenMode};

    #[tokio::test]
    async fn pieces_leave_whole_and_in_order_through_a_narrow_pipe() {
        let (mut ours, mut theirs) = Stream::pair(5);
        let files = Files::Sim(Default::default());
        let stored: Vec<u8> = (0..=255).collect();
        files.write(Path::new("/stored"), &stored).unwrap();
        let file = Arc::new(files.open(Path::new("/stored"), OpenMode::Read).unwrap());
        let mut outbound = Outbound::default();
        let mut expected = Vec::new();
        for n in 0..200u8 {
            let (position, size_bytes) = (u64::from(n), n as usize % 7 + 1);
            if n % 3 == 0 {
                let file = file.clone();
                outbound.push(Piece::File(FileSlice { file, position, size_bytes }));
                expected.extend_from_slice(&stored[n as usize..][..size_bytes]);
            } else {
                outbound.push(Piece::Bytes(Bytes::from(vec![n; size_bytes])));
                expected.extend(vec![n; size_bytes]);
            }
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
        assert_eq!(got, expected);
    }
}
