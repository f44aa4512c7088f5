//! The protected resource, and its metadata.

#[cfg(feature = "auth")]
use crate::serve::http::auth::{
    dpop::{Dpop, Possession},
    resource::check_url,
};
use crate::{
    identity::{Bearer, account::is_scope},
    serve::http::auth::{
        resource::{CLOCK_SKEW, Resource, challenge},
        verifier::{AnyVerifier, BearerError, BearerVerifier},
    },
};
#[cfg(feature = "auth")]
use antiphon_jwt::{AccessToken, Audience, Issuer, TokenError, TrustedIssuers, is_jwt};
use antiphon_wire::escaped;
use http::HeaderValue;
use hyper::body::Bytes;
use serde_json::json;
use std::{collections::BTreeSet, error::Error as StdError, fmt, sync::Arc, time::SystemTime};

/// The maximum length of a token in bytes.
const MAX_TOKEN: usize = 16 * 1024;

/// This server as an OAuth resource server: the tokens that it accepts, and the servers that issue them. Cheap to clone. For
/// [`HttpOptions::authorize`](crate::serve::http::HttpOptions::authorize).
#[derive(Clone)]
pub struct ResourceServer(Arc<Inner>);

struct Inner {
    resource: Resource,
    required: Vec<String>,
    implied: Vec<(String, Vec<String>)>,
    metadata: Option<Metadata>,
    #[cfg(feature = "auth")]
    issuers: TrustedIssuers,
    #[cfg(feature = "auth")]
    possession: Option<Possession>,
    other: Option<Box<dyn AnyVerifier>>,
}

/// > MCP servers **MUST** implement OAuth 2.0 Protected Resource Metadata (RFC 9728).
pub(crate) struct Metadata {
    pub(crate) path: String,
    pub(crate) body: Bytes,
    url: String,
}

/// Builds a [`ResourceServer`].
#[must_use]
pub struct ResourceServerBuilder {
    resource: String,
    name: Option<String>,
    #[cfg(feature = "auth")]
    audiences: Vec<String>,
    authorization_servers: Vec<String>,
    supported: Vec<String>,
    required: Vec<String>,
    implied: Vec<(String, Vec<String>)>,
    #[cfg(feature = "auth")]
    issuers: Vec<Issuer>,
    #[cfg(feature = "auth")]
    dpop: Option<Dpop>,
    other: Option<Box<dyn AnyVerifier>>,
}

impl ResourceServer {
    /// Begins the resource server of this URI: the URL of the MCP endpoint, which clients name when they request a token, such
    /// as `https://api.example.com/mcp`. It must be `https`, or `http` on this machine itself.
    pub fn builder(resource: impl Into<String>) -> ResourceServerBuilder {
        ResourceServerBuilder {
            resource: resource.into(),
            name: None,
            #[cfg(feature = "auth")]
            audiences: Vec::new(),
            authorization_servers: Vec::new(),
            supported: Vec::new(),
            required: Vec::new(),
            implied: Vec::new(),
            #[cfg(feature = "auth")]
            issuers: Vec::new(),
            #[cfg(feature = "auth")]
            dpop: None,
            other: None,
        }
    }

    /// Returns the path of the metadata, if there is any. A router must route this path to the same
    /// [`HttpService`](crate::serve::http::HttpService) as the endpoint; [`serve_http`](crate::serve::http::serve_http)
    /// does.
    pub fn metadata_path(&self) -> Option<&str> {
        self.0.metadata.as_ref().map(|metadata| &*metadata.path)
    }

    /// Returns host and port, as clients name them.
    pub(crate) fn authority(&self) -> &str {
        self.0.resource.authority()
    }

    pub(crate) fn metadata(&self) -> Option<&Metadata> {
        self.0.metadata.as_ref()
    }

    /// Returns whether this is the other one, or a clone of it.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the scopes that every request needs.
    pub(crate) fn required(&self) -> &[String] {
        &self.0.required
    }

    /// Returns the check of tokens that are bound to a key, if there is one.
    #[cfg(feature = "auth")]
    pub(crate) fn possession(&self) -> Option<&Possession> {
        self.0.possession.as_ref()
    }

    pub(crate) fn accepts_dpop(&self) -> bool {
        self.dpop_algorithms().is_some()
    }

    pub(crate) fn requires_dpop(&self) -> bool {
        #[cfg(feature = "auth")]
        return self.possession().is_some_and(Possession::is_required);
        #[cfg(not(feature = "auth"))]
        return false;
    }

    /// The algorithms of proofs, if bound tokens are accepted.
    fn dpop_algorithms(&self) -> Option<&str> {
        #[cfg(feature = "auth")]
        return self.possession().map(Possession::algorithms);
        #[cfg(not(feature = "auth"))]
        return None;
    }

    /// Verifies a token, and returns its principal with its scopes and those that they imply.
    pub(crate) async fn verify_token(&self, token: &str, now: SystemTime) -> Result<Bearer, BearerError> {
        if token.len() > MAX_TOKEN {
            return Err(BearerError::invalid(format!("{} bytes are too many", token.len())));
        }
        let bearer = self.verified(token, now).await?;
        let is_over = |end: SystemTime| end.checked_add(CLOCK_SKEW).is_some_and(|end| now >= end);
        if bearer.expires_at().is_some_and(is_over) {
            return Err(BearerError::invalid("expired"));
        }
        Ok(self.with_implied(bearer))
    }

    async fn verified(&self, token: &str, now: SystemTime) -> Result<Bearer, BearerError> {
        let Inner { resource, other, .. } = &*self.0;
        #[cfg(feature = "auth")]
        if !self.0.issuers.is_empty() && (other.is_none() || is_jwt(token)) {
            return self.0.issuers.verify(token, now).await.map(bearer_of).map_err(error_of);
        }
        #[cfg(not(feature = "auth"))]
        let _ = now;
        match other {
            Some(other) => other.verify_boxed(token, resource.uri()).await,
            // `build` rejects this.
            None => Err(BearerError::invalid("no verifier for tokens")),
        }
    }

    /// > Servers **MUST** account for scope hierarchies, where a broader scope implies narrower ones
    fn with_implied(&self, bearer: Bearer) -> Bearer {
        if self.0.implied.is_empty() {
            return bearer;
        }
        let mut scopes: BTreeSet<String> = bearer.scopes().map(str::to_owned).collect();
        loop {
            let before = scopes.len();
            for (broad, narrow) in &self.0.implied {
                if scopes.contains(broad) {
                    scopes.extend(narrow.iter().cloned());
                }
            }
            if scopes.len() == before {
                return bearer.with_scopes(scopes);
            }
        }
    }

    /// Returns the value of `WWW-Authenticate` with these scopes and those that every request needs.
    pub(crate) fn challenge(&self, error: Option<&'static str>, scopes: &[String]) -> HeaderValue {
        let mut all: Vec<&str> = self.0.required.iter().map(String::as_str).collect();
        for scope in scopes {
            if !all.contains(&scope.as_str()) {
                all.push(scope);
            }
        }
        let metadata = self.0.metadata.as_ref().map(|metadata| &*metadata.url);
        let dpop = self.dpop_algorithms().map(|algorithms| (algorithms, self.requires_dpop()));
        challenge(error, &all, metadata, dpop)
    }
}

#[cfg(feature = "auth")]
fn bearer_of(token: AccessToken) -> Bearer {
    let bearer = Bearer::new(token.principal).with_scopes(token.scopes);
    bearer.expiring_at(token.expires_at).with_claims(token.claims)
}

#[cfg(feature = "auth")]
fn error_of(error: TokenError) -> BearerError {
    match error {
        TokenError::Invalid(cause) => BearerError::invalid(cause),
        TokenError::Unavailable(cause) => BearerError::unavailable(cause),
    }
}

impl ResourceServerBuilder {
    /// Accepts JWT access tokens of this issuer; several may be given. The metadata names each.
    #[cfg(feature = "auth")]
    pub fn issuer(mut self, issuer: Issuer) -> Self {
        self.authorization_servers.push(issuer.name().to_owned());
        self.issuers.push(issuer);
        self
    }

    /// Verifies tokens with this verifier. With issuers too, the verifier gets the tokens without the form of a JWT.
    pub fn verifier(mut self, verifier: impl BearerVerifier) -> Self {
        self.other = Some(Box::new(verifier));
        self
    }

    /// Names this issuer in the metadata, for the tokens of a [`verifier`](Self::verifier). Without any, and without issuers,
    /// there is no metadata.
    ///
    /// > The Protected Resource Metadata document returned by the MCP server **MUST** include the
    /// > `authorization_servers` field containing at least one authorization server.
    pub fn authorization_server(mut self, issuer: impl Into<String>) -> Self {
        self.authorization_servers.push(issuer.into());
        self
    }

    /// Accepts JWTs for exactly this audience too: for an issuer without resource indicators. The audience must mean this
    /// server and no other.
    #[cfg(feature = "auth")]
    pub fn accept_audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Accepts tokens that are bound to a key, and verifies the proof of each request with one (DPoP, RFC 9449). A token of a
    /// [`verifier`](Self::verifier) is bound by its claim `cnf`: `{"jkt": THUMBPRINT}`. Without this, the server does not know of such keys.
    #[cfg(feature = "auth")]
    pub fn dpop(mut self, rules: Dpop) -> Self {
        self.dpop = Some(rules);
        self
    }

    /// Sets the name of the server, which a person reads who is asked for access.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the scopes in the metadata: those that a client requests first. Tools may need others, which a client learns when
    /// it calls them.
    pub fn scopes_supported<Text: Into<String>>(mut self, scopes: impl IntoIterator<Item = Text>) -> Self {
        self.supported.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Sets the scopes that a token must hold for any request. Default: none.
    pub fn required_scopes<Text: Into<String>>(mut self, scopes: impl IntoIterator<Item = Text>) -> Self {
        self.required.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Lets the scope `broad` imply these scopes.
    pub fn scope_implies<Text: Into<String>>(
        mut self,
        broad: impl Into<String>,
        narrow: impl IntoIterator<Item = Text>,
    ) -> Self {
        self.implied.push((broad.into(), narrow.into_iter().map(Into::into).collect()));
        self
    }

    /// Builds the resource server. Nothing is fetched yet.
    ///
    /// # Errors
    /// If a setting is invalid: the text names it and says what to change.
    pub fn build(self) -> Result<ResourceServer, ResourceServerError> {
        let resource = Resource::parse(&self.resource).map_err(|fault| refuse("the resource", &fault))?;
        let narrow = self.implied.iter().flat_map(|(broad, narrow)| [broad].into_iter().chain(narrow));
        for scope in self.supported.iter().chain(&self.required).chain(narrow) {
            if !is_scope(scope) {
                let fault = format!(
                    "`{}` is none: printable ASCII without spaces, quotes and backslashes",
                    escaped(scope)
                );
                return Err(refuse("a scope", &fault));
            }
        }
        #[cfg(feature = "auth")]
        for issuer in &self.issuers {
            check_url(issuer.name()).map_err(|fault| refuse("an issuer", &fault))?;
        }
        #[cfg(feature = "auth")]
        if self.audiences.iter().any(String::is_empty) {
            return Err(refuse(
                "an audience",
                "an empty audience would match every token without an audience",
            ));
        }
        #[cfg(feature = "auth")]
        let issuers = {
            let audience = self.audiences.into_iter().fold(Audience::resource(resource.uri()), Audience::or);
            TrustedIssuers::new(self.issuers, audience, CLOCK_SKEW)
                .map_err(|fault| refuse("an issuer", &fault))?
        };
        #[cfg(feature = "auth")]
        let nobody = issuers.is_empty() && self.other.is_none();
        #[cfg(not(feature = "auth"))]
        let nobody = self.other.is_none();
        if nobody {
            return Err(refuse("tokens", "there is no verifier: add an `issuer` or a `verifier`"));
        }
        #[cfg(feature = "auth")]
        let possession = {
            let possession = self.dpop.map(|rules| Possession::new(&rules, resource.uri()));
            possession.transpose().map_err(|fault| refuse("the resource", &fault))?
        };
        #[cfg(feature = "auth")]
        let proofs = possession.as_ref().map(|rules| (rules.algorithms(), rules.is_required()));
        #[cfg(not(feature = "auth"))]
        let proofs = None;
        let servers = Some(self.authorization_servers).filter(|servers| !servers.is_empty());
        let metadata =
            servers.map(|servers| metadata(&resource, self.name, &servers, &self.supported, proofs));
        Ok(ResourceServer(Arc::new(Inner {
            resource,
            required: self.required,
            implied: self.implied,
            metadata,
            #[cfg(feature = "auth")]
            issuers,
            #[cfg(feature = "auth")]
            possession,
            other: self.other,
        })))
    }
}

/// Returns the document for clients. `proofs` has the algorithms of proofs of possession, and `true` if each token needs one.
fn metadata(
    resource: &Resource,
    name: Option<String>,
    authorization_servers: &[String],
    scopes: &[String],
    proofs: Option<(&str, bool)>,
) -> Metadata {
    let mut document = json!({
        "resource": resource.uri(),
        "authorization_servers": authorization_servers,
        // > Access tokens **MUST NOT** be included in the URI query string
        "bearer_methods_supported": ["header"],
    });
    if !scopes.is_empty() {
        document["scopes_supported"] = scopes.into();
    }
    if let Some(name) = name {
        document["resource_name"] = name.into();
    }
    if let Some((algorithms, is_required)) = proofs {
        document["dpop_signing_alg_values_supported"] = algorithms.split(' ').collect();
        document["dpop_bound_access_tokens_required"] = is_required.into();
    }
    let body = document.to_string().into();
    Metadata { path: resource.metadata_path(), url: resource.metadata_url(), body }
}

fn refuse(what: &str, fault: &str) -> ResourceServerError {
    ResourceServerError(format!("{what}: {fault}"))
}

/// An invalid setting of a resource server. The text says what to change.
#[derive(Debug)]
pub struct ResourceServerError(String);

impl fmt::Display for ResourceServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for ResourceServerError {}

impl fmt::Debug for ResourceServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceServer").field("resource", &self.0.resource.uri()).finish_non_exhaustive()
    }
}

impl fmt::Debug for ResourceServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceServerBuilder").field("resource", &self.resource).finish_non_exhaustive()
    }
}
