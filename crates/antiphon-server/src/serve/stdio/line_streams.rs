//! A pair of streams that carry one message per line.

use crate::serve::WriteTimeout;
use futures_util::future::BoxFuture;
use std::{future::pending, io, pin::pin, time::Duration};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The time in which the client must read while a line waits to be written. Long: a client may be stopped in a debugger.
const WRITE_TIME: Duration = Duration::from_secs(5 * 60);

/// The same time after the end of the input.
const WRITE_TIME_AT_END: Duration = Duration::from_secs(5);

/// The number of bytes that are read ahead.
const READ_AHEAD: usize = 64 * 1024;

/// The streams of one client, with what was read ahead. The shutdown ends the input too.
pub(crate) struct LineStreams<'a, I, O> {
    input: I,
    output: WriteTimeout<O>,
    /// The bytes that were read and not yet processed.
    pub(crate) read: Vec<u8>,
    shutdown: BoxFuture<'a, ()>,
    /// `None` before the end of the input.
    end: Option<InputEnd>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum InputEnd {
    Eof,
    Shutdown,
}

impl InputEnd {
    fn after_read(count: usize) -> Option<Self> {
        (count == 0).then_some(Self::Eof)
    }
}

impl<'a, I: AsyncRead + Unpin, O: AsyncWrite + Unpin> LineStreams<'a, I, O> {
    pub(crate) fn new(input: I, output: O, shutdown: BoxFuture<'a, ()>) -> Self {
        let (output, read) = (WriteTimeout::new(output, WRITE_TIME), Vec::with_capacity(READ_AHEAD));
        Self { input, output, read, shutdown, end: None }
    }

    /// Reads more bytes, unless some wait to be processed or the input has ended. Bytes that were read ahead while a line
    /// was written come first: there may be no others.
    pub(crate) async fn read_more(&mut self) -> io::Result<()> {
        if self.end.is_none() && self.read.is_empty() {
            self.end = tokio::select! {
                // An input that is always ready does not delay the shutdown.
                biased;
                () = &mut self.shutdown => Some(InputEnd::Shutdown),
                count = self.input.read_buf(&mut self.read) => InputEnd::after_read(count?),
            };
        }
        Ok(())
    }

    /// Returns whether the input has ended, and all of it was processed.
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some() && self.read.is_empty()
    }

    /// Returns the same, but not after a shutdown, which may have come in the middle of a line.
    pub(crate) fn is_at_eof(&self) -> bool {
        self.is_over() && !self.is_shut_down()
    }

    /// Returns whether the shutdown has ended the input.
    pub(crate) fn is_shut_down(&self) -> bool {
        self.end == Some(InputEnd::Shutdown)
    }

    /// Resolves at a shutdown after the end of the input. Not to be awaited again after that.
    pub(crate) async fn shut_down(&mut self) {
        if self.is_shut_down() {
            return pending().await;
        }
        (&mut self.shutdown).await;
    }

    /// Writes one line. While the write waits, input is read ahead: after the end of the input the write has less time.
    pub(crate) async fn send(&mut self, mut line: Vec<u8>) -> io::Result<()> {
        let Self { input, output, read, shutdown, end } = self;
        let mut written = pin!(async {
            line.push(b'\n');
            output.write_all(&line).await?;
            output.flush().await
        });
        while end.is_none() {
            tokio::select! {
                biased;
                written = &mut written => return written,
                () = &mut *shutdown => *end = Some(InputEnd::Shutdown),
                count = input.read_buf(read), if read.len() < READ_AHEAD => *end = InputEnd::after_read(count?),
            }
        }
        let late = |_elapsed| io::Error::new(io::ErrorKind::TimedOut, "the client does not read any more");
        tokio::time::timeout(WRITE_TIME_AT_END, written).await.map_err(late)?
    }
}
