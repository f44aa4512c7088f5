//! Admission: the only way to a handler.

use crate::{
    errors::{
        Error,
        refusal::{Refusal, StepsKept},
        refusal_log::log_refusal,
    },
    in_place::{boxed, rare},
    options::{
        OnVersion,
        limits::{LEG_WARNING, OnExpired, RECORD_WARNING},
        seconds,
    },
    request::{
        LegRequest,
        carrier::{self, LegCarrier},
        observe,
        spill::{self, Spilled},
    },
    runtime::Runtime,
    trace::{self, TraceContext},
};
use antiphon_engine::{AskRecord, Record, StopReason};
use antiphon_seal::{Binding, Call, CallId, OpenError, Principal, Reason, SealError};
use antiphon_wire::{AskSupport, InputRequests, InputRequiredResult, InputResponses, UniqueNames, escaped};
use serde_json::value::RawValue;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The limit that ends a call which has taken longer than its time.
pub(crate) const CALL_TIMEOUT: &str = "call_timeout";

/// A request without state, or with a state that was opened, belongs to the request, and has not expired.
///
/// Only [`admit`] creates one. Running a handler, permitting its questions and sealing them require it.
pub(crate) struct Admitted<'a> {
    leg: LegRequest<'a>,
    /// The proof that the schema, the seal and the handler read the same values.
    _names: UniqueNames,
    principal: Option<Principal>,
    carrier: LegCarrier,
    /// The answers that came in time, until the handler's leg takes them.
    answers: Option<InputResponses>,
    /// The call in its present leg; `None` on the first leg.
    call: Option<Call>,
    /// The rest of the opened state; `None` on the first leg. Boxed, because most requests are first legs.
    opened: Option<Box<OpenedState>>,
}

/// The proof that the client declared the capabilities for all of these questions.
pub(crate) struct Permit(InputRequests);

/// A stored record, and the version of the tool that wrote it.
#[derive(Clone, Copy)]
pub(crate) struct SpilledRecord {
    pub(crate) spilled: Spilled,
    pub(crate) call: CallId,
    tool_version: u32,
}

/// A state that belongs to its request, without its call. The record is in the token or in the store.
struct OpenedState {
    record: Option<Record>,
    /// The record in the store that the state names, until it is loaded.
    spilled: Option<SpilledRecord>,
    /// True if the state had expired: the answers that came with it are dropped.
    late: bool,
    /// The last Unix second at which the state could be accepted.
    accepted_until: u64,
    /// The moment at which the round left, and the trace of the call.
    left: SystemTime,
    trace: Option<TraceContext>,
}

/// Admits a request, or refuses it.
pub(crate) fn admit<'a>(server: &Runtime, leg: LegRequest<'a>) -> Result<Admitted<'a>, Refusal> {
    let names = leg.request.unique_names()?;
    // Checked before the state is opened, whose content is only for callers with these scopes.
    server.require_scopes(&leg.settings.scopes, leg.caller)?;
    let principal = carrier::principal(server, leg.caller).map_err(|cause| {
        // A handler would take the caller for an anonymous one.
        server.log_no_identity(&cause, &leg.request.method);
        if leg.request.params.request_state.is_some() { Refusal::State } else { Refusal::Internal }
    })?;
    let carrier = LegCarrier::of(server, leg.request, leg.caller, leg.settings, principal.as_ref());
    let mut admitted =
        Admitted { leg, _names: names, principal, carrier, answers: None, call: None, opened: None };
    if let Some(state) = admitted.leg.request.params.request_state {
        admitted.resume(server, state)?;
    }
    // Recorded answers stay; late answers are dropped, and their questions are asked again.
    let answers = read_answers(admitted.leg.request.params.input_responses)?;
    admitted.answers = answers.filter(|_| !admitted.late());
    admitted.count(server);
    Ok(admitted)
}

/// > Servers **SHOULD** validate that the data provided by the client is a valid `InputResponses` object
fn read_answers(text: Option<&RawValue>) -> Result<Option<InputResponses>, Refusal> {
    text.map(InputResponses::read)
        .transpose()
        .map_err(|_| Refusal::params("params.inputResponses must be an object"))
}

/// > servers **MUST** treat `requestState` as an attacker-controlled input [...] and **MUST** reject state that
/// > fails verification.
fn open(
    server: &Runtime,
    admitted: &Admitted<'_>,
    state: &RawValue,
) -> Result<(Call, Box<OpenedState>), Refusal> {
    let leg = &admitted.leg;
    let refuse = |reason: &str, call: Option<CallId>| {
        let call = call.map(|id| id.to_string());
        let (method, target) = (escaped(&leg.request.method), escaped(leg.target));
        let loudness = server.refused(&format!("requestState {reason}"));
        log_refusal!(loudness, { %method, ?target, reason, call }, "requestState refused");
        Refusal::State
    };
    // Checked before anything is copied, because the text comes from the peer. A token needs no JSON escapes.
    let token = match state.get().as_bytes() {
        [b'"', .., b'"'] if !state.get().contains('\\') => &state.get()[1..state.get().len() - 1],
        [b'"', ..] => return Err(refuse("malformed", None)),
        _ => return Err(refuse("not_a_string", None)),
    };
    let (binding, now) = (admitted.binding(), server.clock.now());
    let sealer = server.sealing.sealer();
    let opened = match server.on_expired {
        // The state of a task comes from its store.
        on_expired if admitted.carrier.keeps_state_here() => {
            sealer.open_unlimited(token, &binding, on_expired == OnExpired::AskAgain, now)
        }
        OnExpired::Refuse => sealer.open(token, &binding, now),
        OnExpired::AskAgain => sealer.open_late(token, &binding, now),
    };
    let opened = opened.map_err(|error: OpenError| {
        if error.reason() == Reason::UnknownKey {
            server.log_unknown_key();
        }
        if let Some(cause) = error.codec() {
            tracing::error!(cause = %escaped(&cause), "the codec did not open a state");
            if cause.is_unavailable() {
                return Refusal::Codec;
            }
        }
        refuse(error.reason().as_str(), error.call_id())
    })?;
    let (late, accepted_until, id) = (opened.expired, opened.accepted_until, opened.call.id());
    let (trace, micros, payload) = trace::split(&opened.payload);
    let left = UNIX_EPOCH + Duration::from_secs(opened.issued_at) + micros;
    let (record, spilled) = match Spilled::decode(payload) {
        Some(spilled) => (None, Some(SpilledRecord { spilled, call: id, tool_version: opened.tool_version })),
        None => {
            let record = Record::decode(payload).map_err(|_| refuse("payload", Some(id)))?;
            (Some(migrated(leg, id, opened.tool_version, record)?), None)
        }
    };
    Ok((opened.call, boxed(|| OpenedState { record, spilled, late, accepted_until, left, trace })))
}

/// Converts a record that another version of the tool has written.
fn migrated(leg: &LegRequest<'_>, call: CallId, was: u32, mut record: Record) -> Result<Record, Refusal> {
    let is = leg.settings.version;
    if was == is {
        return Ok(record);
    }
    tracing::info!(call = %escaped(&call), target = ?escaped(leg.target), was, is, "a call of another version");
    match leg.settings.on_version {
        OnVersion::Keep => {
            for collision in record.migrate(&leg.settings.migration) {
                let path = collision.path;
                tracing::error!(path = %escaped(&path), "a migration renames a step to the path of another recorded step");
            }
            Ok(record)
        }
        OnVersion::Reject => Err(Refusal::Version.after_steps(record.steps_done(), StepsKept::InRecord)),
        OnVersion::Restart => Ok(record.without_history()),
    }
}

impl<'a> Admitted<'a> {
    /// Opens the state that came with the request, and begins the next leg of its call.
    fn resume(&mut self, server: &Runtime, state: &RawValue) -> Result<(), Refusal> {
        let (call, opened) = open(server, self, state)?;
        // The state is authentic, bound and in time: from here on the caller is legitimate, and may learn the reason of
        // an error.
        let id = call.id();
        // A token is never sealed in the last possible leg.
        let Some(call) = call.next_leg() else { return Err(Refusal::State) };
        if call.leg() == LEG_WARNING {
            tracing::warn!(call = %escaped(&id), target = ?escaped(self.leg.target), leg = LEG_WARNING, "many clients give up at ten rounds");
        }
        (self.call, self.opened) = (Some(call), Some(opened));
        Ok(())
    }

    /// Counts the leg and its answers, and notes the time that people took.
    fn count(&self, server: &Runtime) {
        server.metrics.leg();
        observe::leg(self.leg_number());
        let Some((opened, call)) = self.opened.as_ref().zip(self.call.as_ref()) else { return };
        let answers = self.answers.as_ref().filter(|answers| !answers.is_empty());
        if let Some(answers) = answers {
            answers.iter().for_each(|(_, answer)| server.metrics.answer(answer.get()));
            let now = server.clock.now();
            let waited = now.duration_since(opened.left).unwrap_or_default();
            server.metrics.waited(waited);
            observe::answered(self.leg.request, opened.trace.as_ref(), call, opened.left..now);
        }
        observe::join(opened.trace.as_ref(), call);
    }

    pub(crate) fn leg(&self) -> &LegRequest<'a> {
        &self.leg
    }

    /// Returns the carrier of the call.
    pub(crate) fn carrier(&self) -> &LegCarrier {
        &self.carrier
    }

    /// Returns the data to which the state of this call is bound.
    pub(crate) fn binding(&self) -> Binding<'_> {
        self.leg.binding(self.principal())
    }

    /// Returns the answers of the request that came in time.
    pub(crate) fn answers(&self) -> Option<&InputResponses> {
        self.answers.as_ref()
    }

    /// Takes the answers, for the leg of the handler.
    pub(crate) fn take_answers(&mut self) -> Option<InputResponses> {
        self.answers.take()
    }

    pub(crate) fn asks(&self) -> AskSupport {
        self.leg.request.meta.asks.unwrap_or_default()
    }

    pub(crate) fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    pub(crate) fn call_id(&self) -> Option<CallId> {
        self.call.as_ref().map(Call::id)
    }

    /// Returns the number of this leg, from 1.
    pub(crate) fn leg_number(&self) -> u16 {
        self.call.as_ref().map_or(1, Call::leg)
    }

    /// Returns whether the state had expired, on a server that then asks again.
    pub(crate) fn late(&self) -> bool {
        self.opened.as_ref().is_some_and(|opened| opened.late)
    }

    /// Returns the call in its present leg.
    pub(crate) fn call(&self) -> Option<&Call> {
        self.call.as_ref()
    }

    /// Takes the call, while its handler runs.
    pub(crate) fn take_call(&mut self) -> Option<Call> {
        self.call.take()
    }

    /// Puts the call back, which the handler may have begun.
    pub(crate) fn put_call(&mut self, call: Option<Call>) {
        self.call = call;
    }

    /// Returns the record that came with the state.
    pub(crate) fn record(&self) -> Option<&Record> {
        self.opened.as_ref()?.record.as_ref()
    }

    /// Returns whether the state names a record in the store that is not loaded yet.
    pub(crate) fn is_spilled(&self) -> bool {
        self.opened.as_ref().is_some_and(|opened| opened.spilled.is_some())
    }

    /// Loads the record that the state names, if it is in the store.
    pub(crate) async fn load_record(&mut self, server: &Runtime) -> Result<(), Refusal> {
        let Some(opened) = &mut self.opened else { return Ok(()) };
        let Some(SpilledRecord { spilled, call, tool_version }) = opened.spilled.take() else {
            return Ok(());
        };
        let binding = self.leg.binding(self.principal.as_ref());
        let record = rare(spill::load(server, &binding, call, spilled)).await?;
        opened.record = Some(migrated(&self.leg, call, tool_version, record)?);
        Ok(())
    }

    /// Returns the record in a state that a leg of this call has sealed.
    pub(crate) async fn sealed_record(
        &self,
        server: &Runtime,
        state: &RawValue,
    ) -> Result<Option<Record>, Refusal> {
        let (_, opened) = open(server, self, state)?;
        let Some(SpilledRecord { spilled, call, .. }) = opened.spilled else { return Ok(opened.record) };
        let binding = self.binding();
        rare(spill::load(server, &binding, call, spilled)).await.map(Some)
    }

    /// Returns the last Unix second at which the state could be accepted; 0 without a state.
    pub(crate) fn accepted_until(&self) -> u64 {
        self.opened.as_ref().map_or(0, |opened| opened.accepted_until)
    }

    /// Receives the answers to questions of the record that came with the state. Returns questions that are asked again.
    pub(crate) fn receive(&mut self, server: &Runtime) -> Result<InputRequests, StopReason> {
        let answers = self.answers.as_ref();
        let answer = |key: &str| answers?.get(key).map(RawValue::get);
        let limits = self.carrier.limits(server.engine_limits());
        match self.opened.as_mut().and_then(|opened| opened.record.as_mut()) {
            Some(record) => record.receive(self.call.as_ref(), answer, &limits),
            None => Ok(InputRequests::new()),
        }
    }

    /// Takes the record that came with the state.
    pub(crate) fn take_record(&mut self) -> Option<Record> {
        self.opened.as_mut()?.record.take()
    }

    /// Returns whether the client accepts a result that holds state only.
    pub(crate) fn accepts_state_only(&self, server: &Runtime) -> bool {
        self.carrier.enters_again() || server.state_only_clients.include(self.leg.request.meta.client_info)
    }

    /// > A server **MUST NOT** rely on capabilities the client has not declared.
    pub(crate) fn require(&self, needed: AskSupport) -> Result<(), Refusal> {
        let missing = self.asks().missing(needed);
        if missing == AskSupport::NONE { Ok(()) } else { Err(Refusal::Capability { missing }) }
    }

    /// Returns the capabilities that these questions require and the client did not declare.
    pub(crate) fn missing(&self, requests: &InputRequests) -> AskSupport {
        let needed =
            requests.iter().fold(AskSupport::NONE, |needed, (_, request)| needed.and(request.needs()));
        self.asks().missing(needed)
    }

    /// > Servers **MUST NOT** send an `inputRequests` that the client has not declared support for in its
    /// > capabilities.
    pub(crate) fn permit(&self, requests: InputRequests) -> Result<Permit, Refusal> {
        match self.missing(&requests) {
            AskSupport::NONE => Ok(Permit(requests)),
            missing => Err(Refusal::Capability { missing }),
        }
    }

    /// Seals a round: the only way for a question to leave. `after_effect` is true if a step has run in this leg: its
    /// record then leaves even if later entries would exceed the limit.
    pub(crate) async fn seal(
        &mut self,
        server: &Runtime,
        permit: Permit,
        record: &Record,
        after_effect: bool,
    ) -> Result<InputRequiredResult, Refusal> {
        let mut bytes = record.encode().map_err(|fault| internal(&fault))?;
        let stays_here = self.carrier.keeps_state_here();
        let most = server.most_state(stays_here, after_effect);
        if bytes.len() > most {
            return Err(too_large(self.leg.target, record, bytes.len(), most));
        }
        let size = record.size();
        if size > RECORD_WARNING {
            let largest = record.largest_parts();
            tracing::warn!(target = ?escaped(self.leg.target), size, ?largest, "the record of a call grows large");
        }
        let now = server.clock.now();
        let call = match self.call.take() {
            Some(call) => call,
            None => server.begin_call(now).map_err(|fault| internal(&fault))?,
        };
        if call.deadline().is_some_and(|deadline| deadline < seconds(now)) {
            return Err(out_of_time(self.leg.target, call.id()));
        }
        let answer_timeout = self.leg.settings.answer_timeout.unwrap_or(server.answer_timeout);
        let ttl = self.carrier.state_ttl(answer_timeout);
        record.asked().iter().for_each(|asked| self.warn_of_time(asked, now, ttl));
        if bytes.len() > server.limits.engine.state && server.spills() {
            let rest = call.deadline().map(|end| Duration::from_secs(end.saturating_sub(seconds(now))));
            let keep = match (server.on_expired, rest) {
                (OnExpired::AskAgain, Some(rest)) => ttl.max(rest),
                _ => ttl,
            };
            let binding = self.binding();
            let put = spill::put(server, &binding, call.id(), &bytes, keep);
            bytes = rare(put).await?;
        }
        let trace = self.opened.as_mut().and_then(|opened| opened.trace.take());
        if let Some(trace) = trace.or_else(|| observe::trace_to_seal(self.leg.request)) {
            bytes = trace::join(&trace, now, &bytes);
        }
        let (sealer, binding) = (server.sealing.sealer(), self.binding());
        let sealed = match stays_here {
            true => sealer.seal_unlimited(&call, &binding, &bytes, ttl, now),
            false => sealer.seal(&call, &binding, &bytes, ttl, now),
        };
        let state = sealed.map_err(|error| match error {
            SealError::TooLarge { limit, actual } => too_large(self.leg.target, record, actual, limit),
            SealError::Codec(cause) if cause.is_unavailable() => {
                tracing::error!(cause = %escaped(&cause), "the codec did not seal a state");
                Refusal::Codec
            }
            other => internal(&Error::from(other)),
        })?;
        observe::round(server, &call, &permit.0, state.len());
        InputRequiredResult::new(permit.0, Some(state)).map_err(|fault| internal(&fault))
    }
}

/// Logs the reason for which a round cannot be sealed, and returns the refusal.
fn internal(cause: &dyn std::fmt::Display) -> Refusal {
    tracing::error!(cause = %escaped(&cause), "a round could not be sealed");
    Refusal::Internal
}

impl Admitted<'_> {
    /// Warns about a question with more time than the state of its round: a late answer would be refused.
    fn warn_of_time(&self, asked: &AskRecord, now: SystemTime, answer_timeout: Duration) {
        let ends = seconds(now).saturating_add(answer_timeout.as_secs());
        if asked.deadline().is_some_and(|deadline| deadline > ends) {
            let (target, key) = (self.leg.target, asked.path());
            tracing::warn!(target = ?escaped(target), key = %escaped(&key), ?answer_timeout, "a question has more time than the state of its round");
        }
    }
}

/// Logs that the time of a call is over, and returns the refusal: a state that leaves now could not come back.
fn out_of_time(target: &str, call: CallId) -> Refusal {
    tracing::warn!(target = ?escaped(target), call = %escaped(&call), name = CALL_TIMEOUT, "a limit was reached");
    Refusal::Limit { name: CALL_TIMEOUT, text: "The time of this call is over".to_owned() }
}

/// Logs the largest entries by key and size, and returns the refusal.
fn too_large(target: &str, record: &Record, actual: usize, limit: usize) -> Refusal {
    tracing::error!(target = ?escaped(target), actual, limit, largest = ?record.largest_parts(), "the state of a call is too large");
    Refusal::Limit {
        name: "state",
        text: format!("The state of this call would take {actual} bytes; the limit is {limit}"),
    }
}
