//! The answers that come with a request.

use crate::{errors::refusal::Refusal, request::admit::Admitted};
use antiphon_wire::{InputResponses, escaped};
use serde_json::value::RawValue;

/// Returns the answers of a request that came in time. In a session, answers come by other messages.
pub(crate) fn received_responses(admitted: &Admitted<'_>) -> Result<Option<InputResponses>, Refusal> {
    if admitted.leg().request.session.is_some() {
        return Ok(None);
    }
    let responses = read_responses(admitted.leg().request.params.input_responses)?;
    // The recorded answers stay; late answers are dropped, and their questions are asked again.
    Ok(responses.filter(|_| !admitted.late()))
}

/// > Servers **SHOULD** validate that the data provided by the client is a valid `InputResponses` object
fn read_responses(text: Option<&RawValue>) -> Result<Option<InputResponses>, Refusal> {
    text.map(InputResponses::read)
        .transpose()
        .map_err(|_| Refusal::params("params.inputResponses must be an object"))
}

/// Refuses answers of a caller whose answers the tool does not accept. Nothing has changed: the state that came stays
/// valid, and unused.
pub(crate) fn check_approver(admitted: &Admitted<'_>) -> Result<(), Refusal> {
    let (leg, Some(record)) = (admitted.leg(), admitted.record()) else { return Ok(()) };
    if !leg.settings.approved_by.is_set() {
        return Ok(());
    }
    let Some(responses) = received_responses(admitted)? else { return Ok(()) };
    let is_answered = record.asked().iter().any(|asked| responses.get(asked.path()).is_some());
    if !is_answered || leg.settings.approved_by.permits(admitted.principal()) {
        return Ok(());
    }
    tracing::warn!(call = admitted.call_id().map(|id| id.to_string()), target = ?escaped(leg.target), "an answer of a caller who may not approve: refused");
    Err(Refusal::NotApprover)
}
