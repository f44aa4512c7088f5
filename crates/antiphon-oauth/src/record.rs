//! The entry of one account at one resource server, as it is stored.

use crate::{
    credentials::{Registration, Source},
    error::{Error, ErrorKind, Secret},
    jose::{DpopKey, seconds},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// The version of the form of an entry.
const VERSION: u8 = 1;

/// The maximum number of authorization servers whose registrations are kept.
const MAX_REGISTRATIONS: usize = 8;

/// The time before its end at which a token is renewed, at most: a tenth of its life for a token that lives shorter.
const EARLY: Duration = Duration::from_secs(60);

/// An entry.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    version: u8,
    pub(crate) server: String,
    pub(crate) account: String,
    /// One for each authorization server, the last one first.
    #[serde(default)]
    registrations: Vec<Registration>,
    pub(crate) tokens: Option<StoredTokens>,
    /// The scopes of the last request, which later requests repeat.
    #[serde(default)]
    pub(crate) asked: Vec<String>,
}

/// Tokens, and all that renews and revokes them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredTokens {
    pub(crate) issuer: String,
    pub(crate) token_endpoint: String,
    pub(crate) revocation_endpoint: Option<String>,
    pub(crate) client: Option<Registration>,
    pub(crate) resource: Option<String>,
    pub(crate) access_token: Secret,
    pub(crate) refresh_token: Option<Secret>,
    /// The private key that the token is bound to, as base64url text.
    pub(crate) dpop_key: Option<Secret>,
    /// `true` if `access_token` is bound to the key.
    pub(crate) is_dpop: bool,
    /// Seconds since 1970.
    pub(crate) obtained_at: u64,
    pub(crate) expires_at: Option<u64>,
    /// The granted scopes.
    pub(crate) scopes: Vec<String>,
}

impl Record {
    pub(crate) fn new(server: &str, account: &str) -> Self {
        Self { version: VERSION, server: server.into(), account: account.into(), ..Self::default() }
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Error> {
        serde_json::from_slice(bytes).ok().filter(|record: &Self| record.version == VERSION).ok_or_else(
            || {
                Error::new(
                    ErrorKind::Store,
                    "the stored sign-in is of another version: log out, and sign in again",
                )
            },
        )
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        // Strings and numbers only.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The dynamic registration at an issuer, if its secret is still valid.
    pub(crate) fn registration(&self, issuer: &str, now: SystemTime) -> Option<&Registration> {
        let found = self.registrations.iter().find(|known| known.issuer == issuer)?;
        Some(found).filter(|found| found.secret_expires_at.is_none_or(|at| seconds(now) < at))
    }

    /// Stores a dynamic registration in place of an earlier one at the same issuer.
    pub(crate) fn keep(&mut self, registration: &Registration) {
        if registration.source == Source::Dynamic {
            self.forget(&registration.issuer);
            self.registrations.insert(0, registration.clone());
            self.registrations.truncate(MAX_REGISTRATIONS);
        }
    }

    pub(crate) fn forget(&mut self, issuer: &str) {
        self.registrations.retain(|known| known.issuer != issuer);
    }
}

/// A token that requests are sent with.
pub(crate) struct Access {
    /// Differs for every token of the process.
    pub(crate) generation: u64,
    pub(crate) token: Secret,
    /// The key of a token that is bound to one.
    pub(crate) key: Option<DpopKey>,
    pub(crate) scopes: Vec<String>,
    pub(crate) origin: Origin,
    renew_at: Option<SystemTime>,
    expires_at: Option<SystemTime>,
    pub(crate) is_renewable: bool,
    /// `true` after the resource server accepted the token once.
    accepted: AtomicBool,
}

/// The origin of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Store,
    Refresh,
    /// A sign-in, or a grant of a machine.
    Grant,
}

static GENERATION: AtomicU64 = AtomicU64::new(0);

impl Access {
    /// The stored token as one that requests are sent with.
    pub(crate) fn of(tokens: &StoredTokens, origin: Origin, is_renewable: bool) -> Result<Arc<Self>, Error> {
        // A time that no clock reaches is no time.
        let at = |seconds: u64| UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        let life = tokens.expires_at.map(|end| Duration::from_secs(end.saturating_sub(tokens.obtained_at)));
        let expires_at = tokens.expires_at.and_then(at);
        let renew_at = expires_at.zip(life).map(|(end, life)| end - EARLY.min(life / 10));
        let key = tokens.dpop_key.as_ref().filter(|_| tokens.is_dpop).map(dpop_key).transpose()?;
        Ok(Arc::new(Self {
            generation: GENERATION.fetch_add(1, Ordering::Relaxed),
            token: tokens.access_token.clone(),
            key,
            scopes: tokens.scopes.clone(),
            origin,
            renew_at,
            expires_at,
            is_renewable: is_renewable || tokens.refresh_token.is_some(),
            accepted: AtomicBool::new(false),
        }))
    }

    /// Returns `true` if the token should be renewed before it is used.
    pub(crate) fn is_late(&self, now: SystemTime) -> bool {
        self.renew_at.is_some_and(|at| now >= at)
    }

    pub(crate) fn is_expired(&self, now: SystemTime) -> bool {
        self.expires_at.is_some_and(|at| now >= at)
    }

    pub(crate) fn accept(&self) {
        if !self.was_accepted() {
            self.accepted.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn was_accepted(&self) -> bool {
        self.accepted.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("origin", &self.origin)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// Reads a stored key.
pub(crate) fn dpop_key(text: &Secret) -> Result<DpopKey, Error> {
    DpopKey::restore(URL_SAFE_NO_PAD.decode(text.expose()).unwrap_or_default())
}

/// Writes a key for the store.
pub(crate) fn dpop_text(key: &DpopKey) -> Secret {
    Secret::new(URL_SAFE_NO_PAD.encode(key.pkcs8()))
}
