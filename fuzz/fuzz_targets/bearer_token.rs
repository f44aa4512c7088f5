//! The server accepts an access token only if the trusted issuer signed it, and only if it is valid for this server,
//! valid now, and has a subject. No key set makes the server panic.

#![no_main]

use antiphon::{
    serve::http::{
        HttpOptions, HttpService,
        auth::{Issuer, ResourceServer},
    },
    server::{Ctx, NoArguments, Tool},
};
use antiphon_fuzz::{NOW, block_on, server};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderValue, Request};
use http_body_util::BodyExt as _;
use libfuzzer_sys::fuzz_target;
use ring::{
    hmac,
    signature::{Ed25519KeyPair, KeyPair as _},
};
use serde_json::{Value, json};
use std::sync::LazyLock;
use tower_service::Service as _;

const RESOURCE: &str = "https://api.example.com/mcp";
const ISSUER: &str = "https://issuer.example.com";

/// The issuer's key, and another key.
static ISSUER_KEY: LazyLock<Ed25519KeyPair> = LazyLock::new(|| key(1));
static OTHER_KEY: LazyLock<Ed25519KeyPair> = LazyLock::new(|| key(2));
static SERVICE: LazyLock<HttpService> = LazyLock::new(|| service(&key_set()).expect("a key set of ours"));

fn key(byte: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[byte; 32]).expect("32 bytes are a seed")
}

/// Returns the issuer's key set: its key, and two public keys of other kinds from the examples of RFC 7517.
fn key_set() -> String {
    let ours = URL_SAFE_NO_PAD.encode(ISSUER_KEY.public_key());
    let (x, y) =
        ("MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM");
    json!({"keys": [
        {"kty": "OKP", "crv": "Ed25519", "x": ours, "kid": "ed"},
        {"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": "ec"},
        {"kty": "RSA", "e": "AQAB", "kid": "rsa", "n": URL_SAFE_NO_PAD.encode([0xa5; 256])},
    ]})
    .to_string()
}

/// Returns a server whose only tool returns the subject of its caller, or `None` if the key set is invalid.
fn service(keys: &str) -> Option<HttpService> {
    let who = Tool::new("who", async |ctx: &Ctx, _: NoArguments| {
        let claims = ctx.bearer().map(|bearer| bearer.claims());
        claims.and_then(|claims| claims.get("sub")).and_then(Value::as_str).unwrap_or_default().to_owned()
    });
    let server = server().tool(who).build().expect("one tool");
    let auth = ResourceServer::builder(RESOURCE).issuer(Issuer::new(ISSUER).jwks(keys));
    Some(HttpService::new(server, HttpOptions::default().authorize(auth.build().ok()?)))
}

/// Returns the status and the body of a call with this `Authorization`, or `None` if the header value is invalid.
fn call(service: &HttpService, authorization: &[u8]) -> Option<(u16, Vec<u8>)> {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "who", "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }}});
    let request = Request::post("/mcp")
        .header("host", "api.example.com")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "who")
        .header("authorization", HeaderValue::from_bytes(authorization).ok()?)
        .body(message.to_string())
        .expect("a request");
    Some(block_on(async {
        let response = service.clone().call(request).await.expect("no response fails");
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.expect("a body of ours").to_bytes();
        (status, body.to_vec())
    }))
}

fn check_rejected(service: &HttpService, token: &str) {
    if let Some((status, _)) = call(service, format!("Bearer {token}").as_bytes()) {
        assert!([400, 401].contains(&status), "{status} for {token}");
    }
}

fuzz_target!(|input: (u8, &[u8])| {
    let (kind, bytes) = input;
    // Random bytes contain no token of the issuer.
    if let Some((status, _)) = call(&SERVICE, bytes) {
        assert!([400, 401].contains(&status), "{status}");
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if kind == 0 {
        let Some(service) = service(text) else { return };
        for header in [r#"{"alg":"EdDSA"}"#, r#"{"alg":"ES256"}"#, r#"{"alg":"RS256"}"#] {
            check_rejected(&service, &token(header, &valid_claims(), &|_| vec![1; 64]));
        }
        return;
    }

    // Header and claims, one line each.
    let Some((header, claims)) = text.split_once('\n') else { return };
    let public = ISSUER_KEY.public_key().as_ref();
    for sign in [
        &|message: &[u8]| OTHER_KEY.sign(message).as_ref().to_vec(),
        &|message: &[u8]| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, public), message).as_ref().to_vec(),
        &|_: &[u8]| Vec::new(),
        &|_: &[u8]| vec![0; 64],
    ] as [&dyn Fn(&[u8]) -> Vec<u8>; 4]
    {
        check_rejected(&SERVICE, &token(header, claims, sign));
    }
    // A signed token with one bit changed.
    let signed = token(header, claims, &|message| ISSUER_KEY.sign(message).as_ref().to_vec());
    let mut changed = signed.clone().into_bytes();
    let at = usize::from(kind) * 31 % changed.len();
    changed[at] ^= 1;
    check_rejected(&SERVICE, std::str::from_utf8(&changed).expect("one bit of ASCII"));

    let Some((status, body)) = call(&SERVICE, format!("Bearer {signed}").as_bytes()) else { return };
    match status {
        200 => check_accepted(header, claims, &body),
        // The token is too long for a header, or its claims are invalid.
        status => assert_eq!(status, 401),
    }
});

fn token(header: &str, claims: &str, sign: &dyn Fn(&[u8]) -> Vec<u8>) -> String {
    let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let signature = URL_SAFE_NO_PAD.encode(sign(message.as_bytes()));
    format!("{message}.{signature}")
}

fn valid_claims() -> String {
    json!({"iss": ISSUER, "aud": RESOURCE, "sub": "alice", "exp": NOW + 300}).to_string()
}

/// Checks the claims of an accepted token.
fn check_accepted(header: &str, claims: &str, reply: &[u8]) {
    let [header, claims]: [Value; 2] =
        [header, claims].map(|text| serde_json::from_str(text).expect("an accepted token is of JSON"));
    assert!(["EdDSA", "Ed25519"].map(Value::from).contains(&header["alg"]));
    assert!(header.get("kid").is_none_or(|kid| kid == "ed") && header.get("crit").is_none());
    assert_eq!(claims["iss"], ISSUER);
    let is_ours = |name: &Value| {
        // Scheme and host ignore case, the path does not.
        name.as_str().is_some_and(|name| name.eq_ignore_ascii_case(RESOURCE) && name.ends_with("/mcp"))
    };
    let audience = &claims["aud"];
    assert!(is_ours(audience) || audience.as_array().is_some_and(|all| all.iter().any(is_ours)));
    assert!(claims["exp"].as_f64().is_some_and(|exp| exp > (NOW - 61) as f64));
    assert!(
        claims.get("nbf").is_none_or(|begins| begins.as_f64().is_some_and(|nbf| nbf < (NOW + 61) as f64))
    );
    let subject = claims["sub"].as_str().expect("an accepted token has a subject");
    assert!(!subject.is_empty());
    let reply: Value = serde_json::from_slice(reply).expect("a reply is JSON");
    assert_eq!(reply["result"]["content"][0]["text"], subject);
}
