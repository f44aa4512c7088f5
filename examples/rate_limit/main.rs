//! A limit on the rate of requests, for each caller, as a layer of axum in front of the endpoint: 429 and `Retry-After`.
//!
//! Try it: `cargo run -p antiphon-examples --bin rate_limit`

#![allow(clippy::print_stdout, reason = "the program prints what happens")]

use antiphon::{
    Result,
    client::{Client, transport::HttpTransport},
    seal::Principal,
    serve::http::{HttpOptions, HttpService},
    server::Server,
    tool,
};
use axum::{
    Router,
    extract::{ConnectInfo, Request, State},
    http::{StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
};
use governor::{
    Quota, RateLimiter,
    clock::{Clock as _, DefaultClock},
    state::keyed::HashMapStateStore,
};
use serde_json::json;
use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroU32,
    sync::Arc,
};
use tokio::net::TcpListener;

/// The requests that a caller may send at once: two. The same number is added in the course of an hour.
const BURST: NonZeroU32 = NonZeroU32::MIN.saturating_add(1);

/// A caller that is counted. A token that nobody issued names nobody: otherwise each new token would have a new limit.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Caller {
    User(&'static str),
    /// Behind a proxy this is the proxy's address, and a header of the proxy has the caller's.
    Address(IpAddr),
}

type Limiter = RateLimiter<Caller, HashMapStateStore<Caller>, DefaultClock>;

/// Returns the user of a token. A real server verifies a signature, or looks into a database.
fn user_of(token: &[u8]) -> Option<&'static str> {
    match token {
        b"Bearer token-of-ada" => Some("ada"),
        b"Bearer token-of-bob" => Some("bob"),
        _ => None,
    }
}

/// The layer: counts the request, and passes it on with its user, or rejects it.
async fn limit(
    State(limiter): State<Arc<Limiter>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    let user = request.headers().get(header::AUTHORIZATION).and_then(|token| user_of(token.as_bytes()));
    if let Err(early) = limiter.check_key(&user.map_or(Caller::Address(peer.ip()), Caller::User)) {
        let wait = early.wait_time_from(DefaultClock::default().now()).as_secs() + 1;
        let headers = [(header::RETRY_AFTER, wait.to_string())];
        return (StatusCode::TOO_MANY_REQUESTS, headers, "Too many requests: wait").into_response();
    }
    // The server binds calls to this principal, and handlers read it.
    if let Some(user) = user {
        request.extensions_mut().insert(Principal::user(user));
    }
    next.run(request).await
}

/// Adds two numbers.
#[tool]
async fn add(a: i64, b: i64) -> Result<String> {
    Ok((a + b).to_string())
}

fn app() -> Result<Router> {
    let server = Server::builder("calculator", "1.0").tool(add).build()?;
    let mcp = HttpService::new(server, HttpOptions::default());
    // A server that runs for long calls `retain_recent` now and then, which forgets callers that are gone.
    let limiter = Arc::new(Limiter::hashmap(Quota::per_hour(BURST)));
    let limited = middleware::from_fn_with_state(limiter, limit);
    Ok(Router::new().route_service("/calculator", mcp).layer(limited))
}

#[tokio::main]
async fn main() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/calculator", listener.local_addr()?);
    let app = app()?.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async { axum::serve(listener, app).await });

    for caller in ["ada", "bob"] {
        let transport = HttpTransport::builder(url.clone()).bearer(format!("token-of-{caller}")).build()?;
        let client = Client::builder("rate-limit", "1.0").connect(transport);
        for a in 1..=3 {
            match client.call_tool("add", json!({"a": a, "b": 1})).await {
                Ok(result) => println!("{caller}: {a} + 1 = {}", result.first_text().unwrap_or_default()),
                Err(error) => {
                    println!("{caller}: status {}", error.http_status().unwrap_or_default())
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use tower_service::Service as _;

    #[tokio::test]
    async fn each_caller_has_its_own_limit() {
        let app = app().unwrap();
        for (address, token, expected) in [
            ([10, 0, 0, 1], Some("token-of-ada"), false),
            ([10, 0, 0, 2], Some("token-of-ada"), false),
            ([10, 0, 0, 3], Some("token-of-ada"), true),
            ([10, 0, 0, 1], Some("token-of-bob"), false),
            ([10, 0, 0, 1], None, false),
            ([10, 0, 0, 1], Some("made-up-1"), false),
            ([10, 0, 0, 1], Some("made-up-2"), true),
            ([10, 0, 0, 1], None, true),
            ([10, 0, 0, 2], None, false),
        ] {
            let mut request = Request::post("/calculator").header(header::HOST, "localhost");
            if let Some(token) = token {
                request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
            }
            let mut request = request.body(Body::empty()).unwrap();
            request.extensions_mut().insert(ConnectInfo(SocketAddr::from((address, 1))));
            let response = app.clone().call(request).await.unwrap();
            let is_limited = response.status() == StatusCode::TOO_MANY_REQUESTS;
            assert_eq!(is_limited, expected, "{address:?} {token:?}: {}", response.status());
            let wait = response.headers().get(header::RETRY_AFTER).map(|wait| wait.to_str().unwrap());
            let wait = wait.map(|wait| wait.parse::<u32>().unwrap());
            assert_eq!(wait.is_some_and(|wait| (1..=1800).contains(&wait)), expected, "{wait:?}");
        }
    }
}
