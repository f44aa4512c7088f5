//! Grants of machines: tokens that no person signs in for.

use crate::{
    credentials::{Credentials, Issuer},
    discover::Authority,
    error::{Error, ErrorKind, Secret},
    jose::{DpopKey, Nonces},
    net::Net,
    token::{TokenEndpoint, Tokens},
};
use antiphon_connect::Reach;
use futures_util::future::BoxFuture;
use std::{error::Error as StdError, fmt, sync::Arc, time::SystemTime};
use url::Url;

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

type Source = Arc<dyn Fn() -> BoxFuture<'static, Result<Secret, Error>> + Send + Sync>;

/// The way to tokens.
#[derive(Clone)]
#[non_exhaustive]
pub enum Grant {
    /// A person signs in: authorization code with PKCE.
    Code,
    /// The credentials of the client are enough (extension `io.modelcontextprotocol/oauth-client-credentials`).
    ClientCredentials,
    /// A JWT of the platform on which the program runs, for its workload (RFC 7523; extension
    /// `io.modelcontextprotocol/auth/wif-jwt-bearer`). See [`Grant::assertion`].
    Assertion(Assertion),
    /// The identity provider of an enterprise decides (extension `io.modelcontextprotocol/enterprise-managed-authorization`).
    Enterprise(IdentityProvider),
    /// Another token is exchanged at the authorization server (RFC 8693). See [`Grant::exchange`].
    Exchange(Exchange),
}

/// A source of assertions.
#[derive(Clone)]
pub struct Assertion(Source, Issuer);

/// A source of tokens to exchange.
#[derive(Clone)]
pub struct Exchange {
    subject: Source,
    subject_type: String,
    issuer: Issuer,
}

/// An identity provider, which exchanges the identity of a person for an assertion to the authorization server of a resource
/// server.
#[derive(Clone)]
pub struct IdentityProvider {
    issuer: String,
    token_endpoint: String,
    client: Credentials,
    id_token: Source,
}

impl Grant {
    /// A grant with assertions of this source, which is called for each token. A refused assertion is an error: no other grant is
    /// tried.
    pub fn assertion<F, Fut, E>(source: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        Self::Assertion(Assertion(source_of(source), Issuer::default()))
    }

    /// A grant that exchanges tokens of this source, of a type such as `urn:ietf:params:oauth:token-type:access_token`.
    pub fn exchange<F, Fut, E>(subject_type: impl Into<String>, source: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        let (subject, issuer) = (source_of(source), Issuer::default());
        Self::Exchange(Exchange { subject, subject_type: subject_type.into(), issuer })
    }

    /// Binds an assertion or an exchange to this authorization server: no other one receives a token of the source. Without this, the
    /// grant and its clones are bound to the first one that a resource server names: name the issuer where a client reaches servers of
    /// several owners. Other grants stay as they are.
    #[must_use]
    pub fn for_issuer(self, issuer: impl Into<String>) -> Self {
        match self {
            Self::Assertion(Assertion(source, _)) => {
                Self::Assertion(Assertion(source, Issuer::named(issuer)))
            }
            Self::Exchange(exchange) => {
                Self::Exchange(Exchange { issuer: Issuer::named(issuer), ..exchange })
            }
            other => other,
        }
    }

    pub(crate) fn is_machine(&self) -> bool {
        !matches!(self, Self::Code)
    }

    pub(crate) fn needs_credentials(&self) -> bool {
        matches!(self, Self::ClientCredentials | Self::Enterprise(_))
    }
}

impl IdentityProvider {
    /// An identity provider with the client that this program is there. `id_token` is called for each token, and returns the ID
    /// token of the person.
    pub fn new<F, Fut, E>(
        issuer: impl Into<String>,
        token_endpoint: impl Into<String>,
        client: Credentials,
        id_token: F,
    ) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        Self {
            issuer: issuer.into(),
            token_endpoint: token_endpoint.into(),
            client,
            id_token: source_of(id_token),
        }
    }

    /// Exchanges the ID token for an assertion (ID-JAG) to this authorization server.
    async fn assertion(&self, request: &GrantRequest<'_>) -> Result<Secret, Error> {
        let subject = (self.id_token)().await?;
        let scope = request.scopes.join(" ");
        let url = Url::parse(&self.token_endpoint);
        let host = url.as_ref().ok().and_then(Url::host_str).unwrap_or_default().to_owned();
        // Its place is a setting of this program, not a word of the resource server.
        let net = Net { reach: Reach::of_host(&host).await };
        let authority = Authority { issuer: self.issuer.clone(), ..Authority::default() };
        let client = self.client.at(&authority)?;
        let nonces = Nonces::default();
        let endpoint = TokenEndpoint {
            net,
            url: net.check(&self.token_endpoint, "the token endpoint of the identity provider")?,
            issuer: &self.issuer,
            client: Some(&client),
            key: self.client.key_of(),
            dpop: None,
            nonces: &nonces,
            now: request.now,
        };
        let mut parameters = vec![
            ("grant_type", TOKEN_EXCHANGE),
            ("requested_token_type", ID_JAG),
            ("audience", &request.authority.issuer),
            ("subject_token", subject.expose()),
            ("subject_token_type", ID_TOKEN),
        ];
        parameters.extend(request.resource.map(|resource| ("resource", resource)));
        parameters.extend(Some(("scope", &*scope)).filter(|_| !scope.is_empty()));
        let tokens = endpoint.request(&parameters).await?;
        if tokens.issued_type.as_deref() != Some(ID_JAG) {
            let text = "the identity provider issued a token of another type than an ID-JAG";
            return Err(Error::new(ErrorKind::Token, text));
        }
        Ok(tokens.access_token)
    }
}

/// One request of a machine for a token.
pub(crate) struct GrantRequest<'a> {
    pub(crate) net: Net,
    pub(crate) authority: &'a Authority,
    pub(crate) credentials: Option<&'a Credentials>,
    pub(crate) resource: Option<&'a str>,
    pub(crate) scopes: &'a [String],
    pub(crate) dpop: Option<&'a DpopKey>,
    pub(crate) nonces: &'a Nonces,
    pub(crate) now: SystemTime,
}

impl GrantRequest<'_> {
    /// Requests a token by a grant, once.
    pub(crate) async fn run(&self, grant: &Grant) -> Result<Tokens, Error> {
        match grant {
            Grant::Code => {
                Err(Error::new(ErrorKind::SignIn, "a person must sign in, and no handler is set for it"))
            }
            Grant::ClientCredentials => self.send(&[("grant_type", "client_credentials")]).await,
            Grant::Assertion(Assertion(source, issuer)) => {
                issuer.check(self.authority, "the assertions")?;
                let assertion = source().await?;
                self.send(&[("grant_type", JWT_BEARER), ("assertion", assertion.expose())]).await
            }
            Grant::Enterprise(provider) => {
                let assertion = provider.assertion(self).await?;
                self.send(&[("grant_type", JWT_BEARER), ("assertion", assertion.expose())]).await
            }
            Grant::Exchange(Exchange { subject, subject_type, issuer }) => {
                issuer.check(self.authority, "the tokens to exchange")?;
                let subject = subject().await?;
                let parameters = [
                    ("grant_type", TOKEN_EXCHANGE),
                    ("subject_token", subject.expose()),
                    ("subject_token_type", subject_type),
                    ("requested_token_type", ACCESS_TOKEN),
                ];
                self.send(&parameters).await
            }
        }
    }

    async fn send(&self, parameters: &[(&str, &str)]) -> Result<Tokens, Error> {
        let client = self.credentials.map(|credentials| credentials.at(self.authority)).transpose()?;
        let issuer = &self.authority.issuer;
        let endpoint = TokenEndpoint {
            net: self.net,
            url: Authority::endpoint(
                self.net,
                issuer,
                self.authority.token_endpoint.as_deref(),
                "token endpoint",
            )?,
            issuer,
            client: client.as_ref(),
            key: self.credentials.and_then(Credentials::key_of),
            dpop: self.dpop,
            nonces: self.nonces,
            now: self.now,
        };
        let scope = self.scopes.join(" ");
        let mut parameters = parameters.to_vec();
        parameters.extend(self.resource.map(|resource| ("resource", resource)));
        parameters.extend(Some(("scope", &*scope)).filter(|_| !scope.is_empty()));
        Ok(endpoint.request(&parameters).await?)
    }
}

fn source_of<F, Fut, E>(source: F) -> Source
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, E>> + Send + 'static,
    E: Into<Box<dyn StdError + Send + Sync>>,
{
    Arc::new(move || {
        let text = source();
        Box::pin(async move {
            text.await.map(Secret::new).map_err(|fault| {
                Error::caused(ErrorKind::Token, "this program has no token that it could exchange", fault)
            })
        })
    })
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Code => "Code",
            Self::ClientCredentials => "ClientCredentials",
            Self::Assertion(_) => "Assertion(..)",
            Self::Enterprise(_) => "Enterprise(..)",
            Self::Exchange(_) => "Exchange(..)",
        })
    }
}
