//! The interface for sealing by another service, such as a key management service or a hardware module.

use std::error::Error;
use std::fmt;

/// Turns claims into token text and back, in place of the built-in cipher.
///
/// The sealer still writes and verifies everything that a token is bound to. The codec must provide two
/// things. Confidentiality: the plaintext holds the call's secret. Authenticity: [`open`](Self::open) must
/// fail on every text that [`seal`](Self::seal) did not make. An error fails the request; there is no
/// fallback.
///
/// Both methods run while the request waits, so they must not block for long.
pub trait Codec: Send + Sync {
    /// Returns the token for this plaintext. The text goes through JSON unchanged; printable ASCII is the
    /// safe choice.
    ///
    /// # Errors
    ///
    /// [`CodecError`]: the server sends no token.
    fn seal(&self, plaintext: &[u8]) -> Result<String, CodecError>;

    /// Returns the plaintext of this token. The token is never longer than the sealer's limit for tokens.
    ///
    /// # Errors
    ///
    /// [`CodecError`]: the token is rejected like any other invalid token.
    fn open(&self, token: &str) -> Result<Vec<u8>, CodecError>;
}

/// An error from a [`Codec`]. Its contents go to the log, never to the peer.
#[derive(Debug)]
pub struct CodecError {
    cause: Box<dyn Error + Send + Sync>,
    is_unavailable: bool,
}

impl CodecError {
    /// Returns an error with this cause, or this text.
    pub fn new(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { cause: cause.into(), is_unavailable: false }
    }

    /// Returns an error of a codec that can neither seal nor open at present, with this cause. The server then answers
    /// that the same request may be sent again later, also in the place of a rejected token. So it must not depend on
    /// the token: return it before the token is read.
    pub fn unavailable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { cause: cause.into(), is_unavailable: true }
    }

    /// Returns `true` if the codec was [unavailable](Self::unavailable).
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        self.is_unavailable
    }
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl Error for CodecError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        // This error displays the text of its cause, so the cause itself would repeat it.
        self.cause.source()
    }
}
