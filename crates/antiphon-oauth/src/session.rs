//! One resource server: the token of its requests, and the answers to its refusals.

use crate::{
    error::{Error, ErrorKind, shown},
    flight::{Flight, Why},
    jose::{DPOP, Nonces},
    record::{Access, Origin, Record},
    register::Settings,
    store::StoreKey,
};
use antiphon_connect::Reach;
use antiphon_wire::Challenge;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::{Duration, SystemTime},
};
use tokio::{sync::OnceCell, time::Instant};
use url::Url;

/// The maximum number of step-ups for one operation within [`STEP_UP_TIME`].
///
/// > Clients **SHOULD** implement retry limits and **SHOULD** track scope upgrade attempts to avoid repeated failures for the same
/// > resource and operation combination.
const MAX_STEP_UPS: usize = 2;
const STEP_UP_TIME: Duration = Duration::from_secs(10 * 60);

/// The maximum number of operations whose step-ups are counted.
const MAX_OPERATIONS: usize = 256;

/// The maximum number of proofs with a new nonce in one request.
const MAX_NONCES: u8 = 2;

/// The session with one resource server, for one account.
pub struct Session {
    pub(crate) settings: Arc<Settings>,
    /// As the program wrote it.
    pub(crate) server: String,
    pub(crate) url: Url,
    pub(crate) key: StoreKey,
    current: RwLock<Option<Arc<Access>>>,
    loaded: OnceCell<()>,
    pub(crate) flight: Mutex<Option<Flight>>,
    pub(crate) nonces: Nonces,
    reach: OnceCell<Reach>,
    step_ups: Mutex<HashMap<String, Vec<Instant>>>,
}

impl Session {
    pub(crate) fn new(settings: Arc<Settings>, server: &str, url: Url) -> Self {
        let key = StoreKey::new(url.as_str(), &settings.account);
        Self {
            settings,
            server: server.to_owned(),
            url,
            key,
            current: RwLock::default(),
            loaded: OnceCell::new(),
            flight: Mutex::default(),
            nonces: Nonces::default(),
            reach: OnceCell::new(),
            step_ups: Mutex::default(),
        }
    }

    /// Begins one request of a transport: a request that may be sent again after a refusal.
    #[must_use]
    pub fn attempt(self: &Arc<Self>) -> Attempt {
        Attempt {
            session: Arc::clone(self),
            sent: None,
            next: None,
            answer: None,
            tokens: 0,
            step_ups: 0,
            nonces: 0,
        }
    }

    pub(crate) fn now(&self) -> SystemTime {
        (self.settings.clock)()
    }

    /// The class of addresses that the server may lead to: its own.
    pub(crate) async fn reach(&self) -> Reach {
        let host = self.url.host_str().unwrap_or_default();
        *self.reach.get_or_init(|| Reach::of_host(host)).await
    }

    pub(crate) fn current(&self) -> Option<Arc<Access>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_current(&self, access: Option<Arc<Access>>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = access;
    }

    /// The entry of the store.
    pub(crate) async fn record(&self) -> Result<Record, Error> {
        match self.settings.store.load(&self.key).await? {
            Some(bytes) => Record::read(&bytes),
            None => Ok(Record::new(&self.server, &self.settings.account)),
        }
    }

    /// Returns the token for a request, renewed if it is late; `None` before the first sign-in.
    pub(crate) async fn access(self: &Arc<Self>) -> Result<Option<Arc<Access>>, Error> {
        self.loaded
            .get_or_try_init(|| async {
                if let Some(tokens) = self.record().await?.tokens
                    && self.current().is_none()
                {
                    let is_machine = self.settings.grant.is_machine();
                    self.set_current(Some(Access::of(&tokens, Origin::Store, is_machine)?));
                }
                Ok::<_, Error>(())
            })
            .await?;
        let Some(access) = self.current() else { return Ok(None) };
        let now = self.now();
        if !access.is_late(now) || !access.is_renewable {
            return Ok(Some(access));
        }
        match self.obtain(Why::late(&access)).await {
            Ok(renewed) => Ok(Some(renewed)),
            // It is still good, and the next request tries again.
            Err(fault) if fault.kind() == ErrorKind::Network && !access.is_expired(now) => Ok(Some(access)),
            Err(fault) if matches!(fault.kind(), ErrorKind::Network | ErrorKind::Store) => Err(fault),
            // A refused grant of a machine is not tried twice.
            Err(fault) if self.settings.grant.is_machine() => Err(fault),
            // The server will refuse, and its challenge says what is needed.
            Err(_) => Ok(self.current().filter(|current| !current.is_expired(now))),
        }
    }

    /// Counts a step-up for an operation. `false` if there were too many of them.
    fn may_step_up(&self, operation: &str) -> bool {
        let now = Instant::now();
        let mut all = self.step_ups.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |at: &Instant| now.duration_since(*at) < STEP_UP_TIME;
        if all.len() >= MAX_OPERATIONS {
            all.retain(|_, times| times.iter().any(is_recent));
        }
        if all.len() >= MAX_OPERATIONS && !all.contains_key(operation) {
            return false;
        }
        let times = all.entry(operation.to_owned()).or_default();
        times.retain(is_recent);
        if times.len() >= MAX_STEP_UPS {
            return false;
        }
        times.push(now);
        true
    }
}

/// One request of a transport, with all that is sent again for it.
///
/// A transport gets the [`headers`](Self::headers), sends the request, and shows each response to
/// [`is_challenged`](Self::is_challenged). If that returns `true`, it calls [`renew`](Self::renew), and begins again.
pub struct Attempt {
    session: Arc<Session>,
    sent: Option<Arc<Access>>,
    /// The token of the next try.
    next: Option<Arc<Access>>,
    answer: Option<Answer>,
    tokens: u8,
    step_ups: u8,
    nonces: u8,
}

/// The answer to a challenge.
enum Answer {
    /// The same token, with a new proof.
    Proof,
    Token(Why),
    None(Error),
}

impl Attempt {
    /// Returns the headers that a request is sent with: none before the first sign-in.
    ///
    /// # Errors
    /// [`Error`] if the token is late and cannot be renewed now, or the URL is not of the server of the session.
    pub async fn headers(&mut self, method: &str, url: &str) -> Result<HeaderMap, Error> {
        let mut headers = HeaderMap::new();
        let url = Url::parse(url).ok().filter(|url| url.origin() == self.session.url.origin()).ok_or_else(
            || {
                let text = format!("{} is not of the server that the token is for", shown(url));
                Error::new(ErrorKind::Setting, text)
            },
        )?;
        let access = match self.next.take() {
            Some(access) => Some(access),
            None => self.session.access().await?,
        };
        if let Some(access) = &access {
            let token = access.token.expose();
            let scheme = if access.key.is_some() { "DPoP" } else { "Bearer" };
            let mut value = HeaderValue::try_from(format!("{scheme} {token}"))
                .map_err(|_| Error::new(ErrorKind::Token, "the token does not fit into a header"))?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
            if let Some(key) = &access.key {
                let nonce = self.session.nonces.get(&url);
                let now = self.session.now();
                headers.insert(DPOP, key.proof(method, &url, Some(token), nonce.as_deref(), now)?);
            }
        }
        self.sent = access;
        Ok(headers)
    }

    /// Reads the head of a response. Returns `true` if it is a challenge that another token or proof may answer. `operation` names
    /// what the request is for: step-ups are counted for each operation.
    pub fn is_challenged(
        &mut self,
        status: StatusCode,
        headers: &HeaderMap,
        operation: impl FnOnce() -> String,
    ) -> bool {
        let has_new_nonce = self.session.nonces.keep(&self.session.url, headers);
        if let Some(sent) = self.sent.as_ref().filter(|_| status.is_success()) {
            sent.accept();
        }
        if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return false;
        }
        let values = headers.get_all(header::WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        let challenges = Challenge::parse_all(values);
        let error = |code: &str| challenges.iter().any(|challenge| challenge.get("error") == Some(code));
        self.answer = if status == StatusCode::FORBIDDEN {
            if error("insufficient_scope") { self.step_up(&challenges, operation) } else { None }
        } else if has_new_nonce
            && error("use_dpop_nonce")
            && self.nonces < MAX_NONCES
            && self.sent.as_ref().is_some_and(|sent| sent.key.is_some())
        {
            self.nonces += 1;
            Some(Answer::Proof)
        } else {
            self.another(&challenges)
        };
        self.answer.is_some()
    }

    /// Gets what answers the challenge.
    ///
    /// # Errors
    /// [`Error`] if there is no other token.
    pub async fn renew(&mut self) -> Result<(), Error> {
        self.next = match self.answer.take() {
            None | Some(Answer::Proof) => self.sent.clone(),
            Some(Answer::Token(why)) => Some(self.session.obtain(why).await?),
            Some(Answer::None(fault)) => return Err(fault),
        };
        Ok(())
    }

    /// Another token in place of a refused one. After a refused token that was renewed, one more sign-in may help.
    fn another(&mut self, challenges: &[Challenge]) -> Option<Answer> {
        let origin = self.sent.as_ref().map(|sent| sent.origin);
        if self.tokens > 1 || (self.tokens == 1 && origin != Some(Origin::Refresh)) {
            return None;
        }
        self.tokens += 1;
        let is_new =
            self.sent.as_ref().is_some_and(|sent| sent.origin == Origin::Grant && !sent.was_accepted());
        if is_new {
            let text = "the server refuses the token that its authorization server just issued for it";
            return Some(Answer::None(Error::new(ErrorKind::Refused, text)));
        }
        Some(Answer::Token(Why::refused(self.sent.clone(), challenges)))
    }

    /// A token with more scopes.
    ///
    /// > **Retry the original request** with the new authorization no more than a few times and treat this as a permanent
    /// > authorization failure
    fn step_up(&mut self, challenges: &[Challenge], operation: impl FnOnce() -> String) -> Option<Answer> {
        if let Some(sent) = &self.sent {
            sent.accept();
        }
        // The credentials of a machine have the scopes that they have.
        if self.step_ups > 0 || self.session.settings.grant.is_machine() {
            return None;
        }
        self.step_ups += 1;
        if self.session.may_step_up(&operation()) {
            return Some(Answer::Token(Why::step_up(self.sent.clone(), challenges)));
        }
        let text = format!(
            "the server demanded more scopes {MAX_STEP_UPS} times within {STEP_UP_TIME:?} for this operation, and still does"
        );
        Some(Answer::None(Error::new(ErrorKind::Refused, text)))
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("server", &shown(&self.server)).finish_non_exhaustive()
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt").field("session", &self.session).finish_non_exhaustive()
    }
}
