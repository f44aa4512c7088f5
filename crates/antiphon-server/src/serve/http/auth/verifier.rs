//! The token in the `Authorization` header of a request, and verifiers of tokens that are no JWTs.

use crate::identity::Bearer;
use futures_util::future::BoxFuture;
use http::{HeaderMap, header::AUTHORIZATION};
use std::{error::Error as StdError, fmt, future::Future};

/// An `Authorization` header without a readable token.
pub(crate) struct MalformedAuthorization;

/// A token as it was sent.
pub(crate) struct Presented<'a> {
    #[cfg_attr(not(feature = "auth"), allow(dead_code, reason = "without JWTs there is one scheme"))]
    pub(crate) scheme: Scheme,
    pub(crate) token: &'a str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Bearer,
    #[cfg_attr(not(feature = "auth"), allow(dead_code, reason = "without JWTs there is one scheme"))]
    Dpop,
}

/// Returns the token; `None` without an `Authorization` header, or with a scheme that the server does not accept.
pub(crate) fn presented(
    headers: &HeaderMap,
    accepts_dpop: bool,
) -> Result<Option<Presented<'_>>, MalformedAuthorization> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => value.to_str().map_err(|_| MalformedAuthorization)?,
        // Two readers could read two callers.
        (Some(_), Some(_)) => return Err(MalformedAuthorization),
    };
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    let scheme = match scheme {
        bearer if bearer.eq_ignore_ascii_case("bearer") => Scheme::Bearer,
        dpop if dpop.eq_ignore_ascii_case("dpop") && accepts_dpop => Scheme::Dpop,
        _ => return Ok(None),
    };
    let token = token.trim_matches(' ');
    let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
    if is_token { Ok(Some(Presented { scheme, token })) } else { Err(MalformedAuthorization) }
}

/// Verifies bearer tokens that are no JWTs of a known issuer: opaque ones, by introspection or by a table of your own.
///
/// ```
/// use antiphon::{seal::Principal, server::Bearer};
/// use antiphon::serve::http::auth::{BearerError, BearerVerifier};
/// # struct Reply { active: bool, aud: String, sub: String, client_id: String, scope: String }
/// # struct Introspection;
/// # impl Introspection { async fn ask(&self, _: &str) -> Result<Reply, std::io::Error> { unimplemented!() } }
///
/// impl BearerVerifier for Introspection {
///     async fn verify(&self, token: &str, resource: &str) -> Result<Bearer, BearerError> {
///         let reply = self.ask(token).await.map_err(BearerError::unavailable)?;
///         if !reply.active || reply.aud != resource {
///             return Err(BearerError::invalid("not active, or not for us"));
///         }
///         let principal = Principal::user(reply.sub).with_client_id(reply.client_id);
///         Ok(Bearer::new(principal).with_scopes(reply.scope.split(' ')))
///     }
/// }
/// ```
pub trait BearerVerifier: Send + Sync + 'static {
    /// Returns the principal and the scopes of this token, if it is valid now *and was issued for this resource*: nothing else
    /// compares the audience. Called for every request: cache what may be cached.
    ///
    /// > MCP servers **MUST** validate that access tokens were issued specifically for them as the intended audience
    fn verify(&self, token: &str, resource: &str)
    -> impl Future<Output = Result<Bearer, BearerError>> + Send;
}

/// The reason why a token is refused. The cause is logged, and never sent to the caller.
#[derive(Debug)]
#[non_exhaustive]
pub enum BearerError {
    /// The token is not valid: 401.
    Invalid(Box<dyn StdError + Send + Sync>),
    /// The token cannot be checked now: 503.
    Unavailable(Box<dyn StdError + Send + Sync>),
}

impl BearerError {
    /// Returns the error for a token that is not valid.
    pub fn invalid(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Invalid(cause.into())
    }

    /// Returns the error for a token that cannot be checked now.
    pub fn unavailable(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Unavailable(cause.into())
    }
}

impl fmt::Display for BearerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(cause) => write!(f, "the token is not good: {cause}"),
            Self::Unavailable(cause) => write!(f, "the token cannot be checked: {cause}"),
        }
    }
}

impl StdError for BearerError {}

/// A fixed set of tokens, for tests and for a server on one's own machine.
///
/// ```
/// use antiphon::{seal::Principal, serve::http::auth::StaticTokens, server::Bearer};
///
/// let tokens = StaticTokens::new()
///     .token("alice's secret", Bearer::new(Principal::user("alice")).with_scopes(["orders:write"]))
///     .token("bob's secret", Bearer::new(Principal::user("bob")));
/// ```
#[derive(Clone, Default)]
pub struct StaticTokens(Vec<(String, Bearer)>);

impl StaticTokens {
    /// Returns an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a token.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>, bearer: Bearer) -> Self {
        self.0.push((token.into(), bearer));
        self
    }
}

impl BearerVerifier for StaticTokens {
    async fn verify(&self, token: &str, _: &str) -> Result<Bearer, BearerError> {
        let found = self.0.iter().find(|(known, _)| is_same(known.as_bytes(), token.as_bytes()));
        found.map(|(_, bearer)| bearer.clone()).ok_or_else(|| BearerError::invalid("an unknown token"))
    }
}

impl fmt::Debug for StaticTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StaticTokens").field(&self.0.len()).finish()
    }
}

/// Compares two secrets in a time that does not depend on where they differ.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

/// A verifier of any type.
pub(crate) trait AnyVerifier: Send + Sync {
    fn verify_boxed<'a>(
        &'a self,
        token: &'a str,
        resource: &'a str,
    ) -> BoxFuture<'a, Result<Bearer, BearerError>>;
}

impl<V: BearerVerifier> AnyVerifier for V {
    fn verify_boxed<'a>(
        &'a self,
        token: &'a str,
        resource: &'a str,
    ) -> BoxFuture<'a, Result<Bearer, BearerError>> {
        Box::pin(self.verify(token, resource))
    }
}
