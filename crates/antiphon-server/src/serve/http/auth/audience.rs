//! The resource identifier: the audience of tokens, and the URL of the metadata.

use antiphon_wire::escaped;
use std::net::IpAddr;
use url::{Host, Url};

/// The path of the metadata of a protected resource, before the resource's own path.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The URI of this server, as clients name it when they request a token.
#[derive(Clone)]
pub(crate) struct Resource {
    uri: String,
    #[cfg_attr(not(feature = "auth"), allow(dead_code, reason = "a verifier compares the audience itself"))]
    canonical: String,
    /// The index in `uri` at which the authority ends.
    path_at: usize,
}

impl Resource {
    /// > Examples of invalid canonical URIs: `mcp.example.com` (missing scheme), `https://mcp.example.com#fragment`
    pub(crate) fn parse(uri: &str) -> Result<Self, String> {
        check_url(uri)?;
        let (canonical, path_at) = canonical(uri).ok_or_else(|| format!("`{uri}` is no absolute URL"))?;
        Ok(Self { uri: uri.to_owned(), canonical, path_at })
    }

    pub(crate) fn uri(&self) -> &str {
        &self.uri
    }

    /// The host, with its port if that is not the usual one.
    pub(crate) fn authority(&self) -> &str {
        let head = &self.uri[..self.path_at];
        head.split_once("://").map_or(head, |(_, authority)| authority)
    }

    /// Returns whether an audience names this resource.
    ///
    /// > While the canonical form uses lowercase scheme and host components, implementations **SHOULD** accept uppercase
    /// > scheme and host components for robustness and interoperability.
    #[cfg_attr(not(feature = "auth"), allow(dead_code, reason = "a verifier compares the audience itself"))]
    pub(crate) fn is(&self, audience: &str) -> bool {
        canonical(audience).is_some_and(|(audience, _)| audience == self.canonical)
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
    check_scheme(&url).map_err(|fault| format!("`{shown}`: {fault}"))
}

/// > All authorization server endpoints **MUST** be served over HTTPS.
pub(crate) fn check_scheme(url: &Url) -> Result<(), &'static str> {
    let is_loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => IpAddr::from(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::from(address).is_loopback(),
        None => return Err("it has no host"),
    };
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_loopback => Ok(()),
        _ => Err("it must be https, or http on this machine itself"),
    }
}

/// Scheme and authority in small letters, a lone slash dropped, and nothing else changed; and where the path begins.
fn canonical(uri: &str) -> Option<(String, usize)> {
    let authority_at = uri.find("://")? + 3;
    let path_at = uri[authority_at..].find(['/', '?', '#']).map_or(uri.len(), |at| authority_at + at);
    let path = &uri[path_at..];
    let head = uri[..path_at].to_ascii_lowercase();
    Some((if path == "/" { head } else { head + path }, path_at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_their_audiences_and_their_metadata() {
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
            assert!(metadata.ends_with(&resource.metadata_path()) && resource.is(uri));
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

    #[test]
    fn which_audience_is_this_resource() {
        let resource = Resource::parse("https://api.example.com/mcp").unwrap();
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
            assert_eq!(resource.is(audience), is_it, "{audience}");
        }
        let root = Resource::parse("https://api.example.com").unwrap();
        assert!(root.is("https://api.example.com/") && !root.is("https://api.example.com//"));
    }
}
