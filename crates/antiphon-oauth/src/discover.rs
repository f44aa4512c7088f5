//! Discovery: from a resource server to its authorization server.
//!
//! ```text
//!  challenge ── resource_metadata ──▶ protected-resource metadata ──▶ issuer ──▶ its metadata ──▶ Authority
//!      └─ none ──▶ /.well-known, at the path, then at the root ──┘
//!                          └─ none at all ──▶ 2025-03-26: the origin is the issuer
//! ```

use crate::{
    error::{self, Error, ErrorKind, shown},
    net::Net,
};
use antiphon_wire::escaped;
use http::StatusCode;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use url::Url;

/// The metadata of a protected resource, RFC 9728.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Resource {
    /// The identifier, as the server wrote it: requests repeat it byte by byte.
    pub(crate) resource: String,
    #[serde(default)]
    pub(crate) authorization_servers: Vec<String>,
    pub(crate) scopes_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) dpop_bound_access_tokens_required: bool,
    pub(crate) dpop_signing_alg_values_supported: Option<Vec<String>>,
}

/// The metadata of an authorization server, RFC 8414 or OpenID Connect Discovery.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Authority {
    /// The identifier, as the document has it.
    pub(crate) issuer: String,
    pub(crate) authorization_endpoint: Option<String>,
    pub(crate) token_endpoint: Option<String>,
    pub(crate) registration_endpoint: Option<String>,
    pub(crate) revocation_endpoint: Option<String>,
    pub(crate) device_authorization_endpoint: Option<String>,
    pub(crate) scopes_supported: Option<Vec<String>>,
    pub(crate) code_challenge_methods_supported: Option<Vec<String>>,
    pub(crate) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    pub(crate) dpop_signing_alg_values_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) authorization_response_iss_parameter_supported: bool,
    #[serde(default)]
    pub(crate) client_id_metadata_document_supported: bool,
    /// `true` for the endpoints of 2025-03-26, which no document describes.
    #[serde(skip)]
    pub(crate) without_document: bool,
}

/// Tolerances of servers that do not conform. All are off unless set.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tolerances {
    /// An issuer may differ from the one of the document by a slash at the end of a URL without a path.
    pub(crate) root_slash: bool,
    /// PKCE is used although the metadata does not say that it is supported.
    pub(crate) assume_pkce: bool,
}

/// Finds the metadata of the resource server at `server`. `pointer` is `resource_metadata` of its challenge.
///
/// > MCP clients **MUST** use the resource metadata URL from the parsed `WWW-Authenticate` headers when present; otherwise, they
/// > **MUST** fall back to constructing and requesting the well-known URIs in the order listed above.
///
/// Returns `None` if the server has none, as before revision 2025-06-18.
pub(crate) async fn resource(
    net: Net,
    server: &Url,
    pointer: Option<&str>,
) -> Result<Option<Resource>, Error> {
    if let Some(pointer) = pointer {
        let url = net.check(pointer, "the URL of the resource metadata")?;
        if url.origin() != server.origin() {
            tracing::info!(url = %escaped(error::place(pointer)), "the metadata of the resource is at another origin");
        }
        let found = document(net, &url).await?.ok_or_else(|| {
            Error::new(
                ErrorKind::Discovery,
                format!("the server names {} as its metadata, and there is none", shown(pointer)),
            )
        })?;
        return of_server(found, server, Scope::ServerOnly).map(Some);
    }
    for place in resource_places(server) {
        if let Some(found) = document(net, &place).await? {
            // Only the owner of the whole origin writes the document at its root.
            let scope = if place.path() == RESOURCE_WELL_KNOWN { Scope::Origin } else { Scope::ServerOnly };
            return of_server(found, server, scope).map(Some);
        }
    }
    Ok(None)
}

const RESOURCE_WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The resources that a document may be about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// The server that was called.
    ServerOnly,
    /// Also a part of the origin that contains the server.
    Origin,
}

/// The well-known places: first the one with the path of the server, then the root.
fn resource_places(server: &Url) -> Vec<Url> {
    let well_known = RESOURCE_WELL_KNOWN;
    let at = |path: &str, query: Option<&str>| {
        let mut place = server.clone();
        place.set_fragment(None);
        place.set_path(path);
        place.set_query(query);
        place
    };
    let path = server.path().trim_end_matches('/');
    let mut places = Vec::new();
    if !path.is_empty() || server.query().is_some() {
        places.push(at(&format!("{well_known}{path}"), server.query()));
    }
    places.push(at(well_known, None));
    places
}

/// Checks that metadata is about this server: the same origin and path. The document of the whole origin may name a path that contains
/// the path of the server; in that of one server, such a path would make tokens for the neighbours of the server.
///
/// > the `resource` value returned MUST be identical to the protected resource's resource identifier value
fn of_server(found: Resource, server: &Url, scope: Scope) -> Result<Resource, Error> {
    let is_of_server = Url::parse(&found.resource).is_ok_and(|resource| {
        let whole = resource.path().trim_end_matches('/');
        let rest = server.path().strip_prefix(whole);
        resource.origin() == server.origin()
            && resource.fragment().is_none()
            && resource.query().is_none_or(|query| Some(query) == server.query())
            && rest.is_some_and(|rest| match scope {
                Scope::ServerOnly => rest.is_empty() || rest == "/",
                Scope::Origin => rest.is_empty() || rest.starts_with('/'),
            })
    });
    if is_of_server {
        return Ok(found);
    }
    let text = format!(
        "the metadata of the server at {} is about another resource, {}: no token is requested for it",
        shown(server.as_str()),
        shown(&found.resource)
    );
    Err(Error::new(ErrorKind::Discovery, text))
}

/// Finds the metadata of an authorization server.
///
/// > clients **MUST** attempt multiple well-known endpoints when discovering authorization server metadata.
///
/// Returns `None` if there is none at any place.
pub(crate) async fn authority(
    net: Net,
    issuer: &str,
    tolerances: Tolerances,
) -> Result<Option<Authority>, Error> {
    let mut other = None;
    for place in authority_places(net, issuer)? {
        match document::<Authority>(net, &place).await? {
            None => {}
            // > the `issuer` value in the document **MUST** be identical to the issuer identifier used to construct the
            // > well-known URL. If they differ, the client **MUST NOT** use the metadata.
            Some(found) if !is_issuer(&found.issuer, issuer, tolerances) => other = Some(found.issuer),
            Some(found) => return Ok(Some(found)),
        }
    }
    match other {
        None => Ok(None),
        Some(other) => Err(Error::new(
            ErrorKind::Issuer,
            format!(
                "the metadata of the authorization server {} is of another issuer, {}, and is not used",
                escaped(issuer),
                escaped(&other)
            ),
        )),
    }
}

/// Compares the issuer of a document with the one whose document was requested.
fn is_issuer(found: &str, expected: &str, tolerances: Tolerances) -> bool {
    let is_root = |text: &str| Url::parse(text).is_ok_and(|url| url.path() == "/" && url.query().is_none());
    found == expected
        || (tolerances.root_slash
            && is_root(found)
            && found.trim_end_matches('/') == expected.trim_end_matches('/')
            && found.len().abs_diff(expected.len()) == 1)
}

/// The places of the metadata of an issuer, in the order to be tried.
fn authority_places(net: Net, issuer: &str) -> Result<Vec<Url>, Error> {
    let url = net.check(issuer, "the authorization server")?;
    if url.query().is_some() {
        let text = format!("the issuer {} has a query: its metadata has no place", shown(issuer));
        return Err(Error::new(ErrorKind::Discovery, text));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    let at = |path: String| {
        let mut place = url.clone();
        place.set_path(&path);
        place
    };
    let mut places = vec![
        at(format!("/.well-known/oauth-authorization-server{path}")),
        at(format!("/.well-known/openid-configuration{path}")),
    ];
    if !path.is_empty() {
        places.push(at(format!("{path}/.well-known/openid-configuration")));
    }
    Ok(places)
}

/// The authorization server of a server without metadata of its own, as revision 2025-03-26 has it: its own origin.
///
/// > For servers that do not implement OAuth 2.0 Authorization Server Metadata, clients **MUST** use the following default
/// > endpoint paths relative to the authorization base URL
pub(crate) async fn of_origin(net: Net, server: &Url, tolerances: Tolerances) -> Result<Authority, Error> {
    let origin = server.origin().ascii_serialization();
    if let Some(found) = authority(net, &origin, tolerances).await? {
        return Ok(found);
    }
    let at = |path: &str| Some(format!("{origin}{path}"));
    Ok(Authority {
        authorization_endpoint: at("/authorize"),
        token_endpoint: at("/token"),
        registration_endpoint: at("/register"),
        issuer: origin,
        without_document: true,
        ..Authority::default()
    })
}

impl Authority {
    /// Checks that the server supports PKCE with SHA-256.
    ///
    /// > If `code_challenge_methods_supported` is absent, the authorization server does not support PKCE and MCP clients **MUST**
    /// > refuse to proceed.
    pub(crate) fn check_pkce(&self, tolerances: Tolerances) -> Result<(), Error> {
        let fault = |text: &str| {
            let text = format!(
                "the authorization server {} {text}: no one can sign in safely",
                escaped(&self.issuer)
            );
            Err(Error::new(ErrorKind::Discovery, text))
        };
        match &self.code_challenge_methods_supported {
            // Revision 2025-03-26 has no document that could say it.
            None if self.without_document || tolerances.assume_pkce => Ok(()),
            None => fault("does not say that it supports PKCE"),
            Some(methods) if methods.iter().any(|method| method == "S256") => Ok(()),
            Some(_) => fault("does not support PKCE with S256"),
        }
    }

    /// Returns `true` if the server signs or accepts proofs with this algorithm.
    pub(crate) fn supports_dpop(&self) -> bool {
        lists(&self.dpop_signing_alg_values_supported, "ES256")
    }

    /// Returns `true` if the server issues a token for `offline_access`.
    pub(crate) fn has_scope(&self, scope: &str) -> bool {
        lists(&self.scopes_supported, scope)
    }

    /// The URL of an endpoint.
    pub(crate) fn endpoint(net: Net, issuer: &str, endpoint: Option<&str>, what: &str) -> Result<Url, Error> {
        let missing = || {
            let text = format!("the authorization server {} has no {what}", escaped(issuer));
            Error::new(ErrorKind::Discovery, text)
        };
        net.check(endpoint.ok_or_else(missing)?, &format!("the {what}"))
    }
}

fn lists(all: &Option<Vec<String>>, one: &str) -> bool {
    all.as_ref().is_some_and(|all| all.iter().any(|known| known == one))
}

/// A document of JSON; `None` if there is none at this place.
async fn document<T: DeserializeOwned>(net: Net, place: &Url) -> Result<Option<T>, Error> {
    let answer = net.get(place).await?;
    let unusable = |why: String| {
        Error::new(ErrorKind::Discovery, format!("{}: {}", shown(place.as_str()), escaped(&why)))
    };
    match answer.status {
        StatusCode::OK => {
            answer.json().map(Some).map_err(|fault| unusable(format!("not the metadata: {fault}")))
        }
        status if status.is_client_error() => Ok(None),
        status => Err(unusable(format!("the answer is {status}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_connect::Reach;

    #[test]
    fn places_of_metadata() {
        let resource = "/.well-known/oauth-protected-resource";
        for (server, expected) in [
            ("https://a.example", &["/.well-known/oauth-protected-resource"][..]),
            ("https://a.example/", &[resource]),
            ("https://a.example/mcp", &["/.well-known/oauth-protected-resource/mcp", resource]),
            ("https://a.example/x/mcp/", &["/.well-known/oauth-protected-resource/x/mcp", resource]),
            ("https://a.example/mcp?t=1", &["/.well-known/oauth-protected-resource/mcp?t=1", resource]),
        ] {
            let expected: Vec<String> =
                expected.iter().map(|path| format!("https://a.example{path}")).collect();
            let found = resource_places(&Url::parse(server).unwrap());
            assert_eq!(found.iter().map(Url::as_str).collect::<Vec<_>>(), expected, "{server}");
        }
        let (oauth, openid) =
            ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration");
        for (issuer, expected) in [
            ("https://a.example", vec![oauth.to_owned(), openid.to_owned()]),
            ("https://a.example/", vec![oauth.to_owned(), openid.to_owned()]),
            ("https://a.example/t", vec![format!("{oauth}/t"), format!("{openid}/t"), format!("/t{openid}")]),
        ] {
            let expected: Vec<String> =
                expected.iter().map(|path| format!("https://a.example{path}")).collect();
            let found = authority_places(Net { reach: Reach::Public }, issuer).unwrap();
            assert_eq!(found.iter().map(Url::as_str).collect::<Vec<_>>(), expected, "{issuer}");
        }
    }

    #[test]
    fn a_resource_contains_the_server() {
        for (resource, server, fits) in [
            ("https://a.example/mcp", "https://a.example/mcp", true),
            ("https://a.example", "https://a.example/mcp", true),
            ("https://a.example/", "https://a.example/mcp", true),
            ("HTTPS://A.example/mcp", "https://a.example/mcp", true),
            ("https://a.example/x", "https://a.example/x/mcp", true),
            ("https://a.example/m", "https://a.example/mcp", false),
            ("https://a.example/mcp/x", "https://a.example/mcp", false),
            ("https://b.example/mcp", "https://a.example/mcp", false),
            ("https://a.example:444/mcp", "https://a.example/mcp", false),
            ("http://a.example/mcp", "https://a.example/mcp", false),
            ("https://a.example/mcp#x", "https://a.example/mcp", false),
            ("https://a.example/mcp?t=2", "https://a.example/mcp?t=1", false),
            ("a.example/mcp", "https://a.example/mcp", false),
        ] {
            let found: Resource = serde_json::from_value(serde_json::json!({"resource": resource})).unwrap();
            let server = Url::parse(server).unwrap();
            assert_eq!(of_server(found.clone(), &server, Scope::Origin).is_ok(), fits, "{resource} {server}");
            let is_exact = fits
                && Url::parse(resource).unwrap().path().trim_end_matches('/')
                    == server.path().trim_end_matches('/');
            assert_eq!(of_server(found, &server, Scope::ServerOnly).is_ok(), is_exact, "{resource} {server}");
        }
    }

    #[test]
    fn issuers_are_compared_byte_by_byte() {
        for (found, expected, root_slash, fits) in [
            ("https://a.example", "https://a.example", false, true),
            ("https://a.example/", "https://a.example", false, false),
            ("https://a.example/", "https://a.example", true, true),
            ("https://a.example", "https://a.example/", true, true),
            ("https://a.example//", "https://a.example", true, false),
            ("https://a.example/t/", "https://a.example/t", true, false),
            ("https://A.example", "https://a.example", true, false),
            ("https://b.example", "https://a.example", true, false),
        ] {
            let tolerances = Tolerances { root_slash, ..Tolerances::default() };
            assert_eq!(is_issuer(found, expected, tolerances), fits, "{found} {expected}");
        }
    }

    #[test]
    fn pkce_must_be_supported() {
        for (methods, without_document, assume_pkce, fits) in [
            (Some(vec!["plain", "S256"]), false, false, true),
            (Some(vec!["plain"]), false, true, false),
            (None, false, false, false),
            (None, false, true, true),
            (None, true, false, true),
        ] {
            let authority = Authority {
                code_challenge_methods_supported: methods
                    .clone()
                    .map(|all| all.into_iter().map(str::to_owned).collect()),
                without_document,
                ..Authority::default()
            };
            let tolerances = Tolerances { assume_pkce, ..Tolerances::default() };
            assert_eq!(authority.check_pkce(tolerances).is_ok(), fits, "{methods:?}");
        }
    }
}
