//! The simulated backend that the demo's tools work on: folders, a payment provider, a payment page and a slow computer.
//!
//! The folders, payments and computations are simulated. No code in this module asks questions. The backend is an HTTP
//! service on loopback, so that several replicas can share one: the environment variable `ANTIPHON_DEMO_BACKEND` has
//! its address. Without the variable, a server starts a backend in its own process at the first operation.

mod service;

pub(crate) use service::ASK_KEY as PAYMENT_ASK_KEY;
pub use service::{ComputeHook, serve};

use antiphon::{Error, Result, server::Server};
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    env, fmt,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
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

/// The data of a backend.
#[derive(Default)]
struct Records {
    folders: BTreeMap<String, Vec<String>>,
    /// The receipts by idempotency key.
    receipts: BTreeMap<String, String>,
    /// The users who paid, by number of the booking.
    deposits: BTreeMap<String, String>,
    counts: EffectCounts,
}

/// The data of a backend, shared by all its requests.
#[derive(Clone)]
struct SharedRecords(Arc<Mutex<Records>>);

impl SharedRecords {
    /// Returns the data that a backend begins with.
    fn with_folders() -> Self {
        let reports = vec!["q1.txt".into(), "q2.txt".into()];
        let folders = BTreeMap::from([("reports".into(), reports), ("drafts".into(), Vec::new())]);
        Self(Arc::new(Mutex::new(Records { folders, ..Records::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Records {
    /// Performs an operation and returns its result.
    fn apply(&mut self, operation: Operation) -> Result<Value> {
        Ok(match operation {
            Operation::Fill { path, files } => {
                self.folders.insert(path, files);
                Value::Null
            }
            Operation::List { path } => json!(self.folders.get(&path)),
            Operation::Delete { path } => {
                let existed = self.folders.remove(&path).is_some();
                if existed {
                    *self.counts.deleted.entry(path).or_default() += 1;
                }
                json!(existed)
            }
            Operation::DeleteFile { path, file } => {
                let files = self.folders.get_mut(&path);
                let index = files.as_ref().and_then(|files| files.iter().position(|name| *name == file));
                if let Some((files, index)) = files.zip(index) {
                    files.remove(index);
                    *self.counts.deleted.entry(format!("{path}/{file}")).or_default() += 1;
                }
                json!(index.is_some())
            }
            Operation::Charge { amount, key } => {
                *self.counts.charges.entry(key.clone()).or_default() += 1;
                let next = self.receipts.len() + 1;
                json!(self.receipts.entry(key).or_insert_with(|| format!("receipt {next} over {amount} EUR")))
            }
            Operation::Deposit { booking_id } => json!(self.deposits.get(&booking_id.to_string())),
            Operation::Compute { portion, key } => {
                *self.counts.portions.entry(key).or_default() += 1;
                json!((portion * 1000..(portion + 1) * 1000).filter(|number| is_prime(*number)).count())
            }
            Operation::Count => serde_json::to_value(&self.counts)?,
        })
    }
}

fn is_prime(number: u32) -> bool {
    number > 1
        && (2..)
            .take_while(|divisor| divisor * divisor <= number)
            .all(|divisor| !number.is_multiple_of(divisor))
}

/// One operation: the body of `POST /`, such as `{"operation": "list", "path": "reports"}`. The reply is JSON.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "operation", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Operation {
    /// Creates or replaces a folder. The result is null.
    Fill {
        /// The path of the folder.
        path: String,
        /// The names of its files.
        files: Vec<String>,
    },
    /// Lists a folder. The result is the names of its files, or null if the folder does not exist.
    List {
        /// The path of the folder.
        path: String,
    },
    /// Deletes a folder. The result is `true` if the folder existed.
    Delete {
        /// The path of the folder.
        path: String,
    },
    /// Deletes one file. The result is `true` if the file existed.
    DeleteFile {
        /// The path of the folder.
        path: String,
        /// The name of the file.
        file: String,
    },
    /// Charges a card, once for each idempotency key. The result is the receipt, the same text for the same key.
    Charge {
        /// The amount in euros.
        amount: u32,
        /// The idempotency key.
        key: String,
    },
    /// Looks up the deposit of a booking. The result is the name of the user who paid, or null.
    Deposit {
        /// The number of the booking.
        booking_id: u64,
    },
    /// Counts the primes in a portion of 1,000 numbers. The result is the number of primes.
    ///
    /// The operation waits for the [`ComputeHook`] first.
    Compute {
        /// The index of the portion: it begins at this index times 1,000.
        portion: u32,
        /// The idempotency key, for the counts only.
        key: String,
    },
    /// Reads the counters of all effects so far. The result is [`EffectCounts`].
    Count,
}

/// The number of times that each effect was requested.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct EffectCounts {
    /// Requests of a charge, by idempotency key. Each key was charged once.
    pub charges: BTreeMap<String, u32>,
    /// Computations of a portion, by idempotency key.
    pub portions: BTreeMap<String, u32>,
    /// Payments of a deposit, by number of the booking.
    pub deposits: BTreeMap<String, u32>,
    /// Deletions of a folder or a file, by path.
    pub deleted: BTreeMap<String, u32>,
}
