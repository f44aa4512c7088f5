//! One call, the contents of an opened token, and the claims inside a token with their encoding.

use crate::{
    error::Reason,
    secret::{self, CallId, CallSecret, Digest, EntropyError, Nonce},
};
use minicbor::{Decoder, Encoder, data::Type, decode};
use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use zeroize::Zeroizing;

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
        let random = Zeroizing::new(secret::random_bytes::<32>()?);
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
    /// The Unix second at which the token was made.
    pub issued_at: u64,
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

// The claims inside a token, and their encoding.
//
// The plaintext is one CBOR array of thirteen elements, and zero bytes up to the padded length:
//
// ```text
//  0 format = 1 or 2       5 call id         bytes(16)      9 audience digest   bytes(16) | null
//  1 issued at, Unix s     6 call secret     bytes(16)     10 request digest    bytes(16)
//  2 time to live, s       7 leg             u16           11 principal digest  bytes(16) | null
//  3 born, Unix s          8 tool version    u32           12 payload           bytes
//  4 deadline, Unix s | null
// ```

/// The format of claims with the digest of the audience.
const WITH_AUDIENCE: u32 = 1;
/// The format of claims without it.
const FORMAT: u32 = 2;
const ELEMENTS: u64 = 13;

/// The maximum number of bytes for everything but the payload's own bytes.
const MAX_HEAD: usize = 136;

pub(crate) struct Claims {
    pub(crate) issued_at: u64,
    pub(crate) ttl: u32,
    pub(crate) call: Call,
    pub(crate) tool_version: u32,
    pub(crate) bound: Bound,
    pub(crate) payload: Vec<u8>,
}

/// The binding of the token, as digests under the call's secret.
pub(crate) struct Bound {
    /// `None` if the cipher's key is that of one audience.
    pub(crate) audience: Option<Digest>,
    pub(crate) request: Digest,
    pub(crate) principal: Option<Digest>,
}

/// The part of the claims that a new token takes unchanged.
pub(crate) struct NewClaims<'a> {
    pub(crate) issued_at: u64,
    pub(crate) ttl: u32,
    pub(crate) call: &'a Call,
    pub(crate) tool_version: u32,
    pub(crate) bound: Bound,
    pub(crate) payload: &'a [u8],
}

/// The bytes that a cipher adds around the claims.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    pub(crate) before: usize,
    pub(crate) after: usize,
}

impl Room {
    pub(crate) const NONE: Self = Self { before: 0, after: 0 };
}

type WriteError = minicbor::encode::Error<std::convert::Infallible>;

impl NewClaims<'_> {
    /// Returns the padded claims behind `room.before` zero bytes, in a vector that takes `room.after` more
    /// bytes without moving.
    pub(crate) fn encode(&self, room: Room) -> Zeroizing<Vec<u8>> {
        // Room for all of it at once, so that no growing vector leaves a copy of the secret behind.
        let most = room.before + padded_len(self.payload.len() + MAX_HEAD) + room.after;
        let mut bytes = Vec::with_capacity(most);
        bytes.resize(room.before, 0);
        let mut encoder = Encoder::new(bytes);
        #[allow(
            clippy::expect_used,
            reason = "a vector takes all bytes, and no element encodes conditionally"
        )]
        self.write(&mut encoder).expect("writing to a vector cannot fail");
        let mut bytes = Zeroizing::new(encoder.into_writer());
        let padded = padded_len(bytes.len() - room.before);
        bytes.resize(room.before + padded, 0);
        bytes
    }

    fn write(&self, to: &mut Encoder<Vec<u8>>) -> Result<(), WriteError> {
        let format = if self.bound.audience.is_some() { WITH_AUDIENCE } else { FORMAT };
        to.array(ELEMENTS)?.u32(format)?.u64(self.issued_at)?.u32(self.ttl)?.u64(self.call.born)?;
        match self.call.deadline {
            Some(deadline) => to.u64(deadline)?,
            None => to.null()?,
        };
        to.bytes(self.call.id.as_bytes())?.bytes(self.call.secret.as_bytes())?.u16(self.call.leg)?;
        to.u32(self.tool_version)?;
        write_digest(to, self.bound.audience)?;
        write_digest(to, Some(self.bound.request))?;
        write_digest(to, self.bound.principal)?;
        to.bytes(self.payload)?.ok()
    }
}

impl Claims {
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Reason> {
        let mut from = Decoder::new(bytes);
        let length = from.array().map_err(|_| Reason::Claims)?;
        // The format comes before anything that a later one may change, the number of elements included.
        if !(WITH_AUDIENCE..=FORMAT).contains(&from.u32().map_err(|_| Reason::Claims)?) {
            return Err(Reason::Format);
        }
        if length != Some(ELEMENTS) {
            return Err(Reason::Claims);
        }
        let claims = Self::read(&mut from).map_err(|_| Reason::Claims)?;
        let end = from.position();
        let padding_fits = bytes.len() == padded_len(end) && bytes[end..].iter().all(|&byte| byte == 0);
        if padding_fits { Ok(claims) } else { Err(Reason::Claims) }
    }

    fn read(from: &mut Decoder<'_>) -> Result<Self, decode::Error> {
        let issued_at = from.u64()?;
        let ttl = from.u32()?;
        let born = from.u64()?;
        let deadline = nullable(from, Decoder::u64)?;
        let id = CallId::from_bytes(sixteen(from)?);
        let secret = Zeroizing::new(sixteen(from)?);
        let secret = CallSecret::from_bytes(*secret);
        let call = Call { id, secret, born, deadline, leg: from.u16()?, nonce: None };
        let tool_version = from.u32()?;
        let bound = Bound {
            audience: nullable(from, sixteen)?.map(Digest::from_bytes),
            request: Digest::from_bytes(sixteen(from)?),
            principal: nullable(from, sixteen)?.map(Digest::from_bytes),
        };
        let payload = from.bytes()?.to_vec();
        Ok(Self { issued_at, ttl, call, tool_version, bound, payload })
    }
}

fn write_digest(to: &mut Encoder<Vec<u8>>, digest: Option<Digest>) -> Result<(), WriteError> {
    match digest {
        Some(digest) => to.bytes(&digest.to_bytes())?.ok(),
        None => to.null()?.ok(),
    }
}

fn sixteen(from: &mut Decoder<'_>) -> Result<[u8; 16], decode::Error> {
    from.bytes()?.try_into().map_err(|_| decode::Error::message("expected 16 bytes"))
}

fn nullable<'b, T>(
    from: &mut Decoder<'b>,
    read: impl FnOnce(&mut Decoder<'b>) -> Result<T, decode::Error>,
) -> Result<Option<T>, decode::Error> {
    if from.datatype()? == Type::Null { from.null().map(|()| None) } else { read(from).map(Some) }
}

/// Returns the length that claims of this length are padded to: the next multiple of 64 bytes, and from 1 KiB
/// on of an eighth of the largest power of two that is not longer. So a length reveals at most three bits
/// more than its magnitude.
pub(crate) fn padded_len(length: usize) -> usize {
    let magnitude = length.checked_ilog2().map_or(0, |bits| 1 << bits);
    length.next_multiple_of((magnitude / 8).max(64))
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
