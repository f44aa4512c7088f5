//! Attaches callbacks and sets bounds.

use crate::{
    asks::{
        callbacks::{AskHandlers, CallbackError, Callbacks, ElicitComplete, boxed},
        questions::{ElicitAsk, FormAsk, RootsAsk, Round, RoundDecision, SampleAsk, UrlAsk},
    },
    client::Client,
    layer::LayerSettings,
    lists::{ServerLists, tools::ServerTools},
    request::{
        Bounds, Core, CoreSettings, DeclaredExtensions,
        events::{LogEvent, Observers, OnProgress, ProgressEvent},
    },
    session::{Connection, Mode},
    transport::Transport,
};
use antiphon_wire::{
    AskSupport, CreateMessageResult, ElicitResult, Implementation, ListRootsResult, LogLevel,
    ProtocolVersion, extension::InvalidExtension, pacing::StateOnlyLimits,
};
use serde::{Serialize, de::DeserializeOwned};
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
    info: Implementation,
    version: ProtocolVersion,
    mode: Mode,
    callbacks: Callbacks,
    /// The asks that are answered by hand.
    by_hand: AskSupport,
    bounds: Bounds,
    one_at_a_time: bool,
    any_url_scheme: bool,
    observers: Observers,
    caches: bool,
    checks_output: bool,
    tasks: bool,
    task_notifications: bool,
    draft_tasks: bool,
    pub(crate) layers: LayerSettings,
    extensions: DeclaredExtensions,
}

impl Client {
    /// Settings of a client that sends servers this name and version of itself.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(Implementation::new(name, version))
    }
}

impl ClientBuilder {
    fn new(info: Implementation) -> Self {
        Self {
            info,
            version: ProtocolVersion::V2026_07_28,
            mode: Mode::Auto,
            callbacks: Callbacks::default(),
            by_hand: AskSupport::NONE,
            bounds: Bounds {
                max_rounds: 10,
                max_asks: 64,
                leg_timeout: Duration::from_secs(60),
                progress_stretches: None,
                call_timeout: None,
                state_only_pacing: StateOnlyLimits::default(),
                probe_timeout: Duration::from_secs(5),
                url_retry_interval: Duration::from_secs(60),
            },
            one_at_a_time: false,
            any_url_scheme: false,
            observers: Observers::default(),
            caches: true,
            checks_output: true,
            tasks: true,
            task_notifications: false,
            draft_tasks: false,
            layers: LayerSettings::default(),
            extensions: DeclaredExtensions::default(),
        }
    }

    /// Sends servers this description of the client, instead of the name and version only.
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

    /// Sets whether, beside [`on_sample`](Self::on_sample), it is declared that the model may be given tools. Default: `false`.
    pub fn sampling_tools(mut self, on: bool) -> Self {
        self.callbacks.sampling_tools = on;
        self
    }

    /// Sets whether, beside [`on_sample`](Self::on_sample), it is declared that the model may be given the context of servers.
    /// Default: `false`.
    pub fn sampling_context(mut self, on: bool) -> Self {
        self.callbacks.sampling_context = on;
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

    /// Calls back with every round before its callbacks run. The decision may refuse the round, decline parts of it, or delay
    /// the retry.
    pub fn on_round<F, Fut>(mut self, callback: F) -> Self
    where
        F: Fn(Round) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = RoundDecision> + Send + 'static,
    {
        self.callbacks.round = Some(boxed(callback));
        self
    }

    /// Calls back for the progress of every request, unless its call has a callback of its own
    /// ([`Call::on_progress`](crate::Call::on_progress)). Servers are asked for progress only if there is a callback.
    ///
    /// The callback runs between two reads from the connection: it must neither block nor panic. To do more than show
    /// or count, send the event through a channel.
    pub fn on_progress(mut self, callback: impl Fn(ProgressEvent) + Send + Sync + 'static) -> Self {
        self.observers.progress = Some(OnProgress::new(callback));
        self
    }

    /// Calls back for the server's log messages about a request. Asks for messages from [`LogLevel::Info`] on, unless
    /// [`log_level`](Self::log_level) sets another level; messages below it are dropped. As with
    /// [`on_progress`](Self::on_progress), the callback must neither block nor panic.
    ///
    /// Deprecated in 2026-07-28, and to be removed from the protocol a year later at the earliest. Instead, servers on
    /// stdio log to their standard error ([`ChildStderr`](crate::transport::ChildStderr) sets its destination), and all
    /// others through OpenTelemetry.
    pub fn on_log(mut self, callback: impl Fn(LogEvent) + Send + Sync + 'static) -> Self {
        self.observers.log = Some(Arc::new(callback));
        self
    }

    /// Asks, with every request, for log messages from this level on; [`Call::log_level`](crate::Call::log_level) asks
    /// with one call. Without [`on_log`](Self::on_log), they are dropped.
    ///
    /// Deprecated in 2026-07-28. [`on_log`](Self::on_log) names the replacement.
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.observers.level = Some(level);
        self
    }

    /// Sets whether results are kept. Default: `true`.
    ///
    /// The results of `server/discover`, of the lists and of `resources/read` are kept for as long as the server allows, up to
    /// 512 of them and 16 MiB, and returned again without a request. A notification of a change on a subscription drops them.
    /// Results that needed an answer are never kept.
    ///
    /// One client is one authorization context: it also keeps results for its user only, and shares nothing with other clients.
    /// Use another client if the credentials of a transport change to those of another user; at the least, call
    /// [`clear_cache`](Client::clear_cache).
    ///
    /// > Caches **MUST NOT** be shared across authorization contexts
    pub fn cache(mut self, on: bool) -> Self {
        self.caches = on;
        self
    }

    /// Sets whether results of tools are compared with the tools' output schemas. Default: `true`, with the feature `schema`.
    ///
    /// A tool of the latest list that declares an output schema has its results compared with it. If the schema cannot be used,
    /// results are not checked, and one warning says why.
    ///
    /// > Clients **SHOULD** validate structured results against this schema.
    pub fn check_results(mut self, on: bool) -> Self {
        self.checks_output = on;
        self
    }

    /// Sets whether the client declares, with each request of 2026-07-28, that it supports tasks (the extension
    /// `io.modelcontextprotocol/tasks`). Default: `true`.
    ///
    /// A server may then make a task of a tool call, which continues without its request. [`Client::call_tool`] gets the task
    /// until it has its result; [`Client::begin`] returns a [`TaskHandle`](crate::TaskHandle). With `false`, a server that can
    /// run a tool as a task only refuses the call.
    ///
    /// On a session of 2025-11-25 the client decides: a tool whose `execution.taskSupport` is `required` is called as a task,
    /// and one whose support is `optional` if the call is made with [`begin`](Client::begin) and the list of tools was read
    /// before. With `false`, no call is.
    pub fn tasks(mut self, on: bool) -> Self {
        self.tasks = on;
        self
    }

    /// Sets whether calls that became tasks subscribe to the changes of their tasks. Default: `false`; they poll.
    ///
    /// All waiting tasks of the client share one subscription, which is open only while any of them waits. Each task is still
    /// polled at a long interval. If the server reports no tasks, or the subscription breaks, its tasks are polled as without
    /// it. Set it for long tasks: a result then arrives at once, and the server receives few polls. Over HTTP/1.1 the
    /// subscription occupies one connection, and a proxy must let events through, which is why polling is the default.
    ///
    /// > Servers **MAY** push `notifications/tasks`
    pub fn task_notifications(mut self, on: bool) -> Self {
        self.task_notifications = on;
        self
    }

    /// Sets whether the client also speaks the draft of tasks before the extension, on servers of 2026-07-28. Default: `false`.
    ///
    /// Each tool call then also carries `task`, unless the list of tools says that the tool has no tasks. A server that speaks the
    /// draft answers with a nested task; its questions come with `tasks/result`, and `tasks/input_response` answers them. If a
    /// server refuses the member (`-32601`), the call is sent again without it. The draft was never released, and other servers
    /// ignore the member.
    ///
    /// The extension stays declared, so a server that has both uses the extension. With [`tasks(false)`](Self::tasks), the
    /// client speaks the draft only.
    pub fn draft_tasks(mut self, on: bool) -> Self {
        self.draft_tasks = on;
        self
    }

    /// Declares an extension with these settings, a value that is written as an object (`()` is an empty one), with each request and in each handshake. Default:
    /// none but that for [tasks](Self::tasks). See [`Client::request`].
    ///
    /// # Errors
    /// If the id is none, or is declared already, or the settings are no object.
    pub fn extension(mut self, id: &str, settings: impl Serialize) -> Result<Self, InvalidExtension> {
        self.extensions.add(id, settings)?;
        Ok(self)
    }

    /// Calls back for notifications of this method, that of an extension, which come with the response to a request, or in a session.
    /// Params that do not fit are dropped. As with [`on_progress`](Self::on_progress), the callback must neither block nor panic.
    pub fn on_notification<P: DeserializeOwned>(
        mut self,
        method: impl Into<String>,
        callback: impl Fn(P) + Send + Sync + 'static,
    ) -> Self {
        self.observers.of_extensions.add(method.into(), callback);
        self
    }

    /// Sets whether the callbacks of a round run one after another. Default: `false`; they run concurrently, started in the
    /// server's order.
    pub fn one_at_a_time(mut self, on: bool) -> Self {
        self.one_at_a_time = on;
        self
    }

    /// Sets whether callbacks receive asks for URLs of any scheme. Default: `false`; only valid `http` and `https` URLs reach
    /// them, and any other one ends the call with [`AskFault::Url`](crate::AskFault::Url). A call that is driven by hand
    /// follows the same rule: [`PendingCall::answer`](crate::PendingCall::answer) refuses to agree to another URL.
    ///
    /// A URL such as `javascript://..`, `file://..` or `ms-msdt://..` may run code or start a program on the person's machine.
    /// With `true`, the callback must check the scheme: see [`UrlAsk::show`].
    pub fn any_url_scheme(mut self, on: bool) -> Self {
        self.any_url_scheme = on;
        self
    }

    /// The maximum number of rounds of a call: 10 unless set. 0 refuses every round.
    pub fn max_rounds(mut self, rounds: u32) -> Self {
        self.bounds.max_rounds = rounds;
        self
    }

    /// The maximum number of asks in one round: 64 unless set.
    pub fn max_asks(mut self, asks: usize) -> Self {
        self.bounds.max_asks = asks;
        self
    }

    /// The time limit of one request: 60 seconds unless set. The time of callbacks and of a sign-in does not count.
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
    pub fn max_leg_timeout(mut self, max: Duration) -> Self {
        self.bounds.progress_stretches = Some(max);
        self
    }

    /// The time limit of a whole call, including the time of people: none unless set.
    pub fn call_timeout(mut self, limit: Duration) -> Self {
        self.bounds.call_timeout = Some(limit);
        self
    }

    /// The limits of legs whose results have state only: 60 in a row, within two minutes, unless set. Such legs do not count as
    /// rounds. The client pauses between them.
    pub fn state_only_limits(mut self, legs: u32, time: Duration) -> Self {
        self.bounds.state_only_pacing = StateOnlyLimits::default().legs(legs).timeout(time);
        self
    }

    /// Declares asks that have no callback, for calls that the program drives by hand: with [`begin`](Client::begin)
    /// and [`resume`](Client::resume), the program answers such asks between the legs.
    pub fn declare(mut self, asks: AskSupport) -> Self {
        self.by_hand = self.by_hand.and(asks);
        self
    }

    /// Sets the version to try first. Default: the newest. The client changes to another version that it supports if
    /// the server requires it.
    pub fn protocol_version(mut self, version: ProtocolVersion) -> Self {
        self.version = version;
        self
    }

    /// The revisions of the protocol to use: [`Mode::Auto`] unless set.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The time that a server on stdio has to answer `server/discover`, the first request of [`Mode::Auto`]: 5 seconds unless
    /// set. After that, the client sends `initialize`, and the first reply decides the era.
    pub fn probe_timeout(mut self, limit: Duration) -> Self {
        self.bounds.probe_timeout = limit;
        self
    }

    /// Calls back when the server reports that a person finished at a URL. Only servers with a session do. The callback must
    /// neither block nor panic.
    pub fn on_elicit_complete(mut self, callback: impl Fn(ElicitComplete) + Send + Sync + 'static) -> Self {
        self.callbacks.elicit_complete = Some(Arc::new(callback));
        self
    }

    /// The time to wait for the server to report that URLs are finished, after a person agreed to open those that a request
    /// requires (`-32042`): a minute unless set. Then the request is sent again anyway, for not every server reports that;
    /// each time counts as a round.
    pub fn url_retry_interval(mut self, limit: Duration) -> Self {
        self.bounds.url_retry_interval = limit;
        self
    }

    /// A client of the server at the other end of this transport: an [`HttpTransport`](crate::transport), a child process, an
    /// `Arc<dyn Transport>`. Sends nothing. One client per transport: request ids are counted by the client.
    #[must_use]
    pub fn connect(self, transport: impl Transport) -> Client {
        let declared = self.callbacks.declared().and(self.by_hand);
        let version = match &self.mode {
            Mode::Pinned(version) => version.clone(),
            _ => self.version,
        };
        let core = Core::new(CoreSettings {
            target: transport.target().to_owned(),
            info: self.info,
            handlers: AskHandlers {
                callbacks: self.callbacks,
                declared,
                one_at_a_time: self.one_at_a_time,
                any_url_scheme: self.any_url_scheme,
            },
            bounds: self.bounds,
            observers: self.observers,
            version,
            caches: self.caches,
            tasks: self.tasks,
            task_notifications: self.task_notifications,
            draft_tasks: self.draft_tasks,
            extensions: self.extensions,
        });
        let connection = Connection::new(Arc::new(core), Arc::new(transport), self.mode, self.layers.build());
        Client::new(ServerTools::new(ServerLists { connection: Arc::new(connection) }, self.checks_output))
    }
}
