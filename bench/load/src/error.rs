//! Errors.

use std::error::Error as StdError;

/// Errors are for the person who runs the benchmark: text is enough.
pub(crate) type Error = Box<dyn StdError + Send + Sync>;
