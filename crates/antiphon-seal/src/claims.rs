//! The claims inside a token, and their encoding.
//!
//! The plaintext is one CBOR array of thirteen elements, and zero bytes up to the padded length:
//!
//! ```text
//!  0 format = 1 or 2       5 call id         bytes(16)      9 audience digest   bytes(16) | null
//!  1 issued at, Unix s     6 call secret     bytes(16)     10 request digest    bytes(16)
//!  2 time to live, s       7 leg             u16           11 principal digest  bytes(16) | null
//!  3 born, Unix s          8 tool version    u32           12 payload           bytes
//!  4 deadline, Unix s | null
//! ```

use minicbor::{Decoder, Encoder, data::Type, decode};
use zeroize::Zeroizing;

use crate::call::Call;
use crate::error::Reason;
use crate::secret::{CallId, CallSecret, Digest};

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
