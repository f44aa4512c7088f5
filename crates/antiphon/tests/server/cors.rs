//! Web pages of other origins: preflights, and the headers that let a page read a response.

use crate::common::{
    fixture,
    post::{HttpReply, correct, post, post_body, set},
    request,
    session::{everything, initialize, plain},
};
use antiphon::{
    seal::Principal,
    serve::http::{
        HttpOptions, HttpService,
        auth::{BearerError, BearerVerifier, ResourceServer, StaticTokens},
    },
    server::{Bearer, Ctx, NoArguments, Server, Tool},
};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use serde_json::{Value, json};
use std::convert::Infallible;

const PAGE: &str = "https://app.example.com";
const REQUEST_HEADERS: &str = "content-type, accept, authorization, dpop, mcp-protocol-version, mcp-method, mcp-name, \
                               mcp-session-id, last-event-id";
const EXPOSED: &str = "mcp-session-id, mcp-protocol-version, www-authenticate, dpop-nonce, retry-after";

fn server() -> Server {
    fixture(|builder| builder).server
}

/// An endpoint for the pages of one origin.
fn for_page() -> HttpOptions {
    HttpOptions::default().allow_origin(PAGE)
}

/// The values of a header, joined.
fn header(got: &HttpReply, name: &str) -> Option<String> {
    let values: Vec<_> = got.headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect();
    (!values.is_empty()).then(|| values.join(", "))
}

/// The headers of a response that concern pages.
fn cors_headers(got: &HttpReply) -> Vec<String> {
    let names = got.headers.keys().map(http::HeaderName::as_str);
    let mut names: Vec<_> = names.filter(|name| name.starts_with("access-control-")).collect();
    names.sort_unstable();
    names.into_iter().map(|name| format!("{name}: {}", header(got, name).unwrap())).collect()
}

/// A preflight for a POST, with these headers in the place of its own.
fn preflight(changes: &[(&'static str, &[&str])]) -> Request<Bytes> {
    let mut request = Request::options("/mcp")
        .header("host", "127.0.0.1:8000")
        .header("origin", PAGE)
        .header("access-control-request-method", "POST")
        .body(Bytes::new())
        .unwrap();
    for (name, values) in changes {
        set(&mut request, name, values);
    }
    request
}

#[tokio::test]
async fn the_preflight_of_an_allowed_page_lists_methods_and_headers() {
    let legacy = HttpService::new(server(), for_page());
    let modern = HttpService::new(fixture(|builder| builder.modern_only(true)).server, for_page());
    let asked = "access-control-request-headers";
    let private = "access-control-request-private-network";
    type Changes<'a> = &'a [(&'static str, &'a [&'a str])];
    for (what, changes, more_headers, is_private) in [
        ("a plain one", &[][..] as Changes<'_>, "", false),
        ("for a DELETE", &[("access-control-request-method", &["DELETE"])], "", false),
        ("known headers", &[(asked, &["content-type,mcp-method,mcp-name"])], "", false),
        (
            "arguments in headers",
            &[(asked, &["mcp-param-region, Mcp-Param-Zone"])],
            ", mcp-param-region, mcp-param-zone",
            false,
        ),
        (
            "in two lines, and twice",
            &[(asked, &["mcp-param-b,mcp-param-b", "mcp-param-b,mcp-x"])],
            ", mcp-param-b, mcp-x",
            false,
        ),
        ("other headers", &[(asked, &["x-secret, cookie,*,mcpx,xmcp-a"])], "", false),
        ("no names", &[(asked, &[", ,mcp-a b,mcp-c:d,mcp-"])], ", mcp-", false),
        ("into a private network", &[(private, &["true"])], "", true),
        ("another value", &[(private, &["false"])], "", false),
        ("a port that is its scheme's", &[("host", &["localhost:80"])], "", false),
    ] {
        for (service, methods) in [(&legacy, "POST, GET, DELETE"), (&modern, "POST")] {
            let got = post(service, preflight(changes)).await;
            assert_eq!((got.status, got.body.len()), (204, 0), "{what}");
            let mut expected = vec![
                format!("access-control-allow-headers: {REQUEST_HEADERS}{more_headers}"),
                format!("access-control-allow-methods: {methods}"),
                format!("access-control-allow-origin: {PAGE}"),
            ];
            expected.extend(is_private.then(|| "access-control-allow-private-network: true".to_owned()));
            expected.push(format!("access-control-expose-headers: {EXPOSED}"));
            expected.push("access-control-max-age: 7200".to_owned());
            assert_eq!(cors_headers(&got), expected, "{what}");
            assert_eq!(header(&got, "vary").as_deref(), Some("origin"), "{what}");
        }
    }
}

/// A preflight has no token: 64 of its names are read, wherever they stand.
#[tokio::test]
async fn a_preflight_with_many_names_costs_little() {
    let service = HttpService::new(server(), for_page());
    let number = |number: usize| format!("mcp-{number:03x}");
    let many: Vec<String> = (0..3900).map(number).collect();
    let lines: Vec<String> = many.chunks(60).map(|names| names.join(",")).collect();
    let of = |names: &[&str], times: usize| vec![vec![names.join(","); times].join(",")];
    let first = |count: usize| many.iter().take(count).cloned().collect::<Vec<_>>();
    for (what, asked, allowed) in [
        ("one line", vec![many.join(",")], first(64)),
        ("many lines", lines, first(64)),
        ("as many as are read", vec![first(64).join(", ")], first(64)),
        ("one name again and again", of(&["mcp-a"], 5000), vec!["mcp-a".to_owned()]),
        ("names behind others", of(&[&of(&["x"], 63)[0], "mcp-a", "mcp-b"], 1), vec!["mcp-a".to_owned()]),
        ("commas before a name", vec![",".repeat(64) + "mcp-a"], vec![]),
        (
            "long names",
            vec![first(70).iter().map(|name| name.clone() + &"x".repeat(400)).collect::<Vec<_>>().join(",")],
            first(64).iter().map(|name| name.clone() + &"x".repeat(400)).collect(),
        ),
    ] {
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        let got = post(&service, preflight(&[("access-control-request-headers", &asked)])).await;
        let expected: Vec<&str> =
            REQUEST_HEADERS.split(", ").chain(allowed.iter().map(String::as_str)).collect();
        assert_eq!(got.status, 204, "{what}");
        assert_eq!(header(&got, "access-control-allow-headers"), Some(expected.join(", ")), "{what}");
    }
}

/// No token is read, and no handler or session begins: a preflight has none.
#[tokio::test]
async fn a_preflight_needs_no_token() {
    let service = HttpService::new(server(), for_page().authorize(auth()));
    assert_eq!(post(&service, preflight(&[])).await.status, 204);
}

#[tokio::test]
async fn other_preflights_are_rejected() {
    for (what, is_configured, changes, status) in [
        ("no origin is allowed", false, &[][..], 403),
        ("another origin", true, &[("origin", &["https://evil.example.com"][..])][..], 403),
        ("a name like loopback", true, &[("origin", &["http://localhost.evil.example"])], 403),
        ("null", true, &[("origin", &["null"])], 403),
        ("nothing", true, &[("origin", &[""])], 403),
        ("another scheme", true, &[("origin", &["http://app.example.com"])], 403),
        ("another port", true, &[("origin", &["https://app.example.com:8443"])], 403),
        ("a longer name", true, &[("origin", &["https://app.example.com.evil.example"])], 403),
        ("a name before", true, &[("origin", &["https://x.app.example.com"])], 403),
        ("a path", true, &[("origin", &["https://app.example.com/"])], 403),
        ("a user", true, &[("origin", &["https://app.example.com@evil.example"])], 403),
        ("two in one", true, &[("origin", &["https://app.example.com, https://app.example.com"])], 403),
        ("twice", true, &[("origin", &[PAGE, PAGE])], 403),
        ("an allowed one and another", true, &[("origin", &[PAGE, "https://evil.example.com"])], 403),
        ("no text", true, &[("origin", &["https://app.example.com\u{e9}"])], 403),
        ("another host", true, &[("host", &["evil.example.com"])], 421),
        ("no host", true, &[("host", &[])], 421),
        ("no preflight: no method", true, &[("access-control-request-method", &[])], 405),
        ("no preflight: no origin", true, &[("origin", &[])], 405),
    ] {
        let options = if is_configured { for_page() } else { HttpOptions::default() };
        let got = post(&HttpService::new(server(), options), preflight(changes)).await;
        assert_eq!(got.status, status, "{what}: {:?}", got.body);
        // The page that reads the reason is the allowed one, at the wrong host or with the wrong method.
        let may_read = status != 403 && what != "no preflight: no origin";
        assert_eq!(header(&got, "access-control-allow-origin").is_some(), may_read, "{what}");
        assert_eq!(header(&got, "access-control-allow-headers"), None, "{what}");
        assert_eq!(header(&got, "vary").as_deref(), is_configured.then_some("origin"), "{what}");
    }
}

/// The origin of a named page is the named one, whatever its letters were. Any other origin is a known one, or none.
#[tokio::test]
async fn only_a_known_origin_is_in_a_response() {
    for (allowed, origin, expected) in [
        (PAGE, PAGE, Some(PAGE)),
        ("HTTPS://App.Example.com:443/", PAGE, Some(PAGE)),
        (PAGE, "HTTPS://APP.example.com", Some(PAGE)),
        ("http://localhost:3000", "http://localhost:3000", Some("http://localhost:3000")),
        // Pages of the machine itself.
        ("http://localhost:3000", "http://localhost:3001", Some("http://localhost:3001")),
        // A text that is no origin allows nothing.
        ("https://app.example.com/page", PAGE, None),
        ("*", PAGE, None),
        ("null", "null", None),
        ("*", "*", None),
    ] {
        let service = HttpService::new(server(), HttpOptions::default().allow_origin(allowed));
        for what in ["a preflight", "a request"] {
            let mut request = match what {
                "a preflight" => preflight(&[]),
                _ => correct(&request(1, "server/discover", json!({}))),
            };
            set(&mut request, "origin", &[origin]);
            let got = post(&service, request).await;
            let case = format!("{what}: {allowed} {origin}");
            assert_eq!(header(&got, "access-control-allow-origin").as_deref(), expected, "{case}");
            assert_eq!(got.status == 403, expected.is_none(), "{case}");
        }
    }
}

/// Introspection that is down.
struct Down;

impl BearerVerifier for Down {
    async fn verify(&self, _: &str, _: &str) -> Result<Bearer, BearerError> {
        Err(BearerError::unavailable("the database is down"))
    }
}

fn auth() -> ResourceServer {
    let ada = || Bearer::new(Principal::user("ada"));
    let tokens = StaticTokens::new().token("ada", ada().with_scopes(["mcp"])).token("narrow", ada());
    let auth = ResourceServer::builder("https://api.example.com/mcp").verifier(tokens);
    auth.authorization_server("https://issuer.example.com").required_scopes(["mcp"]).build().unwrap()
}

fn discover() -> Request<Bytes> {
    correct(&request(1, "server/discover", json!({})))
}

/// A correct request with another value of one header.
fn with(name: &'static str, values: &[&str]) -> Request<Bytes> {
    let mut request = discover();
    set(&mut request, name, values);
    request
}

fn message(message: &Value) -> Request<Bytes> {
    correct(message)
}

/// Every response to the page can be read by it, an error too; so can those to a page of the machine itself.
#[tokio::test(start_paused = true)]
async fn a_page_reads_every_response() {
    let open = HttpService::new(
        fixture(|builder| {
            builder.tool(Tool::new("progress", async |ctx: &Ctx, _: NoArguments| {
                ctx.report_progress(1.0, None, None);
                "done"
            }))
        })
        .server,
        for_page().health_path("/health"),
    );
    let closed = HttpService::new(server(), for_page().authorize(auth()));
    let down = ResourceServer::builder("https://api.example.com/mcp").verifier(Down).build().unwrap();
    let down = HttpService::new(server(), for_page().authorize(down));
    let legacy = |message: Value| {
        let mut request = correct(&message);
        for header in ["mcp-protocol-version", "mcp-method"] {
            set(&mut request, header, &[]);
        }
        request
    };
    let meta = json!({"progressToken": 1});
    let progress = json!({"name": "progress", "arguments": {}, "_meta": crate::common::with(&crate::common::meta(), meta)});
    let get = |path: &str| Request::get(path).header("host", "localhost").body(Bytes::new()).unwrap();
    for (what, service, request, status) in [
        ("a result", &open, discover(), 200),
        ("an event stream", &open, message(&request(1, "tools/call", progress)), 200),
        ("a new session", &open, legacy(plain(1, "initialize", initialize("2025-11-25", everything()))), 200),
        ("a notification", &open, message(&json!({"jsonrpc": "2.0", "method": "notifications/x"})), 202),
        ("no JSON", &open, discover().map(|_| Bytes::from("{")), 400),
        ("no such method", &open, message(&request(1, "no/such", json!({}))), 404),
        ("another method of HTTP", &open, get("/mcp"), 405),
        ("accept", &open, with("accept", &["text/html"]), 406),
        ("size", &open, with("content-length", &["4194305"]), 413),
        ("content type", &open, with("content-type", &["application/xml"]), 415),
        ("host", &open, with("host", &["evil.example.com"]), 421),
        ("health", &open, get("/health"), 200),
        ("no token", &closed, discover(), 401),
        ("a forged token", &closed, with("authorization", &["Bearer eve"]), 401),
        ("a narrow token", &closed, with("authorization", &["Bearer narrow"]), 403),
        ("two tokens", &closed, with("authorization", &["Bearer ada", "Bearer ada"]), 400),
        ("a good token", &closed, with("authorization", &["Bearer ada"]), 200),
        ("no keys", &down, with("authorization", &["Bearer ada"]), 503),
    ] {
        for origin in [Some(PAGE), Some("http://localhost:3000"), None] {
            let mut request = request.clone();
            set(&mut request, "origin", origin.as_slice());
            let got = post(service, request).await;
            let case = format!("{what}, {origin:?}: {:?}", got.body);
            assert_eq!(got.status, status, "{case}");
            let allowed = origin.map(|origin| {
                vec![
                    format!("access-control-allow-origin: {origin}"),
                    format!("access-control-expose-headers: {EXPOSED}"),
                ]
            });
            assert_eq!(cors_headers(&got), allowed.unwrap_or_default(), "{case}");
            assert_eq!(header(&got, "vary").as_deref(), Some("origin"), "{case}");
            // What a page must see to go on is among the exposed headers.
            for name in got.headers.keys().map(http::HeaderName::as_str) {
                let needed = name.starts_with("mcp-") || matches!(name, "www-authenticate" | "retry-after");
                assert!(!needed || EXPOSED.split(", ").any(|exposed| exposed == name), "{case}: {name}");
            }
        }
    }
    let never = futures_util::stream::pending::<Result<Frame<Bytes>, Infallible>>();
    let late = with("origin", &[PAGE]).map(|_| StreamBody::new(never).boxed_unsync());
    let got = post_body(&open, late).await;
    assert_eq!((got.status, &*header(&got, "access-control-allow-origin").unwrap()), (408, PAGE));
}

/// Pages of other hosts get no CORS headers by default.
#[tokio::test]
async fn no_origin_of_another_host_is_allowed_by_default() {
    let service = HttpService::new(server(), HttpOptions::default());
    for (origin, status) in [(None, 200), (Some(PAGE), 403), (Some("null"), 403)] {
        let got = post(&service, with("origin", origin.as_slice())).await;
        assert_eq!(
            (got.status, cors_headers(&got), header(&got, "vary")),
            (status, vec![], None),
            "{origin:?}"
        );
    }
}

/// A page that may send a request gets its preflight, and reads the response. No other page does.
#[tokio::test]
async fn a_preflight_and_its_request_get_the_same_answer() {
    let check = async |options: &HttpOptions, origin: &str, is_allowed: bool| {
        let service = HttpService::new(server(), options.clone());
        let asked = post(&service, preflight(&[("origin", &[origin])])).await;
        let sent = post(&service, with("origin", &[origin])).await;
        let expected = if is_allowed { (204, 200) } else { (403, 403) };
        assert_eq!((asked.status, sent.status), expected, "{origin}");
        for got in [&asked, &sent] {
            let allowed = header(got, "access-control-allow-origin");
            assert_eq!(allowed.as_deref(), is_allowed.then_some(origin), "{origin}");
            assert_eq!(header(got, "vary").is_some(), is_allowed, "{origin}");
        }
        assert_eq!(header(&asked, "access-control-allow-headers").is_some(), is_allowed, "{origin}");
    };
    let (local, any) = (HttpOptions::default(), HttpOptions::default().any_host(true));
    let own = HttpOptions::default().allow_host("mcp.example.com");
    for options in [&local, &any, &own] {
        for origin in
            ["http://localhost:6274", "http://127.0.0.1:3000", "https://[::1]:8443", "http://localhost"]
        {
            check(options, origin, true).await;
        }
        for origin in
            ["null", "https://evil.example.com", "http://localhost.evil.example", "file://localhost", "*"]
        {
            check(options, origin, false).await;
        }
    }
    // Pages of the names of the server itself, at any port.
    check(&own, "https://mcp.example.com", true).await;
    check(&own, "https://mcp.example.com:3000", true).await;
    check(&own, "https://other.mcp.example.com", false).await;
    check(&local, "https://mcp.example.com", false).await;
    check(&any, "https://mcp.example.com", false).await;
}

/// The metadata of the resource is public: any page reads it, with or without an allowed origin.
#[tokio::test]
async fn every_page_reads_where_tokens_come_from() {
    let path = "/.well-known/oauth-protected-resource/mcp";
    for options in [HttpOptions::default(), for_page()] {
        let service = HttpService::new(server(), options.authorize(auth()));
        for origin in [PAGE, "https://other.example.com", "null"] {
            for method in [Method::GET, Method::OPTIONS] {
                let request = Request::builder().method(&method).uri(path).header("origin", origin);
                let request = request.header("access-control-request-method", "GET");
                let got = post(&service, request.body(Bytes::new()).unwrap()).await;
                assert!(got.status == 200 || got.status == 204, "{method} {origin}");
                assert_eq!(
                    header(&got, "access-control-allow-origin").as_deref(),
                    Some("*"),
                    "{method} {origin}"
                );
            }
        }
    }
}
