//! The claims of a verified token, its audience among them.

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

// The audience of tokens: one resource.

/// The resource that a token must be for.
#[derive(Clone, Debug)]
pub struct Audience {
    /// The URI in its canonical form; `None` for a text that is no URI, which no token is for.
    canonical: Option<String>,
    /// Other names of the resource.
    others: Vec<String>,
}

impl Audience {
    /// Returns the audience of the resource with this URI.
    #[must_use]
    pub fn resource(uri: &str) -> Self {
        Self { canonical: canonical(uri), others: Vec::new() }
    }

    /// Adds another name, which must mean this resource and no other: it is compared byte by byte.
    #[must_use]
    pub fn or(mut self, name: impl Into<String>) -> Self {
        self.others.push(name.into());
        self
    }

    /// Returns true if the claim `aud` names this resource.
    ///
    /// > MCP servers **MUST** only accept tokens that are valid for use with their own resources.
    fn is_in(&self, claim: Option<&Value>) -> bool {
        let is = |value: &Value| value.as_str().is_some_and(|name| self.is_named(name));
        match claim {
            Some(Value::Array(all)) => all.iter().any(is),
            Some(one) => is(one),
            None => false,
        }
    }

    /// > While the canonical form uses lowercase scheme and host components, implementations **SHOULD** accept uppercase
    /// > scheme and host components for robustness and interoperability.
    fn is_named(&self, name: &str) -> bool {
        canonical(name).is_some_and(|name| Some(name) == self.canonical)
            || self.others.iter().any(|other| other == name)
    }
}

/// Scheme and authority in small letters, a lone slash dropped, and nothing else changed.
fn canonical(uri: &str) -> Option<String> {
    let authority_at = uri.find("://")? + 3;
    let path_at = uri[authority_at..].find(['/', '?', '#']).map_or(uri.len(), |at| authority_at + at);
    let path = &uri[path_at..];
    let head = uri[..path_at].to_ascii_lowercase();
    Some(if path == "/" { head } else { head + path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_audience_is_this_resource() {
        let resource = Audience::resource("https://api.example.com/mcp");
        for (audience, is_it) in [
            ("https://api.example.com/mcp", true),
            ("HTTPS://API.Example.com/mcp", true),
            ("https://api.example.com/MCP", false),
            ("https://api.example.com/mcp/", false),
            ("https://api.example.com/mcp2", false),
            ("https://api.example.com/mcp?x", false),
            ("https://api.example.com", false),
            ("https://api.example.com.evil.example/mcp", false),
            ("https://evil.example/https://api.example.com/mcp", false),
            ("http://api.example.com/mcp", false),
            ("api.example.com/mcp", false),
            ("", false),
        ] {
            assert_eq!(resource.is_named(audience), is_it, "{audience}");
        }
        let root = Audience::resource("https://api.example.com");
        assert!(root.is_named("https://api.example.com/") && !root.is_named("https://api.example.com//"));
    }
}
