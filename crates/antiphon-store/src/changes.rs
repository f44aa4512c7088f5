//! Feeds of changes: short messages from one instance of a server to all others, over what their store already is.

use crate::{
    claim::{BlobDigest, write_hex},
    error::{StoreError, StoreErrorKind, StoreFuture},
};
use std::fmt::{self, Debug};

/// The maximum length of a message of a [`ChangeFeed`], in bytes.
pub const MAX_CHANGE: usize = 4096;

/// A feed of messages between the instances of a server: a published message reaches every watch that was open before. Messages are ASCII
/// text without control characters, of at most [`MAX_CHANGE`] bytes, and hold digests only, because a database may show them to all of its
/// users.
///
/// Nothing is kept for a watch that is not open. **A watch never skips a message silently**: it fails, and its owner takes it that
/// everything has changed. `antiphon_store::contract::check_changes` (feature `testing`) checks a feed of your own.
pub trait ChangeFeed: Debug + Send + Sync + 'static {
    /// Publishes a message on a channel.
    ///
    /// # Errors
    ///
    /// [`StoreError`]. The message may be published again; a watch may then return it twice.
    fn publish<'a>(&'a self, channel: ChangeChannel, message: &'a str) -> StoreFuture<'a, ()>;

    /// Opens a watch, which returns what is published from now on, also by this feed.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn watch(&self, channel: ChangeChannel) -> StoreFuture<'_, Box<dyn ChangeWatch>>;
}

/// An open watch of a channel. Dropping it ends it.
pub trait ChangeWatch: Send {
    /// Waits for the next message. If the future is dropped before it resolves, no message is lost.
    ///
    /// # Errors
    ///
    /// [`StoreError`], if a message may have been lost: the connection broke, or the watch was too slow. The watch has ended then.
    fn next(&mut self) -> StoreFuture<'_, String>;
}

/// A channel of a [`ChangeFeed`]: all instances of one server have the same one, and other servers in the same database have others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangeChannel([u8; 16]);

impl ChangeChannel {
    /// Returns the channel of the server with this name, or audience.
    #[must_use]
    pub fn of(server: &str) -> Self {
        let digest = BlobDigest::of(server.as_bytes());
        let (half, _) = digest.as_bytes().split_at(16);
        // Half of 32 bytes.
        Self(half.try_into().unwrap_or_default())
    }

    /// Returns the bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for ChangeChannel {
    /// Writes 32 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl Debug for ChangeChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChangeChannel({self})")
    }
}

/// Refuses a message that a feed cannot carry.
pub(crate) fn check(message: &str) -> Result<(), StoreError> {
    if message.is_empty() || message.len() > MAX_CHANGE || !message.bytes().all(|b| matches!(b, b' '..=b'~'))
    {
        let text = format!("a message has 1 to {MAX_CHANGE} bytes of ASCII text");
        return Err(StoreError::read(StoreErrorKind::Invalid, "publish", text));
    }
    Ok(())
}

/// Returns the error of a watch that may have lost a message.
pub(crate) fn lost(text: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::read(StoreErrorKind::Unreachable, "watch", text)
}
