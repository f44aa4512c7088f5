//! A client and a server in one process, without sockets.

use crate::transport::stdio::StreamTransport;
use tokio::io::{DuplexStream, duplex as pipe};

/// The number of bytes that one side may write before the other reads.
const BUFFER: usize = 64 * 1024;

/// A client's transport, the stream that the server reads from, and the stream that the server writes to.
///
/// The framing is that of stdio. Either side sees the end of the other's stream when the other drops it.
///
/// # Panics
/// Outside of a tokio runtime.
pub fn duplex() -> (StreamTransport, DuplexStream, DuplexStream) {
    // Each direction has its own pipe: dropping the writing end ends that pipe only.
    let (client_writer, server_reader) = pipe(BUFFER);
    let (server_writer, client_reader) = pipe(BUFFER);
    (StreamTransport::new(client_reader, client_writer, "memory"), server_reader, server_writer)
}
