//! An issuer of access tokens: its keys, its tokens, and its HTTP server.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    reason = "each test file uses its part; a failed unwrap fails the test"
)]

pub mod issuer_server;

use antiphon::{
    serve::http::{
        HttpOptions, HttpService,
        auth::{Issuer, ResourceServer, ResourceServerBuilder},
    },
    server::{Server, ServerBuilder},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::Request;
use ring::{
    hmac,
    rand::SystemRandom,
    rsa::PublicKeyComponents,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
        KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384,
        RSA_PSS_SHA512, RsaKeyPair,
    },
};
use serde_json::{Value, json};
use std::time::UNIX_EPOCH;

use crate::common::{self, Fixture, post::HttpReply};

pub const RESOURCE: &str = "https://api.example.com/mcp";
pub const ISSUER: &str = "https://issuer.example.com";

/// A key that signs.
pub enum Secret {
    Rsa(Box<RsaKeyPair>),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    /// A key that is never accepted: an attacker makes it of a public key.
    Hmac(hmac::Key),
    Nothing,
}

/// A key with its name and its algorithm.
pub struct Key {
    pub id: &'static str,
    pub algorithm: &'static str,
    pub secret: Secret,
}

impl Key {
    pub fn new(id: &'static str, algorithm: &'static str) -> Self {
        let random = SystemRandom::new();
        let secret = match algorithm {
            "ES256" | "ES384" => {
                let of = if algorithm == "ES256" {
                    &ECDSA_P256_SHA256_FIXED_SIGNING
                } else {
                    &ECDSA_P384_SHA384_FIXED_SIGNING
                };
                let made = EcdsaKeyPair::generate_pkcs8(of, &random).unwrap();
                let pair = EcdsaKeyPair::from_pkcs8(of, made.as_ref(), &random).unwrap();
                if algorithm == "ES256" { Secret::P256(pair) } else { Secret::P384(pair) }
            }
            "EdDSA" | "Ed25519" => {
                let made = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
                Secret::Ed25519(Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap())
            }
            "none" => Secret::Nothing,
            // ring makes no RSA keys: this one was made once, for these tests alone.
            _ => Secret::Rsa(Box::new(RsaKeyPair::from_der(include_bytes!("rsa_for_tests.der")).unwrap())),
        };
        Self { id, algorithm, secret }
    }

    pub fn hmac(id: &'static str, secret: &[u8]) -> Self {
        Self { id, algorithm: "HS256", secret: Secret::Hmac(hmac::Key::new(hmac::HMAC_SHA256, secret)) }
    }

    /// The public half, as a set of keys has it.
    pub fn public(&self) -> Value {
        let ec = |curve: &str, point: &[u8]| {
            let (x, y) = point[1..].split_at((point.len() - 1) / 2);
            json!({"kty": "EC", "crv": curve, "x": base64url(x), "y": base64url(y)})
        };
        let mut public = match &self.secret {
            Secret::Rsa(pair) => {
                let PublicKeyComponents { n, e } = PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({"kty": "RSA", "n": base64url(&n), "e": base64url(&e)})
            }
            Secret::P256(pair) => ec("P-256", pair.public_key().as_ref()),
            Secret::P384(pair) => ec("P-384", pair.public_key().as_ref()),
            Secret::Ed25519(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": base64url(pair.public_key().as_ref())})
            }
            Secret::Hmac(_) | Secret::Nothing => panic!("there is no public half"),
        };
        public["kid"] = json!(self.id);
        public["use"] = json!("sig");
        public["alg"] = json!(self.algorithm);
        public
    }

    /// A token with this header and these claims.
    pub fn sign_with(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", base64url(header.to_string()), base64url(claims.to_string()));
        format!("{message}.{}", base64url(self.signature(message.as_bytes())))
    }

    /// A token of this key.
    pub fn sign(&self, claims: &Value) -> String {
        self.sign_with(&json!({"alg": self.algorithm, "kid": self.id, "typ": "at+jwt"}), claims)
    }

    pub fn signature(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.secret {
            Secret::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                match self.algorithm {
                    "RS256" => pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature),
                    "RS384" => pair.sign(&RSA_PKCS1_SHA384, &random, message, &mut signature),
                    "RS512" => pair.sign(&RSA_PKCS1_SHA512, &random, message, &mut signature),
                    "PS256" => pair.sign(&RSA_PSS_SHA256, &random, message, &mut signature),
                    "PS384" => pair.sign(&RSA_PSS_SHA384, &random, message, &mut signature),
                    _ => pair.sign(&RSA_PSS_SHA512, &random, message, &mut signature),
                }
                .unwrap();
                signature
            }
            Secret::P256(pair) | Secret::P384(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Secret::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
            Secret::Hmac(key) => hmac::sign(key, message).as_ref().to_vec(),
            Secret::Nothing => Vec::new(),
        }
    }
}

pub fn base64url(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The public halves of these keys, as their issuer publishes them.
pub fn key_set(keys: &[&Key]) -> Value {
    json!({"keys": keys.iter().map(|key| key.public()).collect::<Vec<_>>()})
}

/// Seconds since 1970 at which every test begins.
pub fn now() -> u64 {
    common::start().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// The claims of `subject@client`: for us, for five minutes.
pub fn claims(user: &str, scopes: &str) -> Value {
    let (subject, client) = user.split_once('@').unwrap();
    json!({
        "iss": ISSUER, "aud": RESOURCE, "sub": subject, "client_id": client, "scope": scopes,
        "iat": now(), "exp": now() + 300, "jti": "1",
    })
}

/// A resource server that trusts these keys of [`ISSUER`].
pub fn trusting(keys: &[&Key]) -> ResourceServerBuilder {
    ResourceServer::builder(RESOURCE).issuer(Issuer::new(ISSUER).jwks(key_set(keys).to_string()))
}

/// The fixture's server behind this resource server.
pub fn behind(
    auth: ResourceServerBuilder,
    change: impl FnOnce(ServerBuilder) -> ServerBuilder,
) -> (HttpService, Fixture) {
    let fixture = common::fixture(change);
    (service(&fixture.server, auth), fixture)
}

pub fn service(server: &Server, auth: ResourceServerBuilder) -> HttpService {
    HttpService::new(server.clone(), HttpOptions::default().authorize(auth.build().unwrap()))
}

/// A correct request with this token.
pub fn bearing(message: &Value, token: &str) -> Request<Bytes> {
    let mut request = common::post::correct(message);
    common::post::set(&mut request, "authorization", &[&format!("Bearer {token}")]);
    request
}

pub async fn send(service: &HttpService, message: &Value, token: &str) -> HttpReply {
    common::post::post(service, bearing(message, token)).await
}

/// The value of `WWW-Authenticate`.
pub fn challenge(got: &HttpReply) -> Option<&str> {
    got.headers.get("www-authenticate").map(|value| value.to_str().unwrap())
}

/// The challenge with these parameters, and where the metadata is.
pub fn expected_challenge(parameters: &str) -> String {
    let metadata = "resource_metadata=\"https://api.example.com/.well-known/oauth-protected-resource/mcp\"";
    let separator = if parameters.is_empty() { "" } else { ", " };
    format!("Bearer {parameters}{separator}{metadata}")
}
