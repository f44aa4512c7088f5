//! Scopes: which ones are requested, and whether a token has them.

use crate::discover::{Authority, Resource};

/// The scope with which some authorization servers issue refresh tokens.
const OFFLINE: &str = "offline_access";

/// The scopes in a text, in their order, each once.
pub(crate) fn parse(text: &str) -> Vec<String> {
    union(&[], text.split_ascii_whitespace())
}

/// The first scopes, and those of the second that are not among them.
pub(crate) fn union<'a>(first: &[String], second: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut all = first.to_vec();
    for scope in second {
        if !all.iter().any(|known| known == scope) {
            all.push(scope.to_owned());
        }
    }
    all
}

/// Returns `true` if all of the needed scopes are there.
pub(crate) fn covers(granted: &[String], needed: &[String]) -> bool {
    needed.iter().all(|scope| granted.contains(scope))
}

/// The source of scopes for one request.
pub(crate) struct ScopeSources<'a> {
    /// `scope` of the challenge.
    pub(crate) challenged: Option<&'a str>,
    /// The scopes of the last request for the same resource.
    pub(crate) before: &'a [String],
    pub(crate) resource: Option<&'a Resource>,
    pub(crate) authority: &'a Authority,
    /// The scopes of the settings.
    pub(crate) always: &'a [String],
    /// `true` if a refresh token is of use.
    pub(crate) offline: bool,
}

/// Selects the scopes of a request.
///
/// > 1. Use `scope` parameter from the initial `WWW-Authenticate` header in the 401 response, if provided.
/// > 2. If `scope` is not available, use all scopes defined in `scopes_supported` from the Protected Resource Metadata document,
/// >    omitting the `scope` parameter if `scopes_supported` is undefined.
///
/// Scopes that were requested before are requested again with those of a challenge: otherwise each step up would lose what the
/// last one got.
pub(crate) fn select(sources: &ScopeSources<'_>) -> Vec<String> {
    let supported = sources.resource.and_then(|resource| resource.scopes_supported.as_deref());
    let base = match sources.challenged {
        Some(challenged) => union(sources.before, challenged.split_ascii_whitespace()),
        None if !sources.before.is_empty() => sources.before.to_vec(),
        None => union(&[], supported.unwrap_or_default().iter().map(String::as_str)),
    };
    let mut all = union(&base, sources.always.iter().map(String::as_str));
    // > MCP Clients that desire refresh tokens **MAY** add `offline_access` .. when the Authorization Server metadata contains it
    // Alone it would take the place of the scopes that the server gives without a request.
    if sources.offline && !all.is_empty() && sources.authority.has_scope(OFFLINE) {
        all = union(&all, [OFFLINE]);
    }
    all
}

/// Returns `true` if a person is to agree to a refresh token.
pub(crate) fn is_offline(scopes: &[String]) -> bool {
    scopes.iter().any(|scope| scope == OFFLINE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn which_scopes_are_requested() {
        let cases = [
            // challenge, before, scopes_supported of the resource, of the settings, of the authorization server: expected
            (Some("a b"), "", Some("c"), "", "", "a b"),
            (None, "", Some("c d"), "", "", "c d"),
            (None, "", None, "", "", ""),
            (None, "", None, "", "offline_access", ""),
            (None, "", Some("c"), "x", "", "c x"),
            (Some("a"), "", None, "a x", "offline_access", "a x offline_access"),
            // A step up is a union.
            (Some("b"), "a", Some("c"), "", "", "a b"),
            (Some("a"), "a offline_access", None, "", "offline_access", "a offline_access"),
            // A new sign-in without a challenge keeps what was requested.
            (None, "a b", Some("c"), "", "", "a b"),
        ];
        for (challenged, before, resource, always, server, expected) in cases {
            let resource: Option<Resource> = resource.map(|scopes| {
                serde_json::from_value(json!({"resource": "https://a", "scopes_supported": parse(scopes)}))
                    .unwrap()
            });
            let authority = Authority { scopes_supported: Some(parse(server)), ..Authority::default() };
            let found = select(&ScopeSources {
                challenged,
                before: &parse(before),
                resource: resource.as_ref(),
                authority: &authority,
                always: &parse(always),
                offline: true,
            });
            assert_eq!(found.join(" "), expected, "{challenged:?} {before}");
        }
    }

    #[test]
    fn scopes_of_a_token() {
        assert!(covers(&parse("a b"), &parse("b")));
        assert!(!covers(&parse("a b"), &parse("b c")));
        assert_eq!(parse("  a  b a "), ["a", "b"]);
    }
}
