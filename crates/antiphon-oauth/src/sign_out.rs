//! The state of a session's sign-in, and its end.

use crate::{
    credentials::{Credentials, Registration},
    discover::Authority,
    error::{Error, Secret},
    net::Net,
    record::StoredTokens,
    session::Session,
};
use antiphon_wire::escaped;
use http::HeaderMap;
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use url::form_urlencoded::Serializer;

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
