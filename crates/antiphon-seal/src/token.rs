//! The sealer: claims become token text, and token text that passes every check becomes claims again.
//!
//! ```text
//! seal   binding -> digests ── claims ── encode, pad ──┬─ ring: encrypt, base64url ──┬─> token
//!                                                      └─ codec                      │
//! open   token ── length ──┬─ ring: prefix, base64url, key id, tag ──┬─ claims ── times ── request ── principal -> Opened
//!                          └─ codec                                  ┘
//! ```

use crate::{
    binding::{AudienceProof, Binding, Late, verify},
    call::{Call, Claims, NewClaims, Opened, Room, unix_seconds},
    cipher::{Plaintext, Purpose, RingCipher},
    codec::Codec,
    error::{OpenError, Reason, SealError},
    key::KeyRing,
    random,
};
use std::{
    fmt,
    time::{Duration, SystemTime},
};
use zeroize::Zeroizing;

/// Seals and opens the tokens of one audience.
///
/// A server makes one sealer; every method takes `&self` and the present moment.
pub struct Sealer {
    pub(crate) seal: Seal,
    audience: String,
    ephemeral: bool,
    max_token_len: usize,
}

pub(crate) enum Seal {
    Ring(Box<Rings>),
    Codec(Box<dyn Codec>),
}

/// The keys of one ring, for each purpose.
pub(crate) struct Rings {
    state: RingCipher,
    pub(crate) receipts: RingCipher,
}

impl Sealer {
    /// The default limit for the length of a token, in bytes of text;
    /// [`with_max_token_len`](Self::with_max_token_len) sets another one.
    pub const DEFAULT_MAX_TOKEN_LEN: usize = 256 * 1024;

    /// Returns a sealer with the built-in cipher. Tokens open only under the same `audience`: usually the
    /// server's name.
    ///
    /// The sealer derives its own keys from the ring and keeps none of the ring's keys.
    #[must_use]
    pub fn new(ring: &KeyRing, audience: &str) -> Self {
        let rings = Rings {
            state: RingCipher::new(ring, Purpose::State(audience)),
            receipts: RingCipher::new(ring, Purpose::Receipt),
        };
        Self::with(Seal::Ring(Box::new(rings)), audience, ring.is_ephemeral())
    }

    /// Returns a sealer whose tokens `codec` makes and opens. The sealer still writes and verifies everything
    /// that a token is bound to, `audience` included.
    #[must_use]
    pub fn with_codec(codec: Box<dyn Codec>, audience: &str) -> Self {
        Self::with(Seal::Codec(codec), audience, false)
    }

    fn with(seal: Seal, audience: &str, ephemeral: bool) -> Self {
        Self { seal, audience: audience.to_owned(), ephemeral, max_token_len: Self::DEFAULT_MAX_TOKEN_LEN }
    }

    /// Returns the same sealer with another limit for tokens, in bytes of text. The limit holds for both
    /// directions.
    #[must_use]
    pub fn with_max_token_len(mut self, bytes: usize) -> Self {
        self.max_token_len = bytes;
        self
    }

    /// Returns `true` if the ring is [ephemeral](KeyRing::is_ephemeral).
    #[must_use]
    pub fn is_ephemeral(&self) -> bool {
        self.ephemeral
    }

    /// Returns a token that carries `payload` in `call`'s present leg and opens only with the same request,
    /// for `ttl` from now.
    ///
    /// `ttl` is cut to whole seconds, and to 136 years.
    ///
    /// # Errors
    ///
    /// [`SealError`] if the token cannot be made; its variant names the fault to repair.
    pub fn seal(
        &self,
        call: &Call,
        binding: &Binding<'_>,
        payload: &[u8],
        ttl: Duration,
        now: SystemTime,
    ) -> Result<String, SealError> {
        let nonce = || call.take_nonce(now).map_or_else(random::bytes, Ok);
        self.seal_with(nonce, call, binding, payload, ttl, now, self.max_token_len)
    }

    /// Does the same as [`seal`](Self::seal), without the limit for tokens: for a token that does not leave the server.
    ///
    /// # Errors
    ///
    /// As [`seal`](Self::seal).
    pub fn seal_unlimited(
        &self,
        call: &Call,
        binding: &Binding<'_>,
        payload: &[u8],
        ttl: Duration,
        now: SystemTime,
    ) -> Result<String, SealError> {
        let nonce = || call.take_nonce(now).map_or_else(random::bytes, Ok);
        self.seal_with(nonce, call, binding, payload, ttl, now, usize::MAX)
    }

    /// Returns `payload` sealed for a store, which keeps it for at most `ttl`. It opens only with
    /// [`open_stored`](Self::open_stored), the same `purpose` and the same request, and never as the state of a
    /// request. The limit for tokens does not hold here.
    ///
    /// # Errors
    ///
    /// As [`seal`](Self::seal).
    pub fn seal_stored(
        &self,
        purpose: &str,
        binding: &Binding<'_>,
        payload: &[u8],
        ttl: Duration,
        now: SystemTime,
    ) -> Result<String, SealError> {
        let call = Call::begin(now, None).map_err(SealError::Entropy)?;
        let nonce = || call.take_nonce(now).map_or_else(random::bytes, Ok);
        let method = stored_method(purpose, binding);
        let binding = Binding { method: &method, ..*binding };
        self.seal_with(nonce, &call, &binding, payload, ttl, now, usize::MAX)
    }

    /// Does the same as [`seal`](Self::seal), with a nonce that a test vector gives.
    #[cfg(test)]
    pub(crate) fn seal_with_nonce(
        &self,
        nonce: [u8; 12],
        call: &Call,
        binding: &Binding<'_>,
        payload: &[u8],
        ttl: Duration,
        now: SystemTime,
    ) -> Result<String, SealError> {
        self.seal_with(|| Ok(nonce), call, binding, payload, ttl, now, self.max_token_len)
    }

    #[allow(clippy::too_many_arguments, reason = "private; four callers")]
    fn seal_with(
        &self,
        nonce: impl FnOnce() -> Result<[u8; 12], random::EntropyError>,
        call: &Call,
        binding: &Binding<'_>,
        payload: &[u8],
        ttl: Duration,
        now: SystemTime,
        limit: usize,
    ) -> Result<String, SealError> {
        let audience = self.audience_proof().digest(&call.secret);
        let claims = NewClaims {
            issued_at: unix_seconds(now),
            ttl: u32::try_from(ttl.as_secs()).unwrap_or(u32::MAX),
            call,
            tool_version: binding.tool_version,
            bound: binding.digest(&call.secret, audience).map_err(SealError::Arguments)?,
            payload,
        };
        match &self.seal {
            Seal::Ring(rings) => {
                let body = claims.encode(RingCipher::ROOM);
                // The length is computed before the encryption, so nothing is encrypted in vain.
                fits(rings.state.token_len(&body), limit)?;
                Ok(rings.state.seal(nonce().map_err(SealError::Entropy)?, body))
            }
            Seal::Codec(codec) => {
                let token = codec.seal(&claims.encode(Room::NONE)).map_err(SealError::Codec)?;
                fits(token.len(), limit)?;
                Ok(token)
            }
        }
    }

    /// Returns the state in `token`, if the token is authentic, in time, and was made for exactly this
    /// request.
    ///
    /// # Errors
    ///
    /// [`OpenError`], one text for every reason. Nothing panics and nothing larger than the limit is
    /// allocated, whatever the text.
    pub fn open(&self, token: &str, binding: &Binding<'_>, now: SystemTime) -> Result<Opened, OpenError> {
        self.open_until(token, binding, Late::Refused, now)
    }

    /// Does the same as [`open`](Self::open), but a token whose own time is over still opens until its call's
    /// deadline, marked as [`expired`](Opened::expired): for a server that keeps the sealed state, drops the
    /// data that came with the token, and sends its question again.
    ///
    /// Only a call with a deadline has such tokens; without a deadline they would open for ever.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_late(
        &self,
        token: &str,
        binding: &Binding<'_>,
        now: SystemTime,
    ) -> Result<Opened, OpenError> {
        self.open_until(token, binding, Late::Allowed, now)
    }

    /// Does the same as [`open`](Self::open), or with `late` as [`open_late`](Self::open_late), without the limit for tokens: for a
    /// token of [`seal_unlimited`](Self::seal_unlimited), which comes from the server's own store.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_unlimited(
        &self,
        token: &str,
        binding: &Binding<'_>,
        late: bool,
        now: SystemTime,
    ) -> Result<Opened, OpenError> {
        self.open_whole(token, binding, if late { Late::Allowed } else { Late::Refused }, now)
    }

    /// Returns the payload that [`seal_stored`](Self::seal_stored) sealed for this purpose and this request.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_stored(
        &self,
        stored: &str,
        purpose: &str,
        binding: &Binding<'_>,
        now: SystemTime,
    ) -> Result<Vec<u8>, OpenError> {
        let method = stored_method(purpose, binding);
        let binding = Binding { method: &method, ..*binding };
        self.open_whole(stored, &binding, Late::Refused, now).map(|opened| opened.payload)
    }

    /// Returns a call sealed for a store, in its present leg: for a run of the same request that has no token of it. It opens only
    /// with [`open_call`](Self::open_call), the same `purpose` and the same request.
    ///
    /// # Errors
    ///
    /// As [`seal`](Self::seal).
    pub fn seal_call(
        &self,
        purpose: &str,
        binding: &Binding<'_>,
        call: &Call,
        ttl: Duration,
        now: SystemTime,
    ) -> Result<String, SealError> {
        let method = stored_method(purpose, binding);
        let binding = Binding { method: &method, ..*binding };
        self.seal_with(random::bytes, call, &binding, &[], ttl, now, usize::MAX)
    }

    /// Returns the call that [`seal_call`](Self::seal_call) sealed for this purpose and this request.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_call(
        &self,
        stored: &str,
        purpose: &str,
        binding: &Binding<'_>,
        now: SystemTime,
    ) -> Result<Call, OpenError> {
        let method = stored_method(purpose, binding);
        let binding = Binding { method: &method, ..*binding };
        self.open_whole(stored, &binding, Late::Refused, now).map(|opened| opened.call)
    }

    /// Returns the proof of the audience: a ring has a key for each audience, a codec knows none.
    fn audience_proof(&self) -> AudienceProof<'_> {
        match &self.seal {
            Seal::Ring(_) => AudienceProof::Key,
            Seal::Codec(_) => AudienceProof::Digest(&self.audience),
        }
    }

    fn open_until(
        &self,
        token: &str,
        binding: &Binding<'_>,
        late: Late,
        now: SystemTime,
    ) -> Result<Opened, OpenError> {
        if token.len() > self.max_token_len {
            return Err(Reason::TooLong.into());
        }
        self.open_whole(token, binding, late, now)
    }

    fn open_whole(
        &self,
        token: &str,
        binding: &Binding<'_>,
        late: Late,
        now: SystemTime,
    ) -> Result<Opened, OpenError> {
        let plaintext = match &self.seal {
            Seal::Ring(rings) => rings.state.open(token)?,
            Seal::Codec(codec) => Plaintext { bytes: Zeroizing::new(codec.open(token)?), min_issued_at: 0 },
        };
        let claims = Claims::decode(&plaintext.bytes)?;
        if claims.issued_at < plaintext.min_issued_at {
            return Err(OpenError::of_call(Reason::MinIat, claims.call.id));
        }
        verify(claims, binding, self.audience_proof(), late, now)
    }
}

fn fits(actual: usize, limit: usize) -> Result<(), SealError> {
    if actual > limit { Err(SealError::TooLarge { limit, actual }) } else { Ok(()) }
}

/// Returns the method that sealed data for a store are bound to: no method of a request contains a zero character.
fn stored_method(purpose: &str, binding: &Binding<'_>) -> String {
    format!("{purpose}\0{}", binding.method)
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer")
            .field("audience", &self.audience)
            .field("ephemeral", &self.ephemeral)
            .field("max_token_len", &self.max_token_len)
            .finish_non_exhaustive()
    }
}
