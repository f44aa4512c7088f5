//! The writing of results.

use crate::{errors::refusal::Refusal, request::receive::Request};
use antiphon_wire::{escaped, write_result};
use serde::Serialize;

/// Writes the response with this result.
pub(super) fn encode(request: &Request<'_>, result: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    write_result(&request.id, result).map_err(|fault| {
        tracing::error!(method = %escaped(&request.method), fault = %escaped(&fault), "a result cannot be written as JSON");
        Refusal::Internal
    })
}
