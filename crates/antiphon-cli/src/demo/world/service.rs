//! The world itself: one process has it, the others ask it.

use super::{
    Counts, Deed,
    page::{self, Reply},
};
use antiphon::{Result, server::Server};
use http_body_util::{BodyExt as _, Limited};
use hyper::{Method, Request, StatusCode, body::Incoming, header, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    convert::Infallible,
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};
use tokio::net::TcpListener;

/// The longest body of a request, in bytes.
const LONGEST: usize = 64 * 1024;

/// Who may hold up the computer: it is asked before a portion is computed.
#[derive(Clone)]
pub struct Gate(Arc<dyn Fn(u32) -> Wait + Send + Sync>);

type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Gate {
    /// Nobody.
    pub fn open() -> Self {
        Self::new(|_| async {})
    }

    /// Each portion waits for what this makes of its number.
    pub fn new<F: Future<Output = ()> + Send + 'static>(
        wait: impl Fn(u32) -> F + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move |portion| Box::pin(wait(portion))))
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gate(..)")
    }
}

/// What there is, and what was done.
#[derive(Default)]
pub(super) struct Things {
    folders: BTreeMap<String, Vec<String>>,
    receipts: BTreeMap<String, String>,
    pub(super) deposits: BTreeMap<String, String>,
    pub(super) counts: Counts,
}

/// The things, as all requests share them.
#[derive(Clone, Default)]
pub(super) struct Shared(Arc<Mutex<Things>>);

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Things> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Is a world, until it is dropped. There are two folders in it: `reports` with two files, and `drafts` with none.
/// `server` verifies who opens its page: one with the keys of those whose tools send people there.
///
/// # Errors
/// None while connections can be accepted.
pub async fn serve(listener: TcpListener, gate: Gate, server: Arc<OnceLock<Server>>) -> io::Result<()> {
    let things = Shared::default();
    {
        let mut things = things.lock();
        things.folders.insert("reports".into(), vec!["q1.txt".into(), "q2.txt".into()]);
        things.folders.insert("drafts".into(), Vec::new());
    }
    loop {
        let (stream, _) = listener.accept().await?;
        let (things, gate, server) = (things.clone(), gate.clone(), Arc::clone(&server));
        let handle = service_fn(move |request| {
            let (things, gate, server) = (things.clone(), gate.clone(), Arc::clone(&server));
            async move {
                let reply = answer(request, &things, &gate, server.get()).await;
                Ok::<_, Infallible>(reply.unwrap_or_else(|error| refused(&error.to_string())))
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), handle));
    }
}

async fn answer(
    request: Request<Incoming>,
    things: &Shared,
    gate: &Gate,
    server: Option<&Server>,
) -> Result<Reply> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, LONGEST).collect().await.map(|body| body.to_bytes());
    let body = body.map_err(|fault| antiphon::Error::user_facing(fault.to_string()))?;
    if head.uri.path() != "/" {
        return Ok(page::answer(&head, &body, things, server));
    }
    // No page of a browser sends this without being asked first.
    let is_json = head.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == JSON);
    if head.method != Method::POST || !is_json {
        return Ok(refused("POST a deed as application/json"));
    }
    let deed = serde_json::from_slice(&body)?;
    if let Deed::Compute { portion, .. } = &deed {
        (gate.0)(*portion).await;
    }
    let found = serde_json::to_vec(&things.lock().do_it(deed)?)?;
    Ok(page::reply(StatusCode::OK, JSON, found))
}

const JSON: &str = "application/json";

fn refused(why: &str) -> Reply {
    page::reply(StatusCode::BAD_REQUEST, "text/plain; charset=utf-8", why.into())
}

impl Things {
    fn do_it(&mut self, deed: Deed) -> Result<Value> {
        Ok(match deed {
            Deed::Fill { path, files } => {
                self.folders.insert(path, files);
                Value::Null
            }
            Deed::List { path } => json!(self.folders.get(&path)),
            Deed::Delete { path } => {
                let was_there = self.folders.remove(&path).is_some();
                if was_there {
                    *self.counts.deleted.entry(path).or_default() += 1;
                }
                json!(was_there)
            }
            Deed::DeleteFile { path, file } => {
                let files = self.folders.get_mut(&path);
                let at = files.as_ref().and_then(|files| files.iter().position(|name| *name == file));
                if let Some((files, at)) = files.zip(at) {
                    files.remove(at);
                    *self.counts.deleted.entry(format!("{path}/{file}")).or_default() += 1;
                }
                json!(at.is_some())
            }
            Deed::Charge { amount, key } => {
                *self.counts.charges.entry(key.clone()).or_default() += 1;
                let next = self.receipts.len() + 1;
                json!(self.receipts.entry(key).or_insert_with(|| format!("receipt {next} over {amount} EUR")))
            }
            Deed::Deposit { booking_id } => json!(self.deposits.get(&booking_id.to_string())),
            Deed::Compute { portion, key } => {
                *self.counts.portions.entry(key).or_default() += 1;
                json!((portion * 1000..(portion + 1) * 1000).filter(|number| is_prime(*number)).count())
            }
            Deed::Count => serde_json::to_value(&self.counts)?,
        })
    }
}

fn is_prime(number: u32) -> bool {
    number > 1
        && (2..)
            .take_while(|divisor| divisor * divisor <= number)
            .all(|divisor| !number.is_multiple_of(divisor))
}
