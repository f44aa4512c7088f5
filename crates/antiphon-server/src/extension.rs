//! Extensions: optional parts of the protocol, with an id, settings, and requests and notifications of their own.
//!
//! ```text
//!  Extension ── build ──▶ Extensions: ids, settings ──▶ capabilities of the server
//!                             │
//!                             └ methods ──▶ dispatch: gate, scopes, params ──▶ handler, with an ExtensionCtx
//! ```
//!
//! Tasks are an entry of the same table. Their methods have the handlers of this crate.

use crate::{
    call::emit::Emitter,
    errors::{BuildError, Error},
    identity::Bearer,
    outbox::{MessageKind, Outbox},
    request::{RequestData, RequestInfo},
    runtime::Runtime,
    trace::TraceContext,
};
use antiphon_seal::Principal;
use antiphon_wire::{
    Implementation, ProtocolVersion, ServerCapabilities, TASKS_EXTENSION,
    arguments::decode_params,
    extension::{ExtensionId, check_method},
    method, write_notification,
};
use futures_util::future::BoxFuture;
use serde::{Serialize, de::DeserializeOwned, ser::Error as _};
use serde_json::{Map, Value, value::RawValue};
use std::{
    collections::{HashMap, hash_map},
    fmt,
    future::Future,
    sync::Arc,
};

/// An extension of the protocol (SEP-2133), registered with [`ServerBuilder::extension`](crate::ServerBuilder::extension). A server has
/// no extension unless it registers one.
///
/// ```
/// use antiphon::{Result, client::Client, memory, server::{Server, extensions::{Extension, ExtensionCtx}}};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize)]
/// struct Query {
///     text: String,
/// }
///
/// #[derive(serde::Deserialize, serde::Serialize)]
/// struct Found {
///     titles: Vec<String>,
/// }
///
/// async fn query(ctx: ExtensionCtx, query: Query) -> Result<Found> {
///     // What the client declared for this extension.
///     let most = ctx.settings::<serde_json::Value>()?.and_then(|settings| settings["most"].as_u64());
///     let titles = (0..most.unwrap_or(3)).map(|at| format!("{} {at}", query.text)).collect();
///     Ok(Found { titles })
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
/// const SEARCH: &str = "com.example/search";
/// let search = Extension::new(SEARCH).settings(json!({ "languages": ["en"] })).request("com.example/search.query", query);
/// let server = Server::builder("library", "1.0").extension(search).build()?;
///
/// let client = Client::builder("reader", "1.0").extension(SEARCH, json!({ "most": 2 }))?;
/// let client = memory::connect(server, client);
/// let found: Found = client.request("com.example/search.query", json!({ "text": "sea" })).await?;
/// assert_eq!(found.titles, ["sea 0", "sea 1"]);
/// # Ok(()) }
/// ```
///
/// The requests of an extension pass the [layers](crate::ServerBuilder::layer) of the server, and count among its handlers
/// ([`Limits::handlers`](crate::Limits::handlers)). They ask nothing:
///
/// > Servers **MUST NOT** send `InputRequiredResult` responses on any other client requests.
pub struct Extension {
    pub(crate) id: String,
    pub(crate) settings: Result<Map<String, Value>, String>,
    pub(crate) requires_client: bool,
    pub(crate) scopes: Vec<String>,
    pub(crate) methods: Vec<(String, Handler)>,
}

/// The handler of a method.
pub(crate) enum Handler {
    /// A request, whose result is an object.
    Request(Box<Run<Map<String, Value>>>),
    /// A notification.
    Notification(Box<Run<()>>),
    /// A request about tasks.
    Tasks,
}

/// Decodes params without `_meta`, and runs a handler. The text of an `Err` is for the caller.
type Run<T> =
    dyn Fn(ExtensionCtx, &RawValue) -> Result<BoxFuture<'static, Result<T, Error>>, String> + Send + Sync;

impl Extension {
    /// Returns an extension without settings and without methods. The id is a reversed domain of yours and a name:
    /// `com.example/search`. It is checked when the server is built.
    ///
    /// > Extension identifiers **MUST** follow the `_meta` key naming rules, with a mandatory prefix.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            settings: Ok(Map::new()),
            requires_client: true,
            scopes: Vec::new(),
            methods: Vec::new(),
        }
    }

    /// Sets the settings that the server declares for the extension: a value that is written as an object; `()` is an empty one, the default.
    #[must_use]
    pub fn settings(mut self, settings: impl Serialize) -> Self {
        self.settings = match serde_json::to_value(settings) {
            Ok(Value::Object(members)) => Ok(members),
            Ok(Value::Null) => Ok(Map::new()),
            Ok(other) => Err(format!("they must be an object, and are {other}")),
            Err(fault) => Err(format!("they cannot be written as JSON: {fault}")),
        };
        self
    }

    /// Sets whether messages of clients that do not declare the extension are refused. Default: `true`. With `false`, a client needs
    /// to declare nothing.
    ///
    /// > If processing a request requires a capability the client did not include in
    /// > `io.modelcontextprotocol/clientCapabilities`, the server **MUST** return a `MissingRequiredClientCapabilityError` (`-32021`)
    #[must_use]
    pub fn requires_client(mut self, on: bool) -> Self {
        self.requires_client = on;
        self
    }

    /// Adds scopes that the caller's access token needs for every method of the extension, as
    /// [`Tool::scopes`](crate::Tool::scopes) does for a tool.
    #[must_use]
    pub fn scopes<Text: Into<String>>(mut self, scopes: impl IntoIterator<Item = Text>) -> Self {
        self.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Adds a request: `async fn(ctx: ExtensionCtx, params: P) -> Result<R, E>`.
    ///
    /// `P` is decoded from `params` without `_meta`; params that do not fit are refused (`-32602`) with the path of the member.
    /// `R` is written as an object, to which the server adds `resultType` (`complete`, unless `R` has one) and its name. `()` is an
    /// empty object. An error is that of a [`Result`](crate::Result): its text for the caller, if it has one, becomes an error `-32603`; any other
    /// text goes to the log. An [`ErrorObject`](antiphon_wire::ErrorObject) is sent as it is:
    ///
    /// > `-32020` to `-32099` — reserved for the MCP specification.
    #[must_use]
    pub fn request<P, R, E, F, Fut>(mut self, method: impl Into<String>, handler: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize,
        E: Into<Error>,
        F: Fn(ExtensionCtx, P) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
    {
        let run = move |ctx: ExtensionCtx, text: &RawValue| {
            let answered = handler(ctx, decode_params(text)?);
            let answered: BoxFuture<'static, _> =
                Box::pin(async move { object(&answered.await.map_err(Into::into)?) });
            Ok(answered)
        };
        self.methods.push((method.into(), Handler::Request(Box::new(run))));
        self
    }

    /// Adds a notification: `async fn(ctx: ExtensionCtx, params: P) -> Result<(), E>`. No reply is sent, and the error of the handler is logged.
    /// Over HTTP, the client reads that the notification was accepted (202) after the handler has ended.
    #[must_use]
    pub fn notification<P, E, F, Fut>(mut self, method: impl Into<String>, handler: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        E: Into<Error>,
        F: Fn(ExtensionCtx, P) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
    {
        let run = move |ctx: ExtensionCtx, text: &RawValue| {
            let done = handler(ctx, decode_params(text)?);
            let done: BoxFuture<'static, _> = Box::pin(async move { done.await.map_err(Into::into) });
            Ok(done)
        };
        self.methods.push((method.into(), Handler::Notification(Box::new(run))));
        self
    }
}

impl Extension {
    /// Returns the id, as it was given.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }
}

/// Returns a result as an object.
fn object(result: &impl Serialize) -> Result<Map<String, Value>, Error> {
    match serde_json::to_value(result)? {
        Value::Object(members) => Ok(members),
        Value::Null => Ok(Map::new()),
        _ => Err(serde_json::Error::custom("the result of an extension must be an object").into()),
    }
}

impl fmt::Debug for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let methods: Vec<&str> = self.methods.iter().map(|(method, _)| method.as_str()).collect();
        f.debug_struct("Extension").field("id", &self.id).field("methods", &methods).finish_non_exhaustive()
    }
}

/// The context of a request or notification of an [`Extension`](crate::Extension). Clones are the same context. It cannot ask: only tools,
/// prompts and resources do.
#[derive(Clone)]
pub struct ExtensionCtx(pub(crate) Arc<ExtensionMessage>);

/// The data of one message.
pub(crate) struct ExtensionMessage {
    pub(crate) extension: ExtensionId,
    pub(crate) server: Arc<Runtime>,
    pub(crate) principal: Option<Principal>,
    pub(crate) bearer: Option<Bearer>,
    pub(crate) client_info: Option<Box<RawValue>>,
    pub(crate) version: ProtocolVersion,
    pub(crate) request: RequestData,
    pub(crate) trace: Option<TraceContext>,
    pub(crate) emitter: Option<Emitter>,
    /// `None` if the transport carries replies only.
    pub(crate) outbox: Option<Outbox>,
}

impl ExtensionCtx {
    /// Returns the id of the extension.
    pub fn extension(&self) -> &str {
        self.0.extension.as_str()
    }

    /// Reads the settings that the client declared for this extension; `None` if it did not declare the extension. Untrusted.
    ///
    /// # Errors
    /// If the settings do not fit the type. The text is for the caller.
    pub fn settings<T: DeserializeOwned>(&self) -> Result<Option<T>, Error> {
        self.extension_settings(self.extension())
    }

    /// Reads the settings that the client declared for any extension: [`Ctx::extension_settings`](crate::Ctx::extension_settings).
    ///
    /// # Errors
    /// If the settings do not fit the type. The text is for the caller.
    pub fn extension_settings<T: DeserializeOwned>(&self, id: &str) -> Result<Option<T>, Error> {
        self.0.request.extension_settings(id)
    }

    /// Returns the authenticated caller; `None` without authentication.
    pub fn principal(&self) -> Option<&Principal> {
        self.0.principal.as_ref()
    }

    /// Returns the verified access token; `None` without authentication, as on stdio.
    pub fn bearer(&self) -> Option<&Bearer> {
        self.0.bearer.as_ref()
    }

    /// Returns the client's name and version, if the message or its session has them. Both are self-reported: use them for display and
    /// logs, never for decisions.
    pub fn client_info(&self) -> Option<Implementation> {
        serde_json::from_str(self.0.client_info.as_ref()?.get()).ok()
    }

    /// Returns the protocol version that the client uses.
    pub fn protocol_version(&self) -> &ProtocolVersion {
        &self.0.version
    }

    /// Returns the request: its method, headers, peer and `_meta`, and the values that layers have added.
    pub fn request(&self) -> RequestInfo<'_> {
        RequestInfo { data: &self.0.request, trace: self.0.trace.as_ref() }
    }

    /// Reports progress, as [`Ctx::report_progress`](crate::Ctx::report_progress) does. A notification of the client has no progress.
    pub fn report_progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if let Some(emitter) = &self.0.emitter {
            emitter.progress(progress, total, message);
        }
    }
}

impl ExtensionCtx {
    /// Sends a notification of the extension to the client, before the response to this request. A client that reads slowly may not
    /// receive it, and nothing is sent where the client reads replies only, nor while a notification of the client is handled.
    ///
    /// > The server **MAY** send JSON-RPC _notifications_ [..] before the final response. These notifications **MUST** relate to the
    /// > originating client request.
    ///
    /// # Errors
    /// If the method is none of an extension, or the params cannot be written as JSON.
    pub fn notify(&self, method: &str, params: &impl Serialize) -> Result<(), Error> {
        check_method(method)?;
        let message = write_notification(method, params)?;
        if let Some(outbox) = &self.0.outbox {
            outbox.push(MessageKind::Log, message);
        }
        Ok(())
    }
}

impl fmt::Debug for ExtensionCtx {
    /// Omits headers, `_meta` and settings.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtensionCtx")
            .field("extension", &self.0.extension)
            .field("method", &self.request().method())
            .finish_non_exhaustive()
    }
}

/// The extensions that a server declares. They do not change while it runs.
pub(crate) struct Extensions {
    declared: Vec<Arc<Declared>>,
    methods: HashMap<String, Method>,
}

/// The declaration of an extension.
pub(crate) struct Declared {
    pub(crate) id: ExtensionId,
    settings: Map<String, Value>,
    pub(crate) requires_client: bool,
    pub(crate) scopes: Vec<String>,
    /// True if the revisions before 2026-07-28 have it too.
    in_sessions: bool,
}

/// A method of an extension.
pub(crate) struct Method {
    pub(crate) extension: Arc<Declared>,
    pub(crate) handler: Handler,
}

impl Extensions {
    /// Checks the extensions of a builder, and adds that of tasks if the server has tasks.
    ///
    /// # Errors
    /// Names the extension that is wrong, or the two that collide.
    pub(crate) fn new(own: Vec<Extension>, has_tasks: bool) -> Result<Self, BuildError> {
        let mut table = Self { declared: Vec::new(), methods: HashMap::new() };
        // Their id and methods are taken even where a server has no tasks.
        table.add(tasks(), false)?;
        for extension in own {
            table.add(extension, true)?;
        }
        if !has_tasks {
            table.declared.remove(0);
            table.methods.retain(|_, method| !matches!(method.handler, Handler::Tasks));
        }
        Ok(table)
    }

    fn add(&mut self, extension: Extension, in_sessions: bool) -> Result<(), BuildError> {
        let Extension { id, settings, requires_client, scopes, methods } = extension;
        let id = ExtensionId::new(&id)?;
        let error = |text: String| Err(BuildError(format!("the extension `{id}`: {text}")));
        if self.declared.iter().any(|known| known.id == id) {
            return match id.as_str() {
                TASKS_EXTENSION => error("it belongs to the tasks of this crate: remove it".to_owned()),
                _ => error("it is registered twice: remove one".to_owned()),
            };
        }
        let settings = match settings {
            Ok(settings) => settings,
            Err(fault) => return error(format!("its settings do not fit: {fault}")),
        };
        let id = id.clone();
        let declared = Arc::new(Declared { id, settings, requires_client, scopes, in_sessions });
        for (name, handler) in methods {
            if let Err(fault) = check_method(&name) {
                return error(fault.to_string());
            }
            match self.methods.entry(name) {
                hash_map::Entry::Occupied(taken) => {
                    let (name, other) = (taken.key(), &taken.get().extension.id);
                    return error(format!("the extension `{other}` has the method {name:?} too: rename one"));
                }
                hash_map::Entry::Vacant(free) => {
                    free.insert(Method { extension: Arc::clone(&declared), handler });
                }
            }
        }
        self.declared.push(declared);
        Ok(())
    }

    /// Returns true if an extension of this id is declared.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.declared.iter().any(|extension| extension.id.as_str() == id)
    }

    /// Returns the method of this name, if an extension has one.
    pub(crate) fn method(&self, name: &str) -> Option<&Method> {
        if self.methods.is_empty() { None } else { self.methods.get(name) }
    }

    /// Returns true if an extension has a notification of this name.
    pub(crate) fn has_notification(&self, name: &str) -> bool {
        self.method(name).is_some_and(|method| matches!(method.handler, Handler::Notification(_)))
    }

    /// Declares the extensions, in a session or outside of one.
    pub(crate) fn declare(&self, capabilities: ServerCapabilities, in_session: bool) -> ServerCapabilities {
        let declared = self.declared.iter().filter(|extension| extension.in_sessions || !in_session);
        declared.fold(capabilities, |capabilities, extension| {
            capabilities.with_extension_settings(extension.id.as_str(), extension.settings.clone())
        })
    }
}

/// Returns the extension for tasks. Its gate depends on the form of tasks, and is that of its handlers.
fn tasks() -> Extension {
    let mut tasks = Extension::new(TASKS_EXTENSION).requires_client(false);
    tasks.methods = method::TASKS.iter().map(|method| ((*method).to_owned(), Handler::Tasks)).collect();
    tasks
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.declared.iter().map(|extension| &extension.id)).finish()
    }
}
