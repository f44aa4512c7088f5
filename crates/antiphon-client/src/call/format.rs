//! The versions of formats in which calls and tasks are stored.

use serde::de;

/// Checks that a stored value was written in a format that can be read here: one of `0..=known`.
pub(crate) fn must_be_known<E: de::Error>(version: u32, known: u32, what: &str) -> Result<(), E> {
    if version <= known {
        return Ok(());
    }
    Err(E::custom(format_args!(
        "the {what} was written by a newer version of antiphon (format {version}); formats up to {known} can be read here"
    )))
}
