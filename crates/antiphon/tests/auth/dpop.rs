//! Tokens that are bound to a key, and the proofs of their requests: RFC 9449.
#![cfg(feature = "auth")]

use crate::{
    auth_support::{Key, RESOURCE, base64url, bearing, behind, claims, now, service, trusting},
    common::{
        askable,
        post::{HttpReply, post, set},
        request, runs,
    },
};
use antiphon::serve::http::{HttpService, auth::Dpop};
use antiphon_wire::Challenge;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::time::Duration;

fn hash(text: &str) -> String {
    base64url(digest(&SHA256, text.as_bytes()))
}

/// RFC 7638.
fn thumbprint(key: &Key) -> String {
    let public = key.public();
    let names = match public["kty"].as_str().unwrap() {
        "EC" => &["crv", "kty", "x", "y"][..],
        "RSA" => &["e", "kty", "n"],
        _ => &["crv", "kty", "x"],
    };
    let members: Vec<String> = names.iter().map(|name| format!("\"{name}\":{}", public[*name])).collect();
    hash(&format!("{{{}}}", members.join(",")))
}

/// A token of the issuer's key that is bound to the other key.
fn bound(issuer: &Key, key: &Key) -> String {
    let mut claims = claims("alice@app", "mcp");
    claims["cnf"] = json!({"jkt": thumbprint(key)});
    issuer.sign(&claims)
}

/// The header and the claims of a right proof for a POST with this token.
fn parts(key: &Key, token: &str) -> [Value; 2] {
    let header = json!({"typ": "dpop+jwt", "alg": key.algorithm, "jwk": key.public()});
    [header, json!({"jti": "a", "htm": "POST", "htu": RESOURCE, "iat": now(), "ath": hash(token)})]
}

async fn send(service: &HttpService, scheme: &str, token: &str, proofs: &[&str]) -> HttpReply {
    let (method, params) = askable()[0].clone();
    let mut sent = bearing(&request(1, method, params), "x");
    set(&mut sent, "authorization", &[&format!("{scheme} {token}")]);
    set(&mut sent, "dpop", proofs);
    post(service, sent).await
}

/// The error for a scheme, if the reply challenges with it.
fn error(got: &HttpReply, scheme: &str) -> Option<Option<String>> {
    let values = got.headers.get_all("www-authenticate").iter().map(|value| value.to_str().unwrap());
    let challenges = Challenge::parse_all(values);
    let found = challenges.iter().find(|challenge| challenge.is(scheme))?;
    assert!(found.get("resource_metadata").is_some(), "{found:?}");
    if scheme == "DPoP" {
        assert!(found.get("algs").unwrap().split(' ').any(|name| name == "ES256"));
    }
    Some(found.get("error").map(str::to_owned))
}

#[tokio::test]
async fn a_token_needs_the_scheme_that_it_is_bound_to() {
    let (issuer, key) = (Key::new("one", "ES256"), Key::new("k", "ES256"));
    let (free, tied) = (issuer.sign(&claims("alice@app", "mcp")), bound(&issuer, &key));
    let proof = |token: &str| {
        let [header, claims] = parts(&key, token);
        key.sign_with(&header, &claims)
    };
    let (no, bad) = (Some(None), Some(Some("invalid_token".to_owned())));
    for (rules, scheme, token, proof, status, of_bearer, of_dpop) in [
        (None, "Bearer", &free, None, 200, None, None),
        (None, "DPoP", &free, Some(proof(&free)), 401, no.clone(), None),
        (Some(Dpop::optional()), "Bearer", &free, None, 200, None, None),
        (Some(Dpop::optional()), "Basic", &free, None, 401, no.clone(), no.clone()),
        (Some(Dpop::optional()), "Bearer", &tied, None, 401, bad.clone(), bad.clone()),
        (Some(Dpop::optional()), "Bearer", &tied, Some(proof(&tied)), 401, bad.clone(), bad.clone()),
        (Some(Dpop::optional()), "DPoP", &free, Some(proof(&free)), 401, bad.clone(), bad.clone()),
        (Some(Dpop::optional()), "DPoP", &tied, Some(proof(&tied)), 200, None, None),
        (Some(Dpop::optional()), "dpop", &tied, Some(proof(&tied)), 200, None, None),
        (Some(Dpop::required()), "Bearer", &free, None, 401, None, bad.clone()),
        (Some(Dpop::required()), "Bearer", &tied, None, 401, None, bad.clone()),
        (Some(Dpop::required()), "DPoP", &tied, Some(proof(&tied)), 200, None, None),
    ] {
        let what = format!("{rules:?} {scheme} {}", token == &tied);
        let auth = trusting(&[&issuer]);
        let auth = match rules {
            Some(rules) => auth.dpop(rules),
            None => auth,
        };
        let (service, fixture) = behind(auth, |builder| builder);
        let proofs: Vec<&str> = proof.iter().map(String::as_str).collect();
        let got = send(&service, scheme, token, &proofs).await;
        got.check(&what, (status, 0));
        assert_eq!((error(&got, "Bearer"), error(&got, "DPoP")), (of_bearer, of_dpop), "{what}");
        assert_eq!(runs(&fixture.runs), usize::from(status == 200), "{what}");
    }
}

/// Checks one proof; each is for a server of its own.
async fn check(what: &str, key: &Key, change: impl FnOnce(&mut Value, &mut Value), is_good: bool) {
    let issuer = Key::new("one", "ES256");
    let token = bound(&issuer, key);
    let [mut header, mut claims] = parts(key, &token);
    change(&mut header, &mut claims);
    let (service, fixture) = behind(trusting(&[&issuer]).dpop(Dpop::optional()), |builder| builder);
    let got = send(&service, "DPoP", &token, &[&key.sign_with(&header, &claims)]).await;
    got.check(what, (if is_good { 200 } else { 401 }, 0));
    let expected = (!is_good).then(|| Some("invalid_dpop_proof".to_owned()));
    assert_eq!((error(&got, "DPoP"), runs(&fixture.runs)), (expected, usize::from(is_good)), "{what}");
    // The reason is in the log only.
    let text = String::from_utf8_lossy(&got.body);
    assert!(!["htm", "htu", "jti", "jwk"].iter().any(|word| text.contains(word)), "{text}");
}

#[tokio::test]
async fn each_part_of_a_proof_counts() {
    let key = Key::new("k", "ES256");
    check("as it is", &key, |_, _| {}, true).await;
    for (name, value, is_good) in [
        ("typ", json!("JWT"), false),
        ("typ", json!("at+jwt"), false),
        ("typ", Value::Null, false),
        ("alg", json!("none"), false),
        ("alg", json!("HS256"), false),
        ("alg", json!("ES384"), false),
        ("alg", json!("EdDSA"), false),
        ("jwk", Value::Null, false),
        ("jwk", json!("k"), false),
        ("jwk", Key::new("k", "ES256").public(), false),
        ("crit", json!(["x"]), false),
        ("kid", json!("another"), true),
    ] {
        check(&format!("{name} {value}"), &key, |header, _| header[name] = value, is_good).await;
    }
    for (name, value, is_good) in [
        ("d", json!("AA"), false),
        ("k", json!("AA"), false),
        ("use", json!("enc"), false),
        ("alg", json!("ES384"), false),
        ("y", json!("AA"), false),
        ("crv", json!("P-384"), false),
        ("x5c", json!(["AA=="]), true),
        ("kid", json!("another"), true),
    ] {
        check(&format!("jwk {name} {value}"), &key, |header, _| header["jwk"][name] = value, is_good).await;
    }
    for (name, value, is_good) in [
        ("htm", json!("GET"), false),
        ("htm", json!("post"), false),
        ("htm", Value::Null, false),
        ("htu", json!("https://api.example.com:443/mcp?page=1#top"), true),
        ("htu", json!("HTTPS://API.example.com/%6dcp"), true),
        ("htu", json!("https://api.example.com/mcp/"), false),
        ("htu", json!("https://api.example.com/other"), false),
        ("htu", json!("http://api.example.com/mcp"), false),
        ("htu", json!("/mcp"), false),
        ("htu", json!([RESOURCE]), false),
        ("ath", json!(hash("another token")), false),
        ("ath", Value::Null, false),
        ("jti", json!(""), false),
        ("jti", Value::Null, false),
        ("jti", json!("x".repeat(3000)), true),
        ("jti", json!("x".repeat(8000)), false),
        ("iat", json!(now() + 60), true),
        ("iat", json!(now() + 61), false),
        ("iat", json!(now() - 120), true),
        ("iat", json!(now() - 121), false),
        ("iat", json!(now() as f64 + 0.5), true),
        ("iat", json!(now().to_string()), false),
        ("iat", json!(-1e308), false),
        ("iat", Value::Null, false),
        ("nonce", json!("unasked"), true),
    ] {
        check(&format!("{name} {value}"), &key, |_, claims| claims[name] = value, is_good).await;
    }
    for algorithm in ["RS256", "PS256", "ES384", "EdDSA"] {
        check(algorithm, &Key::new("k", algorithm), |_, _| {}, true).await;
    }
}

#[tokio::test]
async fn a_proof_is_of_one_key_and_one_request() {
    let (issuer, key, theirs) = (Key::new("one", "ES256"), Key::new("k", "ES256"), Key::new("k", "ES256"));
    let token = bound(&issuer, &key);
    let auth = || trusting(&[&issuer]).dpop(Dpop::optional());
    let (service, fixture) = behind(auth(), |builder| builder);
    let proof = |signer: &Key, name: &str| {
        let [header, mut claims] = parts(signer, &token);
        claims["jti"] = json!(name);
        claims["iat"] = json!(now() + 60);
        signer.sign_with(&header, &claims)
    };
    let first = proof(&key, "1");
    let status = async |proofs: &[&str]| send(&service, "DPoP", &token, proofs).await.status;
    assert_eq!(status(&[]).await, 401);
    assert_eq!(status(&[&first, &proof(&key, "2")]).await, 401);
    // A thief has the token, and a key of his own.
    assert_eq!(status(&[&proof(&theirs, "3")]).await, 401);
    assert_eq!(status(&[&first]).await, 200);
    assert_eq!(status(&[&first]).await, 401);
    assert_eq!(status(&[&proof(&key, "4")]).await, 200);
    // It stays in memory for as long as its time is accepted.
    fixture.clock.advance(Duration::from_secs(180));
    assert_eq!(status(&[&first]).await, 401);
    assert_eq!(status(&[&proof(&key, "5")]).await, 200);
    fixture.clock.advance(Duration::from_secs(1));
    assert_eq!(status(&[&proof(&key, "6")]).await, 401);
}

#[tokio::test]
async fn a_nonce_is_good_at_every_instance() {
    let (issuer, key) = (Key::new("one", "ES256"), Key::new("k", "ES256"));
    let token = bound(&issuer, &key);
    let auth = |secret: u8| trusting(&[&issuer]).dpop(Dpop::required().nonces([secret; 32]));
    let (one, fixture) = behind(auth(1), |builder| builder);
    let (other, foreign) = (service(&fixture.server, auth(1)), service(&fixture.server, auth(2)));
    let mut count = 0;
    let mut ask = async |service: &HttpService, nonce: Option<&str>| {
        let [header, mut claims] = parts(&key, &token);
        count += 1;
        claims["jti"] = json!(count.to_string());
        // The clock of this client is wrong by a day.
        claims["iat"] = json!(now() + 86_400);
        if let Some(nonce) = nonce {
            claims["nonce"] = json!(nonce);
        }
        let got = send(service, "DPoP", &token, &[&key.sign_with(&header, &claims)]).await;
        let nonce = got.headers.get("dpop-nonce").map(|value| value.to_str().unwrap().to_owned());
        let is_asked = error(&got, "DPoP") == Some(Some("use_dpop_nonce".to_owned()));
        assert_eq!((is_asked, got.status), (nonce.is_some(), if is_asked { 401 } else { 200 }));
        nonce
    };
    let nonce = ask(&one, None).await.unwrap();
    assert_eq!(ask(&other, Some(&nonce)).await, None);
    assert_eq!(ask(&one, Some(&nonce)).await, None);
    assert!(ask(&foreign, Some(&nonce)).await.is_some());
    assert!(ask(&one, Some("invented")).await.is_some());
    fixture.clock.advance(Duration::from_secs(361));
    // The token has ended by now for the checks of its own: 300 seconds, and 60 of tolerance.
    let got = send(&one, "DPoP", &token, &[]).await;
    assert_eq!(error(&got, "DPoP"), Some(Some("invalid_token".to_owned())));
}

#[tokio::test]
async fn the_metadata_says_what_is_accepted() {
    let issuer = Key::new("one", "ES256");
    for (rules, expected) in
        [(None, None), (Some(Dpop::optional()), Some(false)), (Some(Dpop::required()), Some(true))]
    {
        let auth = trusting(&[&issuer]);
        let auth = match rules {
            Some(rules) => auth.dpop(rules),
            None => auth,
        };
        let (service, _) = behind(auth, |builder| builder);
        let request = http::Request::get("/.well-known/oauth-protected-resource/mcp");
        let got = post(&service, request.body(bytes::Bytes::new()).unwrap()).await;
        let document: Value = serde_json::from_slice(&got.body).unwrap();
        assert_eq!(document["dpop_bound_access_tokens_required"].as_bool(), expected);
        let algorithms = document["dpop_signing_alg_values_supported"].as_array();
        assert_eq!(algorithms.is_some_and(|all| all.contains(&json!("ES256"))), expected.is_some());
        assert!(algorithms.is_none_or(|all| all.iter().all(|name| name != "none" && name != "HS256")));
    }
}
