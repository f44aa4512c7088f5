//! The one way to a handler.

use super::{
    Limits, OnExpired, OnVersion,
    bearer::require_scopes,
    leg::Leg,
    limits::{JOURNAL_WARNING, LEG_WARNING},
    refusal::Refusal,
    round::{Asked, AskedOnce, Payload, seconds},
    serve::Inner,
};
use crate::Error;
use antiphon_seal::{Call, CallId, OpenError, Principal, Reason, SealError};
use antiphon_wire::{AskSupport, InputRequests, InputRequiredResult};
use serde_json::value::RawValue;
use std::time::{Duration, SystemTime};

/// A request whose state was opened, belongs to it, and is in time; or one that came without state.
///
/// Only [`admit`] makes one. Running a handler, permitting its asks and sealing them demand it.
pub(super) struct Admitted<'a> {
    leg: Leg<'a>,
    principal: Option<Principal>,
    /// In its present leg; `None` on the first.
    call: Option<Call>,
    payload: Option<Payload>,
    /// The state's own time was over: what came with it does not count.
    late: bool,
}

/// The client declared that it can be asked all of these.
pub(super) struct Permit(InputRequests);

/// Admits a request, or refuses it.
pub(super) fn admit<'a>(server: &Inner, leg: Leg<'a>) -> Result<Admitted<'a>, Refusal> {
    if let Err(fault) = antiphon_seal::canonical::check(leg.request.text.get()) {
        return Err(Refusal::params(format!("params: {fault}")));
    }
    // Before the state: what is in it is for those who may.
    require_scopes(&leg.settings.scopes, leg.caller)?;
    let principal = server.identity.of(leg.caller);
    let (principal, state) = match (principal, leg.request.params.request_state) {
        (Ok(principal), Some(state)) => (principal, state),
        (Ok(principal), None) => {
            return Ok(Admitted { leg, principal, call: None, payload: None, late: false });
        }
        // A handler would take them for an anonymous caller.
        (Err(cause), state) => {
            tracing::error!(%cause, method = %leg.request.method, target = leg.target, "no identity: refused");
            return Err(if state.is_some() { Refusal::State } else { Refusal::Internal });
        }
    };
    let (call, payload, late) = open(server, &leg, principal.as_ref(), state)?;
    // Authentic, bound and in time: from here on the caller is the rightful one, and may learn the reason.
    let id = call.id();
    let Some(call) = call.next_leg().filter(|call| call.leg() <= server.limits.legs) else {
        return Err(too_many_legs(&server.limits, leg.target, id, &InputRequests::new(), false));
    };
    if call.leg() == LEG_WARNING {
        tracing::warn!(call = %id, target = leg.target, leg = LEG_WARNING, "many clients give up at ten rounds");
    }
    Ok(Admitted { leg, principal, call: Some(call), payload: Some(payload), late })
}

/// > servers **MUST** treat `requestState` as an attacker-controlled input [...] and **MUST** reject state that
/// > fails verification.
fn open(
    server: &Inner,
    leg: &Leg<'_>,
    principal: Option<&Principal>,
    state: &RawValue,
) -> Result<(Call, Payload, bool), Refusal> {
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
    let mut payload =
        Payload::decode(&opened.payload).map_err(|_| refuse("payload", Some(opened.call.id())))?;
    if opened.tool_version != leg.settings.version {
        let (was, is) = (opened.tool_version, leg.settings.version);
        tracing::info!(call = %opened.call.id(), target = leg.target, was, is, "a call of another version");
        match leg.settings.on_version {
            OnVersion::Keep => payload.journal.migrate(&leg.settings.migration),
            OnVersion::Reject => return Err(Refusal::Version),
            OnVersion::Restart => payload = payload.begun_again(),
        }
    }
    Ok((opened.call, payload, opened.expired))
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

    /// The call, while its handler runs.
    pub(super) fn take_call(&mut self) -> Option<Call> {
        self.call.take()
    }

    /// The call again, begun by its handler perhaps.
    pub(super) fn put_call(&mut self, call: Option<Call>) {
        self.call = call;
    }

    /// An id for a URL question of this leg that was asked by hand.
    pub(super) fn elicitation_id(&self, key: &str) -> Option<String> {
        let call = self.call.as_ref()?;
        Some(call.secret().idempotency_key("#elicitation", &format!("{key} {}", call.leg())))
    }

    pub(super) fn take_payload(&mut self) -> Option<Payload> {
        self.payload.take()
    }

    /// > A server **MUST NOT** rely on capabilities the client has not declared.
    pub(super) fn require(&self, needed: AskSupport) -> Result<(), Refusal> {
        let missing = self.asks().missing(needed);
        if missing == AskSupport::NONE { Ok(()) } else { Err(Refusal::Capability { missing }) }
    }

    /// > Servers **MUST NOT** send an `inputRequests` that the client has not declared support for in its
    /// > capabilities.
    pub(super) fn permit(&self, requests: InputRequests) -> Result<Permit, Refusal> {
        let needed =
            requests.iter().fold(AskSupport::NONE, |needed, (_, request)| needed.and(request.needs()));
        self.require(needed).map(|()| Permit(requests))
    }

    /// Seals a round: the only way an ask leaves. `behind_effect`: a step has run in this leg, and its record leaves even
    /// where what came behind it would not fit.
    pub(super) fn seal(
        mut self,
        server: &Inner,
        permit: Permit,
        payload: &Payload,
        behind_effect: bool,
    ) -> Result<InputRequiredResult, Refusal> {
        let internal = |cause: &dyn std::fmt::Display| {
            tracing::error!(%cause, "a round could not be sealed");
            Refusal::Internal
        };
        let bytes = payload.encode().map_err(|fault| internal(&fault))?;
        let most = if behind_effect { server.limits.state_behind_effect() } else { server.limits.state };
        if bytes.len() > most {
            return Err(too_large(self.leg.target, payload, bytes.len(), most));
        }
        let size = payload.journal.size();
        if size > JOURNAL_WARNING {
            let largest = payload.journal.largest();
            tracing::warn!(target = self.leg.target, size, ?largest, "the record of a call grows large");
        }
        let now = server.clock.now();
        let call = match self.call.take() {
            Some(call) => call,
            // A deadline beyond all time is none.
            None => Call::begin(now, server.call_within.and_then(|time| now.checked_add(time)))
                .map_err(|fault| internal(&fault))?,
        };
        // Its answers would come back to a call that is over: nobody is asked in vain.
        if call.leg() >= server.limits.legs {
            return Err(too_many_legs(&server.limits, self.leg.target, call.id(), &permit.0, behind_effect));
        }
        let ttl = self.leg.settings.answer_within.unwrap_or(server.answer_within);
        payload.journal.asked.iter().for_each(|asked| self.warn_of_time(asked, now, ttl));
        let sealed = server.sealer.seal(&call, &self.leg.binding(self.principal()), &bytes, ttl, now);
        let state = sealed.map_err(|error| match error {
            SealError::TooLarge { limit, actual } => too_large(self.leg.target, payload, actual, limit),
            other => internal(&Error::from(other)),
        })?;
        tracing::debug!(call = %call.id(), leg = call.leg(), asks = permit.0.len(), state = state.len(), "a round leaves");
        InputRequiredResult::new(permit.0, Some(state)).map_err(|fault| internal(&fault))
    }
}

impl Admitted<'_> {
    /// Whoever answers in the time of the question, and later than in that of its round, is refused.
    fn warn_of_time(&self, asked: &AskedOnce, now: SystemTime, answer_within: Duration) {
        let ends = seconds(now).saturating_add(answer_within.as_secs());
        if asked.deadline.is_some_and(|deadline| deadline > ends) {
            let (target, key) = (self.leg.target, &asked.path);
            tracing::warn!(target, %key, ?answer_within, "a question has more time than the state of its round");
        }
    }
}

/// `asks` is what could not be asked any more; `steps_lost`, whether the leg has done something that leaves with no record.
fn too_many_legs(
    limits: &Limits,
    target: &str,
    call: CallId,
    asks: &InputRequests,
    steps_lost: bool,
) -> Refusal {
    let what = cannot_be_asked(asks);
    tracing::warn!(%call, target, limit = limits.legs, %what, steps_lost, "the call has had as many legs as it may");
    let text =
        format!("This call has had {} requests, as many as the limit `legs` allows: {what}", limits.legs);
    Refusal::Limit { name: "legs", text }
}

/// What a call that may not ask any more comes to, by the key of its question.
pub(super) fn cannot_be_asked(asks: &InputRequests) -> String {
    match (asks.iter().next(), asks.len()) {
        (None, _) => "it cannot go on".to_owned(),
        (Some((key, _)), 1) => format!("`{key}` cannot be asked"),
        (Some((key, _)), several) => format!("`{key}` and {} more cannot be asked", several - 1),
    }
}

/// Names the largest entries in the log, by key and size.
fn too_large(target: &str, payload: &Payload, actual: usize, limit: usize) -> Refusal {
    let size = |asked: &Asked| asked.question.len() + asked.answer.as_ref().map_or(0, String::len);
    let mut entries: Vec<(&str, usize)> =
        payload.asked.iter().map(|asked| (asked.key.as_str(), size(asked))).collect();
    entries.extend(payload.journal.largest());
    entries.push(("(the handler's state)", payload.state.as_ref().map_or(0, String::len)));
    entries.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    entries.truncate(3);
    tracing::error!(target, actual, limit, largest = ?entries, "the state of a call is too large");
    Refusal::Limit {
        name: "state",
        text: format!("The state of this call would take {actual} bytes; the limit is {limit}"),
    }
}
