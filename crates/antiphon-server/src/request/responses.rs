//! The answers that come with a request.

use crate::{refusal::Refusal, request::admit::Admitted};
use antiphon_wire::InputResponses;
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
    text.map(|text| serde_json::from_str(text.get()))
        .transpose()
        .map_err(|_| Refusal::params("params.inputResponses must be an object"))
}
