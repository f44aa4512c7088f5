//! Streamable HTTP: one POST, one response, no sessions, on the connections that [`serve_http`] accepts. `legacy` adds the sessions of
//! earlier revisions.

pub mod auth;
mod body;
mod checks;
mod connection;
mod cors;
mod fields;
mod legacy;
mod options;
mod reply;
mod request_body;
mod service;

pub use crate::identity::PeerAddress;
pub use body::ReplyBody;
pub use options::HttpOptions;
pub use request_body::BoxBodyError;
pub use service::{Exchange, HttpService};

use crate::server::{Server, message_service::MessageService};
use antiphon_wire::escaped;
use connection::{ConnectionTable, NoPlace, serve_connection};
use futures_util::future::BoxFuture;
use std::{
    future::{Future, IntoFuture, Pending, pending},
    io,
    net::SocketAddr,
    pin::pin,
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

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
    let service = HttpService::new(server.clone(), options).with_path_check();
    let (drain, draining) = watch::channel(false);
    let table = ConnectionTable::new(service.options().connections, service.options().address_connections());
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = accept(&listener) => accepted,
        };
        let Some((stream, peer)) = accepted else { continue };
        let placed = tokio::select! {
            () = &mut shutdown => break,
            placed = table.place(PeerAddress::new(peer.ip())) => placed,
        };
        match placed {
            Ok(place) => {
                connections.spawn(serve_connection(stream, place, service.clone(), draining.clone()));
            }
            Err(NoPlace::Full | NoPlace::AddressFull) => {
                tracing::debug!(peer = %escaped(&peer), "a connection was closed: its address has as many as it may have");
            }
        }
    }
    // Tasks know it before a client can: a step that ends from now on is the last one of its leg.
    server.drain();
    drop(listener);
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

/// Accepts the next connection.
async fn accept(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    match listener.accept().await {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            // Most often too many open files: a short pause, or the loop would spin.
            tracing::warn!(error = %escaped(&error), "a connection could not be accepted");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}
