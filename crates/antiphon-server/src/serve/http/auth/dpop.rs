//! Tokens that are bound to a key: RFC 9449.

use crate::{
    identity::Bearer,
    serve::http::auth::{
        resource::CLOCK_SKEW,
        verifier::{Presented, Scheme},
    },
};
use antiphon_jwt::{DpopError, DpopVerifier, ProvenRequest};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;
use std::{fmt, time::SystemTime};

/// The name of the header with a proof.
const DPOP: HeaderName = HeaderName::from_static("dpop");

/// The rules for tokens that are bound to a key (DPoP, RFC 9449): each request with one proves that it has the key, so that a stolen
/// token is of no use. For [`ResourceServerBuilder::dpop`](super::ResourceServerBuilder::dpop).
///
/// A proof names the method of its request, the URL of the resource (not of another route behind the same
/// [`AuthLayer`](crate::serve::http::auth::AuthLayer)), and the hash of the token. It is accepted once, for about a minute.
/// Each instance of a server remembers its own ones: 16,384 of one key and 524,288 in all, which is 90 and 2,900 requests a second, or 39
/// and 1,250 with nonces; beyond, a request gets a 429. With [`nonces`](Self::nonces), a proof is as old as its nonce, and the clock of the
/// client does not matter.
#[derive(Clone)]
#[must_use]
pub struct Dpop {
    is_required: bool,
    nonces: Option<[u8; 32]>,
}

impl Dpop {
    /// Accepts tokens that are bound to a key, with proofs, beside other ones.
    pub fn optional() -> Self {
        Self { is_required: false, nonces: None }
    }

    /// Accepts tokens that are bound to a key only.
    pub fn required() -> Self {
        Self { is_required: true, nonces: None }
    }

    /// Demands that each proof has a nonce of this server, which is not older than five minutes. The nonces are made with this secret key
    /// and are stored nowhere: instances with the same key accept the nonces of each other.
    pub fn nonces(mut self, key: [u8; 32]) -> Self {
        self.nonces = Some(key);
        self
    }
}

/// The check of a server with [`Dpop`].
pub(crate) struct Possession {
    verifier: DpopVerifier,
    is_required: bool,
    algorithms: String,
}

/// The reason why a request with a valid token is refused. The texts are for the log.
pub(crate) enum PossessionFault {
    Token(&'static str),
    Proof(&'static str),
    /// The nonce for the next proof.
    Nonce(HeaderValue),
    TooMany,
}

impl Possession {
    pub(crate) fn new(dpop: &Dpop, resource: &str) -> Result<Self, String> {
        let verifier = DpopVerifier::new(resource, CLOCK_SKEW)?;
        let verifier = match &dpop.nonces {
            Some(key) => verifier.with_nonces(key),
            None => verifier,
        };
        let algorithms = DpopVerifier::algorithms().collect::<Vec<_>>().join(" ");
        Ok(Self { verifier, is_required: dpop.is_required, algorithms })
    }

    pub(crate) fn is_required(&self) -> bool {
        self.is_required
    }

    /// The names of the algorithms, separated by spaces.
    pub(crate) fn algorithms(&self) -> &str {
        &self.algorithms
    }

    /// Checks that the sender of a valid token has its key.
    pub(crate) fn check(
        &self,
        presented: &Presented<'_>,
        bearer: &Bearer,
        method: &Method,
        headers: &HeaderMap,
        now: SystemTime,
    ) -> Result<(), PossessionFault> {
        let bound = bearer.claims().get("cnf").and_then(|key| key.get("jkt"));
        let thumbprint = match (presented.scheme, bound) {
            (Scheme::Bearer, None) if !self.is_required => return Ok(()),
            (_, None) => return Err(PossessionFault::Token("it is bound to no key (cnf)")),
            // > A protected resource that supports both MUST reject a DPoP-bound access token received as a bearer token
            (Scheme::Bearer, Some(_)) => {
                return Err(PossessionFault::Token("it is bound to a key, and no proof came with it (cnf)"));
            }
            (Scheme::Dpop, Some(Value::String(thumbprint))) => thumbprint,
            (Scheme::Dpop, Some(_)) => return Err(PossessionFault::Token("its key is no text (cnf)")),
        };
        let mut proofs = headers.get_all(DPOP).iter();
        let proof = match (proofs.next(), proofs.next()) {
            (Some(proof), None) => proof.to_str().map_err(|_| PossessionFault::Proof("it is no text"))?,
            // > There is not more than one DPoP HTTP request header field.
            _ => return Err(PossessionFault::Proof("there must be one")),
        };
        let request = ProvenRequest::new(method.as_str(), presented.token, thumbprint);
        self.verifier.verify(proof, request, now).map_err(|fault| match fault {
            DpopError::Invalid(cause) => PossessionFault::Proof(cause),
            DpopError::TooMany => PossessionFault::TooMany,
            _ => match self.verifier.nonce(now).and_then(|nonce| HeaderValue::try_from(nonce).ok()) {
                Some(nonce) => PossessionFault::Nonce(nonce),
                None => PossessionFault::Proof("it cannot be checked"),
            },
        })
    }
}

impl fmt::Debug for Dpop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dpop").field("is_required", &self.is_required).finish_non_exhaustive()
    }
}
