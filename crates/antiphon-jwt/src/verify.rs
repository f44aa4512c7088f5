//! The issuers of tokens, as a program configures them, and the verification of a token, from its compact form on.

use crate::{
    AccessToken, Audience, claims,
    key_set::{self, Algorithm, KeySet},
    keys::{KeySource, Keys},
};
use antiphon_wire::check_secure;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Map, Value};
use std::{
    error::Error,
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};
use url::Url;

/// An authorization server whose JWT access tokens are accepted.
///
/// The keys are fetched with the first token, and again every five to ten minutes while tokens arrive. A token with an unknown
/// key causes another fetch, at most one in 30 seconds; so a new key works at once, and a removed key works for ten minutes at
/// most. While the keys cannot be fetched, those of the last hour stay valid; after that, tokens cannot be checked (503). A
/// fetch takes 5 seconds and 256 KiB at most, follows no redirects, and uses plain `http` for this machine itself only.
///
/// A server accepts a difference of 60 seconds between its clock and that of the issuer, in either direction.
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

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads the keys, or the URL that has them.
    pub(crate) fn trust(self) -> Result<TrustedIssuer, String> {
        let source = match self.keys {
            KeyLocation::Text(text) => KeySource::Here(Arc::new(KeySet::parse(&text)?)),
            KeyLocation::Discovery => KeySource::Issuer(self.name.clone()),
            KeyLocation::Url(url) => {
                check_location(&url)?;
                KeySource::Url(url)
            }
        };
        check_location(&self.name)?;
        let keys = Arc::new(Keys::new(source));
        let (algorithms, client_id_claim) = (self.algorithms, self.client_id_claim);
        Ok(TrustedIssuer { name: self.name, keys, algorithms, client_id_claim })
    }
}

/// An issuer, with its keys.
pub(crate) struct TrustedIssuer {
    pub(crate) name: String,
    pub(crate) keys: Arc<Keys>,
    pub(crate) algorithms: Vec<Algorithm>,
    pub(crate) client_id_claim: Option<String>,
}

fn check_location(url: &str) -> Result<(), String> {
    let parsed = Url::parse(url).map_err(|fault| format!("`{url}` is no URL: {fault}"))?;
    check_secure(parsed.scheme(), parsed.host_str()).map_err(|fault| format!("`{url}`: {fault}"))
}

/// The issuers that may sign tokens for this resource.
pub struct TrustedIssuers {
    issuers: Vec<TrustedIssuer>,
    audience: Audience,
    clock_skew: Duration,
}

impl TrustedIssuers {
    /// Returns the verifier of tokens of these issuers for this audience. The clocks of the issuers may differ from the one of this
    /// machine by `clock_skew`, in either direction. Nothing is fetched yet.
    ///
    /// # Errors
    /// If an issuer is there twice, or its settings are invalid. The text says which.
    pub fn new(issuers: Vec<Issuer>, audience: Audience, clock_skew: Duration) -> Result<Self, String> {
        let issuers: Vec<TrustedIssuer> = issuers.into_iter().map(Issuer::trust).collect::<Result<_, _>>()?;
        for (at, issuer) in issuers.iter().enumerate() {
            if issuers[..at].iter().any(|other| other.name == issuer.name) {
                return Err(format!("`{}` is here twice", issuer.name));
            }
        }
        Ok(Self { issuers, audience, clock_skew })
    }

    /// Returns true if there is no issuer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.issuers.is_empty()
    }

    /// Verifies a token. The claims select the issuer, and have no other effect until one of its keys has verified them.
    ///
    /// # Errors
    /// [`TokenError`], which says if the token is not valid, or cannot be verified now.
    pub async fn verify(&self, token: &str, now: SystemTime) -> Result<AccessToken, TokenError> {
        let token = parse(token).map_err(TokenError::Invalid)?;
        let issuer = token.claims.get("iss").and_then(Value::as_str);
        let issuer = self
            .issuers
            .iter()
            .find(|known| Some(&*known.name) == issuer)
            .ok_or(TokenError::Invalid("it is of no issuer that is trusted here (iss)"))?;
        if !issuer.algorithms.contains(&token.algorithm) {
            return Err(TokenError::Invalid(
                "this issuer's tokens are not accepted with its algorithm (alg)",
            ));
        }
        let id = token.key_id.as_deref();
        let keys = issuer.keys.get(token.algorithm, id, now).await.map_err(TokenError::Unavailable)?;
        let candidates = keys.candidates(token.algorithm, id);
        if candidates.is_empty() {
            return Err(TokenError::Invalid("its issuer has no such key (kid)"));
        }
        let is_signed_by =
            |key: &&key_set::Key| token.algorithm.verifies(&key.public, token.message, &token.signature);
        if !candidates.iter().any(is_signed_by) {
            return Err(TokenError::Invalid("its signature is wrong"));
        }
        let client_id_claim = issuer.client_id_claim.as_deref();
        claims::read(token.claims, &issuer.name, client_id_claim, &self.audience, now, self.clock_skew)
            .map_err(TokenError::Invalid)
    }
}

/// The reason why a token is refused: a text for the log, which holds nothing of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenError {
    /// The token is not valid.
    Invalid(&'static str),
    /// The token cannot be verified now: there are no keys.
    Unavailable(&'static str),
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Invalid(cause) | Self::Unavailable(cause)) = self;
        f.write_str(cause)
    }
}

impl Error for TokenError {}

impl fmt::Debug for TrustedIssuers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.issuers.iter().map(|issuer| &*issuer.name);
        f.debug_list().entries(names).finish()
    }
}

// The compact form of a JWT: header, claims and signature in base64url, separated by dots.

/// A token whose signature was not checked yet.
pub(super) struct Unverified<'a> {
    pub(crate) algorithm: Algorithm,
    key_id: Option<String>,
    pub(crate) claims: Map<String, Value>,
    /// The signed text: header and claims as they were sent.
    pub(crate) message: &'a [u8],
    pub(crate) signature: Vec<u8>,
}

/// Returns whether a token has the form of a JWT: three parts, the first of which begins like a JSON object or white space.
#[must_use]
pub fn is_jwt(token: &str) -> bool {
    let mut parts = token.split('.');
    let header = parts.next().and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
    header.is_some_and(|bytes| bytes.trim_ascii_start().first() == Some(&b'{')) && parts.count() == 2
}

/// Reads a token.
///
/// # Errors
/// A text for the log, which holds nothing of the token.
pub(crate) fn parse(token: &str) -> Result<Unverified<'_>, &'static str> {
    let parts = parts(token)?;
    // > the resource server MUST verify that the "typ" header value is "at+jwt" or "application/at+jwt" (RFC 9068, 4)
    // Many issuers say `JWT`, or nothing; an ID token, which says the same, is for another audience.
    match parts.header.get("typ").map(Value::as_str) {
        None => {}
        Some(Some(kind))
            if ["at+jwt", "application/at+jwt", "jwt"].contains(&&*kind.to_ascii_lowercase()) => {}
        Some(_) => return Err("it is another kind of JWT (typ)"),
    }
    let key_id = match parts.header.get("kid") {
        None => None,
        Some(Value::String(id)) => Some(id.clone()),
        Some(_) => return Err("its kid is no text"),
    };
    let algorithm = parts.algorithm()?;
    let Parts { claims, message, signature, .. } = parts;
    Ok(Unverified { algorithm, key_id, claims, message, signature })
}

/// The parts of a JWT of any kind.
pub(crate) struct Parts<'a> {
    pub(crate) header: Map<String, Value>,
    pub(crate) claims: Map<String, Value>,
    /// The signed text: header and claims as they were sent.
    pub(crate) message: &'a [u8],
    pub(crate) signature: Vec<u8>,
}

impl Parts<'_> {
    pub(crate) fn algorithm(&self) -> Result<Algorithm, &'static str> {
        let algorithm = self.header.get("alg").and_then(Value::as_str).and_then(Algorithm::parse);
        algorithm.ok_or("its algorithm is none that is accepted (alg)")
    }
}

/// Splits a JWT.
///
/// # Errors
/// A text for the log, which holds nothing of the token.
pub(crate) fn parts(token: &str) -> Result<Parts<'_>, &'static str> {
    let (message, signature) = token.rsplit_once('.').ok_or("not a JWT")?;
    let (header, claims) = message.split_once('.').ok_or("not a JWT")?;
    // Five parts are an encrypted one.
    if claims.contains('.') {
        return Err("not a signed JWT");
    }
    let header = object(header).ok_or("its header is no JSON object")?;
    let claims = object(claims).ok_or("its claims are no JSON object")?;
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| "its signature is not base64url")?;
    // An extension that must be understood: none is here.
    if header.contains_key("crit") {
        return Err("it has critical extensions");
    }
    Ok(Parts { header, claims, message: message.as_bytes(), signature })
}

/// Reads a part as a JSON object. A duplicate name is an error, because two readers could read two values.
fn object(part: &str) -> Option<Map<String, Value>> {
    let bytes = URL_SAFE_NO_PAD.decode(part).ok()?;
    let text = std::str::from_utf8(&bytes).ok()?;
    antiphon_seal::canonical::check(text).ok()?;
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_set::KeySet;
    use proptest::prelude::*;

    proptest! {
        /// Any input is read or refused.
        #[test]
        fn what_is_sent_breaks_nothing(
            header in r#"(\{"alg":"(ES256|RS256|none|x)"(,"(kid|typ|crit)":("x"|1|null|\[\]))?\}|.{0,8})"#,
            claims in r#"(\{("(iss|exp)":(1|"x"|\{\}))?\}|.{0,8})"#,
            tail in r"[A-Za-z0-9_.=-]{0,12}",
        ) {
            let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part));
            for token in [format!("{header}.{claims}.{tail}"), format!("{header}.{tail}"), tail] {
                if let Ok(read) = parse(&token) {
                    prop_assert_eq!(token.as_bytes().strip_prefix(read.message).map(|rest| rest[0]), Some(b'.'));
                    prop_assert!(is_jwt(&token));
                }
            }
        }

        #[test]
        fn what_is_published_breaks_nothing(
            key in r#"\{"kty":"(RSA|EC|OKP|oct)"(,"crv":"(P-256|P-384|Ed25519)")?(,"x":"[A-Za-z0-9_-]{0,44}")?(,"y":"[A-Za-z0-9_-]{0,44}")?(,"n":"[A-Za-z0-9_-]{0,400}","e":"AQAB")?\}"#,
        ) {
            let set = KeySet::parse(&format!("{{\"keys\": [{key}]}}"));
            let Ok(set) = set else { return Ok(()) };
            for algorithm in Algorithm::ALL {
                for key in set.candidates(algorithm, None) {
                    prop_assert!(!algorithm.verifies(&key.public, b"message", b"signature"));
                }
            }
        }
    }
}
