//! The proxy between people and servers: round robin, with losses, delays, repetitions and cut connections.

use crate::{
    error::Result,
    fleet::Fleet,
    random::Random,
    request::{Delivery, Observer, Request},
};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::net::TcpStream;

/// The time for which a person waits for a reply.
const PATIENCE: Duration = Duration::from_secs(8);

/// The proxy.
#[derive(Debug)]
pub(crate) struct Proxy<R> {
    fleet: Arc<Fleet>,
    history: Arc<dyn Observer<R>>,
    seed: u64,
    has_faults: bool,
    requests: AtomicU64,
    deliveries: AtomicU64,
    next: AtomicUsize,
}

/// A request has no reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost;

impl<R: Request> Proxy<R> {
    /// Creates a proxy. Without faults, it loses what its servers lose.
    pub(crate) fn new(fleet: Arc<Fleet>, history: Arc<dyn Observer<R>>, seed: u64, has_faults: bool) -> Self {
        let (requests, deliveries, next) = (AtomicU64::new(0), AtomicU64::new(0), AtomicUsize::new(0));
        Self { fleet, history, seed, has_faults, requests, deliveries, next }
    }

    /// Sends a request as a person does. Each reply of a server is in the history, also one that the person does not get.
    pub(crate) async fn send(self: &Arc<Self>, request: &R) -> std::result::Result<Value, Lost> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let mut random = Random::new(self.seed, "proxy", number);
        if !self.has_faults {
            return self.deliver(request, None).await.ok_or(Lost);
        }
        match random.below(100) {
            0..4 => return Err(Lost),
            4..12 => tokio::time::sleep(random.millis(150)).await,
            12..18 if request.may_repeat() => self.later(request.clone(), random.millis(1500)),
            18..22 => {
                self.deliver(request, Some(random.millis(60))).await;
                return Err(Lost);
            }
            22..26 => {
                self.deliver(request, None).await;
                return Err(Lost);
            }
            _ => (),
        }
        self.deliver(request, None).await.ok_or(Lost)
    }

    /// Delivers a request that nobody waits for.
    pub(crate) fn later(self: &Arc<Self>, request: R, delay: Duration) {
        let proxy = Arc::clone(self);
        self.history.open_delivery(&request);
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            proxy.deliver(&request, None).await;
            proxy.history.close_delivery(&request);
        });
    }

    /// Delivers a request to the next server. `cut` is the time after which the connection ends.
    async fn deliver(&self, request: &R, cut: Option<Duration>) -> Option<Value> {
        let place = self.next.fetch_add(1, Ordering::Relaxed) % self.fleet.size();
        let Some((address, process)) = self.fleet.address(place) else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            return None;
        };
        let delivery = Delivery { number: self.deliveries.fetch_add(1, Ordering::Relaxed), process };
        self.history.sent(request, delivery);
        let reply = tokio::time::timeout(cut.unwrap_or(PATIENCE), exchange(address, request)).await;
        match reply {
            Ok(Ok(reply)) => {
                self.history.replied(request, delivery, &reply);
                serde_json::from_slice(&reply).ok()
            }
            Ok(Err(_)) => None,
            Err(_) => {
                self.history.cut(request);
                None
            }
        }
    }
}

/// Sends a request over a connection of its own, which ends with this future.
async fn exchange(address: std::net::SocketAddr, request: &impl Request) -> Result<Vec<u8>> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let request = hyper::Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", request.method())
        .header("mcp-name", request.name())
        .header("x-person", request.person())
        .body(Full::new(Bytes::from(request.body())))?;
    let reply = async {
        let reply = sender.send_request(request).await?;
        Ok(reply.into_body().collect().await?.to_bytes().to_vec())
    };
    tokio::select! {
        biased;
        reply = reply => reply,
        ended = connection => {
            ended?;
            Err("the connection ended".into())
        }
    }
}
