//! What a bearer token stands for, once it was verified.

use antiphon_seal::Principal;
use serde_json::{Map, Value};
use std::{collections::BTreeSet, fmt, sync::Arc, time::SystemTime};

/// A verified bearer token: whom it names, what it may do, until when. Never the token itself.
///
/// A [`ResourceServer`](crate::serve::http::auth::ResourceServer) leaves one in the extensions of each HTTP request;
/// an authentication layer of your own in front may do the same, together with its [`Principal`]. Cheap to clone.
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
    /// A token of this principal, without scopes, for good.
    pub fn new(principal: Principal) -> Self {
        let (scopes, claims) = (BTreeSet::new(), Map::new());
        Self(Arc::new(Verified { principal, scopes, expires_at: None, claims }))
    }

    /// The same token, with these scopes and no others.
    #[must_use]
    pub fn with_scopes<Text: Into<String>>(mut self, scopes: impl IntoIterator<Item = Text>) -> Self {
        Arc::make_mut(&mut self.0).scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// The same token, until then. Who checks a request refuses it afterwards.
    #[must_use]
    pub fn expiring_at(mut self, time: SystemTime) -> Self {
        Arc::make_mut(&mut self.0).expires_at = Some(time);
        self
    }

    /// The same token, with these claims.
    #[must_use]
    pub fn with_claims(mut self, claims: Map<String, Value>) -> Self {
        Arc::make_mut(&mut self.0).claims = claims;
        self
    }

    /// Whom it names.
    pub fn principal(&self) -> &Principal {
        &self.0.principal
    }

    /// What it may do, in order: the scopes it was given, and those that they imply.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.0.scopes.iter().map(String::as_str)
    }

    /// Whether it may do this.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.0.scopes.contains(scope)
    }

    /// Until when it is good, if that is known.
    pub fn expires_at(&self) -> Option<SystemTime> {
        self.0.expires_at
    }

    /// All that its issuer says in it: the claims of a JWT.
    pub fn claims(&self) -> &Map<String, Value> {
        &self.0.claims
    }
}

impl fmt::Debug for Bearer {
    /// No claims: they say who somebody is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bearer").field("scopes", &self.0.scopes).finish_non_exhaustive()
    }
}
