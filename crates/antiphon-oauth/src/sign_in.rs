//! The sign-in of a person: registration, the URL, the answer, and the code for tokens.

use crate::{
    credentials::{Registration, Source},
    discover::Authority,
    error::{Error, ErrorKind},
    flight::{Kind, Why},
    handler::Consent,
    jose::DpopKey,
    net::Net,
    obtain::Found,
    pending::{Basis, PendingSignIn},
    record::{Access, Origin, Record, StoredTokens, dpop_key, dpop_text},
    register,
    session::Session,
    token::{self, ScopeSources, TokenEndpoint, TokenFault, Tokens},
};
use antiphon_wire::Challenge;
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use url::Url;

/// The time that a person has.
const PERSON_TIME: Duration = Duration::from_secs(10 * 60);

impl Session {
    /// Signs a person in, whatever tokens there are.
    ///
    /// # Errors
    /// [`Error`] if the server cannot be found, the person refuses, or no token is issued.
    pub async fn login(self: &Arc<Self>) -> Result<(), Error> {
        self.obtain(Why::of(Kind::Login, None, &[])).await.map(drop)
    }

    /// Begins a sign-in that another function, perhaps in another process, [`finish`](Self::finish)es: for hosts on the web.
    /// `challenge` is the `WWW-Authenticate` of a refusal, if there was one.
    ///
    /// # Errors
    /// [`Error`] if the server cannot be found, or the client not be registered.
    pub async fn begin(&self, redirect_uri: &str, challenge: Option<&str>) -> Result<PendingSignIn, Error> {
        let (found, record, scopes) = self.prepared(challenge).await?;
        self.plan(&found, &record, scopes, redirect_uri).await
    }

    /// All that is known of a sign-in before its client is.
    pub(crate) async fn prepared(
        &self,
        challenge: Option<&str>,
    ) -> Result<(Found, Record, Vec<String>), Error> {
        let why = Why::of(Kind::Login, None, &Challenge::parse_all(challenge));
        let record = self.record().await?;
        let found = self.discover(Net { reach: self.reach().await }, &record, &why).await?;
        let is_same = record.tokens.as_ref().is_some_and(|tokens| tokens.issuer == found.authority.issuer);
        let scopes = token::select(&ScopeSources {
            challenged: why.scope.as_deref(),
            before: if is_same { &record.asked } else { &[] },
            resource: found.resource.as_ref(),
            authority: &found.authority,
            always: &self.settings.scopes,
            offline: self.settings.offline,
        });
        Ok((found, record, scopes))
    }

    /// Finishes a sign-in with the address to which the browser returned. The tokens are stored, and the session uses them.
    ///
    /// # Errors
    /// [`Callback`](ErrorKind::Callback) or [`Issuer`](ErrorKind::Issuer) if the address is not the answer to this sign-in;
    /// [`Denied`](ErrorKind::Denied) if the person refused; other kinds if no token is issued.
    pub async fn finish(&self, pending: PendingSignIn, returned: &str) -> Result<(), Error> {
        self.check_own(&pending.basis)?;
        self.redeem(Net { reach: self.reach().await }, &pending, returned)
            .await
            .map(drop)
            .map_err(Error::from)
    }

    /// Checks that a sign-in is one of this server and account.
    pub(crate) fn check_own(&self, basis: &Basis) -> Result<(), Error> {
        let is_here = Url::parse(&basis.server).is_ok_and(|server| Ok(server) == Url::parse(&self.server));
        if is_here && basis.account == self.settings.account {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Callback, "this sign-in was begun for another server or account"))
    }

    /// Signs a person in: at another device if the program can show a code, else with the handler.
    pub(crate) async fn sign_in(
        &self,
        found: &Found,
        record: &Record,
        scopes: Vec<String>,
    ) -> Result<Arc<Access>, Error> {
        if let Some(show) = &self.settings.device
            && found.authority.device_authorization_endpoint.is_some()
        {
            return self.sign_in_at_device(found, record, scopes, &**show).await;
        }
        let Some(handler) = &self.settings.handler else {
            let text = "the server demands a sign-in, and this program has no way to ask a person for it";
            return Err(Error::new(ErrorKind::SignIn, text));
        };
        let issuer = &found.authority.issuer;
        let mut record = record.clone();
        for is_last in [false, true] {
            let known = record.registration(issuer, self.now());
            let before = known.and_then(|known| known.redirect_uri.as_deref());
            let was_known = before.is_some();
            let place = handler.open(before).await?;
            let pending = self.plan(found, &record, scopes.clone(), place.redirect_uri()).await?;
            let consent = Consent::of(&pending);
            let returned = timeout(PERSON_TIME, place.sign_in(&consent, pending.state())).await;
            let returned = returned.unwrap_or_else(|_elapsed| {
                let text = format!("nobody signed in at {} within {PERSON_TIME:?}", consent.host());
                Err(Error::new(ErrorKind::SignIn, text))
            })?;
            match self.redeem(found.net, &pending, &returned).await {
                // The server has forgotten the client.
                Err(fault)
                    if was_known && !is_last && fault.is(&["invalid_client", "unauthorized_client"]) =>
                {
                    record.forget(issuer);
                }
                other => return Ok(other?),
            }
        }
        Err(Error::new(ErrorKind::Registration, "the authorization server does not know its own client"))
    }

    /// All that is known before a person signs in.
    async fn plan(
        &self,
        found: &Found,
        record: &Record,
        scopes: Vec<String>,
        redirect_uri: &str,
    ) -> Result<PendingSignIn, Error> {
        let authority = &found.authority;
        authority.check_pkce(self.settings.tolerances)?;
        let endpoint =
            |text: Option<&str>, what| Authority::endpoint(found.net, &authority.issuer, text, what);
        let authorize = endpoint(authority.authorization_endpoint.as_deref(), "authorization endpoint")?;
        let basis = self.basis(found, record, scopes, Some(redirect_uri)).await?;
        let names_issuer = authority.authorization_response_iss_parameter_supported;
        let (more, now) = (&self.settings.parameters, self.now());
        PendingSignIn::begin(basis, (redirect_uri, names_issuer), authorize, more, now)
    }

    /// The parts of a sign-in that do not depend on its kind. `redirect_uri` is `None` if no browser returns.
    pub(crate) async fn basis(
        &self,
        found: &Found,
        record: &Record,
        scopes: Vec<String>,
        redirect_uri: Option<&str>,
    ) -> Result<Basis, Error> {
        let authority = &found.authority;
        let token_endpoint = authority.token_endpoint.as_deref();
        Authority::endpoint(found.net, &authority.issuer, token_endpoint, "token endpoint")?;
        let client = self.client(found, record, &scopes, redirect_uri).await?;
        let key = found.dpop.then(DpopKey::generate).transpose()?;
        Ok(Basis {
            server: self.server.clone(),
            account: self.settings.account.clone(),
            issuer: authority.issuer.clone(),
            token_endpoint: token_endpoint.unwrap_or_default().to_owned(),
            revocation_endpoint: authority.revocation_endpoint.clone(),
            client,
            resource: found.parameter.clone(),
            scopes,
            dpop_key: key.as_ref().map(dpop_text),
            dpop_required: found.dpop_required,
        })
    }

    /// The client at this authorization server: given, by a document, registered before, or registered now.
    async fn client(
        &self,
        found: &Found,
        record: &Record,
        scopes: &[String],
        redirect_uri: Option<&str>,
    ) -> Result<Registration, Error> {
        let (settings, authority) = (&self.settings, &found.authority);
        if let Some(credentials) = &settings.credentials {
            return credentials.at(authority);
        }
        if let Some(document) =
            settings.document.as_ref().filter(|_| authority.client_id_metadata_document_supported)
        {
            return Ok(register::by_document(document, authority));
        }
        if let Some(known) = record.registration(&authority.issuer, self.now())
            && known.redirect_uri.as_deref() == redirect_uri
            && known.scopes.as_ref().is_none_or(|all| token::covers(all, scopes))
        {
            return Ok(known.clone());
        }
        if !settings.registers {
            let text = "this program registers at no authorization server: set credentials for this one";
            return Err(Error::new(ErrorKind::Registration, text));
        }
        register::register(found.net, authority, &settings.metadata, redirect_uri, scopes, self.now()).await
    }

    /// Checks an answer, and exchanges its code for tokens.
    async fn redeem(
        &self,
        net: Net,
        pending: &PendingSignIn,
        returned: &str,
    ) -> Result<Arc<Access>, TokenFault> {
        let code = pending.code(returned, self.now())?;
        let mut parameters = vec![
            ("grant_type", "authorization_code"),
            ("code", code.expose()),
            ("redirect_uri", &pending.redirect_uri),
            ("code_verifier", pending.verifier()),
        ];
        let basis = &pending.basis;
        parameters.extend(basis.resource.as_deref().map(|resource| ("resource", resource)));
        let tokens = self.request_tokens(net, basis, &parameters).await?;
        Ok(self.keep(basis, tokens).await?)
    }

    /// Requests the tokens of a sign-in.
    pub(crate) async fn request_tokens(
        &self,
        net: Net,
        basis: &Basis,
        parameters: &[(&str, &str)],
    ) -> Result<Tokens, TokenFault> {
        let key = basis.dpop_key.as_ref().map(dpop_key).transpose()?;
        let endpoint = TokenEndpoint {
            net,
            url: net.check(&basis.token_endpoint, "the token endpoint")?,
            issuer: &basis.issuer,
            client: Some(&basis.client),
            key: self.signing_key(),
            dpop: key.as_ref(),
            nonces: &self.nonces,
            now: self.now(),
        };
        endpoint.request(parameters).await
    }

    /// Stores the tokens of a sign-in, with the registration of its client.
    pub(crate) async fn keep(&self, basis: &Basis, tokens: Tokens) -> Result<Arc<Access>, Error> {
        let _lock = self.settings.store.lock(&self.key).await?;
        let mut record = self.record().await?;
        if basis.client.source == Source::Dynamic {
            record.keep(&basis.client);
        }
        record.asked = basis.scopes.clone();
        let stored = StoredTokens {
            issuer: basis.issuer.clone(),
            token_endpoint: basis.token_endpoint.clone(),
            revocation_endpoint: basis.revocation_endpoint.clone(),
            client: Some(basis.client.clone()),
            resource: basis.resource.clone(),
            access_token: tokens.access_token.clone(),
            refresh_token: tokens.refresh_token.clone(),
            dpop_key: basis.dpop_key.clone(),
            is_dpop: false,
            obtained_at: 0,
            expires_at: None,
            scopes: basis.scopes.clone(),
        };
        let has_key = basis.dpop_key.is_some();
        self.accept(&mut record, stored, tokens, has_key, basis.dpop_required, Origin::Grant).await
    }
}
