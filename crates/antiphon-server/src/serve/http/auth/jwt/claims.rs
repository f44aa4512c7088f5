//! The claims of a verified token.

use crate::{
    Bearer,
    serve::http::auth::{audience::Resource, clock_skew::CLOCK_SKEW},
};
use antiphon_seal::Principal;
use serde_json::{Map, Value};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The resource that a token must be for.
pub(crate) struct Audience {
    pub(crate) resource: Resource,
    /// Other names of the resource.
    pub(crate) others: Vec<String>,
}

impl Audience {
    /// > MCP servers **MUST** only accept tokens that are valid for use with their own resources.
    fn is_in(&self, claim: Option<&Value>) -> bool {
        let is = |value: &Value| {
            value
                .as_str()
                .is_some_and(|name| self.resource.is(name) || self.others.iter().any(|other| other == name))
        };
        match claim {
            Some(Value::Array(all)) => all.iter().any(is),
            Some(one) => is(one),
            None => false,
        }
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
) -> Result<Bearer, &'static str> {
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
    Ok(Bearer::new(principal).with_scopes(scopes).expiring_at(expires).with_claims(claims))
}

/// Reads a time: seconds since 1970, possibly with a fraction.
fn time(claim: Option<&Value>) -> Result<Option<SystemTime>, &'static str> {
    let Some(claim) = claim else { return Ok(None) };
    let seconds = claim.as_f64().ok_or("exp or nbf is no number")?;
    let since = Duration::try_from_secs_f64(seconds).map_err(|_| "exp or nbf is no time")?;
    UNIX_EPOCH.checked_add(since).map(Some).ok_or("exp or nbf is no time")
}

fn later(time: SystemTime) -> SystemTime {
    time.checked_add(CLOCK_SKEW).unwrap_or(time)
}
