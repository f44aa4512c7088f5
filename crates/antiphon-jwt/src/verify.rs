//! The verification of a token.

use crate::{AccessToken, Audience, Issuer, claims, compact, issuer::TrustedIssuer, key_set};
use serde_json::Value;
use std::{
    error::Error,
    fmt,
    time::{Duration, SystemTime},
};

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
        let token = compact::parse(token).map_err(TokenError::Invalid)?;
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
