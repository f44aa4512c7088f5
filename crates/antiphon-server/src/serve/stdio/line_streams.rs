//! A pair of streams that carry one message per line.

use crate::serve::write_timeout::WriteTimeout;
use std::{io, pin::pin, time::Duration};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The time in which the client must read while a line waits to be written. Long: a client may be stopped in a debugger.
const WRITE_TIME: Duration = Duration::from_secs(5 * 60);

/// The same time after the end of the input.
const WRITE_TIME_AT_END: Duration = Duration::from_secs(5);

/// The number of bytes that are read ahead.
const READ_AHEAD: usize = 64 * 1024;

/// The streams of one client, with what was read ahead.
pub(crate) struct LineStreams<I, O> {
    input: I,
    output: WriteTimeout<O>,
    /// The bytes that were read and not yet processed.
    pub(crate) read: Vec<u8>,
    /// True after the end of the input.
    ended: bool,
}

impl<I: AsyncRead + Unpin, O: AsyncWrite + Unpin> LineStreams<I, O> {
    pub(crate) fn new(input: I, output: O) -> Self {
        let (output, read) = (WriteTimeout::new(output, WRITE_TIME), Vec::with_capacity(READ_AHEAD));
        Self { input, output, read, ended: false }
    }

    /// Reads more bytes, unless some wait to be processed or the input has ended. Bytes that were read ahead while a line
    /// was written come first: there may be no others.
    pub(crate) async fn read_more(&mut self) -> io::Result<()> {
        if !self.ended && self.read.is_empty() {
            self.ended = self.input.read_buf(&mut self.read).await? == 0;
        }
        Ok(())
    }

    /// Returns whether the input has ended, and all of it was processed.
    pub(crate) fn is_over(&self) -> bool {
        self.ended && self.read.is_empty()
    }

    /// Writes one line. While the write waits, input is read ahead: after the end of the input the write has less time.
    pub(crate) async fn send(&mut self, mut line: Vec<u8>) -> io::Result<()> {
        let Self { input, output, read, ended } = self;
        let mut written = pin!(async {
            line.push(b'\n');
            output.write_all(&line).await?;
            output.flush().await
        });
        while !*ended && read.len() < READ_AHEAD {
            tokio::select! {
                biased;
                written = &mut written => return written,
                more = input.read_buf(read) => *ended = more? == 0,
            }
        }
        if !*ended {
            return written.await;
        }
        let late = |_elapsed| io::Error::new(io::ErrorKind::TimedOut, "the client does not read any more");
        tokio::time::timeout(WRITE_TIME_AT_END, written).await.map_err(late)?
    }
}
