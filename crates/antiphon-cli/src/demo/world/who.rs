//! Logins, as far as a demo has them.

use antiphon::{seal::Principal, server::Caller};
use hyper::header::AUTHORIZATION;
use std::{convert::Infallible, fmt};

/// Who somebody is, whichever way they come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Nobody has signed in.
    Guest,
    /// This person has.
    Named(String),
}

impl Who {
    /// Whoever has this name, if it can be one.
    pub(super) fn named(name: &str) -> Self {
        let fits = (1..=32).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if fits { Self::Named(name.to_owned()) } else { Self::Guest }
    }

    pub(super) fn principal(&self) -> Option<Principal> {
        match self {
            Self::Guest => None,
            Self::Named(name) => Some(Principal::user(name).with_issuer("antiphon-demo")),
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Guest => "a guest",
            Self::Named(name) => name,
        })
    }
}

/// Who calls the demo's tools: the bearer token `demo-ada` is Ada's. A real server verifies its tokens.
pub(in super::super) fn caller(caller: &Caller<'_>) -> Result<Option<Principal>, Infallible> {
    let token = caller.headers.and_then(|headers| headers.get(AUTHORIZATION)?.to_str().ok());
    let name = token.and_then(|token| token.strip_prefix("Bearer demo-"));
    Ok(name.map_or(Who::Guest, Who::named).principal())
}
