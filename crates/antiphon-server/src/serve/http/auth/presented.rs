//! The token in the `Authorization` header of a request.

use http::{HeaderMap, header::AUTHORIZATION};

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
