//! The OAuth client of a program, and its builder. The state of a session's sign-in, and its end.

use crate::{
    credentials::{Credentials, Registration},
    device::DeviceSignIn,
    discover::{Authority, Tolerances},
    error::{Error, ErrorKind, Secret},
    grant::Grant,
    handler::{self, SignInHandler},
    net::Net,
    record::StoredTokens,
    register::{self, ClientMetadata, ResourceParameter, Settings},
    session::Session,
    store::{MemoryStore, TokenStore},
};
use antiphon_wire::escaped;
use http::HeaderMap;
use std::{
    collections::HashMap,
    error::Error as StdError,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use url::{Url, form_urlencoded::Serializer};

/// The OAuth client of a program: its identity at authorization servers, its tokens, and its way to ask people.
///
/// A clone is the same client. A host with several users has one for each of them, each with a store or an
/// [`account`](OAuthBuilder::account) of its own.
#[derive(Clone)]
pub struct OAuth {
    settings: Arc<Settings>,
    sessions: Arc<Mutex<HashMap<String, Arc<Session>>>>,
}

/// The settings of an [`OAuth`] client.
#[must_use]
pub struct OAuthBuilder(Settings);

impl OAuth {
    /// The settings of a client. People see its name when they sign in.
    pub fn builder(name: impl Into<String>) -> OAuthBuilder {
        OAuthBuilder(Settings {
            metadata: ClientMetadata { name: name.into(), uri: None },
            credentials: None,
            document: None,
            registers: true,
            handler: None,
            device: None,
            store: Arc::new(MemoryStore::new()),
            account: String::new(),
            scopes: Vec::new(),
            offline: true,
            grant: Grant::Code,
            tolerances: Tolerances::default(),
            resource: ResourceParameter::Standard,
            parameters: Vec::new(),
            clock: Arc::new(SystemTime::now),
        })
    }

    /// Returns the session with the resource server at this URL: the same one for each call with the same URL.
    ///
    /// # Errors
    /// [`Setting`](ErrorKind::Setting) if the URL is none of a server.
    pub fn session(&self, server: &str) -> Result<Arc<Session>, Error> {
        let unusable =
            || Error::new(ErrorKind::Setting, format!("`{}` is no URL of a server", escaped(server)));
        let mut url = Url::parse(server).map_err(|_| unusable())?;
        if url.host_str().is_none() || !matches!(url.scheme(), "http" | "https") {
            return Err(unusable());
        }
        url.set_fragment(None);
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let session = sessions
            .entry(url.as_str().to_owned())
            .or_insert_with(|| Arc::new(Session::new(Arc::clone(&self.settings), server, url)));
        Ok(Arc::clone(session))
    }
}

impl OAuthBuilder {
    /// Sets the URL of the program's page, which people may see when they sign in.
    pub fn client_uri(mut self, uri: impl Into<String>) -> Self {
        self.0.metadata.uri = Some(uri.into());
        self
    }

    /// Sets a client id, with its secret or key, that an authorization server issued. It comes before every other way to get one.
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.0.credentials = Some(credentials);
        self
    }

    /// Sets the URL of the program's client metadata document: its client id at authorization servers that support such documents.
    ///
    /// > MCP clients and authorization servers **SHOULD** support OAuth Client ID Metadata Documents
    pub fn metadata_document(mut self, url: impl Into<String>) -> Self {
        self.0.document = Some(Credentials::public(url));
        self
    }

    /// As [`metadata_document`](Self::metadata_document), for a document that names a key set with the public half of this key.
    pub fn metadata_document_with_key(mut self, url: impl Into<String>, key: crate::SigningKey) -> Self {
        self.0.document = Some(Credentials::key(url, key));
        self
    }

    /// Does not register at authorization servers; without this, the program registers where it has no other client id.
    pub fn no_registration(mut self) -> Self {
        self.0.registers = false;
        self
    }

    /// Sets how people sign in. Without a handler, a sign-in that is needed is an error of the kind [`SignIn`](ErrorKind::SignIn).
    pub fn handler(mut self, handler: impl SignInHandler) -> Self {
        self.0.handler = Some(Arc::new(handler));
        self
    }

    /// Signs people in at another device, where the authorization server supports that (RFC 8628): `show` gets what the person needs,
    /// the address of a page and a code, and the sign-in ends when the person has agreed there. It comes before a
    /// [`handler`](Self::handler). For machines without a browser.
    pub fn device<F, Fut, E>(mut self, show: F) -> Self
    where
        F: Fn(DeviceSignIn) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        self.0.device = Some(Arc::new(move |begun| {
            let shown = show(begun);
            Box::pin(async move { shown.await.map_err(handler::not_signed_in) })
        }));
        self
    }

    /// Sets where tokens stay: in memory unless set.
    pub fn store(mut self, store: impl TokenStore) -> Self {
        self.0.store = Arc::new(store);
        self
    }

    /// Names the account, for a person with several ones at the same server: its tokens have an entry of their own in the store.
    pub fn account(mut self, name: impl Into<String>) -> Self {
        self.0.account = name.into();
        self
    }

    /// Adds scopes to those that the server asks for.
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.0.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Does not request `offline_access`; without this, it is requested where the authorization server knows it.
    pub fn no_offline_access(mut self) -> Self {
        self.0.offline = false;
        self
    }

    /// Adds a parameter to the URL at which people sign in, such as `login_hint`. Parameters of the protocol stay as they are.
    pub fn parameter(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.0.parameters.push((name.into(), value.into()));
        self
    }

    /// Gets tokens by another grant than a sign-in: nobody is asked.
    pub fn grant(mut self, grant: Grant) -> Self {
        self.0.grant = grant;
        self
    }

    /// Accepts metadata whose issuer differs from the expected one by a slash at the end of a URL without a path. Not allowed by
    /// the specification; some large authorization servers are so.
    pub fn tolerate_root_slash(mut self) -> Self {
        self.0.tolerances.root_slash = true;
        self
    }

    /// Uses PKCE although the authorization server does not say that it supports it. Not allowed by the specification.
    pub fn assume_pkce(mut self) -> Self {
        self.0.tolerances.assume_pkce = true;
        self
    }

    /// Sets the `resource` parameter of requests.
    pub fn resource(mut self, parameter: ResourceParameter) -> Self {
        self.0.resource = parameter;
        self
    }

    /// Sets the clock, for tests: the one of the system unless set.
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.0.clock = Arc::new(now);
        self
    }

    /// Makes the client. Nothing is connected yet.
    ///
    /// # Errors
    /// [`Setting`](ErrorKind::Setting) if the URL of the metadata document is not `https` with a path, or a grant needs credentials
    /// and there are none.
    pub fn build(self) -> Result<OAuth, Error> {
        if let Some(document) = &self.0.document {
            register::check_document_url(&document.id)?;
        }
        if self.0.grant.needs_credentials() && self.0.credentials.is_none() {
            let text = "this grant needs the credentials of a client: set `credentials`";
            return Err(Error::new(ErrorKind::Setting, text));
        }
        Ok(OAuth { settings: Arc::new(self.0), sessions: Arc::default() })
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").field("name", &self.settings.metadata.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for OAuthBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthBuilder").field("name", &self.0.metadata.name).finish_non_exhaustive()
    }
}

/// A sign-in, without its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignedIn {
    /// The authorization server.
    pub issuer: String,
    /// The client id of this program there; `None` if a grant needs none.
    pub client_id: Option<String>,
    /// The granted scopes, as far as the authorization server says.
    pub scopes: Vec<String>,
    /// The end of the access token, if it has one.
    pub expires_at: Option<SystemTime>,
    /// `true` if the access token can be renewed without a person.
    pub renews: bool,
    /// `true` if the access token is bound to a key.
    pub bound: bool,
}

/// The end of a sign-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignedOut {
    /// There was no sign-in.
    Nothing,
    /// The tokens are removed here, and revoked at the authorization server.
    Revoked,
    /// The tokens are removed here. The authorization server revokes none, or did not answer: they are valid until they expire.
    Removed,
}

impl Session {
    /// Returns the sign-in of the store; `None` if there is none. Nothing is sent.
    ///
    /// # Errors
    /// [`Error`] if the store fails.
    pub async fn signed_in(&self) -> Result<Option<SignedIn>, Error> {
        let Some(tokens) = self.record().await?.tokens else { return Ok(None) };
        Ok(Some(SignedIn {
            client_id: tokens.client.map(|client| client.client_id),
            scopes: tokens.scopes,
            expires_at: tokens.expires_at.map(|at| UNIX_EPOCH + Duration::from_secs(at)),
            renews: tokens.refresh_token.is_some() || self.settings.grant.is_machine(),
            bound: tokens.is_dpop,
            issuer: tokens.issuer,
        }))
    }

    /// Returns the access token for another program, renewed if it is late; `None` if there is no sign-in. A token that is bound to a
    /// key is of no use without it.
    ///
    /// # Errors
    /// [`Error`] if the token is late and cannot be renewed, or the store fails.
    pub async fn token(self: &Arc<Self>) -> Result<Option<Secret>, Error> {
        Ok(self.access().await?.map(|access| access.token.clone()))
    }

    /// Ends the sign-in: the tokens are removed from the store, and revoked at the authorization server if it says where (RFC 7009).
    /// The registration of this program stays. A request that is under way keeps its token.
    ///
    /// # Errors
    /// [`Error`] if the store fails; the authorization server is asked after that.
    pub async fn logout(&self) -> Result<SignedOut, Error> {
        let tokens = {
            let _lock = self.settings.store.lock(&self.key).await?;
            let mut record = self.record().await?;
            self.set_current(None);
            let Some(tokens) = record.tokens.take() else { return Ok(SignedOut::Nothing) };
            record.asked.clear();
            self.settings.store.save(&self.key, &record.write()).await?;
            tokens
        };
        match self.revoke(&tokens).await {
            Ok(true) => Ok(SignedOut::Revoked),
            Ok(false) => Ok(SignedOut::Removed),
            Err(fault) => {
                tracing::warn!(fault = %escaped(&fault), "the tokens could not be revoked");
                Ok(SignedOut::Removed)
            }
        }
    }

    /// Removes all that is stored of this server and account, the registration of this program with it: the next sign-in begins
    /// anew. For an authorization server that has forgotten the program, and says so in the browser only.
    ///
    /// # Errors
    /// [`Error`] if the store fails.
    pub async fn forget(&self) -> Result<(), Error> {
        let _lock = self.settings.store.lock(&self.key).await?;
        self.set_current(None);
        self.settings.store.remove(&self.key).await
    }

    /// Revokes the refresh token, and with it the others, or else the access token.
    async fn revoke(&self, tokens: &StoredTokens) -> Result<bool, Error> {
        let Some(endpoint) = &tokens.revocation_endpoint else { return Ok(false) };
        let net = Net { reach: self.reach().await };
        let url = Authority::endpoint(net, &tokens.issuer, Some(endpoint), "revocation endpoint")?;
        let (token, hint) = match &tokens.refresh_token {
            Some(token) => (token, "refresh_token"),
            None => (&tokens.access_token, "access_token"),
        };
        let mut headers = HeaderMap::new();
        let form = {
            let mut form = Serializer::new(String::new());
            form.append_pair("token", token.expose()).append_pair("token_type_hint", hint);
            if let Some(client) = &tokens.client {
                let settings = self.settings.credentials.as_ref();
                // The secret of another authorization server, where the program may have the same name, is not sent.
                let is_own = |own: &&Credentials| {
                    own.id == client.client_id
                        && own.issuer.name().is_none_or(|issuer| issuer == tokens.issuer)
                };
                let secret = settings.filter(is_own).and_then(Credentials::secret_of);
                let secret = client.client_secret.clone().or(secret.cloned());
                let client = Registration { client_secret: secret, ..client.clone() };
                client.authenticate(self.signing_key(), &mut headers, &mut form, self.now())?;
            }
            form.finish()
        };
        Ok(net.post_form(&url, headers, &form).await?.status.is_success())
    }
}
