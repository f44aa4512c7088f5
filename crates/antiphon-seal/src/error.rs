//! Why a token was not made, and why one was not opened.

use std::error::Error;
use std::fmt;

use crate::canonical::TextFault;
use crate::codec::CodecError;
use crate::random::EntropyError;
use crate::secret::CallId;

/// Why a token was not made.
#[derive(Debug)]
#[non_exhaustive]
pub enum SealError {
    /// The token would be longer than the limit; both in bytes of text.
    TooLarge {
        /// What the sealer allows.
        limit: usize,
        /// What the token would have had.
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

/// A token was not opened.
///
/// Its text is the same for every reason and it has no source, so it may be shown to whoever sent the token.
/// The reason is for the log: told to a forger, it would say how far a forgery got.
pub struct OpenError {
    reason: Reason,
    call_id: Option<CallId>,
    codec: Option<CodecError>,
}

impl OpenError {
    /// The text of every such error.
    pub const MESSAGE: &'static str = "Invalid or expired requestState";

    /// Why, for the log only.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// Which call, for the log only; known once the token proved to be ours.
    #[must_use]
    pub fn call_id(&self) -> Option<CallId> {
        self.call_id
    }

    /// What the custom codec said, for the log only.
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

/// Why a token was not opened, in the order of the checks. Displayed as one word for logs and counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The text is longer than the limit; nothing else was looked at.
    TooLong,
    /// The text is not of a token's form: prefix, base64url or length.
    Malformed,
    /// No key of the ring has the token's key id: a key was taken out too early, or another process sealed it
    /// and a shared key ring is missing.
    UnknownKey,
    /// The tag does not fit: changed on the way, or sealed for another audience.
    Seal,
    /// The custom codec refused it.
    Codec,
    /// The claims have another format: sealed by another release.
    Format,
    /// Authentic, but no claims are inside: a custom codec opened what this crate did not seal.
    Claims,
    /// Sealed for another audience through the same custom codec.
    Audience,
    /// Made later than now: the clocks of two servers differ by more than the skew allowed.
    Future,
    /// The time of the whole call is over.
    Deadline,
    /// The time of the token is over.
    Expired,
    /// The arguments that came along have no canonical form.
    Arguments,
    /// Made for another method, target or arguments.
    Request,
    /// Made for somebody else.
    Principal,
    /// Made for nobody in particular, but the caller has an identity now.
    PrincipalAppeared,
    /// Made for an authenticated caller, but there is none now.
    PrincipalVanished,
}

impl Reason {
    /// The reason as one word in `snake_case`, for logs and counters.
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
