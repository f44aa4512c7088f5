//! Responses to a request without a token or with a bad one, and the metadata that names the authorization server. No
//! JWT is needed for this.
#![cfg(feature = "http")]

use crate::common::{
    askable, fixture,
    post::{HttpReply, correct, post, post_body, set},
    request, runs, start,
};
use antiphon::{
    seal::Principal,
    serve::http::{
        HttpOptions, HttpService,
        auth::{BearerError, BearerVerifier, ResourceServer, ResourceServerBuilder, StaticTokens},
    },
    server::Bearer,
};
use http::{Method, Request};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use serde_json::{Value, json};
use std::{convert::Infallible, time::Duration};

const RESOURCE: &str = "https://api.example.com/mcp";
const METADATA: &str = "/.well-known/oauth-protected-resource/mcp";

fn tokens() -> StaticTokens {
    let alice = || Bearer::new(Principal::user("alice").with_client_id("app"));
    StaticTokens::new()
        .token("alice", alice().with_scopes(["mcp"]))
        .token("narrow", alice().with_scopes(["mcp:read"]))
        .token("broad", alice().with_scopes(["all"]))
        .token("client", Bearer::new(Principal::client("app")).with_scopes(["mcp"]))
        .token("short", alice().with_scopes(["mcp"]).expiring_at(start() + Duration::from_secs(10)))
}

fn protected() -> ResourceServerBuilder {
    ResourceServer::builder(RESOURCE)
        .verifier(tokens())
        .authorization_server("https://issuer.example.com")
        .required_scopes(["mcp"])
        .scope_implies("write", ["mcp"])
        .scope_implies("all", ["write"])
}

fn options(auth: ResourceServerBuilder) -> HttpOptions {
    HttpOptions::default().authorize(auth.build().unwrap())
}

fn message() -> Value {
    let (method, params) = askable()[0].clone();
    request(1, method, params)
}

fn challenge(got: &HttpReply) -> Option<&str> {
    got.headers.get("www-authenticate").map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn each_authorization_header_has_its_answer() {
    let place = "resource_metadata=\"https://api.example.com/.well-known/oauth-protected-resource/mcp\"";
    let with = |parameters: &str| Some(format!("Bearer {parameters}scope=\"mcp\", {place}"));
    let (none, malformed) = (with(""), with("error=\"invalid_request\", "));
    let (invalid, narrow) = (with("error=\"invalid_token\", "), with("error=\"insufficient_scope\", "));
    for (values, later, status, expected) in [
        (&[][..], 0, 401, &none),
        (&["Basic YWxpY2U6eA=="], 0, 401, &none),
        (&["alice"], 0, 401, &none),
        (&[""], 0, 401, &none),
        (&["Bearer"], 0, 400, &malformed),
        (&["Bearer "], 0, 400, &malformed),
        (&["Bearer alice bob"], 0, 400, &malformed),
        (&["Bearer alice,bob"], 0, 400, &malformed),
        (&["Bearer alicé"], 0, 400, &malformed),
        (&["Bearer alice", "Bearer alice"], 0, 400, &malformed),
        (&["Basic YWxpY2U6eA==", "Bearer alice"], 0, 400, &malformed),
        (&["Bearer nobody"], 0, 401, &invalid),
        (&["Bearer alic"], 0, 401, &invalid),
        (&["Bearer client"], 0, 401, &invalid),
        (&["Bearer narrow"], 0, 403, &narrow),
        (&["Bearer alice"], 0, 200, &None),
        (&["bearer alice"], 0, 200, &None),
        (&["BEARER  alice"], 0, 200, &None),
        (&["Bearer broad"], 0, 200, &None),
        (&["Bearer short"], 69, 200, &None),
        (&["Bearer short"], 70, 401, &invalid),
    ] {
        let fixture = fixture(|builder| builder);
        fixture.clock.advance(Duration::from_secs(later));
        let service = HttpService::new(fixture.server.clone(), options(protected()));
        let mut request = correct(&message());
        set(&mut request, "authorization", values);
        let got = post(&service, request).await;
        got.check(&format!("{values:?}"), (status, 0));
        assert_eq!(challenge(&got), expected.as_deref(), "{values:?}");
        assert_eq!(runs(&fixture.runs), usize::from(status == 200), "{values:?}");
        // Neither the token nor the reason is told.
        let text = String::from_utf8_lossy(&got.body);
        assert!(
            status == 200 || !["alic", "nobody", "expired"].iter().any(|word| text.contains(word)),
            "{text}"
        );
    }
}

/// Every message needs its token, whatever it is, and no body is waited for without one.
#[tokio::test(start_paused = true)]
async fn nothing_is_read_without_a_token() {
    let fixture = fixture(|builder| builder);
    let service = HttpService::new(fixture.server.clone(), options(protected()));
    for message in [
        message(),
        request(1, "server/discover", json!({})),
        request(1, "tools/list", json!({})),
        request(1, "subscriptions/listen", json!({"notifications": {}})),
        request(1, "no/such", json!({})),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
        json!("no message"),
    ] {
        post(&service, correct(&message)).await.check(&message.to_string(), (401, 0));
    }
    // With a token this one would be waited for, and be 408.
    let never = || {
        let never = futures_util::stream::pending::<Result<Frame<bytes::Bytes>, Infallible>>();
        StreamBody::new(never).boxed_unsync()
    };
    let mut refused = post_body(&service, correct(&message()).map(|_| never())).await;
    assert_eq!(refused.headers.remove("connection").unwrap(), "close");
    refused.check("no token", (401, 0));
    let mut waited = correct(&message());
    set(&mut waited, "authorization", &["Bearer alice"]);
    post_body(&service, waited.map(|_| never())).await.check("a token", (408, 0));
}

/// Its client opens it again with the token it has then.
#[tokio::test(start_paused = true)]
async fn a_subscription_ends_with_its_token() {
    let fixture = fixture(|builder| builder.list_changed(true));
    let service = HttpService::new(fixture.server.clone(), options(protected()));
    let listen = request(1, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let mut listen = correct(&listen);
    set(&mut listen, "authorization", &["Bearer short"]);
    let began = tokio::time::Instant::now();
    let got = post(&service, listen).await;
    assert_eq!(began.elapsed().as_secs(), 70);
    let text = String::from_utf8_lossy(&got.body);
    assert!(text.contains("notifications/subscriptions/acknowledged") && !text.contains("result"), "{text}");
}

/// The checks before the token do not depend on it.
#[tokio::test]
async fn where_the_token_stands_on_the_ladder() {
    let service = HttpService::new(fixture(|builder| builder).server, options(protected()));
    for (what, header, value, status) in [
        ("host", "host", "evil.example.com", 421),
        ("the host of the resource", "host", "api.example.com", 401),
        ("a page of the resource", "origin", "https://api.example.com", 401),
        ("origin", "origin", "https://evil.example.com", 403),
        ("accept", "accept", "text/html", 406),
        ("the token", "mcp-method", "tools/list", 401),
    ] {
        let mut request = correct(&message());
        set(&mut request, header, &[value]);
        let got = post(&service, request).await;
        assert_eq!((got.status, challenge(&got).is_some()), (status, status == 401), "{what}");
    }
}

async fn ask(options: HttpOptions, method: Method, path: &str) -> HttpReply {
    let service = HttpService::new(fixture(|builder| builder).server, options);
    // From anywhere: a page in a browser may ask, under any name of the host.
    let request = Request::builder().method(method).uri(path).header("origin", "https://page.example.com");
    post(&service, request.body(bytes::Bytes::new()).unwrap()).await
}

#[tokio::test]
async fn the_metadata_names_the_issuer_of_tokens() {
    let auth = || protected().scopes_supported(["mcp", "write"]).name("Orders");
    let got = ask(options(auth()), Method::GET, METADATA).await;
    assert_eq!((got.status, &got.headers["content-type"]), (200, &"application/json".parse().unwrap()));
    assert_eq!(
        got.json(),
        json!({
            "resource": RESOURCE,
            "authorization_servers": ["https://issuer.example.com"],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["mcp", "write"],
            "resource_name": "Orders",
        })
    );
    for (method, status) in [
        (Method::GET, 200),
        (Method::HEAD, 200),
        (Method::OPTIONS, 204),
        (Method::POST, 405),
        (Method::DELETE, 405),
    ] {
        let got = ask(options(auth()), method.clone(), METADATA).await;
        assert_eq!(got.status, status, "{method}");
        assert_eq!(got.headers["access-control-allow-origin"], "*", "{method}");
        assert_eq!(got.headers.contains_key("allow"), status == 405, "{method}");
        assert_eq!(got.headers.contains_key("access-control-allow-headers"), status == 204, "{method}");
    }
    let elsewhere = "/.well-known/oauth-protected-resource";
    assert_eq!(ask(options(auth()), Method::GET, elsewhere).await.status, 405);
    // Who has nobody to name serves none, and names none.
    let alone = || ResourceServer::builder(RESOURCE).verifier(tokens());
    assert_eq!(alone().build().unwrap().metadata_path(), None);
    assert_eq!(ask(options(alone()), Method::GET, METADATA).await.status, 405);
    let service = HttpService::new(fixture(|builder| builder).server, options(alone()));
    assert_eq!(challenge(&post(&service, correct(&message())).await), Some("Bearer"));
    assert_eq!(ask(HttpOptions::default(), Method::GET, METADATA).await.status, 405);
}

/// Introspection that is down.
struct Down;

impl BearerVerifier for Down {
    async fn verify(&self, token: &str, resource: &str) -> Result<Bearer, BearerError> {
        assert_eq!((token, resource), ("alice", RESOURCE));
        Err(BearerError::unavailable("the database is down"))
    }
}

#[tokio::test]
async fn a_verifier_that_fails_is_a_503() {
    let fixture = fixture(|builder| builder);
    let auth = ResourceServer::builder(RESOURCE).verifier(Down);
    let service = HttpService::new(fixture.server.clone(), options(auth));
    let mut request = correct(&message());
    set(&mut request, "authorization", &["Bearer alice"]);
    let got = post(&service, request).await;
    got.check("down", (503, 0));
    assert_eq!((challenge(&got), &got.headers["retry-after"]), (None, &"5".parse().unwrap()));
    assert!(!String::from_utf8_lossy(&got.body).contains("database"));
    assert_eq!(runs(&fixture.runs), 0);
}

#[tokio::test]
async fn what_shows_no_secret() {
    let bearer = Bearer::new(Principal::user("alice"))
        .with_claims(json!({"email": "alice@example.com"}).as_object().unwrap().clone());
    let auth = protected().build().unwrap();
    let shown = format!("{:?} {:?} {:?} {:?}", tokens(), bearer, auth, options(protected()));
    assert!(!shown.contains("alice") && !shown.contains("broad"), "{shown}");
}
