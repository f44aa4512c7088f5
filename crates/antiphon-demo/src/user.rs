//! The logins of the demo: a bearer token for the tools, a cookie for the payment page.

use antiphon::{seal::Principal, server::Caller};
use hyper::header::AUTHORIZATION;
use std::{convert::Infallible, fmt};

/// A user of the demo, from a bearer token or from a cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// Not signed in.
    Guest,
    /// Signed in with this name.
    Named(String),
}

impl User {
    /// Returns the user with this name: 1 to 32 ASCII letters and digits. Any other name is a guest.
    pub(crate) fn named(name: &str) -> Self {
        let valid = (1..=32).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if valid { Self::Named(name.to_owned()) } else { Self::Guest }
    }

    /// Returns the principal of a signed-in user, with the issuer `antiphon-demo`.
    pub(crate) fn principal(&self) -> Option<Principal> {
        match self {
            Self::Guest => None,
            Self::Named(name) => Some(Principal::user(name).with_issuer("antiphon-demo")),
        }
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Guest => "a guest",
            Self::Named(name) => name,
        })
    }
}

/// Returns the principal of a request to the MCP endpoint: that of its verified token, if the endpoint requires tokens.
/// Otherwise the bearer token `demo-ada` belongs to the user `ada`.
///
/// The demo itself verifies no token. A real server does.
pub(crate) fn principal_of(caller: &Caller<'_>) -> Result<Option<Principal>, Infallible> {
    if let Some(bearer) = caller.bearer() {
        return Ok(Some(bearer.principal().clone()));
    }
    let token = caller.headers.and_then(|headers| headers.get(AUTHORIZATION)?.to_str().ok());
    let name = token.and_then(|token| token.strip_prefix("Bearer demo-"));
    Ok(name.map_or(User::Guest, User::named).principal())
}
