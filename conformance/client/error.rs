//! The error of a scenario.

use std::error::Error;

/// An error of any kind; the suite needs its text only.
pub(crate) type AnyError = Box<dyn Error + Send + Sync>;
