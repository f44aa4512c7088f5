//! Sealing by somebody else: a key management service, a hardware module.

use std::error::Error;
use std::fmt;

/// Turns claims into token text and back, in place of the built-in cipher.
///
/// The sealer still stamps and verifies everything a token is bound to. The codec owes two things.
/// Confidentiality: the plaintext holds the call's secret. Authenticity: [`open`](Self::open) must fail on
/// every text that [`seal`](Self::seal) did not make. An error fails the request; there is no second way.
///
/// Both methods are called on the request's own path and must not block for long.
pub trait Codec: Send + Sync {
    /// The token for this plaintext. The text goes through JSON as it is; printable ASCII is wise.
    ///
    /// # Errors
    ///
    /// [`CodecError`]: no token leaves.
    fn seal(&self, plaintext: &[u8]) -> Result<String, CodecError>;

    /// The plaintext of this token, never longer than the sealer's limit for tokens.
    ///
    /// # Errors
    ///
    /// [`CodecError`]: the token is refused like any other bad one.
    fn open(&self, token: &str) -> Result<Vec<u8>, CodecError>;
}

/// A [`Codec`] failed. What is inside goes to the log, never to the peer.
#[derive(Debug)]
pub struct CodecError(Box<dyn Error + Send + Sync>);

impl CodecError {
    /// An error with this cause, or this text.
    pub fn new(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for CodecError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        // This error speaks with its cause's text, so the cause itself would say it twice.
        self.0.source()
    }
}
