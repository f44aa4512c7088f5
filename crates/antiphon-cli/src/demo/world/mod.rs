//! What the demo's tools work on: the world outside of the server.
//!
//! It is no part of asking, and nothing in it is real: folders, a payment provider that counts, a page on which one pays,
//! and a computer that takes its time. It is reached over HTTP on loopback, as such things are, so that several replicas
//! can share one: `ANTIPHON_DEMO_WORLD` names its address. Without that, a server has a world of its own, which begins
//! when it is first needed.

mod deeds;
mod page;
mod service;
mod who;

pub(super) use page::KEY as PAGE_KEY;
pub(crate) use who::Who;
pub(super) use who::caller;

pub use deeds::{Counts, Deed};
pub use service::{Gate, serve};

use antiphon::{Error, Result, server::Server};
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use std::{
    env, fmt,
    net::SocketAddr,
    sync::{Arc, OnceLock},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::OnceCell,
};

/// The address of a world that servers share, as `127.0.0.1:4000`.
pub const ADDRESS: &str = "ANTIPHON_DEMO_WORLD";

/// The way to a world.
#[derive(Clone)]
pub struct World {
    address: Arc<OnceCell<SocketAddr>>,
    /// Verifies who opens the page of one's own world.
    server: Arc<OnceLock<Server>>,
}

impl World {
    /// One of its own, in this process, from the first time that it is needed until the process ends.
    pub fn own() -> Self {
        Self { address: Arc::default(), server: Arc::default() }
    }

    /// One that runs elsewhere.
    pub fn at(address: SocketAddr) -> Self {
        Self { address: Arc::new(OnceCell::new_with(Some(address))), server: Arc::default() }
    }

    /// The one that `ANTIPHON_DEMO_WORLD` names, else one of its own.
    pub fn from_env() -> Self {
        env::var(ADDRESS).ok().and_then(|address| address.parse().ok()).map_or_else(Self::own, Self::at)
    }

    /// Where it is.
    ///
    /// # Errors
    /// If there is no free port.
    pub async fn address(&self) -> Result<SocketAddr> {
        let begin = || async {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?;
            tokio::spawn(serve(listener, Gate::open(), Arc::clone(&self.server)));
            Ok::<_, Error>(address)
        };
        self.address.get_or_try_init(begin).await.copied()
    }

    /// What a URL of its page begins with: the reference follows. `server` is the one whose tool sends people there.
    ///
    /// # Errors
    /// As [`address`](Self::address).
    pub async fn page(&self, server: &Server) -> Result<String> {
        self.server.get_or_init(|| server.clone());
        Ok(format!("http://{}/pay/", self.address().await?))
    }

    /// Does this there. What it comes to depends on the deed.
    ///
    /// # Errors
    /// If it cannot be reached, or says no.
    pub async fn send<T: DeserializeOwned>(&self, deed: Deed) -> Result<T> {
        let address = self.address().await?;
        let stream = TcpStream::connect(address).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // It ends with the sender.
        tokio::spawn(connection);
        let request = Request::post("/")
            .header("host", address.to_string())
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(serde_json::to_vec(&deed)?)))?;
        let reply = sender.send_request(request).await?;
        let status = reply.status();
        let body = reply.into_body().collect().await?.to_bytes();
        if !status.is_success() {
            return Err(Error::user_facing(String::from_utf8_lossy(&body)));
        }
        Ok(serde_json::from_slice(&body)?)
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("address", &self.address.get()).finish_non_exhaustive()
    }
}
