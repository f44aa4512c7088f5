//! One request of any method: its parts, its time, its notifications, and the faults that end it.
//!
//! [`Core`] holds the state that all requests of a client share. The module `session` sends a request in the way
//! of the server's era.

pub(crate) mod deadline;
pub(crate) mod events;
pub(crate) mod fault;

use crate::{
    asks::{
        callbacks::AskHandlers,
        questions::{Origin, ServerIdentity},
    },
    cache::Cache,
    trace::Traced,
    transport::{IncomingNotification, OutgoingRequest},
};
use antiphon_wire::{
    ClientCapabilities, Implementation, LogLevel, LogMessageParams, Meta, ProgressParams, ProtocolVersion,
    RequestId, ServerCapabilities, TASKS_EXTENSION, escaped, extension::ExtensionId, lock::Lock, meta_keys,
    method, pacing::StateOnlyLimits,
};
use deadline::RequestDeadline;
use events::{EventContext, LogEvent, Observers, OnProgress, ProgressEvent};
use serde_json::{Map, Value, json, value::RawValue};
use std::{
    borrow::Cow,
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tracing::{Level, Span, enabled};

/// The settings of a client, and the data of its server. Requests of both eras and the tasks of sessions share one value. The
/// value does not hold the transport, so that the task of a session does not keep the transport open.
pub(crate) struct Core {
    pub(crate) info: Implementation,
    pub(crate) capabilities: ClientCapabilities,
    /// The extensions that a session declares: all but that for tasks.
    pub(crate) extensions: DeclaredExtensions,
    /// The capabilities without the extension for tasks, for the draft before it.
    pub(crate) draft_capabilities: ClientCapabilities,
    /// `true` if the client declares the extension for tasks, and makes tasks on sessions.
    pub(crate) tasks: bool,
    /// `true` if the client subscribes to the changes of tasks.
    pub(crate) task_notifications: bool,
    /// `true` if the client speaks the draft of tasks before the extension.
    pub(crate) draft_tasks: bool,
    pub(crate) handlers: AskHandlers,
    pub(crate) bounds: Bounds,
    pub(crate) observers: Observers,
    pub(crate) cache: Cache,
    target: String,
    next_id: AtomicU64,
    known: Lock<KnownServer>,
}

/// The bounds of a client's calls.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) max_rounds: u32,
    pub(crate) max_asks: usize,
    pub(crate) leg_timeout: Duration,
    /// The maximum time of a request that makes progress; none if progress does not extend the time.
    pub(crate) progress_stretches: Option<Duration>,
    pub(crate) call_timeout: Option<Duration>,
    pub(crate) state_only_pacing: StateOnlyLimits,
    pub(crate) probe_timeout: Duration,
    pub(crate) url_retry_interval: Duration,
}

/// The data of the server, from its results.
pub(crate) struct KnownServer {
    pub(crate) version: ProtocolVersion,
    pub(crate) info: Option<Implementation>,
    pub(crate) capabilities: Option<ServerCapabilities>,
}

/// The settings from which a [`Core`] is made.
pub(crate) struct CoreSettings {
    pub(crate) target: String,
    pub(crate) info: Implementation,
    pub(crate) handlers: AskHandlers,
    pub(crate) bounds: Bounds,
    pub(crate) observers: Observers,
    pub(crate) version: ProtocolVersion,
    pub(crate) caches: bool,
    pub(crate) tasks: bool,
    pub(crate) task_notifications: bool,
    pub(crate) draft_tasks: bool,
    pub(crate) extensions: DeclaredExtensions,
}

/// The extensions that the program declares, with their settings.
#[derive(Clone, Default)]
pub(crate) struct DeclaredExtensions(pub(crate) Vec<(ExtensionId, Map<String, Value>)>);

impl DeclaredExtensions {
    /// Adds the extensions to these capabilities.
    pub(crate) fn declare(&self, capabilities: ClientCapabilities) -> ClientCapabilities {
        self.0.iter().fold(capabilities, |capabilities, (id, settings)| {
            capabilities.with_extension_settings(id.as_str(), settings.clone())
        })
    }
}

impl Core {
    pub(crate) fn new(settings: CoreSettings) -> Self {
        let CoreSettings { target, info, handlers, bounds, observers, version, .. } = settings;
        let CoreSettings { caches, tasks, task_notifications, draft_tasks, extensions, .. } = settings;
        // The capabilities of exactly the attached callbacks.
        let capabilities = extensions.declare(ClientCapabilities::for_asks(handlers.declared));
        Self {
            info,
            draft_capabilities: capabilities.clone(),
            capabilities: if tasks { capabilities.with_extension(TASKS_EXTENSION) } else { capabilities },
            tasks,
            extensions,
            task_notifications,
            draft_tasks,
            handlers,
            bounds,
            observers,
            cache: Cache::new(caches),
            target,
            next_id: AtomicU64::new(1),
            known: Lock::new(KnownServer { version, info: None, capabilities: None }),
        }
    }

    /// A new id. No two requests of a client have the same.
    ///
    /// > The JSON-RPC `id` **MUST** be different between the initial request and the retry, as they are independent
    /// > requests.
    pub(crate) fn next_id(&self) -> RequestId {
        RequestId::from(self.next_id.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn known(&self) -> MutexGuard<'_, KnownServer> {
        self.known.lock()
    }

    pub(crate) fn identity(&self) -> ServerIdentity {
        ServerIdentity::new(&self.target, self.known().info.as_ref())
    }

    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    /// Returns the span of a call, or of another request.
    pub(crate) fn span(&self, method: &str, name: Option<&str>) -> Span {
        // Nothing is computed for nobody.
        if !enabled!(Level::INFO) {
            return Span::none();
        }
        let version = self.known().version.clone();
        Traced { method, name, version: version.as_str(), target: &self.target }.span()
    }

    /// Changes the version. Results of the old version are not used again.
    pub(crate) fn change_version(&self, version: ProtocolVersion) {
        let mut known = self.known();
        if known.version != version {
            known.version = version;
            self.cache.drop_entries();
        }
    }
}

/// The additions of layers to a request.
#[derive(Clone, Default)]
pub(crate) struct Added {
    pub(crate) meta: Meta,
    pub(crate) headers: Vec<(String, String)>,
}

impl Added {
    /// Adds the members of the layers to the `_meta` of a request. Those of the protocol stay.
    pub(crate) fn add_to(&self, meta: &mut Meta) {
        for (name, value) in &self.meta.0 {
            if !meta.0.contains_key(name) {
                meta.0.insert(name.clone(), value.clone());
            }
        }
    }
}

/// A request without its id, version and `_meta`.
pub(crate) struct RequestSpec<'a> {
    pub(crate) method: Cow<'static, str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) timeout: Duration,
    /// Headers beyond those that every request has, for transports that have any.
    pub(crate) headers: Vec<(String, String)>,
    /// The number of earlier rounds.
    pub(crate) round: u32,
    /// The number of the request in its call, from 1.
    pub(crate) leg: u32,
    /// The callback for its progress, instead of the client's.
    pub(crate) on_progress: Option<&'a OnProgress>,
    /// The level of log messages, instead of the client's.
    pub(crate) log_level: Option<LogLevel>,
    /// The arguments of the call, for the callbacks that are asked on its way.
    pub(crate) arguments: Option<&'a Arc<RawValue>>,
    /// The call that the asks on its way belong to, if it is not this request.
    pub(crate) origin: Option<&'a Origin>,
    /// `true` if the request speaks of tasks as in the draft before the extension: it does not declare the extension.
    pub(crate) draft: bool,
    /// `true` if the request carries answers or state.
    pub(crate) carries: bool,
    /// `true` if the request asks for neither progress nor log messages.
    pub(crate) quiet: bool,
    /// The additions of layers.
    pub(crate) added: Option<&'a Added>,
}

impl RequestSpec<'_> {
    /// The same request, with what layers have added.
    pub(crate) fn with_added<'a>(&'a self, added: &'a Added) -> RequestSpec<'a> {
        RequestSpec {
            method: self.method.clone(),
            added: Some(added),
            headers: self.headers.clone(),
            ..*self
        }
    }

    /// The headers that layers have added.
    pub(crate) fn added_headers(&self) -> impl Iterator<Item = (String, String)> {
        self.added.into_iter().flat_map(|added| added.headers.iter().cloned())
    }

    /// The request, without headers.
    pub(crate) fn request(
        &self,
        id: RequestId,
        version: ProtocolVersion,
        mut body: Vec<u8>,
    ) -> OutgoingRequest {
        // Arguments are sent as they were written. Between the tokens of JSON a line may break; lines frame messages.
        body.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        OutgoingRequest {
            name: self.name.map(str::to_owned),
            ..OutgoingRequest::new(id, self.method.clone(), version, body)
        }
    }

    /// A request that belongs to no call.
    pub(crate) fn single(method: impl Into<Cow<'static, str>>, timeout: Duration) -> Self {
        Self {
            method: method.into(),
            name: None,
            timeout,
            headers: Vec::new(),
            round: 0,
            leg: 1,
            on_progress: None,
            log_level: None,
            arguments: None,
            origin: None,
            draft: false,
            carries: false,
            quiet: false,
            added: None,
        }
    }
}

/// Writes the message of a request once its id and `_meta` are known.
pub(crate) type BodyWriter<'a> =
    dyn Fn(&RequestId, Meta) -> Result<Vec<u8>, serde_json::Error> + Send + Sync + 'a;

/// Logs a request that leaves, as an event of its call's span.
pub(crate) fn note_leg(spec: &RequestSpec<'_>, id: &RequestId) {
    if spec.leg == 1 {
        Span::current().record("jsonrpc.request.id", tracing::field::display(escaped(id)));
    }
    tracing::debug!(method = %escaped(&spec.method), id = %escaped(id), leg = spec.leg, round = spec.round, "a request leaves");
}

/// Returns enough randomness to distinguish two clients; the standard library seeds each state differently.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0)
}

/// Receives the notifications of one request and calls the observers.
pub(crate) struct NotificationSink<'a> {
    core: &'a Core,
    of: &'a RequestSpec<'a>,
    context: Option<Arc<EventContext>>,
    /// The token that was sent, if one was.
    token: Option<Value>,
    on_progress: Option<&'a OnProgress>,
    last: Option<f64>,
    deadline: &'a RequestDeadline,
    level: Option<LogLevel>,
}

impl<'a> NotificationSink<'a> {
    pub(crate) fn new(core: &'a Core, of: &'a RequestSpec<'a>, deadline: &'a RequestDeadline) -> Self {
        let on_progress = of.on_progress.or(core.observers.progress.as_ref());
        let level = of.log_level.or_else(|| core.observers.log_level());
        Self { core, of, context: None, token: None, on_progress, last: None, deadline, level }
    }

    /// Asks the server, in the request's `_meta`, for the notifications that have an observer.
    ///
    /// > When a client wants to _receive_ progress updates for a request, it includes a `progressToken` in the request
    /// > metadata.
    pub(crate) fn request_all(&mut self, id: &RequestId, meta: &mut Meta) {
        self.request_progress(id, meta);
        if let Some(level) = self.level {
            // > The server **MUST NOT** emit `notifications/message` for a request that does not include this field.
            // own: the level of this client
            meta.0.insert(meta_keys::LOG_LEVEL.into(), json!(level));
        }
    }

    /// Requests progress only: sessions have progress, but no log level per request.
    pub(crate) fn request_progress(&mut self, id: &RequestId, meta: &mut Meta) {
        if self.on_progress.is_some() || self.deadline.is_stretched_by_progress() {
            // > Progress tokens [...] **MUST** be unique across all active requests.
            // So is the request's id, and a transport that all requests share finds the request by it.
            // own: the id is of this client
            let token = json!(id);
            meta.0.insert(meta_keys::PROGRESS_TOKEN.into(), token.clone());
            self.token = Some(token);
        }
    }

    /// Passes a notification to its observer, if the client requested it.
    pub(crate) fn on_notification(&mut self, notification: IncomingNotification) {
        if let Some(waits) = notification.waits {
            return self.deadline.pause(waits);
        }
        let params = notification.params.as_deref().map_or("{}", RawValue::get);
        let dropped = match &*notification.method {
            method::PROGRESS => self.on_progress_params(params),
            method::MESSAGE => self.on_log_message(params),
            _ => match self.core.observers.of_extensions.pass(&notification) {
                Some(Ok(())) => None,
                Some(Err(_fault)) => Some("its params do not fit"),
                None => Some("no observer is attached for its method"),
            },
        };
        if let Some(why) = dropped {
            tracing::debug!(
                request = %escaped(&self.of.method),
                method = %escaped(&notification.method),
                why,
                "a notification is dropped"
            );
        }
    }

    /// Returns the reason if the notification was dropped.
    fn on_progress_params(&mut self, params: &str) -> Option<&'static str> {
        let Ok(params) = serde_json::from_str::<ProgressParams>(params) else {
            return Some("its params cannot be read");
        };
        // > Progress notifications **MUST** only reference tokens that: Were provided in an active request
        if self.token.as_ref() != Some(&params.progress_token) {
            return Some("it has another token than the request");
        }
        let Some(progress) = params.progress.as_f64() else { return Some("its progress is no number") };
        // > The `progress` value **MUST** increase with each notification, even if the total is unknown.
        if self.last.is_some_and(|last| progress <= last) {
            return Some("its progress does not increase");
        }
        self.last = Some(progress);
        self.deadline.progressed();
        if let Some(callback) = self.on_progress {
            let total = params.total.and_then(|total| total.as_f64());
            callback.call(ProgressEvent {
                context: self.context(),
                progress,
                total,
                message: params.message,
            });
        }
        None
    }

    fn on_log_message(&mut self, params: &str) -> Option<&'static str> {
        let (Some(level), Some(callback)) = (self.level, &self.core.observers.log) else {
            return Some("no observer for log messages is attached");
        };
        let Ok(params) = serde_json::from_str::<LogMessageParams>(params) else {
            return Some("its params cannot be read");
        };
        // > the server **MAY** send `notifications/message` notifications at or above the requested level
        if params.level < level {
            return Some("it is below the level that was asked for");
        }
        let context = self.context();
        callback(LogEvent { context, level: params.level, logger: params.logger, data: params.data });
        None
    }

    /// Made at the first event, and shared by all.
    fn context(&mut self) -> Arc<EventContext> {
        let (core, of) = (self.core, self.of);
        let make = || {
            let name = of.name.map(str::to_owned);
            let server = core.identity();
            Arc::new(EventContext { server, method: of.method.clone(), name, round: of.round, leg: of.leg })
        };
        Arc::clone(self.context.get_or_insert_with(make))
    }
}
