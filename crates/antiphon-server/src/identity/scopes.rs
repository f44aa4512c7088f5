//! Scopes: the rights that a token has to hold.

use crate::{
    errors::{
        refusal::Refusal,
        refusal_log::{Loudness, log_refusal},
    },
    identity::caller::Caller,
};

impl Caller<'_> {
    /// Returns true if [`require_scopes`] would accept the caller.
    pub(crate) fn has_scopes(&self, needed: &[String]) -> bool {
        let has =
            |bearer: &crate::identity::bearer::Bearer| needed.iter().all(|scope| bearer.has_scope(scope));
        needed.is_empty() || !self.is_remote() || self.bearer().is_some_and(has)
    }
}

/// Refuses a caller whose token lacks one of these scopes.
///
/// Scopes apply to [remote](Caller::is_remote) callers only: the owner of the process may use everything.
///
/// `refused` counts a refusal with its cause, and returns the level at which it is logged.
///
/// > servers **SHOULD** include all scopes required for the current operation in a single challenge
pub(crate) fn require_scopes(
    needed: &[String],
    caller: &Caller<'_>,
    refused: impl FnOnce(&str) -> Loudness,
) -> Result<(), Refusal> {
    if needed.is_empty() || !caller.is_remote() {
        return Ok(());
    }
    let Some(bearer) = caller.bearer() else {
        log_refusal!(
            refused("scopes without a token"),
            { ?needed },
            "an item requires scopes, but no token is verified here: refused (use HttpOptions::authorize, or leave a Bearer in \
             the extensions of the request)"
        );
        return Err(Refusal::Scope { needed: needed.to_vec() });
    };
    if needed.iter().all(|scope| bearer.has_scope(scope)) {
        return Ok(());
    }
    // Only the author chooses the text of this cause.
    let loudness = refused(&format!("scopes {needed:?}"));
    log_refusal!(loudness, { ?needed, ?bearer }, "a token has too few scopes: refused");
    Err(Refusal::Scope { needed: needed.to_vec() })
}

/// Returns whether the text is a scope that may stand in a challenge: no spaces, quotes or backslashes.
///
/// `scope-token = 1*( %x21 / %x23-5B / %x5D-7E )` (RFC 6749, 3.3)
pub(crate) fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_seal::Principal;
    use http::{Extensions, HeaderMap};

    /// A caller without headers needs scopes: code that passes a request on may hide them, because they hold credentials.
    #[test]
    fn a_remote_caller_without_headers_needs_scopes() {
        let needed = ["films:write".to_owned()];
        let (headers, extensions) = (HeaderMap::new(), Extensions::new());
        for caller in
            [Caller::remote(&extensions), Caller { headers: None, ..Caller::http(&headers, &extensions) }]
        {
            assert!(caller.is_remote() && !caller.has_scopes(&needed));
            let refused = require_scopes(&needed, &caller, |_| Loudness::Debug);
            assert!(matches!(refused, Err(Refusal::Scope { .. })), "{refused:?}");
        }
        let mut extensions = Extensions::new();
        extensions.insert(crate::identity::bearer::Bearer::new(Principal::user("anna")).with_scopes(&needed));
        assert!(Caller::remote(&extensions).has_scopes(&needed));
        let owner = Caller::default();
        assert!(!owner.is_remote() && owner.has_scopes(&needed));
    }
}
