//! The state that all requests of a client share, and the parts of a request that its sender sets.

use crate::{
    asks::{
        callbacks::AskHandlers,
        questions::{Origin, ServerIdentity},
    },
    cache::Cache,
    request::events::{Observers, OnProgress},
    trace::Traced,
    transport::OutgoingRequest,
};
use antiphon_wire::{
    ClientCapabilities, Implementation, LogLevel, Meta, ProtocolVersion, RequestId, ServerCapabilities,
    TASKS_EXTENSION, escaped, extension::ExtensionId, lock::Lock, pacing::StateOnlyLimits,
};
use serde_json::{Map, Value, value::RawValue};
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
