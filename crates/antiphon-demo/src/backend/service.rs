//! The backend as an HTTP service: one process serves it, other processes send operations to it.

use crate::backend::{Operation, SharedRecords};
use crate::user::User;
use antiphon::{
    Result,
    server::{Server, asks::UrlRef},
};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{self, HeaderValue},
    http::request::Parts,
    server::conn::http1,
    service::service_fn,
};
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
        return Ok(answer_browser(&head, &body, records, server));
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
    Ok(reply(StatusCode::OK, JSON, result))
}

const JSON: &str = "application/json";

fn bad_request(reason: &str) -> Reply {
    reply(StatusCode::BAD_REQUEST, "text/plain; charset=utf-8", reason.into())
}

// The page where a person pays a deposit, in a browser.
//
// Only the person who was asked may pay. The page takes the person from its own login and never from the link: anyone
// can forward a link, and its receiver would then pay for someone else.

pub(super) type Reply = Response<Full<Bytes>>;

/// The key of the question whose URL is this page. The full key is `deposit#` and the number of the booking.
pub(crate) const ASK_KEY: &str = "deposit";

/// Answers a request of a browser. `server` verifies the reference in the link.
fn answer_browser(head: &Parts, body: &[u8], records: &SharedRecords, server: Option<&Server>) -> Reply {
    let path = head.uri.path();
    match (path.strip_prefix("/pay/"), server) {
        (Some(reference), Some(server)) => pay(head, reference, records, server),
        _ if path == "/sign-in" && head.method == Method::POST => sign_in(body),
        _ => page(StatusCode::NOT_FOUND, "<p>There is no such page."),
    }
}

fn pay(head: &Parts, reference: &str, records: &SharedRecords, server: &Server) -> Reply {
    let user = signed_in(head);
    // Every request is verified, both the GET that shows the form and the POST that pays.
    let verified = match UrlRef::verify(server, reference, user.principal().as_ref()) {
        Ok(verified) => verified,
        Err(refusal) => {
            return page(StatusCode::FORBIDDEN, &format!("<p>{refusal} You are {user}.{SIGN_IN}"));
        }
    };
    // The booking comes from the sealed reference: anyone can change the rest of a link.
    let Some(booking) = verified.key().strip_prefix(ASK_KEY).and_then(|key| key.strip_prefix('#')) else {
        return page(StatusCode::NOT_FOUND, "<p>There is nothing to pay here.");
    };
    let mut records = records.lock();
    let paid = records.deposits.contains_key(booking);
    if head.method == Method::POST && !paid {
        records.deposits.insert(booking.to_owned(), user.to_string());
        *records.counts.deposits.entry(booking.to_owned()).or_default() += 1;
    } else if !paid {
        let form = format!("<p>You are {user}. Deposit for booking {booking}: 50 EUR.{PAY}");
        return page(StatusCode::OK, &form);
    }
    page(StatusCode::OK, &format!("<p>The deposit for booking {booking} is paid. You can close this page."))
}

const PAY: &str = "<form method=post><button>Pay</button></form>";
const SIGN_IN: &str =
    "<form method=post action=/sign-in>Sign in as <input name=user> <button>Sign in</button></form>";

/// Returns the user in the cookie. The demo trusts the cookie without a password. A real page has a real login.
fn signed_in(head: &Parts) -> User {
    let cookies = head.headers.get(header::COOKIE).and_then(|cookies| cookies.to_str().ok()).unwrap_or("");
    cookies.split("; ").find_map(|cookie| cookie.strip_prefix("user=")).map_or(User::Guest, User::named)
}

fn sign_in(body: &[u8]) -> Reply {
    let name = std::str::from_utf8(body).ok().and_then(|body| body.strip_prefix("user=")).unwrap_or("");
    let user = User::named(name);
    let mut reply = page(StatusCode::OK, &format!("<p>You are {user}. Go back, and open the link again."));
    if let Ok(cookie) = HeaderValue::from_str(&format!("user={name}; Path=/; HttpOnly; SameSite=Lax"))
        && user != User::Guest
    {
        reply.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    reply
}

fn page(status: StatusCode, body: &str) -> Reply {
    let html = format!("<!doctype html><meta charset=utf-8><title>Demo payments</title>{body}\n");
    reply(status, "text/html; charset=utf-8", html.into())
}

pub(super) fn reply(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(body)));
    *reply.status_mut() = status;
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}
