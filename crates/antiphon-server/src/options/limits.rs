//! The limits of a server.

use std::time::Duration;

/// The limits of a server. Every limit has a default; its setters change it, and
/// [`ServerBuilder::limits`](crate::ServerBuilder::limits) takes it.
///
/// ```
/// use antiphon::server::Limits;
///
/// let limits = Limits::default().legs(8).handlers(256);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The limits that the engine enforces.
    pub(crate) engine: antiphon_engine::Limits,
    pub(crate) grace: Duration,
    pub(crate) step_grace: Duration,
    pub(crate) url_retry_interval: Duration,
    pub(crate) max_answer_timeout: Duration,
    pub(crate) handler_timeout: Duration,
    pub(crate) handlers: usize,
    pub(crate) sessions: usize,
    pub(crate) sessions_per_principal: usize,
    pub(crate) sessions_per_address: usize,
    pub(crate) session_requests: usize,
    pub(crate) session_handlers: usize,
    pub(crate) session_handlers_per_principal: usize,
    pub(crate) session_handlers_per_address: usize,
    pub(crate) session_request_bytes: usize,
    pub(crate) request_bytes: usize,
    pub(crate) request_bytes_per_caller: usize,
    pub(crate) named_share: u8,
    pub(crate) subscriptions: usize,
    pub(crate) subscription_uris: usize,
    pub(crate) subscription_uri_bytes: usize,
    pub(crate) all_subscription_uri_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            engine: antiphon_engine::Limits::default(),
            grace: Duration::from_millis(50),
            step_grace: Duration::from_secs(5),
            url_retry_interval: Duration::from_secs(20),
            max_answer_timeout: Duration::from_secs(3600),
            handler_timeout: Duration::from_secs(300),
            handlers: 1024,
            sessions: 1000,
            sessions_per_principal: 100,
            sessions_per_address: 250,
            session_requests: 64,
            session_handlers: 1024,
            session_handlers_per_principal: 256,
            session_handlers_per_address: 256,
            session_request_bytes: 8 * 1024 * 1024,
            request_bytes: 64 * 1024 * 1024,
            request_bytes_per_caller: 16 * 1024 * 1024,
            named_share: 25,
            subscriptions: 10_000,
            subscription_uris: 1000,
            subscription_uri_bytes: 64 * 1024,
            all_subscription_uri_bytes: 16 * 1024 * 1024,
        }
    }
}

impl Limits {
    /// Sets the maximum number of requests of one call. Default 16; a warning is logged at 8, since common clients stop at 10
    /// rounds.
    ///
    /// The last request runs the handler to its end, but may not ask. If the handler asks there, the call ends with an
    /// error that names this limit, the question's key, and the steps that ran in that request, because no round can
    /// carry their record. In a legacy session, a handler may return questions, or repeat a URL, one time less than
    /// this limit; awaited questions do not count there, nor do legs that ended with state only.
    #[must_use]
    pub fn legs(mut self, limit: u16) -> Self {
        self.engine.legs = limit;
        self
    }

    /// Sets the maximum number of questions in one round; in a legacy session, of questions of one call that wait at the
    /// same time. Default 64. Further questions are asked in the next round: a refusal would lose the results of the leg's steps.
    #[must_use]
    pub fn asks(mut self, limit: usize) -> Self {
        self.engine.asks = limit;
        self
    }

    /// Sets the number of times that one question is asked before the call ends with an error, if its answers do not fit. A
    /// request that answers no question of its round counts for all of them. Default 3.
    #[must_use]
    pub fn times_asked(mut self, limit: u8) -> Self {
        self.engine.times_asked = limit;
        self
    }

    /// Sets the maximum size of one form's answer, in bytes of JSON. Default 64 KiB.
    #[must_use]
    pub fn form_answer(mut self, limit: usize) -> Self {
        self.engine.form_answer = limit;
        self
    }

    /// Sets the maximum size of one sampling or roots answer, in bytes of JSON. Default 1 MiB.
    #[must_use]
    pub fn sampling_answer(mut self, limit: usize) -> Self {
        self.engine.sampling_answer = limit;
        self
    }

    /// Sets the maximum size of a token's content, in bytes. Default 128 KiB. Entries recorded after a step in the same leg
    /// may take as much again, so that the step's record is not lost. In a legacy session, the maximum size of a call's
    /// record when it asks again. The record of a task stays in its store: it may have 4 MiB, or this many if that is more.
    #[must_use]
    pub fn state(mut self, limit: usize) -> Self {
        self.engine.state = limit;
        self
    }

    /// Sets the maximum size of one step's result, in bytes of JSON. Default 16 KiB. This space is reserved before a step
    /// runs, so that its result always fits. With the defaults, an empty record has space for seven steps at the same
    /// time; a further step waits until one ends.
    #[must_use]
    pub fn step_result(mut self, limit: usize) -> Self {
        self.engine.step_result = limit;
        self
    }

    /// Sets the maximum number of legs of one call that end with state only: at checkpoints, and if a leg fails after it
    /// recorded something, so that the record leaves before the failure is reported. A failure uses the last such leg
    /// only if its leg has recorded a step. After the last one, checkpoints are passed and failures are reported at
    /// once. In a legacy session, the number of times that a failed handler is entered again with its record. A handler
    /// that returns state without a question is counted but not stopped. Default 2; some clients give up at the third.
    #[must_use]
    pub fn state_only_legs(mut self, limit: u8) -> Self {
        self.engine.state_only_legs = limit;
        self
    }

    /// Sets the time for which a leg continues after its first question while something other than an answer may still wake
    /// the handler. Default 50 ms. When it is over, only unrecorded work of the handler is lost.
    #[must_use]
    pub fn grace(mut self, time: Duration) -> Self {
        self.grace = time;
        self
    }

    /// Sets the time for which a running step may continue after its request was cancelled, its handler's time was over, or
    /// its leg failed otherwise. Default 5 seconds.
    #[must_use]
    pub fn step_grace(mut self, time: Duration) -> Self {
        self.step_grace = time;
        self
    }

    /// Sets the time for which one leg waits for a person behind a URL before the URL is asked again. Default 20 seconds.
    #[must_use]
    pub fn url_retry_interval(mut self, time: Duration) -> Self {
        self.url_retry_interval = time;
        self
    }

    /// Sets the maximum time of one question of a legacy session while its client reports progress, which restarts the
    /// question's time limit. Default 1 hour. It does not extend a question's own `timeout`, nor an `answer_timeout` that
    /// is longer.
    #[must_use]
    pub fn max_answer_timeout(mut self, time: Duration) -> Self {
        self.max_answer_timeout = time;
        self
    }

    /// Sets the maximum time of one leg's handler. Default 5 minutes. After that, a running step has
    /// [`step_grace`](Self::step_grace) to end, and the record of the leg leaves before the failure is reported.
    #[must_use]
    pub fn handler_timeout(mut self, time: Duration) -> Self {
        self.handler_timeout = time;
        self
    }

    /// Sets the maximum number of handlers that run at the same time; further requests are refused. Default 1,024, of which
    /// anonymous callers leave the [`named_share`](Self::named_share).
    #[must_use]
    pub fn handlers(mut self, limit: usize) -> Self {
        self.handlers = limit;
        self
    }

    /// Sets the maximum number of open legacy sessions. Default 1,000, of which anonymous callers leave the
    /// [`named_share`](Self::named_share). If all are open, an `initialize` over HTTP ends the anonymous session that was
    /// idle for longest; an anonymous `initialize` ends one only if it was idle for ten seconds and has no open stream,
    /// and is refused otherwise.
    #[must_use]
    pub fn sessions(mut self, limit: usize) -> Self {
        self.sessions = limit;
        self
    }

    /// Sets the maximum number of open legacy sessions of one principal; further ones are refused. Default 100. For
    /// anonymous callers, see [`sessions_per_address`](Self::sessions_per_address).
    #[must_use]
    pub fn sessions_per_principal(mut self, limit: usize) -> Self {
        self.sessions_per_principal = limit;
        self
    }

    /// Sets the maximum number of open legacy sessions of the anonymous callers at one
    /// [address](crate::PeerAddress). Beyond it, a session of this address is ended or the new one refused, as with
    /// [`sessions`](Self::sessions). Default 250. An unknown address and a loopback address have no such limit.
    #[must_use]
    pub fn sessions_per_address(mut self, limit: usize) -> Self {
        self.sessions_per_address = limit;
        self
    }

    /// Sets the maximum number of requests under way in one legacy session; further ones are refused. Default 64.
    #[must_use]
    pub fn session_requests(mut self, limit: usize) -> Self {
        self.session_requests = limit;
        self
    }

    /// Sets the maximum number of handlers that run in legacy sessions at the same time, including those that wait for a
    /// person; further requests are refused. Default 1,024, in addition to [`handlers`](Self::handlers).
    #[must_use]
    pub fn session_handlers(mut self, limit: usize) -> Self {
        self.session_handlers = limit;
        self
    }

    /// Sets the maximum number of handlers that run at the same time in all legacy sessions of one principal; further
    /// requests of that principal are refused. Default 256. For anonymous callers, see
    /// [`session_handlers_per_address`](Self::session_handlers_per_address).
    #[must_use]
    pub fn session_handlers_per_principal(mut self, limit: usize) -> Self {
        self.session_handlers_per_principal = limit;
        self
    }

    /// Sets the maximum number of handlers that run at the same time in all legacy sessions of the anonymous callers at one
    /// [address](crate::PeerAddress); further requests are refused. Default 256. An unknown address and a loopback address
    /// have no such limit.
    #[must_use]
    pub fn session_handlers_per_address(mut self, limit: usize) -> Self {
        self.session_handlers_per_address = limit;
        self
    }

    /// Sets the maximum length of the requests under way in one legacy session, in bytes; further ones are refused. One
    /// request alone is always admitted. Default 8 MiB.
    #[must_use]
    pub fn session_request_bytes(mut self, limit: usize) -> Self {
        self.session_request_bytes = limit;
        self
    }

    /// Sets the maximum number of bytes of all requests in memory: those that are read, and those that wait for their
    /// reply; and of the tasks that are sent to subscriptions, until they were read. Default 64 MiB, of which anonymous callers leave the [`named_share`](Self::named_share). Requests of up to
    /// 8 KiB are not counted. Beyond it, HTTP answers 503 with `Retry-After` before more is read, and the other transports
    /// answer with the error `busy`; a task waits.
    #[must_use]
    pub fn request_bytes(mut self, limit: usize) -> Self {
        self.request_bytes = limit;
        self
    }

    /// Sets the maximum number of bytes of the requests of one principal, or of the anonymous callers at one
    /// [address](crate::PeerAddress), within [`request_bytes`](Self::request_bytes). A caller may always send one message of
    /// the maximum length. Default 16 MiB.
    #[must_use]
    pub fn request_bytes_per_caller(mut self, limit: usize) -> Self {
        self.request_bytes_per_caller = limit;
        self
    }

    /// Sets the share of [`handlers`](Self::handlers), [`sessions`](Self::sessions),
    /// [`session_handlers`](Self::session_handlers), [`request_bytes`](Self::request_bytes),
    /// [`subscriptions`](Self::subscriptions) and requests over HTTP/2 that is kept for callers with a principal, in percent:
    /// anonymous callers over HTTP cannot use it. Default 25. A server without authentication can set 0.
    #[must_use]
    pub fn named_share(mut self, percent: u8) -> Self {
        self.named_share = percent.min(100);
        self
    }

    /// Sets the maximum number of open subscriptions; further ones are refused. Default 10,000, of which anonymous callers leave the
    /// [`named_share`](Self::named_share). One principal, or the anonymous callers at one [address](crate::PeerAddress), may have
    /// a quarter of all.
    #[must_use]
    pub fn subscriptions(mut self, limit: usize) -> Self {
        self.subscriptions = limit;
        self
    }

    /// Sets the maximum number of resources in one subscription. Default 1,000.
    #[must_use]
    pub fn subscription_uris(mut self, limit: usize) -> Self {
        self.subscription_uris = limit;
        self
    }

    /// Sets the maximum length of all URIs of one subscription, in bytes. Default 64 KiB.
    #[must_use]
    pub fn subscription_uri_bytes(mut self, limit: usize) -> Self {
        self.subscription_uri_bytes = limit;
        self
    }

    /// Sets the maximum length of all URIs of all subscriptions, in bytes, with 512 bytes for each URI and 128 for each task;
    /// further ones are refused. Default 16 MiB, divided as [`subscriptions`](Self::subscriptions).
    #[must_use]
    pub fn all_subscription_uri_bytes(mut self, limit: usize) -> Self {
        self.all_subscription_uri_bytes = limit;
        self
    }

    /// Returns the part of a limit that anonymous callers may use.
    pub(crate) fn for_anonymous(&self, limit: usize) -> usize {
        let percent = usize::from(self.named_share);
        // Divided first, so that a large limit does not overflow.
        limit - (limit / 100 * percent + limit % 100 * percent / 100)
    }

    /// Returns the most bytes that one opening of a task's content counts: any caller has as many.
    pub(crate) fn largest_opening(&self) -> usize {
        self.request_bytes_per_caller.min(self.for_anonymous(self.request_bytes))
    }

    /// Returns the maximum size of a token's content with the record of an effect.
    pub(crate) fn state_after_effect(&self) -> usize {
        self.engine.state.saturating_mul(2)
    }
}

/// The treatment of state that comes back after its expiry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnExpired {
    /// Expired state is refused like forged state: the client begins again. The default.
    #[default]
    Refuse,
    /// Expired state is opened until the whole call's deadline: its record is kept, the answers that came with it are
    /// dropped, and their round is asked again.
    AskAgain,
}

/// The maximum time of a whole call if expired state is asked again and no other limit is set.
pub(crate) const CALL_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);

/// The lifetime of a reference in a URL, unless the call ends sooner.
pub(crate) const URL_REF_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);

/// The size of a record from which a warning is logged. The warning names the largest entries.
pub(crate) const RECORD_WARNING: usize = 16 * 1024;

/// The leg from which a warning is logged: many clients stop at ten rounds.
pub(crate) const LEG_WARNING: u16 = 8;

/// The maximum length of a stored `clientInfo`, in bytes of JSON. A longer one is not stored, because it would stay in
/// memory as long as the session.
pub(crate) const CLIENT_INFO: usize = 16 * 1024;
