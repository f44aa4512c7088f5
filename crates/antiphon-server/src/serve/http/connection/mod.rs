//! One connection of [`serve_http`](crate::serve::http::serve_http): its place among the others, its reads, its requests.

#[cfg(feature = "http2")]
mod http2;
mod read_ahead;
mod service;
mod table;

#[cfg(test)]
pub(crate) use table::LARGE_HEADS;
pub(crate) use table::{ConnectionTable, NoPlace};

use crate::{
    serve::{WriteTimeout, http::HttpService},
    server::message_service::MessageService,
};
use antiphon_wire::escaped;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use read_ahead::ReadAhead;
use service::ConnectionService;
use service::Until;
use socket2::{SockRef, TcpKeepalive};
use std::{io, sync::atomic::Ordering, time::Duration};
use table::Place;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite},
    net::TcpStream,
    sync::watch,
    time::timeout,
};

/// The time without data after which TCP keep-alive probes begin.
const PROBE_AFTER: Duration = Duration::from_secs(30);

/// The time for which the rest of a rejected request is read before the connection closes.
const READ_OUT_TIME: Duration = Duration::from_secs(5);

/// The smallest buffer of hyper.
const MIN_BUFFER: usize = 16 * 1024;

/// Serves the requests of a connection until it ends.
pub(crate) async fn serve_connection(
    mut stream: TcpStream,
    place: Place,
    service: HttpService<impl MessageService>,
    draining: watch::Receiver<bool>,
) {
    if let Err(error) = set_options(&stream, service.options().write_timeout) {
        tracing::debug!(error = %escaped(&error), "an option of a connection could not be set");
    }
    if serve_stream(&mut stream, &place, service, draining).await {
        tokio::select! {
            () = read_out(&mut stream) => {}
            () = place.connection().evicted() => {}
        }
    }
}

/// Serves the requests of a stream. Returns whether the client may still be sending a request that was rejected.
async fn serve_stream(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    place: &Place,
    service: HttpService<impl MessageService>,
    draining: watch::Receiver<bool>,
) -> bool {
    let options = service.options();
    let (max_head, header_timeout) = (options.max_head, options.header_timeout);
    let write_timeout = options.write_timeout;
    let mut until = Until::new(place, write_timeout, draining);
    let stream = ReadAhead::new(WriteTimeout::new(stream, write_timeout), place.connection());
    #[cfg(feature = "http2")]
    let stream = match http2::serve_if_http2(stream, &service, &mut until).await {
        Some(stream) => stream,
        None => return false,
    };
    let service = ConnectionService::new(service, place.connection());
    let unread = service.unread();
    // Without hyper's limit of time for a head, which costs a timer and one more read for each request: `until` has one timer
    // for the connection.
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_header_size(max_head)
        .max_buf_size(max_head.max(MIN_BUFFER))
        .serve_connection(TokioIo::new(stream), service);
    let ended = until.run(connection, |connection| connection.graceful_shutdown(), header_timeout).await;
    unread.load(Ordering::Relaxed) || ended.is_err_and(|error| error.is_parse_too_large())
}

/// Sets the options of a connection: a response is sent at once, and a client that is gone is noticed.
fn set_options(stream: &TcpStream, write_timeout: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(PROBE_AFTER).with_interval(PROBE_AFTER / 3))?;
    // The default of Linux is to send unacknowledged data again for a quarter of an hour.
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(write_timeout))?;
    #[cfg(not(target_os = "linux"))]
    let _ = write_timeout;
    Ok(())
}

/// Reads and drops what the client still sends, for a while. If the socket were closed with unread bytes, the client's
/// system would drop the response that says why.
async fn read_out(stream: &mut TcpStream) {
    let mut bytes = vec![0; 16 * 1024];
    let all = async { while matches!(stream.read(&mut bytes).await, Ok(1..)) {} };
    let _ = timeout(READ_OUT_TIME, all).await;
}

#[cfg(test)]
mod tests {
    use super::table::{Connection, ConnectionTable};
    use super::*;
    use crate::identity::PeerAddress;
    use crate::{serve::http::HttpOptions, server::Server};
    use std::{
        pin::Pin,
        sync::{Arc, atomic::AtomicUsize},
        task::{Context, Poll},
    };
    use tokio::{
        io::{AsyncWriteExt as _, DuplexStream, ReadBuf, duplex},
        net::TcpListener,
    };

    /// A stream that counts the reads that returned bytes.
    struct Counted(DuplexStream, Arc<AtomicUsize>);

    impl AsyncRead for Counted {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            out: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let before = out.filled().len();
            let read = Pin::new(&mut self.0).poll_read(cx, out);
            self.1.fetch_add(usize::from(out.filled().len() > before), Ordering::Relaxed);
            read
        }
    }

    impl AsyncWrite for Counted {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.0).poll_write(cx, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_flush(cx)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_shutdown(cx)
        }
    }

    /// A request with a body of this length.
    fn request(length: usize) -> Vec<u8> {
        let message = r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"_meta":{}}}"#;
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n\r\n"
        );
        let mut request = head.into_bytes();
        request.extend_from_slice(message.as_bytes());
        request.resize(request.len() + length - message.len(), b' ');
        request
    }

    /// Serves a client that has sent these bytes and reads as many responses, on a connection that `prepare` has changed. Returns
    /// the responses and the number of reads.
    async fn serve(sent: &[u8], requests: usize, prepare: impl FnOnce(&Arc<Connection>)) -> (String, usize) {
        let (mut near, far) = duplex(8 << 20);
        near.write_all(sent).await.unwrap();
        let place = ConnectionTable::new(1, 1).try_place(PeerAddress::new([127, 0, 0, 1].into())).unwrap();
        prepare(place.connection());
        let server = Server::builder("orders", "1.0").build().unwrap();
        let (_drain, draining) = watch::channel(false);
        let reads = Arc::default();
        let service = HttpService::new(server, HttpOptions::default());
        let receive = async {
            let (mut received, heads) =
                (Vec::new(), |text: &[u8]| text.windows(4).filter(|four| four == b"\r\n\r\n").count());
            while heads(&received) < requests && near.read_buf(&mut received).await.unwrap() > 0 {}
            drop(near);
            String::from_utf8(received).unwrap()
        };
        let (_, responses) =
            tokio::join!(serve_stream(Counted(far, Arc::clone(&reads)), &place, service, draining), receive);
        (responses, reads.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn a_large_body_arrives_in_few_reads() {
        for (length, most) in [(100, 1), (1 << 20, 24), (3 << 20, 56)] {
            let (responses, reads) = serve(&request(length), 1, |_| {}).await;
            assert!(responses.starts_with("HTTP/1.1 202"), "{length}: {responses}");
            assert!(reads <= most, "{length}: {reads}");
        }
        // The request behind a large one is not lost.
        let (responses, _) =
            serve(&[request(1 << 20), request(100), request(1 << 20)].concat(), 3, |_| {}).await;
        assert_eq!(responses.matches("HTTP/1.1 202").count(), 3, "{responses}");
    }

    /// A request on a connection that lost its place gets an answer, and is not begun.
    #[tokio::test]
    async fn a_request_that_comes_too_late_is_refused() {
        let (responses, _) = serve(&request(100), 1, |connection| assert!(connection.evict())).await;
        assert!(responses.starts_with("HTTP/1.1 503"), "{responses}");
    }

    #[tokio::test]
    async fn a_connection_is_watched_by_the_system() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        set_options(&stream, Duration::from_secs(7)).unwrap();
        let socket = SockRef::from(&stream);
        assert!(stream.nodelay().unwrap() && socket.keepalive().unwrap());
        #[cfg(target_os = "linux")]
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(Duration::from_secs(7)));
    }
}
