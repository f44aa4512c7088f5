//! The way to another token: the store, discovery, a refresh, a grant of a machine, or the sign-in of a person.

use crate::{
    credentials::Registration,
    discover::{self, Authority, Resource},
    error::{Error, ErrorKind},
    flight::{Flight, Kind, Why},
    grant::GrantRequest,
    jose::DpopKey,
    net::Net,
    record::{Access, Origin, Record, StoredTokens, dpop_key, dpop_text},
    register::ResourceParameter,
    session::Session,
    token::{self, Scheme, ScopeSources, TokenEndpoint, Tokens},
};
use antiphon_wire::escaped;
use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};
use tokio::time::timeout;

/// The maximum time to wait for another process.
const LOCK_TIME: Duration = Duration::from_secs(20);

/// The maximum life of a token that is believed, in seconds.
const MAX_LIFE: u64 = 10 * 365 * 24 * 60 * 60;

/// The result of discovery.
pub(crate) struct Found {
    pub(crate) net: Net,
    pub(crate) resource: Option<Resource>,
    pub(crate) authority: Authority,
    /// The `resource` parameter of requests.
    pub(crate) parameter: Option<String>,
    pub(crate) dpop: bool,
    pub(crate) dpop_required: bool,
}

impl Session {
    /// Gets another token: one that is there meanwhile, or the one of the attempt under way, or that of a new attempt.
    pub(crate) async fn obtain(self: &Arc<Self>, why: Why) -> Result<Arc<Access>, Error> {
        let why = Arc::new(why);
        // The attempt under way may be for other scopes. After it comes one for these.
        for _ in 0..2 {
            let (outcome, is_own) = {
                let mut flight = self.flight.lock().unwrap_or_else(PoisonError::into_inner);
                let does =
                    |access: &Arc<Access>| why.is_answered_by(access) && !access.is_expired(self.now());
                if let Some(access) = self.current().filter(does) {
                    return Ok(access);
                }
                match &*flight {
                    Some(flight) if flight.is_for(&why) => (flight.outcome.clone(), false),
                    _ => {
                        let (session, reason) = (Arc::clone(self), Arc::clone(&why));
                        let attempt = async move { session.fly(&reason).await };
                        (flight.insert(Flight::begin(&why, attempt)).outcome.clone(), true)
                    }
                }
            };
            let access = outcome.await?;
            // A person may have granted less than was asked for: the server decides, and nobody is asked again.
            if is_own || why.kind == Kind::Login || why.is_answered_by(&access) {
                return Ok(access);
            }
        }
        Err(Error::new(
            ErrorKind::Refused,
            "other requests got tokens that do not do for this one: try again",
        ))
    }

    async fn fly(self: Arc<Self>, why: &Why) -> Result<Arc<Access>, Error> {
        let lock = timeout(LOCK_TIME, self.settings.store.lock(&self.key)).await;
        let lock = lock.unwrap_or_else(|_elapsed| {
            let text = format!("another process renews the same token for more than {LOCK_TIME:?}");
            Err(Error::new(ErrorKind::Store, text))
        })?;
        let mut record = self.record().await?;
        if let Some(access) = self.renewed_elsewhere(&record, why)? {
            return Ok(access);
        }
        let net = Net { reach: self.reach().await };
        let may_refresh = matches!(why.kind, Kind::Late | Kind::Refused);
        if why.kind == Kind::Late && !self.settings.grant.is_machine() {
            return match self.refresh(net, &mut record).await? {
                Some(access) => Ok(access),
                None => Err(Error::new(ErrorKind::SignIn, "the sign-in has expired: sign in again")),
            };
        }
        let found = self.discover(net, &record, why).await?;
        // > MCP clients **MUST NOT** reuse credentials issued by one authorization server with another
        let is_same = record.tokens.as_ref().is_some_and(|tokens| tokens.issuer == found.authority.issuer);
        if may_refresh
            && is_same
            && !self.settings.grant.is_machine()
            && let Some(access) = self.refresh(net, &mut record).await?
        {
            return Ok(access);
        }
        let scopes = token::select(&ScopeSources {
            challenged: why.scope.as_deref(),
            before: if is_same { &record.asked } else { &[] },
            resource: found.resource.as_ref(),
            authority: &found.authority,
            always: &self.settings.scopes,
            offline: self.settings.offline && !self.settings.grant.is_machine(),
        });
        if self.settings.grant.is_machine() {
            return self.grant(&found, &mut record, scopes).await;
        }
        // A person may take minutes: other processes do not wait for that.
        drop(lock);
        self.sign_in(&found, &record, scopes).await
    }

    /// The token of another process, if it is a newer one.
    fn renewed_elsewhere(&self, record: &Record, why: &Why) -> Result<Option<Arc<Access>>, Error> {
        let Some(tokens) = &record.tokens else { return Ok(None) };
        if matches!(why.kind, Kind::Login | Kind::StepUp) {
            return Ok(None);
        }
        let is_known = why.refused.as_ref().is_some_and(|refused| refused.token == tokens.access_token);
        let access = Access::of(tokens, Origin::Store, self.settings.grant.is_machine())?;
        if is_known || access.is_expired(self.now()) {
            return Ok(None);
        }
        self.set_current(Some(Arc::clone(&access)));
        Ok(Some(access))
    }

    pub(crate) async fn discover(&self, net: Net, record: &Record, why: &Why) -> Result<Found, Error> {
        let tolerances = self.settings.tolerances;
        let resource = discover::resource(net, &self.url, why.pointer.as_deref()).await?;
        let authority = match &resource {
            None => discover::of_origin(net, &self.url, tolerances).await?,
            Some(resource) => {
                let known = [
                    self.settings.credentials.as_ref().and_then(|credentials| credentials.issuer.name()),
                    record.tokens.as_ref().map(|tokens| &*tokens.issuer),
                ];
                let servers = &resource.authorization_servers;
                let known =
                    known.into_iter().flatten().find(|issuer| servers.iter().any(|one| one == issuer));
                let issuer = known.or(servers.first().map(String::as_str)).ok_or_else(|| {
                    Error::new(
                        ErrorKind::Discovery,
                        "the metadata of the server names no authorization server",
                    )
                })?;
                discover::authority(net, issuer, tolerances).await?.ok_or_else(|| {
                    let text = format!("the authorization server {} has no metadata", escaped(issuer));
                    Error::new(ErrorKind::Discovery, text)
                })?
            }
        };
        let parameter = match &self.settings.resource {
            ResourceParameter::Standard => {
                // > The value of the resource parameter MUST be an absolute URI [..] and MUST NOT include a fragment component.
                let own = || self.server.split('#').next().unwrap_or_default().to_owned();
                Some(resource.as_ref().map_or_else(own, |found| found.resource.clone()))
            }
            ResourceParameter::Omit => None,
            ResourceParameter::Instead(other) => Some(other.clone()),
        };
        let dpop_required =
            why.dpop_only || resource.as_ref().is_some_and(|found| found.dpop_bound_access_tokens_required);
        let is_offered = why.dpop
            || dpop_required
            || resource.as_ref().is_some_and(|found| {
                found
                    .dpop_signing_alg_values_supported
                    .as_ref()
                    .is_some_and(|all| all.iter().any(|alg| alg == "ES256"))
            });
        if dpop_required && !authority.supports_dpop() {
            let text = format!(
                "the server demands tokens that are bound to a key, which {} does not issue for ES256",
                escaped(&authority.issuer)
            );
            return Err(Error::new(ErrorKind::Discovery, text));
        }
        let dpop = is_offered && authority.supports_dpop();
        Ok(Found { net, resource, authority, parameter, dpop, dpop_required })
    }

    /// Spends the refresh token. `None` if there is none, or the server does not accept it any more.
    async fn refresh(&self, net: Net, record: &mut Record) -> Result<Option<Arc<Access>>, Error> {
        let Some(old) = record.tokens.clone() else { return Ok(None) };
        let Some(refresh_token) = &old.refresh_token else { return Ok(None) };
        let key = old.dpop_key.as_ref().map(dpop_key).transpose()?;
        let endpoint = TokenEndpoint {
            net,
            url: net.check(&old.token_endpoint, "the token endpoint")?,
            issuer: &old.issuer,
            client: old.client.as_ref(),
            key: self.signing_key(),
            dpop: key.as_ref(),
            nonces: &self.nonces,
            now: self.now(),
        };
        let mut parameters = vec![("grant_type", "refresh_token"), ("refresh_token", refresh_token.expose())];
        parameters.extend(old.resource.as_deref().map(|resource| ("resource", resource)));
        match endpoint.request(&parameters).await {
            Ok(tokens) => {
                let renewed = StoredTokens {
                    // An answer may leave both out: they stay as they were.
                    refresh_token: tokens.refresh_token.clone().or(old.refresh_token.clone()),
                    scopes: old.scopes.clone(),
                    ..old
                };
                self.accept(record, renewed, tokens, key.is_some(), false, Origin::Refresh).await.map(Some)
            }
            Err(fault) if fault.is(&["invalid_grant", "invalid_client", "unauthorized_client"]) => {
                tracing::info!(issuer = %escaped(&old.issuer), "the refresh token is not accepted any more");
                if !fault.is(&["invalid_grant"]) {
                    record.forget(&old.issuer);
                }
                record.tokens = None;
                self.settings.store.save(&self.key, &record.write()).await?;
                self.set_current(None);
                Ok(None)
            }
            Err(fault) => Err(fault.into()),
        }
    }

    /// A token by a grant of a machine.
    async fn grant(
        &self,
        found: &Found,
        record: &mut Record,
        scopes: Vec<String>,
    ) -> Result<Arc<Access>, Error> {
        let key = found.dpop.then(DpopKey::generate).transpose()?;
        let request = GrantRequest {
            net: found.net,
            authority: &found.authority,
            credentials: self.settings.credentials.as_ref(),
            resource: found.parameter.as_deref(),
            scopes: &scopes,
            dpop: key.as_ref(),
            nonces: &self.nonces,
            now: self.now(),
        };
        let mut tokens = request.run(&self.settings.grant).await?;
        // The grant itself renews it.
        tokens.refresh_token = None;
        // The secret of a machine stays in its settings.
        let client = self.settings.credentials.as_ref().map(|own| own.at(&found.authority)).transpose()?;
        let client = client.map(|client| Registration { client_secret: None, ..client });
        let stored = StoredTokens {
            issuer: found.authority.issuer.clone(),
            token_endpoint: found.authority.token_endpoint.clone().unwrap_or_default(),
            revocation_endpoint: found.authority.revocation_endpoint.clone(),
            client,
            resource: found.parameter.clone(),
            access_token: tokens.access_token.clone(),
            refresh_token: None,
            dpop_key: key.as_ref().map(dpop_text),
            is_dpop: false,
            obtained_at: 0,
            expires_at: None,
            scopes: scopes.clone(),
        };
        record.asked = scopes;
        self.accept(record, stored, tokens, key.is_some(), found.dpop_required, Origin::Grant).await
    }

    /// Stores new tokens, and makes them the current ones. The caller has the lock of the entry.
    pub(crate) async fn accept(
        &self,
        record: &mut Record,
        stored: StoredTokens,
        tokens: Tokens,
        has_key: bool,
        dpop_required: bool,
        origin: Origin,
    ) -> Result<Arc<Access>, Error> {
        let unusable = |why: &str| {
            let text = format!("the token of {} cannot be used: {why}", escaped(&stored.issuer));
            Err(Error::new(ErrorKind::Token, text))
        };
        match tokens.scheme {
            Scheme::None => return unusable("it is no access token"),
            Scheme::Bearer if dpop_required => {
                return unusable("it is not bound to a key, as the server demands");
            }
            // A token that was bound stays so.
            Scheme::Bearer if origin == Origin::Refresh && stored.is_dpop => {
                return unusable("it is not bound to a key any more");
            }
            Scheme::Dpop if !has_key => return unusable("it is bound to a key that is not there"),
            Scheme::Bearer | Scheme::Dpop => {}
        }
        let now = crate::jose::seconds(self.now());
        let stored = StoredTokens {
            access_token: tokens.access_token,
            is_dpop: tokens.scheme == Scheme::Dpop,
            obtained_at: now,
            expires_at: tokens.expires_in.map(|life| now + life.min(MAX_LIFE)),
            scopes: tokens.scope.as_deref().map(token::parse).unwrap_or_else(|| stored.scopes.clone()),
            ..stored
        };
        let access = Access::of(&stored, origin, self.settings.grant.is_machine())?;
        record.tokens = Some(stored);
        self.settings.store.save(&self.key, &record.write()).await?;
        self.set_current(Some(Arc::clone(&access)));
        Ok(access)
    }

    /// The key of the client, which no store has.
    pub(crate) fn signing_key(&self) -> Option<&crate::SigningKey> {
        let settings = &self.settings;
        let own = settings.credentials.as_ref().or(settings.document.as_ref());
        own.and_then(crate::Credentials::key_of)
    }
}
