//! The early end of a branch.

use std::fmt;

/// The cause of a branch's early end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stop(pub(crate) u64);

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stopped {:x}", self.0)
    }
}
