//! The sign-in of a person: a handler shows the URL, and receives the address to which the browser returns.

use crate::{error::Error, pending::PendingSignIn};
use antiphon_wire::escaped;
use futures_util::future::BoxFuture;
use std::{error::Error as StdError, fmt, sync::Arc};
use url::Url;

/// The consent of a person: shown before a browser opens.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Consent {
    /// The URL to open: `https`, or `http` on this machine. It holds no secret of the client, but its `state` belongs to this
    /// sign-in.
    pub url: String,
    /// The URL of the server that the tokens are for.
    pub server: String,
    /// The authorization server.
    pub issuer: String,
    /// The requested scopes; empty if the authorization server chooses.
    pub scopes: Vec<String>,
    /// The address to which the browser returns.
    pub redirect_uri: String,
}

impl Consent {
    pub(crate) fn of(pending: &PendingSignIn) -> Self {
        Self {
            url: pending.url.clone(),
            server: pending.basis.server.clone(),
            issuer: pending.basis.issuer.clone(),
            scopes: pending.basis.scopes.clone(),
            redirect_uri: pending.redirect_uri.clone(),
        }
    }

    /// The host of the URL, by which the person recognizes the authorization server.
    #[must_use]
    pub fn host(&self) -> String {
        host_of(&self.url)
    }
}

/// The sign-in in words: the host, the server and the scopes, escaped.
impl fmt::Display for Consent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_words(f, &self.host(), &self.server, &self.scopes)
    }
}

/// The host of a URL that a person opens.
pub(crate) fn host_of(url: &str) -> String {
    let url = Url::parse(url).ok();
    url.and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}

/// Writes what a person agrees to: the host, the server and the scopes.
pub(crate) fn write_words(
    f: &mut fmt::Formatter<'_>,
    host: &str,
    server: &str,
    scopes: &[String],
) -> fmt::Result {
    write!(f, "Sign in at {} for {}", escaped(host), escaped(server))?;
    match scopes {
        [] => Ok(()),
        scopes => write!(f, ", to allow: {}", escaped(&scopes.join(" "))),
    }
}

impl fmt::Debug for Consent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consent")
            .field("server", &self.server)
            .field("issuer", &self.issuer)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// A future of a handler.
pub type SignInFuture<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// Signs people in. [`Loopback`](crate::Loopback) is the one for programs on the machine of the person, [`ByHand`] makes one of
/// a function.
pub trait SignInHandler: Send + Sync + 'static {
    /// Prepares one sign-in: its redirect URI is known from now on. `before` is the redirect URI of an earlier sign-in at the
    /// same server: a handler that uses it again spares a registration.
    fn open<'a>(&'a self, before: Option<&'a str>) -> SignInFuture<'a, Box<dyn SignInPlace>>;
}

/// One prepared sign-in.
pub trait SignInPlace: Send {
    /// The address to which the browser will return: `http` on this machine, `https`, or a scheme of an application.
    fn redirect_uri(&self) -> &str;

    /// Shows the URL to the person, and returns the whole address to which the browser returned, with its query. `state` is the
    /// one that the address must have.
    fn sign_in<'a>(self: Box<Self>, consent: &'a Consent, state: &'a str) -> SignInFuture<'a, String>;
}

type Show = dyn Fn(Consent) -> BoxFuture<'static, Result<String, Error>> + Send + Sync;

/// A handler of one function: it gets the URL, and returns the address to which the browser returned. For people who paste the
/// address, and for tests.
///
/// ```
/// use antiphon_oauth::{ByHand, Consent};
///
/// # async fn pasted() -> std::io::Result<String> { Ok(String::new()) }
/// let handler = ByHand::new("http://127.0.0.1/callback", async |consent: Consent| {
///     eprintln!("{consent}\nOpen {}, and paste the address of the page that cannot be shown:", consent.url);
///     pasted().await
/// });
/// ```
#[derive(Clone)]
pub struct ByHand {
    redirect_uri: String,
    show: Arc<Show>,
}

impl ByHand {
    /// Returns a handler with this redirect URI.
    pub fn new<F, Fut, E>(redirect_uri: impl Into<String>, show: F) -> Self
    where
        F: Fn(Consent) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        Self {
            redirect_uri: redirect_uri.into(),
            show: Arc::new(move |consent| {
                let shown = show(consent);
                Box::pin(async move { shown.await.map_err(not_signed_in) })
            }),
        }
    }
}

/// The error for a handler that failed.
pub(crate) fn not_signed_in(fault: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
    Error::caused(crate::ErrorKind::SignIn, "the person could not be asked to sign in", fault)
}

impl SignInHandler for ByHand {
    fn open<'a>(&'a self, _: Option<&'a str>) -> SignInFuture<'a, Box<dyn SignInPlace>> {
        let place: Box<dyn SignInPlace> = Box::new(self.clone());
        Box::pin(async { Ok(place) })
    }
}

impl SignInPlace for ByHand {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn sign_in<'a>(self: Box<Self>, consent: &'a Consent, _: &'a str) -> SignInFuture<'a, String> {
        (self.show)(consent.clone())
    }
}

impl fmt::Debug for ByHand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByHand").field("redirect_uri", &self.redirect_uri).finish_non_exhaustive()
    }
}
