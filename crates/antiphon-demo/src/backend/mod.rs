//! The simulated backend that the demo's tools work on: folders, a payment provider, a payment page and a slow computer.
//!
//! The folders, payments and computations are simulated. No code in this module asks questions. The backend is an HTTP
//! service on loopback, so that several replicas can share one: the environment variable `ANTIPHON_DEMO_BACKEND` has
//! its address. Without the variable, a server starts a backend in its own process at the first operation.

mod records;
mod service;

pub use records::{EffectCounts, Operation};
pub(crate) use service::ASK_KEY as PAYMENT_ASK_KEY;
pub use service::{ComputeHook, serve};

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

/// The environment variable with the address of a shared backend, such as `127.0.0.1:4000`.
pub const ADDRESS_VARIABLE: &str = "ANTIPHON_DEMO_BACKEND";

/// A client of one backend. Clones share the backend.
#[derive(Clone)]
pub struct Backend {
    address: Arc<OnceCell<SocketAddr>>,
    /// The server that verifies references on the payment page of a local backend.
    server: Arc<OnceLock<Server>>,
}

impl Backend {
    /// Returns a backend in this process. It starts at the first operation and runs until the process ends.
    pub fn local() -> Self {
        Self { address: Arc::default(), server: Arc::default() }
    }

    /// Returns the backend at this address, which another process or task serves.
    pub fn at(address: SocketAddr) -> Self {
        Self { address: Arc::new(OnceCell::new_with(Some(address))), server: Arc::default() }
    }

    /// Returns the backend at the address in [`ADDRESS_VARIABLE`]. If the variable is absent or no address, the backend
    /// is [`local`](Self::local).
    pub fn from_env() -> Self {
        let address = env::var(ADDRESS_VARIABLE).ok().and_then(|address| address.parse().ok());
        address.map_or_else(Self::local, Self::at)
    }

    /// Returns the backend's address. Starts a local backend if it does not run yet.
    ///
    /// # Errors
    /// If there is no free port.
    pub async fn address(&self) -> Result<SocketAddr> {
        let start = || async {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?;
            tokio::spawn(serve(listener, ComputeHook::none(), Arc::clone(&self.server)));
            Ok::<_, Error>(address)
        };
        self.address.get_or_try_init(start).await.copied()
    }

    /// Returns the URL of the payment page up to the reference, which the caller appends.
    ///
    /// `server` is the server whose tool sends people to the page. A local backend verifies references with its keys.
    ///
    /// # Errors
    /// As [`address`](Self::address).
    pub async fn payment_page(&self, server: &Server) -> Result<String> {
        self.server.get_or_init(|| server.clone());
        Ok(format!("http://{}/pay/", self.address().await?))
    }

    /// Sends one operation and returns its result. [`Operation`] lists the result of each operation.
    ///
    /// # Errors
    /// If the backend cannot be reached, rejects the operation, or replies with another type than `T`.
    pub async fn send<T: DeserializeOwned>(&self, operation: Operation) -> Result<T> {
        let address = self.address().await?;
        let stream = TcpStream::connect(address).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // The connection's task ends when the sender is dropped.
        tokio::spawn(connection);
        let request = Request::post("/")
            .header("host", address.to_string())
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(serde_json::to_vec(&operation)?)))?;
        let reply = sender.send_request(request).await?;
        let status = reply.status();
        let body = reply.into_body().collect().await?.to_bytes();
        if !status.is_success() {
            return Err(Error::user_facing(String::from_utf8_lossy(&body)));
        }
        Ok(serde_json::from_slice(&body)?)
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backend").field("address", &self.address.get()).finish_non_exhaustive()
    }
}
