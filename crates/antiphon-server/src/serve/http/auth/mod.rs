//! Authorization over HTTP: this server as an OAuth resource server.
//!
//! ```
//! # #[cfg(feature = "auth")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use antiphon::serve::http::{HttpOptions, auth::{Issuer, ResourceServer}};
//!
//! let auth = ResourceServer::builder("https://api.example.com/mcp")
//!     .issuer(Issuer::new("https://issuer.example.com"))
//!     .scopes_supported(["mcp", "orders:write"])
//!     .required_scopes(["mcp"])
//!     .build()?;
//! let options = HttpOptions::default().authorize(auth);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "auth"))]
//! # fn main() {}
//! ```
//!
//! The token of each request is checked after the rest of its head, and before its body is read: on every leg, with every
//! HTTP method. The result is a [`Bearer`]; its issuer, subject and client id are the principal that sealed
//! state is bound to.
//!
//! | the request has | status | `WWW-Authenticate: Bearer` |
//! |---|---|---|
//! | no token | 401 | `scope`, `resource_metadata` |
//! | two `Authorization` headers, or one with `Bearer` and no token | 400 | `error="invalid_request"` .. |
//! | a token that is forged, expired, of another issuer, for another resource, or without a user | 401 | `error="invalid_token"` .. |
//! | a token without the [required scopes](ResourceServerBuilder::required_scopes) | 403 | `error="insufficient_scope"` .. |
//! | a token without the scopes of this tool, prompt or resource | 403, in JSON | `error="insufficient_scope"` .. |
//! | a token that cannot be checked now, because no keys can be fetched | 503 | none, but `Retry-After` |
//! | a bound token without a proof, or with a bad one, where `Dpop` is on | 401 | `invalid_token`, or `DPoP error="invalid_dpop_proof"` |
//! | a proof without a nonce of this server, where nonces are on | 401, `DPoP-Nonce` | `DPoP error="use_dpop_nonce"` |
//! | more proofs of one key than can be remembered | 429 | none, but `Retry-After` |
//!
//! The log has the reason why a token was refused, but not the token. The client does not get the reason.
//!
//! JWTs need the feature `auth`: `Issuer`. A [`BearerVerifier`] of your own checks other tokens. `AuthLayer` (feature `layers`) and
//! [`ResourceServer::verify`] verify in front of the endpoint.

#[cfg(feature = "auth")]
mod dpop;
#[cfg(feature = "layers")]
mod layer;
mod resource;
mod resource_server;
mod verifier;

#[cfg(feature = "auth")]
#[doc(inline)]
pub use antiphon_jwt::{Algorithm, Issuer};
#[cfg(feature = "auth")]
pub use dpop::Dpop;
#[cfg(feature = "layers")]
pub use layer::{AuthLayer, AuthService};
pub use resource_server::{ResourceServer, ResourceServerBuilder, ResourceServerError};
pub use verifier::{BearerError, BearerVerifier, StaticTokens};

use crate::{
    identity::{Bearer, Caller, PeerAddress, RequestHead},
    serve::http::{ReplyBody, body::Rejection},
    server::message_service::MessageService,
};
use antiphon_seal::Principal;
use futures_util::future::BoxFuture;
use http::{
    Extensions, HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header as name,
    request::Parts,
};
use hyper::body::Bytes;
use resource::{CLOCK_SKEW, challenge};
use resource_server::Metadata;
use std::{error::Error as StdError, fmt, sync::Arc, time::SystemTime};
use verifier::{MalformedAuthorization, presented};

/// Proof that a request may be read and answered: its token is valid, or none is required. Only [`authorize`] makes one.
/// Reading a body and naming a caller require it, for every method and revision.
#[derive(Clone, Copy)]
pub(crate) struct Authorized {
    /// The time at which the token expires.
    until: Option<SystemTime>,
    address: Option<PeerAddress>,
}

impl Authorized {
    /// Returns the caller of the request.
    pub(crate) fn caller<'a>(&self, parts: &'a Parts) -> Caller<'a> {
        Caller { address: self.address, ..Caller::http(&parts.headers, &parts.extensions) }
    }

    /// Returns the caller of a request whose head its handlers share.
    pub(crate) fn caller_of<'a>(&self, head: &'a Arc<RequestHead>) -> Caller<'a> {
        Caller::of_head(head, self.address)
    }

    /// Resolves when the token expires: an open stream ends then, and the client opens another with a new token.
    pub(crate) fn expired(&self, server: &impl MessageService) -> BoxFuture<'static, ()> {
        match self.until.and_then(|until| until.checked_add(CLOCK_SKEW)) {
            Some(until) => {
                Box::pin(tokio::time::sleep(until.duration_since(server.now()).unwrap_or_default()))
            }
            None => Box::pin(std::future::pending()),
        }
    }
}

/// Checks the token of a request of any method, and stores its [`Bearer`] and [`Principal`] in the extensions of the request.
/// Without `auth`, the extensions of a layer in front stay; a token that this crate verified there is checked like one of the endpoint.
///
/// > authorization **MUST** be included in every HTTP request from client to server
pub(crate) async fn authorize(
    parts: &mut Parts,
    auth: Option<&ResourceServer>,
    server: &impl MessageService,
    address: Option<PeerAddress>,
) -> Result<Authorized, Rejection> {
    let verified = parts.extensions.get::<Verified>().cloned();
    let auth = match (auth, &verified) {
        (Some(auth), _) => auth,
        (None, Some(verified)) => verified.parts().1,
        (None, None) => return Ok(Authorized { until: None, address }),
    };
    let bearer = match verified.as_ref().and_then(|verified| verified.bearer_of(auth)) {
        Some(bearer) => bearer.clone(),
        // Boxed, to keep the future of a request without authentication small.
        None => Box::pin(check(&parts.method, &parts.headers, auth, server.now())).await?,
    };
    let principal = bearer.principal();
    let names_somebody =
        principal.has_subject() || (server.accepts_client_principals() && principal.client_id().is_some());
    if !names_somebody {
        // All users of one client software would be one.
        let about = "the token names no user; allow_client_principal() accepts the client's name";
        return Err(invalid(auth).about(about));
    }
    parts.extensions.insert::<Principal>(bearer.principal().clone());
    let until = bearer.expires_at();
    parts.extensions.insert::<Bearer>(bearer);
    Ok(Authorized { until, address })
}

/// Checks the token of a request, and its required scopes.
async fn check(
    method: &Method,
    headers: &HeaderMap,
    auth: &ResourceServer,
    now: SystemTime,
) -> Result<Bearer, Rejection> {
    let unauthorized = |status, error, text: &str| Rejection {
        challenge: Some(auth.challenge(error, &[])),
        ..Rejection::new(status, text)
    };
    let scheme = if auth.requires_dpop() { "DPoP" } else { "Bearer" };
    let presented = match presented(headers, auth.accepts_dpop()) {
        Ok(Some(presented)) => presented,
        Ok(None) => {
            let text = format!("This server needs an access token: Authorization: {scheme} ..");
            return Err(unauthorized(StatusCode::UNAUTHORIZED, None, &text));
        }
        // > Malformed authorization request
        Err(MalformedAuthorization) => {
            let text = format!("Authorization must be there once, as: {scheme}, a space, a token");
            return Err(unauthorized(StatusCode::BAD_REQUEST, Some("invalid_request"), &text));
        }
    };
    let bearer = match auth.verify_token(presented.token, now).await {
        Ok(bearer) => bearer,
        Err(BearerError::Invalid(cause)) => {
            return Err(invalid(auth).about(&cause));
        }
        // Not a 401: the token may be valid, and its owner should not fetch another.
        Err(BearerError::Unavailable(cause)) => {
            let text = "Access tokens cannot be checked now: try again later";
            let rejection = Rejection::new(StatusCode::SERVICE_UNAVAILABLE, text).about(&cause);
            return Err(Rejection { retry_after: Some("5"), ..rejection });
        }
    };
    #[cfg(feature = "auth")]
    if let Some(possession) = auth.possession() {
        possession
            .check(&presented, &bearer, method, headers, now)
            .map_err(|fault| without_possession(auth, fault))?;
    }
    #[cfg(not(feature = "auth"))]
    let _ = method;
    if !auth.required().iter().all(|scope| bearer.has_scope(scope)) {
        let text = "The access token may not use this server";
        let rejection = unauthorized(StatusCode::FORBIDDEN, Some("insufficient_scope"), text);
        return Err(rejection.about(&format!("needed scopes: {}", auth.required().join(" "))));
    }
    Ok(bearer)
}

/// Returns the rejection of a token that is not valid.
///
/// > Invalid or expired tokens **MUST** receive a HTTP 401 response.
fn invalid(auth: &ResourceServer) -> Rejection {
    let text = "The access token is not good for this server";
    let challenge = Some(auth.challenge(Some("invalid_token"), &[]));
    Rejection { challenge, ..Rejection::new(StatusCode::UNAUTHORIZED, text) }
}

/// Returns the rejection of a valid token whose sender does not show that it has its key.
#[cfg(feature = "auth")]
fn without_possession(auth: &ResourceServer, fault: dpop::PossessionFault) -> Rejection {
    use dpop::PossessionFault;
    let refused = |error, text: &str| Rejection {
        challenge: Some(auth.challenge(Some(error), &[])),
        ..Rejection::new(StatusCode::UNAUTHORIZED, text)
    };
    match fault {
        PossessionFault::Token(cause) => invalid(auth).about(cause),
        PossessionFault::Proof(cause) => {
            refused("invalid_dpop_proof", "The DPoP proof is not good for this request").about(cause)
        }
        PossessionFault::Nonce(nonce) => {
            let text = "The DPoP proof needs the nonce of this response";
            Rejection { dpop_nonce: Some(Box::new(nonce)), ..refused("use_dpop_nonce", text) }
        }
        PossessionFault::TooMany => {
            let text = "Too many requests with this DPoP key: try again later";
            Rejection { retry_after: Some("60"), ..Rejection::new(StatusCode::TOO_MANY_REQUESTS, text) }
        }
    }
}

/// Returns the rejection that ends a stream whose token has expired. It is not sent: the response began before.
pub(crate) fn token_expired() -> Rejection {
    Rejection::new(StatusCode::UNAUTHORIZED, "The access token is over")
}

/// Returns the challenge of a reply that names the missing scopes.
pub(crate) fn scope_challenge(auth: Option<&ResourceServer>, scopes: &[String]) -> HeaderValue {
    let error = Some("insufficient_scope");
    match auth {
        Some(auth) => auth.challenge(error, scopes),
        None => challenge(error, &scopes.iter().map(String::as_str).collect::<Vec<_>>(), None, None),
    }
}

/// Returns the metadata of the protected resource; `None` for a request of another path. Public, also for web pages.
pub(crate) fn metadata(parts: &Parts, auth: Option<&ResourceServer>) -> Option<Response<ReplyBody>> {
    let Metadata { path, body, .. } = auth?.metadata()?;
    if parts.uri.path() != path {
        return None;
    }
    let set = |response: &mut Response<ReplyBody>, header: HeaderName, value: &'static str| {
        response.headers_mut().insert(header, HeaderValue::from_static(value));
    };
    let mut response = match parts.method {
        Method::GET | Method::HEAD => {
            let mut response = Response::new(ReplyBody::from(body.clone()));
            set(&mut response, name::CONTENT_TYPE, "application/json");
            response
        }
        // The preflight of a page that sends a header of MCP.
        Method::OPTIONS => {
            let mut response = status(StatusCode::NO_CONTENT);
            set(&mut response, name::ACCESS_CONTROL_ALLOW_METHODS, "GET");
            set(&mut response, name::ACCESS_CONTROL_ALLOW_HEADERS, "*");
            response
        }
        _ => {
            let mut response = status(StatusCode::METHOD_NOT_ALLOWED);
            set(&mut response, name::ALLOW, "GET, HEAD, OPTIONS");
            response
        }
    };
    set(&mut response, name::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
    Some(response)
}

fn status(status: StatusCode) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::from(Bytes::new()));
    *response.status_mut() = status;
    response
}

impl ResourceServer {
    /// Verifies the access token of a request with this method and these headers, as the endpoint does: for a layer or a framework in front of the endpoint.
    /// [`Verified::insert`] puts the result into the request's extensions, and the endpoint does not verify again.
    /// [`AuthLayer`](crate::serve::http::auth::AuthLayer) does both.
    ///
    /// # Errors
    /// The response to send: 401, 403, 400, 429 or 503, with its challenge, as in the table of the [module](crate::serve::http::auth).
    pub async fn verify(&self, method: &Method, headers: &HeaderMap) -> Result<Verified, Unauthorized> {
        let bearer = check(method, headers, self, SystemTime::now()).await.map_err(Unauthorized)?;
        Ok(Verified { bearer, by: self.clone() })
    }
}

/// Proof that the access token of a request is valid. Only [`ResourceServer::verify`] creates one. An endpoint with
/// [`HttpOptions::authorize`](crate::serve::http::HttpOptions::authorize) accepts the proof of the same resource server (or a clone), and of no other.
#[derive(Clone)]
pub struct Verified {
    bearer: Bearer,
    by: ResourceServer,
}

impl Verified {
    /// Returns the token's principal, scopes, expiry and claims.
    pub fn bearer(&self) -> &Bearer {
        &self.bearer
    }

    /// Adds the proof, its [`Bearer`] and its [`Principal`] to the extensions of the request whose headers were verified. Layers behind
    /// read all three; the endpoint relies on the proof only.
    pub fn insert(self, extensions: &mut Extensions) {
        extensions.insert::<Principal>(self.bearer.principal().clone());
        extensions.insert::<Bearer>(self.bearer.clone());
        extensions.insert::<Self>(self);
    }

    /// Returns the token and the resource server that verified it.
    pub(crate) fn parts(&self) -> (&Bearer, &ResourceServer) {
        (&self.bearer, &self.by)
    }

    /// Returns the token if it was verified by this resource server.
    pub(crate) fn bearer_of(&self, auth: &ResourceServer) -> Option<&Bearer> {
        self.by.is_same(auth).then_some(&self.bearer)
    }
}

/// The refusal of a request whose access token is missing or not valid. Its text is for the client, and has no cause.
pub struct Unauthorized(pub(crate) Rejection);

impl Unauthorized {
    /// Returns the status: 401, 403, 400, 429 or 503.
    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// Returns the response, with `WWW-Authenticate` or `Retry-After`.
    pub fn into_response<B: From<Bytes>>(self) -> Response<B> {
        self.0.to_response()
    }
}

impl fmt::Display for Unauthorized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl StdError for Unauthorized {}

impl fmt::Debug for Unauthorized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Unauthorized").field(&self.0.status).finish()
    }
}

impl fmt::Debug for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Verified").field(&self.bearer).finish()
    }
}
