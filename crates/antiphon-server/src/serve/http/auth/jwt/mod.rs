//! JWT access tokens: signed by a trusted issuer, for this resource, valid now.
//!
//! Signatures are verified with *ring*, which TLS uses too. A token selects a key of its issuer by `kid`; its other headers
//! about keys (`jwk`, `jku`, `x5u`, `x5c`) are ignored.

mod algorithm;
mod claims;
mod compact;
mod fetch;
mod key_set;
mod keys;

pub use algorithm::Algorithm;

pub(crate) use claims::Audience;
pub(crate) use compact::is_jwt;

use crate::{
    Bearer,
    serve::http::auth::{
        audience::{check_scheme, check_url},
        verifier::BearerError,
    },
};
use key_set::KeySet;
use keys::{KeySource, Keys};
use serde_json::Value;
use std::{sync::Arc, time::SystemTime};
use url::Url;

/// An authorization server whose JWT access tokens are accepted.
///
/// The keys are fetched with the first token, and again every five to ten minutes while tokens arrive. A token with an unknown
/// key causes another fetch, at most one in 30 seconds; so a new key works at once, and a removed key works for ten minutes at
/// most. While the keys cannot be fetched, those of the last hour stay valid; after that, tokens cannot be checked (503). A
/// fetch takes 5 seconds and 256 KiB at most, follows no redirects, and uses plain `http` for this machine itself only.
///
/// The clock of the issuer may differ by 60 seconds in either direction.
#[derive(Clone, Debug)]
#[must_use]
pub struct Issuer {
    name: String,
    keys: KeyLocation,
    algorithms: Vec<Algorithm>,
    client_id_claim: Option<String>,
}

#[derive(Clone, Debug)]
enum KeyLocation {
    Discovery,
    Url(String),
    Text(String),
}

impl Issuer {
    /// Returns the issuer of this name: exactly the `iss` of its tokens. By default its metadata names the URL of its keys
    /// (RFC 8414, or OpenID Connect Discovery).
    pub fn new(name: impl Into<String>) -> Self {
        let algorithms = Algorithm::ALL.to_vec();
        Self { name: name.into(), keys: KeyLocation::Discovery, algorithms, client_id_claim: None }
    }

    /// Sets the URL of the keys.
    pub fn jwks_url(mut self, url: impl Into<String>) -> Self {
        self.keys = KeyLocation::Url(url.into());
        self
    }

    /// Sets the keys: a JSON Web Key Set, as text. Nothing is fetched then.
    pub fn jwks(mut self, json: impl Into<String>) -> Self {
        self.keys = KeyLocation::Text(json.into());
        self
    }

    /// Sets the accepted algorithms. Default: every [`Algorithm`].
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// Sets the claim with the id of the client, if it is neither `client_id` nor `azp`: such as `cid` or `appid`.
    pub fn client_id_claim(mut self, claim: impl Into<String>) -> Self {
        self.client_id_claim = Some(claim.into());
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn trust(self) -> Result<TrustedIssuer, String> {
        let source = match self.keys {
            KeyLocation::Text(text) => KeySource::Here(Arc::new(KeySet::parse(&text)?)),
            KeyLocation::Discovery => KeySource::Issuer(self.name.clone()),
            KeyLocation::Url(url) => {
                let parsed = Url::parse(&url).map_err(|fault| format!("`{url}` is no URL: {fault}"))?;
                check_scheme(&parsed).map_err(|fault| format!("`{url}`: {fault}"))?;
                KeySource::Url(url)
            }
        };
        check_url(&self.name)?;
        let keys = Arc::new(Keys::new(source));
        let (algorithms, client_id_claim) = (self.algorithms, self.client_id_claim);
        Ok(TrustedIssuer { name: self.name, keys, algorithms, client_id_claim })
    }
}

/// The issuers that may sign tokens for this resource.
pub(crate) struct TrustedIssuers {
    issuers: Vec<TrustedIssuer>,
    audience: Audience,
}

struct TrustedIssuer {
    name: String,
    keys: Arc<Keys>,
    algorithms: Vec<Algorithm>,
    client_id_claim: Option<String>,
}

impl TrustedIssuers {
    pub(crate) fn new(issuers: Vec<Issuer>, audience: Audience) -> Result<Self, String> {
        let issuers: Vec<TrustedIssuer> = issuers.into_iter().map(Issuer::trust).collect::<Result<_, _>>()?;
        for (at, issuer) in issuers.iter().enumerate() {
            if issuers[..at].iter().any(|other| other.name == issuer.name) {
                return Err(format!("`{}` is here twice", issuer.name));
            }
        }
        Ok(Self { issuers, audience })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.issuers.is_empty()
    }

    /// Verifies a token. The claims select the issuer, and have no other effect until one of its keys has verified them.
    pub(crate) async fn verify(&self, token: &str, now: SystemTime) -> Result<Bearer, BearerError> {
        let token = compact::parse(token).map_err(BearerError::invalid)?;
        let issuer = token.claims.get("iss").and_then(Value::as_str);
        let issuer = self
            .issuers
            .iter()
            .find(|known| Some(&*known.name) == issuer)
            .ok_or_else(|| BearerError::invalid("it is of no issuer that is trusted here (iss)"))?;
        if !issuer.algorithms.contains(&token.algorithm) {
            return Err(BearerError::invalid(
                "this issuer's tokens are not accepted with its algorithm (alg)",
            ));
        }
        let id = token.key_id.as_deref();
        let keys = issuer.keys.get(token.algorithm, id, now).await.map_err(BearerError::unavailable)?;
        let candidates = keys.candidates(token.algorithm, id);
        if candidates.is_empty() {
            return Err(BearerError::invalid("its issuer has no such key (kid)"));
        }
        let is_signed_by =
            |key: &&key_set::Key| token.algorithm.verifies(&key.public, token.message, &token.signature);
        if !candidates.iter().any(is_signed_by) {
            return Err(BearerError::invalid("its signature is wrong"));
        }
        let client_id_claim = issuer.client_id_claim.as_deref();
        claims::read(token.claims, &issuer.name, client_id_claim, &self.audience, now)
            .map_err(BearerError::invalid)
    }
}
