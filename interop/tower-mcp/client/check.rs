//! Checks, and their lists.

use crate::{connection::Target, error::AnyError};
use std::{fmt::Debug, pin::Pin};

pub(crate) type CheckResult = Result<(), AnyError>;

/// A check of one server.
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) run: for<'a> fn(&'a Target) -> Pin<Box<dyn Future<Output = CheckResult> + 'a>>,
    /// The revision that it uses.
    pub(crate) era: &'static str,
}

/// Builds a list of checks: `checks! { "2026-07-28": "name" => function, }`.
macro_rules! checks {
    ($era:literal: $($name:literal => $run:path,)*) => {
        &[$($crate::check::Check { name: $name, run: |target| Box::pin($run(target)), era: $era }),*]
    };
}
pub(crate) use checks;

/// A case that the peer does not support: its revision, its name, and the reason.
pub(crate) type Unsupported = (&'static str, &'static str, &'static str);

/// Compares two values. The error names both, if they differ.
pub(crate) fn expect_equal<T: PartialEq + Debug>(found: T, wanted: T) -> CheckResult {
    if found == wanted { Ok(()) } else { Err(format!("found {found:?}, wanted {wanted:?}").into()) }
}
