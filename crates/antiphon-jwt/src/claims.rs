//! The claims of a verified token.

use crate::audience::Audience;
use antiphon_seal::Principal;
use serde_json::{Map, Value};
use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// A verified token. It does not hold the text of the token.
#[derive(Clone)]
#[non_exhaustive]
pub struct AccessToken {
    /// The user, the client and the issuer.
    pub principal: Principal,
    /// The scopes that the issuer granted.
    pub scopes: Vec<String>,
    /// The time at which the token expires.
    pub expires_at: SystemTime,
    /// All claims.
    pub claims: Map<String, Value>,
}

impl fmt::Debug for AccessToken {
    /// Omits the claims: they identify a person.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessToken").field("scopes", &self.scopes).finish_non_exhaustive()
    }
}

/// Returns the principal and the scopes of a token whose issuer and signature were checked.
///
/// # Errors
/// A text for the log, if a claim is missing or wrong.
pub(crate) fn read(
    claims: Map<String, Value>,
    issuer: &str,
    client_id_claim: Option<&str>,
    audience: &Audience,
    now: SystemTime,
    clock_skew: Duration,
) -> Result<AccessToken, &'static str> {
    let later = |time: SystemTime| time.checked_add(clock_skew).unwrap_or(time);
    if !audience.is_in(claims.get("aud")) {
        return Err("it is for another audience (aud)");
    }
    let expires = time(claims.get("exp"))?.ok_or("it never expires (exp)")?;
    if now >= later(expires) {
        return Err("expired (exp)");
    }
    if time(claims.get("nbf"))?.is_some_and(|begins| later(now) < begins) {
        return Err("it is not good yet (nbf)");
    }
    let text = |name: &str| match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => Err("sub, client_id or azp is no text"),
    };
    let client = match client_id_claim {
        Some(name) => text(name)?,
        None => text("client_id")?.or(text("azp")?),
    };
    // > In case of access tokens obtained through grants where no resource owner is involved, [...] the value of "sub"
    // > SHOULD correspond to an identifier the authorization server uses to indicate the client application.
    let subject = text("sub")?.filter(|subject| Some(*subject) != client);
    let principal = Principal::user(subject.unwrap_or_default())
        .with_issuer(issuer)
        .with_client_id(client.unwrap_or_default());
    let scopes = match claims.get("scope").or_else(|| claims.get("scp")) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(all)) => all.split(' ').filter(|one| !one.is_empty()).map(str::to_owned).collect(),
        // Some issuers write an array.
        Some(Value::Array(all)) => {
            let all: Option<Vec<String>> = all.iter().map(|one| one.as_str().map(str::to_owned)).collect();
            all.ok_or("its scopes are no texts (scope)")?
        }
        Some(_) => return Err("its scopes are no texts (scope)"),
    };
    Ok(AccessToken { principal, scopes, expires_at: expires, claims })
}

/// Reads a time: seconds since 1970, possibly with a fraction.
fn time(claim: Option<&Value>) -> Result<Option<SystemTime>, &'static str> {
    let Some(claim) = claim else { return Ok(None) };
    let seconds = claim.as_f64().ok_or("exp or nbf is no number")?;
    let since = Duration::try_from_secs_f64(seconds).map_err(|_| "exp or nbf is no time")?;
    UNIX_EPOCH.checked_add(since).map(Some).ok_or("exp or nbf is no time")
}
