//! One call, and what a token of it gives back.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use zeroize::Zeroizing;

use crate::random::{self, EntropyError};
use crate::secret::{CallId, CallSecret};

/// One call from its first request to its final result: what is made once and travels in every token of it.
///
/// Times are whole seconds since 1970-01-01 UTC.
#[derive(Debug)]
pub struct Call {
    pub(crate) id: CallId,
    pub(crate) secret: CallSecret,
    pub(crate) born: u64,
    pub(crate) deadline: Option<u64>,
    pub(crate) leg: u16,
}

impl Call {
    /// A new call in its first leg, with a new id and secret. `deadline` is the moment after which no token
    /// of the call opens, whatever each token's own time allows.
    ///
    /// # Errors
    ///
    /// [`EntropyError`] if the system gives no random bytes.
    pub fn begin(now: SystemTime, deadline: Option<SystemTime>) -> Result<Self, EntropyError> {
        // One request to the system for both.
        let random = Zeroizing::new(random::bytes::<32>()?);
        let (mut id, mut secret) = ([0; 16], [0; 16]);
        id.copy_from_slice(&random[..16]);
        secret.copy_from_slice(&random[16..]);
        Ok(Self {
            id: CallId::from_bytes(id),
            secret: CallSecret::from_bytes(secret),
            born: unix_seconds(now),
            deadline: deadline.map(unix_seconds),
            leg: 1,
        })
    }

    /// The call's name in logs and stores.
    #[must_use]
    pub fn id(&self) -> CallId {
        self.id
    }

    /// What keys the call's digests.
    #[must_use]
    pub fn secret(&self) -> &CallSecret {
        &self.secret
    }

    /// When the call began, in Unix seconds.
    #[must_use]
    pub fn born(&self) -> u64 {
        self.born
    }

    /// When the whole call ends, in Unix seconds.
    #[must_use]
    pub fn deadline(&self) -> Option<u64> {
        self.deadline
    }

    /// Which request of the call this is, counted from 1. A token says the leg that made it: (id, leg) names
    /// it.
    #[must_use]
    pub fn leg(&self) -> u16 {
        self.leg
    }

    /// The same call in its next leg; `None` when the counter is used up, after 65,535 legs.
    #[must_use]
    pub fn next_leg(self) -> Option<Self> {
        Some(Self { leg: self.leg.checked_add(1)?, ..self })
    }
}

/// An opened token: authentic, in time, and made for exactly the request it came with.
///
/// Only [`Sealer::open`](crate::Sealer::open) and [`Sealer::open_late`](crate::Sealer::open_late) make one.
#[non_exhaustive]
pub struct Opened {
    /// The call, in the leg that made the token.
    pub call: Call,
    /// What was sealed.
    pub payload: Vec<u8>,
    /// The tool's version when the token was made. The only part of the binding that is not compared here: a
    /// mismatch is the server's doing, and the caller is told so.
    pub tool_version: u32,
    /// Whether the token's own time is over; always `false` from [`Sealer::open`](crate::Sealer::open).
    pub expired: bool,
    /// The last Unix second at which this token could be accepted again: how long to remember that it was
    /// used.
    pub accepted_until: u64,
}

/// Whole seconds since 1970; a moment before that counts as 0, which is too early for every token.
pub(crate) fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

impl std::fmt::Debug for Opened {
    /// Not the payload: what was sealed does not belong into logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened")
            .field("call", &self.call)
            .field("tool_version", &self.tool_version)
            .field("expired", &self.expired)
            .field("accepted_until", &self.accepted_until)
            .finish_non_exhaustive()
    }
}
