//! The challenge of a response without access: RFC 9110, section 11.6.1.

use crate::identity::account::is_scope;
use http::HeaderValue;
use std::fmt::Write as _;

/// Returns a challenge for each scheme. `dpop` has the algorithms of proofs, and `true` if there is no other scheme.
///
/// > Servers **MUST** [...] Include the resource metadata URL in the `WWW-Authenticate` HTTP header under
/// > `resource_metadata`
pub(crate) fn challenge(
    error: Option<&'static str>,
    scopes: &[&str],
    metadata: Option<&str>,
    dpop: Option<(&str, bool)>,
) -> HeaderValue {
    // A `MessageService` of one's own may name a text that is no scope, and could add parameters by it.
    let scopes: Vec<&str> = scopes.iter().copied().filter(|scope| is_scope(scope)).collect();
    let scopes = Some(scopes.join(" ")).filter(|scopes| !scopes.is_empty());
    let mut text = String::new();
    let mut add = |scheme: &str, error: Option<&str>, algorithms: Option<&str>| {
        let _ = write!(text, "{}{scheme}", if text.is_empty() { "" } else { ", " });
        let mut separator = " ";
        let parameters = [
            ("error", error),
            ("algs", algorithms),
            ("scope", scopes.as_deref()),
            ("resource_metadata", metadata),
        ];
        for (name, value) in parameters {
            if let Some(value) = value {
                let _ = write!(text, "{separator}{name}=\"{value}\"");
                separator = ", ";
            }
        }
    };
    if !matches!(dpop, Some((_, true))) {
        add("Bearer", error.filter(|error| !error.contains("dpop")), None);
    }
    if let Some((algorithms, _)) = dpop {
        add("DPoP", error, Some(algorithms));
    }
    // The parts were checked in `build`.
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("Bearer"))
}
