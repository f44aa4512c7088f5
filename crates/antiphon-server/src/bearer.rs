//! What a bearer token stands for, once it was verified.

use crate::{Caller, refusal::Refusal};
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

/// Whether the caller may use something that needs these scopes.
///
/// They count over HTTP. Where there are no headers (stdio, memory) nobody is authenticated: who owns the process may
/// use all of it.
///
/// > servers **SHOULD** include all scopes required for the current operation in a single challenge
pub(crate) fn require_scopes(needed: &[String], caller: &Caller<'_>) -> Result<(), Refusal> {
    if needed.is_empty() || caller.headers.is_none() {
        return Ok(());
    }
    let Some(bearer) = caller.bearer() else {
        tracing::error!(
            ?needed,
            "something needs scopes, but nothing here verifies tokens: refused (use HttpOptions::authorize, or leave a \
             Bearer in the extensions of the request)"
        );
        return Err(Refusal::Scope { needed: needed.to_vec() });
    };
    if needed.iter().all(|scope| bearer.has_scope(scope)) {
        return Ok(());
    }
    tracing::info!(?needed, ?bearer, "a token has too few scopes: refused");
    Err(Refusal::Scope { needed: needed.to_vec() })
}

/// A scope as it may stand in a challenge: no spaces, quotes or backslashes.
///
/// `scope-token = 1*( %x21 / %x23-5B / %x5D-7E )` (RFC 6749, 3.3)
pub(crate) fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
}
