//! Accepting connections.

use crate::{
    Server,
    message_service::MessageService,
    serve::{
        http::{HttpOptions, HttpService, reply::RequestBodyUnread},
        write_timeout::WriteTimeout,
    },
};
use futures_util::future::BoxFuture;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{SockRef, TcpKeepalive};
use std::{
    convert::Infallible,
    future::{Future, IntoFuture, Pending, pending},
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::JoinSet,
};
use tower_service::Service as _;

/// The time without data after which TCP keep-alive probes begin.
const PROBE_AFTER: Duration = Duration::from_secs(30);

/// The time for which the rest of a rejected body is read before the connection closes.
const READ_OUT_TIME: Duration = Duration::from_secs(5);

/// Returns a future that serves the endpoint over HTTP/1.1: forever, or until the future that
/// [`with_graceful_shutdown`](ServeHttp::with_graceful_shutdown) takes is ready.
///
/// Each connection has a task; a request has none. `TCP_NODELAY` is set, because a response is one write.
///
/// ```no_run
/// use antiphon::{serve::http::{HttpOptions, serve_http}, server::Server};
/// use tokio::net::TcpListener;
///
/// # async fn stopped() {}
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder("orders", "1.0").build()?;
/// let listener = TcpListener::bind("127.0.0.1:8000").await?;
/// serve_http(listener, server, HttpOptions::default()).with_graceful_shutdown(stopped()).await?;
/// # Ok(())
/// # }
/// ```
pub fn serve_http<S: MessageService>(listener: TcpListener, server: S, options: HttpOptions) -> ServeHttp<S> {
    ServeHttp { listener, server, options, shutdown: pending() }
}

/// A server that [`serve_http`] has not started yet. It runs when it is awaited; `tokio::spawn` takes its
/// [`into_future`](IntoFuture::into_future).
#[derive(Debug)]
#[must_use = "a server runs only when it is awaited"]
pub struct ServeHttp<S: MessageService = Server, F = Pending<()>> {
    listener: TcpListener,
    server: S,
    options: HttpOptions,
    shutdown: F,
}

impl<S: MessageService, F> ServeHttp<S, F> {
    /// Serves until this future is ready. Then no connection is accepted, responses close their connections, subscriptions
    /// end ([`Server::drain`]), and requests under way have [`drain_timeout`](HttpOptions::drain_timeout) to end. Those that
    /// have not ended by then are cancelled; steps that run in them are waited for ([`Server::steps_ended`]).
    pub fn with_graceful_shutdown<G>(self, shutdown: G) -> ServeHttp<S, G>
    where
        G: Future<Output = ()> + Send + 'static,
    {
        let Self { listener, server, options, .. } = self;
        ServeHttp { listener, server, options, shutdown }
    }
}

impl<S, F> IntoFuture for ServeHttp<S, F>
where
    S: MessageService,
    F: Future<Output = ()> + Send + 'static,
{
    /// No errors at present: errors of single connections, and of `accept`, are logged.
    type Output = io::Result<()>;
    type IntoFuture = BoxFuture<'static, io::Result<()>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(serve(self.listener, self.server, self.options, self.shutdown))
    }
}

async fn serve(
    listener: TcpListener,
    server: impl MessageService,
    options: HttpOptions,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let service = HttpService::new(server.clone(), options);
    let (drain, draining) = watch::channel(false);
    let places = Arc::new(Semaphore::new(service.options().connections));
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = accept(&listener, &places) => accepted,
        };
        if let Some((stream, place)) = accepted {
            connections.spawn(connection(stream, place, service.clone(), draining.clone()));
        }
    }
    drop(listener);
    server.drain();
    let _ = drain.send(true);
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(service.options().drain_timeout, all).await.is_err() {
        tracing::warn!(
            open = connections.len(),
            "requests did not end within the drain time and were cancelled"
        );
        connections.shutdown().await;
    }
    service.end_sessions();
    server.finished().await;
    Ok(())
}

/// Accepts the next connection once there is a place for it.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    // The semaphore is never closed.
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, place)),
        Err(error) => {
            // Most often too many open files: a short pause, or the loop would spin.
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

async fn connection(
    mut stream: TcpStream,
    _place: OwnedSemaphorePermit,
    service: HttpService<impl MessageService>,
    mut draining: watch::Receiver<bool>,
) {
    if let Err(error) = set_options(&stream, service.options().write_timeout) {
        tracing::debug!(%error, "an option of a connection could not be set");
    }
    let (header_timeout, write_timeout) = (service.options().header_timeout, service.options().write_timeout);
    let unread = AtomicBool::new(false);
    let handle = service_fn(|request: hyper::Request<Incoming>| {
        let exchange = service.clone().call(request);
        async {
            let response = exchange.await?;
            unread.store(response.extensions().get::<RequestBodyUnread>().is_some(), Ordering::Relaxed);
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .serve_connection(TokioIo::new(WriteTimeout::new(&mut stream, write_timeout)), handle);
    let ended = {
        let mut connection = pin!(connection);
        tokio::select! {
            ended = connection.as_mut() => ended,
            () = async { drop(draining.wait_for(|draining| *draining).await) } => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
    if unread.into_inner() {
        read_out(&mut stream).await;
    }
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
    let _ = tokio::time::timeout(READ_OUT_TIME, all).await;
}

#[cfg(test)]
mod tests {
    use super::*;

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
