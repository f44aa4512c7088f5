//! Decoding of members of a message.

use antiphon_wire::ErrorObject;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Reads an object into a struct. An array is refused: serde would read it into the struct by position.
pub(crate) fn read_object<'a, T: Deserialize<'a>>(text: &'a RawValue, what: &str) -> Result<T, ErrorObject> {
    if !text.get().starts_with('{') {
        return Err(ErrorObject::invalid_params(format!("{what} must be an object")));
    }
    serde_json::from_str(text.get()).map_err(|fault| ErrorObject::invalid_params(format!("{what}: {fault}")))
}
