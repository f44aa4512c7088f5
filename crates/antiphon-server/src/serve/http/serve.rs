//! Accepting connections.

use crate::{
    message_service::MessageService,
    serve::{
        http::{HttpOptions, HttpService, reply::RequestBodyUnread},
        write_timeout::WriteTimeout,
    },
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{SockRef, TcpKeepalive};
use std::{
    convert::Infallible,
    future::Future,
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

/// Serves the endpoint over HTTP/1.1 until `shutdown` resolves. Then no connection is accepted, responses close their
/// connections, subscriptions end ([`Server::drain`](crate::Server::drain)), and requests under way have [`drain_time`](HttpOptions::drain_time) to
/// end. Those that have not ended by then are cancelled; steps that run in them are waited for
/// ([`Server::steps_ended`](crate::Server::steps_ended)).
///
/// Each connection has a task; a request has none. `TCP_NODELAY` is set, because a response is one write.
///
/// # Errors
/// None at present: errors of single connections, and of `accept`, are logged.
pub async fn serve_http(
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
    if tokio::time::timeout(service.options().drain_time, all).await.is_err() {
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
    if let Err(error) = set_options(&stream, service.options().write_time) {
        tracing::debug!(%error, "an option of a connection could not be set");
    }
    let (header_time, write_time) = (service.options().header_time, service.options().write_time);
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
        .header_read_timeout(header_time)
        .serve_connection(TokioIo::new(WriteTimeout::new(&mut stream, write_time)), handle);
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
fn set_options(stream: &TcpStream, write_time: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(PROBE_AFTER).with_interval(PROBE_AFTER / 3))?;
    // The default of Linux is to send unacknowledged data again for a quarter of an hour.
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(write_time))?;
    #[cfg(not(target_os = "linux"))]
    let _ = write_time;
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
