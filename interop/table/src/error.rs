//! The error of the program.

use std::error::Error;

/// An error of any kind; the person who runs the program needs its text only.
pub(crate) type AnyError = Box<dyn Error + Send + Sync>;
