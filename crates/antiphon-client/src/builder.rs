//! Attaches callbacks and sets bounds.

use crate::{
    Client,
    ask::{ElicitAsk, FormAsk, RootsAsk, Round, RoundDecision, SampleAsk, UrlAsk},
    callback::{Callback, CallbackError, Callbacks},
    elicit_complete::ElicitComplete,
    era::Mode,
    event::{LogEvent, OnProgress, ProgressEvent},
    hearing::Hearers,
    transport::Transport,
};
use antiphon_wire::pacing::StateOnlyLimits;
use antiphon_wire::{
    AskSupport, CreateMessageResult, ElicitResult, Implementation, ListRootsResult, LogLevel, ProtocolVersion,
};
use std::{sync::Arc, time::Duration};

/// Builds a [`Client`]. Exactly the kinds of asks that have a callback are declared to servers.
///
/// A callback is a closure that takes its ask and returns a future. An `async` closure will do unless it uses what it
/// captured; then the future needs a clone of its own:
///
/// ```
/// use antiphon::client::{CallbackError, Client, ClientBuilder, FormAsk};
///
/// # #[derive(Clone)] struct Ui;
/// # impl Ui {
/// #     async fn fill_in(&self, _: &FormAsk) -> Result<serde_json::Value, CallbackError> {
/// #         Ok(serde_json::Value::Null)
/// #     }
/// # }
/// fn attach(ui: Ui) -> ClientBuilder {
///     Client::builder("my-host", "1.0").on_elicit_form(move |ask| {
///         let ui = ui.clone();
///         async move { Ok(ask.accept(ui.fill_in(&ask).await?)?) }
///     })
/// }
/// ```
#[derive(Clone)]
#[must_use]
pub struct ClientBuilder {
    pub(crate) info: Implementation,
    pub(crate) version: ProtocolVersion,
    pub(crate) mode: Mode,
    pub(crate) probe_timeout: Duration,
    pub(crate) elicit_wait: Duration,
    pub(crate) callbacks: Callbacks,
    /// What is answered by hand.
    pub(crate) by_hand: AskSupport,
    pub(crate) bounds: Bounds,
    pub(crate) one_at_a_time: bool,
    pub(crate) hearers: Hearers,
    pub(crate) caches: bool,
    pub(crate) checks_output: bool,
}

/// The bounds of a client's calls.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) max_rounds: u32,
    pub(crate) max_asks: usize,
    pub(crate) leg_timeout: Duration,
    /// How long progress may stretch the time of a request, if it may.
    pub(crate) progress_stretches: Option<Duration>,
    pub(crate) call_deadline: Option<Duration>,
    pub(crate) state_only: StateOnlyLimits,
}

impl ClientBuilder {
    pub(crate) fn new(info: Implementation) -> Self {
        Self {
            info,
            version: ProtocolVersion::V2026_07_28,
            mode: Mode::Auto,
            probe_timeout: Duration::from_secs(5),
            elicit_wait: Duration::from_secs(60),
            callbacks: Callbacks::default(),
            by_hand: AskSupport::NONE,
            bounds: Bounds {
                max_rounds: 10,
                max_asks: 64,
                leg_timeout: Duration::from_secs(60),
                progress_stretches: None,
                call_deadline: None,
                state_only: StateOnlyLimits::default(),
            },
            one_at_a_time: false,
            hearers: Hearers::default(),
            caches: true,
            checks_output: true,
        }
    }

    /// Tells servers this of the client, instead of the name and version only.
    pub fn implementation(mut self, info: Implementation) -> Self {
        self.info = info;
        self
    }

    /// Answers forms and URLs. Declares both.
    pub fn on_elicit<F, Fut>(mut self, callback: F) -> Self
    where
        F: Fn(ElicitAsk) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ElicitResult, CallbackError>> + Send + 'static,
    {
        let callback = boxed(callback);
        let for_url = Arc::clone(&callback);
        self.callbacks.form = Some(Arc::new(move |ask| callback(ElicitAsk::Form(ask))));
        self.callbacks.url = Some(Arc::new(move |ask| for_url(ElicitAsk::Url(ask))));
        self
    }

    /// Answers forms. Declares forms.
    pub fn on_elicit_form<F, Fut>(mut self, callback: F) -> Self
    where
        F: Fn(FormAsk) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ElicitResult, CallbackError>> + Send + 'static,
    {
        self.callbacks.form = Some(boxed(callback));
        self
    }

    /// Answers URLs. Declares URLs.
    pub fn on_elicit_url<F, Fut>(mut self, callback: F) -> Self
    where
        F: Fn(UrlAsk) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ElicitResult, CallbackError>> + Send + 'static,
    {
        self.callbacks.url = Some(boxed(callback));
        self
    }

    /// Answers with a message of the client's model. Declares sampling, which is deprecated in 2026-07-28: servers
    /// should call a model provider directly.
    pub fn on_sample<F, Fut>(mut self, callback: F) -> Self
    where
        F: Fn(SampleAsk) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<CreateMessageResult, CallbackError>> + Send + 'static,
    {
        self.callbacks.sample = Some(boxed(callback));
        self
    }

    /// Declares, beside [`on_sample`](Self::on_sample), that the model may be given tools.
    pub fn sampling_tools(mut self) -> Self {
        self.callbacks.sampling_tools = true;
        self
    }

    /// Declares, beside [`on_sample`](Self::on_sample), that the model may be given the context of servers.
    pub fn sampling_context(mut self) -> Self {
        self.callbacks.sampling_context = true;
        self
    }

    /// Answers with the client's root directories. Declares roots, which are deprecated in 2026-07-28: pass
    /// directories as arguments of tools.
    pub fn on_roots<F, Fut>(mut self, callback: F) -> Self
    where
        F: Fn(RootsAsk) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ListRootsResult, CallbackError>> + Send + 'static,
    {
        self.callbacks.roots = Some(boxed(callback));
        self
    }

    /// Sees every round that asks something before its callbacks run: may refuse it, decline parts of it, or delay the
    /// retry.
    pub fn on_round<F, Fut>(mut self, callback: F) -> Self
    where
        F: Fn(Round) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = RoundDecision> + Send + 'static,
    {
        self.callbacks.round = Some(boxed(callback));
        self
    }

    /// Hears of the progress of every request, unless its call has a callback of its own
    /// ([`Call::on_progress`](super::Call::on_progress)). Progress is asked for only where somebody listens.
    ///
    /// The callback runs between two reads from the connection: it must neither block nor panic. To do more than show
    /// or count, send the event through a channel.
    pub fn on_progress(mut self, callback: impl Fn(ProgressEvent) + Send + Sync + 'static) -> Self {
        self.hearers.progress = Some(OnProgress::new(callback));
        self
    }

    /// Hears what the server logs about a request. Asks for messages from [`LogLevel::Info`] on, unless
    /// [`log_level`](Self::log_level) says otherwise; what is below is dropped. As with
    /// [`on_progress`](Self::on_progress), the callback must neither block nor panic.
    ///
    /// Deprecated in 2026-07-28, and to be removed from the protocol a year later at the earliest. Instead, servers on
    /// stdio log to their standard error ([`ChildStderr`](crate::transport::ChildStderr) says where that goes),
    /// and all others through OpenTelemetry.
    pub fn on_log(mut self, callback: impl Fn(LogEvent) + Send + Sync + 'static) -> Self {
        self.hearers.log = Some(Arc::new(callback));
        self
    }

    /// Asks, with every request, for log messages from this level on; [`Call::log_level`](super::Call::log_level) asks
    /// with one call. Without [`on_log`](Self::on_log), nobody hears them.
    ///
    /// Deprecated in 2026-07-28, as [`on_log`](Self::on_log) is, which says what to do instead.
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.hearers.level = Some(level);
        self
    }

    /// Keeps no results.
    ///
    /// Without this, the results of `server/discover`, of the lists and of `resources/read` are kept for as long as the
    /// server allows, up to 512 of them and 16 MiB, and given again instead of asking. They are forgotten when the
    /// server says on a subscription that they changed. Results that needed an answer are never kept.
    ///
    /// One client is one authorization context: it keeps what is meant for its user alone, too, and shares nothing with
    /// other clients. A transport whose credentials change to those of another user must not be used by the same
    /// client; at the least, call [`clear_cache`](Client::clear_cache).
    ///
    /// > Caches **MUST NOT** be shared across authorization contexts
    pub fn no_cache(mut self) -> Self {
        self.caches = false;
        self
    }

    /// Gives results of tools as they come, without comparing them with the tools' output schemas.
    ///
    /// Without this, a tool of the latest list that declares an output schema has its results compared with it, and a
    /// tool whose schema cannot be used is not called.
    ///
    /// > Clients **SHOULD** validate structured results against this schema.
    pub fn unchecked_results(mut self) -> Self {
        self.checks_output = false;
        self
    }

    /// Runs the callbacks of a round one after another. By default they run concurrently, started in the server's
    /// order.
    pub fn one_at_a_time(mut self) -> Self {
        self.one_at_a_time = true;
        self
    }

    /// How often a call may be sent again with answers: 10 unless set. 0 refuses every round.
    pub fn max_rounds(mut self, rounds: u32) -> Self {
        self.bounds.max_rounds = rounds;
        self
    }

    /// How many asks one round may hold: 64 unless set.
    pub fn max_asks(mut self, asks: usize) -> Self {
        self.bounds.max_asks = asks;
        self
    }

    /// How long one request may take: 60 seconds unless set. Callbacks do not count.
    ///
    /// > Implementations **SHOULD** establish timeouts for all sent requests, to prevent hung connections and resource
    /// > exhaustion.
    pub fn leg_timeout(mut self, limit: Duration) -> Self {
        self.bounds.leg_timeout = limit;
        self
    }

    /// Begins the time of a request anew whenever it makes progress, for at most this long in all. Asks for progress
    /// with every request. A limit below that of one request changes nothing.
    ///
    /// > Implementations **MAY** choose to reset the timeout clock when receiving a progress notification [...].
    /// > However, implementations **SHOULD** always enforce a maximum timeout, regardless of progress notifications
    pub fn progress_extends_timeout(mut self, max: Duration) -> Self {
        self.bounds.progress_stretches = Some(max);
        self
    }

    /// How long a whole call may take, people included: no bound unless set.
    pub fn call_deadline(mut self, limit: Duration) -> Self {
        self.bounds.call_deadline = Some(limit);
        self
    }

    /// How long a server may answer with state only, asking nothing: 60 times in a row, for two minutes, unless set.
    /// Such legs do not count as rounds, and are paced.
    pub fn state_only_limits(mut self, legs: u32, time: Duration) -> Self {
        self.bounds.state_only = StateOnlyLimits { legs, time };
        self
    }

    /// Declares asks that have no callback, for calls that are driven by hand: whoever does so with
    /// [`begin`](Client::begin) and [`resume`](Client::resume) answers them between the legs.
    pub fn declare(mut self, asks: AskSupport) -> Self {
        self.by_hand = self.by_hand.and(asks);
        self
    }

    /// The version to try first: the newest unless set. The client changes to another one it speaks if the server
    /// says so.
    pub fn protocol_version(mut self, version: ProtocolVersion) -> Self {
        self.version = version;
        self
    }

    /// Which revisions to speak: [`Mode::Auto`] unless set.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// How long a server on stdio has to answer `server/discover`, the first request of [`Mode::Auto`]: 5 seconds unless set.
    /// Then it is taken for a legacy one, unless its answer comes before that to `initialize`.
    pub fn probe_timeout(mut self, limit: Duration) -> Self {
        self.probe_timeout = limit;
        self
    }

    /// Hears that what a person did behind a URL is finished, on a session of a server that says so. The callback must neither
    /// block nor panic.
    pub fn on_elicit_complete(mut self, callback: impl Fn(ElicitComplete) + Send + Sync + 'static) -> Self {
        self.callbacks.elicit_complete = Some(Arc::new(callback));
        self
    }

    /// How long to wait, once a person agreed to open URLs that must be finished before a request is sent again (`-32042`),
    /// for the server to say that they are: a minute unless set. Then it is sent again anyway, for not every server says so;
    /// each time counts as a round.
    pub fn elicit_wait(mut self, limit: Duration) -> Self {
        self.elicit_wait = limit;
        self
    }

    /// A client of the server at the other end of this transport. Sends nothing. One client per transport: request
    /// ids are counted by the client.
    #[must_use]
    pub fn connect(self, transport: Arc<dyn Transport>) -> Client {
        Client::new(self, transport)
    }
}

fn boxed<Ask, T, F, Fut>(callback: F) -> Callback<Ask, T>
where
    F: Fn(Ask) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = T> + Send + 'static,
{
    Arc::new(move |ask| Box::pin(callback(ask)))
}
