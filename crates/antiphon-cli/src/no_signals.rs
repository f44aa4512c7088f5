//! The place of the signals on systems without them: Ctrl-C reaches a child as it reaches this program.

use antiphon::client::Client;
use std::io;

/// No signal.
pub(crate) struct EndingSignals;

impl EndingSignals {
    /// Does nothing.
    ///
    /// # Errors
    /// None.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Does nothing.
    pub(crate) fn close(self, _: Client) {}
}

/// Returns `None`.
pub(crate) fn code() -> Option<u8> {
    None
}
