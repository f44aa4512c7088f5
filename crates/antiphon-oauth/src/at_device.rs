//! The way of a sign-in at another device: the program shows the address of a page and a code, and asks the authorization server until
//! the person has agreed there.

use crate::{
    device::{DEVICE_CODE, DeviceSignIn, INTERVAL, ShowDevice},
    discover::Authority,
    error::{Error, ErrorKind, Secret},
    jose::seconds,
    net::Net,
    obtain::Found,
    record::{Access, Record},
    session::Session,
    token::TokenFault,
};
use antiphon_wire::escaped;
use http::HeaderMap;
use serde::Deserialize;
use std::sync::Arc;
use tokio::time::sleep;
use url::form_urlencoded::Serializer;

/// The maximum seconds of the life of a code.
const MAX_LIFE: u64 = 30 * 60;

/// The maximum length of a code that a person types.
const MAX_USER_CODE: usize = 64;

/// The answer of the device authorization endpoint.
#[derive(Deserialize)]
struct Written {
    device_code: Secret,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: u64,
    interval: Option<u64>,
}

impl Session {
    /// Begins a sign-in at another device. [`finish_device`](Self::finish_device) waits for its end, [`poll_device`](Self::poll_device)
    /// asks once. `challenge` is the `WWW-Authenticate` of a refusal, if there was one.
    ///
    /// # Errors
    /// [`Discovery`](ErrorKind::Discovery) if the authorization server does not support it; other kinds if the server cannot be found,
    /// or the client not be registered.
    pub async fn begin_device(&self, challenge: Option<&str>) -> Result<DeviceSignIn, Error> {
        let (found, record, scopes) = self.prepared(challenge).await?;
        self.authorize_device(&found, &record, scopes).await
    }

    /// Asks once if the person has agreed. Returns `true` when the tokens are stored; `false` if the person has not answered yet, or
    /// the last question was less than an interval ago: then nothing is sent.
    ///
    /// # Errors
    /// [`Denied`](ErrorKind::Denied) if the person refused; [`SignIn`](ErrorKind::SignIn) if the code has expired;
    /// [`Network`](ErrorKind::Network) if the server did not answer: ask again later; other kinds if no token is issued.
    pub async fn poll_device(&self, begun: &mut DeviceSignIn) -> Result<bool, Error> {
        self.check_own(&begun.basis)?;
        Ok(self.ask_device(begun).await?.is_some())
    }

    /// Waits until the person has agreed at the other device, and stores the tokens.
    ///
    /// # Errors
    /// Those of [`poll_device`](Self::poll_device); a server that does not answer is asked again until the code expires.
    pub async fn finish_device(&self, begun: DeviceSignIn) -> Result<(), Error> {
        self.check_own(&begun.basis)?;
        self.await_device(begun).await.map(drop)
    }

    /// Signs a person in at another device, as the settings say.
    pub(crate) async fn sign_in_at_device(
        &self,
        found: &Found,
        record: &Record,
        scopes: Vec<String>,
        show: &ShowDevice,
    ) -> Result<Arc<Access>, Error> {
        let begun = self.authorize_device(found, record, scopes).await?;
        show(begun.clone()).await?;
        self.await_device(begun).await
    }

    async fn authorize_device(
        &self,
        found: &Found,
        record: &Record,
        scopes: Vec<String>,
    ) -> Result<DeviceSignIn, Error> {
        let issuer = &found.authority.issuer;
        let was_known = record.registration(issuer, self.now()).is_some();
        match self.request_code(found, record, scopes.clone()).await {
            // The server has forgotten the client.
            Err(fault) if was_known && fault.is(&["invalid_client", "unauthorized_client"]) => {
                let mut record = record.clone();
                record.forget(issuer);
                Ok(self.request_code(found, &record, scopes).await?)
            }
            other => Ok(other?),
        }
    }

    async fn request_code(
        &self,
        found: &Found,
        record: &Record,
        scopes: Vec<String>,
    ) -> Result<DeviceSignIn, TokenFault> {
        let authority = &found.authority;
        let (net, issuer) = (found.net, &authority.issuer);
        let endpoint = authority.device_authorization_endpoint.as_deref();
        let url = Authority::endpoint(net, issuer, endpoint, "device authorization endpoint")?;
        let basis = self.basis(found, record, scopes, None).await?;
        let mut headers = HeaderMap::new();
        let form = {
            let mut form = Serializer::new(String::new());
            let scope = basis.scopes.join(" ");
            form.extend_pairs(Some(("scope", &*scope)).filter(|_| !scope.is_empty()));
            form.extend_pairs(basis.resource.as_deref().map(|resource| ("resource", resource)));
            basis.client.authenticate(self.signing_key(), &mut headers, &mut form, self.now())?;
            form.finish()
        };
        let answer = net.post_form(&url, headers, &form).await?;
        let nothing = format!("the authorization server {} begins no sign-in at a device", escaped(issuer));
        let unusable = |why: &str| Error::new(ErrorKind::Token, format!("{nothing}: {why}"));
        if !answer.status.is_success() {
            return Err(TokenFault::of(&answer, &nothing));
        }
        let written: Written = answer.json().map_err(|_| unusable("its answer holds no code"))?;
        let is_plain = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
        let code = &written.user_code;
        if code.is_empty() || code.len() > MAX_USER_CODE || !code.bytes().all(is_plain) {
            return Err(unusable("nobody could enter its code").into());
        }
        net.check(&written.verification_uri, "the page for the code")?;
        if let Some(complete) = &written.verification_uri_complete {
            net.check(complete, "the page for the code")?;
        }
        let now = seconds(self.now());
        Ok(DeviceSignIn {
            basis,
            device_code: written.device_code,
            user_code: written.user_code,
            verification_uri: written.verification_uri,
            verification_uri_complete: written.verification_uri_complete,
            expires_at: now + written.expires_in.min(MAX_LIFE),
            // > If no value is provided, clients MUST use 5 as the default.
            interval: written.interval.unwrap_or(INTERVAL).clamp(1, MAX_LIFE),
            next_at: now,
        })
    }

    async fn await_device(&self, mut begun: DeviceSignIn) -> Result<Arc<Access>, Error> {
        loop {
            match self.ask_device(&mut begun).await {
                Ok(Some(access)) => return Ok(access),
                Ok(None) => {}
                // > On encountering a connection timeout, clients MUST unilaterally reduce their polling frequency
                Err(fault) if fault.kind() == ErrorKind::Network => begun.slow_down(),
                Err(fault) => return Err(fault),
            }
            sleep(begun.interval()).await;
        }
    }

    async fn ask_device(&self, begun: &mut DeviceSignIn) -> Result<Option<Arc<Access>>, Error> {
        let now = seconds(self.now());
        let host = begun.host();
        let expired = || {
            let text = format!("nobody entered the code at {} in time: begin again", escaped(&host));
            Error::new(ErrorKind::SignIn, text)
        };
        if now >= begun.expires_at {
            return Err(expired());
        }
        if now < begun.next_at {
            return Ok(None);
        }
        let mut parameters = vec![("grant_type", DEVICE_CODE), ("device_code", begun.device_code.expose())];
        parameters.extend(begun.basis.resource.as_deref().map(|resource| ("resource", resource)));
        let net = Net { reach: self.reach().await };
        let answer = self.request_tokens(net, &begun.basis, &parameters).await;
        begun.next_at = now + begun.interval;
        match answer {
            Ok(tokens) => self.keep(&begun.basis, tokens).await.map(Some),
            Err(fault) if fault.is(&["authorization_pending"]) => Ok(None),
            Err(fault) if fault.is(&["slow_down"]) => {
                begun.slow_down();
                Ok(None)
            }
            Err(fault) if fault.is(&["expired_token"]) => Err(expired()),
            Err(TokenFault::Refused { code, .. }) if code == "access_denied" => {
                let text = format!("the sign-in at {} was refused", escaped(&begun.basis.issuer));
                Err(Error::new(ErrorKind::Denied, text))
            }
            Err(fault) => Err(fault.into()),
        }
    }
}
