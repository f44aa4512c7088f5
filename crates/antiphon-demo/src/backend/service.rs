//! The backend as an HTTP service: one process serves it, other processes send operations to it.

use super::{
    Operation,
    payment_page::{self, Reply},
    records::SharedRecords,
};
use antiphon::{Result, server::Server};
use http_body_util::{BodyExt as _, Limited};
use hyper::{Method, Request, StatusCode, body::Incoming, header, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use std::{
    convert::Infallible,
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, OnceLock},
};
use tokio::net::TcpListener;

/// The maximum length of a request's body, in bytes.
const MAX_BODY: usize = 64 * 1024;

/// A function that delays [`Operation::Compute`]: the backend awaits its future before it computes a portion.
#[derive(Clone)]
pub struct ComputeHook(Arc<dyn Fn(u32) -> BoxFuture + Send + Sync>);

type BoxFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

impl ComputeHook {
    /// Returns a hook that delays nothing.
    pub fn none() -> Self {
        Self::new(|_| async {})
    }

    /// Returns a hook that calls `before` with the index of each portion and awaits the future.
    pub fn new<F: Future<Output = ()> + Send + 'static>(
        before: impl Fn(u32) -> F + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move |portion| Box::pin(before(portion))))
    }
}

impl fmt::Debug for ComputeHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ComputeHook(..)")
    }
}

/// Serves a backend until the future is dropped. The backend begins with two folders: `reports` with two files, and
/// `drafts` with none.
///
/// `server` verifies the references on the payment page. It needs the keys of the servers whose tools send people there.
///
/// # Errors
/// If the listener cannot accept connections.
pub async fn serve(
    listener: TcpListener,
    hook: ComputeHook,
    server: Arc<OnceLock<Server>>,
) -> io::Result<()> {
    let records = SharedRecords::with_folders();
    loop {
        let (stream, _) = listener.accept().await?;
        let (records, hook, server) = (records.clone(), hook.clone(), Arc::clone(&server));
        let handle = service_fn(move |request| {
            let (records, hook, server) = (records.clone(), hook.clone(), Arc::clone(&server));
            async move {
                let reply = answer(request, &records, &hook, server.get()).await;
                Ok::<_, Infallible>(reply.unwrap_or_else(|error| bad_request(&error.to_string())))
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), handle));
    }
}

async fn answer(
    request: Request<Incoming>,
    records: &SharedRecords,
    hook: &ComputeHook,
    server: Option<&Server>,
) -> Result<Reply> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, MAX_BODY).collect().await.map(|body| body.to_bytes());
    let body = body.map_err(|fault| antiphon::Error::user_facing(fault.to_string()))?;
    if head.uri.path() != "/" {
        return Ok(payment_page::answer(&head, &body, records, server));
    }
    // A browser sends this content type to another origin only after a preflight request, which this service rejects.
    let is_json = head.headers.get(header::CONTENT_TYPE).is_some_and(|value| value == JSON);
    if head.method != Method::POST || !is_json {
        return Ok(bad_request("POST an operation as application/json"));
    }
    let operation = serde_json::from_slice(&body)?;
    if let Operation::Compute { portion, .. } = &operation {
        (hook.0)(*portion).await;
    }
    let result = serde_json::to_vec(&records.lock().apply(operation)?)?;
    Ok(payment_page::reply(StatusCode::OK, JSON, result))
}

const JSON: &str = "application/json";

fn bad_request(reason: &str) -> Reply {
    payment_page::reply(StatusCode::BAD_REQUEST, "text/plain; charset=utf-8", reason.into())
}
