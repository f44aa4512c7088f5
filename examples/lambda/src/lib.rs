//! A server as a function of AWS Lambda: behind an HTTP API, or behind a function URL.
//!
//! | variable | |
//! |---|---|
//! | `ANTIPHON_KEYS` | the list of keys, from a secret: `antiphon keygen` |
//! | `MCP_HOST` | the name of the endpoint, which `Host` is checked against |
//! | `STORE_URL` | `postgresql://..` or `rediss://..`; without it, calls have no store |
//!
//! One process answers one request at a time, and is frozen between two of them: everything that a call needs is in its sealed state and in
//! the store. The guide's chapter `operations` says what that means.

use antiphon::{
    Form,
    seal::KeyRing,
    serve::http::{HttpOptions, HttpService, PeerAddress},
    server::{Answer, Ctx, Server},
    tool,
};
use http_body_util::BodyExt as _;
use lambda_http::{
    Body, Error, Request, RequestExt as _, Response,
    http::{Method, StatusCode},
    request::RequestContext,
};
use std::{env, time::Duration};
use tokio::{sync::OnceCell, time::timeout};
use tower_service::Service as _;

/// The time that the store has to connect: less than that of the function.
const CONNECT: Duration = Duration::from_secs(5);
/// The path that is answered without the store.
const LIVENESS: &str = "/livez";

/// The settings of the function.
pub struct Settings {
    /// The list of keys.
    pub keys: String,
    /// The name of the endpoint.
    pub host: String,
    /// The address of the store of calls.
    pub store: Option<String>,
}

impl Settings {
    /// Reads the environment.
    ///
    /// # Errors
    ///
    /// Names the variable that is missing.
    pub fn from_environment() -> Result<Self, Error> {
        let required = |name: &str| env::var(name).map_err(|_| format!("{name} is not set"));
        Ok(Self {
            keys: required("ANTIPHON_KEYS")?,
            host: required("MCP_HOST")?,
            store: env::var("STORE_URL").ok(),
        })
    }
}

#[derive(serde::Deserialize, Form)]
struct Approval {
    /// Delete it?
    approved: bool,
}

/// Deletes a database, if the person approves.
#[tool]
async fn delete(ctx: &Ctx, database: String) -> antiphon::Result<String> {
    let approval = ctx.elicit::<Approval>(format!("Delete {database}?")).outcome().await?;
    let Answer::Accept(Approval { approved: true }) = approval else {
        return Ok(format!("{database} is kept."));
    };
    // For the subscribers of ordinary instances on the same store.
    ctx.server().resource_updated("databases://all");
    Ok(format!("{database} is deleted."))
}

/// The function. Its server is built with the first request that needs it.
pub struct Function {
    settings: Settings,
    endpoint: OnceCell<(Server, HttpService<Server>)>,
}

impl Function {
    /// Returns the function. Nothing is connected yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self { settings, endpoint: OnceCell::new() }
    }

    /// Answers one request.
    ///
    /// # Errors
    ///
    /// If the response cannot be read.
    pub async fn answer(&self, mut request: Request) -> Result<Response<Body>, Error> {
        if request.uri().path() == LIVENESS && request.method() == Method::GET {
            return Ok(Response::new("ok".into()));
        }
        // A process that could not connect tries again with the next request.
        let connected = timeout(CONNECT, self.endpoint.get_or_try_init(|| endpoint(&self.settings))).await;
        let Ok(Ok((server, endpoint))) = connected else {
            let unavailable =
                Response::builder().status(StatusCode::SERVICE_UNAVAILABLE).header("retry-after", "5");
            return Ok(unavailable.body(Body::Empty)?);
        };
        // Anonymous callers are counted by their address: the connection is that of the platform.
        if let Some(address) = source(&request) {
            request.extensions_mut().insert(PeerAddress::new(address));
        }
        let response = endpoint.clone().call(request).await?;
        let (parts, body) = response.into_parts();
        let text = String::from_utf8(body.collect().await?.to_bytes().into())?;
        // Behind the response the process may be frozen: what it has to say is said before.
        let _ = timeout(CONNECT, server.changes_published()).await;
        Ok(Response::from_parts(parts, text.into()))
    }
}

/// Returns the address of the caller, as the platform has it.
fn source(request: &Request) -> Option<std::net::IpAddr> {
    match request.request_context_ref()? {
        RequestContext::ApiGatewayV2(context) => context.http.source_ip.as_deref()?.parse().ok(),
        _ => None,
    }
}

/// Connects to the store, and builds the server.
async fn endpoint(settings: &Settings) -> Result<(Server, HttpService<Server>), Error> {
    // A session would be in the memory of one process: the next request may reach another one.
    let builder = Server::builder("databases", "1.0").modern_only(true).resource_updates(true).tool(delete);
    let builder = builder.keys(KeyRing::parse_list(&settings.keys)?);
    let builder = match settings.store.as_deref() {
        None => builder,
        #[cfg(feature = "postgres")]
        Some(url) if url.starts_with("postgres") => {
            use antiphon::store::{PostgresOptions, PostgresStore};
            // One request at a time.
            let options = PostgresOptions::default().connections(1).timeout(CONNECT);
            builder.store(PostgresStore::connect(url, options).await?).write_ahead(true)
        }
        #[cfg(feature = "redis")]
        Some(url) if url.starts_with("redis") => {
            use antiphon::store::{RedisOptions, RedisStore};
            builder
                .store(RedisStore::connect(url, RedisOptions::default().timeout(CONNECT)).await?)
                .write_ahead(true)
        }
        Some(_) => return Err("STORE_URL has a scheme that this build does not know".into()),
    };
    let options = HttpOptions::default().allow_host(&*settings.host);
    let server = builder.build()?;
    // Nothing runs or waits between two requests: a subscription ends at once, and a task would be left to an ordinary instance.
    server.drain();
    Ok((server.clone(), HttpService::new(server, options)))
}
