//! The error of a server that cannot be built.

use antiphon_seal::EntropyError;
use std::{error::Error as StdError, fmt};

/// An error of building a server, or of adding something to one. The text says what to change.
#[derive(Debug)]
pub struct BuildError(pub(crate) String);

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for BuildError {}

impl From<EntropyError> for BuildError {
    fn from(error: EntropyError) -> Self {
        Self(error.to_string())
    }
}
