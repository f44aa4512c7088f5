//! A sign-in at another device, between its begin and its end: RFC 8628.

use crate::{
    error::{Error, Secret},
    handler::{host_of, write_words},
    pending::Basis,
};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// The grant type of a sign-in at another device.
pub(crate) const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// The seconds between two questions, unless the authorization server says otherwise, and those that are added when it demands it.
pub(crate) const INTERVAL: u64 = 5;

/// The function of the settings that shows a sign-in.
pub(crate) type ShowDevice = dyn Fn(DeviceSignIn) -> BoxFuture<'static, Result<(), Error>> + Send + Sync;

/// A sign-in at another device that waits for a person: plain data, which another process may go on with.
///
/// `Display` has the words of the consent: the host, the server and the scopes; show them before the code. It holds secrets, which
/// `Debug` does not show.
///
/// ```
/// use antiphon_oauth::{Error, Session};
/// use std::sync::Arc;
///
/// async fn sign_in(session: &Arc<Session>) -> Result<(), Error> {
///     let begun = session.begin_device(None).await?;
///     println!("{begun}\nOpen {}, and enter {}", begun.verification_uri(), begun.user_code());
///     session.finish_device(begun).await
/// }
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceSignIn {
    pub(crate) basis: Basis,
    pub(crate) device_code: Secret,
    pub(crate) user_code: String,
    pub(crate) verification_uri: String,
    pub(crate) verification_uri_complete: Option<String>,
    /// Seconds since 1970.
    pub(crate) expires_at: u64,
    /// Seconds between two questions.
    pub(crate) interval: u64,
    /// Seconds since 1970 before which nothing is asked.
    pub(crate) next_at: u64,
}

impl DeviceSignIn {
    /// The code that the person enters: printable ASCII.
    #[must_use]
    pub fn user_code(&self) -> &str {
        &self.user_code
    }

    /// The URL of the page where the person enters the code: `https`, or `http` on this machine.
    #[must_use]
    pub fn verification_uri(&self) -> &str {
        &self.verification_uri
    }

    /// The URL of the page with the code in it, for a QR code or a link, if the authorization server has one. The page shows the code, and
    /// the person compares it.
    #[must_use]
    pub fn verification_uri_complete(&self) -> Option<&str> {
        self.verification_uri_complete.as_deref()
    }

    /// The host of the page, by which the person recognizes the authorization server.
    #[must_use]
    pub fn host(&self) -> String {
        host_of(&self.verification_uri)
    }

    /// The URL of the resource server.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.basis.server
    }

    /// The issuer that the person signs in at.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.basis.issuer
    }

    /// The requested scopes; empty if the server chooses.
    #[must_use]
    pub fn scopes(&self) -> &[String] {
        &self.basis.scopes
    }

    /// The time at which the code expires.
    #[must_use]
    pub fn expires_at(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.expires_at)
    }

    /// The time between two questions. It grows when the authorization server demands it.
    #[must_use]
    pub fn interval(&self) -> Duration {
        Duration::from_secs(self.interval)
    }
}

impl DeviceSignIn {
    /// > the interval MUST be increased by 5 seconds for this and all subsequent requests
    pub(crate) fn slow_down(&mut self) {
        self.interval = self.interval.saturating_add(INTERVAL);
        self.next_at = self.next_at.saturating_add(INTERVAL);
    }
}

/// The sign-in in words: the host, the server and the scopes, escaped.
impl fmt::Display for DeviceSignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_words(f, &self.host(), &self.basis.server, &self.basis.scopes)
    }
}

impl fmt::Debug for DeviceSignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceSignIn")
            .field("server", &self.basis.server)
            .field("issuer", &self.basis.issuer)
            .field("scopes", &self.basis.scopes)
            .finish_non_exhaustive()
    }
}
