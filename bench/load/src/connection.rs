//! One keep-alive HTTP/1.1 connection, thin enough not to be what is measured.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use httparse::{EMPTY_HEADER, Response, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Error;

/// No answer of the three is larger.
const MAX_ANSWER: usize = 1 << 20;
/// A server that was just started may need a moment to listen.
const ATTEMPTS: u32 = 100;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);

/// An open connection and the answer it read last.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// One answer, borrowed from the connection's buffer.
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    /// Header fields, with the empty line behind them.
    pub(crate) head: &'a [u8],
    pub(crate) body: &'a [u8],
}

impl Connection {
    pub(crate) async fn open(addr: SocketAddr) -> Result<Self, Error> {
        let mut attempt = 1;
        let stream = loop {
            match TcpStream::connect(addr).await {
                Ok(stream) => break stream,
                Err(_) if attempt < ATTEMPTS => {
                    attempt += 1;
                    tokio::time::sleep(BETWEEN_ATTEMPTS).await;
                }
                Err(error) => return Err(format!("{addr}: {error}").into()),
            }
        };
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(8192) })
    }

    /// Sends one request and waits for its whole answer.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<Answer<'_>, Error> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let frame = loop {
            self.buffer.reserve(4096);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            if let Some(frame) = Frame::find(&self.buffer)? {
                break frame;
            }
            if self.buffer.len() > MAX_ANSWER {
                return Err("an answer of more than 1 MiB".into());
            }
        };
        let (head, body) = self.buffer.split_at(frame.body);
        let first_line = head.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        Ok(Answer { status: frame.status, head: &head[first_line..], body })
    }
}

/// Returns the end of a complete answer in the buffer.
struct Frame {
    status: u16,
    body: usize,
}

impl Frame {
    fn find(bytes: &[u8]) -> Result<Option<Self>, Error> {
        let mut fields = [EMPTY_HEADER; 32];
        let mut head = Response::new(&mut fields);
        let Status::Complete(body) = head.parse(bytes)? else {
            return Ok(None);
        };
        let status = head.code.unwrap_or_default();
        let length = head
            .headers
            .iter()
            .find(|field| field.name.eq_ignore_ascii_case("content-length"))
            .ok_or_else(|| format!("status {status} without content-length, not a JSON reply"))?;
        let length: usize = std::str::from_utf8(length.value)?.trim().parse()?;
        match bytes.len() - body {
            have if have < length => Ok(None),
            have if have == length => Ok(Some(Self { status, body })),
            _ => Err("more bytes than the answer has".into()),
        }
    }
}
