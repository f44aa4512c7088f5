//! Tokens that no issuer makes on purpose, signed or not: what two readers could read as two things is read as nothing.
#![cfg(feature = "auth")]

use crate::auth_support::*;
use crate::common::{
    askable,
    post::{correct, post},
    request, runs,
};
use antiphon::serve::http::auth::Issuer;
use serde_json::{Value, json};

fn message() -> Value {
    let (method, params) = askable()[0].clone();
    request(1, method, params)
}

/// A token of these very bytes.
fn raw(key: &Key, header: impl AsRef<[u8]>, claims: impl AsRef<[u8]>) -> String {
    let message = format!("{}.{}", base64url(header), base64url(claims));
    format!("{message}.{}", base64url(key.signature(message.as_bytes())))
}

async fn check(what: &str, keys: &[&Key], token: &str, good: bool) {
    let (service, fixture) = behind(trusting(keys), |builder| builder);
    let got = send(&service, &message(), token).await;
    got.check(what, if good { (200, 0) } else { (401, 0) });
    let refused = (!good).then(|| expected_challenge("error=\"invalid_token\""));
    assert_eq!(challenge(&got), refused.as_deref(), "{what}");
    assert_eq!(runs(&fixture.runs), usize::from(good), "{what}");
}

#[tokio::test]
async fn claims_that_can_be_read_in_two_ways() {
    let key = Key::new("one", "ES256");
    let header = r#"{"alg":"ES256","kid":"one"}"#;
    let good = claims("alice@app", "").to_string();
    let plus = |more: &str| format!("{},{more}}}", good.trim_end_matches('}'));
    let deep = |levels: usize| plus(&format!("\"x\":{}{}", "[".repeat(levels), "]".repeat(levels)));
    for (what, claims, is_good) in [
        ("as they are", good.clone(), true),
        ("two subjects", plus(r#""sub":"bob""#), false),
        ("two subjects, one of them escaped", plus(r#""\u0073ub":"bob""#), false),
        ("the same twice", plus(r#""sub":"alice""#), false),
        ("two audiences", plus(&format!("\"aud\":\"{RESOURCE}\"")), false),
        ("two ends", plus(r#""exp":9000000000"#), false),
        ("two things within another", plus(r#""act":{"sub":"a","sub":"b"}"#), false),
        ("half a character", plus(r#""name":"\ud800""#), false),
        ("a number that is none", plus(r#""x":1e400"#), false),
        ("a number of many digits", plus(r#""oid":123456789012345678901234567890"#), true),
        ("120 levels", deep(120), true),
        ("200 levels", deep(200), false),
        ("5,000 levels", deep(5_000), false),
        ("5,000 levels that nobody closes", format!("{{\"x\":{}", "[".repeat(5_000)), false),
        ("something behind it", format!("{good}{{}}"), false),
        ("a mark of byte order", format!("\u{feff}{good}"), false),
        ("a comma too many", format!("{},}}", good.trim_end_matches('}')), false),
        ("space around it", format!(" \r\n{good}\t"), true),
    ] {
        check(what, &[&key], &raw(&key, header, claims), is_good).await;
    }
    let mut bytes = good.clone().into_bytes();
    let at = good.find("alice").unwrap();
    bytes[at] = 0xff;
    check("claims that are no text", &[&key], &raw(&key, header, bytes), false).await;
}

#[tokio::test]
async fn times_audiences_and_names_at_their_edges() {
    let key = Key::new("one", "ES256");
    for (what, name, value, good) in [
        ("the last end there is", "exp", json!(9_223_372_036_854_774_784_i64), true),
        ("one behind it", "exp", json!(u64::MAX), false),
        ("1e308", "exp", json!(1e308), false),
        ("an end that is null", "exp", Value::Null, false),
        ("an end that is true", "exp", json!(true), false),
        ("an end in a list", "exp", json!([now() + 300]), false),
        ("a beginning after all time", "nbf", json!(1e308), false),
        ("a beginning that is null", "nbf", Value::Null, false),
        ("issued tomorrow", "iat", json!(now() + 86_400), true),
        ("an audience in a list in a list", "aud", json!([[RESOURCE]]), false),
        ("an audience as a name", "aud", json!({RESOURCE: RESOURCE}), false),
        ("an audience and more", "aud", json!(format!("{RESOURCE} https://x.example")), false),
        ("an audience and a zero", "aud", json!(format!("{RESOURCE}\0")), false),
        ("an audience with its port", "aud", json!("https://api.example.com:443/mcp"), false),
        ("an audience with a user", "aud", json!("https://x@api.example.com/mcp"), false),
        ("an audience that is escaped", "aud", json!("https://api.example.com/%6dcp"), false),
        ("an audience by a detour", "aud", json!("https://api.example.com/x/../mcp"), false),
        ("an audience with a line", "aud", json!(format!("{RESOURCE}\n")), false),
        ("a longer issuer", "iss", json!(format!("{ISSUER}.evil.example")), false),
        ("an issuer in capitals", "iss", json!(ISSUER.to_uppercase()), false),
        ("a long subject", "sub", json!("x".repeat(9_000)), true),
        ("a subject of two lines", "sub", json!("alice\r\nx: y"), true),
        ("a subject that is null", "sub", Value::Null, false),
        ("subjects", "sub", json!(["alice"]), false),
        ("scopes within a list", "scope", json!([["mcp"]]), false),
        ("scopes as names", "scope", json!({"mcp": true}), false),
    ] {
        let mut claims = claims("alice@app", "");
        claims[name] = value;
        check(what, &[&key], &key.sign(&claims), good).await;
    }
}

/// A scope that only looks like the one that is needed.
#[tokio::test]
async fn scopes_by_another_spelling() {
    let key = Key::new("one", "ES256");
    for scopes in
        [json!("x\tmcp"), json!("mcp\u{a0}x"), json!("MCP"), json!("mcp:read"), json!(["mcp "]), json!("")]
    {
        let (service, fixture) = behind(trusting(&[&key]).required_scopes(["mcp"]), |builder| builder);
        let mut claims = claims("alice@app", "");
        claims["scope"] = scopes.clone();
        let got = send(&service, &message(), &key.sign(&claims)).await;
        got.check(&scopes.to_string(), (403, 0));
        let expected = expected_challenge("error=\"insufficient_scope\", scope=\"mcp\"");
        assert_eq!((challenge(&got), runs(&fixture.runs)), (Some(&*expected), 0), "{scopes}");
    }
}

#[tokio::test]
async fn headers_that_point_elsewhere() {
    let (key, second) = (Key::new("one", "ES256"), Key::new("two", "ES256"));
    let theirs = Key::new("one", "ES256");
    let claims = claims("alice@app", "");
    let elsewhere = json!({
        "alg": "ES256", "kid": "one", "jwk": theirs.public(), "jku": "https://evil.example/keys",
        "x5u": "https://evil.example/chain", "x5c": ["AA=="], "x5t": "AA",
    });
    let both = [&key, &second];
    check("what is not looked at, signed by us", &both, &key.sign_with(&elsewhere, &claims), true).await;
    check("what is not looked at, signed by them", &both, &theirs.sign_with(&elsewhere, &claims), false)
        .await;
    for kid in [
        json!("../../../../dev/null"),
        json!("http://evil.example/keys"),
        json!("one' OR '1'='1"),
        json!("ONE"),
        json!("one\0"),
        json!(" one"),
        json!(""),
        json!("x".repeat(10_000)),
        json!(["one"]),
        Value::Null,
    ] {
        let header = json!({"alg": "ES256", "kid": kid});
        check(&format!("kid {kid:.40}"), &both, &key.sign_with(&header, &claims), false).await;
    }
    check("no kid, and two keys", &both, &key.sign_with(&json!({"alg": "ES256"}), &claims), false).await;
    let text = claims.to_string();
    for (what, header) in [
        ("two algorithms", r#"{"alg":"none","alg":"ES256","kid":"one"}"#),
        ("two algorithms, one of them escaped", r#"{"\u0061lg":"none","alg":"ES256","kid":"one"}"#),
        ("two kids", r#"{"alg":"ES256","kid":"two","kid":"one"}"#),
        ("nothing critical", r#"{"alg":"ES256","kid":"one","crit":[]}"#),
        ("a critical b64", r#"{"alg":"ES256","kid":"one","crit":["b64"],"b64":true}"#),
        ("crit that is null", r#"{"alg":"ES256","kid":"one","crit":null}"#),
        ("an algorithm and a space", r#"{"alg":"ES256 ","kid":"one"}"#),
        ("algorithms", r#"{"alg":["ES256"],"kid":"one"}"#),
        ("something behind it", r#"{"alg":"ES256","kid":"one"}{}"#),
    ] {
        check(what, &both, &raw(&key, header, &text), false).await;
    }
    // Signed as RFC 7797 has it: over the claims themselves.
    let header = base64url(r#"{"alg":"ES256","kid":"one","b64":false}"#);
    let signature = base64url(key.signature(format!("{header}.{text}").as_bytes()));
    check("b64 false", &both, &format!("{header}.{}.{signature}", base64url(&text)), false).await;
}

/// L, the order of the group of Ed25519, in little-endian.
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

#[tokio::test]
async fn signatures_of_another_form() {
    for algorithm in ["RS256", "PS256", "ES256", "ES384", "EdDSA"] {
        let key = Key::new("one", algorithm);
        let token = key.sign(&claims("alice@app", ""));
        let (message, text) = token.rsplit_once('.').unwrap();
        let signature = key.signature(message.as_bytes());
        let length = signature.len();
        let half = length / 2;
        let mut forms = vec![
            ("nothing", Vec::new()),
            ("zeros", vec![0; length]),
            ("ones", [vec![0; half - 1], vec![1], vec![0; half - 1], vec![1]].concat()),
            ("all bits", vec![0xff; length]),
            ("a byte less", signature[..length - 1].to_vec()),
            ("a byte more", [&signature[..], &[0]].concat()),
            ("a zero before it", [&[0][..], &signature].concat()),
            ("twice", [&signature[..], &signature].concat()),
        ];
        if algorithm == "ES256" {
            // As X.509 writes it; a zero keeps each number positive.
            let number = |bytes: &[u8]| [&[2, 33, 0][..], bytes].concat();
            let der = [&[0x30, 70][..], &number(&signature[..32]), &number(&signature[32..])].concat();
            forms.push(("DER", der));
        }
        if algorithm == "EdDSA" {
            let (mut other, mut carry) = (signature.clone(), 0_u16);
            for (byte, more) in other[32..].iter_mut().zip(ORDER) {
                carry += u16::from(*byte) + u16::from(more);
                *byte = carry.to_le_bytes()[0];
                carry >>= 8;
            }
            forms.push(("once around the group", other));
        }
        for (what, form) in forms {
            let forged = format!("{message}.{}", base64url(form));
            check(&format!("{algorithm}: {what}"), &[&key], &forged, false).await;
        }
        // The same bytes by another text: bits that belong to no byte.
        if !length.is_multiple_of(3) {
            let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
            let last = alphabet.iter().position(|byte| Some(byte) == text.as_bytes().last()).unwrap();
            let other = char::from(alphabet[last | 1]);
            let forged = format!("{}{other}", &token[..token.len() - 1]);
            check(&format!("{algorithm}: bits of no byte"), &[&key], &forged, false).await;
        }
    }
}

/// Keys that are not for this, in a set that has one which is.
#[tokio::test]
async fn keys_that_are_not_for_tokens() {
    let (good, other) = (Key::new("good", "ES256"), Key::new("other", "RS256"));
    let with = |name: &'static str, value: Value| {
        let mut key = other.public();
        key[name] = value;
        key
    };
    let short = other.public()["n"].as_str().unwrap()[..172].to_owned();
    for (what, published, is_good) in [
        ("as it is", other.public(), true),
        ("for encryption", with("use", json!("enc")), false),
        ("a use in capitals", with("use", json!("SIG")), false),
        ("operations without verify", with("key_ops", json!(["sign", "encrypt"])), false),
        ("operations with verify", with("key_ops", json!(["verify"])), true),
        ("for another algorithm", with("alg", json!("RS512")), false),
        ("for encryption by its algorithm", with("alg", json!("RSA-OAEP")), false),
        ("a shared secret by its algorithm", with("alg", json!("HS256")), false),
        ("another type", with("kty", json!("EC")), false),
        ("1,024 bits", with("n", json!(short)), false),
        ("an exponent of 1", with("e", json!("AQ")), false),
        ("an even exponent", with("e", json!("Ag")), false),
        ("padding", with("e", json!("AQAB==")), false),
    ] {
        let set = json!({"keys": [published, good.public(), {"kty": "new"}, 1]}).to_string();
        let auth = antiphon::serve::http::auth::ResourceServer::builder(RESOURCE)
            .issuer(Issuer::new(ISSUER).jwks(set));
        let (service, _) = behind(auth, |builder| builder);
        let token = other.sign(&claims("alice@app", ""));
        send(&service, &message(), &token).await.check(what, if is_good { (200, 0) } else { (401, 0) });
        let token = good.sign(&claims("alice@app", ""));
        send(&service, &message(), &token).await.check(&format!("{what}, by the other"), (200, 0));
    }
    // One name for two keys: each counts for its own kind alone.
    let (rsa, ec, theirs) = (Key::new("one", "RS256"), Key::new("one", "ES256"), Key::new("one", "ES256"));
    let claims = claims("alice@app", "");
    let secret = Key::hmac("one", rsa.public().to_string().as_bytes());
    for (what, token, good) in [
        ("RSA", rsa.sign(&claims), true),
        ("ES256", ec.sign(&claims), true),
        ("somebody else", theirs.sign(&claims), false),
        ("a shared secret", secret.sign(&claims), false),
    ] {
        check(what, &[&rsa, &ec], &token, good).await;
    }
}

/// A token counts in the `Authorization` header only.
#[tokio::test]
async fn a_token_in_another_place() {
    let key = Key::new("one", "ES256");
    let token = key.sign(&claims("alice@app", ""));
    let (service, fixture) = behind(trusting(&[&key]), |builder| builder);
    let none = expected_challenge("");
    for (what, uri, header) in [
        ("the query", format!("/mcp?access_token={token}"), None),
        ("a cookie", "/mcp".to_owned(), Some(("cookie", format!("access_token={token}")))),
        ("a header for proxies", "/mcp".to_owned(), Some(("proxy-authorization", format!("Bearer {token}")))),
        ("another scheme", "/mcp".to_owned(), Some(("authorization", format!("DPoP {token}")))),
        ("a tab behind the scheme", "/mcp".to_owned(), Some(("authorization", format!("Bearer\t{token}")))),
    ] {
        let mut request = correct(&message());
        *request.uri_mut() = uri.parse().unwrap();
        if let Some((name, value)) = header {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        let got = post(&service, request).await;
        got.check(what, (401, 0));
        assert_eq!(challenge(&got), Some(&*none), "{what}");
    }
    // A second place does not help the first: the form of RFC 6750 counts alone.
    let mut request = bearing(&message(), &key.sign(&claims("bob@app", "")));
    *request.uri_mut() = format!("/mcp?access_token={token}").parse().unwrap();
    assert_eq!(post(&service, request).await.status, 200);
    assert_eq!(runs(&fixture.runs), 1);
}

/// Beside a verifier of other tokens: a JWT is of its issuer, however its header is spaced, and what is none is not.
#[tokio::test]
async fn which_of_two_is_asked() {
    use antiphon::{seal::Principal, serve::http::auth::StaticTokens, server::Bearer};
    let key = Key::new("one", "ES256");
    let claims = claims("alice@app", "").to_string();
    let opaque = || Bearer::new(Principal::user("bob").with_client_id("app"));
    let foreign = raw(&Key::new("one", "ES256"), r#"{"alg":"ES256","kid":"one"}"#, &claims);
    for (what, token, status) in [
        ("a JWT", raw(&key, r#"{"alg":"ES256","kid":"one"}"#, &claims), 200),
        ("a JWT with a space", raw(&key, r#"{ "alg":"ES256","kid":"one"}"#, &claims), 200),
        (
            "a JWT of several lines",
            raw(&key, "{\n  \"alg\": \"ES256\",\n  \"kid\": \"one\"\n}", &claims),
            200,
        ),
        ("a JWT with a tab", raw(&key, "{\t\"alg\":\"ES256\",\"kid\":\"one\"}", &claims), 200),
        ("a JWT behind a space", raw(&key, " {\"alg\":\"ES256\",\"kid\":\"one\"}", &claims), 200),
        ("a forged JWT that the verifier knows", foreign.clone(), 401),
        ("an opaque one", "opaque".to_owned(), 200),
        ("an opaque one of three parts", "eye.of.newt".to_owned(), 200),
        ("an opaque one that nobody knows", "eye.of.toad".to_owned(), 401),
    ] {
        let known = StaticTokens::new()
            .token("opaque", opaque())
            .token("eye.of.newt", opaque())
            .token(foreign.clone(), opaque());
        let (service, _) = behind(trusting(&[&key]).verifier(known), |builder| builder);
        send(&service, &message(), &token).await.check(what, (status, 0));
    }
}
