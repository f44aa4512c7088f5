//! A handle that ends calls from outside.

use tokio::sync::watch;

/// Ends every call that has this token: the request under way is cancelled, open callbacks are dropped.
///
/// Clones are the same token. Dropping the future of a call does the same without a token.
#[derive(Clone, Debug)]
pub struct CancelToken(watch::Sender<bool>);

impl CancelToken {
    /// A token that is not cancelled yet.
    pub fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Cancels. A cancelled token stays cancelled.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Returns `true` once [`cancel`](Self::cancel) was called.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until [`cancel`](Self::cancel) is called.
    pub async fn cancelled(&self) {
        // The wait fails only if every sender is dropped, and `self` is one.
        let _ = self.0.subscribe().wait_for(|cancelled| *cancelled).await;
    }
}

impl Default for CancelToken {
    fn default() -> Self {
        Self::new()
    }
}
