//! The endpoint at other paths: mounted in axum, and served by `serve_http`. The health route.

use crate::common::{
    fixture,
    gate::soon,
    post::{correct, post},
    request,
    socket::{Client, serve, text},
};
use antiphon::serve::http::{HttpOptions, HttpService};
use axum::{Router, body::Body, routing::get};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::json;
use tower_service::Service as _;

/// Default options do for every path that a router selects.
#[tokio::test]
async fn a_router_mounts_it_anywhere() {
    let mcp =
        HttpService::new(fixture(|builder| builder).server, HttpOptions::default().health_path("/health"));
    let app = Router::new()
        .route("/", get(async || "a page"))
        .route_service("/tools/{*rest}", mcp.clone())
        .route_service("/one", mcp.clone())
        .nest_service("/api/v1", mcp);
    for (path, status) in [
        ("/one", 200),
        ("/tools/of/mine", 200),
        ("/api/v1", 200),
        ("/api/v1/", 200),
        ("/api/v1/any", 200),
        ("/", 405),
        ("/mcp", 404),
        ("/one/more", 404),
    ] {
        let mut request = correct(&request(1, "server/discover", json!({})));
        *request.uri_mut() = path.parse().unwrap();
        let response = app.clone().call(request.map(|body| Body::new(Full::from(body)))).await.unwrap();
        assert_eq!(response.status(), status, "{path}");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let is_mcp = String::from_utf8_lossy(&body).contains("supportedVersions");
        assert_eq!(is_mcp, status == 200, "{path}: {body:?}");
    }
    let health = Request::get("/api/v1/health").body(Body::empty()).unwrap();
    assert_eq!(app.clone().call(health).await.unwrap().status(), 200);
}

/// `serve_http` has one path, and its 404 names the option that sets the path.
#[tokio::test]
async fn serve_http_has_one_path() {
    let default = HttpOptions::default;
    for (what, options, found) in [
        ("the default", default(), "/mcp"),
        ("another", default().path("/x/y"), "/x/y"),
        ("with health", default().health_path("/health"), "/mcp"),
    ] {
        let running = serve(options).await;
        for path in ["/mcp", "/mcp?key=1", "/x/y", "/", "/mcp/", "/MCP", "/health/"] {
            let mut client = Client::new(&running).await;
            client.send(text(1, "echo", "x", "").replacen("/mcp", path, 1)).await;
            let got = client.receive().await;
            let expected = if path.trim_end_matches("?key=1") == found { 200 } else { 404 };
            assert_eq!(got.status, expected, "{what}, {path}: {}", got.body);
            assert!(
                got.status == 200 || got.body.contains("HttpOptions::path"),
                "{what}, {path}: {}",
                got.body
            );
        }
        running.shutdown.send(()).unwrap();
        soon(running.ended).await.unwrap().unwrap();
    }
}

/// A preflight of another path has the 404 of any other request.
#[tokio::test]
async fn a_preflight_of_another_path_is_404() {
    let running = serve(HttpOptions::default().allow_origin("https://a.example")).await;
    for (path, status) in [("/mcp", 204), ("/mcp/", 404), ("/other", 404)] {
        let mut client = Client::new(&running).await;
        let preflight = format!(
            "OPTIONS {path} HTTP/1.1\r\nHost: localhost\r\nOrigin: https://a.example\r\n\
             Access-Control-Request-Method: POST\r\n\r\n"
        );
        client.send(preflight).await;
        let head = client.receive_head().await;
        assert!(head.starts_with(&format!("http/1.1 {status} ")), "{path}: {head}");
        assert_eq!(head.contains("access-control-allow-methods: "), status == 204, "{path}: {head}");
    }
}

/// Requests of the health path need neither a host nor a token, and say nothing else.
#[tokio::test]
async fn the_health_route_says_whether_it_serves() {
    let server = fixture(|builder| builder).server;
    let off = HttpService::new(server.clone(), HttpOptions::default());
    let on = HttpService::new(server.clone(), HttpOptions::default().health_path("/health"));
    let ask = |method: Method, path: &'static str| {
        let request =
            Request::builder().method(method).uri(path).header("origin", "https://evil.example.com");
        request.header("host", "10.0.0.7").body(bytes::Bytes::new()).unwrap()
    };
    for (drains, method, path, expected) in [
        (false, Method::GET, "/health", (200, "ok")),
        (false, Method::GET, "/health?verbose", (200, "ok")),
        (false, Method::HEAD, "/health", (200, "ok")),
        (false, Method::POST, "/health", (405, "")),
        (false, Method::OPTIONS, "/health", (405, "")),
        (true, Method::GET, "/health", (503, "draining")),
        (true, Method::HEAD, "/health", (503, "draining")),
    ] {
        if drains {
            server.drain();
        }
        let got = post(&on, ask(method.clone(), path)).await;
        assert_eq!((got.status, &*got.body), (expected.0, expected.1.as_bytes()), "{method} {path}");
        let mut names: Vec<_> = got.headers.keys().map(http::HeaderName::as_str).collect();
        names.sort_unstable();
        let connection = drains.then_some("connection");
        let others = if expected.0 == 405 { &["allow"][..] } else { &["cache-control", "content-type"] };
        let mut all: Vec<_> = others.iter().copied().chain(connection).collect();
        all.sort_unstable();
        assert_eq!(names, all, "{method} {path}");
    }
    // The default has none.
    assert_eq!(post(&off, ask(Method::GET, "/health")).await.status, 405);
}
