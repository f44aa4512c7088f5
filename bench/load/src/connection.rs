//! One keep-alive HTTP/1.1 connection, thin enough not to be what is measured.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use httparse::{EMPTY_HEADER, Header, Response, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::Error;

/// No answer is larger.
const MAX_ANSWER: usize = 16 << 20;
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
    /// The body as it was sent: a chunked one has the lengths of its chunks in it.
    pub(crate) body: &'a [u8],
    pub(crate) is_chunked: bool,
}

impl Connection {
    pub(crate) async fn open(addr: SocketAddr) -> Result<Self, Error> {
        let mut attempt = 1;
        loop {
            match Self::try_open(addr).await {
                Ok(connection) => return Ok(connection),
                Err(_) if attempt < ATTEMPTS => {
                    attempt += 1;
                    tokio::time::sleep(BETWEEN_ATTEMPTS).await;
                }
                Err(error) => return Err(format!("{addr}: {error}").into()),
            }
        }
    }

    pub(crate) async fn try_open(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(8192) })
    }

    /// Sends one request and waits for its whole answer.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<Answer<'_>, Error> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let mut frame = None;
        loop {
            self.buffer.reserve(4096);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            if frame.is_none() {
                frame = Frame::find(&self.buffer)?;
            }
            if let Some(frame) = &mut frame
                && frame.is_complete(&self.buffer)?
            {
                break;
            }
            if self.buffer.len() > MAX_ANSWER {
                return Err("an answer of more than 16 MiB".into());
            }
        }
        let frame = frame.ok_or("no answer")?;
        let (head, body) = self.buffer.split_at(frame.body);
        let first_line = head.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let is_chunked = matches!(frame.length, Length::Chunked { .. });
        Ok(Answer { status: frame.status, head: &head[first_line..], body, is_chunked })
    }
}

/// The head of an answer, read, and where its body begins.
struct Frame {
    status: u16,
    body: usize,
    length: Length,
}

/// The end of a body: by its length, or by its last chunk.
enum Length {
    Known(usize),
    /// `next` is where the next chunk begins.
    Chunked {
        next: usize,
    },
}

impl Frame {
    fn find(bytes: &[u8]) -> Result<Option<Self>, Error> {
        let mut fields = [EMPTY_HEADER; 32];
        let mut head = Response::new(&mut fields);
        let Status::Complete(body) = head.parse(bytes)? else {
            return Ok(None);
        };
        let status = head.code.unwrap_or_default();
        let length = match (value(head.headers, "content-length"), value(head.headers, "transfer-encoding")) {
            (Some(length), None) => Length::Known(length.trim().parse()?),
            (None, Some("chunked")) => Length::Chunked { next: body },
            _ => return Err(format!("status {status}: a body of unknown length").into()),
        };
        Ok(Some(Self { status, body, length }))
    }

    fn is_complete(&mut self, bytes: &[u8]) -> Result<bool, Error> {
        match &mut self.length {
            Length::Known(length) => match bytes.len() - self.body {
                have if have > *length => Err("more bytes than the answer has".into()),
                have => Ok(have == *length),
            },
            Length::Chunked { next } => loop {
                let Some(rest) = bytes.get(*next..) else {
                    return Ok(false);
                };
                let (line, size) = match httparse::parse_chunk_size(rest) {
                    Ok(Status::Complete((line, size))) => (line, usize::try_from(size)?),
                    Ok(Status::Partial) => return Ok(false),
                    Err(_) => return Err("a chunk without its length".into()),
                };
                // The chunk ends with a line end of its own; behind the last one there is nothing else.
                let end = *next + line + size + 2;
                if size == 0 {
                    return Ok(bytes.len() >= end);
                }
                *next = end;
            },
        }
    }
}

fn value<'h>(fields: &[Header<'h>], name: &str) -> Option<&'h str> {
    let field = fields.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
    std::str::from_utf8(field.value).ok()
}

/// The body without the lengths of its chunks.
pub(crate) fn without_chunks(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(body.len());
    while let Ok(Status::Complete((line, size))) = httparse::parse_chunk_size(body) {
        let Some(chunk) = usize::try_from(size).ok().and_then(|size| body.get(line..line + size)) else {
            break;
        };
        whole.extend_from_slice(chunk);
        body = body.get(line + chunk.len() + 2..).unwrap_or_default();
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::{Frame, without_chunks};

    #[test]
    fn a_chunked_answer_ends_with_its_empty_chunk() {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let whole = format!("{head}5\r\nab\r\n0\r\n3\r\ncde\r\n0\r\n\r\n");
        for end in 0..=whole.len() {
            let bytes = &whole.as_bytes()[..end];
            let mut frame = Frame::find(bytes).unwrap();
            let is_complete = frame.as_mut().is_some_and(|frame| frame.is_complete(bytes).unwrap());
            assert_eq!(is_complete, end == whole.len(), "{end} bytes");
        }
        assert_eq!(without_chunks(&whole.as_bytes()[head.len()..]), b"ab\r\n0cde");
    }
}
