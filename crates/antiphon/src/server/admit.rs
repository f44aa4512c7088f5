//! The one way to a handler.

use super::{
    OnExpired, OnVersion,
    bearer::require_scopes,
    leg::Leg,
    limits::{JOURNAL_WARNING, LEG_WARNING},
    refusal::Refusal,
    round::seconds,
    serve::Inner,
};
use crate::Error;
use antiphon_engine::{AskRecord, Record};
use antiphon_seal::{Call, CallId, OpenError, Principal, Reason, SealError};
use antiphon_wire::{AskSupport, InputRequests, InputRequiredResult, UniqueNames};
use serde_json::value::RawValue;
use std::time::{Duration, SystemTime};

/// A request whose state was opened, belongs to it, and is in time; or one that came without state.
///
/// Only [`admit`] makes one. Running a handler, permitting its asks and sealing them demand it.
pub(super) struct Admitted<'a> {
    leg: Leg<'a>,
    /// The proof that schema, seal and handler read the same values.
    _names: UniqueNames,
    principal: Option<Principal>,
    /// In its present leg; `None` on the first.
    call: Option<Call>,
    record: Option<Record>,
    /// The state's own time was over: what came with it does not count.
    late: bool,
}

/// The client declared that it can be asked all of these.
pub(super) struct Permit(InputRequests);

/// Admits a request, or refuses it.
pub(super) fn admit<'a>(server: &Inner, leg: Leg<'a>) -> Result<Admitted<'a>, Refusal> {
    let names = leg.request.unique_names()?;
    // Before the state: what is in it is for those who may.
    require_scopes(&leg.settings.scopes, leg.caller)?;
    let principal = server.identity.of(leg.caller);
    let (principal, state) = match (principal, leg.request.params.request_state) {
        (Ok(principal), Some(state)) => (principal, state),
        (Ok(principal), None) => {
            return Ok(Admitted { leg, _names: names, principal, call: None, record: None, late: false });
        }
        // A handler would take them for an anonymous caller.
        (Err(cause), state) => {
            tracing::error!(%cause, method = %leg.request.method, target = leg.target, "no identity: refused");
            return Err(if state.is_some() { Refusal::State } else { Refusal::Internal });
        }
    };
    let (call, record, late) = open(server, &leg, principal.as_ref(), state)?;
    // Authentic, bound and in time: from here on the caller is the rightful one, and may learn the reason.
    let id = call.id();
    // No token is sealed in a leg that has none behind it.
    let Some(call) = call.next_leg() else { return Err(Refusal::State) };
    if call.leg() == LEG_WARNING {
        tracing::warn!(call = %id, target = leg.target, leg = LEG_WARNING, "many clients give up at ten rounds");
    }
    Ok(Admitted { leg, _names: names, principal, call: Some(call), record: Some(record), late })
}

/// > servers **MUST** treat `requestState` as an attacker-controlled input [...] and **MUST** reject state that
/// > fails verification.
fn open(
    server: &Inner,
    leg: &Leg<'_>,
    principal: Option<&Principal>,
    state: &RawValue,
) -> Result<(Call, Record, bool), Refusal> {
    let refuse = |reason: &str, call: Option<CallId>| {
        let call = call.map(|id| id.to_string());
        tracing::warn!(method = %leg.request.method, target = leg.target, reason, call, "requestState refused");
        Refusal::State
    };
    // Checked before anything is copied: the text is the peer's. A token needs no JSON escapes.
    let token = match state.get().as_bytes() {
        [b'"', .., b'"'] if !state.get().contains('\\') => &state.get()[1..state.get().len() - 1],
        [b'"', ..] => return Err(refuse("malformed", None)),
        _ => return Err(refuse("not_a_string", None)),
    };
    let (binding, now) = (leg.binding(principal), server.clock.now());
    let opened = match server.on_expired {
        OnExpired::Refuse => server.sealer.open(token, &binding, now),
        OnExpired::AskAgain => server.sealer.open_late(token, &binding, now),
    };
    let opened = opened.map_err(|error: OpenError| {
        if error.reason() == Reason::UnknownKey {
            server.tell_of_unknown_key();
        }
        if let Some(cause) = error.codec() {
            tracing::error!(%cause, "the codec did not open a state");
        }
        refuse(error.reason().as_str(), error.call_id())
    })?;
    let mut record =
        Record::decode(&opened.payload).map_err(|_| refuse("payload", Some(opened.call.id())))?;
    if opened.tool_version != leg.settings.version {
        let (was, is) = (opened.tool_version, leg.settings.version);
        tracing::info!(call = %opened.call.id(), target = leg.target, was, is, "a call of another version");
        match leg.settings.on_version {
            OnVersion::Keep => {
                for collision in record.migrate(&leg.settings.migration) {
                    let path = collision.path;
                    tracing::error!(%path, "a migration renames a step to one that was recorded too");
                }
            }
            OnVersion::Reject => return Err(Refusal::Version),
            OnVersion::Restart => record = record.begun_again(),
        }
    }
    Ok((opened.call, record, opened.expired))
}

impl<'a> Admitted<'a> {
    pub(super) fn leg(&self) -> &Leg<'a> {
        &self.leg
    }

    pub(super) fn asks(&self) -> AskSupport {
        self.leg.request.meta.asks.unwrap_or_default()
    }

    pub(super) fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    pub(super) fn call_id(&self) -> Option<CallId> {
        self.call.as_ref().map(Call::id)
    }

    /// From 1.
    pub(super) fn leg_number(&self) -> u16 {
        self.call.as_ref().map_or(1, Call::leg)
    }

    /// Whether the state came after its time, to a server that then asks again.
    pub(super) fn late(&self) -> bool {
        self.late
    }

    /// The call in its present leg.
    pub(super) fn call(&self) -> Option<&Call> {
        self.call.as_ref()
    }

    /// The call, while its handler runs.
    pub(super) fn take_call(&mut self) -> Option<Call> {
        self.call.take()
    }

    /// The call again, begun by its handler perhaps.
    pub(super) fn put_call(&mut self, call: Option<Call>) {
        self.call = call;
    }

    /// The record that came with the state.
    pub(super) fn take_record(&mut self) -> Option<Record> {
        self.record.take()
    }

    /// Whether the client can take a result that holds state only.
    pub(super) fn takes_state_only(&self, server: &Inner) -> bool {
        // In a session nothing of the kind is sent: the handler is entered again.
        self.leg.request.session.is_some() || server.state_only.permits(self.leg.request.meta.client_info)
    }

    /// > A server **MUST NOT** rely on capabilities the client has not declared.
    pub(super) fn require(&self, needed: AskSupport) -> Result<(), Refusal> {
        let missing = self.asks().missing(needed);
        if missing == AskSupport::NONE { Ok(()) } else { Err(Refusal::Capability { missing }) }
    }

    /// What these asks need that the client did not declare.
    pub(super) fn missing(&self, requests: &InputRequests) -> AskSupport {
        let needed =
            requests.iter().fold(AskSupport::NONE, |needed, (_, request)| needed.and(request.needs()));
        self.asks().missing(needed)
    }

    /// > Servers **MUST NOT** send an `inputRequests` that the client has not declared support for in its
    /// > capabilities.
    pub(super) fn permit(&self, requests: InputRequests) -> Result<Permit, Refusal> {
        match self.missing(&requests) {
            AskSupport::NONE => Ok(Permit(requests)),
            missing => Err(Refusal::Capability { missing }),
        }
    }

    /// Seals a round: the only way an ask leaves. `behind_effect`: a step has run in this leg, and its record leaves even
    /// where what came behind it would not fit.
    pub(super) fn seal(
        mut self,
        server: &Inner,
        permit: Permit,
        record: &Record,
        behind_effect: bool,
    ) -> Result<InputRequiredResult, Refusal> {
        let internal = |cause: &dyn std::fmt::Display| {
            tracing::error!(%cause, "a round could not be sealed");
            Refusal::Internal
        };
        let bytes = record.encode().map_err(|fault| internal(&fault))?;
        let most = if behind_effect { server.limits.state_behind_effect() } else { server.limits.state };
        if bytes.len() > most {
            return Err(too_large(self.leg.target, record, bytes.len(), most));
        }
        let size = record.size();
        if size > JOURNAL_WARNING {
            let largest = record.largest();
            tracing::warn!(target = self.leg.target, size, ?largest, "the record of a call grows large");
        }
        let now = server.clock.now();
        let call = match self.call.take() {
            Some(call) => call,
            // A deadline beyond all time is none.
            None => Call::begin(now, server.call_within.and_then(|time| now.checked_add(time)))
                .map_err(|fault| internal(&fault))?,
        };
        let ttl = self.leg.settings.answer_within.unwrap_or(server.answer_within);
        record.asked().iter().for_each(|asked| self.warn_of_time(asked, now, ttl));
        let sealed = server.sealer.seal(&call, &self.leg.binding(self.principal()), &bytes, ttl, now);
        let state = sealed.map_err(|error| match error {
            SealError::TooLarge { limit, actual } => too_large(self.leg.target, record, actual, limit),
            other => internal(&Error::from(other)),
        })?;
        tracing::debug!(call = %call.id(), leg = call.leg(), asks = permit.0.len(), state = state.len(), "a round leaves");
        InputRequiredResult::new(permit.0, Some(state)).map_err(|fault| internal(&fault))
    }
}

impl Admitted<'_> {
    /// Whoever answers in the time of the question, and later than in that of its round, is refused.
    fn warn_of_time(&self, asked: &AskRecord, now: SystemTime, answer_within: Duration) {
        let ends = seconds(now).saturating_add(answer_within.as_secs());
        if asked.deadline().is_some_and(|deadline| deadline > ends) {
            let (target, key) = (self.leg.target, asked.path());
            tracing::warn!(target, %key, ?answer_within, "a question has more time than the state of its round");
        }
    }
}

/// Names the largest entries in the log, by key and size.
fn too_large(target: &str, record: &Record, actual: usize, limit: usize) -> Refusal {
    tracing::error!(target, actual, limit, largest = ?record.largest(), "the state of a call is too large");
    Refusal::Limit {
        name: "state",
        text: format!("The state of this call would take {actual} bytes; the limit is {limit}"),
    }
}
