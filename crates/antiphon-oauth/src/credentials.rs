//! The identity of this program at an authorization server, and how it proves it.

use crate::{
    discover::Authority,
    error::{Error, ErrorKind, Secret},
    jose::SigningKey,
};
use antiphon_wire::escaped;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderValue, header};
use serde::{Deserialize, Serialize};
use std::{
    sync::{Arc, OnceLock},
    time::SystemTime,
};
use url::form_urlencoded::{self, Serializer};

/// A client id from an authorization server, with the proof that belongs to it.
#[derive(Clone, Debug)]
pub struct Credentials {
    pub(crate) id: String,
    pub(crate) proof: Proof,
    pub(crate) issuer: Issuer,
    in_body: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Proof {
    None,
    Secret(Secret),
    Key(SigningKey),
}

impl Credentials {
    /// A client without a secret.
    pub fn public(id: impl Into<String>) -> Self {
        Self::new(id, Proof::None)
    }

    /// A client with a secret: `client_secret_basic`, or `client_secret_post` if the server supports only that.
    pub fn secret(id: impl Into<String>, secret: impl Into<Secret>) -> Self {
        Self::new(id, Proof::Secret(secret.into()))
    }

    /// A client that signs assertions: `private_key_jwt`.
    pub fn key(id: impl Into<String>, key: SigningKey) -> Self {
        Self::new(id, Proof::Key(key))
    }

    fn new(id: impl Into<String>, proof: Proof) -> Self {
        Self { id: id.into(), proof, issuer: Issuer::default(), in_body: false }
    }

    /// Sends the secret in the body, `client_secret_post`, also where the server supports `client_secret_basic`. Authorization servers on
    /// the Python SDK of MCP say that they support both, and refuse the latter.
    #[must_use]
    pub fn in_body(mut self) -> Self {
        self.in_body = true;
        self
    }

    /// Binds the credentials to the authorization server that issued them: nothing of them is sent to another one. Without this,
    /// this value and its clones are bound to the first authorization server that a resource server names: name the issuer where
    /// a client reaches servers of several owners.
    ///
    /// > MCP clients **MUST NOT** reuse client credentials across authorization servers
    #[must_use]
    pub fn for_issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Issuer::named(issuer);
        self
    }

    pub(crate) fn key_of(&self) -> Option<&SigningKey> {
        match &self.proof {
            Proof::Key(key) => Some(key),
            Proof::None | Proof::Secret(_) => None,
        }
    }

    pub(crate) fn secret_of(&self) -> Option<&Secret> {
        match &self.proof {
            Proof::Secret(secret) => Some(secret),
            Proof::None | Proof::Key(_) => None,
        }
    }

    /// These credentials as a registration at one authorization server.
    pub(crate) fn at(&self, authority: &Authority) -> Result<Registration, Error> {
        self.issuer.check(authority, "the credentials")?;
        let (method, secret) = match &self.proof {
            Proof::None => (Method::None, None),
            Proof::Key(_) => (Method::PrivateKeyJwt, None),
            Proof::Secret(secret) if self.in_body => (Method::Post, Some(secret.clone())),
            Proof::Secret(secret) => (secret_method(authority)?, Some(secret.clone())),
        };
        Ok(Registration {
            issuer: authority.issuer.clone(),
            client_id: self.id.clone(),
            client_secret: secret,
            method,
            redirect_uri: None,
            secret_expires_at: None,
            scopes: None,
            source: Source::Given,
        })
    }
}

/// The authorization server that may receive a secret: a named one, or the first one that asks. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Issuer(Arc<OnceLock<String>>);

impl Issuer {
    pub(crate) fn named(issuer: impl Into<String>) -> Self {
        Self(Arc::new(OnceLock::from(issuer.into())))
    }

    /// Returns the authorization server, if it is known.
    pub(crate) fn name(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    /// Checks that this authorization server may receive `what`.
    pub(crate) fn check(&self, authority: &Authority, what: &str) -> Result<(), Error> {
        let issuer = self.0.get_or_init(|| authority.issuer.clone());
        if *issuer == authority.issuer {
            return Ok(());
        }
        let text = format!(
            "{what} are for the authorization server {}, and the server now names {}: they are not sent there",
            escaped(issuer),
            escaped(&authority.issuer)
        );
        Err(Error::new(ErrorKind::Issuer, text))
    }
}

/// The method for a secret that was given.
fn secret_method(authority: &Authority) -> Result<Method, Error> {
    // RFC 8414, section 2: without the list, the method is `client_secret_basic`.
    let Some(all) = &authority.token_endpoint_auth_methods_supported else { return Ok(Method::Basic) };
    let known = |method: Method| all.iter().any(|name| name == method.name());
    [Method::Basic, Method::Post].into_iter().find(|method| known(*method)).ok_or_else(|| {
        let text = format!(
            "the authorization server {} accepts no client secret, and the client has one",
            escaped(&authority.issuer)
        );
        Error::new(ErrorKind::Registration, text)
    })
}

/// A client id at one authorization server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Registration {
    pub(crate) issuer: String,
    pub(crate) client_id: String,
    pub(crate) client_secret: Option<Secret>,
    pub(crate) method: Method,
    /// The redirect URI of a dynamic registration.
    pub(crate) redirect_uri: Option<String>,
    /// Seconds since 1970.
    pub(crate) secret_expires_at: Option<u64>,
    /// The scopes that the client may request, if the authorization server limits them.
    #[serde(default)]
    pub(crate) scopes: Option<Vec<String>>,
    pub(crate) source: Source,
}

/// The way in which a client got its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Source {
    Given,
    Document,
    Dynamic,
}

/// A method of client authentication at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Method {
    #[serde(rename = "none")]
    None,
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
    #[serde(rename = "private_key_jwt")]
    PrivateKeyJwt,
}

impl Method {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::None, Self::Basic, Self::Post, Self::PrivateKeyJwt].into_iter().find(|one| one.name() == name)
    }
}

impl Registration {
    /// Adds what proves the client to a token request.
    pub(crate) fn authenticate(
        &self,
        key: Option<&SigningKey>,
        headers: &mut HeaderMap,
        form: &mut Serializer<'_, String>,
        now: SystemTime,
    ) -> Result<(), Error> {
        let missing = |what: &str| {
            Error::new(
                ErrorKind::Registration,
                format!("the client has no {what}, which its method of authentication needs"),
            )
        };
        let secret = || self.client_secret.as_ref().ok_or_else(|| missing("secret"));
        match self.method {
            Method::None => {
                form.append_pair("client_id", &self.client_id);
            }
            Method::Basic => {
                // RFC 6749, section 2.3.1: both are form-encoded first.
                let encoded =
                    |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
                let pair = format!("{}:{}", encoded(&self.client_id), encoded(secret()?.expose()));
                let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)))
                    .map_err(|_| missing("secret that fits into a header"))?;
                value.set_sensitive(true);
                headers.insert(header::AUTHORIZATION, value);
            }
            Method::Post => {
                form.append_pair("client_id", &self.client_id);
                form.append_pair("client_secret", secret()?.expose());
            }
            Method::PrivateKeyJwt => {
                let key = key.ok_or_else(|| missing("private key"))?;
                form.append_pair("client_id", &self.client_id);
                form.append_pair(
                    "client_assertion_type",
                    "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
                );
                form.append_pair(
                    "client_assertion",
                    &key.client_assertion(&self.client_id, &self.issuer, now)?,
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authority(methods: Option<&[&str]>) -> Authority {
        Authority {
            issuer: "https://as.example".into(),
            token_endpoint_auth_methods_supported: methods
                .map(|all| all.iter().map(|name| (*name).to_owned()).collect()),
            ..Authority::default()
        }
    }

    #[test]
    fn each_method_has_its_place() {
        for (credentials, methods, authorization, form) in [
            (Credentials::public("me"), None, None, "client_id=me"),
            // `a b:c` and `s%` are form-encoded.
            (
                Credentials::secret("a b:c", "s%"),
                None,
                Some(format!("Basic {}", STANDARD.encode("a+b%3Ac:s%25"))),
                "",
            ),
            (
                Credentials::secret("me", "s").in_body(),
                Some(&["client_secret_basic", "client_secret_post"][..]),
                None,
                "client_id=me&client_secret=s",
            ),
            (
                Credentials::secret("me", "s"),
                Some(&["none", "client_secret_post"][..]),
                None,
                "client_id=me&client_secret=s",
            ),
        ] {
            let registration = credentials.at(&authority(methods)).unwrap();
            let (mut headers, mut written) = (HeaderMap::new(), Serializer::new(String::new()));
            registration.authenticate(None, &mut headers, &mut written, SystemTime::now()).unwrap();
            let found = headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned());
            assert_eq!((found, written.finish().as_str()), (authorization, form));
            assert!(headers.values().all(HeaderValue::is_sensitive));
        }
    }

    #[test]
    fn credentials_go_to_their_issuer_only() {
        for (issuer, fits) in [("https://as.example", true), ("https://as.example/", false)] {
            let found = Credentials::secret("me", "s").for_issuer(issuer).at(&authority(None));
            assert_eq!(found.is_ok(), fits, "{issuer}");
            if let Err(fault) = found {
                assert_eq!(fault.kind(), ErrorKind::Issuer);
            }
        }
        assert!(Credentials::secret("me", "s").at(&authority(Some(&["none"]))).is_err());
        assert!(!format!("{:?}", Credentials::secret("me", "hidden")).contains("hidden"));
    }
}
