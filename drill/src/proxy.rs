//! The proxy between people and servers: round robin, with losses, delays, repetitions and cut connections.

use crate::{Result, fleet::Fleet, history::History, leg::Leg, random::Random};
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, body::Bytes, client::conn::http1};
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
pub(crate) struct Proxy {
    fleet: Arc<Fleet>,
    history: Arc<History>,
    seed: u64,
    has_faults: bool,
    requests: AtomicU64,
    next: AtomicUsize,
}

/// A request has no reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost;

impl Proxy {
    /// Creates a proxy. Without faults, it loses what its servers lose.
    pub(crate) fn new(fleet: Arc<Fleet>, history: Arc<History>, seed: u64, has_faults: bool) -> Self {
        let (requests, next) = (AtomicU64::new(0), AtomicUsize::new(0));
        Self { fleet, history, seed, has_faults, requests, next }
    }

    /// Sends a leg as a person does. Each reply of a server is in the history, also one that the person does not get.
    pub(crate) async fn send(self: &Arc<Self>, leg: &Leg) -> std::result::Result<Value, Lost> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let mut random = Random::new(self.seed, "proxy", number);
        if !self.has_faults {
            return self.deliver(leg, None).await.ok_or(Lost);
        }
        match random.below(100) {
            0..4 => return Err(Lost),
            4..12 => tokio::time::sleep(random.millis(150)).await,
            12..18 => self.later(leg.clone(), random.millis(1500)),
            18..22 => {
                self.deliver(leg, Some(random.millis(60))).await;
                return Err(Lost);
            }
            22..26 => {
                self.deliver(leg, None).await;
                return Err(Lost);
            }
            _ => (),
        }
        self.deliver(leg, None).await.ok_or(Lost)
    }

    /// Delivers a leg that nobody waits for.
    pub(crate) fn later(self: &Arc<Self>, leg: Leg, delay: Duration) {
        let proxy = Arc::clone(self);
        self.history.open_delivery(&leg.call);
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            proxy.deliver(&leg, None).await;
            proxy.history.close_delivery(&leg.call);
        });
    }

    /// Delivers a leg to the next server. `cut` is the time after which the connection ends.
    async fn deliver(&self, leg: &Leg, cut: Option<Duration>) -> Option<Value> {
        let place = self.next.fetch_add(1, Ordering::Relaxed) % self.fleet.size();
        let Some((address, process)) = self.fleet.address(place) else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            return None;
        };
        self.history.with(&leg.call, |record| record.processes.extend(Some(process)));
        let reply = tokio::time::timeout(cut.unwrap_or(PATIENCE), exchange(address, leg)).await;
        match reply {
            Ok(Ok(reply)) => {
                self.history.replied(leg, process, &reply);
                serde_json::from_slice(&reply).ok()
            }
            Ok(Err(_)) => None,
            Err(_) => {
                self.history.with(&leg.call, |record| record.is_cut = true);
                None
            }
        }
    }
}

/// Sends a leg over a connection of its own, which ends with this future.
async fn exchange(address: std::net::SocketAddr, leg: &Leg) -> Result<Vec<u8>> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", leg.level.tool())
        .header("x-person", &leg.person)
        .body(Full::new(Bytes::from(leg.body())))?;
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
