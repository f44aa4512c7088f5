//! The context of a handler: the call, its caller and its client, and the settings of its leg.

use crate::{
    at_most_once::{ClaimedLeg, anchors},
    call::{LegRuntime, emit::Emitter, leg_runtime::LazyLeg},
    errors::Error,
    identity::Bearer,
    options::{TaskMode, seconds},
    receipt::ReceiptRequest,
    request::{
        RequestData, RequestInfo,
        admit::Admitted,
        carrier::{Carrier, may_promote},
        receive::Request,
    },
    runtime::Runtime,
    trace::TraceContext,
};
use antiphon_engine::{AnsweredAsk, Leg as Engine, Purpose, Setup};
use antiphon_seal::{CallId, Principal};
use antiphon_wire::{AskSupport, Implementation, InputResponses, ProtocolVersion, method};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

/// The context of one leg. It lets a handler ask, run steps and notify.
///
/// | | |
/// |---|---|
/// | ask a person | [`elicit`](Self::elicit), [`elicit_with`](Self::elicit_with), [`confirm`](Self::confirm), [`elicit_url`](Self::elicit_url) |
/// | ask the client | [`sample`](Self::sample), [`roots`](Self::roots) |
/// | do something once | [`step`](Self::step), [`step_fn`](Self::step_fn), [`step_with`](Self::step_with), [`step_retry`](Self::step_retry) |
/// | write to the database of the store exactly once | [`in_transaction`](Self::in_transaction) |
/// | several at once | [`join_all`](Self::join_all), [`select`](Self::select), [`scope`](Self::scope), [`spawn`](Self::spawn) |
/// | the same on every leg | [`now`](Self::now), [`random_u64`](Self::random_u64), [`can_ask`](Self::can_ask) |
/// | end a leg early | [`checkpoint`](Self::checkpoint) |
/// | read the answers to returned questions | [`by_hand`](Self::by_hand) |
/// | go on while nobody is connected | [`into_task`](Self::into_task) |
/// | notify the client | [`report_progress`](Self::report_progress), [`log`](Self::log) |
///
/// A future that waits for an answer ends the leg, and the handler runs again from its top when the answer has arrived:
/// see the chapter `guide::replay` of the crate `antiphon`.
///
/// The context is borrowed by the handler, never owned: asking from a spawned task does not compile.
///
/// ```compile_fail
/// async fn handler(ctx: &antiphon::server::Ctx) {
///     tokio::spawn(async { ctx.checkpoint().await });
/// }
/// ```
pub struct Ctx {
    pub(in crate::call) leg: Arc<LegContext>,
    /// The prefix of every key; empty by default.
    scope: Box<str>,
}

/// The data of one leg's context. It is shared, because the code that cancels a request must check from outside of the handler's
/// future, which owns its context, if a step runs.
pub(crate) struct LegContext {
    pub(crate) call: Option<CallId>,
    pub(crate) leg: u16,
    /// `None` on a leg that can have no answers.
    pub(crate) later: Option<Box<LaterLeg>>,
    pub(crate) unverified: Option<InputResponses>,
    pub(crate) asks: AskSupport,
    pub(crate) principal: Option<Box<Principal>>,
    pub(crate) bearer: Option<Bearer>,
    /// What the client said of itself in its handshake; `None` if each request says it.
    pub(crate) client_info: Option<Box<RawValue>>,
    pub(crate) request: RequestData,
    pub(crate) version: ProtocolVersion,
    pub(crate) promotion: Promotion,
    pub(crate) trace: Option<Box<TraceContext>>,
    /// `None` if the caller requested no notifications.
    pub(crate) emitter: Option<Box<Emitter>>,
    pub(crate) runtime: LegRuntime,
}

/// The part of a leg's context that only a leg with answers has: a later one, or one of a session.
pub(crate) struct LaterLeg {
    pub(crate) answered: Vec<AnsweredAsk>,
    pub(crate) state: Option<String>,
    /// The request, for a receipt.
    pub(crate) request: ReceiptRequest,
}

/// The way in which a call becomes a task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Promotion {
    /// The tool offers no tasks.
    Never,
    /// The call stays what it is: its client cannot take a task.
    Inline,
    /// The call may become a task, and does so after this time, if there is one.
    Allowed { after: Option<Duration> },
    /// The call is a task.
    InTask,
}

/// A person's answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// The person filled in the form, or agreed to open the URL.
    Accept(T),
    /// The person declined.
    Decline,
    /// The person dismissed the question without choosing.
    Cancel,
}

impl<T> Answer<T> {
    /// Returns the accepted value, if there is one.
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accept(value) => Some(value),
            Self::Decline | Self::Cancel => None,
        }
    }
}

impl Ctx {
    pub(crate) fn new(leg: Arc<LegContext>) -> Self {
        Self { leg, scope: Box::default() }
    }

    /// Returns a context with this prefix for every key.
    pub(crate) fn below(&self, prefix: String) -> Self {
        Self { leg: Arc::clone(&self.leg), scope: prefix.into() }
    }

    pub(crate) fn scope_prefix(&self) -> &str {
        &self.scope
    }

    /// Returns the time after which the call becomes a task, if it does.
    pub(crate) fn promotes_after(&self) -> Option<Duration> {
        match self.leg.promotion {
            Promotion::Allowed { after } => after,
            Promotion::Never | Promotion::Inline | Promotion::InTask => None,
        }
    }

    pub(crate) fn leg_runtime(&self) -> &LegRuntime {
        &self.leg.runtime
    }

    /// Returns the sender of notifications; `None` while the handler repeats output that was already sent in an earlier
    /// leg.
    pub(crate) fn emitter(&self) -> Option<&Emitter> {
        let emitter = self.leg.emitter.as_deref()?;
        (!self.leg.runtime.is_silent()).then_some(emitter)
    }

    /// Returns the capabilities that the client of this request declared.
    pub(crate) fn declared(&self) -> AskSupport {
        self.leg.asks
    }

    /// Returns the carrier of this call.
    pub fn carrier(&self) -> Carrier {
        self.leg.runtime.carrier().kind()
    }

    /// Returns the protocol version that the client uses.
    pub fn protocol_version(&self) -> &ProtocolVersion {
        &self.leg.version
    }

    /// Returns the number of this request within the call, from 1.
    pub fn leg(&self) -> u16 {
        self.leg.leg
    }

    /// Returns the call's id, as logged; `None` on the first leg, before any state exists. The id is no capability:
    /// the client may be able to read most of it from its first token.
    pub fn call_id(&self) -> Option<CallId> {
        self.leg.call
    }

    /// Returns the authenticated caller; `None` without authentication.
    pub fn principal(&self) -> Option<&Principal> {
        self.leg.principal.as_deref()
    }

    /// Returns the verified access token of this leg, with its scopes and claims; `None` without authentication, as on
    /// stdio. The next leg may have another token of the same principal: record a value that must not change in a
    /// [`step`](Self::step).
    pub fn bearer(&self) -> Option<&Bearer> {
        self.leg.bearer.as_ref()
    }

    /// Returns the client's name and version. Both are self-reported: use them for display and logs, never for
    /// decisions.
    pub fn client_info(&self) -> Option<Implementation> {
        serde_json::from_str(self.client_info_text()?.get()).ok()
    }

    /// Returns the trace context that the client sent with this request, to continue the trace in the handler's own requests. In a
    /// task, this is the context of the request that created it.
    pub fn trace_context(&self) -> Option<&TraceContext> {
        self.leg.trace.as_deref()
    }

    /// Returns the request of this leg: headers, the peer, `_meta`, and the values that layers have added.
    ///
    /// ```
    /// use antiphon::{Result, server::Ctx, tool};
    ///
    /// /// Who a gateway in front says is calling.
    /// #[derive(Clone)]
    /// struct Tenant(String);
    ///
    /// /// Lists what belongs to the caller's tenant.
    /// #[tool]
    /// async fn orders(ctx: &Ctx) -> Result<String> {
    ///     let request = ctx.request();
    ///     let region = request.headers().and_then(|headers| headers.get("x-region")?.to_str().ok());
    ///     let tenant = request.extension::<Tenant>().map_or("everybody", |tenant| tenant.0.as_str());
    ///     Ok(format!("The orders of {tenant} in {}.", region.unwrap_or("all regions")))
    /// }
    /// ```
    pub fn request(&self) -> RequestInfo<'_> {
        RequestInfo { data: &self.leg.request, trace: self.trace_context() }
    }

    /// Reads the settings that the client declared for an extension, such as `io.modelcontextprotocol/ui`; `None` if it did not declare the
    /// extension. A `T` of [`serde_json::Value`] takes any settings. Untrusted: each request may declare others, so what must not change
    /// within a call is recorded in a [`step`](Self::step).
    ///
    /// > Each extension specifies the schema of its settings object; an empty object indicates support with no additional settings.
    ///
    /// # Errors
    /// If the settings do not fit the type. The text is for the caller.
    pub fn extension_settings<T: DeserializeOwned>(&self, id: &str) -> Result<Option<T>, Error> {
        self.leg.request.extension_settings(id)
    }

    pub(crate) fn server_runtime(&self) -> &Runtime {
        self.leg.runtime.server()
    }

    /// Returns the client's name and version as JSON text.
    fn client_info_text(&self) -> Option<&RawValue> {
        #[derive(serde::Deserialize)]
        struct Members<'a> {
            #[serde(rename = "io.modelcontextprotocol/clientInfo", borrow, default)]
            client_info: Option<&'a RawValue>,
        }
        self.leg.client_info.as_deref().or_else(|| {
            serde_json::from_str::<Members<'_>>(self.leg.request.meta.as_ref()?.get()).ok()?.client_info
        })
    }

    /// Returns whether the client accepts a result that holds state only.
    pub(crate) fn accepts_state_only(&self) -> bool {
        self.server_runtime().state_only_clients.include(self.client_info_text())
    }
}

impl fmt::Debug for Ctx {
    /// Omits state and answers: they do not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ctx")
            .field("call", &self.leg.call)
            .field("leg", &self.leg.leg)
            .finish_non_exhaustive()
    }
}

/// Returns the reason of a decoding error without the value, which serde would quote.
pub(crate) fn without_value(fault: &serde_json::Error) -> String {
    let text = fault.to_string();
    // Type and field names come from the author; the text before them is the value.
    match text.rsplit_once(", expected ") {
        Some((_, expected)) => format!("expected {expected}"),
        None if !fault.is_data() || text.starts_with("missing field `") => text,
        None => "the type rejects the value".to_owned(),
    }
}

/// The settings of a leg for the engine. `writes_ahead` is true if its steps are stored.
pub(crate) fn setup(
    server: &Runtime,
    admitted: &Admitted<'_>,
    purpose: Purpose,
    writes_ahead: bool,
) -> Setup {
    let settings = admitted.leg().settings;
    let carrier = admitted.carrier();
    let task = carrier.task_leg();
    Setup {
        limits: carrier.limits(server.engine_limits()),
        delivery: carrier.delivery(),
        purpose,
        migration: settings.migration.clone(),
        lenient: settings.lenient_replay,
        anchor: purpose != Purpose::DryRun && anchors(server, admitted),
        in_task: task.is_some(),
        shown: task.map(|task| task.shown.clone()).unwrap_or_default(),
        refuse_step: task.is_some_and(|task| task.refuses_step),
        now: seconds(server.clock.now()),
        writes_ahead,
        version: settings.version,
    }
}

/// Returns the context of a leg. It has no emitter: the caller adds one if the output of the handler is sent.
pub(crate) fn leg_context(
    server: &Arc<Runtime>,
    admitted: &Admitted<'_>,
    call: Option<CallId>,
    number: u16,
    mut engine: LazyLeg,
    claim: Option<Arc<ClaimedLeg>>,
) -> LegContext {
    let leg = admitted.leg();
    let has_answers = admitted.carrier().may_have_answers(number);
    let (method, version) = (&leg.request.method, leg.settings.version);
    let later = has_answers.then(|| {
        Box::new(LaterLeg {
            answered: engine.get().map(Engine::answered_by_hand).unwrap_or_default(),
            state: engine.get().and_then(|leg| leg.state().map(ToOwned::to_owned)),
            request: ReceiptRequest::new(method, leg.target, leg.arguments, version),
        })
    });
    LegContext {
        later,
        call,
        leg: number,
        unverified: None,
        asks: admitted.asks(),
        principal: admitted.principal().cloned().map(Box::new),
        bearer: leg.caller.bearer().cloned(),
        client_info: leg.request.session.as_ref().and(leg.request.meta.client_info).map(ToOwned::to_owned),
        request: RequestData::new(Cow::Borrowed(method_of(leg.request)), leg.request, leg.caller),
        version: leg.request.protocol_version(),
        promotion: promotion(server, admitted),
        trace: TraceContext::of(leg.request.params.meta).map(Box::new),
        emitter: None,
        runtime: LegRuntime::new(
            engine,
            Arc::clone(server),
            admitted.carrier().clone(),
            claim,
            (number == 1).then(|| Arc::clone(&leg.settings.needs_tracker)),
            leg.settings.timeout,
        ),
    }
}

fn method_of(request: &Request<'_>) -> &'static str {
    match &*request.method {
        method::PROMPTS_GET => method::PROMPTS_GET,
        method::RESOURCES_READ => method::RESOURCES_READ,
        _ => method::TOOLS_CALL,
    }
}

fn promotion(server: &Runtime, admitted: &Admitted<'_>) -> Promotion {
    let leg = admitted.leg();
    if admitted.carrier().is_a_task() {
        return Promotion::InTask;
    }
    match leg.settings.task {
        TaskMode::Never => Promotion::Never,
        _ if may_promote(server, leg.request) => Promotion::Allowed { after: leg.settings.promote_after },
        _ => Promotion::Inline,
    }
}
