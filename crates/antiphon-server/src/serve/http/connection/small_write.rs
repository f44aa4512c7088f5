//! Writes of several small pieces: the head of a response, and its body.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};
use tokio::io::AsyncWrite;

/// The maximum number of bytes that are copied together. More of them cost more to copy than the system takes for pieces.
const SMALL: usize = 2048;

/// Writes the pieces. A few bytes are written as one piece, which the system takes faster.
pub(super) fn poll_write_pieces(
    stream: Pin<&mut impl AsyncWrite>,
    cx: &mut Context<'_>,
    pieces: &[IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    let mut together = [0; SMALL];
    let mut length = 0;
    for piece in pieces {
        let Some(place) = together.get_mut(length..length + piece.len()) else {
            return stream.poll_write_vectored(cx, pieces);
        };
        place.copy_from_slice(piece);
        length += piece.len();
    }
    stream.poll_write(cx, &together[..length])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    /// A stream that takes at most this many bytes at a time. Notes the pieces of each write.
    struct Taken {
        most: usize,
        bytes: Vec<u8>,
        writes: Vec<usize>,
    }

    impl AsyncWrite for Taken {
        fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            pieces: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let all: Vec<u8> =
                pieces.iter().flat_map(|piece| piece.iter().copied()).take(self.most).collect();
            self.bytes.extend(&all);
            self.writes.push(pieces.len());
            Poll::Ready(Ok(all.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn small_pieces_are_written_together() {
        let check = |lengths: &[usize], most: usize, pieces_written: usize| {
            let all: Vec<u8> = (0..lengths.iter().sum()).map(|number: usize| (number % 251) as u8).collect();
            let mut rest = all.as_slice();
            let pieces: Vec<IoSlice<'_>> =
                lengths.iter().map(|length| IoSlice::new(rest.split_off(..*length).unwrap())).collect();
            let mut taken = Taken { most, bytes: Vec::new(), writes: Vec::new() };
            let cx = &mut Context::from_waker(Waker::noop());
            let written = poll_write_pieces(Pin::new(&mut taken), cx, &pieces);
            let length = all.len().min(most);
            assert!(matches!(written, Poll::Ready(Ok(written)) if written == length), "{written:?}");
            assert_eq!((taken.bytes.as_slice(), taken.writes), (&all[..length], vec![pieces_written]));
        };
        check(&[130, 700], usize::MAX, 1);
        check(&[130, 0, 5, 2], usize::MAX, 1);
        check(&[0], usize::MAX, 1);
        // The stream may take a part.
        check(&[130, 700], 140, 1);
        check(&[SMALL - 1, 1], usize::MAX, 1);
        check(&[SMALL, 1], usize::MAX, 2);
        check(&[130, 1 << 20, 3], usize::MAX, 3);
    }
}
