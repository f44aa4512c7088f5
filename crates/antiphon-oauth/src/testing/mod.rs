//! An authorization server for tests, with a resource server beside it. Each attack is a switch.
//!
//! ```
//! use antiphon_oauth::{OAuth, testing::{Attack, TestAuthority}};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let authority = TestAuthority::start().await?;
//! let oauth = OAuth::builder("my-host").handler(authority.person()).build()?;
//! oauth.session(&authority.resource())?.login().await?;
//!
//! authority.attack([Attack::IssuerOfAnswer]);
//! assert!(oauth.session(&authority.resource())?.login().await.is_err());
//! # Ok(())
//! # }
//! ```

mod http;
mod state;

pub use http::Seen;
pub use state::{Attack, DeviceAnswer};

use crate::handler::{ByHand, Consent};
use state::State;
use std::{
    fmt, io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinHandle,
};
use url::Url;

/// A running authorization server, with a resource server at [`resource`](Self::resource).
pub struct TestAuthority {
    base: String,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

impl TestAuthority {
    /// Starts a server on this machine. It ends when it is dropped.
    ///
    /// # Errors
    /// If no port can be used.
    pub async fn start() -> io::Result<Self> {
        let state: Arc<Mutex<State>> = Arc::default();
        let shared = Arc::clone(&state);
        let (base, task) = http::serve(move |base, seen| {
            let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
            state.seen.push(seen.clone());
            state.answer(base, &seen)
        })
        .await?;
        Ok(Self { base, state, task })
    }

    /// The issuer, without a slash at its end.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.base
    }

    /// The URL of a resource that needs a token of this server.
    #[must_use]
    pub fn resource(&self) -> String {
        format!("{}/mcp", self.base)
    }

    /// Sets the attacks, in place of earlier ones.
    pub fn attack(&self, attacks: impl IntoIterator<Item = Attack>) {
        self.lock().attacks = attacks.into_iter().collect();
    }

    /// Lets tokens live for so many seconds, and issues refresh tokens, each of which may be spent once.
    pub fn expire(&self, seconds: u64) {
        self.lock().expires_in = Some(seconds);
    }

    /// Demands a scope of the resource: a token without it gets 403.
    pub fn demand_scope(&self, scope: &str) {
        self.lock().demands_scope = Some(scope.to_owned());
    }

    /// Answers for the person at another device, from now on.
    pub fn answer_devices(&self, answer: DeviceAnswer) {
        self.lock().device_answer = answer;
    }

    /// Issues tokens that are bound to the key of the request's proof (DPoP). The proof itself is not verified here.
    pub fn bind_tokens(&self) {
        self.lock().binds = true;
    }

    /// Returns the thumbprint of the key that a valid access token is bound to.
    #[must_use]
    pub fn key_of(&self, token: &str) -> Option<String> {
        self.lock().keys.get(token).cloned()
    }

    /// Knows a client with a secret, which its requests must have.
    pub fn add_client(&self, id: &str, secret: &str) {
        self.lock().secrets.insert(id.to_owned(), secret.to_owned());
    }

    /// Gives a secret to each client that registers, which its requests must have.
    pub fn issue_secrets(&self) {
        self.lock().issues_secrets = true;
    }

    /// Opens a page as the browser of a person who agrees does, and returns the address to which it redirects.
    ///
    /// # Errors
    /// If the page does not redirect.
    pub async fn visit(&self, url: &str) -> io::Result<String> {
        redirected(url).await
    }

    /// Supports client metadata documents.
    pub fn support_documents(&self) {
        self.lock().supports_documents = true;
    }

    /// Forgets all clients: token requests get `invalid_client` until the next registration.
    pub fn forget_clients(&self) {
        self.lock().forgot_clients = true;
    }

    /// Makes all access tokens invalid.
    pub fn revoke_all(&self) {
        self.lock().valid.clear();
    }

    /// Returns the scopes of a valid access token, for a resource server of its own; `None` if the token is not valid.
    #[must_use]
    pub fn scopes_of(&self, token: &str) -> Option<String> {
        self.lock().valid.get(token).cloned()
    }

    /// The requests so far.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.lock().seen.clone()
    }

    /// The number of requests so far with this path.
    #[must_use]
    pub fn count(&self, path: &str) -> usize {
        self.lock().seen.iter().filter(|seen| seen.path == path).count()
    }

    /// The forms of the token requests so far, by their grant type.
    #[must_use]
    pub fn grants(&self) -> Vec<String> {
        let tokens = self.seen().into_iter().filter(|seen| seen.path == "/token");
        tokens.map(|seen| seen.form().remove("grant_type").unwrap_or_default()).collect()
    }

    /// A person who agrees to everything at once.
    #[must_use]
    pub fn person(&self) -> ByHand {
        ByHand::new("http://127.0.0.1/callback", async |consent: Consent| redirected(&consent.url).await)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gets a URL, and returns the address to which it redirects.
async fn redirected(url: &str) -> io::Result<String> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "no redirect");
    let url = Url::parse(url).map_err(|_| invalid())?;
    let authority = format!("{}:{}", url.host_str().unwrap_or_default(), url.port().unwrap_or(80));
    let mut connection = TcpStream::connect(&authority).await?;
    let target = &url[url::Position::BeforePath..];
    connection.write_all(format!("GET {target} HTTP/1.1\r\nHost: {authority}\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    let location = answer.lines().find_map(|line| line.strip_prefix("Location: "));
    location.map(str::to_owned).ok_or_else(invalid)
}

impl Drop for TestAuthority {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for TestAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestAuthority").field("base", &self.base).finish_non_exhaustive()
    }
}
