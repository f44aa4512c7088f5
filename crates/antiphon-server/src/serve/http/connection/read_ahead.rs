//! The reading side of a connection: small pieces until a handler asks for the body, then large ones.
//!
//! hyper has one setting for the largest head and for its read buffer, and the buffer keeps the size that it had for the
//! largest body. This stream reads a body into a buffer of its own, which exists only while the body is being read, and
//! gives hyper pieces that are so small that hyper's buffer does not grow.
#![cfg_attr(not(feature = "http2"), allow(dead_code, reason = "the rest is for HTTP/2"))]

use crate::serve::http::connection::table::{Connection, LargeHead};
use std::{
    future::Future as _,
    io::{self, IoSlice},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

/// The most bytes of a head that any connection may have stored. Those with more need a [`LargeHead`].
const SMALL_HEAD: usize = 8 * 1024;

/// The most bytes of one read before a body is being read: one byte less than the read that makes hyper double its buffer.
const SMALL_PIECE: usize = 8 * 1024 - 1;

/// The most bytes of a body that hyper gets at a time: one byte less than the second read that doubles its buffer.
const BODY_PIECE: usize = 16 * 1024 - 1;

/// The most bytes of a body that are read at a time. So few that the buffer stays in the processor's cache, and that the
/// allocator takes it from memory that it has: each new page of a larger one costs a fault.
const READ_AHEAD: usize = 64 * 1024;

/// The bytes that an HTTP/2 client may send between two requests or pieces of bodies: more than a window, so that only a
/// flood of other frames has so many.
const UNPRODUCTIVE: usize = 256 * 1024;

/// The first bytes of an HTTP/2 connection, as many as no request of HTTP/1.1 begins with.
const PREFACE: &[u8] = b"PRI";

/// A stream that reads in large pieces while a body is being read, and in small ones otherwise.
#[derive(Debug)]
pub(crate) struct ReadAhead<S> {
    stream: S,
    connection: Arc<Connection>,
    /// The bytes that were read ahead, of which `taken` were delivered.
    ahead: Vec<u8>,
    taken: usize,
    counting: Counting,
}

/// The bytes that are counted on a connection.
#[derive(Debug)]
enum Counting {
    /// The bytes since the last request began, for HTTP/1.1.
    Head { begun: usize, bytes: usize, large: Option<LargeHead> },
    /// The bytes since the last request or piece of a body, for HTTP/2.
    Frames { progress: usize, bytes: usize },
}

impl<S: AsyncRead + Unpin> ReadAhead<S> {
    /// A stream of HTTP/1.1.
    pub(crate) fn new(stream: S, connection: &Arc<Connection>) -> Self {
        let counting = Counting::Head { begun: 0, bytes: 0, large: None };
        Self { stream, connection: Arc::clone(connection), ahead: Vec::new(), taken: 0, counting }
    }

    /// Returns whether the first bytes are those of HTTP/2; then the stream counts frames. The method `PRI` is reserved for
    /// this.
    pub(crate) async fn is_http2(&mut self) -> io::Result<bool> {
        while PREFACE.starts_with(self.ahead.get(..PREFACE.len()).unwrap_or(&self.ahead)) {
            if self.ahead.len() >= PREFACE.len() {
                self.counting = Counting::Frames { progress: 0, bytes: 0 };
                return Ok(true);
            }
            // As many as hyper would read, so that most requests are read at once.
            let most = SMALL_PIECE - self.ahead.len();
            self.ahead.reserve_exact(most);
            let read = (&mut self.stream).take(most as u64).read_buf(&mut self.ahead).await?;
            self.count(read)?;
            if read == 0 {
                break;
            }
        }
        Ok(false)
    }

    fn read_piece(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        let mut piece = (&mut self.stream).take(most as u64);
        ready!(Pin::new(&mut piece).poll_read(cx, out))?;
        Poll::Ready(self.count(out.filled().len() - before))
    }

    fn count(&mut self, read: usize) -> io::Result<()> {
        if read > 0 {
            self.connection.has_sent();
        }
        match &mut self.counting {
            Counting::Head { begun, bytes, large } => {
                if *begun != self.connection.begun() {
                    (*begun, *bytes, *large) = (self.connection.begun(), 0, None);
                }
                if self.connection.is_busy() {
                    return Ok(());
                }
                *bytes += read;
                if *bytes > SMALL_HEAD && large.is_none() {
                    *large = self.connection.large_head();
                    if large.is_none() {
                        return Err(io::Error::other("too many connections have a large head"));
                    }
                }
            }
            Counting::Frames { progress, bytes } => {
                if *progress != self.connection.progress() {
                    (*progress, *bytes) = (self.connection.progress(), 0);
                }
                *bytes += read;
                if *bytes > UNPRODUCTIVE {
                    return Err(io::Error::other("a flood of frames without requests"));
                }
            }
        }
        Ok(())
    }

    /// Delivers bytes that were read ahead.
    fn deliver(&mut self, most: usize, out: &mut ReadBuf<'_>) {
        let rest = &self.ahead[self.taken..];
        let piece = &rest[..rest.len().min(most).min(out.remaining())];
        out.put_slice(piece);
        self.taken += piece.len();
        if self.taken == self.ahead.len() {
            self.taken = 0;
            self.ahead.clear();
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReadAhead<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let is_http1 = matches!(this.counting, Counting::Head { .. });
        let left = if is_http1 { this.connection.body_left() } else { 0 };
        let most = match (is_http1, left) {
            (false, _) => usize::MAX,
            (true, 0) => SMALL_PIECE,
            (true, _) => BODY_PIECE,
        };
        if this.ahead.is_empty() {
            if left <= BODY_PIECE {
                // Frees the buffer: no large body is being read any longer.
                this.ahead = Vec::new();
                return this.read_piece(cx, most, out);
            }
            let large = left.min(READ_AHEAD);
            this.ahead.reserve_exact(large);
            let mut rest = (&mut this.stream).take(large as u64);
            let Poll::Ready(read) = pin!(rest.read_buf(&mut this.ahead)).poll(cx) else {
                // No buffer while the client sends nothing.
                this.ahead = Vec::new();
                return Poll::Pending;
            };
            let read = read?;
            this.count(read)?;
        } else if left == 0 && this.ahead.capacity() > 2 * SMALL_HEAD {
            // What came behind the body waits, for a handler perhaps: without the large buffer.
            this.ahead = this.ahead.split_off(this.taken);
            this.taken = 0;
        }
        this.deliver(most, out);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> ReadAhead<S> {
    fn note<T>(&self, written: Poll<T>) -> Poll<T> {
        self.connection.set_blocked(written.is_pending());
        written
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ReadAhead<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.note(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = poll_write_pieces(Pin::new(&mut self.stream), cx, pieces);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// The maximum number of bytes that are copied together. More of them cost more to copy than the system takes for pieces.
const SMALL: usize = 2048;

/// Writes the pieces. A few bytes are written as one piece, which the system takes faster.
fn poll_write_pieces(
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
    use crate::{
        identity::PeerAddress,
        serve::http::connection::table::{ConnectionTable, LARGE_HEADS},
    };
    use std::{collections::VecDeque, task::Waker};

    /// A stream whose client has sent everything. Counts the reads.
    #[derive(Debug)]
    struct Sent {
        bytes: VecDeque<u8>,
        reads: Vec<usize>,
    }

    impl AsyncRead for Sent {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            out: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let read = out.remaining().min(self.bytes.len());
            self.bytes.drain(..read).for_each(|byte| out.put_slice(&[byte]));
            self.reads.push(read);
            Poll::Ready(Ok(()))
        }
    }

    fn stream(length: usize) -> (ReadAhead<Sent>, Arc<Connection>) {
        let table = ConnectionTable::new(1, 1);
        let place = table.try_place(PeerAddress::new([127, 0, 0, 1].into())).unwrap();
        let connection = Arc::clone(place.connection());
        let bytes = (0..length).map(|number| (number % 251) as u8).collect();
        (ReadAhead::new(Sent { bytes, reads: Vec::new() }, &connection), connection)
    }

    /// Reads as hyper does, with a buffer of this size, and checks the bytes.
    async fn read(stream: &mut ReadAhead<Sent>, from: usize, buffer: usize) -> io::Result<usize> {
        let mut read = Vec::with_capacity(buffer);
        let length = stream.take(buffer as u64).read_buf(&mut read).await?;
        assert!(read.iter().enumerate().all(|(at, byte)| *byte == ((from + at) % 251) as u8));
        Ok(length)
    }

    #[tokio::test]
    async fn a_body_is_read_in_large_pieces_while_it_is_asked_for() {
        let (mut stream, connection) = stream(2 << 20);
        // A head, and the beginning of a body that nobody asked for.
        assert_eq!(read(&mut stream, 0, 1 << 20).await.unwrap(), SMALL_PIECE);
        let guard = connection.begin().unwrap();
        assert_eq!(read(&mut stream, SMALL_PIECE, 1 << 20).await.unwrap(), SMALL_PIECE);
        let (mut at, end) = (2 * SMALL_PIECE, 2 * SMALL_PIECE + (1 << 20));
        while at < end {
            connection.set_body_left(end - at);
            let length = read(&mut stream, at, 1 << 20).await.unwrap();
            assert!(length <= BODY_PIECE);
            at += length;
        }
        connection.set_body_left(0);
        drop(guard);
        // One MiB in sixteen reads, and what was left for less than a piece.
        let (head, body) = (&stream.stream.reads[..2], &stream.stream.reads[2..]);
        assert_eq!(head, [SMALL_PIECE; 2]);
        assert!((16..=17).contains(&body.len()) && body[..16] == [READ_AHEAD; 16], "{body:?}");
        let reads = stream.stream.reads.len();
        // The next request is read in small pieces again, and the buffer is gone.
        while at < end + 5 * SMALL_PIECE {
            let guard = connection.begin();
            at += read(&mut stream, at, 1 << 20).await.unwrap();
            drop(guard);
        }
        assert!(
            stream.stream.reads[reads..].iter().all(|&read| read <= SMALL_PIECE),
            "{:?}",
            stream.stream.reads
        );
        assert_eq!(stream.ahead.capacity(), 0);
    }

    /// Bytes that were read behind a body do not keep the buffer of the body.
    #[tokio::test]
    async fn the_large_buffer_ends_with_its_body() {
        let (mut stream, connection) = stream(1 << 20);
        let _guard = connection.begin();
        connection.set_body_left(READ_AHEAD);
        let at = read(&mut stream, 0, 100).await.unwrap();
        assert_eq!((at, stream.ahead.capacity() >= READ_AHEAD), (100, true));
        connection.set_body_left(0);
        stream.ahead.truncate(5000);
        assert_eq!(read(&mut stream, at, 100).await.unwrap(), 100);
        assert!(stream.ahead.capacity() <= 5000, "{}", stream.ahead.capacity());
    }

    /// A connection may have a large head only if few others have one.
    #[tokio::test]
    async fn large_heads_have_a_common_limit() {
        for (others, served) in [(0, true), (LARGE_HEADS - 1, true), (LARGE_HEADS, false)] {
            let (mut stream, connection) = stream(1 << 20);
            let held: Vec<LargeHead> = (0..others).map(|_| connection.large_head().unwrap()).collect();
            assert_eq!(read(&mut stream, 0, SMALL_HEAD).await.unwrap(), SMALL_PIECE);
            assert_eq!(read(&mut stream, SMALL_PIECE, SMALL_HEAD).await.is_ok(), served, "{others}");
            drop(held);
            // Each request has its own head, and gives back what it had.
            drop(connection.begin());
            assert!(read(&mut stream, 2 * SMALL_PIECE, 10).await.is_ok());
            assert!(matches!(stream.counting, Counting::Head { bytes: 10, large: None, .. }), "{stream:?}");
        }
    }

    #[tokio::test]
    async fn the_first_bytes_choose_the_protocol() {
        for (bytes, is_http2) in
            [("PRI * HTTP/2.0", true), ("POST /", false), ("PRO", false), ("PR", false), ("", false)]
        {
            let (mut stream, _) = stream(0);
            stream.stream.bytes = bytes.bytes().collect();
            assert_eq!(stream.is_http2().await.unwrap(), is_http2, "{bytes}");
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            assert_eq!(text, bytes);
        }
    }

    /// Frames that neither begin a request nor carry a body are limited, however long the connection exists.
    #[tokio::test]
    async fn a_flood_of_frames_ends_its_connection() {
        let (mut stream, connection) = stream(4 * UNPRODUCTIVE);
        stream.counting = Counting::Frames { progress: 0, bytes: 0 };
        let mut at = 0;
        for _ in 0..2 {
            connection.piece();
            at += read(&mut stream, at, UNPRODUCTIVE).await.unwrap();
        }
        assert_eq!(at, 2 * UNPRODUCTIVE);
        assert!(read(&mut stream, at, 1).await.is_err());
    }

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
