//! Verification outside of the endpoint, and its proof.

use crate::{
    identity::Bearer,
    serve::http::{
        auth::{ResourceServer, check},
        rejection::Rejection,
    },
};
use antiphon_seal::Principal;
use http::{Extensions, HeaderMap, Method, Response, StatusCode};
use hyper::body::Bytes;
use std::{error::Error as StdError, fmt, time::SystemTime};

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
