//! The writing of results.

use crate::{
    errors::refusal::Refusal,
    request::receive::Request,
    session::{InSession, SessionResult},
};
use antiphon_wire::{escaped, write_result};
use serde::Serialize;

/// Writes the response with this result.
pub(crate) fn encode(request: &Request<'_>, result: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    write_result(&request.id, result).map_err(|fault| {
        tracing::error!(method = %escaped(&request.method), fault = %escaped(&fault), "a result cannot be written as JSON");
        Refusal::Internal
    })
}

/// Writes a result in the form of the request's version.
pub(super) fn write(
    request: &Request<'_>,
    result: &(impl Serialize + SessionResult),
) -> Result<Vec<u8>, Refusal> {
    match &request.session {
        None => encode(request, result),
        Some(session) => encode(request, &InSession { version: session.version(), result }),
    }
}
