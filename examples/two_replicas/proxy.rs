//! A proxy that gives each request to the next replica, whatever it is. It knows nothing of MCP but what it prints.

use crate::Result;
use http_body_util::{Either, Full};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    client, server,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

type Reply = Response<Either<Incoming, Full<Bytes>>>;

/// A proxy that is running. Dropping it ends it.
pub(crate) struct Proxy {
    address: SocketAddr,
    balancer: Arc<Balancer>,
    accepting: JoinHandle<()>,
}

struct Balancer {
    replicas: Vec<(&'static str, SocketAddr)>,
    turn: Mutex<Turn>,
}

#[derive(Default)]
struct Turn {
    next: usize,
    leg: u32,
    served_last: &'static str,
}

impl Proxy {
    /// A proxy on a free port.
    pub(crate) async fn start(replicas: Vec<(&'static str, SocketAddr)>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let balancer = Arc::new(Balancer { replicas, turn: Mutex::default() });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&balancer)));
        Ok(Self { address, balancer, accepting })
    }

    /// The endpoint, for a client.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Counts legs anew.
    pub(crate) fn new_call(&self) {
        self.balancer.with(|turn| turn.leg = 0);
    }

    /// The replica that answered last.
    pub(crate) fn served_last(&self) -> &'static str {
        self.balancer.with(|turn| turn.served_last)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Balancer {
    fn with<T>(&self, change: impl FnOnce(&mut Turn) -> T) -> T {
        change(&mut self.turn.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The next replica that can be reached.
    async fn connect(&self) -> Option<(&'static str, TcpStream)> {
        for _ in &self.replicas {
            let (name, address) = self.with(|turn| {
                turn.next += 1;
                self.replicas[(turn.next - 1) % self.replicas.len()]
            });
            if let Ok(stream) = TcpStream::connect(address).await {
                return Some((name, stream));
            }
        }
        None
    }

    async fn forward(&self, request: Request<Incoming>) -> Result<Reply> {
        let Some((name, stream)) = self.connect().await else {
            let mut reply =
                Response::new(Either::Right(Full::new(Bytes::from_static(b"no replica can be reached"))));
            *reply.status_mut() = StatusCode::BAD_GATEWAY;
            return Ok(reply);
        };
        let tool =
            request.headers().get("mcp-name").and_then(|name| name.to_str().ok()).unwrap_or("?").to_owned();
        let leg = self.with(|turn| {
            turn.leg += 1;
            turn.served_last = name;
            turn.leg
        });
        println!("{tool}, leg {leg}: replica {name}");
        let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender.send_request(request).await?.map(Either::Left))
    }
}

async fn accept(listener: TcpListener, balancer: Arc<Balancer>) {
    while let Ok((stream, _)) = listener.accept().await {
        let balancer = Arc::clone(&balancer);
        let handle = service_fn(move |request| {
            let balancer = Arc::clone(&balancer);
            async move { balancer.forward(request).await }
        });
        tokio::spawn(server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), handle));
    }
}
