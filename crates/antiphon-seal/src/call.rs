//! One call, and the contents of an opened token.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use zeroize::Zeroizing;

use crate::random::{self, EntropyError, Nonce};
use crate::secret::{CallId, CallSecret};

/// One call from its first request to its final result: the values that are made once and that every token of
/// the call carries.
///
/// Times are whole seconds since 1970-01-01 UTC.
pub struct Call {
    pub(crate) id: CallId,
    pub(crate) secret: CallSecret,
    pub(crate) born: u64,
    pub(crate) deadline: Option<u64>,
    pub(crate) leg: u16,
    /// The nonce of the first token, if it is sealed in the second in which the call began: the first 12 bytes of its id, which
    /// are random, public and used by no other call.
    pub(crate) nonce: Option<Nonce>,
}

impl Call {
    /// Returns a new call in its first leg, with a new id and secret. `deadline` is the moment after which no
    /// token of the call opens, whatever each token's own time allows.
    ///
    /// # Errors
    ///
    /// [`EntropyError`] if the system gives no random bytes.
    pub fn begin(now: SystemTime, deadline: Option<SystemTime>) -> Result<Self, EntropyError> {
        // One request to the system, of at most 32 bytes: Linux has as many after one block of its cipher.
        let random = Zeroizing::new(random::bytes::<32>()?);
        let (mut id, mut secret, mut nonce) = ([0; 16], Zeroizing::new([0; 16]), [0; 12]);
        id.copy_from_slice(&random[..16]);
        secret.copy_from_slice(&random[16..]);
        nonce.copy_from_slice(&random[..12]);
        Ok(Self {
            id: CallId::from_bytes(id),
            secret: CallSecret::from_bytes(*secret),
            born: unix_seconds(now),
            deadline: deadline.map(unix_seconds),
            leg: 1,
            nonce: Some(Nonce::new(nonce)),
        })
    }

    /// Returns the nonce of the first token: once, and only within the same second. A virtual
    /// machine may be cloned while a handler runs, and its copies should not share a nonce.
    pub(crate) fn take_nonce(&self, now: SystemTime) -> Option<[u8; 12]> {
        self.nonce.as_ref().filter(|_| unix_seconds(now) == self.born)?.take()
    }

    /// The call's id, for logs and stores.
    #[must_use]
    pub fn id(&self) -> CallId {
        self.id
    }

    /// The secret that keys the call's digests.
    #[must_use]
    pub fn secret(&self) -> &CallSecret {
        &self.secret
    }

    /// The time at which the call began, in Unix seconds.
    #[must_use]
    pub fn born(&self) -> u64 {
        self.born
    }

    /// The time at which the whole call ends, in Unix seconds.
    #[must_use]
    pub fn deadline(&self) -> Option<u64> {
        self.deadline
    }

    /// The number of this request in the call, counted from 1. A token holds the number of the leg that made
    /// it, so (id, leg) identifies the token.
    #[must_use]
    pub fn leg(&self) -> u16 {
        self.leg
    }

    /// Returns the same call in its next leg; `None` when the counter is used up, after 65,535 legs.
    #[must_use]
    pub fn next_leg(self) -> Option<Self> {
        Some(Self { leg: self.leg.checked_add(1)?, nonce: None, ..self })
    }
}

/// An opened token: authentic, in time, and made for exactly the request it came with.
///
/// Only [`Sealer::open`](crate::Sealer::open) and [`Sealer::open_late`](crate::Sealer::open_late) return an
/// opened token.
#[non_exhaustive]
pub struct Opened {
    /// The call, in the leg that made the token.
    pub call: Call,
    /// The payload that was sealed.
    pub payload: Vec<u8>,
    /// The tool's version when the token was made. It is the only part of the binding that is not compared
    /// here: the server causes a mismatch, and its response to the caller says so.
    pub tool_version: u32,
    /// `true` if the token's own time is over; always `false` from [`Sealer::open`](crate::Sealer::open).
    pub expired: bool,
    /// The last Unix second at which this token could be accepted again. A server that records used tokens
    /// must keep the record until then.
    pub accepted_until: u64,
}

/// Returns whole seconds since 1970; a moment before that counts as 0, which is too early for every token.
pub(crate) fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("id", &self.id)
            .field("secret", &self.secret)
            .field("born", &self.born)
            .field("deadline", &self.deadline)
            .field("leg", &self.leg)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Opened {
    /// Formats everything but the payload: sealed data does not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened")
            .field("call", &self.call)
            .field("tool_version", &self.tool_version)
            .field("expired", &self.expired)
            .field("accepted_until", &self.accepted_until)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn the_first_nonce_is_taken_once_and_at_once() {
        let call = Call::begin(at(7), None).unwrap();
        assert_eq!(call.take_nonce(at(8)), None);
        assert!(call.take_nonce(at(7)).is_some());
        assert_eq!(call.take_nonce(at(7)), None);

        let next = Call::begin(at(7), None).unwrap().next_leg().unwrap();
        assert_eq!(next.take_nonce(at(7)), None);
    }
}
