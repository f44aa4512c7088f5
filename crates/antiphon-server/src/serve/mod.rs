//! The transports of a server: HTTP, and a pair of streams. Only the modules in here name sockets, pipes and HTTP.
//!
//! Each transport serves a [`MessageService`]: a [`Server`](crate::Server), or another implementation, such as a
//! bridge.
//!
//! A batch is several messages in one JSON array. Only 2025-03-26 has batches. On pipes each message is answered when it is done,
//! because the client finds its answers by their ids; over HTTP the answers are one array.

#[cfg(feature = "http")]
pub mod http;
pub mod stdio;

pub use crate::{
    outbox::{MessageKind, Outbox},
    request::receive::{Received, Request},
    server::{
        message_service::{CallOutcome, MessageService, MessageSession, NoSession},
        service::{ServerOffers, ServerSession},
    },
};

use antiphon_wire::ErrorObject;
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{
    fmt,
    future::Future as _,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Sleep,
};

/// The maximum number of messages in a batch.
pub(crate) const MAX_MESSAGES: usize = 64;

/// The messages of a batch, as JSON text.
struct Batch<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Batch<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Messages;
        impl<'de> Visitor<'de> for Messages {
            type Value = Batch<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of messages")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
                let mut messages = Vec::new();
                while let Some(message) = sequence.next_element()? {
                    if messages.len() == MAX_MESSAGES {
                        return Err(A::Error::custom(format_args!(
                            "a batch may hold {MAX_MESSAGES} messages"
                        )));
                    }
                    messages.push(message);
                }
                Ok(Batch(messages))
            }
        }
        deserializer.deserialize_seq(Messages)
    }
}

/// Returns whether the body is an array, if it is JSON at all.
pub(crate) fn is_batch(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"[")
}

/// Reads the messages of a batch.
///
/// # Errors
/// The error to answer the whole batch with.
pub(crate) fn read(body: &[u8]) -> Result<Vec<&RawValue>, ErrorObject> {
    let Batch(messages) = serde_json::from_slice(body)
        .map_err(|fault| ErrorObject::invalid_request(format!("not a batch: {fault}")))?;
    if messages.is_empty() {
        return Err(ErrorObject::invalid_request("a batch holds one message or more"));
    }
    Ok(messages)
}

/// A stream that fails a write which makes no progress within a time limit: the peer does not read, or is gone.
pub(crate) struct WriteTimeout<S> {
    stream: S,
    limit: Duration,
    /// The timer of the write that waits.
    waits: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeout<S> {
    pub(crate) fn new(stream: S, limit: Duration) -> Self {
        Self { stream, limit, waits: None }
    }

    /// Returns the result of a write, or an error after the time limit.
    fn limited<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waits = None;
            return written;
        }
        let limit = self.limit;
        let waits = self.waits.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        match waits.as_mut().poll(cx) {
            Poll::Ready(()) => {
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read")))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.limited(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.limited(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.limited(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
        time::Instant,
    };

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stops_ends_the_write_and_a_slow_one_does_not() {
        let limit = Duration::from_secs(30);
        let (near, mut far) = duplex(4);
        let mut near = WriteTimeout::new(near, limit);
        let slow = async {
            let mut read = [0; 4];
            for _ in 0..5 {
                tokio::time::sleep(limit - Duration::from_secs(1)).await;
                far.read_exact(&mut read).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(near.write_all(&[7; 20]), slow);
        written.unwrap();
        // Time in which nothing was written does not count.
        tokio::time::sleep(10 * limit).await;
        let began = Instant::now();
        let failed = near.write_all(&[7; 20]).await.unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
        assert_eq!(began.elapsed(), limit);
    }
}
