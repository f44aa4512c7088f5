//! The channel of a server on its feed, and the name of an instance there.

use super::change::{Change, written};
use antiphon_store::{ChangeChannel, ChangeFeed, StoreError};
use std::{sync::Arc, time::Duration};

/// The pauses after failures: the first one, and the longest.
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Line {
    pub(super) feed: Arc<dyn ChangeFeed>,
    pub(super) channel: ChangeChannel,
    /// The instance does not deliver its own changes twice.
    pub(super) origin: String,
}

impl Line {
    pub(super) async fn publish(&self, changes: &[Change]) -> Result<(), StoreError> {
        self.feed.publish(self.channel, &written(&self.origin, changes)).await
    }

    /// Returns the pause after this number of failures in a row. Each instance has its own, between half of it and the whole, so that
    /// they do not all return to the store at once.
    pub(super) fn pause(&self, failures: u32) -> Duration {
        let longest = PAUSE.saturating_mul(1 << failures.min(8).saturating_sub(1)).min(LONGEST_PAUSE);
        let share = self.origin.bytes().fold(0_u8, u8::wrapping_add);
        longest / 2 + longest / 2 * u32::from(share) / u32::from(u8::MAX)
    }
}
