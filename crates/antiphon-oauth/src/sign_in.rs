//! The sign-in of a person: registration, the URL, the answer, and the code for tokens.

use crate::{
    credentials::{Registration, Source},
    discover::Authority,
    dpop::DpopKey,
    error::{Error, ErrorKind},
    flight::{Kind, Why},
    handler::Consent,
    net::Net,
    obtain::Found,
    pending::{PendingSignIn, Plan},
    record::{Access, Origin, Record, StoredTokens, dpop_key, dpop_text},
    register,
    scope::{self, ScopeSources},
    session::Session,
    token::{TokenEndpoint, TokenFault},
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
        let why = Why::of(Kind::Login, None, &Challenge::parse_all(challenge));
        let record = self.record().await?;
        let found = self.discover(Net { reach: self.reach().await }, &record, &why).await?;
        let is_same = record.tokens.as_ref().is_some_and(|tokens| tokens.issuer == found.authority.issuer);
        let scopes = scope::select(&ScopeSources {
            challenged: why.scope.as_deref(),
            before: if is_same { &record.asked } else { &[] },
            resource: found.resource.as_ref(),
            authority: &found.authority,
            always: &self.settings.scopes,
            offline: self.settings.offline,
        });
        self.plan(&found, &record, scopes, redirect_uri).await
    }

    /// Finishes a sign-in with the address to which the browser returned. The tokens are stored, and the session uses them.
    ///
    /// # Errors
    /// [`Callback`](ErrorKind::Callback) or [`Issuer`](ErrorKind::Issuer) if the address is not the answer to this sign-in;
    /// [`Denied`](ErrorKind::Denied) if the person refused; other kinds if no token is issued.
    pub async fn finish(&self, pending: PendingSignIn, returned: &str) -> Result<(), Error> {
        let is_here = Url::parse(&pending.server).is_ok_and(|server| Ok(server) == Url::parse(&self.server));
        if !is_here || pending.account != self.settings.account {
            let text = "this sign-in was begun for another server or account";
            return Err(Error::new(ErrorKind::Callback, text));
        }
        self.redeem(Net { reach: self.reach().await }, &pending, returned)
            .await
            .map(drop)
            .map_err(Error::from)
    }

    /// Signs a person in with the handler.
    pub(crate) async fn sign_in(
        &self,
        found: &Found,
        record: &Record,
        scopes: Vec<String>,
    ) -> Result<Arc<Access>, Error> {
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
        endpoint(authority.token_endpoint.as_deref(), "token endpoint")?;
        let client = self.client(found, record, &scopes, redirect_uri).await?;
        let key = found.dpop.then(DpopKey::generate).transpose()?;
        let plan = Plan {
            server: self.server.clone(),
            account: self.settings.account.clone(),
            issuer: authority.issuer.clone(),
            names_issuer: authority.authorization_response_iss_parameter_supported,
            token_endpoint: authority.token_endpoint.clone().unwrap_or_default(),
            revocation_endpoint: authority.revocation_endpoint.clone(),
            client,
            redirect_uri: redirect_uri.to_owned(),
            resource: found.parameter.clone(),
            scopes,
            dpop_key: key.as_ref().map(dpop_text),
            dpop_required: found.dpop_required,
        };
        PendingSignIn::begin(plan, authorize, &self.settings.parameters, self.now())
    }

    /// The client at this authorization server: given, by a document, registered before, or registered now.
    async fn client(
        &self,
        found: &Found,
        record: &Record,
        scopes: &[String],
        redirect_uri: &str,
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
            && known.redirect_uri.as_deref() == Some(redirect_uri)
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
        let key = pending.dpop_key.as_ref().map(dpop_key).transpose()?;
        let endpoint = TokenEndpoint {
            net,
            url: net.check(&pending.token_endpoint, "the token endpoint")?,
            issuer: &pending.issuer,
            client: Some(&pending.client),
            key: self.signing_key(),
            dpop: key.as_ref(),
            nonces: &self.nonces,
            now: self.now(),
        };
        let mut parameters = vec![
            ("grant_type", "authorization_code"),
            ("code", code.expose()),
            ("redirect_uri", &pending.redirect_uri),
            ("code_verifier", pending.verifier()),
        ];
        parameters.extend(pending.resource.as_deref().map(|resource| ("resource", resource)));
        let tokens = endpoint.request(&parameters).await?;
        let _lock = self.settings.store.lock(&self.key).await?;
        let mut record = self.record().await?;
        if pending.client.source == Source::Dynamic {
            record.keep(&pending.client);
        }
        record.asked = pending.scopes.clone();
        let stored = StoredTokens {
            issuer: pending.issuer.clone(),
            token_endpoint: pending.token_endpoint.clone(),
            revocation_endpoint: pending.revocation_endpoint.clone(),
            client: Some(pending.client.clone()),
            resource: pending.resource.clone(),
            access_token: tokens.access_token.clone(),
            refresh_token: tokens.refresh_token.clone(),
            dpop_key: pending.dpop_key.clone(),
            is_dpop: false,
            obtained_at: 0,
            expires_at: None,
            scopes: pending.scopes.clone(),
        };
        let has_key = key.is_some();
        Ok(self.accept(&mut record, stored, tokens, has_key, pending.dpop_required, Origin::Grant).await?)
    }
}
