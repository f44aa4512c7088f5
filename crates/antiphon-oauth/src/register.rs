//! The settings of a program that signs in, and its client id at an authorization server.
//!
//! > 1. Use pre-registered client information for the server if the client has it available
//! > 2. Use Client ID Metadata Documents if the Authorization Server indicates that it supports them
//! > 3. Use Dynamic Client Registration as a fallback if the Authorization Server supports it

use crate::{
    credentials::{Credentials, Method, Registration, Source},
    device::{DEVICE_CODE, ShowDevice},
    discover::{Authority, Tolerances},
    error::{Error, ErrorKind, Secret},
    grant::Grant,
    handler::SignInHandler,
    net::Net,
    store::TokenStore,
    token,
};
use antiphon_wire::{check_secure, escaped};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{sync::Arc, time::SystemTime};
use url::Url;

/// All settings.
pub(crate) struct Settings {
    pub(crate) metadata: ClientMetadata,
    pub(crate) credentials: Option<Credentials>,
    /// The client id of a metadata document, and its key if it names one.
    pub(crate) document: Option<Credentials>,
    pub(crate) registers: bool,
    pub(crate) handler: Option<Arc<dyn SignInHandler>>,
    pub(crate) device: Option<Arc<ShowDevice>>,
    pub(crate) store: Arc<dyn TokenStore>,
    pub(crate) account: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) offline: bool,
    pub(crate) grant: Grant,
    pub(crate) tolerances: Tolerances,
    pub(crate) resource: ResourceParameter,
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) clock: Clock,
}

/// The clock of the tokens.
pub(crate) type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// The `resource` parameter of requests.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum ResourceParameter {
    /// The identifier in the metadata of the server, byte by byte.
    #[default]
    Standard,
    /// None. Not allowed by the specification; for authorization servers that refuse requests with it, such as Microsoft Entra.
    Omit,
    /// Another one. Not allowed by the specification either.
    Instead(String),
}

/// The description of this program in its registration.
#[derive(Clone, Debug)]
pub(crate) struct ClientMetadata {
    pub(crate) name: String,
    pub(crate) uri: Option<String>,
}

#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<Secret>,
    client_secret_expires_at: Option<u64>,
    token_endpoint_auth_method: Option<String>,
    scope: Option<String>,
}

#[derive(Deserialize)]
struct RegistrationError {
    error: String,
    error_description: Option<String>,
}

/// The client id that comes from a document: Client ID Metadata Documents.
///
/// > the `client_id` .. **MUST** use the `https` scheme and contain a path component
pub(crate) fn check_document_url(text: &str) -> Result<(), Error> {
    let fault = || {
        let text = format!(
            "`{}` is no URL of a client metadata document: it must be https, with a path",
            escaped(text)
        );
        Error::new(ErrorKind::Setting, text)
    };
    let url = Url::parse(text).map_err(|_| fault())?;
    let fits = url.scheme() == "https"
        && url.path() != "/"
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    if fits { Ok(()) } else { Err(fault()) }
}

/// The registration by a document.
pub(crate) fn by_document(document: &Credentials, authority: &Authority) -> Registration {
    Registration {
        issuer: authority.issuer.clone(),
        client_id: document.id.clone(),
        client_secret: None,
        method: if document.key_of().is_some() { Method::PrivateKeyJwt } else { Method::None },
        redirect_uri: None,
        secret_expires_at: None,
        scopes: None,
        source: Source::Document,
    }
}

/// Registers by RFC 7591.
pub(crate) async fn register(
    net: Net,
    authority: &Authority,
    metadata: &ClientMetadata,
    redirect_uri: Option<&str>,
    scopes: &[String],
    now: SystemTime,
) -> Result<Registration, Error> {
    let Some(endpoint) = &authority.registration_endpoint else {
        let text = format!(
            "the authorization server {} registers no clients: this program needs a client id from its operator",
            escaped(&authority.issuer)
        );
        return Err(Error::new(ErrorKind::Registration, text));
    };
    let endpoint = net.check(endpoint, "the registration endpoint")?;
    let requested = requested_method(authority)?;
    let body = document(metadata, redirect_uri, scopes, requested);
    let answer = net.post_json(&endpoint, &body).await?;
    let refused = |why: String| {
        let text = format!(
            "the authorization server {} did not register this client: {why}",
            escaped(&authority.issuer)
        );
        Error::new(ErrorKind::Registration, text)
    };
    if !answer.status.is_success() {
        return Err(refused(match answer.json::<RegistrationError>() {
            Err(_) => format!("it answered {}", answer.status),
            Ok(fault) => {
                let description = fault.error_description.map(|text| format!(": {}", escaped(&text)));
                let hint = match (&*fault.error, redirect_uri) {
                    ("invalid_redirect_uri", Some(uri)) => {
                        format!("; it was asked for the redirect URI {uri}")
                    }
                    _ => String::new(),
                };
                format!("{}{}{hint}", escaped(&fault.error), description.unwrap_or_default())
            }
        }));
    }
    let found: Registered = answer.json().map_err(|_| refused("its answer has no client id".into()))?;
    let method = match &found.token_endpoint_auth_method {
        None => requested,
        Some(name) => {
            Method::named(name).filter(|method| *method != Method::PrivateKeyJwt).ok_or_else(|| {
                refused(format!("its method of authentication, {}, was not requested", escaped(name)))
            })?
        }
    };
    if matches!(method, Method::Basic | Method::Post) && found.client_secret.is_none() {
        return Err(refused("it demands a secret, and gave none".into()));
    }
    let expires = found.client_secret_expires_at.filter(|at| *at != 0);
    if expires.is_some_and(|at| at <= crate::jose::seconds(now)) {
        return Err(refused("its secret has expired already".into()));
    }
    Ok(Registration {
        issuer: authority.issuer.clone(),
        client_id: found.client_id,
        client_secret: found.client_secret,
        method,
        redirect_uri: redirect_uri.map(str::to_owned),
        secret_expires_at: expires,
        scopes: found.scope.as_deref().map(token::parse),
        source: Source::Dynamic,
    })
}

/// The method that a client without a secret prefers, among those that the server supports. A secret of a new client goes into the
/// body: servers on the Python SDK offer `client_secret_basic` too, and then miss a `client_id` in the body, and a `client_secret`
/// there in order to revoke.
fn requested_method(authority: &Authority) -> Result<Method, Error> {
    let Some(all) = &authority.token_endpoint_auth_methods_supported else { return Ok(Method::None) };
    let preferred = [Method::None, Method::Post, Method::Basic];
    preferred.into_iter().find(|method| all.iter().any(|name| name == method.name())).ok_or_else(|| {
        let text = format!(
            "the authorization server {} supports no method of client authentication that a new client could use",
            escaped(&authority.issuer)
        );
        Error::new(ErrorKind::Registration, text)
    })
}

/// The document of a registration. Without a redirect URI, the client signs people in at another device.
///
/// > MCP clients **MUST** specify an appropriate `application_type` during dynamic client registration
fn document(
    metadata: &ClientMetadata,
    redirect_uri: Option<&str>,
    scopes: &[String],
    method: Method,
) -> Value {
    let is_web = redirect_uri
        .and_then(|uri| Url::parse(uri).ok())
        .is_some_and(|url| url.scheme() == "https" && check_secure("http", url.host_str()).is_err());
    let grant = if redirect_uri.is_some() { "authorization_code" } else { DEVICE_CODE };
    let mut document = json!({
        "client_name": metadata.name,
        "redirect_uris": redirect_uri.into_iter().collect::<Vec<_>>(),
        "grant_types": [grant, "refresh_token"],
        "response_types": redirect_uri.iter().map(|_| "code").collect::<Vec<_>>(),
        "token_endpoint_auth_method": method.name(),
        "application_type": if is_web { "web" } else { "native" },
    });
    if let Some(uri) = &metadata.uri {
        document["client_uri"] = uri.as_str().into();
    }
    if !scopes.is_empty() {
        document["scope"] = scopes.join(" ").into();
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_of_registrations() {
        let metadata = ClientMetadata { name: "host".into(), uri: None };
        for (redirect_uri, expected) in [
            ("http://127.0.0.1:1234/callback", "native"),
            ("http://localhost/callback", "native"),
            ("https://localhost/callback", "native"),
            ("com.example.app:/callback", "native"),
            ("https://host.example/callback", "web"),
        ] {
            let found = document(&metadata, Some(redirect_uri), &[], Method::None);
            assert_eq!(found["application_type"], expected, "{redirect_uri}");
            assert_eq!(found["grant_types"], json!(["authorization_code", "refresh_token"]));
            assert!(found.get("scope").is_none());
        }
        let scopes = ["a".to_owned(), "b".to_owned()];
        assert_eq!(document(&metadata, Some("http://127.0.0.1/c"), &scopes, Method::Post)["scope"], "a b");
        let device = document(&metadata, None, &[], Method::None);
        assert_eq!((&device["redirect_uris"], &device["response_types"]), (&json!([]), &json!([])));
        assert_eq!(device["grant_types"], json!([DEVICE_CODE, "refresh_token"]));
    }

    #[test]
    fn urls_of_client_documents() {
        for (url, fits) in [
            ("https://app.example/client.json", true),
            ("https://app.example/", false),
            ("https://app.example", false),
            ("http://localhost/client.json", false),
            ("https://app.example/client.json#x", false),
            ("https://me@app.example/client.json", false),
            ("client.json", false),
        ] {
            assert_eq!(check_document_url(url).is_ok(), fits, "{url}");
        }
    }

    #[test]
    fn methods_that_are_requested() {
        for (methods, expected) in [
            (None, Some(Method::None)),
            (Some(vec!["client_secret_basic", "none"]), Some(Method::None)),
            (Some(vec!["client_secret_basic", "client_secret_post"]), Some(Method::Post)),
            (Some(vec!["client_secret_basic"]), Some(Method::Basic)),
            (Some(vec!["tls_client_auth"]), None),
        ] {
            let authority = Authority {
                token_endpoint_auth_methods_supported: methods
                    .clone()
                    .map(|all| all.into_iter().map(str::to_owned).collect()),
                ..Authority::default()
            };
            assert_eq!(requested_method(&authority).ok(), expected, "{methods:?}");
        }
    }
}
