//! A proxy that gives each request to the next replica. Of MCP the proxy reads only the header `Mcp-Name`, for its log.

use crate::{Fleet, Result};
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
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};
use tokio::{net::TcpListener, task::JoinHandle};

type Reply = Response<Either<Incoming, Full<Bytes>>>;

/// A running proxy. Dropping the value stops it.
pub struct Proxy {
    address: SocketAddr,
    balancer: Arc<Balancer>,
    accept_task: JoinHandle<()>,
}

struct Balancer {
    fleet: Arc<Fleet>,
    legs: AtomicU32,
    log: fn(&str),
}

impl Proxy {
    /// Starts a proxy on a free port. The proxy calls `log` with the tool, the number of the leg and the replica.
    ///
    /// # Errors
    /// If there is no free port.
    pub async fn start(fleet: Arc<Fleet>, log: fn(&str)) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let balancer = Arc::new(Balancer { fleet, legs: AtomicU32::new(0), log });
        let accept_task = tokio::spawn(accept(listener, Arc::clone(&balancer)));
        Ok(Self { address, balancer, accept_task })
    }

    /// Returns the URL of the endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Begins to count legs from one again.
    pub fn new_call(&self) {
        self.balancer.legs.store(0, Ordering::Relaxed);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accept_task.abort();
    }
}

impl Balancer {
    async fn forward(&self, request: Request<Incoming>) -> Result<Reply> {
        let Some((name, stream)) = self.fleet.connect().await else {
            let mut reply =
                Response::new(Either::Right(Full::new(Bytes::from_static(b"no replica can be reached"))));
            *reply.status_mut() = StatusCode::BAD_GATEWAY;
            return Ok(reply);
        };
        let tool = request.headers().get("mcp-name").and_then(|name| name.to_str().ok()).unwrap_or("?");
        let leg = self.legs.fetch_add(1, Ordering::Relaxed) + 1;
        (self.log)(&format!("{tool}, leg {leg}: replica {name}"));
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
