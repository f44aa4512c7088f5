//! An issuer, as a program configures it.

use crate::{
    key_set::{Algorithm, KeySet},
    keys::{KeySource, Keys},
};
use antiphon_wire::check_secure;
use std::sync::Arc;
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
