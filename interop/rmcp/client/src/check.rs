//! Checks, and their lists.

use crate::fleet::Fleet;
use std::{fmt::Debug, pin::Pin};

pub(crate) type CheckResult = Result<(), String>;
/// A check with steps of its own. Checks of one call and its result are in the JSON tables.
pub(crate) type Check = for<'a> fn(&'a Fleet) -> Pin<Box<dyn Future<Output = CheckResult> + 'a>>;

/// Builds a list of checks: `checks! { "name" => function }`.
macro_rules! checks {
    ($($name:literal => $run:path,)*) => {
        &[$(($name, |fleet| Box::pin($run(fleet)))),*]
    };
}
pub(crate) use checks;

/// Compares two values.
///
/// # Errors
///
/// Both values, if they differ.
pub(crate) fn expect_equal<T: PartialEq + Debug>(found: &T, wanted: &T) -> CheckResult {
    if found == wanted { Ok(()) } else { Err(format!("found {found:?}, wanted {wanted:?}")) }
}
