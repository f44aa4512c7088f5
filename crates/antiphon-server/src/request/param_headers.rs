//! The arguments of a tool that a request repeats in headers.

use antiphon_wire::{ErrorCode, ErrorObject, header::params::ParamHeaders};
use http::HeaderMap;
use serde_json::value::RawValue;

/// Checks that the headers agree with the arguments.
///
/// > Any server that processes the message body **MUST** validate that encoded header values, after decoding if
/// > Base64-encoded, match the corresponding values in the request body.
pub(crate) fn check_params(
    params: &ParamHeaders,
    arguments: Option<&RawValue>,
    headers: &HeaderMap,
) -> Result<(), ErrorObject> {
    if params.is_empty() {
        return Ok(());
    }
    // The text was parsed before, so this cannot fail.
    let arguments = arguments.and_then(|text| serde_json::from_str(text.get()).ok()).unwrap_or_default();
    for param in params.iter() {
        let header = param.header_name();
        let mut values = headers.get_all(&header).iter();
        let value = match (values.next(), values.next()) {
            (None, _) => None,
            (Some(value), None) => Some(value.to_str().map_err(|_| invalid_characters(&header))?),
            (Some(_), Some(_)) => return Err(twice(&header)),
        };
        param
            .check(&arguments, value)
            .map_err(|fault| ErrorObject::new(ErrorCode::HEADER_MISMATCH, fault.to_string()))?;
    }
    Ok(())
}

/// Returns the error for a header with other characters than those of visible ASCII.
pub(crate) fn invalid_characters(header: &str) -> ErrorObject {
    mismatch(format!("{header} holds invalid characters"))
}

/// Returns the error for a header that occurs twice.
pub(crate) fn twice(header: &str) -> ErrorObject {
    mismatch(format!("{header} occurs twice"))
}

/// Returns an error about headers.
pub(crate) fn mismatch(text: impl std::fmt::Display) -> ErrorObject {
    ErrorObject::new(ErrorCode::HEADER_MISMATCH, format!("Header mismatch: {text}"))
}
