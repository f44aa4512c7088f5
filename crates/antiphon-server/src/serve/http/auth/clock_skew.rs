//! The tolerance for clocks of other machines.

use std::time::Duration;

/// The maximum difference between the clocks of two machines that is tolerated when a time in a token is checked.
pub(crate) const CLOCK_SKEW: Duration = Duration::from_secs(60);
