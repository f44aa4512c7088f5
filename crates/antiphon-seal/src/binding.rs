//! The binding of a token to its request and its caller, and the only place that verifies the binding.

use crate::{
    call::{Bound, Claims, Opened, unix_seconds},
    canonical::TextFault,
    error::{OpenError, Reason},
    principal::Principal,
    secret::{CallSecret, Digest},
};
use std::time::SystemTime;

/// The maximum time by which the clock of another server may be ahead, in seconds. A token from the future opens within it.
/// The end of a token has no such tolerance: it ends with its time, or with the deadline of its call.
pub const CLOCK_SKEW: u64 = 60;

/// The request that a token is made for, and the one that it comes back with.
#[derive(Debug, Clone, Copy)]
pub struct Binding<'a> {
    /// The JSON-RPC method.
    pub method: &'a str,
    /// The tool's or prompt's name, or the resource's URI, exactly as sent.
    pub target: &'a str,
    /// The JSON text of the arguments, as sent; absent, `null` and `{}` are equal.
    pub arguments: Option<&'a str>,
    /// The caller; `None` without authentication.
    pub principal: Option<&'a Principal>,
    /// The tool's version: stored in the token and returned when it opens, but not compared.
    pub tool_version: u32,
}

impl Binding<'_> {
    /// Returns the digests that a token for this request and this audience carries.
    pub(crate) fn digest(&self, secret: &CallSecret, audience: Option<Digest>) -> Result<Bound, TextFault> {
        Ok(Bound {
            audience,
            request: secret.request_digest(self.method, self.target, self.arguments)?,
            principal: self.principal.map(|principal| secret.principal_digest(principal)),
        })
    }
}

/// The rule for a token after its own time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Late {
    Refused,
    /// The token opens until the deadline of the whole call. A call without a deadline has no late tokens,
    /// because they would never end.
    Allowed,
}

/// The proof that a token was made for this audience.
#[derive(Clone, Copy)]
pub(crate) enum AudienceProof<'a> {
    /// The key that opened the token is the key of this audience alone.
    Key,
    /// The token contains the digest of this audience.
    Digest(&'a str),
}

impl AudienceProof<'_> {
    /// Returns the digest that the claims need for this proof.
    pub(crate) fn digest(self, secret: &CallSecret) -> Option<Digest> {
        match self {
            Self::Key => None,
            Self::Digest(audience) => Some(secret.audience_digest(audience)),
        }
    }

    fn holds(self, claims: &Claims) -> bool {
        let Some(expected) = self.digest(&claims.call.secret) else { return true };
        claims.bound.audience.is_some_and(|sealed| sealed.matches(&expected))
    }
}

/// Accepts authentic claims if they are in time and belong to this request.
pub(crate) fn verify(
    claims: Claims,
    binding: &Binding<'_>,
    audience: AudienceProof<'_>,
    late: Late,
    now: SystemTime,
) -> Result<Opened, OpenError> {
    let id = claims.call.id;
    admit(claims, binding, audience, late, now).map_err(|reason| OpenError::of_call(reason, id))
}

fn admit(
    claims: Claims,
    binding: &Binding<'_>,
    audience: AudienceProof<'_>,
    late: Late,
    now: SystemTime,
) -> Result<Opened, Reason> {
    let secret = &claims.call.secret;
    if !audience.holds(&claims) {
        return Err(Reason::Audience);
    }
    let times = times(&claims, late, now)?;
    let bound = binding.digest(secret, None).map_err(|_| Reason::Arguments)?;
    belongs(&claims.bound, &bound)?;
    Ok(Opened {
        call: claims.call,
        payload: claims.payload,
        tool_version: claims.tool_version,
        expired: times.expired,
        issued_at: claims.issued_at,
        accepted_until: times.accepted_until,
    })
}

struct Times {
    expired: bool,
    accepted_until: u64,
}

fn times(claims: &Claims, late: Late, now: SystemTime) -> Result<Times, Reason> {
    let now = unix_seconds(now);
    let own_end = claims.issued_at.saturating_add(u64::from(claims.ttl));
    let call_end = claims.call.deadline;

    if claims.issued_at > now.saturating_add(CLOCK_SKEW) {
        return Err(Reason::Future);
    }
    if call_end.is_some_and(|end| now > end) {
        return Err(Reason::Deadline);
    }
    let accepted_until = match (late, call_end) {
        (Late::Allowed, Some(end)) => end,
        (Late::Refused, Some(end)) => end.min(own_end),
        (_, None) => own_end,
    };
    if now > accepted_until {
        return Err(Reason::Expired);
    }
    Ok(Times { expired: now > own_end, accepted_until })
}

fn belongs(sealed: &Bound, here: &Bound) -> Result<(), Reason> {
    if !sealed.request.matches(&here.request) {
        return Err(Reason::Request);
    }
    match (&sealed.principal, &here.principal) {
        (None, None) => Ok(()),
        (Some(sealed), Some(here)) if sealed.matches(here) => Ok(()),
        (Some(_), Some(_)) => Err(Reason::Principal),
        (None, Some(_)) => Err(Reason::PrincipalAppeared),
        (Some(_), None) => Err(Reason::PrincipalVanished),
    }
}
