//! The errors of sealing and of opening a token, and the interface for sealing by another service, such as a key management service or
//! a hardware module.

use crate::{
    canonical::TextFault,
    secret::{CallId, EntropyError},
};
use std::{error::Error, fmt};

/// An error from sealing: no token was made.
#[derive(Debug)]
#[non_exhaustive]
pub enum SealError {
    /// The token would be longer than the limit. Both lengths are in bytes of text.
    TooLarge {
        /// The maximum length that the sealer allows.
        limit: usize,
        /// The length that the token would have had.
        actual: usize,
    },
    /// The request's arguments have no canonical form.
    Arguments(TextFault),
    /// The system gives no random bytes.
    Entropy(EntropyError),
    /// The custom codec failed.
    Codec(CodecError),
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { limit, actual } => {
                write!(f, "the state would take {actual} bytes of requestState; the limit is {limit}")
            }
            Self::Arguments(_) => f.write_str("the request's arguments cannot be bound"),
            Self::Entropy(_) => f.write_str("no nonce for the token"),
            Self::Codec(_) => f.write_str("the codec did not seal the state"),
        }
    }
}

impl Error for SealError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::TooLarge { .. } => None,
            Self::Arguments(fault) => Some(fault),
            Self::Entropy(error) => Some(error),
            Self::Codec(error) => Some(error),
        }
    }
}

/// An error from opening: the token was rejected.
///
/// The error's text is the same for every reason and the error has no source, so the sender of the token may
/// see it. The reason is for the log only: it would show a forger which checks a forgery passed.
pub struct OpenError {
    reason: Reason,
    call_id: Option<CallId>,
    codec: Option<CodecError>,
}

impl OpenError {
    /// The text of every `OpenError`.
    pub const MESSAGE: &'static str = "Invalid or expired requestState";

    /// The reason, for the log only.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// The call's id, for the log only; `None` unless the token proved to be authentic.
    #[must_use]
    pub fn call_id(&self) -> Option<CallId> {
        self.call_id
    }

    /// The custom codec's error, for the log only.
    #[must_use]
    pub fn codec(&self) -> Option<&CodecError> {
        self.codec.as_ref()
    }

    pub(crate) fn of_call(reason: Reason, call_id: CallId) -> Self {
        Self { reason, call_id: Some(call_id), codec: None }
    }
}

impl From<Reason> for OpenError {
    fn from(reason: Reason) -> Self {
        Self { reason, call_id: None, codec: None }
    }
}

impl From<CodecError> for OpenError {
    fn from(error: CodecError) -> Self {
        Self { reason: Reason::Codec, call_id: None, codec: Some(error) }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::MESSAGE)
    }
}

impl fmt::Debug for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenError")
            .field("reason", &self.reason)
            .field("call_id", &self.call_id)
            .field("codec", &self.codec)
            .finish()
    }
}

impl Error for OpenError {}

/// The reason that a token was not opened. The variants follow the order of the checks. `Display` writes one
/// word for logs and counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The text is longer than the limit; nothing else was checked.
    TooLong,
    /// The text does not have a token's form: prefix, base64url or length.
    Malformed,
    /// No key of the ring has the token's key id: a key was removed too early, or another process sealed the
    /// token and a shared key ring is missing.
    UnknownKey,
    /// The tag does not match: the token was changed on the way, or sealed for another audience.
    Seal,
    /// The custom codec rejected the token.
    Codec,
    /// The claims have another format: another release sealed the token.
    Format,
    /// The token is authentic but holds no claims: a custom codec opened a text that this crate did not seal.
    Claims,
    /// The token was made before the first moment whose tokens open under its key.
    MinIat,
    /// The token was sealed for another audience through the same custom codec.
    Audience,
    /// The token was made later than now: the clocks of two servers differ by more than the skew allowed.
    Future,
    /// The time of the whole call is over.
    Deadline,
    /// The time of the token is over.
    Expired,
    /// The arguments of the request have no canonical form.
    Arguments,
    /// The token was made for another method, target or arguments.
    Request,
    /// The token was made for another principal.
    Principal,
    /// The token was made for a caller without authentication, but the caller is authenticated now.
    PrincipalAppeared,
    /// The token was made for an authenticated caller, but the caller is not authenticated now.
    PrincipalVanished,
}

impl Reason {
    /// Returns the reason as one word in `snake_case`, for logs and counters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::Malformed => "malformed",
            Self::UnknownKey => "unknown_key",
            Self::Seal => "seal",
            Self::Codec => "codec",
            Self::Format => "format",
            Self::Claims => "claims",
            Self::MinIat => "min_iat",
            Self::Audience => "audience",
            Self::Future => "future",
            Self::Deadline => "deadline",
            Self::Expired => "expired",
            Self::Arguments => "arguments",
            Self::Request => "request",
            Self::Principal => "principal",
            Self::PrincipalAppeared => "principal_appeared",
            Self::PrincipalVanished => "principal_vanished",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

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
