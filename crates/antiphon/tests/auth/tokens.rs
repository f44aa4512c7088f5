//! Validation of access tokens: each part of a JWT that can be wrong, alone.
#![cfg(feature = "auth")]

use crate::common;

use crate::auth_support::*;
use crate::common::{askable, request, runs};
use antiphon::serve::http::auth::{Algorithm, Issuer, ResourceServer};
use serde_json::{Value, json};
use std::time::Duration;

fn message() -> Value {
    let (method, params) = askable()[0].clone();
    request(1, method, params)
}

/// Sends this token at this moment, and checks that it counts, or is refused without a word why.
async fn check(what: &str, key: &Key, token: &str, later: i64, good: bool) {
    let (service, fixture) = behind(trusting(&[key]), |builder| builder);
    if later >= 0 {
        fixture.clock.advance(Duration::from_secs(later.unsigned_abs()));
    } else {
        fixture.clock.turn_back(Duration::from_secs(later.unsigned_abs()));
    }
    let got = send(&service, &message(), token).await;
    got.check(what, if good { (200, 0) } else { (401, 0) });
    let refused = (!good).then(|| expected_challenge("error=\"invalid_token\""));
    assert_eq!(challenge(&got), refused.as_deref(), "{what}");
    assert_eq!(runs(&fixture.runs), usize::from(good), "{what}: the handler ran, or did not");
}

#[tokio::test]
async fn every_algorithm_with_a_key_of_its_own() {
    for algorithm in
        ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA", "Ed25519"]
    {
        let key = Key::new("one", algorithm);
        let token = key.sign(&claims("alice@app", ""));
        check(algorithm, &key, &token, 0, true).await;
        // One bit of the claims, and one of the signature.
        let (message, signature) = token.rsplit_once('.').unwrap();
        let other = key.sign(&claims("bob@app", ""));
        let forged = format!("{}.{signature}", other.rsplit_once('.').unwrap().0);
        check(&format!("{algorithm}: the signature of other claims"), &key, &forged, 0, false).await;
        let mut bytes = key.signature(message.as_bytes());
        bytes[3] ^= 1;
        let forged = format!("{message}.{}", base64url(bytes));
        check(&format!("{algorithm}: a bit of the signature"), &key, &forged, 0, false).await;
        let stranger = if algorithm.starts_with("ES") { algorithm } else { "ES256" };
        let forged = Key::new("one", stranger).sign(&claims("alice@app", ""));
        check(&format!("{algorithm}: somebody else's key"), &key, &forged, 0, false).await;
    }
}

#[tokio::test]
async fn no_header_talks_the_verifier_into_another_key() {
    let (rsa, ec) = (Key::new("one", "RS256"), Key::new("one", "ES256"));
    let alice = claims("alice@app", "");
    let modulus = rsa.public()["n"].as_str().unwrap().to_owned();
    let jwk = rsa.public().to_string();
    let header = |alg: &str| json!({"alg": alg, "kid": "one", "typ": "at+jwt"});
    for (what, token) in [
        ("alg none", Key::new("one", "none").sign(&alice)),
        ("alg None", Key::new("one", "none").sign_with(&header("None"), &alice)),
        ("alg none with a signature", rsa.sign_with(&header("none"), &alice)),
        ("a public key as a shared secret", Key::hmac("one", jwk.as_bytes()).sign(&alice)),
        ("a modulus as a shared secret", Key::hmac("one", modulus.as_bytes()).sign(&alice)),
        ("an empty shared secret", Key::hmac("one", b"").sign(&alice)),
        ("RS384 said of RS256", rsa.sign_with(&header("RS384"), &alice)),
        ("PS256 said of RS256", rsa.sign_with(&header("PS256"), &alice)),
        ("ES256 said of RS256", rsa.sign_with(&header("ES256"), &alice)),
        ("ES256 of another key", ec.sign(&alice)),
        ("small letters", rsa.sign_with(&header("rs256"), &alice)),
        ("no alg", rsa.sign_with(&json!({"kid": "one"}), &alice)),
        ("alg is no text", rsa.sign_with(&json!({"alg": 1, "kid": "one"}), &alice)),
        ("its own key", {
            let header = json!({"alg": "ES256", "kid": "one", "jwk": ec.public()});
            ec.sign_with(&header, &alice)
        }),
        ("a critical extension", {
            let header = json!({"alg": "RS256", "kid": "one", "crit": ["x"], "x": 1});
            rsa.sign_with(&header, &alice)
        }),
        ("an ID token by its type", {
            rsa.sign_with(&json!({"alg": "RS256", "kid": "one", "typ": "id_token+jwt"}), &alice)
        }),
        ("a type that is no text", rsa.sign_with(&json!({"alg": "RS256", "kid": "one", "typ": 1}), &alice)),
        ("another kid", rsa.sign_with(&json!({"alg": "RS256", "kid": "two"}), &alice)),
        ("a kid that is no text", rsa.sign_with(&json!({"alg": "RS256", "kid": 1}), &alice)),
    ] {
        check(what, &rsa, &token, 0, false).await;
    }
    for (what, header) in [
        ("JWT", json!({"alg": "RS256", "kid": "one", "typ": "JWT"})),
        ("no type", json!({"alg": "RS256", "kid": "one"})),
        ("the long type", json!({"alg": "RS256", "kid": "one", "typ": "application/at+jwt"})),
        ("type in capitals", json!({"alg": "RS256", "kid": "one", "typ": "AT+JWT"})),
        ("no kid, and one key", json!({"alg": "RS256"})),
    ] {
        check(what, &rsa, &rsa.sign_with(&header, &alice), 0, true).await;
    }
}

type Change = fn(&mut Value);

/// Each change of the claims, how many seconds later the token comes, and whether it still counts.
const CLAIMS: &[(&str, Change, i64, bool)] = &[
    ("nothing", |_| (), 0, true),
    ("another issuer", |claims| claims["iss"] = json!("https://evil.example.com"), 0, false),
    ("an issuer with a slash", |claims| claims["iss"] = json!("https://issuer.example.com/"), 0, false),
    ("no issuer", |claims| remove(claims, "iss"), 0, false),
    ("an issuer that is no text", |claims| claims["iss"] = json!([ISSUER]), 0, false),
    ("another audience", |claims| claims["aud"] = json!("https://other.example.com/mcp"), 0, false),
    ("the audience of an ID token", |claims| claims["aud"] = json!("app"), 0, false),
    ("our host without the path", |claims| claims["aud"] = json!("https://api.example.com"), 0, false),
    ("several audiences", |claims| claims["aud"] = json!(["https://a.example", RESOURCE]), 0, true),
    ("several, none of them us", |claims| claims["aud"] = json!(["https://a.example", "x"]), 0, false),
    ("an empty list", |claims| claims["aud"] = json!([]), 0, false),
    ("an audience in capitals", |claims| claims["aud"] = json!("HTTPS://API.example.com/mcp"), 0, true),
    ("no audience", |claims| remove(claims, "aud"), 0, false),
    ("an audience that is a number", |claims| claims["aud"] = json!(1), 0, false),
    ("no end", |claims| remove(claims, "exp"), 0, false),
    ("an end that is a text", |claims| claims["exp"] = json!("1900000000"), 0, false),
    ("an end before all time", |claims| claims["exp"] = json!(-1), 0, false),
    ("an end after all time", |claims| claims["exp"] = json!(1e300), 0, false),
    ("an end with a fraction", |claims| claims["exp"] = json!(now() as f64 + 0.5), 60, true),
    ("359 seconds later", |_| (), 359, true),
    ("360 seconds later", |_| (), 360, false),
    ("begins now", |claims| claims["nbf"] = json!(now()), 0, true),
    ("begins in a minute", |claims| claims["nbf"] = json!(now() + 60), 0, true),
    ("begins in 61 seconds", |claims| claims["nbf"] = json!(now() + 61), 0, false),
    ("begins now, a minute earlier", |claims| claims["nbf"] = json!(now()), -60, true),
    ("begins now, 61 seconds earlier", |claims| claims["nbf"] = json!(now()), -61, false),
    ("a beginning that is a text", |claims| claims["nbf"] = json!("0"), 0, false),
    ("no subject", |claims| remove(claims, "sub"), 0, false),
    ("an empty subject", |claims| claims["sub"] = json!(""), 0, false),
    ("a subject that is a number", |claims| claims["sub"] = json!(1), 0, false),
    ("the client as subject", |claims| claims["sub"] = json!("app"), 0, false),
    ("no client", |claims| remove(claims, "client_id"), 0, true),
    ("a client that is a number", |claims| claims["client_id"] = json!(1), 0, false),
    ("scopes that are a number", |claims| claims["scope"] = json!(1), 0, false),
    ("claims that are no object", |claims| *claims = json!([claims.clone()]), 0, false),
];

fn remove(claims: &mut Value, name: &str) {
    claims.as_object_mut().unwrap().remove(name).unwrap();
}

#[tokio::test]
async fn each_claim_alone() {
    let key = Key::new("one", "ES256");
    for (what, change, later, good) in CLAIMS {
        let mut claims = claims("alice@app", "");
        change(&mut claims);
        check(what, &key, &key.sign(&claims), *later, *good).await;
    }
}

#[tokio::test]
async fn what_is_no_token_at_all() {
    let key = Key::new("one", "ES256");
    let good = key.sign(&claims("alice@app", ""));
    let (message, signature) = good.rsplit_once('.').unwrap();
    let (header, payload) = message.split_once('.').unwrap();
    let twice = r#"{"alg":"ES256","kid":"one","alg":"ES256"}"#;
    let twice = format!("{}.{payload}", base64url(twice));
    for (what, token) in [
        ("a word", "secret".to_owned()),
        ("dots", "..".to_owned()),
        ("two parts", message.to_owned()),
        ("four parts", format!("{good}.x")),
        ("five parts", format!("{header}.{payload}.{payload}.{payload}.{signature}")),
        ("no signature", format!("{message}.")),
        ("padding", format!("{good}=")),
        ("standard base64", format!("{message}.{}", signature.replace(['-', '_'], "+") + "+")),
        ("a header that is no JSON", format!("{}.{payload}.{signature}", base64url("x"))),
        ("a header that is no text", format!("{}.{payload}.{signature}", base64url([0xff, 0xfe]))),
        ("claims that are no JSON", format!("{header}.{}.{signature}", base64url("x"))),
        ("a name that is there twice", format!("{twice}.{}", base64url(key.signature(twice.as_bytes())))),
        ("17 KiB", {
            let mut claims = claims("alice@app", "");
            claims["more"] = json!("x".repeat(17 * 1024));
            key.sign(&claims)
        }),
    ] {
        check(what, &key, &token, 0, false).await;
    }
}

#[tokio::test]
async fn issuers_are_kept_apart() {
    let (ours, theirs) = (Key::new("same", "ES256"), Key::new("same", "ES256"));
    let other = "https://other.example.com/tenant";
    let auth = || {
        trusting(&[&ours])
            .issuer(Issuer::new(other).jwks(key_set(&[&theirs]).to_string()).algorithms([Algorithm::Es256]))
    };
    let of = |issuer: &str| {
        let mut claims = claims("alice@app", "");
        claims["iss"] = json!(issuer);
        claims
    };
    for (what, token, good) in [
        ("ours", ours.sign(&of(ISSUER)), true),
        ("theirs", theirs.sign(&of(other)), true),
        ("ours, signed by them", theirs.sign(&of(ISSUER)), false),
        ("theirs, signed by us", ours.sign(&of(other)), false),
    ] {
        let (service, _) = behind(auth(), |builder| builder);
        send(&service, &message(), &token).await.check(what, if good { (200, 0) } else { (401, 0) });
    }
    // The same name at two issuers is two people.
    let (service, fixture) = behind(auth(), |builder| builder);
    let state = common::state_of(&send(&service, &message(), &ours.sign(&of(ISSUER))).await.json());
    let (method, params) = askable()[0].clone();
    let retry = common::with(&params, json!({"requestState": state, "inputResponses": common::answers()}));
    let got = send(&service, &request(9, method, retry), &theirs.sign(&of(other))).await;
    got.check("alice of another issuer", (400, -32602));
    assert_eq!(got.json()["error"]["data"]["reason"], "invalid_request_state");
    assert_eq!(runs(&fixture.runs), 1);
}

#[tokio::test]
async fn only_the_algorithms_that_an_issuer_uses() {
    let (rsa, ec) = (Key::new("r", "RS256"), Key::new("e", "ES256"));
    let issuer = Issuer::new(ISSUER).jwks(key_set(&[&rsa, &ec]).to_string()).algorithms([Algorithm::Rs256]);
    let (service, _) = behind(ResourceServer::builder(RESOURCE).issuer(issuer), |builder| builder);
    for (key, expected) in [(&rsa, (200, 0)), (&ec, (401, 0))] {
        send(&service, &message(), &key.sign(&claims("alice@app", ""))).await.check(key.algorithm, expected);
    }
}

#[tokio::test]
async fn an_audience_by_another_name_and_a_client_by_another_claim() {
    let key = Key::new("one", "ES256");
    let issuer = Issuer::new(ISSUER).jwks(key_set(&[&key]).to_string()).client_id_claim("cid");
    let auth = ResourceServer::builder(RESOURCE).issuer(issuer).accept_audience("api://orders");
    let (service, _) = behind(auth, |builder| builder);
    for (what, aud, cid, expected) in [
        ("by that name", "api://orders", "app", (200, 0)),
        ("by our own", RESOURCE, "app", (200, 0)),
        ("by one like it", "api://Orders", "app", (401, 0)),
        ("the client itself, by its claim", RESOURCE, "alice", (401, 0)),
    ] {
        let mut claims = claims("alice@another", "");
        (claims["aud"], claims["cid"]) = (json!(aud), json!(cid));
        send(&service, &message(), &key.sign(&claims)).await.check(what, expected);
    }
}

#[tokio::test]
async fn a_client_of_its_own_is_taken_where_the_server_says_so() {
    let key = Key::new("one", "ES256");
    let lenient = |builder: antiphon::server::ServerBuilder| builder.allow_client_principal(true);
    for (what, change, expected) in [
        ("the client as subject", (|claims| claims["sub"] = json!("app")) as Change, (200, 0)),
        ("no subject", |claims| remove(claims, "sub"), (200, 0)),
        (
            "neither",
            |claims| {
                remove(claims, "sub");
                remove(claims, "client_id")
            },
            (401, 0),
        ),
    ] {
        let mut claims = claims("alice@app", "");
        change(&mut claims);
        let (service, _) = behind(trusting(&[&key]), lenient);
        send(&service, &message(), &key.sign(&claims)).await.check(what, expected);
    }
}

#[test]
fn what_cannot_be_built() {
    let key = Key::new("one", "ES256");
    let good = || Issuer::new(ISSUER).jwks(key_set(&[&key]).to_string());
    let mut encrypts = key.public();
    encrypts["use"] = json!("enc");
    let shared = json!({"kty": "oct", "kid": "one", "k": "c2VjcmV0"});
    let builder = || ResourceServer::builder(RESOURCE);
    for (what, built, says) in [
        ("nobody", builder(), "there is no verifier"),
        ("no URL", ResourceServer::builder("orders").issuer(good()), "orders"),
        ("plain http", ResourceServer::builder("http://api.example.com").issuer(good()), "https"),
        ("an issuer over plain http", builder().issuer(Issuer::new("http://issuer.example.com")), "https"),
        ("keys over plain http", builder().issuer(good().jwks_url("http://keys.example.com/jwks")), "https"),
        ("an issuer twice", builder().issuer(good()).issuer(good()), "twice"),
        ("no set", builder().issuer(good().jwks("{}")), "Key Set"),
        ("no keys", builder().issuer(good().jwks(r#"{"keys": []}"#)), "none of its keys"),
        ("a shared secret", builder().issuer(good().jwks(json!({"keys": [shared]}).to_string())), "none of"),
        ("not for this", builder().issuer(good().jwks(json!({"keys": [encrypts]}).to_string())), "none of"),
        ("an audience that is empty", builder().issuer(good()).accept_audience(""), "audience"),
        ("a scope of two words", builder().issuer(good()).required_scopes(["a b"]), "a b"),
        ("a scope with a quote", builder().issuer(good()).scopes_supported(["a\""]), "scope"),
        ("a scope that breaks the line", builder().issuer(good()).scope_implies("a", ["b\r\n"]), "scope"),
    ] {
        let error = built.build().unwrap_err().to_string();
        assert!(error.contains(says), "{what}: {error}");
    }
}
