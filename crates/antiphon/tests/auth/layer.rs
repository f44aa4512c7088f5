//! `AuthLayer` in an axum router: layers of the program between authentication and the endpoint.
#![cfg(feature = "layers")]

use crate::common::fixture;
use antiphon::{
    client::{Client, ClientError, Mode, transport::HttpTransport},
    seal::Principal,
    serve::http::{
        HttpOptions, HttpService,
        auth::{AuthLayer, BearerError, BearerVerifier, ResourceServer, Verified},
    },
    server::{Bearer, Ctx, NoArguments, Tool},
    wire::ProtocolVersion,
};
use axum::{
    Router,
    extract::{Request, State},
    http::StatusCode,
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
};
use serde_json::json;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering::SeqCst},
};
use tokio::net::TcpListener;

/// Accepts a token that is the name of its user, and counts.
#[derive(Clone, Default)]
struct Names(Arc<AtomicUsize>);

impl BearerVerifier for Names {
    async fn verify(&self, token: &str, _: &str) -> Result<Bearer, BearerError> {
        self.0.fetch_add(1, SeqCst);
        match token {
            "nobody" => Err(BearerError::invalid("unknown")),
            "app" => Ok(Bearer::new(Principal::client("app")).with_scopes(["mcp"])),
            "narrow" => Ok(Bearer::new(Principal::user("narrow"))),
            user => Ok(Bearer::new(Principal::user(user)).with_scopes(["mcp"])),
        }
    }
}

impl Names {
    fn resource(&self) -> ResourceServer {
        ResourceServer::builder("http://localhost/mcp")
            .verifier(self.clone())
            .authorization_server("https://issuer.example.com")
            .required_scopes(["mcp"])
            .build()
            .unwrap()
    }
}

/// The layer of a program: it notes the user, and refuses one of them.
async fn noting(State(seen): State<Arc<Mutex<Vec<String>>>>, request: Request, next: Next) -> Response {
    let user = request.extensions().get::<Principal>().and_then(Principal::subject);
    let user = user.unwrap_or("-").to_owned();
    seen.lock().unwrap().push(user.clone());
    if user == "greedy" {
        return StatusCode::TOO_MANY_REQUESTS.into_response();
    }
    next.run(request).await
}

/// A layer that says that the request is another user's, and keeps a proof if it has one.
async fn claiming(mut request: Request, next: Next) -> Response {
    request.extensions_mut().insert(Principal::user("root"));
    request.extensions_mut().insert(Bearer::new(Principal::user("root")).with_scopes(["mcp"]));
    next.run(request).await
}

struct Running {
    url: String,
    seen: Arc<Mutex<Vec<String>>>,
    verified: Names,
}

async fn serve(layered: impl FnOnce(Router, ResourceServer) -> Router) -> Running {
    let who = Tool::new("who", async |ctx: &Ctx, _: NoArguments| {
        ctx.principal().and_then(Principal::subject).unwrap_or("-").to_owned()
    });
    let server = fixture(|builder| builder.tool(who)).server;
    let (seen, verified) = (Arc::default(), Names::default());
    let auth = verified.resource();
    let mcp = HttpService::new(server, HttpOptions::default().authorize(auth.clone()));
    let router = Router::new().route_service("/mcp", mcp.clone());
    let router = router.route_service(auth.metadata_path().unwrap(), mcp);
    let router = router.layer(middleware::from_fn_with_state(Arc::clone(&seen), noting));
    let app = layered(router, auth);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async { axum::serve(listener, app).await });
    Running { url, seen, verified }
}

fn modern() -> Mode {
    Mode::Pinned(ProtocolVersion::V2026_07_28)
}

impl Running {
    /// Calls the tool, and returns its text, or the status of the refusal.
    async fn call(&self, token: Option<&str>, mode: Mode) -> Result<String, ClientError> {
        let transport = HttpTransport::builder(self.url.clone());
        let transport = match token {
            Some(token) => transport.bearer(token),
            None => transport,
        };
        let client = Client::builder("test", "1").mode(mode).connect(transport.build().unwrap());
        let result = client.call_tool("who", json!({})).await?;
        Ok(result.first_text().unwrap_or_default().to_owned())
    }
}

#[tokio::test]
async fn a_layer_reads_the_principal_and_the_token_is_verified_once() {
    let running = serve(|router, auth| router.layer(AuthLayer::new(auth))).await;
    for (token, expected, passed, verified) in [
        (Some("anna"), Ok("anna"), true, 1),
        (Some("greedy"), Err(429), true, 1),
        (Some("nobody"), Err(401), false, 1),
        (Some("narrow"), Err(403), false, 1),
        (None, Err(401), false, 0),
        // The endpoint knows whether a client without a user may call.
        (Some("app"), Err(401), true, 1),
    ] {
        let got = running.call(token, modern()).await;
        let got = got.map_err(|error| error.http_status().unwrap_or_default());
        assert_eq!(got.as_deref(), expected.as_ref().map(|text: &&str| *text), "{token:?}");
        let seen = std::mem::take(&mut *running.seen.lock().unwrap());
        assert_eq!(!seen.is_empty(), passed, "{token:?}");
        assert_eq!(running.verified.0.swap(0, SeqCst), verified, "{token:?}");
    }
}

#[tokio::test]
async fn a_session_passes_the_layer_too() {
    let running = serve(|router, auth| router.layer(AuthLayer::new(auth))).await;
    assert_eq!(running.call(Some("anna"), Mode::Legacy).await.unwrap(), "anna");
    let seen = running.seen.lock().unwrap().clone();
    assert!(seen.len() > 1 && seen.iter().all(|user| user == "anna"), "{seen:?}");
    assert_eq!(running.verified.0.load(SeqCst), seen.len());
}

/// The proof of another resource server, and principals without a proof, are no proof.
#[tokio::test]
async fn the_endpoint_relies_on_its_own_proof_only() {
    type Layered = fn(Router, ResourceServer) -> Router;
    for (what, layered, expected) in [
        ("no layer", (|router, _| router) as Layered, Err(401)),
        ("a claim", |router, _| router.layer(middleware::from_fn(claiming)), Err(401)),
        (
            "a claim inside of the layer",
            |router, auth| router.layer(middleware::from_fn(claiming)).layer(AuthLayer::new(auth)),
            Ok("anna"),
        ),
        (
            "another resource server",
            |router, _| {
                let other: ResourceServer = Names::default().resource();
                router.layer(middleware::from_fn(move |mut request: Request, next: Next| {
                    let other = other.clone();
                    async move {
                        let mut headers = http::HeaderMap::new();
                        headers.insert("authorization", "Bearer root".parse().unwrap());
                        other
                            .verify(request.method(), &headers)
                            .await
                            .unwrap()
                            .insert(request.extensions_mut());
                        assert!(request.extensions().get::<Verified>().is_some());
                        next.run(request).await
                    }
                }))
            },
            Err(401),
        ),
    ] {
        let running = serve(layered).await;
        let token = if expected.is_ok() { "anna" } else { "nobody" };
        let got = running.call(Some(token), modern()).await;
        let got = got.map_err(|error| error.http_status().unwrap_or_default());
        assert_eq!(got.as_deref(), expected.as_ref().map(|text: &&str| *text), "{what}");
    }
}

#[tokio::test]
async fn what_needs_no_token_passes() {
    use tower_service::Service as _;
    let (server, auth) = (fixture(|builder| builder).server, Names::default().resource());
    let options = HttpOptions::default().authorize(auth.clone()).allow_origin("https://page.example");
    let mcp = tower::Layer::layer(&AuthLayer::new(auth), HttpService::new(server, options));
    let preflight = [
        ("origin", "https://page.example"),
        ("access-control-request-method", "POST"),
        ("host", "localhost"),
    ];
    for (method, path, headers, status) in [
        ("GET", "/.well-known/oauth-protected-resource/mcp", &[][..], 200),
        ("POST", "/.well-known/oauth-protected-resource/mcp", &[], 401),
        ("OPTIONS", "/mcp", &preflight, 204),
        ("OPTIONS", "/mcp", &preflight[..1], 401),
        ("GET", "/mcp", &[], 401),
        ("DELETE", "/mcp", &[], 401),
    ] {
        let mut request = http::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = http_body_util::Empty::<bytes::Bytes>::new();
        let response = mcp.clone().call(request.body(body).unwrap()).await.unwrap();
        assert_eq!(response.status(), status, "{method} {path}");
        let challenged = response.headers().contains_key("www-authenticate");
        assert_eq!(challenged, status == 401, "{method} {path}");
    }
}
