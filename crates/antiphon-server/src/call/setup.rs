//! The settings and the context of one leg.

use crate::{
    at_most_once::{ClaimedLeg, anchors},
    call::{
        LegRuntime,
        ctx::{self, LaterLeg, Promotion},
        lazy_leg::LazyLeg,
    },
    options::{TaskMode, seconds},
    receipt::ReceiptRequest,
    request::{RequestData, admit::Admitted, carrier::may_promote, receive::Request},
    runtime::Runtime,
    trace::TraceContext,
};
use antiphon_engine::{Leg as Engine, Purpose, Setup};
use antiphon_seal::CallId;
use antiphon_wire::method;
use std::{borrow::Cow, sync::Arc};

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
) -> ctx::LegContext {
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
    ctx::LegContext {
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
