//! The resource identifier, the URL of its metadata, and the challenge that names it: RFC 9110, section 11.6.1.

use crate::identity::account::is_scope;
use antiphon_wire::{check_secure, escaped};
use http::HeaderValue;
use std::{fmt::Write as _, time::Duration};
use url::Url;

/// The path of the metadata of a protected resource, before the resource's own path.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The URI of this server, as clients name it when they request a token.
#[derive(Clone)]
pub(crate) struct Resource {
    uri: String,
    /// The index in `uri` at which the authority ends.
    path_at: usize,
}

impl Resource {
    /// > Examples of invalid canonical URIs: `mcp.example.com` (missing scheme), `https://mcp.example.com#fragment`
    pub(crate) fn parse(uri: &str) -> Result<Self, String> {
        check_url(uri)?;
        let path_at = path_at(uri).ok_or_else(|| format!("`{uri}` is no absolute URL"))?;
        Ok(Self { uri: uri.to_owned(), path_at })
    }

    pub(crate) fn uri(&self) -> &str {
        &self.uri
    }

    /// The host, with its port if that is not the usual one.
    pub(crate) fn authority(&self) -> &str {
        let head = &self.uri[..self.path_at];
        head.split_once("://").map_or(head, |(_, authority)| authority)
    }

    /// > insert a well-known URI string into the protected resource's resource identifier between the host component and
    /// > the path (RFC 9728, 3.1)
    pub(crate) fn metadata_path(&self) -> String {
        let path = &self.uri[self.path_at..];
        format!("{WELL_KNOWN}{}", if path == "/" { "" } else { path })
    }

    pub(crate) fn metadata_url(&self) -> String {
        format!("{}{}", &self.uri[..self.path_at], self.metadata_path())
    }
}

/// Checks the URL of a server: `https`, or `http` on this machine itself; without a user, a query or a fragment, and without
/// characters that a header cannot hold.
pub(crate) fn check_url(text: &str) -> Result<(), String> {
    let shown = escaped(text);
    if !text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\')) {
        return Err(format!("`{shown}` has characters that no URL has"));
    }
    let url = Url::parse(text).map_err(|fault| format!("`{shown}` is no URL: {fault}"))?;
    if url.fragment().is_some() || url.query().is_some() {
        return Err(format!("`{shown}` has a query or a fragment"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("`{shown}` holds a user name"));
    }
    check_secure(url.scheme(), url.host_str()).map_err(|fault| format!("`{shown}`: {fault}"))
}

/// Returns the index at which the authority ends and the path begins.
fn path_at(uri: &str) -> Option<usize> {
    let authority_at = uri.find("://")? + 3;
    Some(uri[authority_at..].find(['/', '?', '#']).map_or(uri.len(), |at| authority_at + at))
}

/// The maximum difference between the clocks of two machines that is tolerated when a time in a token is checked.
pub(crate) const CLOCK_SKEW: Duration = Duration::from_secs(60);

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_and_their_metadata() {
        for (uri, metadata) in [
            (
                "https://api.example.com/mcp",
                "https://api.example.com/.well-known/oauth-protected-resource/mcp",
            ),
            ("https://api.example.com", "https://api.example.com/.well-known/oauth-protected-resource"),
            ("https://api.example.com/", "https://api.example.com/.well-known/oauth-protected-resource"),
            ("https://a.example:8443/x/y", "https://a.example:8443/.well-known/oauth-protected-resource/x/y"),
            ("http://localhost:8000/mcp", "http://localhost:8000/.well-known/oauth-protected-resource/mcp"),
            ("http://[::1]/mcp", "http://[::1]/.well-known/oauth-protected-resource/mcp"),
        ] {
            let resource = Resource::parse(uri).unwrap();
            assert_eq!(resource.metadata_url(), metadata);
            assert!(metadata.ends_with(&resource.metadata_path()));
            assert!(uri.contains(resource.authority()) && !resource.authority().contains("//"));
        }
        for wrong in [
            "api.example.com",
            "http://api.example.com/mcp",
            "http://localhost.example.com",
            "https://api.example.com/mcp#x",
            "https://api.example.com/mcp?x",
            "https://me@api.example.com/mcp",
            "https://api.example.com/\"",
            "https://api.example.com/é",
            "https://",
            "ftp://localhost/",
            "file:///mcp",
            "",
        ] {
            assert!(Resource::parse(wrong).is_err(), "{wrong}");
        }
    }
}
