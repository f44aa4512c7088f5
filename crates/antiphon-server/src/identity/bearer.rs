//! Verified bearer tokens.

use antiphon_seal::Principal;
use serde_json::{Map, Value};
use std::{collections::BTreeSet, fmt, sync::Arc, time::SystemTime};

/// A verified bearer token: its principal, scopes, expiry and claims. It does not hold the token itself.
///
/// A [`ResourceServer`](crate::serve::http::auth::ResourceServer) puts one into the extensions of each HTTP request. An
/// authentication layer of your own may do the same, together with its [`Principal`]. Cheap to clone.
#[derive(Clone)]
pub struct Bearer(Arc<Verified>);

#[derive(Clone)]
struct Verified {
    principal: Principal,
    scopes: BTreeSet<String>,
    expires_at: Option<SystemTime>,
    claims: Map<String, Value>,
}

impl Bearer {
    /// Returns a token of this principal, without scopes and without expiry.
    pub fn new(principal: Principal) -> Self {
        let (scopes, claims) = (BTreeSet::new(), Map::new());
        Self(Arc::new(Verified { principal, scopes, expires_at: None, claims }))
    }

    /// Replaces the scopes.
    #[must_use]
    pub fn with_scopes<Text: Into<String>>(mut self, scopes: impl IntoIterator<Item = Text>) -> Self {
        Arc::make_mut(&mut self.0).scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the expiry. Requests with the token are refused after that time.
    #[must_use]
    pub fn expiring_at(mut self, time: SystemTime) -> Self {
        Arc::make_mut(&mut self.0).expires_at = Some(time);
        self
    }

    /// Replaces the claims.
    #[must_use]
    pub fn with_claims(mut self, claims: Map<String, Value>) -> Self {
        Arc::make_mut(&mut self.0).claims = claims;
        self
    }

    /// Returns the principal.
    pub fn principal(&self) -> &Principal {
        &self.0.principal
    }

    /// Returns the scopes in order: the granted ones, and those that they imply.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.0.scopes.iter().map(String::as_str)
    }

    /// Returns whether the token has this scope.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.0.scopes.contains(scope)
    }

    /// Returns the expiry, if it is known.
    pub fn expires_at(&self) -> Option<SystemTime> {
        self.0.expires_at
    }

    /// Returns all claims of the issuer, such as those of a JWT.
    pub fn claims(&self) -> &Map<String, Value> {
        &self.0.claims
    }
}

impl fmt::Debug for Bearer {
    /// Omits the claims: they identify a person.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bearer").field("scopes", &self.0.scopes).finish_non_exhaustive()
    }
}
